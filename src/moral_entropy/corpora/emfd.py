"""eMFD: a row a highlight, a passage that a coder marked for the foundation given to them → a row an annotation.

Layout: an unnamed index, `content, assigned_domain, coder_id, document_id, focus_duration`. What the authors call the
assigned domain is the foundation; the domain here is the article's topic, from its GDELT themes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.corpora.annotations import COLUMNS, pick_columns, plain_id, tidy
from moral_entropy.corpora.themes import UNTAGGED
from moral_entropy.votes.source import open_source

if TYPE_CHECKING:
    import polars as pl

PUBLISHED = {
    "text": "content",
    "cell": "assigned_domain",
    "annotator": "coder_id",
    "document": "document_id",
}


def read_emfd(path: str | Path, domains: pl.DataFrame | None = None) -> pl.DataFrame:
    r"""Read the highlights from which the extended Moral Foundations Dictionary was made.

    Parameters
    ----------
    path
        `highlights_raw.csv`, or the same as Parquet; may be gzipped.
    domains
        Columns document and domain, from `read_themes`; without it no highlight has a domain.

    Returns
    -------
    pl.DataFrame
        A row an annotation: text, source_id (always null), domain, annotator, cell (the assigned foundation).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "highlights_raw.csv"
    >>> _ = path.write_text(",content,assigned_domain,coder_id,document_id,focus_duration\n"
    ...                     "0,they helped,care,12,7,2700.0\n")
    >>> read_emfd(path).rows()
    [('they helped', None, None, '12', 'care')]
    """
    import polars as pl

    frame = pick_columns(open_source(path), PUBLISHED, "highlights_raw.csv")
    frame = frame.with_columns(plain_id("annotator"), plain_id("document"), source_id=pl.lit(None, dtype=pl.String))
    if domains is None:
        frame = frame.with_columns(domain=pl.lit(None, dtype=pl.String))
    else:
        frame = frame.join(domains, on="document", how="left", maintain_order="left")
        frame = frame.with_columns(pl.col("domain").fill_null(UNTAGGED))
    return tidy(frame.select(COLUMNS))
