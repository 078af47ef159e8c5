"""eMFD: one row per highlight, a passage that a coder marked for the foundation assigned to them, as CSV or Parquet.

Layout: an unnamed index, `content, assigned_domain, coder_id, document_id, focus_duration`. What the authors call the
assigned domain is the foundation: a highlight is a yes on it, and a no on the other four, which is a strong assumption.
The paper's author renamed three columns (`morality-eMFD` on the hub).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.votes.formats.foundations import FOUNDATIONS, has_columns, read_columns, to_votes
from moral_entropy.votes.table import ReadingLog

if TYPE_CHECKING:
    import polars as pl

COLUMNS = {"text": "content", "cell": "assigned_domain", "annotator": "coder_id", "document": "document_id"}
PREPARED = {"text": "text", "cell": "label", "annotator": "annotator", "document": "document_id"}
MEANINGS = {**{name: name for name in FOUNDATIONS}, "purity": "sanctity"}
UNTAGGED = "Untagged"


def detect(path: Path) -> bool:
    """Return whether a file is eMFD as published, or as the paper's author prepared it."""
    return has_columns(path, COLUMNS.values()) or has_columns(path, (*PREPARED.values(), "focus_duration"))


def to_table(path: Path, log: ReadingLog, domains: pl.DataFrame | None = None) -> pl.DataFrame:
    """Read the votes of `highlights_raw.csv`, or the same as Parquet.

    Parameters
    ----------
    path
        The file.
    log
        Where counts and notes go.
    domains
        Columns document and domain; without it no highlight has a domain.
    """
    import polars as pl

    nothing = pl.lit(None, dtype=pl.String)
    frame = read_columns(path, PREPARED if has_columns(path, PREPARED.values()) else COLUMNS, log).with_columns(
        source=nothing
    )
    if domains is None:
        frame = frame.with_columns(domain=nothing)
    else:
        frame = frame.join(domains, on="document", how="left", maintain_order="left")
        frame = frame.with_columns(pl.col("domain").fill_null(UNTAGGED))
    log.note(
        "a highlight is a yes on the coder's foundation and counts as a no on the other four, which nobody asked about."
    )
    return to_votes(frame, "emfd", MEANINGS, (), log)
