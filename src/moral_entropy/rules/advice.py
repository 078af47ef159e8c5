"""Which threshold on the votes comes closest to the consensus, and what it still loses.

Takes cells, their sums and the user's costs; returns the best k-vote rule or share for each question, and for all
questions together. Costs are expected ones under the posterior: a wrong yes costs (1 - p) times its price. With the
sums of gold labels it is the threshold that comes closest to gold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moral_entropy.names import ALL
from moral_entropy.rules.best_rule import BestRule
from moral_entropy.rules.cells import Cells
from moral_entropy.rules.groups import Grading
from moral_entropy.rules.sums import CellSums
from moral_entropy.ties import TIE
from moral_entropy.votes.table import Floats, Ints

if TYPE_CHECKING:
    import polars as pl

_SCHEMA: dict[str, type] = {
    **dict.fromkeys(("question", "label", "rule"), str),
    **dict.fromkeys(("cost", "cost_of_p", "excess", "cost_of_majority"), float),
}

MAX_SHARES = 200
"""Largest number of shares that are tried; of more, evenly spaced ones."""


@dataclass(frozen=True, eq=False)
class Advice:
    """The best threshold of each question against the consensus, and the best simple rule for all.

    Parameters
    ----------
    frame
        question, label, rule, cost (expected, per item), cost_of_p, excess (of the rule over p), cost_of_majority, n.
        Question "(all)" is one rule for all.
    best
        The best simple rule for all: against gold where there is any. None where no item has a vote.
    """

    frame: pl.DataFrame
    best: BestRule | None

    @property
    def text(self) -> str:
        """The best simple rule in two sentences."""
        return "No item has a vote, so there is nothing to advise." if self.best is None else self.best.text


def advise(graded: Grading, of_p_c: Floats, costs: tuple[float, float]) -> pl.DataFrame:
    """Find the k-vote rule or share threshold of least expected cost, for each question and for all.

    Parameters
    ----------
    graded
        The cells, their sums and their names; items without votes are left out.
    of_p_c
        Cost of deciding by p itself: see `cost_of_p`.
    costs
        Costs of a wrong yes and a wrong no.
    """
    import polars as pl

    cells, sums = graded.cells, graded.sums
    voted_c = np.flatnonzero((cells.votes_c > 0) & (sums.weight_cs[:, 0] > 0))
    rows = []
    for question, label, cell_c in _groups(graded, voted_c):
        best = _best(cells, sums, cell_c, costs)
        n = sums.weight_cs[cell_c, 0].sum()
        least = of_p_c[cell_c].sum() / n
        majority = _cost(sums, cell_c, cells.chosen_c[cell_c] >= cells.rest_c[cell_c], costs) / n
        row = {"question": question, "label": label, "rule": best[1], "cost": best[0] / n, "cost_of_p": least}
        # No threshold is cheaper than p itself; rounding can leave about -1e-17.
        excess = max(best[0] / n - least, 0.0)
        rows.append({**row, "excess": excess, "cost_of_majority": majority, "n": round(n)})
    return pl.DataFrame(rows, schema={**_SCHEMA, "n": int}, orient="row")


def _groups(graded: Grading, voted_c: Ints) -> Iterator[tuple[str, str, Ints]]:
    question_c, label_c = graded.cells.question_c[voted_c], graded.cells.label_c[voted_c]
    for q, question in enumerate(graded.questions):
        for k, label in enumerate(graded.labels[q]):
            cell_c = voted_c[(question_c == q) & (label_c == k)]
            if len(cell_c):
                yield question, label, cell_c
    if len(voted_c):
        yield ALL, ALL, voted_c


def _cost(sums: CellSums, cell_c: Ints, yes_c: NDArray[np.bool_], costs: tuple[float, float]) -> float:
    p_c, weight_c = sums.p_cs[cell_c, 0], sums.weight_cs[cell_c, 0]
    wrong_yes, wrong_no = costs
    cost_c = np.where(yes_c, wrong_yes * (weight_c - p_c), wrong_no * p_c)
    return float(cost_c.sum())


def _best(cells: Cells, sums: CellSums, cell_c: Ints, costs: tuple[float, float]) -> tuple[float, str]:
    # Of equally cheap ones the first wins: k-vote before share, low before high.
    best = (np.inf, "")
    tie = TIE * float(sums.weight_cs[cell_c, 0].sum()) * max(costs)
    for name, yes_c in _thresholds(cells.rest_c[cell_c], cells.chosen_c[cell_c]):
        cost = _cost(sums, cell_c, yes_c, costs)
        if cost < best[0] - tie:
            best = (cost, name)
    return best


def _thresholds(rest_c: Ints, chosen_c: Ints) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    known = {1: "any", 2: "two-vote"}
    for k in np.unique(chosen_c[chosen_c > 0])[:MAX_SHARES].tolist():
        yield known.get(k, f"k-vote-{k}"), chosen_c >= k
    pairs = zip(chosen_c.tolist(), (rest_c + chosen_c).tolist(), strict=True)
    shares = sorted({Fraction(chosen, votes) for chosen, votes in pairs if chosen})
    for share in shares[:: -(-len(shares) // MAX_SHARES) or 1]:
        name = {Fraction(1): "unanimous", Fraction(1, 2): "majority"}.get(share, f"quorum-{share}")
        yield name, chosen_c * share.denominator >= (rest_c + chosen_c) * share.numerator
