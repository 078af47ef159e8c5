"""Votes and groups of annotators → what the run holds about them: tables, and sentences for people.

`study_groups` compares the groups of every column, asks whether they see one truth, and weighs the votes for a target
population. Annotators who copy each other count once in every comparison: a copy is no second member of a group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import entr

from moral_entropy.findings import listed, many
from moral_entropy.groups import members, truths
from moral_entropy.groups.differences import group_agreement, holm, paired_difference
from moral_entropy.groups.members import FEWEST, Grouping
from moral_entropy.model.consensus import Consensus
from moral_entropy.names import MEAN
from moral_entropy.options import GroupOptions
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes, refuse

PLACE = ["question", "part", "column", "label"]
MOST_LABELS = 12
"""With more labels, only the commonest are compared."""

Rows = dict[str, list[Any]]
"""By table: its rows as dicts, or frames of them."""

Coded = tuple[Ints, Ints, Ints]
"""Item, annotator (as a row of `Votes.annotators`) and label of every vote."""


class Target(NamedTuple):
    """One thing to compare groups by.

    Parameters
    ----------
    name
        A label, `MEAN`, or "at least 3".
    value_k
        What a vote for each label counts: 1 for yes and 0 for no, or the rating.
    is_read
        Whether "one truth or several" is asked of it.
    is_tested
        Whether it is compared: of ratings only the mean is, since a test per cut would bury it.
    """

    name: str
    value_k: Floats
    is_read: bool = True
    is_tested: bool = True


def study_groups(
    consensus: Consensus, options: GroupOptions
) -> tuple[dict[str, pl.DataFrame], dict[str, Any], tuple[Floats, ...] | None]:
    """Compare groups of annotators.

    Parameters
    ----------
    consensus
        The fits: their votes, with the columns of the groups kept, and who copies whom.
    options
        Which groups.

    Returns
    -------
    tuple
        Tables of the run by name; facts for the manifest (who the annotators are, notes, sentences); and by ballot
        the share of each item's entropy that lies between groups, 0 where no truth per group is supported; None where
        it is supported on no question.
    """
    votes, rows = consensus.votes, defaultdict[str, list[Any]](list)
    if any((ballot.count_i != 1.0).any() for ballot in votes.ballots):
        refuse(
            "groups cannot be compared where a row stands for several items (a pre-counted table): use a row per item."
        )
    groupings = members.read_groupings(votes, options)
    notes, between, parts = [note for grouping in groupings for note in grouping.notes()], [], []
    for fit in consensus.fits:
        ballot = fit.ballot
        # Codes of the ballot's annotators → rows of `Votes.annotators`.
        copies = [ballot.annotator_a[group].astype(np.int64) for group in fit.counted_groups]
        for group in copies:
            names = listed(votes.annotators.gather(group).cast(pl.String).to_list())
            notes.append(
                f"on {ballot.question}, {names} are copies of each other and count as one member of their group."
            )
        compared = (_compare(consensus, ballot, copies, grouping, rows) for grouping in groupings)
        share = share_between([reading for readings in compared for reading in readings])
        parts.append(np.zeros(ballot.n_items) if share is None else share[1])
        if share is not None:
            between.append({"question": ballot.question, "part": ballot.part, "column": share[0]})
    shares = {} if options.target is None else members.read_target(options.target, groupings, options.named("target"))
    facts: dict[str, Any] = {"target": _weigh(votes, groupings, shares, rows)} if shares else {}
    frames = _frames(votes, rows)
    facts |= {"composition": members.composition(groupings, shares), "notes": notes, "between": between}
    facts["sentences"] = study_sentences(frames, facts, consensus.interval)
    return frames, facts, tuple(parts) if between else None


def _compare(
    consensus: Consensus, ballot: Ballot, copies: Sequence[Ints], grouping: Grouping, rows: Rows
) -> Iterator[dict[str, Any]]:
    """Compare the groups of one column on one question, and yield whether they see one truth, by label."""
    votes = consensus.votes
    item_v, annotator_v, label_v = count_copies_once(votes_of(ballot), copies, grouping.group_a)
    cast_a = np.bincount(annotator_v, minlength=len(votes.annotators))
    group_a = np.where(cast_a > 0, grouping.group_a, UNKNOWN)
    sizes_g = np.bincount(group_a[group_a >= 0], minlength=len(grouping.names))
    compared = np.flatnonzero(sizes_g >= FEWEST).tolist()
    among_a = np.where((group_a >= 0) & (sizes_g[group_a] >= FEWEST), group_a, UNKNOWN)
    sides = {g: np.where(among_a < 0, -1, (among_a == g).astype(np.int64)) for g in compared}
    coded = (item_v, annotator_v, label_v, ballot.n_labels)
    agreement = {g: group_agreement(*coded, side_a) for g, side_a in sides.items()}
    for target in targets_of(ballot):
        place = {"question": ballot.question, "part": ballot.part, "column": grouping.column, "label": target.name}
        y_v = target.value_k[label_v]
        for g, name in enumerate(grouping.names if target.is_tested else ()):
            of_v = group_a[annotator_v] == g
            cells = {"rate": float(y_v[of_v].mean()) if of_v.any() else None, "n_items": 0}
            if g in sides:
                gap = paired_difference(item_v, annotator_v, sides[g][annotator_v], y_v, interval=consensus.interval)
                cells |= {key: value if np.isfinite(value) else None for key, value in (gap | agreement[g]).items()}
            sizes = {"group": name, "n_annotators": int(sizes_g[g]), "n_votes": int(of_v.sum())}
            rows["groups"].append(place | sizes | cells)
        if target.is_read and len(compared) >= 2:
            code_a = np.where(among_a < 0, -1, np.searchsorted(compared, among_a))
            yes = truths.YesVotes(item_v, annotator_v, y_v > 0.5, ballot.n_items, len(votes.annotators))
            names, items = [grouping.names[g] for g in compared], votes.items.gather(ballot.item_i)
            yield _read(yes, code_a, place, names, items, rows, seed=consensus.options.seed)


def count_copies_once(coded: Coded, copies: Sequence[Ints], group_a: Ints) -> Coded:
    """Return the votes with those of copies left out: of a set of copies, each group of annotators has one member.

    The first member of the set in a group votes for all of them there, also on items that only another voted on.

    Parameters
    ----------
    coded
        Item, annotator and label of every vote.
    copies
        Sets of annotators who copy each other.
    group_a
        Which group each annotator belongs to.

    Examples
    --------
    Annotators 0 and 1 are copies and of one group; only 1 voted on the second item.

    >>> coded = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 1]), np.array([1, 1, 0, 0])
    >>> [codes.tolist() for codes in count_copies_once(coded, [np.array([0, 1])], np.array([0, 0, 1]))]
    [[0, 0, 1], [0, 2, 0], [1, 0, 0]]
    """
    first_a = np.arange(len(group_a))
    for copied_a in copies:
        for g in np.unique(group_a[copied_a]):
            alike_a = copied_a[group_a[copied_a] == g]
            first_a[alike_a] = alike_a.min()
    item_v, annotator_v, label_v = coded
    first_v, at_v = first_a[annotator_v], np.arange(len(item_v))
    cell_v = item_v * len(group_a) + first_v
    moved_v = first_v != annotator_v
    new_v = moved_v & ~np.isin(cell_v, cell_v[~moved_v])
    # Where several copies stand in for the first, one of them does.
    once_v = ~moved_v | np.isin(at_v, at_v[new_v][np.unique(cell_v[new_v], return_index=True)[1]])
    return item_v[once_v], first_v[once_v], label_v[once_v]


def _read(
    votes: truths.YesVotes, group_a: Ints, place: dict[str, str], names: Sequence[str], items: pl.Series, rows: Rows, *,
    seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Ask whether groups see one truth, and note what each says of every item."""
    fitted = truths.thinned(votes, seed)
    cells, fits = truths.read_truths(fitted, group_a)
    differs = cells["reading"] == truths.PER_GROUP
    fit = fits[(truths.SHARED.index(cells["shared"]) or truths.NOTABLE) if differs else 0]
    yes_ig, label_ig = (fit.yes_ig, fit.label_ig) if fitted is votes else truths.labels_of_all(fit, votes)
    above_ig = yes_ig >= 0.5
    parting = float((above_ig.any(axis=1) & ~above_ig.all(axis=1)).mean()) if differs and len(above_ig) else None
    rows["group_readings"].append(place | cells | {"parting": parting, "n_votes": len(fitted.item_v)})
    reading = {"column": place["column"], "own": differs, "gain": cells["gain"], "yes_ig": yes_ig, "label_ig": label_ig,
               "weight_g": np.bincount(group_a[group_a >= 0], minlength=len(names)).astype(np.float64)}  # fmt: skip
    rows["group_items"].append(_item_rows(votes, group_a, place, names, items, reading))
    return reading


