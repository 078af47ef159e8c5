"""Can the consensus be trusted? Consensus → findings.

One side per file (`sides.SIDES` lists them all); the other files have what several sides or one long side need.
"""
