"""Who errs together: judges who give the same wrong answers on items with known answers, beyond what chance explains.

Votes alone cannot show it where such judges are most of a panel; known answers can. Takes votes and known answers,
returns groups; `recount` then lets every group vote as one. Axes: **j** judge, **l** another judge, **i** item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from moral_entropy.consensus.near_copies import BAR, JOINS, NEARLY_ONE
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

FEWEST_KNOWN = 30
"""Known answers that two judges must share to be compared."""

FEWEST_SAME = 5
"""Same wrong answers that two judges must have given at least."""

FALSE_ALARM = 0.01
"""Probability that any two of a panel of independent judges are said to err together."""

SEVERAL = 3
"""Judges from which a group is sure of what its members have in common: less will do for others to join it."""

USUAL = 1 / 3
"""Quantile of the other judges that tells how strongly errors go together in the whole panel."""

SHARED_BY_ALL, SURELY = 0.2, 3.0
"""Correlation of the errors of most pairs from which all judges are said to err on the same items, and how many
standard errors the same wrong answers of all pairs must be too many by."""

DENIED = 0.05
"""Chance of so few same wrong answers of near-copies at which known answers deny that judges are any."""

BISECTIONS = 60


@dataclass(frozen=True)
class ErrGroup:
    """Judges who err together.

    Parameters
    ----------
    judges
        Who, by position, ascending.
    n_known
        Known answers that two of them share, on average.
    same, expected
        On how many of those two of them give the same wrong answer, on average, and on how many independent judges who
        err as often would.
    """

    judges: tuple[int, ...]
    n_known: float
    same: float
    expected: float


@dataclass(frozen=True, eq=False)
class PairErrors:
    """Same wrong answers of every two judges. Axes: **j**, **l** judges, **c** known answer and wrong label.

    Parameters
    ----------
    shared_cjl
        Known answers that both voted on, by answer.
    wrong_cjl
        How many of these the first judge called by the wrong label.
    same_jl
        On how many items both gave the same wrong answer.
    """

    shared_cjl: Floats
    wrong_cjl: Floats
    same_jl: Floats

    @property
    def expected_cjl(self) -> Floats:
        """Same wrong answers of independent judges who err as often as these two."""
        return np.asarray(self.wrong_cjl * self.wrong_cjl.transpose(0, 2, 1) / np.maximum(self.shared_cjl, 1.0))

    @property
    def spread_cjl(self) -> Floats:
        """Sum of squares of the first judge's wrong answers about their mean."""
        return np.asarray(self.wrong_cjl * (1.0 - self.wrong_cjl / np.maximum(self.shared_cjl, 1.0)))

    @property
    def variance_jl(self) -> Floats:
        """Variance of the same wrong answers of independent judges, given how often each errs."""
        product_cjl = self.spread_cjl * self.spread_cjl.transpose(0, 2, 1)
        return np.asarray((product_cjl / np.maximum(self.shared_cjl - 1.0, 1.0)).sum(axis=0))

    @property
    def scale_jl(self) -> Floats:
        """What the same wrong answers beyond the expected ones are divided by to be a correlation."""
        spread_jl = self.spread_cjl.sum(axis=0)
        return np.asarray(np.sqrt(spread_jl * spread_jl.T))

    @property
    def correlation_jl(self) -> Floats:
        """Correlation of the errors of two judges given the known answer; 0 for a judge with itself."""
        beyond_jl = self.same_jl - self.expected_cjl.sum(axis=0)
        found_jl = np.where(self.scale_jl > 1e-9, beyond_jl / np.maximum(self.scale_jl, 1e-9), 0.0)
        np.fill_diagonal(found_jl, 0.0)
        return found_jl

    def chances(self, j: int, other: int, usual: float) -> tuple[Ints, Floats]:
        """Return how many same wrong answers there may be, and the chance of each where errors go together as usual.

        Given how often both err, the same wrong answers of independent judges are hypergeometric for every known answer
        and wrong label; where errors are correlated, they are Fisher's noncentral ones.
        """
        first, mass_x = 0, np.ones(1)
        for n, a, b in zip(self.shared_cjl[:, j, other], self.wrong_cjl[:, j, other], self.wrong_cjl[:, other, j],
                           strict=True):  # fmt: skip
            least, mass = _hypergeometric(int(n), int(a), int(b))
            first, mass_x = first + least, np.convolve(mass_x, mass)
        same_x = first + np.arange(len(mass_x))
        if usual > 0.0:
            mean = float(self.expected_cjl[:, j, other].sum()) + usual * float(self.scale_jl[j, other])
            mass_x = _tilted(mass_x, same_x, mean)
        return same_x, mass_x

    def chance(self, j: int, other: int, usual: float) -> float:
        """Return how probable as many same wrong answers or more are where errors go together as usual."""
        same_x, mass_x = self.chances(j, other, usual)
        return float(mass_x[same_x >= self.same_jl[j, other]].sum())

    def denies(self, judges: Sequence[int]) -> bool:
        """Return whether known answers deny that any two of some judges are near-copies: too few same wrong answers."""
        for j, other in combinations(judges, 2):
            same_x, mass_x = self.chances(j, other, BAR)
            if float(mass_x[same_x <= self.same_jl[j, other]].sum()) > DENIED:
                return False
        return True


