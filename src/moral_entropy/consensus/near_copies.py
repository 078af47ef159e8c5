"""Near-copies: annotators whose votes follow another's, found from the votes alone and counted as one.

Runs before the fit, since a fit believes whoever agrees most: two copies look perfect to it and everyone else wrong.
Takes `Patterns`, returns groups and the votes with every group as one annotator; afterwards, from a fit of those, the
confusion rows of the members who no longer vote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr, rel_entr

from moral_entropy.consensus import dependence_kernels as kernels
from moral_entropy.consensus.dependence import LEAST_ITEMS, PairSums, list_pairs, votes_by_annotator
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Floats, Ints

BAR = 0.45
"""Residual correlation from which two annotators are near-copies."""

MANY, JOINS, JOIN_FALSE_SHARE = 5, 2 / 3, 0.01
"""Members from which a group is sure of what it copies; the part of the bar that a single annotator needs to join it,
and the expected share of false ones among those who do."""

COPY_ITEMS = 30
"""Items that near-copies must share."""

AGREED = 0.8
"""Share of those items on which they must say the same: weak annotators with a common habit are no copies."""

FALSE_SHARE = 0.001
"""Expected share of independent pairs among the pairs called near-copies (Benjamini and Hochberg)."""

MOST_ROUNDS = 10
"""Rounds in which groups of copies may grow."""

STARTS = (0.5, 0.25, 0.0)
"""Quantiles of an annotator's correlations with the others from which the search for their strength begins."""

STEPS, PLAIN_STEPS = 60, 20
"""Steps of that search, and how many of them look at all pairs alike before outlying pairs are set aside."""

CUT = 4.0
"""Standard errors beyond which a pair is outlying."""

FEW = 6
"""Annotators up to which pairs are refitted one by one."""

STRONGEST = 0.995
ROW_STEPS = 100

NEARLY_ONE = 0.8
"""Correlation from which annotators who all agree with each other may be copies though they are most of a panel."""

STRANGE_PAIRS = 2
"""Pairs of others that must look unlikely together, and no longer do once such annotators are taken for copies."""


class Agreements(NamedTuple):
    """How every pair of annotators agrees. Axis: **p** pair."""

    agreed_p: Floats
    chance_p: Floats
    spread_p: Floats
    correlation_p: Floats


@dataclass(frozen=True, eq=False)
class NearCopies:
    """Who copies whom. Axes: **a** annotator, **p** pair.

    Parameters
    ----------
    group_a
        Number of each annotator's group, from 0 on; most are alone in theirs.
    strength_a
        Correlation of each annotator's votes with what the votes of all have in common; 0 where nobody shares enough
        items. The strongest of a group stands for it.
    first_p, second_p, shared_p, residual_p
        The pairs above the bar: annotators, items shared, residual correlation.
    """

    group_a: Ints
    strength_a: Floats
    first_p: Ints
    second_p: Ints
    shared_p: Floats
    residual_p: Floats

    @property
    def any(self) -> bool:
        """Whether anybody is to be counted with another."""
        return int(self.group_a.max(initial=-1)) + 1 < len(self.group_a)

    @property
    def groups(self) -> list[Ints]:
        """The groups of two or more, largest first; within a group the strongest first."""
        by_strength_a = np.argsort(-tie_key(self.strength_a), kind="stable")
        size_g = np.bincount(self.group_a)
        several = np.argsort(-size_g, kind="stable")[: int((size_g > 1).sum())]
        return [by_strength_a[self.group_a[by_strength_a] == g] for g in several]