def _item_rows(
    votes: truths.YesVotes, group_a: Ints, place: Mapping[str, str], names: Sequence[str], items: pl.Series,
    reading: Mapping[str, Any],
) -> pl.DataFrame:  # fmt: skip
    """Return one row per item and group: its votes, what its members are expected to say, and how far groups part."""
    n_groups, yes_ig = len(names), reading["yes_ig"]
    kept_v = group_a[votes.annotator_v] >= 0
    cell_v = votes.item_v[kept_v] * n_groups + group_a[votes.annotator_v[kept_v]]
    between_i = between_groups(yes_ig, reading["weight_g"]) if reading["own"] else np.full(len(yes_ig), np.nan)
    columns = {
        "item": items.gather(np.repeat(np.arange(len(items)), n_groups)),
        "group": pl.Series(list(names), dtype=pl.String).gather(np.tile(np.arange(n_groups), len(items))),
        "n_votes": np.bincount(cell_v, minlength=yes_ig.size),
        "n_yes": np.bincount(cell_v[votes.yes_v[kept_v]], minlength=yes_ig.size),
        "p": yes_ig.ravel(),
        "spread": np.repeat(yes_ig.max(axis=1) - yes_ig.min(axis=1), n_groups),
        "between": pl.Series(np.repeat(between_i, n_groups)).fill_nan(None),
    }
    return _placed(columns, place)


