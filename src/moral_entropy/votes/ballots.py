"""The votes of each question, as read → sorted ballots; and what the source says about items besides votes.

Decides on labels, positive label and repeats; attaches gold and published labels; reads domains, texts and further
columns about items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import UsageError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.columns import ColumnRoles, guess_column, missing_column, named_column
from moral_entropy.votes.labels import (
    LIST_SEPARATOR,
    MISSING,
    NO_YES,
    Cells,
    Coded,
    as_text,
    choose_classes,
    choose_positive,
    code_cells,
    code_ids,
    code_labels,
    count_codes,
    match_label,
    means_nothing,
    note_same,
    note_typing_errors,
    recode,
    same_labels,
    sort_labels,
)
from moral_entropy.votes.layouts import ON_REPEAT, QuestionVotes, Rows
from moral_entropy.votes.scales import Scale, find_scale, lie_near, note_other_scales, number_of
from moral_entropy.votes.source import Source, on_disk, open_source
from moral_entropy.votes.table import BLOCK, UNKNOWN, Ballot, Floats, Ints, ReadingLog, ballot_from_codes, refuse, shown

MOST_GUESSED_DOMAINS = 200


class ItemLabels(NamedTuple):
    """Gold or published labels of items, row by row.

    Parameters
    ----------
    role
        "gold" or "published".
    where
        Column or file, for errors.
    rows
        What each row is about; items are those of the votes.
    cells
        One label per row or, if it has a separator, several.
    """

    role: str
    where: str
    rows: Rows
    cells: Cells


# --- Ballots ------------------------------------------------------------------------------------------------------


def build_ballots(
    source: Source, rows: Rows, annotators: pl.Series, questions: Sequence[QuestionVotes],
    item_labels: Sequence[ItemLabels], options: ReadOptions
) -> tuple[pl.Series, tuple[Ballot, ...]]:  # fmt: skip
    """Sort the votes of every question into a ballot.

    Parameters
    ----------
    source
        The table, for errors; counts and notes go into its log.
    rows, annotators, questions
        What a layout was read into.
    item_labels
        Gold and published labels, if there are any.
    options
        What the user asked for.

    Returns
    -------
    tuple
        The annotators who voted at all, and the ballots by name of question.
    """
    voted_a = np.any([count_codes(votes.annotator_v, len(annotators)) > 0 for votes in questions], axis=0)
    silent = annotators.filter(pl.Series(~voted_a)).cast(pl.String).to_list()
    if silent := [name for name in silent if name not in options.exclude]:
        source.log.note(f"annotators without a single vote: {shown(silent)}.")
    place, annotators = places_of(np.flatnonzero(voted_a), len(voted_a)), annotators.filter(pl.Series(voted_a))
    ballots = []
    for votes in sorted(questions, key=lambda votes: votes.question):
        if not voted_a.all():
            votes = replace(votes, annotator_v=recode(votes.annotator_v, place))
        if (ballot := _build(votes, rows, annotators, options, source.log, alone=len(questions) == 1)) is not None:
            labels = {f"{part.role}_i": labels_of_ballot(part, ballot, source.log)
                      for part in item_labels if part.role != "gold" or ballot.score_v is None}  # fmt: skip
            if ballot.score_v is not None and (gold := [part for part in item_labels if part.role == "gold"]):
                ballot = replace(ballot, gold_score_i=_scores_of_ballot(gold[0], ballot))
            ballots.append(replace(ballot, **labels))  # type: ignore[arg-type]
    if not ballots:
        refuse(f"no question of {source.name} has votes for two labels. {' '.join(source.log.notes)}")
    note_positive(ballots, options, source.log)
    return annotators, tuple(ballots)


def places_of(codes: Ints, n_codes: int) -> Ints:
    """Return the position of each code among these; `UNKNOWN` for all others."""
    place = np.full(n_codes, UNKNOWN)
    place[codes] = np.arange(len(codes))
    return place


def _build(
    votes: QuestionVotes, rows: Rows, annotators: pl.Series, options: ReadOptions, log: ReadingLog, *, alone: bool
) -> Ballot | None:
    n_k = count_codes(votes.label_v, len(votes.labels))
    spelt = [label for label, n in zip(votes.labels, n_k, strict=True) if n]
    name_of = {label: label for label in spelt} if options.keep_case else same_labels(spelt)
    note_same(name_of, log)
    n_of = dict.fromkeys(sort_labels(name_of.values()), 0)
    for label, n in zip(votes.labels, n_k, strict=True):
        if n:
            n_of[name_of[label]] += int(n)
    note_typing_errors(n_of, log)
    labels = choose_classes(votes.question, list(n_of), list(n_of.values()), options)
    scale = _scale_of(votes, name_of, dict.fromkeys(labels, 0) | n_of, options, log)
    if scale is not None:
        labels, spelt_of = scale.labels, name_of
        if scale.score_of is not None:
            votes = replace(votes, score_v=np.array([scale.score_of.get(name_of.get(label, ""), np.nan)
                                                     for label in votes.labels])[votes.label_v])  # fmt: skip
        name_of = {label: scale.level_of[name] for label, name in spelt_of.items() if name in scale.level_of}
    if len(labels) < 2:
        refuse_single(votes, list(n_of), log, alone=alone)
        return None
    voted_a = np.flatnonzero(count_codes(votes.annotator_v, len(annotators)))
    votes = relabelled(votes, labels, name_of)
    if scale is None:
        return cast_ballot(votes, rows, annotators, voted_a, options, log)
    votes = votes.take(np.flatnonzero(votes.label_v >= 0))
    voted_a = np.flatnonzero(count_codes(votes.annotator_v, len(annotators)))
    note_other_scales(votes.label_v, votes.annotator_v, annotators.cast(pl.String).to_list(), scale, log)
    return replace(cast_ballot(votes, rows, annotators, voted_a, options, log), levels=scale.levels)


def _scale_of(
    votes: QuestionVotes, name_of: dict[str, str], n_of: dict[str, int], options: ReadOptions, log: ReadingLog
) -> Scale | None:
    """Return the scale of a question, if its labels are no names."""

    def near(rank_of: Mapping[str, int]) -> bool:
        rank_v = recode(votes.label_v, [rank_of.get(name_of.get(label, ""), UNKNOWN) for label in votes.labels])
        return lie_near(votes.item_v, rank_v, max(rank_of.values()) + 1)

    return find_scale(votes.question, n_of, near, options, log)


def cast_ballot(
    votes: QuestionVotes, rows: Rows, annotators: pl.Series, voted_a: Ints, options: ReadOptions, log: ReadingLog
) -> Ballot:
    """Sort votes whose labels are settled into a ballot of the annotators who voted, and settle repeats."""
    labels = votes.labels
    item_i, item_v = _own_positions(votes.item_v, votes.item_i, len(rows.items))
    annotator_a, annotator_v = _own_positions(votes.annotator_v, voted_a, len(annotators))
    votes = replace(votes, item_v=item_v, annotator_v=annotator_v)
    positive, _ = choose_positive(labels, options.positive)
    count_i = None if rows.count_i is None else rows.count_i[item_i]

    def sort(votes: QuestionVotes) -> Ballot:
        ballot = ballot_from_codes(
            votes.question, labels, item_v=votes.item_v, annotator_v=votes.annotator_v, label_v=votes.label_v,
            item_i=item_i, annotator_a=annotator_a, positive=positive, count_i=count_i
        )  # fmt: skip
        if not options.keep and votes.score_v is None:
            return ballot
        order_v = np.lexsort((votes.label_v, votes.annotator_v, votes.item_v))
        score_v = None if votes.score_v is None else votes.score_v[order_v]
        return replace(ballot, row_v=votes.rows(order_v) if options.keep else None, score_v=score_v)

    ballot = sort(votes)
    if options.anonymous or options.on_repeat == "count" or not (again_v := _find_repeats(ballot)).any():
        return ballot
    if options.on_repeat != "error":
        log.drop("repeated vote", int(again_v.sum()))
        return sort(_one_vote_each(votes, last=options.on_repeat == "last"))
    distinct = _one_vote_each(votes, last=False, by_label=True)
    log.drop("identical repeat", ballot.n_votes - len(distinct.item_v))
    ballot = sort(distinct)
    if (again_v := _find_repeats(ballot)).any():
        refuse(_repeats(ballot, again_v, distinct, rows, annotators))
    return ballot


def relabelled(votes: QuestionVotes, labels: tuple[str, ...], name_of: dict[str, str]) -> QuestionVotes:
    """Return votes with other labels, by the name that each label that occurs has among them."""
    if labels == votes.labels and all(label == name for label, name in name_of.items()):
        return votes
    place = [labels.index(name_of[label]) if label in name_of else UNKNOWN for label in votes.labels]
    return replace(votes, labels=labels, label_v=recode(votes.label_v, place))


def _own_positions(code_v: Ints, codes: Ints | None, n_codes: int) -> tuple[Ints, Ints]:
    """Return the items or annotators that a question has, and their codes counted from 0 among those alone."""
    if codes is None or len(codes) == n_codes:
        return np.arange(n_codes, dtype=np.int32), code_v
    return codes.astype(np.int32), recode(code_v, places_of(codes, n_codes))


def _find_repeats(ballot: Ballot) -> NDArray[np.bool_]:
    """Return for each vote whether the vote before it is by the same annotator on the same item."""
    annotator_v = ballot.code_v // np.int32(ballot.n_labels)
    again_v = np.zeros(ballot.n_votes, dtype=np.bool_)
    np.equal(annotator_v[1:], annotator_v[:-1], out=again_v[1:])
    start_i = ballot.start_i[:-1]
    again_v[start_i[start_i < ballot.n_votes]] = False
    return again_v


def _repeats(
    ballot: Ballot, again_v: NDArray[np.bool_], votes: QuestionVotes, rows: Rows, annotators: pl.Series
) -> str:
    """Return the error message: how many votes repeat a pair, and the first pair with both its votes."""
    first = int(again_v.argmax())
    item = int(np.searchsorted(ballot.start_i, first, side="right")) - 1
    annotator = int(ballot.code_v[first]) // ballot.n_labels
    at_v = np.flatnonzero((votes.item_v == item) & (votes.annotator_v == annotator))[:2]
    pair = [
        f"{ballot.labels[int(label)]!r} (row {rows.line(int(row)):,})"
        for label, row in zip(votes.label_v[at_v], votes.rows(at_v), strict=True)
    ]
    name, person = rows.items[int(ballot.item_i[item])], annotators[int(ballot.annotator_a[annotator])]
    problem = f"{int(again_v.sum()):,} of {ballot.n_votes:,} votes on {ballot.question!r} contradict another vote"
    problem = f"{problem} of the same annotator on the same item. First: item {name!r}, annotator {person!r}"
    return f"{problem} voted {' and '.join(pair)}. {ON_REPEAT}"


def _one_vote_each(votes: QuestionVotes, *, last: bool, by_label: bool = False) -> QuestionVotes:
    """Keep the first, or the last, vote of each annotator on each item (for each label), in the order of the source."""
    key_v = votes.item_v.astype(np.int64) * (int(votes.annotator_v.max(initial=0)) + 1) + votes.annotator_v
    if by_label:
        key_v = key_v * len(votes.labels) + votes.label_v
    order = np.lexsort((votes.rows(np.arange(len(key_v))), key_v))
    differs = key_v[order][1:] != key_v[order][:-1]
    return votes.take(np.sort(order[np.append(differs, True) if last else np.insert(differs, 0, True)]))


def refuse_single(votes: QuestionVotes, present: Sequence[str], log: ReadingLog, *, alone: bool) -> None:
    """Note that a question without two labels is left out; an error where there is no other."""
    question = votes.question
    if not alone:
        # One question on which all agree is no reason to refuse the others.
        reason = f"all votes on {question!r} are {present[0]!r}" if present else f"nobody voted on {question!r}"
        log.note(f"{reason}: the question is left out.")
        return
    reason = f"there is no vote on {question!r}"
    if present:
        reason = f"every one of the {len(votes.item_v):,} votes on {question!r} is {present[0]!r}"
    refuse(f"{reason}: nothing to tell apart. Read another column (--label), or name all labels (--classes).")


def note_positive(ballots: Sequence[Ballot], options: ReadOptions, log: ReadingLog) -> None:
    """Note which label was taken as the positive one, where the user has named none."""
    labels = sorted({label for ballot in ballots for label in ballot.labels})
    if options.positive is not None and match_label(options.positive, labels) is None:
        refuse(f"positive is {options.positive!r}, which is no label. Labels: {shown(labels)}.")
    # Of more than two labels none is positive.
    two = [ballot for ballot in ballots if ballot.n_labels == 2]
    guessed = [ballot for ballot in two if choose_positive(ballot.labels, options.positive)[1]]
    names = {ballot.labels[ballot.positive] for ballot in guessed}
    if len(names) == 1:
        log.note(f"positive label: {names.pop()!r} (guessed).")
    elif names:
        each = [f"{ballot.labels[ballot.positive]!r} for {ballot.question!r}" for ballot in guessed]
        log.note(f"positive labels (guessed): {shown(each)}.")


# --- Gold and published labels ------------------------------------------------------------------------------------


def read_item_labels(
    role: str, source: Source, roles: ColumnRoles, rows: Rows, options: ReadOptions, questions: Sequence[str]
) -> ItemLabels | None:
    """Read gold or published labels, if there are any.

    Parameters
    ----------
    role
        "gold" or "published".
    source, roles, rows
        The votes' table, which column plays which role, and what its rows are about.
    options
        What the user asked for, among it the file of gold labels.
    questions
        Names of the questions that were voted on.
    """
    if role == "gold" and options.gold_file is not None:
        with on_disk(options.gold_file) as file:
            item_labels = _read_gold_file(open_source(file), source.log, roles, rows, options, questions)
    elif (name := roles.get(role)) is None:
        return None
    else:
        if options.questions:
            way = "Use gold_file with item, question and gold"
            refuse(f"a {role} column cannot answer several question columns. {way}.")
        cells = _read_labels(source.column(name), rows, options)
        if not (cells.code_r >= 0).any():
            if role in roles.guessed:
                source.log.note(f"the {role} column {name!r} is empty.")
                return None
            refuse(f"the {role} column {name!r} is empty: no item has a {role} label.")
        item_labels = ItemLabels(role, f"column {name!r}", rows, cells)
    if item_labels.cells.separator:
        names = [_label_of(question) for question in questions]
        labels = sort_labels(label for cell in item_labels.cells.labels_c for label in cell or ())
        unknown = [label for label in labels if match_label(label, names) is None]
        if strange := [label for label in unknown if not means_nothing(label, options)]:
            problem = f"{len(strange)} {role} labels of {item_labels.where} occur in no vote. First: {strange[0]!r}"
            refuse(f"{problem}. Votes name: {shown(questions)}. Merge it, or leave it out (--labels).")
    return item_labels


def _read_labels(column: pl.Series, rows: Rows, options: ReadOptions) -> Cells:
    """Code gold or published labels; lists of labels as the votes have them."""
    separator = "," if rows.separator == LIST_SEPARATOR else rows.separator
    return code_cells(column, replace(options, multilabel=separator, questions=(), classes=None), ReadingLog())


def _label_of(question: str) -> str:
    """Return the label that a yes/no question is about: of `tone: sad` what follows the question."""
    return question.rpartition(": ")[2]


def _read_gold_file(
    gold: Source, log: ReadingLog, roles: ColumnRoles, rows: Rows, options: ReadOptions, questions: Sequence[str]
) -> ItemLabels:
    for note in gold.log.notes:
        log.note(f"{gold.name}: {note}")
    item, label, question = _gold_columns(gold, roles, options)
    ids = code_ids(gold.column(item), textual=gold.textual)
    item_r = recode(ids.code_r, _positions(rows.items, ids.values))
    strange = len(ids.values) - len(np.unique(item_r[item_r >= 0]))
    if strange == len(ids.values):
        first = f"First: {ids.values[0] if strange else None!r}; the first item voted on: {rows.items[0]!r}"
        refuse(f"none of the {strange:,} items of {gold.name} has a vote. {first}. Name items alike.")
    if strange:
        log.note(f"{strange:,} items of {gold.name} have no vote and are ignored.")
    if question is None and len(questions) > 1 and not rows.separator:
        problem = f"{gold.name} does not say which of the {len(questions)} questions a label answers"
        refuse(f"{problem} ({shown(questions)}). Add a column called question.")
    gold_rows = Rows(rows.items, item_r)
    if question is None:
        return ItemLabels("gold", gold.name, gold_rows, _read_labels(gold.column(label), rows, options))
    # With a column of questions, answers to questions about labels are yes or no.
    plain = replace(options, labels=None) if rows.separator or options.questions else options
    names = code_labels(gold.column(question))
    gold_rows = Rows(rows.items, item_r, tuple(names.values.to_list()), names.code_r)
    return ItemLabels("gold", gold.name, gold_rows, _read_labels(gold.column(label), gold_rows, plain))


def _gold_columns(gold: Source, roles: ColumnRoles, options: ReadOptions) -> tuple[str, str, str | None]:
    """Find the columns of a file of gold labels: item, gold and, if there is one, question."""
    names = list(gold.columns)
    item = roles.get("item") if roles.get("item") in names else guess_column("item", names)
    if item is None:
        raise missing_column(role="item", names=names, source=gold.name)
    further = [name for name in names if name != item]
    question = roles.get("question") if roles.get("question") in further else guess_column("question", further)
    further = [name for name in further if name != question]
    if options.gold:
        return item, named_column(options.gold, names, gold.name, "gold"), question
    guess = guess_column("gold", further) or guess_column("label", further)
    label = guess or (further[0] if len(further) == 1 else None)
    if label is None:
        raise missing_column(role="gold", names=names, source=gold.name)
    return item, label, question


def _positions(items: pl.Series, ids: pl.Series) -> Ints:
    """Return where ids are among the items; `UNKNOWN` where there is no such item."""
    if items.dtype != ids.dtype:
        items, ids = items.cast(pl.String), ids.cast(pl.String)
    table = pl.DataFrame({"id": items, "at": np.arange(len(items))})
    places = pl.DataFrame({"id": ids}).join(table, on="id", how="left", maintain_order="left")
    return places.get_column("at").fill_null(UNKNOWN).to_numpy()


def labels_of_ballot(part: ItemLabels, ballot: Ballot, log: ReadingLog) -> NDArray[np.int16]:
    """Return the gold or published label of each item of a ballot; `UNKNOWN` where it has none."""
    rows, code_r = part.rows, part.cells.code_r
    names = [cell[0] if cell else "" for cell in part.cells.labels_c]
    code_r = recode(code_r, [c if cell else UNKNOWN for c, cell in enumerate(part.cells.labels_c)])
    if part.cells.separator:
        # Of lists of labels, whether they name the label that the question is about.
        label = _label_of(ballot.question)
        answer_c = [int(match_label(label, cell or ()) is not None) for cell in part.cells.labels_c]
        names, code_r = list(NO_YES), recode(part.cells.code_r, answer_c)
    if rows.question_r is not None:
        code_r = np.where(rows.question_r == match_label(ballot.question, rows.questions), code_r, UNKNOWN)
    position_i = places_of(ballot.item_i, len(rows.items))
    item_r = recode(np.where(code_r >= 0, rows.item_r, UNKNOWN), position_i)
    n_k = count_codes(np.where(item_r >= 0, code_r, UNKNOWN), len(names))
    n_items = [len(np.unique(item_r[code_r == k])) if n and n < BLOCK else int(n) for k, n in enumerate(n_k)]
    places = [_place(name, part, ballot, n, log) if n else UNKNOWN for name, n in zip(names, n_items, strict=True)]
    low_i, high_i = _low_and_high(item_r, recode(code_r, places), ballot.n_items)
    differ = np.flatnonzero((high_i >= 0) & (low_i != high_i))
    if len(differ):
        first = int(differ[0])
        item, low, high = rows.items[int(ballot.item_i[first])], *(ballot.labels[k[first]] for k in (low_i, high_i))
        problem = f"{len(differ):,} items have more than one {part.role} label on {ballot.question!r} in {part.where}"
        refuse(f"{problem}. First: item {item!r} is {low!r} and {high!r}. Give each item one.")
    return high_i.astype(np.int16)


def _scores_of_ballot(part: ItemLabels, ballot: Ballot) -> Floats:
    """Return the gold score of each item; NaN where it has none."""
    values = [None if not cell else number_of(cell[0]) for cell in part.cells.labels_c]
    value_c = np.array([*(np.nan if value is None else value for value in values), np.nan])
    item_r = recode(part.rows.item_r, places_of(ballot.item_i, len(part.rows.items)))
    score_i, has_r = np.full(ballot.n_items, np.nan), item_r >= 0
    score_i[item_r[has_r]] = value_c[part.cells.code_r[has_r]]
    return score_i


def _place(name: str, part: ItemLabels, ballot: Ballot, n_items: int, log: ReadingLog) -> int:
    at = match_label(name, ballot.labels)
    if at is None and ballot.levels is not None and (value := number_of(name)) is not None:
        # A gold score, such as 3.4 between levels or in a bin.
        return int(np.abs(np.array(ballot.levels) - value).argmin())
    if at is None:
        problem = f"{n_items:,} items have the {part.role} label {name!r} on {ballot.question!r} ({part.where})"
        refuse(f'{problem}. Votes say: {shown(ballot.labels)}. Rename it (--labels), or do without: {part.role}="".')
    if ballot.labels[at] != name:
        log.note(f"{part.role} label {name!r} is taken for {ballot.labels[at]!r}.")
    return at


# --- Domains, texts and further columns ---------------------------------------------------------------------------


def read_domains(source: Source, roles: ColumnRoles, rows: Rows) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Read each item's domain: the names, sorted, and one code per item."""
    nothing = (), np.full(len(rows.items), UNKNOWN, dtype=np.int32)
    if (name := roles.get("domain")) is None:
        return nothing
    domains = code_labels(source.column(name))
    if "domain" in roles.guessed and len(domains.values) > MOST_GUESSED_DOMAINS:
        source.log.note(f"column {name!r} has {len(domains.values):,} values and is not taken for the domain.")
        return nothing
    if reason := _not_about_items(source, roles, rows, domains, name):
        if "domain" not in roles.guessed:
            way = "leave out domain (--domain), or name another column"
            refuse(f"{reason} It cannot be the items' domain: {way}.", UsageError)
        source.log.note(f"{reason} It is not taken for the domain.")
        return nothing
    return tuple(domains.values.to_list()), _first_of_item(domains, rows, f"domain ({name!r})", source.log)


