"""The log posterior of a ballot whose items are spread over workers.

To the climb and to the Laplace step it is a `LogPosterior` like any other: each pass is the same kernel on every part,
and the sums, annotators × labels × labels, are all that travels. The prior is added here, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.parts import OwnRows, Part
from moral_entropy.consensus.model import LogPosterior, Parameters, ScoreCovariance
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.votes.table import Ballot, Floats, Ints

if TYPE_CHECKING:
    from distributed import Future

SMALL = 20_000
"""Bytes up to which parameters travel with every task rather than by one of their own."""


@dataclass(frozen=True, eq=False)
class Size:
    """How much there is to walk over in one part.

    Parameters
    ----------
    n_items
        Items with a vote.
    n_votes, n_cells
        As in `LogPosterior`.
    n_rows
        Rows of identical items.
    """

    n_items: float
    n_votes: int
    n_cells: float
    n_rows: int


def size_of(part: Part, b: int) -> Size:
    """Measure a ballot of one part."""
    likelihood = part.likelihoods[b]
    return Size(likelihood.n_items, likelihood.n_votes, likelihood.n_cells, likelihood.patterns.n_rows)


def votes_by_code(part: Part, b: int) -> Floats:
    """Count the votes of one part by code, identical items as often as they occur: `votes_c`."""
    return part.likelihoods[b].votes_c


@dataclass(frozen=True, eq=False)
class SpreadLogPosterior(LogPosterior):
    """The log posterior of a ballot in parts; `patterns` has its annotators and labels, and no rows.

    Parameters
    ----------
    crew, parts
        Who holds the parts, and the parts.
    b
        Which ballot.
    sizes
        Of the ballot in every part.
    """

    crew: Crew = field(kw_only=True)
    parts: Sequence[Future[Any]] = field(kw_only=True)
    b: int = field(kw_only=True)
    sizes: Sequence[Size] = field(kw_only=True)

    @cached_property
    def votes_c(self) -> Floats:
        """Votes by code, of all parts."""
        return np.asarray(self.crew.total(self.crew.each(votes_by_code, self.parts, self.b)))

    @cached_property
    def n_items(self) -> float:
        """Items with a vote, of all parts."""
        return float(sum(size.n_items for size in self.sizes))

    @property
    def n_votes(self) -> int:
        """Votes that a pass walks over."""
        return sum(size.n_votes for size in self.sizes)

    @cached_property
    def n_cells(self) -> float:
        """Cells of the curvature that a pass would touch."""
        return sum(size.n_cells for size in self.sizes)

    def pass_over(self, at: Parameters) -> tuple[Floats, Floats]:
        """Give the sums of one pass over all parts."""
        count_ck, total_t = self.crew.total(self.each(pass_over_part, at))
        return count_ck, total_t

    def take_missing(self, at: Parameters, curvature_pp: Floats) -> None:
        """Take what the votes leave unknown off the lower triangle, in place."""
        curvature_pp += self.crew.total(self.each(missing_of_part, at))

    def covariance(self, at: Parameters) -> SpreadCovariance:
        """Give the covariance of the complete-data score, as products."""
        return SpreadCovariance(self, at)

    def scout(self, most_votes: int) -> LogPosterior:
        """Fetch a sample of the rows, or all where they are few: the starts are compared here."""
        wanted = None
        if self.n_votes > most_votes:
            n_some = max(1, int(self.n_rows * most_votes / self.n_votes))
            wanted = np.sort(np.random.default_rng(0).choice(self.n_rows, n_some, replace=False))
        return self.on(self.fetch_rows(wanted).patterns)

    @property
    def n_rows(self) -> int:
        """Rows of identical items, of all parts."""
        return sum(size.n_rows for size in self.sizes)

    def fetch_rows(self, wanted: Ints | None = None) -> OwnRows:
        """Fetch some rows by number, or all; they are numbered as on one machine."""
        edges = np.cumsum([0, *(size.n_rows for size in self.sizes)]).tolist()
        asked = [
            self.crew.ask(rows_of_part, part, self.b, None if wanted is None else _between(wanted, first, last))
            for part, first, last in zip(self.parts, edges[:-1], edges[1:], strict=True)
        ]
        return join_rows(self.crew.fetch_all(asked))

    def on(self, rows: Patterns) -> LogPosterior:
        """Give the same density of rows at hand."""
        return LogPosterior(rows, self.pseudo_k, self.pseudo_akv, self.threads, self.better_than_chance)

    def posterior_rk(self, at: Parameters) -> Floats:
        """Refuse: rows stay with the workers."""
        msg = "the rows of a ballot in parts stay with the workers."
        raise NotImplementedError(msg)

    def each(self, work: Any, at: Parameters, *given: Any) -> list[Future[Any]]:
        """Have something done with every part at some parameters."""
        large = at.log_confusion_akv.nbytes > SMALL
        return self.crew.each(work, self.parts, self.b, self.crew.send(at) if large else at, *given)


class SpreadCovariance(ScoreCovariance):
    """What the votes of all parts leave unknown, multiplied with but never formed."""

    def __init__(self, log_posterior: SpreadLogPosterior, at: Parameters) -> None:
        self.spread = log_posterior
        # The parts' posteriors are made once, and made again where a worker was lost.
        self.held = log_posterior.each(covariance_of_part, at)

    def take_own(self, own_app: Floats) -> Floats:
        """Take it off each annotator's own block, in place; give the prevalence's."""
        less_app, items_kk = self.spread.crew.total(self.spread.crew.each(own_of_part, self.held, own_app.shape))
        own_app += less_app
        return np.asarray(items_kk)

    def product(self, gain_ck: Floats, base_k: Floats) -> tuple[Floats, Floats]:
        """Multiply with a vector, in one pass over the votes."""
        crew = self.spread.crew
        gain = crew.send(gain_ck) if gain_ck.nbytes > SMALL else gain_ck
        sum_ck, sum_k = crew.total(crew.each(product_of_part, self.held, gain, base_k))
        return sum_ck, sum_k


def pass_over_part(part: Part, b: int, at: Parameters) -> tuple[Floats, Floats]:
    """Give the sums of a pass over one part."""
    return part.likelihoods[b].pass_over(at)


def missing_of_part(part: Part, b: int, at: Parameters) -> Floats:
    """Give, below the diagonal, minus the information that one part leaves unknown."""
    likelihood = part.likelihoods[b]
    less_pp = np.zeros((likelihood.n_parameters,) * 2)
    likelihood.take_missing(at, less_pp)
    return less_pp


def covariance_of_part(part: Part, b: int, at: Parameters) -> ScoreCovariance:
    """Work out the posteriors of one part that products need."""
    return part.likelihoods[b].covariance(at)


def own_of_part(held: ScoreCovariance, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Give what one part takes off each annotator's block, and the prevalence's."""
    less_app = np.zeros(shape)
    items_kk = held.take_own(less_app)
    return less_app, items_kk


