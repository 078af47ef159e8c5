"""What a judge adds to the others, and which panel is the best for its price.

Graded by known answers where there are enough, else by the consensus of all, which takes the side of judges who err
together: what was used is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl
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

PANELS_AT_ONCE = 4
"""Panels graded at once: more would not stay near the processor."""

FLOOR = 1e-12


ADDED = pl.Schema({**dict.fromkeys(("nats", "nats_se", "saved", "saved_se"), pl.Float64()), "graded_by": pl.String()})
PANELS = pl.Schema(
    {
        **dict.fromkeys(("question", "judges"), pl.String()),
        "size": pl.Int64(),
        **dict.fromkeys(("cost", "wrong", "wrong_unseen"), pl.Float64()),
        "graded_by": pl.String(),
    }
)


def added_by_each(panel: Panel) -> pl.DataFrame:
    """Compute what every judge adds to those who are not counted with it: `ADDED`, a row per judge.

    `nats` is the log score of the right label with the judge less that without, mean per item; `saved` the share of
    items labelled right with the judge and wrong without, less the opposite. Each has its standard error.
    """
    by_gold = panel.n_gold >= ENOUGH
    panel = panel.take(np.flatnonzero(panel.gold_i != UNKNOWN)) if by_gold else panel
    truth_ik = _truth(panel, panel.labels(panel.log_iz))
    rows = []
    for j in range(len(panel.judges)):
        nats_i, saved_i = _added_by(panel, j, truth_ik)
        rows.append((*_mean(nats_i, panel.weight_i), *_mean(saved_i, panel.weight_i), _graded_by(by_gold)))
    return pl.DataFrame(rows, schema=ADDED, orient="row")


def _graded_by(by_gold: bool) -> str:
    return "known answers" if by_gold else "consensus"


def _added_by(panel: Panel, j: int, truth_ik: Floats) -> tuple[Floats, Floats]:
    """Return what one judge adds to each item: nats, and a right label; 0 where the judge did not vote."""
    nats_i, saved_i = np.zeros(len(truth_ik)), np.zeros(len(truth_ik))
    at_i = panel.voted(j)
    without_iz, truth_ak = panel.log_without(j, at_i), truth_ik[at_i]
    before_ak, after_ak = panel.labels(without_iz), panel.labels(without_iz + panel.evidence(j, at_i))
    # The expected log ratio under the truth, or under the consensus of all.
    nats_i[at_i] = xlogy(truth_ak, np.maximum(after_ak, FLOOR) / np.maximum(before_ak, FLOOR)).sum(axis=1)
    saved_i[at_i] = _right(truth_ak, after_ak) - _right(truth_ak, before_ak)
    return nats_i, saved_i


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


def best_panels(panel: Panel, cost_j: Floats, *, seed: int = 0) -> pl.DataFrame:
    """Return the panels that no other beats at the same price or a lower one, cheapest first: `PANELS`.

    `cost` is what one item costs, `wrong` the share of items that the panel labels wrong, `wrong_unseen` the same for
    panels of the price chosen on one half of the items and graded on the other: a fair figure, as the best of many
    panels looks better than it is. Of judges who are counted as one only the cheapest may be in a panel. A single item
    has no halves, and so no best panel.

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
    if len(panel.gold_i) < 2:
        return PANELS.to_frame()
    half_i = np.random.default_rng([seed, len(panel.gold_i)]).permutation(len(panel.gold_i)) % 2 == 0
    graded = _Graded(panel, half_i)
    tried = graded.tried(_cheapest(panel, cost_j), cost_j)
    cost_p = np.array([sum(cost_j[j] for j in some) for some in tried])
    share_ps = graded.shares(tried)
    rows = [
        (panel.question.name, ", ".join(panel.judges[j] for j in tried[p]), len(tried[p]), float(cost_p[p]),
         float(share_ps[p, 0]), _unseen(share_ps[cost_p <= cost_p[p] + 1e-9, 1:]), _graded_by(by_gold))
        for p in _frontier(cost_p, share_ps[:, 0])
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=PANELS, orient="row")


