"""Find a question or an item of a run folder by what the user typed, or suggest similar ones."""

from __future__ import annotations

from difflib import get_close_matches

import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.run import Run

COMPARED = 20_000
"""Largest number of ids that an unknown one is compared with; ids with the same first letters come first."""


def check_question(run: Run, question: str | None) -> str | None:
    """Return the question if the run has it; otherwise raise a `RunFolderError`."""
    known = [one.name for one in run.questions]
    if question is None or question in known:
        return question
    msg = f"the run has no question {question!r}.{suggestion(question, known)} Questions: {', '.join(known)}."
    raise RunFolderError(msg)


def find_item(run: Run, item: str, question: str | None) -> pl.Expr:
    """Return the condition that selects one item, on one question or on all, in a table with both columns.

    Parameters
    ----------
    run
        The run.
    item
        The id, as typed.
    question
        One question, or None for all.
    """
    ids = run.table("items", where=None if question is None else pl.col("question") == question)["item"].unique()
    wanted = _typed(item, ids.dtype)
    if wanted is None or not (ids == wanted).any():
        asked = "" if question is None else f" on {question!r}"
        msg = f"there is no item {item!r}{asked} among {len(ids):,} in {run.where}.{_close_ids(item, ids)}"
        raise RunFolderError(msg)
    found = pl.col("item") == wanted
    return found if question is None else found & (pl.col("question") == question)


def _typed(item: str, dtype: pl.DataType) -> str | int | None:
    if not dtype.is_integer():
        return item
    try:
        return int(item)
    except ValueError:
        return None


def _close_ids(item: str, ids: pl.Series) -> str:
    names = ids.cast(pl.String)
    for n_letters in (4, 2, 1, 0):
        alike = names.filter(names.str.starts_with(item[:n_letters]))
        if len(alike) and (meant := suggestion(item, alike.sort().head(COMPARED).to_list())):
            return meant
    return f" First: {names.sort()[0]!r}." if len(names) else ""


def suggestion(wanted: str, known: list[str]) -> str:
    """Return a question that suggests similar names; an empty text where there are none.

    Examples
    --------
    >>> suggestion("carre", ["care", "fairness"])
    " Did you mean 'care'?"
    """
    close = get_close_matches(wanted, known, n=3, cutoff=0.7)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
