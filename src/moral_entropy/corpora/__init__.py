"""Votes of known truth: simulated votes, and synthetic replicas (twins) of the three moral corpora."""