def find_near_copies(
    patterns: Patterns, *, bar: float = BAR, least_items: float = COPY_ITEMS, together_a: Ints | None = None
) -> NearCopies:
    """Find the annotators whose votes follow each other beyond what the truth explains.

    The agreement of two annotators beyond chance, as a correlation R_jl, is a_j a_l where votes are independent given
    the item (exactly for two labels, and for more where errors are spread alike); strengths a are fitted to all pairs
    in absolute deviations, pairs that lie far off set aside; where copies are most of a panel see
    `strength_beside_copies`. A pair's residual correlation is
    (R_jl - a_j a_l) / √((1 - a_j²)(1 - a_l²)). Near-copies have one above the bar, share enough items, agree on four
    out of five of them (`AGREED`), and too often for chance. Then every group's most frequent vote is held against all
    other annotators in the same way, as it has less noise than any member's, and who is above the bar joins.

    Parameters
    ----------
    patterns
        The votes.
    bar, least_items
        Residual correlation and shared items that make two annotators near-copies.
    together_a
        Groups that are known beforehand: annotators with the same number are one.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> patterns = collapse(simulate_votes(n_items=400, n_annotators=6, votes_per_item=5).votes.ballots[0])
    >>> find_near_copies(patterns).any
    False
    """
    n_annotators = patterns.n_annotators
    pairs = agreement_pairs(patterns)
    agreements = agreement(pairs, patterns.n_labels)
    strength_a = strength_beside_copies(pairs, agreements, least_items)
    residual_p = residual_correlation(pairs, agreements, strength_a)
    alike_p = _alike(pairs, agreements, strength_a, bar, least_items)
    group_a = _joined(np.arange(n_annotators) if together_a is None else together_a, pairs, alike_p)
    for _ in range(MOST_ROUNDS):
        grown_a = _grow(patterns, group_a, strength_a, bar, least_items)
        if grown_a.max(initial=-1) == group_a.max(initial=-1):
            break
        group_a = grown_a
    found = pairs.take(alike_p)
    return NearCopies(group_a, strength_a, found.first_p, found.second_p, found.shared_p, residual_p[alike_p])


def strength_beside_copies(pairs: PairSums, agreements: Agreements, least_items: float) -> Floats:
    """Fit the strengths of annotators where copies may be most of the panel: `strength_a`.

    Annotators who all but repeat each other look strong, and everybody else weak. If they are no copies, the others are
    independent given the truth too. So where pairs of others lie far off that fit, strengths are fitted again without
    the pairs inside such groups, and kept if that explains the pairs of others. Votes alone cannot tell this from
    several excellent annotators among weak ones who share their errors: copies are taken for the likelier reason.
    """
    strength_a = fit_strength(pairs, agreements.correlation_p)
    inside_p = _nearly_one(pairs, agreements, least_items)
    others, correlation_p = pairs.take(~inside_p), agreements.correlation_p[~inside_p]
    strange = int((_deviation(others, correlation_p, strength_a) > CUT).sum())
    if not inside_p.any() or strange < STRANGE_PAIRS:
        return strength_a
    beside_a = fit_strength(others, correlation_p)
    still = int((_deviation(others, correlation_p, beside_a) > CUT).sum())
    return beside_a if still <= strange - STRANGE_PAIRS else strength_a


def _nearly_one(pairs: PairSums, agreements: Agreements, least_items: float) -> NDArray[np.bool_]:
    """Tell which pairs are inside groups whose members all nearly repeat each other."""
    near_p = (agreements.correlation_p >= NEARLY_ONE) & (agreements.agreed_p >= AGREED)
    near_p &= pairs.shared_p >= least_items
    group_a = _joined(np.arange(pairs.n_annotators), pairs, near_p)
    inside_p = group_a[pairs.first_p] == group_a[pairs.second_p]
    loose_g = np.zeros(pairs.n_annotators, dtype=np.bool_)
    loose_g[group_a[pairs.first_p[inside_p & ~near_p]]] = True
    return np.asarray(inside_p & ~loose_g[group_a[pairs.first_p]])


def _deviation(pairs: PairSums, correlation_p: Floats, strength_a: Floats) -> Floats:
    """Return how many standard errors each pair's correlation is off the strengths."""
    fitted_p = strength_a[pairs.first_p] * strength_a[pairs.second_p]
    return np.asarray(np.abs(correlation_p - fitted_p) * np.sqrt(pairs.shared_p) / (1.0 - fitted_p**2))


