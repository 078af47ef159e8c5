"""Items, words and annotators worth a look, ranked with reasons; how much a vote counts; whose vote to ask for next.

Takes a `Consensus` and its entropies, or the tables of a run folder. Writes no file.
"""
