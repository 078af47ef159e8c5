"""MFRC: one row per annotation, with its text → annotations.

Layout: `text, subreddit, bucket, annotator, annotation, confidence`, as CSV or Parquet. Labels stay as published.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.corpora.annotations import COLUMNS, pick_columns, tidy_annotations
from moral_entropy.votes.source import open_source

if TYPE_CHECKING:
    import polars as pl

PUBLISHED = {"text": "text", "domain": "bucket", "annotator": "annotator", "cell": "annotation"}


def read_mfrc(path: str | Path) -> pl.DataFrame:
    r"""Read a file of the Moral Foundations Reddit Corpus.

    Parameters
    ----------
    path
        `final_mfrc_data.csv`, or the same as Parquet; may be gzipped.

    Returns
    -------
    pl.DataFrame
        One row per annotation: text, source_id (always null), domain (the bucket), annotator, cell.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "final_mfrc_data.csv"
    >>> _ = path.write_text("text,subreddit,bucket,annotator,annotation,confidence\n"
    ...                     "Be kind.,europe,French politics,annotator03,Care,Confident\n")
    >>> read_mfrc(path).rows()
    [('Be kind.', None, 'French politics', 'annotator03', 'Care')]
    """
    import polars as pl

    frame = pick_columns(open_source(path), PUBLISHED, "final_mfrc_data.csv")
    return tidy_annotations(frame.with_columns(source_id=pl.lit(None, dtype=pl.String)).select(COLUMNS))
