"""What a judge adds to the others, and which panel is the best for its price.

Graded by known answers where there are enough, else by the consensus of all, which takes the side of judges who err
together: what was used is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from moral_entropy.judges.panel import Panel
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats

ENOUGH = 30
"""Known answers from which judges are graded by them."""

EXHAUSTIVE = 12
"""Judges up to whom every panel is tried; of more, the best one is added again and again."""

MOST_GRADED = 1_000
"""Items that panels are graded on: of more a random part."""

FLOOR = 1e-12


@dataclass(frozen=True, eq=False)
class Added:
    """What each judge adds, given the others. Axis: **j** judge.

    Parameters
    ----------
    nats_j, nats_se_j
        Log score of the right label with the judge less that without, mean per item, and its standard error.
    saved_j, saved_se_j
        Share of items labelled right with the judge and wrong without, less the opposite, and its standard error.
    by_gold
        Whether known answers graded it; else the consensus of all.
    """

    nats_j: Floats
    nats_se_j: Floats
    saved_j: Floats
    saved_se_j: Floats
    by_gold: bool


def added_by_each(panel: Panel) -> Added:
    """Compute what every judge adds to those who are not counted with it."""
    by_gold = panel.n_gold >= ENOUGH
    panel = panel.take(np.flatnonzero(panel.gold_i != UNKNOWN)) if by_gold else panel
    everyone = panel.counted(range(len(panel.judges)))
    evidence = {j: panel.evidence(j) for j in everyone}
    total_iz = panel.prior_iz + sum(evidence.values())
    truth_ik = _truth(panel, np.asarray(softmax(total_iz, axis=1) @ panel.mix_zk))
    rows = []
    for j, group in enumerate(panel.group_j):
        [stands] = [one for one in everyone if panel.group_j[one] == group]
        without_iz = total_iz - evidence[stands]
        before_ik, after_ik = (
            softmax(one, axis=1) @ panel.mix_zk for one in (without_iz, without_iz + panel.evidence(j))
        )
        nats_i = (xlogy(truth_ik, np.maximum(after_ik, FLOOR) / np.maximum(before_ik, FLOOR))).sum(axis=1)
        # xlogy(truth, ratio): the expected log ratio under the truth, or under the consensus of all.
        saved_i = _right(truth_ik, after_ik) - _right(truth_ik, before_ik)
        rows.append((*_mean(nats_i, panel.weight_i), *_mean(saved_i, panel.weight_i)))
    nats_j, nats_se_j, saved_j, saved_se_j = np.array(rows).reshape(-1, 4).T
    return Added(nats_j, nats_se_j, saved_j, saved_se_j, by_gold)


def _truth(panel: Panel, p_ik: Floats) -> Floats:
    """Return how probable each label is by what grades: known answers as ones and zeros, or p."""
    if (panel.gold_i == UNKNOWN).any():
        return p_ik
    return np.asarray(np.eye(p_ik.shape[1])[panel.gold_i])


def _right(truth_ik: Floats, p_ik: Floats) -> Floats:
    return np.asarray(truth_ik[np.arange(len(p_ik)), highest(p_ik)])


def _mean(value_i: Floats, weight_i: Floats) -> tuple[float, float]:
    mean = float(np.average(value_i, weights=weight_i))
    share_i = weight_i / weight_i.sum()
    return mean, math.sqrt(float((share_i**2) @ (value_i - mean) ** 2))


@dataclass(frozen=True)
class BestPanel:
    """The best panel for a price.

    Parameters
    ----------
    judges
        Who is in it.
    cost
        What one item costs.
    wrong
        Share of items that it labels wrong.
    wrong_unseen
        The same for panels of the price chosen on one half of the items and graded on the other: a fair figure, as the
        best of many panels looks better than it is.
    """

    judges: tuple[str, ...]
    cost: float
    wrong: float
    wrong_unseen: float


def best_panels(panel: Panel, cost_j: Floats, *, seed: int = 0) -> tuple[list[BestPanel], bool]:
    """Return the panels that no other beats at the same price or a lower one, cheapest first; and whether gold graded.

    Of judges who are counted as one only the cheapest may be in a panel.

    Parameters
    ----------
    panel
        The panel.
    cost_j
        What one vote of each judge costs.
    seed
        Of the halves.
    """
    by_gold = panel.n_gold >= ENOUGH
    panel = panel.take(np.flatnonzero(panel.gold_i != UNKNOWN)) if by_gold else panel
    if (n := len(panel.gold_i)) > MOST_GRADED:
        panel = panel.take(np.sort(np.random.default_rng([seed, n]).choice(n, MOST_GRADED, replace=False)))
    candidates = _cheapest(panel, cost_j)
    wrong = _Graded(panel, cost_j, _truth(panel, panel.posterior(range(len(panel.judges)))))
    half_i = np.random.default_rng([seed, len(panel.gold_i)]).permutation(len(panel.gold_i)) % 2 == 0
    tried = wrong.tried(candidates)
    found = _frontier(tried, wrong, np.ones(len(half_i), dtype=np.bool_))
    return [
        BestPanel(
            tuple(panel.judges[j] for j in some),
            wrong.cost(some),
            wrong.share(some, np.ones(len(half_i), dtype=np.bool_)),
            wrong.unseen(tried, wrong.cost(some), half_i),
        )
        for some in found
    ], by_gold


def _cheapest(panel: Panel, cost_j: Floats) -> list[int]:
    best: dict[int, int] = {}
    for j in sorted(range(len(panel.judges)), key=lambda j: (tie_key(cost_j[j]), j)):
        best.setdefault(int(panel.group_j[j]), j)
    return sorted(best.values())


class _Graded:
    """Panels, and which items each labels wrong; every panel is looked at once."""

    def __init__(self, panel: Panel, cost_j: Floats, truth_ik: Floats) -> None:
        self.panel, self.cost_j, self.truth_ik = panel, cost_j, truth_ik
        self.weight_i = panel.weight_i
        self._evidence = {j: panel.evidence(j) for j in range(len(panel.judges))}
        self._wrong: dict[tuple[int, ...], Floats] = {}

    def cost(self, some: Sequence[int]) -> float:
        return float(sum(self.cost_j[j] for j in some))

    def wrong_i(self, some: tuple[int, ...]) -> Floats:
        if some not in self._wrong:
            log_iz = self.panel.prior_iz + sum(self._evidence[j] for j in some)
            p_ik = np.asarray(softmax(log_iz, axis=1) @ self.panel.mix_zk)
            self._wrong[some] = (1.0 - _right(self.truth_ik, p_ik)).astype(np.float32)
        return self._wrong[some]

    def share(self, some: tuple[int, ...], items: NDArray[np.bool_]) -> float:
        return float(np.average(self.wrong_i(some)[items], weights=self.weight_i[items]))

    def tried(self, candidates: list[int]) -> list[tuple[int, ...]]:
        """List the panels to try: all, or those that grow by the best judge."""
        if len(candidates) <= EXHAUSTIVE:
            sizes = range(1, len(candidates) + 1)
            return [some for size in sizes for some in combinations(candidates, size)]
        everything = np.ones(len(self.weight_i), dtype=np.bool_)
        found: list[tuple[int, ...]] = [(j,) for j in candidates]
        grown: tuple[int, ...] = ()
        for _ in range(EXHAUSTIVE):
            more = [tuple(sorted((*grown, j))) for j in candidates if j not in grown]
            found += more
            grown = min(more, key=lambda some: (tie_key(self.share(some, everything)), self.cost(some)))
        return list(dict.fromkeys(found))

    def unseen(self, tried: list[tuple[int, ...]], cost: float, half_i: NDArray[np.bool_]) -> float:
        """Choose on one half of the items, grade on the other, and the other way round."""
        within = [some for some in tried if self.cost(some) <= cost + 1e-9]
        shares = []
        for chosen_on in (half_i, ~half_i):
            best = min(within, key=lambda some, on=chosen_on: tie_key(self.share(some, on)))  # type: ignore[misc]
            shares.append(self.share(best, ~chosen_on))
        return float(np.mean(shares))


def _frontier(tried: list[tuple[int, ...]], wrong: _Graded, everything: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    ranked = sorted(tried, key=lambda some: (tie_key(wrong.cost(some)), tie_key(wrong.share(some, everything))))
    found: list[tuple[int, ...]] = []
    for some in ranked:
        if not found or tie_key(wrong.share(some, everything)) < tie_key(wrong.share(found[-1], everything)):
            found.append(some)
    return found