def targets_of(ballot: Ballot) -> list[Target]:
    """Return what groups are compared by: the yes of a yes/no question, each label of several, the mean of ratings.

    Examples
    --------
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 1], "annotator_v": [0, 1, 0], "label_v": [0, 1, 2]}
    >>> ballot = ballot_from_codes("how bad", ("1", "2", "3"), **votes)
    >>> [target.name for target in targets_of(ballot)]
    ['(mean)', 'at least 2']
    """
    total_k, one_hot = ballot.counts_ik.sum(axis=0), np.eye(ballot.n_labels)
    if ballot.n_labels == 2:
        return [Target(ballot.labels[ballot.positive], one_hot[ballot.positive])]
    frequent = sorted(np.argsort(-total_k, kind="stable")[:MOST_LABELS].tolist())
    try:
        rating_k = np.array(ballot.levels or [float(label) for label in ballot.labels])
    except ValueError:
        return [Target(ballot.labels[k], one_hot[k]) for k in frequent]
    order = np.argsort(rating_k, kind="stable")
    below = np.cumsum(total_k[order]) / max(int(total_k.sum()), 1)
    # The cut that divides the votes best.
    at_least = rating_k[order[int(tie_key(np.abs(below[:-1] - 0.5)).argmin()) + 1]]
    cut_k = (rating_k >= at_least).astype(np.float64)
    return [Target(MEAN, rating_k, is_read=False), Target(f"at least {at_least:g}", cut_k, is_tested=False)]


