"""Two run folders compared: what moved, by how much, and how sure that is.

`pair` joins the items of two runs, `resample` adds them up over resampled items, `shifts` and `grades` take
differences, `table` puts them together, `write` and `page` make files of them. Reads run folders and nothing else.
"""
