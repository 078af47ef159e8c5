"""Judges: what a panel of people and language models says of systems, and what each of its judges is worth."""
