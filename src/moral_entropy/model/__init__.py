"""Votes → Consensus: the mode of the model, draws around it, label probabilities and their entropy."""
