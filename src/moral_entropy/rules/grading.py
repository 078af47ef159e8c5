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

import numpy as np
import polars as pl

from moral_entropy.names import ALL, MEAN, MULTICLASS, NO_DOMAIN
from moral_entropy.rules.cells import Cells
from moral_entropy.rules.grade import Figures, grade, grade_label, share_of, smooth
from moral_entropy.rules.intervals import central_interval
from moral_entropy.rules.rules import Rule
from moral_entropy.schemas import SCHEMAS
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

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
    cells, sum_tcs
        Answers, and what they are graded against: see `cells.SUMS`. The first column makes the figures, the others
        their intervals.
    questions, domains
        Names behind the indices in cells.
    labels
        By question, the labels of its ballot.
    smoothing
        Pseudo-votes for yes and for no in the smoothed scores.
    mass
        Mass of the intervals.
    """

    reference: str
    rules: tuple[Rule, ...]
    cells: Cells
    sum_tcs: Floats
    questions: tuple[str, ...]
    domains: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    smoothing: float
    mass: float

    def frame(self) -> pl.DataFrame:
        """Grade every rule on every group: rows of the table audit, NaN where there is no figure."""
        graded_c = np.flatnonzero(self.sum_tcs[0, :, 0] > 0)
        domain_c, rows = self.cells.domain_c[graded_c], list(self._rows_of_domain(ALL, graded_c))
        for d in np.unique(domain_c) if self.domains else ():
            name = NO_DOMAIN if d == UNKNOWN else self.domains[d]
            rows += self._rows_of_domain(name, graded_c[domain_c == d])
        return pl.DataFrame(rows, schema=SCHEMAS["audit"], orient="row")

    def _rows_of_domain(self, domain: str, cell_c: Ints) -> Iterator[Row]:
        """Yield the rows of each question, label by label, then those of all questions and of their mean."""
        by_question: list[list[Figures]] = []
        for q in np.unique(self.cells.question_c[cell_c]).tolist():
            question, asked_c = self.questions[q], cell_c[self.cells.question_c[cell_c] == q]
            label_c, labels = self.cells.label_c[asked_c], self.labels[q]
            cells_of = [(labels[k], asked_c[label_c == k]) for k in np.unique(label_c)]
            if len(labels) > 2:
                cells_of.append((ALL, asked_c))
            for label, cells_c in cells_of:
                figures = self._grade_all(cells_c)
                yield from self._rows((question, domain, label), figures)
            # The last are those of all labels together.
            by_question.append(figures)
            if len(labels) > 2:
                of_label = [
                    {} if rule.sees == "pair" else self._grade(r, asked_c, n_labels=len(labels))
                    for r, rule in enumerate(self.rules)
                ]
                yield from self._rows((question, domain, MULTICLASS), of_label)
        if by_question:
            # Of one question the grades are known.
            together = by_question[0] if len(by_question) == 1 else self._grade_all(cell_c)
            yield from self._rows((ALL, domain, ALL), together)
            means: list[Figures] = []
            for of_rule in zip(*by_question, strict=True):
                # Questions without a figure are left out; n counts the others.
                value_qms = np.array([[value_s for value_s, _ in by_metric.values()] for by_metric in of_rule])
                n_ms = (~np.isnan(value_qms)).sum(axis=0)
                mean_ms = share_of(np.nansum(value_qms, axis=0), n_ms)
                means.append(dict(zip(of_rule[0], zip(mean_ms, n_ms.astype(np.float64), strict=True), strict=True)))
            yield from self._rows((MEAN, domain, ALL), means)

    def _rows(self, where: tuple[str, str, str], figures: Sequence[Figures]) -> Iterator[Row]:
        """Yield a row per rule and metric."""
        rows_of: dict[int, list[Row]] = {}
        for rule, by_metric in zip(self.rules, figures, strict=True):
            if by_metric and id(by_metric) not in rows_of:
                value_ms = np.array([value_s for value_s, _ in by_metric.values()])
                value_m, ends = value_ms[:, 0], np.full((2, len(value_ms)), np.nan)
                if value_ms.shape[1] > 1:
                    ends[:] = self.interval(tuple(by_metric), value_ms)
                low_m, high_m = np.where(np.isnan(value_m), np.nan, ends).tolist()
                n_m = [round(n_s[0]) for _, n_s in by_metric.values()]
                rows_of[id(by_metric)] = list(zip(by_metric, value_m.tolist(), low_m, high_m, n_m, strict=True))
            yield from ((*where, rule.name, self.reference, *row) for row in rows_of.get(id(by_metric), ()))

    def interval(self, names: Sequence[str], value_ms: Floats) -> tuple[Floats, Floats]:
        """Compute central intervals over resamples, moved to the figures where their middle is elsewhere.

        A resample is noisier than the sample, so it shows misfit where there is none. The spread is right.
        """
        low_m, high_m = central_interval(value_ms[:, 1:], self.mass)
        middle_m, _ = central_interval(value_ms[:, 1:], 0.0)
        moved_m = np.array([name.endswith(ROUGH) for name in names])
        with np.errstate(invalid="ignore"):
            shift_m = value_ms[:, 0] - middle_m
        shift_m = np.where(moved_m & np.isfinite(shift_m), shift_m, 0.0)
        return np.where(moved_m, np.maximum(low_m + shift_m, 0.0), low_m), high_m + shift_m

    def _grade_all(self, cell_c: Ints) -> list[Figures]:
        """Grade every rule on some cells; rules that answer alike share their grades."""
        graded: dict[bytes, Figures] = {}
        figures = []
        for r in range(len(self.rules)):
            answers = (self.cells.score_rc, self.cells.decision_rc, self.cells.tied_rc)
            key = b"".join(answer_rc[r, cell_c].tobytes() for answer_rc in answers)
            graded[key] = graded.get(key) or self._grade(r, cell_c)
            figures.append(graded[key])
        return figures

    def _grade(self, r: int, cell_c: Ints, n_labels: int | None = None) -> Figures:
        """Grade one rule on some cells; with a number of labels, the label itself."""
        score_c, expected = self.cells.score_rc[r, cell_c], self.reference != "gold"
        answered_c, sum_tcs = cell_c[~np.isnan(score_c)], self.sum_tcs
        if not len(answered_c):
            # A cell without items has every figure, and none of them a value.
            answered_c, sum_tcs = cell_c[:1], np.zeros_like(self.sum_tcs)
        score_a = np.nan_to_num(self.cells.score_rc[r, answered_c])
        smoothed_a = smooth(score_a, self.cells.votes_c[answered_c], self.smoothing, n_labels or 2)
        decision_a = np.nan_to_num(self.cells.decision_rc[r, answered_c])
        answers = (score_a, decision_a, smoothed_a, sum_tcs[:, answered_c])
        if n_labels is None:
            figures = grade(*answers, expected=expected)
        else:
            figures = grade_label(*answers, n_labels=n_labels, expected=expected)
        # Shares of items without an answer and on a tie have no interval.
        items_c = self.sum_tcs[0, cell_c, 0]
        for name, at_c in (("abstained", np.isnan(score_c)), ("tied", self.cells.tied_rc[r, cell_c])):
            value_s = np.full(self.sum_tcs.shape[2], np.nan)
            value_s[0] = items_c[at_c].sum() / items_c.sum()
            figures[name] = (value_s, np.full(1, items_c.sum()))
        return figures if expected else figures | {"log_loss": figures["cross_entropy"]}