def agreement_pairs(patterns: Patterns, *, least_items: float = LEAST_ITEMS) -> PairSums:
    """Add up, for every pair of annotators, agreements and each one's votes by label on the items they share."""
    votes = votes_by_annotator(patterns)
    pairs = list_pairs(patterns, votes, n_sums=1 + 2 * patterns.n_labels, least_items=least_items)
    kernels.add_agreement(
        patterns.start_r, patterns.code_v, patterns.weight_r, patterns.n_labels, *votes,
        pairs.first_p, pairs.second_p, np.full(patterns.n_annotators, -1), pairs.sums_px,
    )  # fmt: skip
    return pairs


def agreement(pairs: PairSums, n_labels: int) -> Agreements:
    """Compute each pair's agreement beyond chance, as a correlation.

    Examples
    --------
    Ten items, agreement on nine, both say each label equally often:

    >>> sums_px = np.array([[9.0, 5.0, 5.0, 5.0, 5.0]])
    >>> pairs = PairSums(2, np.array([0]), np.array([1]), np.array([10.0]), sums_px)
    >>> agreement(pairs, 2).correlation_p
    array([0.8])
    """
    share_px = pairs.sums_px / np.maximum(pairs.shared_p, 1e-300)[:, None]
    agreed_p, one_pv, other_pv = share_px[:, 0], share_px[:, 1 : 1 + n_labels], share_px[:, 1 + n_labels :]
    chance_p = (one_pv * other_pv).sum(axis=1)
    spread_p = np.sqrt(np.maximum((1 - (one_pv**2).sum(axis=1)) * (1 - (other_pv**2).sum(axis=1)), 0.0))
    # Whoever says the same on all items correlates with nobody.
    told_p = spread_p > 1e-9
    correlation_p = np.where(told_p, (agreed_p - chance_p) / np.where(told_p, spread_p, 1.0), 0.0)
    return Agreements(agreed_p, chance_p, spread_p, correlation_p.clip(-1.0, 1.0))


def fit_strength(pairs: PairSums, correlation_p: Floats) -> Floats:
    """Fit R_jl ≈ a_j a_l in absolute deviations, and set outlying pairs aside: `strength_a`.

    Several starts; of the fits the one with the least cost is kept (`_cost`): two copies then cost one pair, while
    calling them perfect costs all pairs of others. Of few annotators some pairs can be fitted in more than one way.
    """
    best_a, least = np.zeros(pairs.n_annotators), np.inf
    if not pairs.n_pairs:
        return best_a
    for quantile in STARTS:
        strength_a = _descend(pairs, correlation_p, _start(pairs, correlation_p, quantile))
        if (cost := _cost(pairs, correlation_p, strength_a)) < least - 1e-6:
            best_a, least = strength_a, cost
    from_a = best_a
    for p in range(pairs.n_pairs if pairs.n_annotators <= FEW else 0):
        # Outlying pairs are set aside from the beginning: plain deviations would lead back.
        strength_a = _descend(pairs, correlation_p, _rescaled(pairs, correlation_p, from_a, p), plain_steps=0)
        if (cost := _cost(pairs, correlation_p, strength_a)) < least - 1e-6:
            best_a, least = strength_a, cost
    return best_a


def _descend(pairs: PairSums, correlation_p: Floats, strength_a: Floats, plain_steps: int = PLAIN_STEPS) -> Floats:
    """Move each strength in turn to where the deviations of its pairs are least."""
    root_p, nearest = np.sqrt(pairs.shared_p), 0.2
    for step in range(STEPS):
        strength_a = kernels.rank_one_step(
            pairs.first_p, pairs.second_p, root_p, correlation_p, CUT / root_p, strength_a, nearest, step >= plain_steps
        )
        nearest = max(0.9 * nearest, 0.01)
    return strength_a


def _cost(pairs: PairSums, correlation_p: Floats, strength_a: Floats) -> float:
    """Add up the deviations in standard errors, those of outlying pairs only so far.

    An outlying pair costs the less the more it looks like two copies: `CUT` standard errors where all of their
    correlation is their own, twice that where hardly any is, since then nothing explains the pair.
    """
    one_p, other_p = strength_a[pairs.first_p], strength_a[pairs.second_p]
    fitted_p = one_p * other_p
    deviation_p = np.abs(correlation_p - fitted_p) * np.sqrt(pairs.shared_p) / (1.0 - fitted_p**2)
    own_p = (correlation_p - fitted_p) / np.sqrt((1.0 - one_p**2) * (1.0 - other_p**2))
    return float(np.minimum(deviation_p, CUT * (2.0 - own_p.clip(0.0, 1.0))).sum())


