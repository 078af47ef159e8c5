"""The three moral corpora: the files their authors publish → a long table of votes.

A module a corpus reads its layout; `build` maps labels to foundations and texts to items; `summary` lays the counts
beside the published ones; `fetch` downloads a file and checks it.
"""
