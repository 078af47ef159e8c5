"""Groups of annotators: who votes how, is there one truth, and whose consensus is it."""
