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
from scipy.special import entr

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.groups import camps as found_camps
from moral_entropy.groups.agreement import GroupAgreement, group_agreement
from moral_entropy.groups.coupled_truths import Truths
from moral_entropy.groups.differences import Difference, holm, paired_difference
from moral_entropy.groups.members import FEWEST, Grouping, read_groupings
from moral_entropy.groups.one_truth import SHARED, Reading, read_truths, thinned
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
    """

    frames: dict[str, pl.DataFrame]
    facts: dict[str, Any]


@dataclass
class _Rows:
    """Rows of the tables, as they are found."""

    groups: list[dict[str, Any]] = field(default_factory=list)
    readings: list[dict[str, Any]] = field(default_factory=list)
    items: list[pl.DataFrame] = field(default_factory=list)
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
    facts |= {
        "composition": composition(groupings, shares),
        "notes": [note for grouping in groupings for note in grouping.notes()],
        "sentences": study_sentences(frames, groupings, votes, facts, interval),
    }
    return GroupStudy(frames, facts)


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
    truths: Truths | None = None,
) -> None:  # fmt: skip
    """Compare the groups of one column on one question."""
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
            _read(votes, ballot, target, grouping, among_a, rows, seed=seed)


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
    votes: Votes, ballot: Ballot, target: Target, grouping: Grouping, among_a: Ints, rows: _Rows, *, seed: int
) -> None:
    """Ask whether groups see one truth, and note the items on which they part."""
    few, some_i = thinned(yes_votes(ballot, target, len(votes.annotators)), seed)
    groups = np.unique(among_a[among_a >= 0])
    code_a = np.where(among_a < 0, -1, np.searchsorted(groups, among_a))
    reading, fits = read_truths(few, code_a)
    own = reading.answer == "a truth per group"
    fit = fits[SHARED.index(reading.shared)] if own else fits[0]
    names = [grouping.names[g] for g in groups]
    yes_ig = fit.yes_ig
    rows.readings.append(_reading_row(ballot, target, grouping.column, reading, yes_ig, len(few.item_v)))
    weight_g = np.bincount(code_a[code_a >= 0], minlength=len(groups)).astype(np.float64)
    counts = _counts(few.item_v, few.annotator_v, few.yes_v, code_a, len(some_i), len(groups))
    rows.items.append(_item_frame(votes, ballot, target, grouping.column, names, some_i, counts, yes_ig, weight_g, own))


def _reading_row(
    ballot: Ballot, target: Target, column: str, reading: Reading, yes_ig: Floats, n_votes: int
) -> dict[str, Any]:
    own = reading.answer == "a truth per group"
    label_ig = yes_ig >= 0.5
    parting = float((label_ig.any(axis=1) & ~label_ig.all(axis=1)).mean()) if own and len(yes_ig) else None
    return {
        "question": ballot.question, "part": ballot.part, "column": column, "label": target.name,
        "reading": reading.answer, "shared": reading.shared, "parting": parting, "gain": reading.gain,
        "gain_p": reading.gain_p, "loss": reading.loss, "loss_p": reading.loss_p,
        "n_annotators": reading.n_annotators, "n_votes": n_votes,
    }  # fmt: skip


def _counts(
    item_v: Ints, annotator_v: Ints, yes_v: Any, group_a: Ints, n_items: int, n_groups: int
) -> tuple[Ints, Ints]:
    """Count votes and yes votes by item and group."""
    known_v = group_a[annotator_v] >= 0
    key_v = item_v[known_v] * n_groups + group_a[annotator_v[known_v]]
    size = n_items * n_groups
    votes_ig = np.bincount(key_v, minlength=size).reshape(n_items, n_groups)
    yes_ig = np.bincount(key_v, weights=yes_v[known_v], minlength=size).reshape(n_items, n_groups)
    return votes_ig, yes_ig.astype(np.int64)


def _item_frame(
    votes: Votes, ballot: Ballot, target: Target, column: str, names: Sequence[str], some_i: Ints, counts: tuple[Ints,
    Ints], yes_ig: Floats, weight_g: Floats, own: bool,
) -> pl.DataFrame:  # fmt: skip
    """Return one row per item and group: its votes, what its members are expected to say, and how far groups part."""
    n_items, n_groups = yes_ig.shape
    between_i = between_groups(yes_ig, weight_g)
    every = n_items * n_groups
    spread_i = yes_ig.max(axis=1) - yes_ig.min(axis=1)
    frame = pl.DataFrame(
        {
            "question": [ballot.question] * every,
            "part": [ballot.part] * every,
            "column": [column] * every,
            "label": [target.name] * every,
            "item": votes.items.gather(np.repeat(ballot.item_i[some_i], n_groups)),
            "group": np.tile(np.array(names, dtype=object), n_items).tolist(),
            "n_votes": counts[0].ravel(),
            "n_yes": counts[1].ravel(),
            "p": yes_ig.ravel(),
            "spread": np.repeat(spread_i, n_groups),
            "between": np.repeat(between_i, n_groups) if own else np.full(every, np.nan),
        }
    )
    return frame.with_columns(pl.col("between").fill_nan(None))


def between_groups(yes_ig: Floats, weight_g: Floats) -> Floats:
    """Return the part of the entropy of a vote, in nats, that lies between groups: what knowing the group would remove.

    Parameters
    ----------
    yes_ig
        Share of each group that is expected to say yes.
    weight_g
        How large each group is.

    Examples
    --------
    >>> between_groups(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 1.0])).round(3)
    array([0.693, 0.   ])
    """
    weight_g = weight_g / weight_g.sum()

    def entropy(p: Floats) -> Floats:
        return np.asarray(entr(p) + entr(1.0 - p))

    return np.maximum(entropy(yes_ig @ weight_g) - entropy(yes_ig) @ weight_g, 0.0)


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
    _compare(votes, ballot, grouping, rows, interval=interval, seed=seed)
    # Camps were chosen by the votes, so tests that take them for given do not hold: only their sizes and rates
    # are shown.
    for one in rows.groups:
        if one["column"] == CAMPS and one["question"] == ballot.question and one["part"] == ballot.part:
            one |= dict.fromkeys(("low", "high", "p_value", "ratio_p"))
    for one in rows.readings:
        if one["column"] == CAMPS and one["question"] == ballot.question and one["part"] == ballot.part:
            believed = {"reading": "a truth per group", "gain": camps.gain, "gain_p": camps.gain_p}
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
