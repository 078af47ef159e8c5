"""Grade every rule on every group of items: question × domain, pooled over either, and the mean over questions.

Takes cells and their sums, returns rows of the audit table. Their values of question, domain and label mean:

- question "care", domain "BLM": the items of that question and domain;
- domain "(all)": pooled over domains, every item counting once;
- question "(all)": pooled over questions, every pair of item and question counting once;
- question "(mean)": the plain mean of the questions' figures, n the number of questions that have one;
- label: the one taken as positive; "(all)" pools the labels of a question with more than two, each against the rest;
  "(multiclass)" grades the label itself, right or wrong, and scores summed over labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.names import ALL, EXPLANATIONS, MEAN, MULTICLASS, NO_DOMAIN
from moral_entropy.rules.bregman import share_of
from moral_entropy.rules.cells import Cells
from moral_entropy.rules.grade import (
    METRICS,
    RATES,
    Grades,
    Levels,
    as_grades,
    grade,
    levels_of_hard,
    levels_of_one,
    smooth,
    weighted_logs,
)
from moral_entropy.rules.intervals import central_interval, quantiles, stretched
from moral_entropy.rules.rules import Rule
from moral_entropy.rules.sums import CellSums
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

if TYPE_CHECKING:
    import polars as pl

ROUGH = ("_reliability", "_resolution", "ece", "ece_mass")
"""Metrics that grow with noise: their intervals over resampled items are shifted to the figure."""


Row = tuple[str | float, ...]
"""A row of the table audit."""


@dataclass(frozen=True, eq=False)
class Grading:
    """The grading of some rules against one reference.

    Parameters
    ----------
    reference
        "consensus" or "gold".
    rules
        In the order of the cells' rows.
    cells, sums
        Answers, and what they are graded against.
    questions, domains
        Names behind the indices in cells.
    labels
        By question, the labels of its ballot.
    smoothing
        Pseudo-votes for yes and for no in the smoothed scores.
    mass
        Mass of the intervals.
    resampled
        Whether columns are resamples of the items, rather than draws of p.
    explained
        Whether the columns after the first are those of `EXPLANATIONS`.
    """

    reference: str
    rules: tuple[Rule, ...]
    cells: Cells
    sums: CellSums
    questions: tuple[str, ...]
    domains: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    smoothing: float
    mass: float
    resampled: bool
    explained: bool = False

    def interval(self, grades: Grades) -> tuple[Floats, Floats]:
        """Compute the interval of every figure: central over the draws, then stretched over the explanations."""
        value_me, value_ms = grades.value_ms[:, : self.n_values].copy(), grades.value_ms[:, self.n_values :]
        # Draws are of the published p, or else of the first explanation, the model's own p.
        own_m = value_me[:, int(self.explained)]
        ends = self._over_columns(grades.names, own_m, value_ms)
        if not self.explained:
            return ends
        # A majority is right by construction against the labels of shares; against labels drawn from shares it may err.
        drawn_m = np.array([name.startswith("expected_") for name in grades.names])
        value_me[~drawn_m, -1] = np.nan
        low_m, high_m = stretched(ends, own_m, value_me)
        share_m = np.array([name.removeprefix("expected_") in RATES for name in grades.names])
        return np.maximum(low_m, 0.0), np.where(share_m, np.minimum(high_m, 1.0), high_m)

    @property
    def n_values(self) -> int:
        """Number of columns before the draws."""
        return 1 + len(EXPLANATIONS) * self.explained

    def _explained(self, grades: Grades) -> Floats:
        """Return the figures under each explanation, one row each; NaN where they are not known."""
        if self.explained:
            return grades.value_ms[:, 1 : self.n_values].T
        return np.full((len(EXPLANATIONS), len(grades.names)), np.nan)

    def _over_columns(self, names: Sequence[str], own_m: Floats, value_ms: Floats) -> tuple[Floats, Floats]:
        """Compute central intervals over draws or resamples, around the figures they are of where those are biased.

        A resample is noisier than the sample, so it shows misfit where there is none. A draw is noisier than the mean
        of draws: more of its labels change sides. Their spread is right.
        """
        if not self.resampled and not self.explained:
            return central_interval(value_ms, self.mass)
        tail = (1.0 - self.mass) / 2.0
        low_m, middle_m, high_m = quantiles(value_ms, tail, 0.5, 1.0 - tail)
        biased_m = np.array([self.explained or name.endswith(ROUGH) for name in names])
        with np.errstate(invalid="ignore"):
            shift_m = own_m - middle_m
        shift_m = np.where(biased_m & np.isfinite(shift_m), shift_m, 0.0)
        return np.where(biased_m, np.maximum(low_m + shift_m, 0.0), low_m), high_m + shift_m

    def frame(self) -> pl.DataFrame:
        """Grade every rule on every group: rows of the table audit, NaN where there is no figure."""
        import polars as pl

        from moral_entropy.schemas import AUDIT

        rows = [row for domain, cell_c in self.cells_by_domain() for row in self._rows_of_domain(domain, cell_c)]
        return pl.DataFrame(rows, schema=AUDIT, orient="row")

    def _rows_of_domain(self, domain: str, cell_c: Ints) -> Iterator[Row]:
        """Yield the rows of each question, label by label, then those of all questions and of their mean."""
        by_question: list[list[Grades]] = []
        for q in np.unique(self.cells.question_c[cell_c]).tolist():
            question, asked_c = self.questions[q], cell_c[self.cells.question_c[cell_c] == q]
            for label, label_c in self._by_label(q, asked_c):
                grades = self._grades(label_c)
                yield from self._rows((question, domain, label), grades)
            # The last are those of all labels together.
            by_question.append(grades)
            if len(self.labels[q]) > 2:
                yield from self._rows((question, domain, MULTICLASS), self._multiclass(q, asked_c))
        if by_question:
            # Of one question the grades are known.
            together = by_question[0] if len(by_question) == 1 else self._grades(cell_c)
            yield from self._rows((ALL, domain, ALL), together)
            yield from self._rows((MEAN, domain, ALL), [mean_grades(some) for some in zip(*by_question, strict=True)])

    def _rows(self, where: tuple[str, str, str], grades: Sequence[Grades | None]) -> Iterator[Row]:
        """Yield a row per rule and metric: the first column is the figure, the others make its interval."""
        for rule, one in zip(self.rules, grades, strict=True):
            if one is None:
                continue
            value_m = one.value_ms[:, 0]
            low_m, high_m = (np.where(np.isnan(value_m), np.nan, end_m).tolist() for end_m in self.interval(one))
            figures = (one.names, value_m.tolist(), low_m, high_m, one.n_m.tolist(), *self._explained(one).tolist())
            yield from ((*where, rule.name, self.reference, *row) for row in zip(*figures, strict=True))

    def cells_by_domain(self) -> Iterator[tuple[str, Ints]]:
        """Yield the cells of all domains, and of each: the name of the domain, and which cells have items."""
        graded_c = np.flatnonzero(self.sums.weight_cs[:, 0] > 0)
        yield ALL, graded_c
        if self.domains:
            for d in np.unique(self.cells.domain_c[graded_c]):
                name = NO_DOMAIN if d == UNKNOWN else self.domains[d]
                yield name, graded_c[self.cells.domain_c[graded_c] == d]

    def _by_label(self, q: int, cell_c: Ints) -> Iterator[tuple[str, Ints]]:
        """Yield the cells of each label of a question, and of all where there are more than two."""
        label_c, labels = self.cells.label_c[cell_c], self.labels[q]
        for k in np.unique(label_c):
            yield labels[k], cell_c[label_c == k]
        if len(labels) > 2:
            yield ALL, cell_c

    def _grades(self, cell_c: Ints) -> list[Grades]:
        """Grade every rule on some cells; rules that answer yes or no on the same cells are graded together."""
        found: dict[int, Grades] = {}
        score_rc = self.cells.score_rc[:, cell_c]
        for together in self._batches(score_rc):
            answered_c = cell_c[~np.isnan(score_rc[together[0]])]
            if len(answered_c):
                grades = grade(self._levels(together, answered_c), expected=self.reference != "gold")
            else:
                grades = [_no_grades(self.reference, self.sums.weight_cs.shape[1])] * len(together)
            found |= dict(zip(together, grades, strict=True))
        return [self._completed(found[r], r, cell_c) for r in range(len(self.rules))]

    def _batches(self, score_rc: Floats) -> list[list[int]]:
        hard: dict[bytes, list[int]] = {}
        alone: list[list[int]] = []
        for r, score_c in enumerate(score_rc):
            abstains_c = np.isnan(score_c)
            if (abstains_c | (score_c == 0) | (score_c == 1)).all() and not self.rules[r].soft:
                hard.setdefault(abstains_c.tobytes(), []).append(r)
            else:
                alone.append([r])
        return [*hard.values(), *alone]

    def _levels(self, together: list[int], cell_c: Ints) -> Levels:
        votes_c, sums = self.cells.votes_c[cell_c], self.sums.take(cell_c)
        r = together[0]
        score_rc, decision_rc = self.cells.score_rc[:, cell_c], self.cells.decision_rc[:, cell_c]
        if len(together) > 1:
            return levels_of_hard(score_rc[together], votes_c, sums, self.smoothing)
        return levels_of_one(score_rc[r], decision_rc[r], votes_c, sums, self.smoothing)

    def _completed(self, grades: Grades, r: int, cell_c: Ints) -> Grades:
        """Append shares of items without an answer and on a tie, without an interval; and gold's log loss."""
        weight_c = self.sums.weight_cs[cell_c, 0]
        total = weight_c.sum()
        shares = [
            weight_c[np.isnan(self.cells.score_rc[r, cell_c])].sum(),
            weight_c[self.cells.tied_rc[r, cell_c]].sum(),
        ]
        more_ms = np.full((2, grades.value_ms.shape[1]), np.nan)
        more_ms[:, 0] = np.array(shares) / total
        parts = [grades, Grades(("abstained", "tied"), more_ms, np.full(2, round(total)))]
        if self.reference == "gold":
            at = grades.names.index("cross_entropy")
            parts.append(Grades(("log_loss",), grades.value_ms[[at]], grades.n_m[[at]]))
        return Grades(
            tuple(name for part in parts for name in part.names),
            np.concatenate([part.value_ms for part in parts]),
            np.concatenate([part.n_m for part in parts]),
        )

    def _multiclass(self, q: int, cell_c: Ints) -> list[Grades | None]:
        """Grade the label itself, by every rule that names one."""
        return [
            None if rule.sees == "pair" else self._completed(self._grade_label(r, q, cell_c), r, cell_c)
            for r, rule in enumerate(self.rules)
        ]

    def _grade_label(self, r: int, q: int, cell_c: Ints) -> Grades:
        answered_c, n_labels = cell_c[~np.isnan(self.cells.score_rc[r, cell_c])], len(self.labels[q])
        if not len(answered_c):
            return _no_grades(MULTICLASS, self.sums.weight_cs.shape[1])
        levels = self._levels([r], answered_c)
        votes_c = self.cells.votes_c[answered_c]
        smoothed_rc = smooth(self.cells.score_rc[[r]][:, answered_c], votes_c, self.smoothing, n_labels)
        return grade_multiclass(levels, smoothed_rc, n_labels, self.reference != "gold")