def _rescaled(pairs: PairSums, correlation_p: Floats, strength_a: Floats, p: int) -> Floats:
    """Scale two annotators so that their pair is fitted, and all others the opposite way.

    What the two have in common with the others stays. Moving one strength at a time never gets there.
    """
    two = np.array([pairs.first_p[p], pairs.second_p[p]])
    product = float(strength_a[two].prod())
    if product * correlation_p[p] <= 0.0:
        return strength_a
    scale = np.sqrt(correlation_p[p] / product)
    rescaled_a = strength_a / scale
    rescaled_a[two] = strength_a[two] * scale
    return np.asarray(rescaled_a.clip(-STRONGEST, STRONGEST))


def _start(pairs: PairSums, correlation_p: Floats, quantile: float) -> Floats:
    """Begin with the root of a quantile of each annotator's correlations; 0 for those without any."""
    end_q = np.concatenate([pairs.first_p, pairs.second_p])
    sorted_q = np.tile(correlation_p, 2)[np.lexsort((np.tile(correlation_p, 2), end_q))]
    degree_a = np.bincount(end_q, minlength=pairs.n_annotators)
    has_a = degree_a > 0
    at_a = (np.cumsum(degree_a) - degree_a + np.floor(quantile * (degree_a - 1)).astype(np.int64))[has_a]
    strength_a = np.zeros(pairs.n_annotators)
    strength_a[has_a] = np.sqrt(sorted_q[at_a].clip(0.01, 0.98))
    return strength_a


def residual_correlation(pairs: PairSums, agreements: Agreements, strength_a: Floats) -> Floats:
    """Compute what correlation is left between two annotators beyond their strengths, as a partial correlation."""
    one_p, other_p = strength_a[pairs.first_p], strength_a[pairs.second_p]
    left_p = np.sqrt((1.0 - one_p**2) * (1.0 - other_p**2))
    return np.asarray(((agreements.correlation_p - one_p * other_p) / left_p).clip(-1.0, 1.0))


def _alike(
    pairs: PairSums,
    agreements: Agreements,
    strength_a: Floats,
    bar: float,
    least_items: float,
    false_share: float = FALSE_SHARE,
) -> NDArray[np.bool_]:
    """Tell which pairs are near-copies: above the bar, with enough items, and surely."""
    above_p = residual_correlation(pairs, agreements, strength_a) > bar
    expected_p = strength_a[pairs.first_p] * strength_a[pairs.second_p] * agreements.spread_p + agreements.chance_p
    expected_p = expected_p.clip(1e-6, 1.0 - 1e-6)
    agreed_p = agreements.agreed_p.clip(0.0, 1.0)
    # Twice the log-likelihood ratio of the agreement found and expected is a squared z.
    nats_p = rel_entr(agreed_p, expected_p) + rel_entr(1.0 - agreed_p, 1.0 - expected_p)
    nats_p = pairs.shared_p * np.maximum(nats_p, 0.0)
    chance_p = np.where(agreed_p > expected_p, ndtr(-np.sqrt(2.0 * nats_p)), 1.0)
    return above_p & (agreed_p >= AGREED) & (pairs.shared_p >= least_items) & _surely(chance_p, false_share)


def _surely(chance_p: Floats, false_share: float) -> NDArray[np.bool_]:
    """Tell which pairs keep the expected share of false ones below this."""
    n_pairs = len(chance_p)
    order_p = np.argsort(chance_p, kind="stable")
    below = np.flatnonzero(chance_p[order_p] <= false_share * np.arange(1, n_pairs + 1) / max(n_pairs, 1))
    surely_p = np.zeros(n_pairs, dtype=np.bool_)
    surely_p[order_p[: below[-1] + 1 if len(below) else 0]] = True
    return surely_p


