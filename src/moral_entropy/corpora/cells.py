"""Cells: what an annotator wrote, such as `Care,HARM ` → yes or no for every foundation.

Looks at the distinct cells only; what it does not know it counts and shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moral_entropy.errors import VotesError
from moral_entropy.votes.source import ReadingLog

if TYPE_CHECKING:
    import polars as pl

NONE = "none"


@dataclass(frozen=True)
class Cell:
    """What a cell says.

    Parameters
    ----------
    foundations
        Those it names.
    says_none
        Whether it names a label that stands for no foundation.
    unknown
        Labels that nobody published.
    """

    foundations: frozenset[str]
    says_none: bool
    unknown: tuple[str, ...]


def read_cell(cell: str, foundation_of: Mapping[str, str]) -> Cell:
    """Read the labels of a cell, separated by commas, whatever their case and blanks.

    Parameters
    ----------
    cell
        As published.
    foundation_of
        The foundation, or "none", of every label in small letters.

    Examples
    --------
    >>> read_cell(" Care,HARM, x", {"care": "care", "harm": "care"})
    Cell(foundations=frozenset({'care'}), says_none=False, unknown=('x',))
    """
    labels = [" ".join(label.split()) for label in cell.split(",") if label.strip()]
    known = {foundation_of[label.casefold()] for label in labels if label.casefold() in foundation_of}
    unknown = tuple(label for label in labels if label.casefold() not in foundation_of)
    return Cell(frozenset(known - {NONE}), NONE in known, unknown)


def map_cells(
    frame: pl.DataFrame,
    foundations: Sequence[str],
    foundation_of: Mapping[str, str],
    log: ReadingLog,
    *,
    corpus: str,
    ignore_unknown: bool,
) -> pl.DataFrame:
    """Add a 0/1 column a foundation, in place of the cell.

    Parameters
    ----------
    frame
        Annotations with a cell each.
    foundations
        Names of the columns to add.
    foundation_of
        As in `read_cell`.
    log
        Where counts and remarks go.
    corpus
        Name of the corpus, for errors.
    ignore_unknown
        Whether to pass over labels that are not known; an annotation that has no other is left out.
    """
    import polars as pl

    read = {cell: read_cell(cell, foundation_of) for cell in frame["cell"].unique()}
    unknown = {cell: says.unknown[0] for cell, says in read.items() if says.unknown}
    culprits = frame.filter(pl.col("cell").is_in(list(unknown)))
    if culprits.height and not ignore_unknown:
        raise VotesError(_unknown_labels(culprits, frame.height, unknown, foundation_of, corpus))
    if culprits.height:
        counted = f"{culprits.height:,} annotations name a label that {corpus} does not have, such as"
        log.note(f"{counted} {unknown[culprits['cell'][0]]!r}; it is passed over.")
    answers = pl.DataFrame(
        {
            "cell": list(read),
            **{name: [int(name in says.foundations) for says in read.values()] for name in foundations},
            "both": [says.says_none and bool(says.foundations) for says in read.values()],
            "says": [says.says_none or bool(says.foundations) for says in read.values()],
        },
        schema={
            "cell": pl.String,
            **dict.fromkeys(foundations, pl.Int8),
            **dict.fromkeys(("both", "says"), pl.Boolean),
        },
    )
    frame = frame.join(answers, on="cell", how="left", maintain_order="left")
    if both := int(frame["both"].sum()):
        log.note(f"{both:,} annotations name a foundation and none at once; the foundation counts.")
    # A cell of commas alone says nothing, as does one with unknown labels only.
    log.drop("no known label", int((~frame["says"]).sum()))
    return frame.filter("says").drop("both", "says", "cell")


def _unknown_labels(
    culprits: pl.DataFrame, n_rows: int, unknown: Mapping[str, str], foundation_of: Mapping[str, str], corpus: str
) -> str:
    first = culprits.row(0, named=True)
    where = first["text"] if first["text"] is not None else first["source_id"]
    return (
        f"{culprits.height:,} of {n_rows:,} annotations name a label that {corpus} does not have. "
        f"First: {unknown[first['cell']]!r}, by {first['annotator']} on {where[:40]!r}. "
        f"Known: {', '.join(foundation_of)}. Correct the file, or pass over such labels with ignore_unknown=True "
        "(CLI: --ignore-unknown)."
    )
