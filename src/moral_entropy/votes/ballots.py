"""A table with one row per vote → sorted ballots, and what it says about items besides votes.

`read_long` codes the votes on each question: `Rows` say which item and question each row is about, `QuestionVotes` who
voted what. `build_ballots` decides on labels, positive label and repeats, and attaches gold and published labels. Then
domains, texts and further columns about items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import UsageError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.columns import ColumnRoles, find_columns, missing_column
from moral_entropy.votes.labels import (
    LIST_SEPARATOR,
    MISSING,
    NO,
    NO_YES,
    YES,
    Cells,
    Coded,
    as_text,
    choose_classes,
    choose_positive,
    code_cells,
    code_ids,
    code_labels,
    count_codes,
    load_label_map,
    match_label,
    means_nothing,
    note_same,
    note_typing_errors,
    recode,
    same_labels,
    sort_labels,
)
from moral_entropy.votes.layouts import ANONYMOUS, ON_REPEAT, read_numbers
from moral_entropy.votes.scales import find_scale, lie_near, note_other_scales, number_of
from moral_entropy.votes.source import Source, on_disk, open_source
from moral_entropy.votes.table import BLOCK, UNKNOWN, Ballot, Floats, Ints, ReadingLog, ballot_from_codes, refuse, shown

MOST_GUESSED_DOMAINS = 200


class Rows(NamedTuple):
    """Which item and question each row of the source is about. Axes: **r** row, **i** item.

    Parameters
    ----------
    items
        Sorted ids of the items.
    item_r
        Each row's item; `UNKNOWN` where the cell is empty.
    questions, question_r
        Names of the questions and each row's, if there is a column for them.
    count_i
        How many items each item stands for, in pre-counted data.
    separator
        What stands between the labels of a cell, where some cells name several.
    stacked
        Rows of the file, where columns of it were put below each other; else 0.
    """

    items: pl.Series
    item_r: Ints
    questions: tuple[str, ...] = ()
    question_r: Ints | None = None
    count_i: Floats | None = None
    separator: str = ""
    stacked: int = 0


@dataclass(frozen=True, eq=False)
class QuestionVotes:
    """The votes on one question, in the order of the source. Axis: **v** vote.

    Parameters
    ----------
    question, labels
        Its name, and the labels that `label_v` points to, sorted; some may not occur.
    item_v, annotator_v, label_v
        Positions in the ids of all items, of all annotators, and in `labels`.
    row_v
        Row of the source that each vote came from; `None` where vote and row are the same.
    item_i
        The items the question was put to; `None` where it was put to all.
    score_v
        What each vote says in numbers, where the question asks for a score.
    """

    question: str
    labels: tuple[str, ...]
    item_v: Ints
    annotator_v: Ints
    label_v: Ints
    row_v: Ints | None = None
    item_i: Ints | None = None
    score_v: Floats | None = None

    def rows(self, at_v: Ints) -> Ints:
        """Return the rows of the source that votes at these positions came from."""
        return at_v if self.row_v is None else self.row_v[at_v]

    def take(self, at_v: Ints) -> QuestionVotes:
        """Keep only the votes at these positions."""
        codes = {name: getattr(self, name)[at_v] for name in ("item_v", "annotator_v", "label_v")}
        score_v = None if self.score_v is None else self.score_v[at_v]
        return replace(self, row_v=self.rows(at_v), score_v=score_v, **codes)


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


# --- One row per vote ---------------------------------------------------------------------------------------------


def read_long(
    source: Source, roles: ColumnRoles, options: ReadOptions, *, join: bool = True
) -> tuple[Rows, pl.Series, tuple[QuestionVotes, ...]]:
    """Read what each row is about, the annotators, and the votes on each question; notes go into the source's log.

    Ids that differ in case or blanks only are joined, if `join` is true.
    """
    join = join and not options.keep_case
    items = code_ids(source.column(roles.column["item"]), textual=source.textual)
    rows = Rows(items.values, items.code_r, stacked=source.stacked)
    if (name := roles.column.get("question")) is not None:
        questions = code_labels(source.column(name))
        rows = rows._replace(questions=tuple(questions.values.to_list()), question_r=questions.code_r)
    annotators = Coded(pl.Series([ANONYMOUS]), np.broadcast_to(np.int16(0), (len(rows.item_r),)))
    if (name := roles.column.get("annotator")) is not None:
        annotators = code_ids(source.column(name), textual=source.textual)
        if join:
            annotators = _one_spelling("annotators", annotators, rows.item_r, rows, source.log)
    if join:
        partner_r = np.arange(len(rows.item_r)) if options.anonymous else annotators.code_r
        items = _one_spelling("items", items, partner_r, rows, source.log)
    rows = rows._replace(items=items.values, item_r=items.code_r)
    if (name := roles.column.get("item_count")) is not None:
        count_i = np.zeros(len(rows.items))
        count_i[rows.item_r] = source.column(name).to_numpy()
        rows = rows._replace(count_i=count_i)
    columns = [roles.column["label"]] if roles.column.get("label") else sorted(set(options.questions))
    votes: list[QuestionVotes] = []
    for column in columns:
        in_file = bool(options.questions) or not source.stacked
        cells = code_cells(source.column(column).alias(column if in_file else ""), options, source.log)
        if options.questions and options.anonymous and not source.stacked:
            names = [label for cell in cells.labels_c for label in cell or ()]
            if odd := [label for label in names if label.casefold() not in YES + NO]:
                way = "If it is a count, say of how many: of=3, or of a column (CLI: --of)"
                refuse(f"column {column!r} holds {odd[0]!r}, which is neither yes nor no. {way}.")
        complete_r, log = np.ones(len(rows.item_r), dtype=np.bool_), ReadingLog() if votes else source.log
        codes = {"item": rows.item_r, "question": rows.question_r, "label": cells.code_r}
        codes["annotator"] = annotators.code_r
        for role, code_r in codes.items():
            if code_r is not None:
                # Empty cells of a sheet with a column per annotator are votes that nobody was asked for.
                asked_for = role != "label" or not source.stacked
                log.drop(f"no {role}", int((complete_r & (code_r < 0)).sum()) if asked_for else 0)
                complete_r &= code_r >= 0
        row_v = None if complete_r.all() else np.flatnonzero(complete_r).astype(np.uint32)
        if count := roles.column.get("count"):
            row_v = np.repeat(np.flatnonzero(complete_r), read_numbers(source, count, required=True)[complete_r])
        is_prefixed = len(columns) > 1
        for part in _answers(rows, column, cells, row_v, annotators.code_r, options, source.log, prefixed=is_prefixed):
            votes.append(part)
            if cells.separator and part.labels == NO_YES:
                rows = rows._replace(separator=cells.separator)

    return rows, annotators.values, tuple(votes)


def _one_spelling(kind: str, ids: Coded, partner_r: Ints, rows: Rows, log: ReadingLog) -> Coded:
    """Join ids that differ in case, blanks or invisible marks only, unless somebody voted under both."""
    if ids.values.dtype != pl.String:
        return ids
    plain = ids.values.str.normalize("NFKC").str.replace_all(r"[\u200b-\u200f\u2060\ufeff\u00ad]", "")
    folded = plain.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    if folded.n_unique() == len(folded):
        return ids
    names = pl.DataFrame({"id": np.arange(len(folded), dtype=ids.code_r.dtype), "name": ids.values, "folded": folded})
    twins = names.filter(pl.col("folded").is_duplicated())
    question_r = np.zeros(len(rows.item_r), dtype=np.int8) if rows.question_r is None else rows.question_r
    votes = pl.DataFrame({"id": ids.code_r, "partner": partner_r, "question": question_r}).join(twins, on="id")
    n_pairs, n_places = (pl.struct(*kind, "partner", "question").n_unique() for kind in (["id"], []))
    apart = votes.group_by("folded").agg((n_pairs > n_places).alias("apart")).filter("apart")
    counts = votes.group_by("folded", "name").len().join(apart, on="folded", how="anti")
    counts = counts.sort("len", "name", descending=[True, False])
    name_of = dict(counts.select("name", pl.col("name").first().over("folded").alias("most")).rows())
    if not name_of:
        return ids
    note_same(name_of, log, kind)
    spelt = ids.values.replace(name_of)
    values = spelt.unique().sort()
    return Coded(values, recode(ids.code_r, values.search_sorted(spelt).to_numpy()))


def _answers(
    rows: Rows, column: str, cells: Cells, row_v: Ints | None, annotator_r: Ints, options: ReadOptions,
    log: ReadingLog, *, prefixed: bool
) -> Iterator[QuestionVotes]:  # fmt: skip
    """Yield the votes in an answer column, by the question of their row and, of lists, by label."""
    # All rows without a copy, where each holds a vote.
    at = slice(None) if row_v is None else row_v
    votes = QuestionVotes(column, (), rows.item_r[at], annotator_r[at], cells.code_r[at], row_v)
    if rows.question_r is None:
        yield from _labels_of(votes, cells, options, log, prefixed=prefixed)
        return
    question_v, label_map = rows.question_r[at], load_label_map(options.labels)
    for q, question in enumerate(rows.questions):
        at_v = np.flatnonzero(question_v == q)
        # A map that leaves out a label named like a question leaves out the question.
        if label_map.get(question.casefold(), question) is None:
            log.drop("question left out by the label map", len(at_v))
            continue
        item_i = np.flatnonzero(count_codes(rows.item_r[rows.question_r == q], len(rows.items))).astype(np.int32)
        part = replace(votes.take(at_v), question=f"{question}: {column}" if prefixed else question, item_i=item_i)
        yield from _labels_of(part, cells, options, log, prefixed=prefixed or len(rows.questions) > 1)


def _labels_of(
    votes: QuestionVotes, cells: Cells, options: ReadOptions, log: ReadingLog, *, prefixed: bool
) -> Iterator[QuestionVotes]:
    """Yield votes for one label each as they are, and votes for several as a yes/no question for each label."""
    n_c = count_codes(votes.label_v, len(cells.labels_c))
    present = {c: cell for c, cell in enumerate(cells.labels_c) if n_c[c] and cell is not None}
    labels = sort_labels(label for cell in present.values() for label in cell)
    if not cells.separator or not (options.multilabel or any(cells.several_c[c] for c in present)):
        places = [labels.index(cell[0]) if cell and cell[0] in labels else UNKNOWN for cell in cells.labels_c]
        if places != list(range(len(labels))):
            votes = replace(votes, label_v=recode(votes.label_v, places))
        votes = replace(votes, labels=tuple(labels))
        reason = "label left out by the label map" if options.labels else "no choice"
        log.drop(reason, sum(int(n_c[c]) for c, cell in present.items() if not cell))
        yield votes if all(present.values()) else votes.take(np.flatnonzero(votes.label_v >= 0))
        return
    if cells.separator == LIST_SEPARATOR:
        log.note(f"{votes.question!r} allows several labels: each is a yes/no question of its own.")
    mentions = {label: sum(int(n_c[c]) for c, cell in present.items() if label in cell) for label in labels}
    note_typing_errors(mentions, log)
    for label in labels:
        if means_nothing(label, options) and len(labels) > 1:
            log.note(f"{label!r} beside lists of labels means no to every label ({mentions[label]:,} votes).")
            continue
        answer_c = [int(label in (cell or ())) for cell in cells.labels_c]
        name = f"{votes.question}: {label}" if prefixed else label
        yield replace(votes, question=name, labels=NO_YES, label_v=recode(votes.label_v, answer_c).astype(np.int16))


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
            for part in item_labels:
                if part.role == "gold" and ballot.score_v is not None:
                    ballot = replace(ballot, gold_score_i=_scores_of_ballot(part, ballot))
                else:
                    label_i = labels_of_ballot(part, ballot, source.log)
                    ballot = replace(ballot, **{f"{part.role}_i": label_i})  # type: ignore[arg-type]
            ballots.append(ballot)
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
    name_of = same_labels(spelt, options, log)
    n_of = dict.fromkeys(sort_labels(name_of.values()), 0)
    for label, n in zip(votes.labels, n_k, strict=True):
        if n:
            n_of[name_of[label]] += int(n)
    note_typing_errors(n_of, log)
    labels = tuple(n_of) if options.classes is None else choose_classes(votes.question, n_of, options.classes)

    def near(rank_of: Mapping[str, int]) -> bool:
        rank_v = recode(votes.label_v, [rank_of.get(name_of.get(label, ""), UNKNOWN) for label in votes.labels])
        return lie_near(votes.item_v, rank_v, max(rank_of.values()) + 1)

    counts, scale, level_of = dict.fromkeys(labels, 0) | n_of, None, name_of
    if len(counts) > 2:
        scale = find_scale(votes.question, counts, near, options, log)
    if scale is not None:
        labels = scale.labels
        if scale.score_of is not None:
            score_l = [scale.score_of.get(name_of.get(label, ""), np.nan) for label in votes.labels]
            votes = replace(votes, score_v=np.array(score_l)[votes.label_v])
        level_of = {label: scale.level_of[name] for label, name in name_of.items() if name in scale.level_of}
    if len(labels) < 2:
        refuse_single(votes, list(n_of), log, alone=alone)
        return None
    votes = relabelled(votes, labels, level_of)
    if scale is not None:
        votes = votes.take(np.flatnonzero(votes.label_v >= 0))
        note_other_scales(votes.label_v, votes.annotator_v, annotators.cast(pl.String).to_list(), scale, log)
    voted_a = np.flatnonzero(count_codes(votes.annotator_v, len(annotators)))
    ballot = cast_ballot(votes, rows, annotators, voted_a, options, log)
    return ballot if scale is None else replace(ballot, levels=scale.levels)


def cast_ballot(
    votes: QuestionVotes, rows: Rows, annotators: pl.Series, voted_a: Ints, options: ReadOptions, log: ReadingLog
) -> Ballot:
    """Sort votes whose labels are settled into a ballot of the annotators who voted, and settle repeats."""
    labels = votes.labels
    item_i, item_v = _own_positions(votes.item_v, votes.item_i, len(rows.items))
    annotator_a, annotator_v = _own_positions(votes.annotator_v, voted_a, len(annotators))
    votes = replace(votes, item_v=item_v, annotator_v=annotator_v)
    count_i = None if rows.count_i is None else rows.count_i[item_i]
    positive, _ = choose_positive(labels, options.positive)

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
    if options.anonymous or options.on_repeat == "count" or not len(votes.item_v):
        return ballot
    # Sorted votes: who voted twice on an item is beside themselves.
    annotator_v = ballot.code_v // np.int32(ballot.n_labels)
    again_v = annotator_v[1:] == annotator_v[:-1]
    starts = ballot.start_i[1:-1]
    again_v[starts[(starts > 0) & (starts < ballot.n_votes)] - 1] = False
    if not again_v.any():
        return ballot
    n_annotators, by_label = len(annotator_a), options.on_repeat == "error"
    key_v = votes.item_v.astype(np.int64) * n_annotators + votes.annotator_v
    key_v = key_v * len(labels) + votes.label_v if by_label else key_v
    order = np.lexsort((votes.rows(np.arange(len(key_v))), key_v))
    differs = key_v[order][1:] != key_v[order][:-1]
    is_edge = np.append(differs, True) if options.on_repeat == "last" else np.insert(differs, 0, True)
    single = votes.take(np.sort(order[is_edge]))
    n_single = len(single.item_v)
    log.drop("identical repeat" if by_label else "repeated vote", len(votes.item_v) - n_single)
    key_v = single.item_v.astype(np.int64) * n_annotators + single.annotator_v
    keys, times = np.unique(key_v, return_counts=True) if by_label else (key_v, key_v)
    if len(keys) < n_single:
        key = int(keys[times > 1][0])
        at_v = np.flatnonzero(key_v == key)[:2]
        pair = [f"{labels[int(label)]!r} (row {int(row) % (rows.stacked or len(rows.item_r)) + 1:,})"
                for row, label in zip(single.rows(at_v), single.label_v[at_v], strict=True)]  # fmt: skip
        name, person = rows.items[int(item_i[key // n_annotators])], annotators[int(annotator_a[key % n_annotators])]
        problem = f"{n_single - len(keys):,} of {n_single:,} votes on {votes.question!r} contradict another vote"
        problem = f"{problem} of the same annotator on the same item. First: item {name!r}, annotator {person!r}"
        refuse(f"{problem} voted {' and '.join(pair)}. {ON_REPEAT}")
    return sort(single)


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


def refuse_single(votes: QuestionVotes, present: Sequence[str], log: ReadingLog, *, alone: bool) -> None:
    """Note that a question without two labels is left out; an error where there is no other."""
    question = repr(votes.question)
    reason = f"all votes on {question} are {present[0]!r}" if present else f"nobody voted on {question}"
    if alone:
        reason = f"every one of the {len(votes.item_v):,} votes on {question} is {present[0]!r}" if present else reason
        refuse(f"{reason}: nothing to tell apart. Read another column (--label), or name all labels (--classes).")
    # One question on which all agree is no reason to refuse the others.
    log.note(f"{reason}: the question is left out.")


def note_positive(ballots: Sequence[Ballot], options: ReadOptions, log: ReadingLog) -> None:
    """Note which label was taken as the positive one, where the user has named none."""
    labels = sorted({label for ballot in ballots for label in ballot.labels})
    if options.positive is not None and match_label(options.positive, labels) is None:
        refuse(f"positive is {options.positive!r}, which is no label. Labels: {shown(labels)}.")
    # Of more than two labels none is positive.
    guessed = [b for b in ballots if b.n_labels == 2 and choose_positive(b.labels, options.positive)[1]]
    if names := sorted({repr(ballot.labels[ballot.positive]) for ballot in guessed}):
        log.note(f"positive label: {shown(names)} (guessed).")


# --- Gold and published labels ------------------------------------------------------------------------------------


def read_item_labels(
    role: str, source: Source, roles: ColumnRoles, rows: Rows, options: ReadOptions, questions: Sequence[str]
) -> ItemLabels | None:
    """Read gold or published labels; None where a column that was guessed is empty.

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
    else:
        name = roles.column[role]
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
        names = [question.rpartition(": ")[2] for question in questions]
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


