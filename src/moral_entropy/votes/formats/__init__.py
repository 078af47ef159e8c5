"""Exports of annotation tools and logs of evaluations: `records.export_of` declares signature and reader of each."""
