"""Votes and groups of annotators → what the run holds about them: tables, and sentences for people.

`study_groups` compares the groups of every column, asks whether they see one truth, and weighs the votes for a target
population.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import entr

from moral_entropy.errors import VotesError
from moral_entropy.groups.differences import group_agreement, holm, paired_difference
from moral_entropy.groups.members import FEWEST, Grouping, read_groupings
from moral_entropy.groups.truths import NOTABLE, PER_GROUP, SHARED, YesVotes, labels_of_all, read_truths, thinned
from moral_entropy.groups.weights import composition, effective_size, rake, read_target, weighted_shares
from moral_entropy.options import GroupOptions
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

MEAN = "(mean)"
MOST_LABELS = 12
"""With more labels, only the commonest are compared."""

Rows = dict[str, list[Any]]
"""By table: its rows as dicts, or frames of them."""


class Target(NamedTuple):
    """One thing to compare groups by.

    Parameters
    ----------
    name
        A label, `MEAN`, or "at least 3".
    value_k
        What a vote for each label counts: 1 for yes and 0 for no, or the rating.
    read
        Whether "one truth or several" is asked of it.
    tested
        Whether differences are tested: of ratings only the mean is, since a test per label would bury it.
    """

    name: str
    value_k: Floats
    read: bool
    tested: bool = True


def study_groups(
    votes: Votes, options: GroupOptions, *, interval: float = 0.9, seed: int = 0
) -> tuple[dict[str, pl.DataFrame], dict[str, Any], tuple[Floats, ...] | None]:
    """Compare groups of annotators.

    Parameters
    ----------
    votes
        The votes, with the columns of the groups kept.
    options
        Which groups.
    interval
        Mass of the intervals.
    seed
        Seed of shuffles and of what very large sets are thinned to.

    Returns
    -------
    tuple
        Tables of the run by name; facts for the manifest (who the annotators are, notes, sentences); and by ballot
        the share of each item's entropy that lies between groups, 0 where no truth per group is supported; None where
        it is supported on no question.
    """
    from moral_entropy.groups.words import study_sentences

    if any((ballot.count_i != 1.0).any() for ballot in votes.ballots):
        msg = (
            "groups cannot be compared where a row stands for several items, as in a pre-counted table. Use one row "
            "per item."
        )
        raise VotesError(msg)
    groupings, rows = read_groupings(votes, options), defaultdict[str, list[Any]](list)
    shares_between = [_compare_ballot(votes, ballot, groupings, rows, interval, seed) for ballot in votes.ballots]
    _correct(rows["groups"])
    shares: dict[str, Floats] = {}
    facts: dict[str, Any] = {}
    if options.target is not None:
        shares = read_target(options.target, groupings, options.named("target"))
        facts = {"target": _weigh(votes, groupings, shares, rows)}
    frames = _frames(votes, rows)
    facts |= {
        "composition": composition(groupings, shares),
        "notes": [note for grouping in groupings for note in grouping.notes()],
        "between": [
            {"question": ballot.question, "part": ballot.part, "column": share[0]}
            for ballot, share in zip(votes.ballots, shares_between, strict=True)
            if share is not None
        ],
    }
    facts["sentences"] = study_sentences(frames, facts, interval)
    between = (
        np.zeros(ballot.n_items) if share is None else share[1]
        for ballot, share in zip(votes.ballots, shares_between, strict=True)
    )
    return frames, facts, tuple(between) if facts["between"] else None


def _compare_ballot(
    votes: Votes, ballot: Ballot, groupings: Sequence[Grouping], rows: Rows, interval: float, seed: int
) -> tuple[str, Floats] | None:
    """Compare the groups of every column on one question; return what of its entropy lies between groups."""
    readings = [reading for grouping in groupings
                for reading in _compare(votes, ballot, grouping, rows, interval=interval, seed=seed)]  # fmt: skip
    return share_between(readings)


def _compare(
    votes: Votes, ballot: Ballot, grouping: Grouping, rows: Rows, *, interval: float, seed: int
) -> list[dict[str, Any]]:
    """Compare the groups of one column on one question, and read whether they see one truth."""
    item_v, annotator_v, label_v = votes_of(ballot)
    cast_a = np.bincount(annotator_v, minlength=len(votes.annotators))
    group_a = np.where(cast_a > 0, grouping.group_a, UNKNOWN)
    sizes_g = np.bincount(group_a[group_a >= 0], minlength=len(grouping.names))
    compared = np.flatnonzero(sizes_g >= FEWEST).tolist()
    among_a = np.where((group_a >= 0) & (sizes_g[group_a] >= FEWEST), group_a, UNKNOWN)
    sides = {g: np.where(among_a < 0, -1, (among_a == g).astype(np.int64)) for g in compared}
    coded = (item_v, annotator_v, label_v, ballot.n_labels)
    agreement = {g: group_agreement(*coded, side_a, seed=seed) for g, side_a in sides.items()}
    readings = []
    for target in targets_of(ballot):
        place = {"question": ballot.question, "part": ballot.part, "column": grouping.column, "label": target.name}
        y_v = target.value_k[label_v]
        for g, name in enumerate(grouping.names):
            of_v = group_a[annotator_v] == g
            cells = {"rate": float(y_v[of_v].mean()) if of_v.any() else None, "n_items": 0}
            if g in sides:
                gap = paired_difference(item_v, annotator_v, sides[g][annotator_v], y_v, interval=interval)
                cells |= {key: value if np.isfinite(value) else None for key, value in (gap | agreement[g]).items()}
            cells |= {} if target.tested else {"p_value": None}
            counted = {"group": name, "n_annotators": int(sizes_g[g]), "n_votes": int(of_v.sum())}
            rows["groups"].append(place | counted | cells)
        if target.read and len(compared) >= 2:
            code_a = np.where(among_a < 0, -1, np.searchsorted(compared, among_a))
            yes = YesVotes(item_v, annotator_v, y_v > 0.5, ballot.n_items, len(votes.annotators))
            names, items = [grouping.names[g] for g in compared], votes.items.gather(ballot.item_i)
            readings.append(_read(yes, code_a, place, names, items, rows, seed=seed))
    return readings


def _read(
    votes: YesVotes, group_a: Ints, place: dict[str, str], names: Sequence[str], items: pl.Series, rows: Rows, *,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Ask whether groups see one truth, and note what each says of every item."""
    fitted = thinned(votes, seed)
    cells, fits = read_truths(fitted, group_a)
    own = cells["reading"] == PER_GROUP
    fit = fits[(SHARED.index(cells["shared"]) or NOTABLE) if own else 0]
    yes_ig, label_ig = (fit.yes_ig, fit.label_ig) if fitted is votes else labels_of_all(fit, votes)
    said_ig = yes_ig >= 0.5
    parting = float((said_ig.any(axis=1) & ~said_ig.all(axis=1)).mean()) if own and len(said_ig) else None
    rows["group_readings"].append(place | cells | {"parting": parting, "n_votes": len(fitted.item_v)})
    reading = {"column": place["column"], "own": own, "gain": cells["gain"], "yes_ig": yes_ig, "label_ig": label_ig,
               "weight_g": np.bincount(group_a[group_a >= 0], minlength=len(names)).astype(np.float64)}  # fmt: skip
    rows["group_items"].append(_item_rows(votes, group_a, place, names, items, reading))
    return reading


