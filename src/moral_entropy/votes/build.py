"""Build: a sheet of marks → sorted ballots.

Decides on labels, positive label and repeats; attaches gold and published labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import shown
from moral_entropy.votes.known import Known
from moral_entropy.votes.labels import Tally, choose_classes, choose_positive, match_label
from moral_entropy.votes.marks import Marks, Sheet
from moral_entropy.votes.options import Options
from moral_entropy.votes.repeats import Cast, find_repeats, one_each, refuse_repeats
from moral_entropy.votes.table import Ballot, Ints, ballot_from_codes
from moral_entropy.votes.values import count_codes, recode

if TYPE_CHECKING:
    import polars as pl


def build_ballots(
    sheet: Sheet, options: Options, known: dict[str, Known | None], tally: Tally, source: str
) -> tuple[pl.Series, tuple[Ballot, ...]]:
    """Sort every question's marks into a ballot.

    Parameters
    ----------
    sheet
        Rows, annotators and marks.
    options
        What the user asked for.
    known
        Gold and published labels, if there are any.
    tally
        Where counts and remarks go.
    source
        Name of the source, for errors.

    Returns
    -------
    tuple
        The annotators who voted at all, and the ballots by name of question.
    """
    if not any(len(marks.item_v) for marks in sheet.marks):
        raise VotesError(_no_votes(source, tally))
    voted_a = np.any([count_codes(marks.annotator_v, len(sheet.annotators)) > 0 for marks in sheet.marks], axis=0)
    kept = np.flatnonzero(voted_a)
    place = np.full(len(voted_a), -1)
    place[kept] = np.arange(len(kept))
    sheet = replace(sheet, annotators=sheet.annotators.gather(kept))
    ballots = []
    for marks in sorted(sheet.marks, key=lambda marks: marks.question):
        if not voted_a.all():
            marks = replace(marks, annotator_v=recode(marks.annotator_v, place))
        if (ballot := _build(marks, sheet, options, tally)) is not None:
            ballots.append(_vouched(ballot, known, tally))
    if not ballots:
        msg = f"no question of {source} has votes for two labels. {' '.join(tally.notes)}"
        raise VotesError(msg)
    _note_positive(ballots, options, tally)
    return sheet.annotators, tuple(ballots)


def _build(marks: Marks, sheet: Sheet, options: Options, tally: Tally) -> Ballot | None:
    n_k = count_codes(marks.label_v, len(marks.labels))
    found = [label for label, n in zip(marks.labels, n_k, strict=True) if n]
    labels = choose_classes(marks.question, found, [int(n) for n in n_k if n], options)
    if len(labels) < 2:
        _refuse_single(marks, found, tally)
        return None
    label_v = marks.label_v
    if labels != marks.labels:
        label_v = recode(label_v, [labels.index(label) if label in labels else -1 for label in marks.labels])
    item_i, item_v = _own_positions(marks.item_v, marks.item_i, len(sheet.rows.items))
    voted_a = np.flatnonzero(count_codes(marks.annotator_v, len(sheet.annotators)))
    annotator_a, annotator_v = _own_positions(marks.annotator_v, voted_a, len(sheet.annotators))
    cast = Cast(item_v, annotator_v, label_v, marks.row_v)
    positive, _ = choose_positive(labels, options.positive)
    count_i = None if sheet.count_i is None else sheet.count_i[item_i]

    def sort(cast: Cast) -> Ballot:
        return ballot_from_codes(
            marks.question, labels, item_v=cast.item_v, annotator_v=cast.annotator_v, label_v=cast.label_v,
            item_i=item_i, annotator_a=annotator_a, positive=positive, count_i=count_i,
        )  # fmt: skip

    ballot = sort(cast)
    if options.anonymous or options.on_repeat == "count" or not (again_v := find_repeats(ballot)).any():
        return ballot
    if options.on_repeat == "error":
        items, annotators = sheet.rows.items, sheet.annotators
        raise refuse_repeats(
            ballot, again_v, cast, lambda i: items[int(item_i[i])], lambda a: annotators[int(annotator_a[a])]
        )
    tally.drop("repeated vote", int(again_v.sum()))
    return sort(one_each(cast, last=options.on_repeat == "last"))


def _own_positions(code_v: Ints, chosen: Ints | None, n_codes: int) -> tuple[Ints, Ints]:
    """Give what a question has of its own, items or annotators, positions from 0 on."""
    if chosen is None or len(chosen) == n_codes:
        return np.arange(n_codes, dtype=np.int32), code_v
    place = np.full(n_codes, -1)
    place[chosen] = np.arange(len(chosen))
    return chosen.astype(np.int32), recode(code_v, place)


def _vouched(ballot: Ballot, known: dict[str, Known | None], tally: Tally) -> Ballot:
    labels = {f"{role}_i": answers.on(ballot, tally) for role, answers in known.items() if answers is not None}
    return replace(ballot, **labels)  # type: ignore[arg-type]


def _refuse_single(marks: Marks, found: Sequence[str], tally: Tally) -> None:
    what = f"every one of the {len(marks.item_v):,} votes on {marks.question!r} is {found[0]!r}" if found else (
        f"there is no vote on {marks.question!r}"
    )  # fmt: skip
    if marks.optional:
        tally.note(f"{what}: the question is left out.")
        return
    msg = (
        f"{what}: nothing to tell apart. Check that the right column is read (CLI: --label), name all labels "
        f'with classes (CLI: --classes), or leave the question out with "{marks.question}" = "" in a label map '
        "(CLI: --labels)."
    )
    raise VotesError(msg)


def _no_votes(source: str, tally: Tally) -> str:
    reasons = ", ".join(f"{n:,} with {reason}" for reason, n in tally.dropped.items())
    return f"{source} has no votes left. Rows dropped: {reasons or 'none'}. Check that the right columns are read."


def _note_positive(ballots: Sequence[Ballot], options: Options, tally: Tally) -> None:
    labels = sorted({label for ballot in ballots for label in ballot.labels})
    if options.positive is not None and match_label(options.positive, labels) is None:
        msg = f"positive is {options.positive!r}, which is no label. Labels: {shown(labels)}."
        raise VotesError(msg)
    guessed = [ballot for ballot in ballots if choose_positive(ballot.labels, options.positive)[1]]
    names = {ballot.labels[ballot.positive] for ballot in guessed}
    if len(names) == 1:
        tally.note(f"positive label: {names.pop()!r} (guessed).")
    elif names:
        each = [f"{ballot.labels[ballot.positive]!r} for {ballot.question!r}" for ballot in guessed]
        tally.note(f"positive labels (guessed): {shown(each)}.")
