"""Logistic regression on soft targets with a ridge penalty: Newton's method on sparse rows.

Every step solves for the Newton direction by conjugate gradients, for all questions at once, so that one product with
the sparse matrix serves all of them. Questions are otherwise independent: each has step lengths of its own. The
optimum is the only one, and nothing is carried over from fit to fit, so that a result never depends on what was
fitted before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moral_entropy.progress import Advance, ignore
from moral_entropy.train.head import Head
from moral_entropy.train.targets import Targets, mean_logits
from moral_entropy.votes.table import Floats, Ints

SLOPE = 1e-5
"""The fit is done when every derivative of the mean loss is smaller."""

MOST_STEPS, USUAL_STEPS = 50, 7
MOST_INNER = 200
HALVINGS = 20
ENOUGH = 1e-2
"""A direction is good enough when the conjugate gradients have left this share of the squared residual."""

SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fitted regression. Axes: **f** feature, **o** output.

    Parameters
    ----------
    weight_fo, intercept_o
        The parameters.
    steps
        How many steps of Newton's method it took.
    """

    weight_fo: Floats
    intercept_o: Floats
    steps: int


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is minimised: summed cross-entropy, and the penalty. Parameters are `at_go`, the last row intercepts."""

    x_if: Any
    x_fi: Any
    targets: Targets
    weight_io: Floats
    penalty: float
    block_o: Ints

    @property
    def head(self) -> Head:
        return self.targets.head

    def times(self, at_go: Floats) -> Floats:
        """Multiply the rows of the texts with parameters: `x_io`."""
        product: Floats = (self.x_if @ at_go[:-1].astype(self.x_if.dtype)).astype(np.float64) + at_go[-1]
        return product

    def back(self, value_io: Floats) -> Floats:
        """Multiply values of the texts with their rows: `x_go`."""
        return np.vstack([self.x_fi @ value_io.astype(self.x_if.dtype), value_io.sum(axis=0)])

    def ridge(self, at_go: Floats) -> Floats:
        """Return the parameters times the penalty, which intercepts are spared."""
        kept = self.penalty * at_go
        kept[-1] = 0.0
        return kept

    def losses(self, logits_io: Floats, at_go: Floats) -> Floats:
        """Compute the loss of each question, with its penalty: `loss_q`."""
        loss_q = (self.targets.weight_iq * self.head.losses(logits_io, self.targets.target_io)).sum(axis=0)
        found: Floats = loss_q + 0.5 * self.of_questions((self.penalty * at_go[:-1] ** 2).sum(axis=0))
        return found

    def of_questions(self, value_o: Floats) -> Floats:
        """Add up the outputs of each question."""
        return np.array([value_o[columns].sum() for columns in self.head.columns])

    def curve(self, p_io: Floats, direction_io: Floats) -> Floats:
        """Multiply a direction with the second derivative of the loss, text by text."""
        found = np.empty_like(direction_io)
        for columns in self.head.columns:
            p, along = p_io[:, columns], direction_io[:, columns]
            mean = p * along if p.shape[1] == 1 else (p * along).sum(axis=1, keepdims=True)
            found[:, columns] = p * (along - mean)
        return self.weight_io * found


def minimise(x_if: Any, targets: Targets, penalty: float, advance: Advance = ignore) -> Ridge:
    """Minimise summed cross-entropy and penalty over all questions at once.

    Parameters
    ----------
    x_if
        Texts as sparse rows.
    targets
        What to learn.
    penalty
        This many times half the squared norm of the weights is added to the summed loss.
    advance
        Called with the share done.
    """
    head = targets.head
    block_o = np.repeat(np.arange(len(head.blocks)), [block.width for block in head.blocks])
    problem = _Problem(x_if, x_if.T.tocsr(), targets, targets.weight_iq[:, block_o], penalty, block_o)
    at_go = np.vstack([np.zeros((x_if.shape[1], head.n_outputs)), mean_logits(targets)])
    logits_io = problem.times(at_go)
    for step in range(MOST_STEPS):
        p_io = head.probabilities(logits_io)
        # For a sigmoid and for a softmax alike, the gradient is the answer less the target.
        slope_go = problem.back(problem.weight_io * (p_io - targets.target_io)) + problem.ridge(at_go)
        if np.abs(slope_go).max() <= SLOPE * targets.n_items:
            break
        direction_go = _direction(problem, p_io, slope_go)
        at_go, logits_io = _stepped(problem, at_go, logits_io, direction_go)
        advance(min((step + 1) / USUAL_STEPS, 1.0))
    return Ridge(at_go[:-1], at_go[-1], step)


def _direction(problem: _Problem, p_io: Floats, slope_go: Floats) -> Floats:
    """Solve for Newton's direction by conjugate gradients, question by question but all at once."""
    scale_go = np.full_like(slope_go, 1.0 / problem.penalty)
    # An intercept has no penalty: it is scaled by its own curvature.
    scale_go[-1] = 1.0 / np.maximum((problem.weight_io * p_io * (1.0 - p_io)).sum(axis=0), SMALLEST)

    def dots(one_go: Floats, other_go: Floats) -> Floats:
        return problem.of_questions((one_go * other_go).sum(axis=0))

    found_go, left_go = np.zeros_like(slope_go), -slope_go
    along_go = scale_go * left_go
    size_q = dots(left_go, along_go)
    enough_q = ENOUGH * size_q + SMALLEST
    for _ in range(MOST_INNER):
        curved_go = problem.back(problem.curve(p_io, problem.times(along_go))) + problem.ridge(along_go)
        going_q = size_q > enough_q
        length_q = np.where(going_q, size_q / np.maximum(dots(along_go, curved_go), SMALLEST), 0.0)
        found_go += length_q[problem.block_o] * along_go
        left_go -= length_q[problem.block_o] * curved_go
        scaled_go = scale_go * left_go
        before_q, size_q = size_q, dots(left_go, scaled_go)
        if (size_q <= enough_q).all():
            break
        along_go = scaled_go + (size_q / np.maximum(before_q, SMALLEST))[problem.block_o] * along_go
    return found_go


def _stepped(problem: _Problem, at_go: Floats, logits_io: Floats, direction_go: Floats) -> tuple[Floats, Floats]:
    """Go along the direction, each question half as far as long as its loss would rise."""
    along_io = problem.times(direction_go)
    before_q = problem.losses(logits_io, at_go)
    length_q = np.ones_like(before_q)
    for _ in range(HALVINGS):
        length_o = length_q[problem.block_o]
        there = at_go + length_o * direction_go, logits_io + length_o * along_io
        # Losses are sums of many 32-bit products: a rise in the last digits is none.
        rose_q = problem.losses(there[1], there[0]) > before_q * (1.0 + 1e-7) + SMALLEST
        if not rose_q.any():
            break
        length_q = np.where(rose_q, length_q / 2.0, length_q)
    return there