def _item_rows(
    votes: YesVotes, group_a: Ints, place: Mapping[str, str], names: Sequence[str], items: pl.Series,
    reading: Mapping[str, Any],
) -> pl.DataFrame:  # fmt: skip
    """Return one row per item and group: its votes, what its members are expected to say, and how far groups part."""
    n_groups, yes_ig = len(names), reading["yes_ig"]
    kept_v = group_a[votes.annotator_v] >= 0
    cell_v = votes.item_v[kept_v] * n_groups + group_a[votes.annotator_v[kept_v]]
    between_i = between_groups(yes_ig, reading["weight_g"]) if reading["own"] else np.full(len(yes_ig), np.nan)
    return pl.DataFrame(
        {
            "item": items.gather(np.repeat(np.arange(len(items)), n_groups)),
            "group": pl.Series(list(names), dtype=pl.String).gather(np.tile(np.arange(n_groups), len(items))),
            "n_votes": np.bincount(cell_v, minlength=yes_ig.size),
            "n_yes": np.bincount(cell_v[votes.yes_v[kept_v]], minlength=yes_ig.size),
            "p": yes_ig.ravel(),
            "spread": np.repeat(yes_ig.max(axis=1) - yes_ig.min(axis=1), n_groups),
            "between": pl.Series(np.repeat(between_i, n_groups)).fill_nan(None),
        }
    ).with_columns(**{name: pl.lit(value) for name, value in place.items()})