def _between(wanted: Ints, first: int, last: int) -> Ints:
    at, until = np.searchsorted(wanted, [first, last])
    return np.asarray(wanted[at:until] - first)


def product_of_part(held: ScoreCovariance, gain_ck: Floats, base_k: Floats) -> tuple[Floats, Floats]:
    """Multiply one part's covariance with a vector."""
    return held.product(gain_ck, base_k)


def rows_of_part(part: Part, b: int, wanted: Ints | None) -> OwnRows:
    """Give some of one part's own rows, or all."""
    own = part.own[b]
    return own if wanted is None else OwnRows(own.patterns.take(wanted), own.count_r[wanted])


def join_rows(several: Sequence[OwnRows]) -> OwnRows:
    """Put rows of several parts one below the other."""
    rows = [one.patterns for one in several]
    start_r = np.concatenate([[0], *(np.diff(one.start_r) for one in rows)]).cumsum()
    columns = {name: np.concatenate([getattr(one, name) for one in rows]) for name in ("code_v", "weight_r", "clamp_r")}
    numbers_r = np.arange(len(start_r) - 1)
    patterns = Patterns(rows[0].n_annotators, rows[0].n_labels, start_r, **columns, row_i=numbers_r)
    return OwnRows(patterns, np.concatenate([one.count_r for one in several]))


def no_rows(ballot: Ballot, n_annotators: int | None = None) -> Patterns:
    """Give patterns of a ballot's annotators, or of so many, and its labels without any rows."""
    nothing = np.zeros(0)
    return Patterns(
        n_annotators=ballot.n_annotators if n_annotators is None else n_annotators,
        n_labels=ballot.n_labels,
        start_r=np.zeros(1, dtype=np.int64),
        code_v=nothing.astype(np.int32),
        weight_r=nothing,
        clamp_r=nothing.astype(np.int16),
        row_i=nothing.astype(np.int64),
    )
