"""Layout: whether a row is a vote, an item with a column per annotator, or an item with counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moral_entropy.errors import UsageError
from moral_entropy.votes.columns import Found, missing_column, shown
from moral_entropy.votes.labels import Tally
from moral_entropy.votes.options import Options
from moral_entropy.votes.source import Source
from moral_entropy.votes.wide import voting_columns


@dataclass(frozen=True)
class Shape:
    """How to read a table.

    Parameters
    ----------
    layout
        A row is a vote ("long"), an item ("wide"), or an item with counts ("counted").
    found
        The roles that the layout has a use for.
    voters
        Columns that are annotators, in the wide layout.
    """

    layout: Literal["long", "wide", "counted"]
    found: Found
    voters: tuple[str, ...] = ()


def choose_layout(source: Source, found: Found, options: Options, tally: Tally) -> Shape:
    """Choose how to read a table, or say which column is wanting.

    Parameters
    ----------
    source, found, options
        The table, which of its columns is what, and what the user asked for.
    tally
        Where remarks go.
    """
    found = _texts_as_items(found, tally)
    if options.counts or options.of is not None:
        return Shape("counted", _require_item(source, found.without("count")))
    if _looks_wide(found, options) and (voters := _voters(source, found, options, tally)):
        return Shape("wide", found, tuple(voters))
    for role in _needed(options):
        if found.get(role) is None:
            raise missing_column(role, source.columns, source.name, also=_other_ways(role))
    if options.anonymous:
        return Shape("long", found)
    if options.count:
        msg = (
            "a long table has one vote a row. count= is for the wide layout, or goes with anonymous=True (--anonymous)."
        )
        raise UsageError(msg)
    return Shape("long", found.without("count"))


def _texts_as_items(found: Found, tally: Tally) -> Found:
    if found.get("item") or not (text := found.get("text")) or found.get("count"):
        return found
    tally.note(f"no item column: items are told apart by their text ({text!r}).")
    return Found({"item": text, **found.column}, ("item", *found.guessed))


def _looks_wide(found: Found, options: Options) -> bool:
    if options.layout != "auto":
        return options.layout == "wide"
    roles_of_long = bool(found.get("annotator") or found.get("label") or options.multilabel or options.questions)
    return not roles_of_long


def _voters(source: Source, found: Found, options: Options, tally: Tally) -> list[str]:
    """Give the columns that hold votes: all that are left, or, if nobody said so, those that look like it."""
    left = [name for name in source.columns if name not in {*found.column.values(), *options.keep}]
    voters = left if options.layout == "wide" else voting_columns(source, left)
    if len(voters) < (1 if options.layout == "wide" else 2):
        return []
    if options.layout == "auto":
        tally.note(f"no annotator and no label column: each of {len(voters)} columns is read as an annotator.")
    if aside := [name for name in left if name not in voters]:
        tally.note(f"columns not taken for annotators: {shown(aside)}.")
    return voters


def _require_item(source: Source, found: Found) -> Found:
    if found.get("item") is None:
        raise missing_column(role="item", names=source.columns, source=source.name)
    return found


def _needed(options: Options) -> list[str]:
    needed = ["item"]
    if not options.anonymous:
        needed.append("annotator")
    if not options.questions:
        needed.append("label")
    return needed


def _other_ways(role: str) -> str:
    if role == "annotator":
        return ' Votes without annotators: anonymous=True (CLI: --anonymous). A column an annotator: layout="wide".'
    return ""