class CommonErrors(NamedTuple):
    """What known answers say of judges together.

    Parameters
    ----------
    groups
        Groups of judges who err together.
    shared_by_all
        Median correlation of the errors of two judges, where all of them err on the same items; else 0.
    pairs
        Same wrong answers of every two judges.
    """

    groups: tuple[ErrGroup, ...]
    shared_by_all: float
    pairs: PairErrors


def find_common_errors(vote_ji: Ints, gold_i: Ints, n_labels: int) -> CommonErrors:
    """Find the judges who give the same wrong answers on known answers.

    Of two independent judges the errors are independent given the known answer. Two groups of judges, at first of one
    each, are joined if the correlation of their errors is `BAR` or more beyond what is usual between them and the other
    judges (items that are hard for all make everybody err together), and if two of them give more of the same wrong
    answers than chance and the usual explain (`FALSE_ALARM`, shared out among all pairs). The most alike are joined
    first. A whole panel is joined only if its members all but repeat each other.

    Parameters
    ----------
    vote_ji
        Votes of the judges, or `UNKNOWN`.
    gold_i
        Known answers, or `UNKNOWN`.
    n_labels
        How many labels there are.

    Examples
    --------
    Three independent judges, and one who follows the last, but for every tenth item:

    >>> rng = np.random.default_rng(0)
    >>> truth_i = rng.integers(0, 2, 200)
    >>> vote_ji = np.array([np.where(rng.random(200) < right, truth_i, 1 - truth_i) for right in (0.9, 0.8, 0.7)])
    >>> follower_i = np.where(np.arange(200) % 10 == 0, 1 - vote_ji[2], vote_ji[2])
    >>> [found] = find_common_errors(np.vstack([vote_ji, follower_i]), truth_i, 2).groups
    >>> found.judges, found.same, round(found.expected, 1)
    ((2, 3), 51.0, 18.4)
    """
    known_i = gold_i != UNKNOWN
    pairs = count_errors(vote_ji[:, known_i], gold_i[known_i], n_labels)
    shared_jl = _known_by_pair(pairs, n_labels)
    enough_jl = shared_jl >= FEWEST_KNOWN
    correlation_jl = np.where(enough_jl, pairs.correlation_jl, 0.0)
    groups = _join(pairs, correlation_jl, enough_jl)
    return CommonErrors(
        tuple(_described(pairs, shared_jl, some) for some in groups),
        _shared_by_all(pairs, correlation_jl, enough_jl),
        pairs,
    )


def count_errors(vote_ji: Ints, gold_i: Ints, n_labels: int) -> PairErrors:
    """Count the same wrong answers of every two judges on items whose answer is known."""
    shared_cjl, wrong_cjl, same_jl = [], [], np.zeros((len(vote_ji), len(vote_ji)))
    for k in range(n_labels):
        vote_jg = vote_ji[:, gold_i == k]
        voted_jg = (vote_jg != UNKNOWN).astype(np.float64)
        for v in (v for v in range(n_labels) if v != k):
            wrong_jg = (vote_jg == v).astype(np.float64)
            shared_cjl.append(voted_jg @ voted_jg.T)
            wrong_cjl.append(wrong_jg @ voted_jg.T)
            same_jl += wrong_jg @ wrong_jg.T
    return PairErrors(np.array(shared_cjl), np.array(wrong_cjl), same_jl)


def _known_by_pair(pairs: PairErrors, n_labels: int) -> Floats:
    """Count the known answers that two judges share; every one is there once per wrong label."""
    shared_jl = pairs.shared_cjl.sum(axis=0) / max(n_labels - 1, 1)
    np.fill_diagonal(shared_jl, 0.0)
    return np.asarray(shared_jl)


def _hypergeometric(n: int, a: int, b: int) -> tuple[int, Floats]:
    """Return the least number of items that a random a and a random b of n have in common, and the chances from it."""
    least, most = max(0, a + b - n), min(a, b)
    x = np.arange(least, most + 1)
    log_x = _log_choose(a, x) + _log_choose(n - a, b - x) - _log_choose(n, b)
    return least, np.asarray(np.exp(log_x))


def _log_choose(n: int, k: Ints | int) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1))