def read_texts(source: Source, roles: ColumnRoles, rows: Rows) -> pl.Series | None:
    """Read each item's text; of several, the first in alphabetical order."""
    if (name := roles.get("text")) is None:
        return None
    frame = pl.DataFrame({"item": rows.item_r, "text": as_text(source.column(name))})
    blank = pl.col("text").is_null() | pl.col("text").str.strip_chars().is_in(list(MISSING))
    texts = frame.filter((pl.col("item") >= 0) & ~blank).group_by("item").agg(pl.col("text").min())
    every = pl.DataFrame({"item": np.arange(len(rows.items), dtype=rows.item_r.dtype)})
    return every.join(texts, on="item", how="left", maintain_order="left").get_column("text")


def read_extra(source: Source, roles: ColumnRoles, options: ReadOptions, rows: Rows) -> dict[str, pl.Series]:
    """Read the further columns about items that `facts` names, as labels; null where an item has none."""
    extra = {}
    for name in dict.fromkeys(options.facts):
        values = code_labels(source.column(name))
        if reason := _not_about_items(source, roles, rows, values, name):
            way = "name a column that describes items (--fit-by)"
            refuse(f"{reason} Items cannot be told apart by it: {way}.", UsageError)
        value_i = pl.Series(_first_of_item(values, rows, repr(name), source.log)).cast(pl.Int64)
        extra[name] = values.values.gather(value_i.set(value_i < 0, None)).alias(name)
    return extra


