"""Why the any-annotator rule gets worse with every vote: its false-positive rate by number of votes.

The paper's structural argument: the rule is an OR over noisy votes, so even with very specific annotators, the
probability that none of them votes for a label the item does not have is a product that shrinks with every vote. That
probability is called silence here. Takes the fits and the grading; returns predicted and observed rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.consensus.fitted import FittedParts, PartFit
from moral_entropy.consensus.parts import Part
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.rules.bregman import share_of
from moral_entropy.rules.cells import targets_of
from moral_entropy.rules.grade import Grades
from moral_entropy.rules.groups import Grading
from moral_entropy.rules.intervals import central_interval
from moral_entropy.votes.table import Floats, Ints

if TYPE_CHECKING:
    import polars as pl

MAX_DRAWS = 100
"""Largest number of draws for the intervals of predictions."""

MAX_ROWS = 20_000
"""Largest number of rows that are averaged over, per number of votes; of more, evenly spaced ones."""

ROWS_AT_ONCE = 64
"""Rows whose probabilities of silence are computed together: few enough for the cache of a core."""

MANY_LABELS, LEAST_ROWS = 10, 20
"""Above so many labels rows become fewer by their square, as every label is averaged over all others; but not below."""

CURVE_VOTES = 10
"""Least number of votes up to which the curve is computed."""


def any_rule_by_votes(fitted: FittedParts, graded: Grading) -> pl.DataFrame:
    """Return the any rule's false-positive rate by number of votes, predicted and observed.

    Parameters
    ----------
    fitted
        The votes and their fits.
    graded
        The grading against the consensus.

    Returns
    -------
    pl.DataFrame
        question, label, votes, n (items with that many votes), and with their intervals: curve (annotators drawn at
        random, as often as they voted), predicted (those who did vote), expected_fpr and fpr (observed against p and
        against the consensus' yes or no). Null where no item has that many votes.
    """
    import polars as pl

    cells, sums = graded.cells, graded.sums
    rows: list[dict[str, object]] = []
    rows_pb = fitted.parts.fetch_each(rows_by_votes)
    for q, question in enumerate(graded.questions):
        asked = [b for b, fit in enumerate(fitted.consensus.fits) if fit.question == question]
        for target in targets_of(fitted.consensus.fits[asked[0]].ballot):
            cell_c = np.flatnonzero((cells.question_c == q) & (cells.label_c == target) & (cells.votes_c > 0))
            fits = [_silence(fitted, b, target, rows_pb) for b in asked]
            for votes in _vote_counts(cells.votes_c[cell_c]):
                figures = _with_intervals(_predicted(fits, votes), graded.mass)
                figures |= _observed(graded, cell_c, votes)
                n = sums.weight_cs[cell_c[cells.votes_c[cell_c] == votes], 0].sum()
                row = {"question": question, "label": graded.labels[q][target], "votes": votes}
                rows.append({**row, "n": round(n), **figures})
    columns = ("curve", "predicted", "expected_fpr", "fpr")
    numbers = {f"{name}{end}": pl.Float64 for name in columns for end in ("", "_low", "_high")}
    schema = {"question": pl.String, "label": pl.String, "votes": pl.Int64, "n": pl.Int64, **numbers}
    return pl.DataFrame(rows, schema=schema).with_columns(pl.col(list(numbers)).fill_nan(None))


def _vote_counts(votes_c: Ints) -> list[int]:
    return sorted({*range(1, CURVE_VOTES + 1), *np.unique(votes_c).tolist()})


def _with_intervals(figures: dict[str, Floats], mass: float) -> dict[str, float]:
    row: dict[str, float] = {}
    for name, value_s in figures.items():
        low, high = central_interval(value_s[None, 1:], mass)
        row |= {name: float(value_s[0]), f"{name}_low": float(low[0]), f"{name}_high": float(high[0])}
    return row


def _observed(graded: Grading, cell_c: Ints, votes: int) -> dict[str, float]:
    cells, sums = graded.cells, graded.sums
    at_c = cell_c[cells.votes_c[cell_c] == votes]
    flagged_c = at_c[cells.chosen_c[at_c] > 0]
    value_ms = np.array(
        [
            share_of(
                (sums.weight_cs[flagged_c] - yes_cs[flagged_c]).sum(axis=0),
                (sums.weight_cs[at_c] - yes_cs[at_c]).sum(axis=0),
            )
            for yes_cs in (sums.p_cs, sums.positive_cs)
        ]
    )
    names = ("expected_fpr", "fpr")
    low_m, high_m = graded.interval(Grades(names, value_ms, np.zeros(2, dtype=np.int64)))
    row: dict[str, float] = {}
    for name, value, low, high in zip(names, value_ms[:, 0], low_m, high_m, strict=True):
        row |= {name: float(value), f"{name}_low": float(low), f"{name}_high": float(high)}
    return row


def _predicted(fits: Sequence[Silence], votes: int) -> dict[str, Floats]:
    """Average over the fits of a question, by their items with that many votes; the curve by all their items."""
    curve_fs = np.array([fit.by_anyone(votes) for fit in fits])
    curve_s = np.average(curve_fs, axis=0, weights=[fit.n_items for fit in fits])
    parts = [part for fit in fits if (part := fit.by_voters(votes)) is not None]
    if not parts:
        return {"curve": _mean_first(1.0 - curve_s), "predicted": np.full(len(curve_s) + 1, np.nan)}
    silent_s = np.average([part for part, _ in parts], axis=0, weights=[weight for _, weight in parts])
    return {"curve": _mean_first(1.0 - curve_s), "predicted": _mean_first(1.0 - silent_s)}


def _mean_first(value_s: Floats) -> Floats:
    return np.concatenate([[value_s.mean()], value_s])


SilenceSums = Mapping[int, tuple[Floats, Floats, float]]
"""By number of votes: sum over some items of the probability of silence in every draw; what they count in every draw;
the number of all."""


def _silence(fitted: FittedParts, b: int, target: int, rows_pb: Sequence[Sequence[Mapping[int, int]]]) -> Silence:
    """Add up the probabilities of silence by number of votes; of very many rows, only evenly spaced ones."""
    rows_pv = [rows_b[b] for rows_b in rows_pb]
    total_v = {v: sum(rows_v.get(v, 0) for rows_v in rows_pv) for v in sorted(set().union(*rows_pv))}
    most = most_rows(fitted.consensus.fits[b].ballot.n_labels)
    step_v = {v: -(-n // most) for v, n in total_v.items()}
    before_v = dict.fromkeys(total_v, 0)
    asked = []
    for one, rows_v in zip(fitted.handles, rows_pv, strict=True):
        first_v = {v: -before_v[v] % step_v[v] for v in rows_v}
        asked.append(fitted.parts.workers.ask(silence_of_part, one, b, target, first_v, step_v))
        before_v |= {v: before_v[v] + n for v, n in rows_v.items()}
    sums_v: dict[int, tuple[Floats, Floats, float]] = {}
    for of_part in fitted.parts.workers.fetch_all(asked):
        for v, (sum_s, of_some, of_all) in of_part.items():
            so_far = sums_v.get(v, (np.zeros_like(sum_s), np.zeros_like(sum_s), 0.0))
            sums_v[v] = (so_far[0] + sum_s, so_far[1] + of_some, so_far[2] + of_all)
    return Silence(fitted.consensus.fits[b], target, sums_v)


def most_rows(n_labels: int) -> int:
    """Return the largest number of rows to average over.

    Examples
    --------
    >>> [most_rows(n_labels) for n_labels in (2, 10, 28, 500)]
    [20000, 20000, 2551, 20]
    """
    return max(LEAST_ROWS, MAX_ROWS * MANY_LABELS**2 // max(n_labels, MANY_LABELS) ** 2)


def rows_by_votes(part: Part) -> list[dict[int, int]]:
    """Count the rows of each ballot of one part by their number of votes."""
    found = []
    for b in range(len(part.patterns)):
        rows = part.rows(b)
        n_v = np.bincount(np.diff(rows.start_r)[rows.weight_r > 0])
        found.append({v: int(n_v[v]) for v in np.flatnonzero(n_v).tolist() if v})
    return found


def silence_of_part(
    one: PartFit, b: int, target: int, first_v: Mapping[int, int], step_v: Mapping[int, int]
) -> SilenceSums:
    """Add up the probabilities of silence over some rows of one part."""
    silence, rows = Silence(one.consensus.fits[b], target, {}), one.part.rows(b)
    votes_r = np.where(rows.weight_r > 0, np.diff(rows.start_r), 0)
    sums_v = {}
    for votes, first in first_v.items():
        row_r = np.flatnonzero(votes_r == votes)
        some_r = row_r[first :: step_v[votes]]
        sum_s = rows.weight_r[some_r] @ silence.of_rows(rows, some_r, votes)
        sums_v[votes] = (sum_s, silence.items_without(rows, some_r), float(rows.weight_r[row_r].sum()))
    return sums_v


@dataclass(frozen=True, eq=False)
class Silence:
    """Probabilities that nobody votes for a label the item does not have.

    An item between labels does not have the label as far as it lies at others: it counts by that much.
    Axes: **s** draw, **a** annotator, **z** state (true label), **d** domain.
    """

    fit: QuestionFit
    target: int
    sums: SilenceSums

    @property
    def n_items(self) -> float:
        """Items with a vote."""
        return float(self.fit.patterns.weight_r.sum())

    @cached_property
    def others(self) -> Ints:
        """All states except the target label itself."""
        return np.flatnonzero(self.fit.states.mix_zk[:, self.target] < 1.0)

    @cached_property
    def among_sdz(self) -> Floats:
        """Shares of the other states, by domain, among items as far as they do not have the target label."""
        fit = self.fit
        weight_sdg = fit.weight_sdg[:: self._step] if fit.n_draws else fit.weight_dg[None]
        without_z = 1.0 - fit.states.mix_zk[self.others, self.target]
        among_sdz: Floats = fit.states.weight_of_states(weight_sdg)[..., self.others] * without_z
        return np.asarray(among_sdz / self._over_domains(among_sdz).sum(axis=-1)[:, None, None])

    def _over_domains(self, among_sdz: Floats) -> Floats:
        """Average over domains by their items."""
        items_d = np.ones(1) if self.fit.mixture is None else self.fit.mixture.items_d
        return np.asarray(np.tensordot(items_d / items_d.sum(), among_sdz, axes=(0, 1)))

    @cached_property
    def silent_asz(self) -> Floats:
        """Probability that an annotator does not vote for the target, by state; for two labels the specificity."""
        fit = self.fit
        confusion_sakv = fit.confusion_sakv[:: self._step] if fit.n_draws else fit.confusion_akv[None]
        # Draws and states of a voter side by side: then a vote takes one stretch of memory.
        silent_asz = np.empty((confusion_sakv.shape[1], len(confusion_sakv), len(self.others)))
        for s, confusion_akv in enumerate(confusion_sakv):
            # Draw by draw, and votes for the target alone: all draws of very many annotators would take gigabytes.
            vote_az = fit.states.votes_azv(confusion_akv[..., self.target, None])[..., 0]
            np.subtract(1.0, vote_az[:, self.others], out=silent_asz[:, s])
        return silent_asz

    @property
    def _step(self) -> int:
        return max(1, self.fit.n_draws // MAX_DRAWS)

    def by_anyone(self, votes: int) -> Floats:
        """Compute the probability of silence of `votes` annotators drawn at random, in proportion to their votes."""
        votes_a = self.fit.ballot.votes_a
        mean_sz = np.tensordot(votes_a / votes_a.sum(), self.silent_asz, axes=1)
        silent_s: Floats = (self._over_domains(self.among_sdz) * mean_sz**votes).sum(axis=1)
        return silent_s

    def by_voters(self, votes: int) -> tuple[Floats, float] | None:
        """Compute the mean probability of silence of the voters on items with `votes` votes; return also the items."""
        if votes not in self.sums:
            return None
        sum_s, of_some, of_all = self.sums[votes]
        return sum_s / of_some, of_all

    def of_rows(self, rows: Patterns, row_r: Ints, votes: int) -> Floats:
        """Compute the probability of silence of the voters on some rows with `votes` votes: `silent_rs`."""
        silent_rs = np.empty((len(row_r), len(self.among_sdz)))
        among_dsz = self.among_sdz.transpose(1, 0, 2)
        for first in range(0, len(row_r), ROWS_AT_ONCE):
            some_r = row_r[first : first + ROWS_AT_ONCE]
            product_rsz = among_dsz[_domains(rows, some_r)]
            for v in range(votes):
                product_rsz *= self.silent_asz[rows.code_v[rows.start_r[some_r] + v] // rows.n_labels]
            silent_rs[first : first + ROWS_AT_ONCE] = product_rsz.sum(axis=-1)
        return silent_rs

    def items_without(self, rows: Patterns, row_r: Ints) -> Floats:
        """Count some rows' items as far as they do not have the target label, relative to all: `items_s`."""
        if self.among_sdz.shape[1] == 1:
            return np.full(len(self.among_sdz), rows.weight_r[row_r].sum())
        items_d = np.bincount(_domains(rows, row_r), rows.weight_r[row_r], self.among_sdz.shape[1])
        return np.asarray(self.among_sdz.sum(axis=-1) @ items_d)


def _domains(rows: Patterns, row_r: Ints) -> Ints:
    return rows.domain_r[row_r] if rows.n_domains > 1 else np.zeros(len(row_r), dtype=np.int32)
