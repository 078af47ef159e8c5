"""Exports of annotation tools, a module each: is this file one (`detect`), and what are its votes (`to_table`).

`exports.open_export` asks them all. Behind it an export is a long table like any other.
"""
