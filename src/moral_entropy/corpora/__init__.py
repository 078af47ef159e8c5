"""Votes of known origin: simulated votes, twins of the three moral corpora, and the corpora's published files.

One module per published corpus reads its layout; `corpus` maps labels to foundations and texts to items; `summary`
compares the counts with the published ones; `fetch` downloads a file and checks it.
"""