def _joined(group_a: Ints, pairs: PairSums, alike_p: NDArray[np.bool_]) -> Ints:
    """Join the groups of pairs that are alike; the ends of pairs are annotators."""
    _, group_a = np.unique(group_a, return_inverse=True)
    n_groups = int(group_a.max(initial=-1)) + 1
    ends = (group_a[pairs.first_p[alike_p]], group_a[pairs.second_p[alike_p]])
    links = coo_array((np.ones(len(ends[0])), ends), shape=(n_groups, n_groups))
    return np.asarray(connected_components(links, directed=False)[1][group_a], dtype=np.int64)


def _grow(patterns: Patterns, group_a: Ints, strength_a: Floats, bar: float, least_items: float) -> Ints:
    """Add to every group of several the single annotators, and other groups, that follow its most frequent vote.

    A group of many is surer of what it copies than two annotators can be: a lower bar will do for one who joins it.
    """
    size_g = np.bincount(group_a)
    several = np.flatnonzero(size_g > 1)
    if not len(several):
        return group_a
    n_annotators = patterns.n_annotators
    pairs = agreement_pairs(_with_groups(patterns, group_a, strength_a, several))
    own_b = np.concatenate([group_a, several])
    pairs = pairs.take((pairs.second_p >= n_annotators) & (own_b[pairs.first_p] != own_b[pairs.second_p]))
    agreements = agreement(pairs, patterns.n_labels)
    strength_b = np.concatenate(
        [strength_a, _group_strength(pairs, agreements.correlation_p, strength_a, len(several))]
    )
    single_b = np.append(size_g[group_a] == 1, np.zeros(len(several), dtype=np.bool_))
    joins_p = single_b[pairs.first_p] & (size_g[own_b[pairs.second_p]] >= MANY)
    # Members of other groups are in their groups' votes already: to ask each of them would only add false ones.
    others_p = ~joins_p & (single_b[pairs.first_p] | (pairs.first_p >= n_annotators))
    alike_p = np.zeros(pairs.n_pairs, dtype=np.bool_)
    for asked_p, least, false_share in ((joins_p, JOINS * bar, JOIN_FALSE_SHARE), (others_p, bar, FALSE_SHARE)):
        found = Agreements(*(column_p[asked_p] for column_p in agreements))
        alike_p[asked_p] = _alike(pairs.take(asked_p), found, strength_b, least, least_items, false_share)
    return _joined(own_b, pairs, alike_p)[:n_annotators]


def _with_groups(patterns: Patterns, group_a: Ints, strength_a: Floats, several: Ints) -> Patterns:
    """Add the vote of each group of several as that of a further annotator; the members keep theirs."""
    votes = _group_votes(patterns, group_a, strength_a)
    place_g = np.full(int(group_a.max()) + 1, -1)
    place_g[several] = patterns.n_annotators + np.arange(len(several))
    code_g = (place_g[votes.group_g] * patterns.n_labels + votes.label_g).astype(np.int32)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    codes = (np.concatenate([row_v, votes.row_g]), np.concatenate([patterns.code_v, code_g]))
    return replace(_with_votes(patterns, *codes), n_annotators=patterns.n_annotators + len(several))


def _group_strength(pairs: PairSums, correlation_p: Floats, strength_a: Floats, n_groups: int) -> Floats:
    """Fit the strength of each group's vote to its correlations with annotators outside: a weighted median."""
    n_annotators = len(strength_a)
    outside_p = np.flatnonzero(pairs.first_p < n_annotators)
    one_p = strength_a[pairs.first_p[outside_p]]
    # |R - a_j a| summed over j is least at the median of R / a_j, weighted with a_j.
    weight_p = np.abs(one_p) * np.sqrt(pairs.shared_p[outside_p])
    ratio_p = correlation_p[outside_p] / np.where(np.abs(one_p) < 0.05, 0.05, one_p)
    strength_g = np.zeros(n_groups)
    for g in range(n_groups):
        mine = np.flatnonzero(pairs.second_p[outside_p] == n_annotators + g)
        mine = mine[np.argsort(ratio_p[mine], kind="stable")]
        if len(mine):
            passed = np.cumsum(weight_p[mine])
            strength_g[g] = ratio_p[mine[np.searchsorted(passed, passed[-1] / 2)]]
    return strength_g.clip(-STRONGEST, STRONGEST)


