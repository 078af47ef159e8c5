"""Near-copies: annotators whose votes follow another's, found from the votes alone.

Runs before the fit, since a fit believes whoever agrees most: two copies look perfect to it and everyone else wrong.
Takes `Patterns`, returns groups; `counted_once` then lets every group vote as one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr, rel_entr

from moral_entropy.consensus.counted_once import group_votes, with_votes
from moral_entropy.consensus.dependence import PairSums
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.strengths import (
    CUT,
    STRONGEST,
    Agreements,
    agreement,
    agreement_pairs,
    deviation,
    fit_strength,
    residual_correlation,
)
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

NEARLY_ONE = 0.8
"""Correlation from which annotators who all agree with each other may be copies though they are most of a panel."""

STRANGE_PAIRS = 2
"""Pairs of others that must look unlikely together, and no longer do once such annotators are taken for copies."""


@dataclass(frozen=True, eq=False)
class NearCopies:
    """Who copies whom. Axis: **a** annotator.

    Parameters
    ----------
    group_a
        Number of each annotator's group, from 0 on; most are alone in theirs.
    strength_a
        Correlation of each annotator's votes with what the votes of all have in common; 0 where nobody shares enough
        items. The strongest of a group stands for it.
    """

    group_a: Ints
    strength_a: Floats

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
    alike_p = _alike(pairs, agreements, strength_a, bar, least_items)
    group_a = _joined(np.arange(n_annotators) if together_a is None else together_a, pairs, alike_p)
    for _ in range(MOST_ROUNDS):
        grown_a = _grow(patterns, group_a, strength_a, bar, least_items)
        if grown_a.max(initial=-1) == group_a.max(initial=-1):
            break
        group_a = grown_a
    return NearCopies(group_a, strength_a)


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
    strange = int((deviation(others, correlation_p, strength_a) > CUT).sum())
    if not inside_p.any() or strange < STRANGE_PAIRS:
        return strength_a
    beside_a = fit_strength(others, correlation_p)
    still = int((deviation(others, correlation_p, beside_a) > CUT).sum())
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


def _alike(
    pairs: PairSums,
    agreements: Agreements,
    strength_a: Floats,
    bar: float,
    least_items: float,
    false_share: float = FALSE_SHARE,
) -> NDArray[np.bool_]:
    """Tell which pairs are near-copies: above the bar, with enough items, and surely."""
    above_p = residual_correlation(pairs, agreements.correlation_p, strength_a) > bar
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
    votes = group_votes(patterns, group_a, strength_a)
    place_g = np.full(int(group_a.max()) + 1, -1)
    place_g[several] = patterns.n_annotators + np.arange(len(several))
    code_g = (place_g[votes.group_g] * patterns.n_labels + votes.label_g).astype(np.int32)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    codes = (np.concatenate([row_v, votes.row_g]), np.concatenate([patterns.code_v, code_g]))
    return replace(with_votes(patterns, *codes), n_annotators=patterns.n_annotators + len(several))


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
