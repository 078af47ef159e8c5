"""A run folder → something to read: one offline HTML file, figures, a dataset card, exports.

Reads the tables of a run folder and nothing else, so that a report can be made again without the votes. Fits nothing,
grades nothing: every figure here is in a table of the run folder, or is counted from one.
"""
