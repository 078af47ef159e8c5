"""Is the yardstick straight? Consensus → findings about its posterior.

Sampling, ensembles, priors, held-out votes, dependence, identifiability, gold: each in a file of its own.
"""
