"""MFRC: the Moral Foundations Reddit Corpus, one row per annotation with its text, as CSV or Parquet.

Layout: `text, subreddit, bucket, annotator, annotation, confidence`. The bucket is the domain.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.votes.formats.foundations import has_columns, read_columns, to_votes
from moral_entropy.votes.table import ReadingLog

if TYPE_CHECKING:
    import polars as pl

COLUMNS = {"text": "text", "domain": "bucket", "annotator": "annotator", "cell": "annotation"}
MEANINGS = {
    "care": "care",
    "proportionality": "fairness",
    "equality": "fairness",
    "loyalty": "loyalty",
    "authority": "authority",
    "purity": "sanctity",
    "thin morality": "none",
    "non-moral": "none",
}
DOMAINS = ("Everyday Morality", "US Politics", "French Politics")


def detect(path: Path) -> bool:
    """Return whether a file is MFRC as published."""
    return has_columns(path, ("subreddit", *COLUMNS.values()))


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of `final_mfrc_data.csv`, or the same as Parquet."""
    import polars as pl

    frame = read_columns(path, COLUMNS, log).with_columns(source=pl.lit(None, dtype=pl.String))
    return to_votes(frame, "mfrc", MEANINGS, DOMAINS, log)
