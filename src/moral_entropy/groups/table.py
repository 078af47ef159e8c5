"""Votes and groups of annotators → what the run holds about them: tables, and sentences for people.

`study_groups` compares the groups of every column, asks whether they see one truth, looks for camps, and weighs the
votes for a target population. Camps that are believed become one more column, `(camps)`, and are compared like any
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.groups import camps as found_camps
from moral_entropy.groups.agreement import GroupAgreement, group_agreement
from moral_entropy.groups.differences import Difference, holm, paired_difference
from moral_entropy.groups.item_labels import (
    GroupLabels,
    count_by_group,
    group_item_rows,
    labels_of_all,
    share_between,
)
from moral_entropy.groups.members import FEWEST, Grouping, read_groupings
from moral_entropy.groups.one_truth import NOTABLE, SHARED, Reading, read_truths, thinned
from moral_entropy.groups.options import GroupOptions
from moral_entropy.groups.targets import Target, targets_of, votes_of, yes_votes
from moral_entropy.groups.weights import composition, effective_size, rake, read_target, weighted_shares
from moral_entropy.names import CAMPS
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes


@dataclass(frozen=True)
class GroupStudy:
    """What was found about groups.

    Parameters
    ----------
    frames
        Tables of the run, by name.
    facts
        For the manifest: who the annotators are, notes, and sentences about what was found.
    between
        By ballot, the share of each item's entropy that lies between groups, 0 where no truth per group is supported;
        None where it is supported on no question.
    """

    frames: dict[str, pl.DataFrame]
    facts: dict[str, Any]
    between: tuple[Floats, ...] | None = None


@dataclass
class _Rows:
    """Rows of the tables, as they are found."""

    groups: list[dict[str, Any]] = field(default_factory=list)
    readings: list[dict[str, Any]] = field(default_factory=list)
    items: list[pl.DataFrame] = field(default_factory=list)
    labels: dict[tuple[str, str], list[GroupLabels]] = field(default_factory=dict)
    camps: list[dict[str, Any]] = field(default_factory=list)
    target: list[pl.DataFrame] = field(default_factory=list)


def study_groups(votes: Votes, options: GroupOptions, *, interval: float = 0.9, seed: int = 0) -> GroupStudy:
    """Compare groups of annotators, and look for camps.

    Parameters
    ----------
    votes
        The votes, with the columns of the groups kept.
    options
        Which groups.
    interval
        Mass of the intervals.
    seed
        Seed of shuffles, of starts and of what very large sets are thinned to.
    """
    from moral_entropy.groups.words import study_sentences

    _check(votes, options)
    groupings, rows = read_groupings(votes, options), _Rows()
    for ballot in votes.ballots:
        for grouping in groupings:
            _compare(votes, ballot, grouping, rows, interval=interval, seed=seed)
        if options.camps:
            _add_camps(votes, ballot, rows, interval=interval, seed=seed)
    _correct(rows.groups)
    shares, facts = {}, {}
    if options.target is not None:
        shares = read_target(options.target, groupings, options.named("target"))
        facts = _weigh(votes, groupings, shares, rows)
    frames = _frames(votes, rows)
    columns, between = _between(votes, rows)
    facts |= {
        "composition": composition(groupings, shares),
        "notes": [note for grouping in groupings for note in grouping.notes()],
        "between": columns,
        "sentences": study_sentences(frames, groupings, votes, facts | {"between": columns}, interval),
    }
    return GroupStudy(frames, facts, between)


def _between(votes: Votes, rows: _Rows) -> tuple[list[dict[str, str]], tuple[Floats, ...] | None]:
    """Return whose groups the entropy has a part between, by question, and the share of that part by item."""
    found = [share_between(rows.labels.get((ballot.question, ballot.part), [])) for ballot in votes.ballots]
    columns = [
        {"question": ballot.question, "part": ballot.part, "column": one[0]}
        for ballot, one in zip(votes.ballots, found, strict=True)
        if one is not None
    ]
    shares = (
        np.zeros(ballot.n_items) if one is None else one[1] for ballot, one in zip(votes.ballots, found, strict=True)
    )
    return columns, tuple(shares) if columns else None


def _check(votes: Votes, options: GroupOptions) -> None:
    if votes.anonymous:
        msg = f"{options.called('camps')} needs annotators, and these votes are anonymous."
        raise UsageError(msg)
    if any((ballot.count_i != 1.0).any() for ballot in votes.ballots):
        msg = (
            "groups cannot be compared where a row stands for several items, as in a pre-counted table. Use one row "
            "per item."
        )
        raise VotesError(msg)


def _compare(
    votes: Votes, ballot: Ballot, grouping: Grouping, rows: _Rows, *, interval: float, seed: int,
    believed: str | None = None,
) -> None:  # fmt: skip
    """Compare the groups of one column on one question; camps are believed to have a truth each on one label."""
    item_v, annotator_v, label_v = votes_of(ballot)
    cast_a = np.bincount(annotator_v, minlength=len(votes.annotators))
    group_a = np.where(cast_a > 0, grouping.group_a, UNKNOWN)
    sizes_g = np.bincount(group_a[group_a >= 0], minlength=len(grouping.names))
    compared_g = sizes_g >= FEWEST
    among_a = np.where((group_a >= 0) & compared_g[group_a], group_a, UNKNOWN)
    place = {"question": ballot.question, "part": ballot.part, "column": grouping.column}
    agreement = [_agreement(ballot, among_a, g, seed) if compared_g[g] else None for g in range(len(grouping.names))]
    for target in targets_of(ballot):
        y_v = target.value_k[label_v]
        for g, name in enumerate(grouping.names):
            of_v = group_a[annotator_v] == g
            gap = _difference(item_v, annotator_v, y_v, among_a, g, interval) if compared_g[g] else None
            counted = {"group": name, "n_annotators": int(sizes_g[g]), "n_votes": int(of_v.sum())}
            rate = float(y_v[of_v].mean()) if of_v.any() else np.nan
            cells = _group_cells(rate, gap, agreement[g]) | ({} if target.tested else {"p_value": None})
            rows.groups.append(place | {"label": target.name} | counted | cells)
        if target.read and compared_g.sum() >= 2:
            _read(votes, ballot, target, grouping, among_a, rows, seed=seed, believed=target.name == believed)


def _agreement(ballot: Ballot, among_a: Ints, g: int, seed: int) -> GroupAgreement:
    item_v, annotator_v, label_v = votes_of(ballot)
    inside_a = np.where(among_a < 0, -1, (among_a == g).astype(np.int64))
    return group_agreement(item_v, annotator_v, label_v, ballot.n_labels, inside_a, seed=seed)


def _difference(item_v: Ints, annotator_v: Ints, y_v: Floats, among_a: Ints, g: int, interval: float) -> Difference:
    side_a = np.where(among_a < 0, -1, (among_a == g).astype(np.int64))
    return paired_difference(item_v, annotator_v, side_a[annotator_v], y_v, interval=interval)


def _group_cells(rate: float, gap: Difference | None, agreement: GroupAgreement | None) -> dict[str, Any]:
    figures = {
        "rate": rate,
        "difference": gap.value if gap else np.nan,
        "low": gap.low if gap else np.nan,
        "high": gap.high if gap else np.nan,
        "p_value": gap.p_value if gap else np.nan,
        "within": agreement.within if agreement else np.nan,
        "across": agreement.across if agreement else np.nan,
        "ratio": agreement.ratio if agreement else np.nan,
        "ratio_p": agreement.p_value if agreement else np.nan,
    }
    return {"n_items": gap.n_items if gap else 0} | {name: _known(value) for name, value in figures.items()}


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _correct(groups: list[dict[str, Any]]) -> None:
    """Correct p-values for all comparisons of the run; two groups that are compared with each other are one of them."""
    seen: dict[tuple[Any, ...], int] = {}
    for row in groups:
        key = tuple(row[name] for name in ("question", "part", "column", "label"))
        seen[key] = seen.get(key, 0) + (row["p_value"] is not None)
    first: dict[tuple[Any, ...], int] = {}
    counted, same = [], {}
    for at, row in enumerate(groups):
        key = tuple(row[name] for name in ("question", "part", "column", "label"))
        if row["p_value"] is None:
            continue
        if seen[key] == 2 and key in first:
            same[at] = first[key]
            continue
        first.setdefault(key, at)
        counted.append(at)
    adjusted = holm(np.array([groups[at]["p_value"] for at in counted]))
    by_row = dict(zip(counted, adjusted.tolist(), strict=True))
    for at, row in enumerate(groups):
        row["p_adjusted"] = by_row.get(same.get(at, at))


def _read(
    votes: Votes, ballot: Ballot, target: Target, grouping: Grouping, among_a: Ints, rows: _Rows, *, seed: int,
    believed: bool,
) -> None:  # fmt: skip
    """Ask whether groups see one truth, and note what each says of every item."""
    every = yes_votes(ballot, target, len(votes.annotators))
    few, _ = thinned(every, seed)
    groups = np.unique(among_a[among_a >= 0])
    code_a = np.where(among_a < 0, -1, np.searchsorted(groups, among_a))
    reading, fits = read_truths(few, code_a)
    own = believed or reading.answer == "a truth per group"
    best = SHARED.index(reading.shared)
    fit = fits[(best or NOTABLE) if own else 0]
    yes_ig, label_ig = (fit.yes_ig, fit.label_ig) if few is every else labels_of_all(fit, every)
    weight_g = np.bincount(code_a[code_a >= 0], minlength=len(groups)).astype(np.float64)
    found = GroupLabels(grouping.column, own, reading.gain, yes_ig, label_ig, weight_g)
    place = {"question": ballot.question, "part": ballot.part, "column": grouping.column, "label": target.name}
    rows.readings.append(place | _reading_cells(reading, found, len(few.item_v)))
    rows.labels.setdefault((ballot.question, ballot.part), []).append(found)
    items, names = votes.items.gather(ballot.item_i), [grouping.names[g] for g in groups]
    rows.items.append(group_item_rows(place, items, names, count_by_group(every, code_a, len(groups)), found))


def _reading_cells(reading: Reading, found: GroupLabels, n_votes: int) -> dict[str, Any]:
    yes_ig = found.yes_ig >= 0.5
    parted = found.own and len(yes_ig)
    return {
        "reading": "a truth per group" if found.own else reading.answer, "shared": reading.shared,
        "parting": float((yes_ig.any(axis=1) & ~yes_ig.all(axis=1)).mean()) if parted else None,
        "gain": reading.gain, "gain_p": reading.gain_p, "loss": reading.loss, "loss_p": reading.loss_p,
        "n_annotators": reading.n_annotators, "n_votes": n_votes,
    }  # fmt: skip


def _add_camps(votes: Votes, ballot: Ballot, rows: _Rows, *, interval: float, seed: int) -> None:
    """Look for camps on one question; those that are believed are compared as a column of their own."""
    target = min((one for one in targets_of(ballot) if one.read), key=lambda one: _imbalance(ballot, one))
    voted_a = np.zeros(len(votes.annotators), dtype=np.bool_)
    voted_a[ballot.annotator_a] = True
    few, _ = thinned(
        _own_numbers(yes_votes(ballot, target, len(votes.annotators)), ballot), seed, found_camps.MAX_VOTES
    )
    camps = found_camps.find_camps(few, seed=seed)
    row = {"question": ballot.question, "part": ballot.part, "label": target.name}
    if camps is None or camps.reason:
        rows.readings.append(_no_camps(row, camps, few.n_annotators, len(few.item_v)))
        return
    group_a = np.full(len(votes.annotators), UNKNOWN, dtype=np.int64)
    group_a[ballot.annotator_a] = camps.camp_a
    names = tuple(f"camp {c + 1}" for c in range(camps.member_ac.shape[1]))
    sure_a = camps.member_ac.max(axis=1)
    rows.camps += [
        row | {"annotator": votes.annotators[int(a)], "camp": names[c], "probability": float(sure)}
        for a, c, sure in zip(ballot.annotator_a, camps.camp_a, sure_a, strict=True)
    ]
    grouping = Grouping(CAMPS, names, group_a)
    _compare(votes, ballot, grouping, rows, interval=interval, seed=seed, believed=target.name)
    # Camps were chosen by the votes, so tests that take them for given do not hold: only their sizes and rates
    # are shown.
    for one in rows.groups:
        if one["column"] == CAMPS and one["question"] == ballot.question and one["part"] == ballot.part:
            one |= dict.fromkeys(("low", "high", "p_value", "ratio_p"))
    for one in rows.readings:
        if one["column"] == CAMPS and one["question"] == ballot.question and one["part"] == ballot.part:
            believed = {"gain": camps.gain, "gain_p": camps.gain_p} if one["label"] == target.name else {}
            one |= believed | {"loss": None, "loss_p": None, "stability": camps.stability}


def _no_camps(row: dict[str, Any], camps: found_camps.Camps | None, n_annotators: int, n_votes: int) -> dict[str, Any]:
    few = f"there are fewer than {2 * found_camps.FEWEST} annotators"
    facts = {"column": CAMPS, "reading": "no camps", "n_annotators": n_annotators, "n_votes": n_votes,
             "reason": few if camps is None else camps.reason}  # fmt: skip
    if camps is None:
        return row | facts
    return row | facts | {"gain": camps.gain, "gain_p": camps.gain_p, "stability": camps.stability}


def _imbalance(ballot: Ballot, target: Target) -> float:
    total_k = ballot.counts_ik.sum(axis=0)
    return round(abs(float((total_k * target.value_k).sum() / max(total_k.sum(), 1)) - 0.5), 9)


def _own_numbers(votes: Any, ballot: Ballot) -> Any:
    """Number the annotators of a question from 0 on."""
    place_a = np.full(votes.n_annotators, -1)
    place_a[ballot.annotator_a] = np.arange(ballot.n_annotators)
    return replace(votes, annotator_v=place_a[votes.annotator_v], n_annotators=ballot.n_annotators)


def _weigh(votes: Votes, groupings: Sequence[Grouping], shares: dict[str, Floats], rows: _Rows) -> dict[str, Any]:
    """Weigh annotators for the target population, and the votes of every item with them."""
    chosen = [grouping for grouping in groupings if grouping.column in shares]
    weight_a, off = rake([one.group_a for one in chosen], [shares[one.column] for one in chosen])
    for ballot in votes.ballots:
        item_v, annotator_v, label_v = votes_of(ballot)
        p_ik, n_i = weighted_shares(item_v, annotator_v, label_v, weight_a, ballot.n_items, ballot.n_labels)
        plain_ik, _ = weighted_shares(
            item_v, annotator_v, label_v, np.ones(len(weight_a)), ballot.n_items, ballot.n_labels
        )
        for k in [ballot.positive] if ballot.n_labels == 2 else range(ballot.n_labels):
            rows.target.append(
                pl.DataFrame(
                    {
                        "question": [ballot.question] * ballot.n_items,
                        "part": [ballot.part] * ballot.n_items,
                        "item": votes.items.gather(ballot.item_i),
                        "label": [ballot.labels[k]] * ballot.n_items,
                        "p_target": p_ik[:, k],
                        "p_pool": plain_ik[:, k],
                        "effective_votes": n_i,
                    }
                )
            )
    counted = int((weight_a > 0.0).sum())
    size = effective_size(weight_a)
    return {"target": {"columns": [one.column for one in chosen], "annotators": counted, "effective_annotators": size,
                       "largest_weight": float(weight_a.max()), "off": off}}  # fmt: skip


def _frames(votes: Votes, rows: _Rows) -> dict[str, pl.DataFrame]:
    ids = {"item": votes.items.dtype, "annotator": votes.annotators.dtype}
    frames = {}
    for name, of in (("groups", rows.groups), ("group_readings", rows.readings), ("camps", rows.camps)):
        schema = with_ids(SCHEMAS[name], **ids)
        if of:
            frames[name] = pl.DataFrame([{column: row.get(column) for column in schema} for row in of], schema=schema)
    for name, some in (("group_items", rows.items), ("target_items", rows.target)):
        if some:
            schema = with_ids(SCHEMAS[name], **ids)
            frames[name] = pl.concat(some).cast(dict(schema)).select(schema.names())  # type: ignore[arg-type]
    return frames