def targets_of(ballot: Ballot) -> list[Target]:
    """Return what groups are compared by: the yes of a yes/no question, each label of several, the mean of ratings.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 1], "annotator_v": [0, 1, 0], "label_v": [0, 1, 2]}
    >>> ballot = ballot_from_codes("how bad", ("1", "2", "3"), **votes)
    >>> [target.name for target in targets_of(ballot)]
    ['1', '2', '3', '(mean)', 'at least 2']
    """
    total_k, one_hot = ballot.counts_ik.sum(axis=0), np.eye(ballot.n_labels)
    if ballot.n_labels == 2:
        return [Target(ballot.labels[ballot.positive], one_hot[ballot.positive], True)]
    shown = sorted(np.argsort(-total_k, kind="stable")[:MOST_LABELS].tolist())
    try:
        rating_k = np.array([float(label) for label in ballot.labels])
    except ValueError:
        return [Target(ballot.labels[k], one_hot[k], True) for k in shown]
    order = np.argsort(rating_k, kind="stable")
    below = np.cumsum(total_k[order]) / max(int(total_k.sum()), 1)
    # The cut that divides the votes best.
    at_least = rating_k[order[int(tie_key(np.abs(below[:-1] - 0.5)).argmin()) + 1]]
    return [
        *(Target(ballot.labels[k], one_hot[k], False, False) for k in shown),
        Target(MEAN, rating_k, False),
        Target(f"at least {at_least:g}", (rating_k >= at_least).astype(np.float64), True, False),
    ]