def _not_about_items(source: Source, roles: ColumnRoles, rows: Rows, coded: Coded, name: str) -> str:
    """Say what a column describes of which most items with several rows have several values; else nothing."""
    low_i, high_i = _low_and_high(rows.item_r, coded.code_r, len(rows.items))
    has_r = (rows.item_r >= 0) & (coded.code_r >= 0)
    repeated_i = count_codes(np.where(has_r, rows.item_r, UNKNOWN), len(rows.items)) > 1
    varies_i = np.flatnonzero(repeated_i & (low_i != high_i))
    if 2 * len(varies_i) <= int(repeated_i.sum()):
        return ""
    first = int(varies_i[0])
    subject, values = "votes", coded.values.to_list()
    if column := roles.get("annotator"):
        annotators = code_ids(source.column(column), textual=source.textual)
        low_a, high_a = _low_and_high(annotators.code_r, coded.code_r, len(annotators.values))
        subject = "annotators" if (low_a[high_a >= 0] == high_a[high_a >= 0]).all() else subject
    problem = f"column {name!r} describes {subject}, not items: {len(varies_i):,} items have several values of it"
    return f"{problem}, the first ({rows.items[first]!r}) {values[low_i[first]]!r} and {values[high_i[first]]!r}."


def _first_of_item(coded: Coded, rows: Rows, subject: str, log: ReadingLog) -> NDArray[np.int32]:
    """Return the first value of each item in sorted order, and note how many items have several."""
    low_i, high_i = _low_and_high(rows.item_r, coded.code_r, len(rows.items))
    if n_items := int(((high_i >= 0) & (low_i != high_i)).sum()):
        log.note(f"{n_items:,} items have more than one {subject}; the first in sorted order is taken.")
    return np.where(high_i >= 0, low_i, UNKNOWN).astype(np.int32)


def _low_and_high(item_r: Ints, code_r: Ints, n_items: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the lowest and the highest code of each item; the highest is `UNKNOWN` where it has none."""
    low_i = np.full(n_items, np.iinfo(np.int32).max, dtype=np.int32)
    high_i = np.full(n_items, UNKNOWN, dtype=np.int32)
    # Blocks that fit the cache, without rows that lack either.
    for at in range(0, len(code_r), BLOCK):
        item, code = item_r[at : at + BLOCK], code_r[at : at + BLOCK]
        complete = (item >= 0) & (code >= 0)
        np.minimum.at(low_i, item[complete], code[complete].astype(np.int32))
        np.maximum.at(high_i, item[complete], code[complete].astype(np.int32))
    return low_i, high_i