def _read_gold_file(
    gold: Source, log: ReadingLog, roles: ColumnRoles, rows: Rows, options: ReadOptions, questions: Sequence[str]
) -> ItemLabels:
    for note in gold.log.notes:
        log.note(f"{gold.name}: {note}")
    item, question = (roles.column.get(role) for role in ("item", "question"))
    item, question = (name if name in gold.columns else None for name in (item, question))
    as_here = ReadOptions(item=item, question=question, gold=options.gold or None)
    column = find_columns(gold.columns, as_here, gold.name).column
    item, question = column.get("item"), column.get("question")
    further = [name for name in gold.columns if name not in (item, question)]
    label = column.get("gold") or column.get("label") or (further[0] if len(further) == 1 else None)
    if item is None or label is None:
        raise missing_column("gold" if item else "item", gold.columns, gold.name)
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
        label = ballot.question.rpartition(": ")[2]
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
    name, nothing = roles.column["domain"], ((), np.full(len(rows.items), UNKNOWN, dtype=np.int32))
    domains = code_labels(source.column(name))
    if "domain" in roles.guessed and len(domains.values) > MOST_GUESSED_DOMAINS:
        source.log.note(f"column {name!r} has {len(domains.values):,} values and is not taken for the domain.")
        return nothing
    domain_i, reason = _item_values(source, roles, rows, domains, name)
    if reason and "domain" not in roles.guessed:
        way = "leave out domain (--domain), or name another column"
        refuse(f"{reason} It cannot be the items' domain: {way}.", UsageError)
    if reason:
        source.log.note(f"{reason} It is not taken for the domain.")
        return nothing
    return tuple(domains.values.to_list()), domain_i.astype(np.int32)


