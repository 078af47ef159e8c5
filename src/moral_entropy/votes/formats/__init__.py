"""Exports of annotation tools and logs of evaluations: `export_of` declares how a file is told, and its reader.

`exports.open_export` tries all of them and returns a long table like any other.
"""
