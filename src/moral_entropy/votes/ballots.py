"""The votes of each question, as read → sorted ballots.

Decides on labels, positive label and repeats; attaches gold and published labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import shown
from moral_entropy.votes.items import ItemLabels
from moral_entropy.votes.labels import choose_classes, choose_positive, match_label, note_same, same_labels
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.question_votes import QuestionVotes, Rows
from moral_entropy.votes.source import ReadingLog
from moral_entropy.votes.table import Ballot, Ints, ballot_from_codes
from moral_entropy.votes.values import count_codes, recode, sort_labels

if TYPE_CHECKING:
    import polars as pl


def check_any_votes(questions: Sequence[QuestionVotes], log: ReadingLog, source: str) -> None:
    """Refuse a source without votes, and say why its rows were dropped."""
    if not any(len(votes.item_v) for votes in questions):
        reasons = ", ".join(f"{n:,} with {reason}" for reason, n in log.dropped.items()) or "none"
        msg = f"{source} has no votes left. Rows dropped: {reasons}. Check that the right columns are read."
        raise VotesError(msg)


def build_ballots(
    rows: Rows,
    annotators: pl.Series,
    questions: Sequence[QuestionVotes],
    item_labels: Mapping[str, ItemLabels | None],
    options: ReadOptions,
    log: ReadingLog,
    source: str,
) -> tuple[pl.Series, tuple[Ballot, ...]]:
    """Sort the votes of every question into a ballot.

    Parameters
    ----------
    rows, annotators, questions
        What a layout was read into.
    item_labels
        Gold and published labels, if there are any.
    options
        What the user asked for.
    log
        Where counts and notes go.
    source
        Name of the source, for errors.

    Returns
    -------
    tuple
        The annotators who voted at all, and the ballots by name of question.
    """
    voted_a = np.any([count_codes(votes.annotator_v, len(annotators)) > 0 for votes in questions], axis=0)
    kept = np.flatnonzero(voted_a)
    place = np.full(len(voted_a), -1)
    place[kept] = np.arange(len(kept))
    annotators = annotators.gather(kept)
    ballots = []
    for votes in sorted(questions, key=lambda votes: votes.question):
        if not voted_a.all():
            votes = replace(votes, annotator_v=recode(votes.annotator_v, place))
        if (ballot := _build(votes, rows, annotators, options, log, alone=len(questions) == 1)) is not None:
            given = {f"{role}_i": labels.of_ballot(ballot, log) for role, labels in item_labels.items() if labels}
            ballots.append(replace(ballot, **given))  # type: ignore[arg-type]
    if not ballots:
        msg = f"no question of {source} has votes for two labels. {' '.join(log.notes)}"
        raise VotesError(msg)
    _note_positive(ballots, options, log)
    return annotators, tuple(ballots)


def _build(
    votes: QuestionVotes, rows: Rows, annotators: pl.Series, options: ReadOptions, log: ReadingLog, *, alone: bool
) -> Ballot | None:
    n_k = count_codes(votes.label_v, len(votes.labels))
    if not options.keep_case:
        votes = _with_same_labels(votes, n_k, log)
        n_k = count_codes(votes.label_v, len(votes.labels))
    found = [label for label, n in zip(votes.labels, n_k, strict=True) if n]
    labels = choose_classes(votes.question, found, [int(n) for n in n_k if n], options)
    if len(labels) < 2:
        _refuse_single(votes, found, log, alone=alone)
        return None
    if labels != votes.labels:
        place = [labels.index(label) if label in labels else -1 for label in votes.labels]
        votes = replace(votes, labels=labels, label_v=recode(votes.label_v, place))
    item_i, item_v = _own_positions(votes.item_v, votes.item_i, len(rows.items))
    voted_a = np.flatnonzero(count_codes(votes.annotator_v, len(annotators)))
    annotator_a, annotator_v = _own_positions(votes.annotator_v, voted_a, len(annotators))
    votes = replace(votes, item_v=item_v, annotator_v=annotator_v)
    positive, _ = choose_positive(labels, options.positive)
    count_i = None if rows.count_i is None else rows.count_i[item_i]

    def sort(votes: QuestionVotes) -> Ballot:
        ballot = ballot_from_codes(
            votes.question, labels, item_v=votes.item_v, annotator_v=votes.annotator_v, label_v=votes.label_v,
            item_i=item_i, annotator_a=annotator_a, positive=positive, count_i=count_i,
        )  # fmt: skip
        return replace(ballot, row_v=_rows_in_order(votes)) if options.keep else ballot

    ballot = sort(votes)
    if options.anonymous or options.on_repeat == "count" or not (again_v := find_repeats(ballot)).any():
        return ballot
    if options.on_repeat != "error":
        log.drop("repeated vote", int(again_v.sum()))
        return sort(_one_vote_each(votes, last=options.on_repeat == "last"))
    distinct = _one_vote_each(votes, last=False, by_label=True)
    log.drop("identical repeat", ballot.n_votes - len(distinct.item_v))
    return _checked(sort(distinct), distinct, rows.items, annotators)


def _checked(ballot: Ballot, votes: QuestionVotes, items: pl.Series, annotators: pl.Series) -> Ballot:
    """Refuse votes of which some contradict each other."""
    if (again_v := find_repeats(ballot)).any():
        raise VotesError(_repeats(ballot, again_v, votes, items, annotators))
    return ballot


def _rows_in_order(votes: QuestionVotes) -> Ints:
    """Return the row of each vote, in the order of a ballot."""
    return votes.rows(np.lexsort((votes.label_v, votes.annotator_v, votes.item_v)))


def _with_same_labels(votes: QuestionVotes, n_k: Ints, log: ReadingLog) -> QuestionVotes:
    """Join the labels that occur and differ only in case, or all say yes or no."""
    called = same_labels([label for label, n in zip(votes.labels, n_k, strict=True) if n])
    note_same(called, log)
    if all(label == name for label, name in called.items()):
        return votes
    labels = tuple(sort_labels(called.values()))
    place = [labels.index(called[label]) if label in called else -1 for label in votes.labels]
    return replace(votes, labels=labels, label_v=recode(votes.label_v, place))


def _own_positions(code_v: Ints, chosen: Ints | None, n_codes: int) -> tuple[Ints, Ints]:
    """Return the items or annotators that a question has, and their codes counted from 0 among those alone."""
    if chosen is None or len(chosen) == n_codes:
        return np.arange(n_codes, dtype=np.int32), code_v
    place = np.full(n_codes, -1)
    place[chosen] = np.arange(len(chosen))
    return chosen.astype(np.int32), recode(code_v, place)


def find_repeats(ballot: Ballot) -> NDArray[np.bool_]:
    """Return for each vote whether the vote before it is by the same annotator on the same item.

    Examples
    --------
    >>> ballot = ballot_from_codes("care", ("no", "yes"), item_v=[0, 0, 1], annotator_v=[0, 0, 0], label_v=[1, 0, 1])
    >>> find_repeats(ballot).tolist()
    [False, True, False]
    """
    annotator_v = ballot.code_v // np.int32(ballot.n_labels)
    again_v = np.zeros(ballot.n_votes, dtype=np.bool_)
    np.equal(annotator_v[1:], annotator_v[:-1], out=again_v[1:])
    start_i = ballot.start_i[:-1]
    again_v[start_i[start_i < ballot.n_votes]] = False
    return again_v


def _repeats(
    ballot: Ballot, again_v: NDArray[np.bool_], votes: QuestionVotes, items: pl.Series, annotators: pl.Series
) -> str:
    """Return the error message: how many votes repeat a pair, and the first pair with both its votes."""
    first = int(again_v.argmax())
    item = int(np.searchsorted(ballot.start_i, first, side="right")) - 1
    annotator = int(ballot.code_v[first]) // ballot.n_labels
    at_v = np.flatnonzero((votes.item_v == item) & (votes.annotator_v == annotator))[:2]
    both = [
        f"{ballot.labels[int(label)]!r} (row {int(row) + 1:,})"
        for label, row in zip(votes.label_v[at_v], votes.rows(at_v), strict=True)
    ]
    return (
        f"{int(again_v.sum()):,} of {ballot.n_votes:,} votes on {ballot.question!r} contradict another vote of the "
        f"same annotator on the same item. First: item {items[int(ballot.item_i[item])]!r}, annotator "
        f"{annotators[int(ballot.annotator_a[annotator])]!r} voted {' and '.join(both)}. "
        'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).'
    )


def _one_vote_each(votes: QuestionVotes, *, last: bool, by_label: bool = False) -> QuestionVotes:
    """Keep the first, or the last, vote of each annotator on each item (for each label), in the order of the source."""
    key_v = votes.item_v.astype(np.int64) * (int(votes.annotator_v.max(initial=0)) + 1) + votes.annotator_v
    if by_label:
        key_v = key_v * len(votes.labels) + votes.label_v
    order = np.lexsort((votes.rows(np.arange(len(key_v))), key_v))
    differs = key_v[order][1:] != key_v[order][:-1]
    kept_v = np.sort(order[np.append(differs, True) if last else np.insert(differs, 0, True)])
    return replace(
        votes,
        item_v=votes.item_v[kept_v],
        annotator_v=votes.annotator_v[kept_v],
        label_v=votes.label_v[kept_v],
        row_v=votes.rows(kept_v),
    )


def _refuse_single(votes: QuestionVotes, found: Sequence[str], log: ReadingLog, *, alone: bool) -> None:
    if not alone:
        # One question on which all agree is no reason to refuse the others.
        what = f"all votes on {votes.question!r} are {found[0]!r}" if found else f"nobody voted on {votes.question!r}"
        log.note(f"{what}: the question is left out.")
        return
    what = f"every one of the {len(votes.item_v):,} votes on {votes.question!r} is {found[0]!r}" if found else (
        f"there is no vote on {votes.question!r}"
    )  # fmt: skip
    msg = (
        f"{what}: nothing to tell apart. Check that the right column is read (CLI: --label), name all labels "
        f'with classes (CLI: --classes), or leave the question out with "{votes.question}" = "" in a label map '
        "(CLI: --labels)."
    )
    raise VotesError(msg)


def _note_positive(ballots: Sequence[Ballot], options: ReadOptions, log: ReadingLog) -> None:
    labels = sorted({label for ballot in ballots for label in ballot.labels})
    if options.positive is not None and match_label(options.positive, labels) is None:
        msg = f"positive is {options.positive!r}, which is no label. Labels: {shown(labels)}."
        raise VotesError(msg)
    # Of more than two labels none is positive.
    two = [ballot for ballot in ballots if ballot.n_labels == 2]
    guessed = [ballot for ballot in two if choose_positive(ballot.labels, options.positive)[1]]
    names = {ballot.labels[ballot.positive] for ballot in guessed}
    if len(names) == 1:
        log.note(f"positive label: {names.pop()!r} (guessed).")
    elif names:
        each = [f"{ballot.labels[ballot.positive]!r} for {ballot.question!r}" for ballot in guessed]
        log.note(f"positive labels (guessed): {shown(each)}.")