def read_texts(texts: pl.Series, rows: Rows) -> pl.Series:
    """Read each item's text; of several, the first in alphabetical order."""
    frame = pl.DataFrame({"item": rows.item_r, "text": as_text(texts)})
    blank = pl.col("text").is_null() | pl.col("text").str.strip_chars().is_in(list(MISSING))
    texts_of = frame.filter((pl.col("item") >= 0) & ~blank).group_by("item").agg(pl.col("text").min())
    every = pl.DataFrame({"item": np.arange(len(rows.items), dtype=rows.item_r.dtype)})
    return every.join(texts_of, on="item", how="left", maintain_order="left").get_column("text")


def read_fact(source: Source, roles: ColumnRoles, rows: Rows, name: str) -> pl.Series:
    """Read a further column about items as labels; null where an item has none."""
    values = code_labels(source.column(name))
    code_i, reason = _item_values(source, roles, rows, values, name)
    if reason:
        way = "name a column that describes items (--fit-by)"
        refuse(f"{reason} Items cannot be told apart by it: {way}.", UsageError)
    return values.values.gather(pl.Series(code_i).replace(UNKNOWN, None)).alias(name)


def _item_values(source: Source, roles: ColumnRoles, rows: Rows, coded: Coded, name: str) -> tuple[Ints, str]:
    """Return each item's first value in sorted order, and why a column describes no items, if most have several."""
    low_i, high_i = _low_and_high(rows.item_r, coded.code_r, len(rows.items))
    value_i, several_i = np.where(high_i >= 0, low_i, UNKNOWN), np.flatnonzero((high_i >= 0) & (low_i != high_i))
    row_r = np.where((rows.item_r >= 0) & (coded.code_r >= 0), rows.item_r, UNKNOWN)
    if 2 * len(several_i) <= int((count_codes(row_r, len(rows.items)) > 1).sum()):
        if len(several_i):
            note = f"{len(several_i):,} items have more than one value of {name!r}"
            source.log.note(f"{note}; the first in sorted order is taken.")
        return value_i, ""
    first, described, values = int(several_i[0]), "votes", coded.values.to_list()
    if column := roles.column.get("annotator"):
        annotators = code_ids(source.column(column), textual=source.textual)
        low_a, high_a = _low_and_high(annotators.code_r, coded.code_r, len(annotators.values))
        described = "annotators" if (low_a[high_a >= 0] == high_a[high_a >= 0]).all() else described
    problem = f"column {name!r} describes {described}, not items: {len(several_i):,} items have several values of it"
    example = f"the first ({rows.items[first]!r}) {values[low_i[first]]!r} and {values[high_i[first]]!r}"
    return value_i, f"{problem}, {example}."


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
