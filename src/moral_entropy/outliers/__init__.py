"""What is worth a look: items, words and annotators, ranked and with a reason; what a vote is worth; whom to ask next.

Takes a `Consensus` and its entropies, or the tables of a run folder. Writes no file.
"""
