"""Exports of annotation tools, one module per tool: `detect` recognises a file, `to_table` reads its votes.

`exports.open_export` tries all of them and returns a long table like any other.
"""
