"""Classifiers trained on the labels of a run: targets, models, checkpoints, predictions."""
