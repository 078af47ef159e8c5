"""Soft labels and what is trained on them: targets, classifiers, and the study of which targets win."""
