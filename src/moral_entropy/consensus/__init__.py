"""Votes → Consensus: the mode, its curvature, and draws."""