def _cheapest(panel: Panel, cost_j: Floats) -> list[int]:
    best: dict[int, int] = {}
    for j in sorted(range(len(panel.judges)), key=lambda j: (tie_key(cost_j[j]), j)):
        best.setdefault(int(panel.group_j[j]), j)
    return sorted(best.values())


class _Graded:
    """Panels, and the share of items that each labels wrong: of all items, of one half, of the other.

    Every panel is looked at once. Axes: **p** panel, **s** set of items.
    """

    def __init__(self, panel: Panel, half_i: NDArray[np.bool_]) -> None:
        self.panel = panel
        self.truth_ik = _truth(panel, panel.posterior(range(len(panel.judges))))
        self.weight_is = panel.weight_i[:, None] * np.stack([np.ones(len(half_i)), half_i, ~half_i], axis=1)
        self.total_s = self.weight_is.sum(axis=0)
        # Items last: sums over few states are slow along the last axis.
        self._evidence_jzi = np.stack([panel.evidence(j).T for j in range(len(panel.judges))])
        self._shares: dict[tuple[int, ...], Floats] = {}

    def shares(self, panels: Sequence[tuple[int, ...]]) -> Floats:
        """Return which share of every set of items each panel labels wrong."""
        new = [some for some in panels if some not in self._shares]
        for start in range(0, len(new), PANELS_AT_ONCE):
            some_p = new[start : start + PANELS_AT_ONCE]
            self._shares.update(zip(some_p, self._wrong(some_p) @ self.weight_is / self.total_s, strict=True))
        return np.array([self._shares[some] for some in panels])

    def _wrong(self, panels: Sequence[tuple[int, ...]]) -> Floats:
        """Return how probable it is that each panel labels an item wrong: `wrong_pi`."""
        # Sums, and no matrix product: libraries divide one of this size among threads that wait for each other.
        evidence_zpi = np.stack([self._evidence_jzi[list(some)].sum(axis=0) for some in panels], axis=1)
        log_zpi = self.panel.prior_iz.T[:, None] + evidence_zpi
        state_zr = softmax(log_zpi.reshape(len(log_zpi), -1), axis=0)
        label_pi = highest((self.panel.mix_zk.T @ state_zr).T).reshape(len(panels), -1)
        return np.asarray(1.0 - self.truth_ik[np.arange(len(self.truth_ik)), label_pi])

    def tried(self, candidates: list[int], cost_j: Floats) -> list[tuple[int, ...]]:
        """List the panels to try: all, or those that grow by the best judge."""
        if len(candidates) <= EXHAUSTIVE:
            sizes = range(1, len(candidates) + 1)
            return [some for size in sizes for some in combinations(candidates, size)]
        found: list[tuple[int, ...]] = [(j,) for j in candidates]
        grown: tuple[int, ...] = ()
        for _ in range(EXHAUSTIVE):
            more = [tuple(sorted((*grown, j))) for j in candidates if j not in grown]
            found += more
            cost_p = [sum(cost_j[j] for j in some) for some in more]
            grown = more[np.lexsort((cost_p, tie_key(self.shares(more)[:, 0])))[0]]
        return list(dict.fromkeys(found))


def _unseen(share_ph: Floats) -> float:
    """Choose the best panel on one half of the items, grade it on the other, and the other way round."""
    best_h = tie_key(share_ph).argmin(axis=0)
    return float(np.mean([share_ph[best_h[0], 1], share_ph[best_h[1], 0]]))


def _frontier(cost_p: Floats, share_p: Floats) -> list[int]:
    """Return which panels no other beats at the same price or a lower one, cheapest first."""
    found: list[int] = []
    for p in np.lexsort((tie_key(share_p), tie_key(cost_p))).tolist():
        if not found or tie_key(share_p[p]) < tie_key(share_p[found[-1]]):
            found.append(p)
    return found