def votes_of(ballot: Ballot) -> Coded:
    """Return item, annotator (as a row of `Votes.annotators`) and label of every vote."""
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    annotator_v = ballot.annotator_a[ballot.code_v // ballot.n_labels].astype(np.int64)
    return item_v, annotator_v, ballot.code_v % ballot.n_labels


def corrected(groups: pl.DataFrame) -> pl.DataFrame:
    """Correct p-values for all comparisons of the run; two groups that are compared with each other are one of them."""
    tested = pl.col("p_value").is_not_null()
    is_pair = pl.col("p_value").count().over(PLACE) == 2
    # The second of a pair repeats the first, and takes its corrected p.
    repeats = groups.select(tested & is_pair & (tested.cum_sum().over(PLACE) == 2)).to_series()
    p_value = groups["p_value"].set(repeats, None)
    adjusted = groups.with_columns(p_adjusted=pl.Series(holm(p_value.fill_null(np.nan).to_numpy())).fill_nan(None))
    shared = pl.when(tested & is_pair).then(pl.col("p_adjusted").max().over(PLACE)).otherwise("p_adjusted")
    return adjusted.with_columns(p_adjusted=shared)


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
    gains: dict[str, float] = defaultdict(float)
    for reading in readings:
        if reading["own"]:
            gains[reading["column"]] += reading["gain"]
    if not gains:
        return None
    column = max(gains, key=lambda name: float(tie_key(gains[name])))
    total_i = between_i = np.zeros(1)
    for reading in (reading for reading in readings if reading["column"] == column):
        total_i = total_i + _entropy(reading["label_ig"] @ (reading["weight_g"] / reading["weight_g"].sum()))
        between_i = between_i + reading["own"] * between_groups(reading["label_ig"], reading["weight_g"])
    return column, np.clip(between_i / np.where(total_i > 0.0, total_i, 1.0), 0.0, 1.0)


def _weigh(votes: Votes, groupings: Sequence[Grouping], shares: dict[str, Floats], rows: Rows) -> dict[str, Any]:
    """Weigh annotators for the target population, and the votes of every item with them."""
    weighted = {grouping.column: grouping.group_a for grouping in groupings if grouping.column in shares}
    weight_a, off = members.rake(list(weighted.values()), [shares[column] for column in weighted])
    for ballot in votes.ballots:
        coded, size = votes_of(ballot), (ballot.n_items, ballot.n_labels)
        p_ik, n_i = members.weighted_shares(*coded, weight_a, *size)
        pool_ik, _ = members.weighted_shares(*coded, np.ones(len(weight_a)), *size)
        columns = {"item": votes.items.gather(ballot.item_i), "effective_votes": n_i}
        for k in [ballot.positive] if ballot.n_labels == 2 else range(ballot.n_labels):
            place = {"question": ballot.question, "part": ballot.part, "label": ballot.labels[k]}
            rows["target_items"].append(_placed(columns | {"p_target": p_ik[:, k], "p_pool": pool_ik[:, k]}, place))
    effective = float(weight_a.sum() ** 2 / (weight_a**2).sum())
    return {"columns": list(weighted), "annotators": int((weight_a > 0.0).sum()), "effective_annotators": effective,
            "largest_weight": float(weight_a.max()), "off": off}  # fmt: skip


def _placed(columns: Mapping[str, Any], place: Mapping[str, str]) -> pl.DataFrame:
    return pl.DataFrame(columns).with_columns(**{name: pl.lit(value) for name, value in place.items()})


def _frames(votes: Votes, rows: Rows) -> dict[str, pl.DataFrame]:
    frames = {}
    for name, parts in rows.items():
        schema = with_ids(SCHEMAS[name], item=votes.items.dtype, annotator=votes.annotators.dtype)
        if isinstance(parts[0], dict):
            parts = [pl.DataFrame(parts, schema=schema)]
        frame = pl.concat(parts).cast(dict(schema)).select(schema.names())
        frames[name] = corrected(frame) if name == "groups" else frame
    return frames


def study_sentences(frames: Mapping[str, pl.DataFrame], facts: Mapping[str, Any], interval: float) -> list[str]:
    """Say what was found, a sentence or two per comparison: what differs first, then what does not.

    Parameters
    ----------
    frames
        The tables about groups.
    facts
        What is known of the target population.
    interval
        Mass of the intervals.
    """
    differing, none = difference_sentences(frames["groups"], interval) if "groups" in frames else ([], [])
    apart, alike, target = list[str](), list[str](), facts.get("target")
    if "group_readings" in frames:
        for row in frames["group_readings"].sort(-pl.col("gain").round(9), maintain_order=True).iter_rows(named=True):
            (apart if row["reading"] == truths.PER_GROUP else alike).append(reading_sentence(row))
    sentences = [*differing, *apart, *none, *alike]
    if target is not None:
        off = f" No weights reach all shares at once: the worst is {100 * target['off']:.1f} points off."
        sentences.append(
            f"weighted to the target population by {listed(target['columns'])}, the "
            f"{many(target['annotators'], 'annotator')} are worth {target['effective_annotators']:.1f} of equal weight "
            f"(Kish); the largest weight is {target['largest_weight']:.1f}.{off * (target['off'] > 1e-4)}"
        )
    return sentences


def place_of(row: Mapping[str, Any]) -> str:
    """Name the question, its part and the label that a row is about.

    Examples
    --------
    >>> place_of({"question": "tone", "part": "", "label": "anger"}), place_of({"question": "tone", "part": "news"})
    ("on tone, 'anger'", 'on tone / news')
    """
    label = f", {row['label']!r}" if row.get("label", MEAN) != MEAN else ""
    return f"on {row['question']}{' / ' * bool(row['part'])}{row['part']}{label}"


def largest_first(groups: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of `groups`: those that differ by more than chance first, then by the size of the difference."""
    unsure, size = pl.col("p_adjusted").fill_null(2.0) >= truths.LEVEL, pl.col("difference").abs().round(9)
    return groups.sort(unsure, -size, nulls_last=True, maintain_order=True)


def difference_sentences(groups: pl.DataFrame, interval: float) -> tuple[list[str], list[str]]:
    """Say which groups differ, the largest difference first, and by which columns none do."""
    tested = groups.filter(pl.col("p_adjusted").is_not_null())
    n_tests = sum(1 if n == 2 else n for n in tested.group_by(PLACE).len()["len"])
    # Of two groups one sentence says it all: from the view of the one that says it more often.
    differing = tested.filter(
        (pl.len().over(PLACE) != 2) | (pl.col("difference") > 0), pl.col("p_adjusted") < truths.LEVEL
    )
    alike = tested.filter(~pl.col("column").is_in(differing["column"].implode()))
    largest = largest_first(alike).unique("column", keep="first", maintain_order=True)
    return (
        [_differs(row, tested, n_tests, interval) for row in largest_first(differing).iter_rows(named=True)],
        [_no_difference(row, n_tests, interval) for row in largest.iter_rows(named=True)],
    )


def _differs(row: Mapping[str, Any], tested: pl.DataFrame, n_tests: int, interval: float) -> str:
    rows = tested.filter(pl.col("group") != row["group"], **{name: row[name] for name in PLACE})
    against = repr(rows["group"][0]) if rows.height == 1 else "the others"
    often, high = ("more often", "higher") if row["difference"] > 0 else ("less often", "lower")
    verb = f"rate {high}" if row["label"] == MEAN else f"vote {row['label']!r} {often}"
    gap, ends = _gap(row)
    corrected = f" after correction for {n_tests} comparisons" if n_tests > 1 else ""
    return (
        f"{place_of({**row, 'label': MEAN})}, by {row['column']}, {row['group']!r} {verb} than {against}: {gap} on the "
        f"same items ({interval:.0%} interval {ends}; p {_p(row['p_adjusted'])}{corrected})."
    )


def _gap(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a difference and its interval as they are shown: of ratings as they are, else in points."""
    scale, digits, unit = (1, 2, "") if row["label"] == MEAN else (100, 1, " points")
    gap, low, high = (scale * row[name] for name in ("difference", "low", "high"))
    return f"{gap:+z.{digits}f}{unit}", f"{low:z.{digits}f} to {high:z.{digits}f}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _no_difference(row: Mapping[str, Any], n_tests: int, interval: float) -> str:
    gap, ends = _gap(row)
    return (
        f"by {row['column']}, no difference is larger than chance would make it ({many(n_tests, 'comparison')} in all)"
        f". The largest: {place_of(row)}, {row['group']!r}, {gap} ({interval:.0%} interval {ends})."
    )


def reading_sentence(row: Mapping[str, Any]) -> str:
    """Say in words which reading the votes support."""
    if row["reading"] == truths.ONE_TRUTH:
        sentence = "the votes support one truth for all groups: where these differ, it is in how readily they say it."
    elif row["reading"] == truths.CANNOT_TELL:
        sentence = "the votes cannot tell one truth from a truth per group."
    else:
        parting = "" if row["parting"] is None else f" Their labels differ on {row['parting']:.0%} of the items."
        sentence = (
            "the votes support a truth per group: a left-out annotator is predicted better from the votes of the same "
            f"group ({row['gain']:.1f} nats, p {_p(row['gain_p'])}).{parting} One label for all would hide that."
        )
    return f"{place_of(row)}, by {row['column']}, {sentence}"
