"""Can the consensus be trusted? Consensus → findings. `run.CHECKS` lists all checks; each is a plain function."""