# --- Groups counted as one -----------------------------------------------------------------------------------------


class _GroupVotes(NamedTuple):
    row_g: Ints
    group_g: Ints
    label_g: Ints


def count_once(patterns: Patterns, group_a: Ints, rank_a: Floats) -> Patterns:
    """Let every group of annotators vote as one: its most frequent vote, of equally frequent ones the best-ranked's.

    The vote goes to the best-ranked member of the group, on all rows on which any member voted; the others then have no
    vote. Annotators, rows, weights and items stay, so that two rows may become alike.

    Parameters
    ----------
    patterns
        The votes.
    group_a
        Annotators with the same number are one.
    rank_a
        The higher, the better: strength, or Youden index.

    Examples
    --------
    Annotators 0 and 2 are one, and 2 is the better:

    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 0, 0], "annotator_v": [0, 1, 2], "label_v": [0, 0, 1]}
    >>> once = count_once(collapse(ballot_from_codes("q", ("0", "1"), **votes)), np.array([0, 1, 0]), np.arange(3.0))
    >>> [divmod(code, 2) for code in once.code_v.tolist()]
    [(1, 0), (2, 1)]
    """
    size_g = np.bincount(group_a)
    if not (size_g > 1).any():
        return patterns
    annotator_v = patterns.code_v // patterns.n_labels
    alone_v = size_g[group_a[annotator_v]] == 1
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    votes = _group_votes(patterns, group_a, rank_a)
    best_g = np.zeros(len(size_g), dtype=np.int64)
    by_rank_a = np.argsort(-tie_key(rank_a), kind="stable")[::-1]
    best_g[group_a[by_rank_a]] = by_rank_a
    code_g = (best_g[votes.group_g] * patterns.n_labels + votes.label_g).astype(np.int32)
    rows, codes = (row_v[alone_v], votes.row_g), (patterns.code_v[alone_v], code_g)
    return _with_votes(patterns, np.concatenate(rows), np.concatenate(codes))


def _group_votes(patterns: Patterns, group_a: Ints, rank_a: Floats) -> _GroupVotes:
    """Find the vote of every group of several on each row on which a member voted."""
    size_g = np.bincount(group_a)
    annotator_v, label_v = np.divmod(patterns.code_v.astype(np.int64), patterns.n_labels)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    kept_v = size_g[group_a[annotator_v]] > 1
    place_a = np.empty(len(group_a), dtype=np.int64)
    place_a[np.argsort(-tie_key(rank_a), kind="stable")] = np.arange(len(group_a))
    place_v, group_v = place_a[annotator_v], group_a[annotator_v]
    order_w = np.flatnonzero(kept_v)
    order_w = order_w[np.lexsort((place_v[order_w], label_v[order_w], group_v[order_w], row_v[order_w]))]
    row_w, group_w, label_w, place_w = row_v[order_w], group_v[order_w], label_v[order_w], place_v[order_w]
    # Votes of one group on one row for one label stand together, the best-ranked voter's first.
    first = np.flatnonzero(_changes(row_w, group_w, label_w))
    times = np.diff(np.append(first, len(row_w)))
    best = np.lexsort((place_w[first], -times, group_w[first], row_w[first]))
    chosen = first[best][_changes(row_w[first[best]], group_w[first[best]])]
    return _GroupVotes(row_w[chosen], group_w[chosen], label_w[chosen])


