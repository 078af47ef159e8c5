"""The run folder: the files a run leaves behind, which other programs read.

`folder` makes a run folder appear whole or not at all, `tables` knows its tables, `manifest` the facts about
the run. Knows nothing of how the numbers came about.
"""
