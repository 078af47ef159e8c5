"""The run: the result of an audit as named tables, in memory and as a folder that other programs read.

`run` defines it, `make` builds it, `folder` writes a run folder whole or not at all, `tables` and `manifest` write and
read its files.
"""
