"""The log posterior of a ballot whose items lie in parts with workers.

To the search for the mode and to the Laplace step it is a `LogPosterior` like any other: each pass is the same kernel
on every part, and the sums, annotators × labels × labels, are all that is sent. The prior is added here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from moral_entropy.consensus.model import LogPosterior, Parameters, ScoreCovariance
from moral_entropy.consensus.parts import Part, Parts
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.votes.table import Floats

SMALL = 20_000
"""Bytes up to which parameters are sent with every task rather than once as a task of their own."""


@dataclass(frozen=True)
class Size:
    """Size of a ballot in one part: items with a vote by domain; votes, cells and rows as in `LogPosterior`."""

    items_d: Floats
    n_votes: int
    n_cells: float
    n_rows: int


def size_of(part: Part, b: int) -> Size:
    """Measure a ballot of one part."""
    likelihood = part.likelihood(b, False)
    return Size(likelihood.items_d, likelihood.n_votes, likelihood.n_cells, likelihood.patterns.n_rows)


@dataclass(frozen=True, eq=False)
class PartedLogPosterior(LogPosterior):
    """The log posterior of a ballot in parts; `patterns` has its annotators and labels, and no rows.

    Parameters
    ----------
    parts, b
        The votes, and which ballot.
    sizes
        Of the ballot in every part.
    count_votes
        Counts the votes by code, of all parts; it remembers them for every density of the same votes.
    """

    parts: Parts = field(kw_only=True)
    b: int = field(kw_only=True)
    sizes: Sequence[Size] = field(kw_only=True)
    count_votes: Callable[[], Floats] = field(kw_only=True)

    @cached_property
    def votes_c(self) -> Floats:
        """Votes by code, of all parts."""
        return self.count_votes()

    @cached_property
    def items_d(self) -> Floats:
        """Items with a vote by domain, of all parts."""
        return np.asarray(sum(size.items_d for size in self.sizes))

    @property
    def n_votes(self) -> int:
        """Votes that a pass reads."""
        return sum(size.n_votes for size in self.sizes)

    @cached_property
    def n_cells(self) -> float:
        """Cells of the curvature that a pass would touch."""
        cells = sum(size.n_cells for size in self.sizes)
        return cells if self.between is None else cells * self.states.n_states / 4.0

    @property
    def n_rows(self) -> int:
        """Rows of identical items, of all parts."""
        return sum(size.n_rows for size in self.sizes)

    def pass_over(self, at: Parameters) -> tuple[Floats, Floats]:
        """Return the sums of one pass over all parts."""
        count_cz, total_dt = self.total(pass_over_part, at)
        return count_cz, total_dt

    def take_missing(self, at: Parameters, curvature_pp: Floats) -> None:
        """Subtract the missing information from the lower triangle, in place."""
        curvature_pp += self.total(missing_of_part, at)

    def covariance(self, at: Parameters) -> PartedCovariance:
        """Return the covariance of the complete-data score, as an operator."""
        return PartedCovariance(self, at)

    def sample_rows(self, most_votes: int) -> LogPosterior:
        """Fetch a sample of the rows, or all where they are few; the result is on this machine."""
        wanted = None
        if self.n_votes > most_votes:
            n_some = max(1, int(self.n_rows * most_votes / self.n_votes))
            wanted = np.sort(np.random.default_rng(0).choice(self.n_rows, n_some, replace=False))
        return self.on(self.parts.fetch_rows(self.b, wanted).patterns)

    def on(self, rows: Patterns) -> LogPosterior:
        """Return the same density on rows of this machine."""
        return LogPosterior(rows, self.pseudo_g, self.pseudo_akv, self.threads, self.better_than_chance, self.between)

    def posterior_rz(self, at: Parameters) -> Floats:
        """Raise an error: rows stay with the workers."""
        msg = "the rows of a ballot in parts stay with the workers."
        raise NotImplementedError(msg)

    def each(self, work: Callable[..., Any], at: Parameters, *given: Any) -> list[Any]:
        """Apply `work` to every part at some parameters; return handles of the results."""
        large = at.log_confusion_akv.nbytes > SMALL
        return self.parts.each(work, self.b, self.parts.workers.send(at) if large else at, *given)

    def total(self, work: Callable[..., Any], at: Parameters, *given: Any) -> Any:
        """Apply `work` to every part at some parameters; return the sum of the results."""
        return self.parts.workers.total(self.each(work, at, *given))


class PartedCovariance(ScoreCovariance):
    """The missing information of all parts, never held as a matrix."""

    def __init__(self, log_posterior: PartedLogPosterior, at: Parameters) -> None:
        self.workers = log_posterior.parts.workers
        # The parts' posteriors are made once, and made again where a worker was lost.
        self.held = log_posterior.each(covariance_of_part, at)

    def take_own(self, own_app: Floats) -> Floats:
        """Subtract it from each annotator's own block, in place; return the prevalence's."""
        less_app, items_dzz = self.workers.total(self.workers.each(own_of_part, self.held, own_app.shape))
        own_app += less_app
        return np.asarray(items_dzz)

    def own_rows(self) -> tuple[Floats, Floats]:
        """Return what it takes from each confusion row's own block, and the prevalence's block."""
        unknown_ck, items_dzz = self.workers.total(self.workers.each(own_rows_of_part, self.held))
        return unknown_ck, items_dzz

    def product(self, gain_cz: Floats, base_dz: Floats) -> tuple[Floats, Floats]:
        """Multiply with a vector, in one pass over the votes."""
        gain = self.workers.send(gain_cz) if gain_cz.nbytes > SMALL else gain_cz
        sum_cz, sum_dz = self.workers.total(self.workers.each(product_of_part, self.held, gain, base_dz))
        return sum_cz, sum_dz


def votes_by_code(part: Part, b: int) -> Floats:
    """Count the votes of one part by code, identical items as often as they occur: `votes_c`."""
    return part.likelihood(b, False).votes_c


def pass_over_part(part: Part, b: int, at: Parameters) -> tuple[Floats, Floats]:
    """Return the sums of a pass over one part."""
    return part.likelihood(b, at.mixed).pass_over(at)


def missing_of_part(part: Part, b: int, at: Parameters) -> Floats:
    """Return, below the diagonal, minus the information that one part leaves unknown."""
    likelihood = part.likelihood(b, at.mixed)
    less_pp = np.zeros((likelihood.n_parameters,) * 2)
    likelihood.take_missing(at, less_pp)
    return less_pp


def covariance_of_part(part: Part, b: int, at: Parameters) -> ScoreCovariance:
    """Compute the posteriors of one part that products need."""
    return part.likelihood(b, at.mixed).covariance(at)


def own_of_part(held: ScoreCovariance, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return what one part subtracts from each annotator's block, and the prevalence's."""
    less_app = np.zeros(shape)
    items_dzz = held.take_own(less_app)
    return less_app, items_dzz


def own_rows_of_part(held: ScoreCovariance) -> tuple[Floats, Floats]:
    """Return what one part takes from each confusion row's block, and the prevalence's."""
    return held.own_rows()


def product_of_part(held: ScoreCovariance, gain_cz: Floats, base_dz: Floats) -> tuple[Floats, Floats]:
    """Multiply one part's covariance with a vector."""
    return held.product(gain_cz, base_dz)