def _no_grades(reference: str, n_columns: int) -> Grades:
    names = [name for name in METRICS if name not in ("abstained", "tied", "log_loss")]
    if reference == "gold":
        names = [name for name in names if not name.startswith("expected_")]
    if reference == MULTICLASS:
        names = ["disagreement", "brier", "cross_entropy", "cross_entropy_smoothed"]
    return Grades(tuple(names), np.full((len(names), n_columns), np.nan), np.zeros(len(names), dtype=np.int64))


def mean_grades(grades: Sequence[Grades]) -> Grades:
    """Average the figures of several questions, leaving out those without one; n counts questions."""
    value_qms = np.array([one.value_ms for one in grades])
    has_qms = ~np.isnan(value_qms)
    n_ms = has_qms.sum(axis=0)
    mean_ms = share_of(np.where(has_qms, value_qms, 0.0).sum(axis=0), n_ms)
    return Grades(grades[0].names, mean_ms, n_ms[:, 0].astype(np.int64))


def grade_multiclass(levels: Levels, smoothed_rc: Floats, n_labels: int, expected: bool) -> Grades:
    """Grade a label rather than each label against the rest; `levels` pools all labels of a question.

    Parameters
    ----------
    levels
        One rule's answers, every item once per label.
    smoothed_rc
        Smoothed scores that add up to 1 over labels.
    n_labels
        Number of labels.
    expected
        Whether to return the expected disagreement too.
    """
    sums = levels.sums
    n_rs = sums.weight_cs.sum(axis=1) / n_labels
    score_rl1, decision_rl1 = levels.score_rl[..., None], levels.decision_rl[..., None]
    gap_rls = score_rl1**2 * sums.weight_cs - 2 * score_rl1 * sums.p_cs + sums.p2_cs
    figures = {
        "disagreement": 1.0 - share_of((decision_rl1 * sums.positive_cs).sum(axis=1), n_rs),
        "brier": share_of(gap_rls.sum(axis=1), n_rs),
        "cross_entropy": share_of(-weighted_logs(levels.score_rl, sums.p_cs[0]), n_rs),
        "cross_entropy_smoothed": share_of(-weighted_logs(smoothed_rc, levels.cells.p_cs), n_rs),
    }
    if expected:
        figures["expected_disagreement"] = 1.0 - share_of((decision_rl1 * sums.p_cs).sum(axis=1), n_rs)
    return as_grades({name: (value_rs, n_rs) for name, value_rs in figures.items()})[0]