def _tilted(mass_x: Floats, same_x: Ints, mean: float) -> Floats:
    """Tilt chances until their mean is this: c · mass · exp(θ x)."""
    low, high = 0.0, 30.0
    log_x = np.log(np.maximum(mass_x, 1e-300))
    for _ in range(BISECTIONS):
        theta = (low + high) / 2
        tilted_x = log_x + theta * same_x
        mass_x = np.exp(tilted_x - tilted_x.max())
        mass_x /= mass_x.sum()
        low, high = (theta, high) if float(mass_x @ same_x) < mean else (low, theta)
    return np.asarray(mass_x)


def _join(pairs: PairErrors, correlation_jl: Floats, enough_jl: NDArray[np.bool_]) -> list[Ints]:
    """Join judges into groups, the most alike first; return those of several."""
    n_judges = len(correlation_jl)
    bound = FALSE_ALARM / max(int(np.triu(enough_jl, 1).sum()), 1)
    may_jl = enough_jl & (tie_key(correlation_jl) >= JOINS * BAR) & (pairs.same_jl >= FEWEST_SAME)
    group_j = np.arange(n_judges)
    while (joined := _first_join(pairs, correlation_jl, may_jl, group_j, bound)) is not None:
        group_j[group_j == joined[1]] = joined[0]
    return [np.flatnonzero(group_j == g) for g in np.unique(group_j) if (group_j == g).sum() > 1]


def _first_join(
    pairs: PairErrors, correlation_jl: Floats, may_jl: NDArray[np.bool_], group_j: Ints, bound: float
) -> tuple[int, int] | None:
    """Return the two groups to join next; None where there are none."""
    for first, second in _candidates(correlation_jl, may_jl, group_j):
        one, other = np.flatnonzero(group_j == first), np.flatnonzero(group_j == second)
        both = np.concatenate([one, other])
        rest = np.setdiff1d(np.arange(len(group_j)), both)
        alike = float(correlation_jl[np.ix_(one, other)].mean())
        usual = _usual(correlation_jl[np.ix_(both, rest)]) if len(rest) else 0.0
        bar = usual + (1.0 - usual) * _bar(len(one), len(other), len(rest))
        j, at = _most_alike(np.where(may_jl, correlation_jl, -1.0)[np.ix_(one, other)])
        if tie_key(alike) >= tie_key(bar) and pairs.chance(int(one[j]), int(other[at]), usual) <= bound:
            return first, second
    return None


def _candidates(correlation_jl: Floats, may_jl: NDArray[np.bool_], group_j: Ints) -> Iterator[tuple[int, int]]:
    """Yield two groups each with two judges who may err together, the most alike first."""
    ends = group_j[np.argwhere(np.triu(may_jl, 1))]
    two = sorted({(int(min(a, b)), int(max(a, b))) for a, b in ends if a != b})
    alike = [float(correlation_jl[np.ix_(group_j == a, group_j == b)].mean()) for a, b in two]
    for at in np.argsort(-tie_key(np.array(alike)), kind="stable"):
        yield two[at]


def _usual(correlation_jm: Floats) -> float:
    """Return how the errors of some judges go together with those of the others: not of all others, but of many."""
    by_other = np.sort(correlation_jm.mean(axis=0))
    return max(float(by_other[int(USUAL * (len(by_other) - 1))]), 0.0)


def _bar(n_one: int, n_other: int, n_rest: int) -> float:
    """Return what correlation of errors joins two groups: a group of several is surer of what it has in common."""
    if not n_rest:
        return NEARLY_ONE
    return JOINS * BAR if max(n_one, n_other) >= SEVERAL else BAR


def _most_alike(correlation_jl: Floats) -> tuple[int, int]:
    j, at = np.unravel_index(int(np.argmax(tie_key(correlation_jl))), correlation_jl.shape)
    return int(j), int(at)


def _described(pairs: PairErrors, shared_jl: Floats, judges: Ints) -> ErrGroup:
    inside = np.triu_indices(len(judges), 1)
    of_pairs = (shared_jl, pairs.same_jl, pairs.expected_cjl.sum(axis=0))
    figures = (float(one[np.ix_(judges, judges)][inside].mean()) for one in of_pairs)
    return ErrGroup(tuple(judges.tolist()), *figures)


def _shared_by_all(pairs: PairErrors, correlation_jl: Floats, enough_jl: NDArray[np.bool_]) -> float:
    """Return the median correlation of two judges' errors where it is large, and surely no chance; else 0."""
    some = np.triu(enough_jl, 1)
    if not some.any():
        return 0.0
    beyond = float((correlation_jl * pairs.scale_jl)[some].sum())
    # Of independent judges the same wrong answers of different pairs are uncorrelated: variances add up.
    surely = beyond >= SURELY * float(np.sqrt(pairs.variance_jl[some].sum()))
    usual = float(tie_key(np.median(correlation_jl[some])))
    return usual if surely and usual >= SHARED_BY_ALL else 0.0