def votes_of(ballot: Ballot) -> tuple[Ints, Ints, Ints]:
    """Return item, annotator (as a row of `Votes.annotators`) and label of every vote."""
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    annotator_v = ballot.annotator_a[ballot.code_v // ballot.n_labels].astype(np.int64)
    return item_v, annotator_v, ballot.code_v % ballot.n_labels


def _correct(groups: list[dict[str, Any]]) -> None:
    """Correct p-values for all comparisons of the run; two groups that are compared with each other are one of them."""
    by_place: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in groups:
        if row.get("p_value") is not None:
            place = tuple(row[name] for name in ("question", "part", "column", "label"))
            by_place.setdefault(place, []).append(row)
    tests = [test for rows in by_place.values() for test in ([rows] if len(rows) == 2 else [[row] for row in rows])]
    adjusted = holm(np.array([test[0]["p_value"] for test in tests]))
    for test, p_adjusted in zip(tests, adjusted.tolist(), strict=True):
        for row in test:
            row["p_adjusted"] = p_adjusted


def between_groups(yes_ig: Floats, weight_g: Floats) -> Floats:
    """Return the part of an answer's entropy, in nats, that lies between groups: what knowing the group would remove.

    Parameters
    ----------
    yes_ig
        Probability of yes by group.
    weight_g
        How large each group is.

    Examples
    --------
    >>> between_groups(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 1.0])).round(3)
    array([0.693, 0.   ])
    """
    share_g = weight_g / weight_g.sum()
    return np.asarray(np.maximum(_entropy(yes_ig @ share_g) - _entropy(yes_ig) @ share_g, 0.0))


def _entropy(p: Floats) -> Floats:
    return np.asarray(entr(np.clip(p, 0.0, 1.0)) + entr(1.0 - np.clip(p, 0.0, 1.0)))


def share_between(readings: Sequence[Mapping[str, Any]]) -> tuple[str, Floats] | None:
    """Return the share of each item's label entropy that lies between groups, and the column of those groups.

    One column is chosen, as shares of several would overlap: the one with a truth per group and the largest gain. With
    more than two labels, each is taken as yes in turn: the parts of those with a truth per group are added up and
    divided by the entropies of all. None if no truth per group is supported.

    Parameters
    ----------
    readings
        Of the items of one question, by column and label: column, whether a truth per group is supported (`own`), its
        gain, the probability that yes is the group's label (`label_ig`), and annotators per group (`weight_g`).

    Examples
    --------
    >>> own = {"column": "gender", "own": True, "gain": 1.0, "label_ig": np.array([[1.0, 0.0], [0.9, 0.9]]),
    ...        "weight_g": np.ones(2)}
    >>> column, share_i = share_between([own])
    >>> column, share_i.round(3).tolist()
    ('gender', [1.0, 0.0])
    """
    gains: dict[str, float] = {}
    for reading in readings:
        if reading["own"]:
            gains[reading["column"]] = gains.get(reading["column"], 0.0) + reading["gain"]
    if not gains:
        return None
    column = max(gains, key=lambda name: float(tie_key(gains[name])))
    chosen = [reading for reading in readings if reading["column"] == column]
    pooled = [reading["label_ig"] @ (reading["weight_g"] / reading["weight_g"].sum()) for reading in chosen]
    total_i = np.sum([_entropy(label_i) for label_i in pooled], axis=0)
    parts = [between_groups(reading["label_ig"], reading["weight_g"]) for reading in chosen if reading["own"]]
    share_i = np.sum(parts, axis=0) / np.where(total_i > 0.0, total_i, 1.0)
    return column, np.clip(share_i, 0.0, 1.0)


def _weigh(votes: Votes, groupings: Sequence[Grouping], shares: dict[str, Floats], rows: Rows) -> dict[str, Any]:
    """Weigh annotators for the target population, and the votes of every item with them."""
    chosen = [grouping for grouping in groupings if grouping.column in shares]
    weight_a, off = rake([grouping.group_a for grouping in chosen], [shares[grouping.column] for grouping in chosen])
    for ballot in votes.ballots:
        coded, size = votes_of(ballot), (ballot.n_items, ballot.n_labels)
        p_ik, n_i = weighted_shares(*coded, weight_a, *size)
        pool_ik, _ = weighted_shares(*coded, np.ones(len(weight_a)), *size)
        for k in [ballot.positive] if ballot.n_labels == 2 else range(ballot.n_labels):
            columns = {"item": votes.items.gather(ballot.item_i), "p_target": p_ik[:, k], "p_pool": pool_ik[:, k],
                       "effective_votes": n_i}  # fmt: skip
            place = {"question": ballot.question, "part": ballot.part, "label": ballot.labels[k]}
            literals = {name: pl.lit(value) for name, value in place.items()}
            rows["target_items"].append(pl.DataFrame(columns).with_columns(**literals))
    return {
        "columns": [grouping.column for grouping in chosen],
        "annotators": int((weight_a > 0.0).sum()),
        "effective_annotators": effective_size(weight_a),
        "largest_weight": float(weight_a.max()),
        "off": off,
    }


def _frames(votes: Votes, rows: Rows) -> dict[str, pl.DataFrame]:
    frames = {}
    for name, parts in rows.items():
        schema = with_ids(SCHEMAS[name], item=votes.items.dtype, annotator=votes.annotators.dtype)
        if name in ("groups", "group_readings") and parts:
            cells = [{column: row.get(column) for column in schema} for row in parts]
            frames[name] = pl.DataFrame(cells, schema=schema)
        elif parts:
            frames[name] = pl.concat(parts).cast(dict(schema)).select(schema.names())
    return frames