def _changes(*columns: Ints) -> NDArray[np.bool_]:
    """Tell where any of several sorted columns has another value than the row before."""
    changes = np.ones(len(columns[0]), dtype=np.bool_)
    changes[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return changes


def _with_votes(patterns: Patterns, row_v: Ints, code_v: Ints) -> Patterns:
    order_v = np.lexsort((code_v, row_v))
    votes_r = np.bincount(row_v, minlength=patterns.n_rows)
    start_r = np.concatenate([[0], np.cumsum(votes_r)]).astype(np.int64)
    return replace(patterns, start_r=start_r, code_v=code_v[order_v].astype(np.int32))


# --- Confusion rows of the members who were not counted ------------------------------------------------------------


class CopiedRows(NamedTuple):
    """Confusion rows of annotators who had no vote in a fit. Axes: **a** annotator, true **k**, **v**oted, **s** draw.

    Dirichlet distributed with `counts_akv`; `mean_akv` is their mean.
    """

    counts_akv: Floats
    mean_akv: Floats
    draw_sakv: Floats


def votes_by_state(patterns: Patterns, posterior_rz: Floats, annotators: Ints) -> Floats:
    """Add up the votes of some annotators by label voted and state of the item: `seen_avz`.

    Parameters
    ----------
    patterns
        All votes.
    posterior_rz
        Posterior of the states by row.
    annotators
        Whose votes, as numbers in `patterns`.
    """
    n_labels, n_states = patterns.n_labels, posterior_rz.shape[1]
    annotator_v, label_v = np.divmod(patterns.code_v.astype(np.int64), n_labels)
    place_a = np.full(patterns.n_annotators, -1)
    place_a[annotators] = np.arange(len(annotators))
    mine_v = np.flatnonzero(place_a[annotator_v] >= 0)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))[mine_v]
    seen_cz = np.zeros((len(annotators) * n_labels, n_states))
    code_v = place_a[annotator_v[mine_v]] * n_labels + label_v[mine_v]
    np.add.at(seen_cz, code_v, patterns.weight_r[row_v, None] * posterior_rz[row_v])
    return seen_cz.reshape(-1, n_labels, n_states)


def rows_from_votes(
    seen_avz: Floats, mix_zk: Floats, beta_akv: Floats, *, draws: int = 0, rng: np.random.Generator | int = 0
) -> CopiedRows:
    """Estimate the confusion rows of annotators who were counted with others, given the posterior of a fit without.

    Parameters
    ----------
    seen_avz
        Their votes by label voted and state of the item: see `votes_by_state`.
    mix_zk
        Mix of labels of every state; the unit matrix where states are labels.
    beta_akv
        Dirichlet prior of these annotators' rows.
    draws, rng
        How many draws, and of what; they do not hold the doubt about the posterior.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> votes = {"item_v": [0, 1, 2], "annotator_v": [0, 0, 0], "label_v": [0, 0, 1]}
    >>> seen_avz = votes_by_state(collapse(ballot_from_codes("q", ("0", "1"), **votes)), np.eye(2), np.array([0]))
    >>> rows_from_votes(seen_avz, np.eye(2), np.ones((1, 2, 2))).counts_akv
    array([[[3., 1.],
            [1., 2.]]])
    """
    counts_akv = _expected_counts(seen_avz, mix_zk, beta_akv)
    gamma_sakv = np.random.default_rng(rng).standard_gamma(counts_akv, size=(draws, *counts_akv.shape))
    mean_akv = counts_akv / counts_akv.sum(axis=-1, keepdims=True)
    return CopiedRows(counts_akv, mean_akv, gamma_sakv / gamma_sakv.sum(axis=-1, keepdims=True))


def _expected_counts(seen_avz: Floats, mix_zk: Floats, beta_akv: Floats) -> Floats:
    """Share out the votes seen in each state among the labels that it mixes, by EM."""
    confusion_akv = beta_akv / beta_akv.sum(axis=-1, keepdims=True)
    counts_akv = beta_akv
    for _ in range(ROW_STEPS):
        vote_azv = np.einsum("zk,akv->azv", mix_zk, confusion_akv)
        counts_akv = beta_akv + confusion_akv * np.einsum("avz,zk,azv->akv", seen_avz, mix_zk, 1.0 / vote_azv)
        confusion_akv = counts_akv / counts_akv.sum(axis=-1, keepdims=True)
    return np.asarray(counts_akv)
