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
from numpy.typing import NDArray

from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.parts import Part
from moral_entropy.consensus.model import LogPosterior, Parameters, ScoreCovariance
from moral_entropy.consensus.patterns import Patterns, collapse
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
        count_ck, total_t = self.crew.total(self._each(pass_over_part, at))
        return count_ck, total_t

    def take_missing(self, at: Parameters, curvature_pp: Floats) -> None:
        """Take what the votes leave unknown off the lower triangle, in place."""
        curvature_pp += self.crew.total(self._each(missing_of_part, at))

    def covariance(self, at: Parameters) -> SpreadCovariance:
        """Give the covariance of the complete-data score, as products."""
        return SpreadCovariance(self, at)

    def scout(self, most_votes: int) -> LogPosterior:
        """Fetch a sample of the rows, or all where they are few: the starts are compared here."""
        rows_p = np.array([size.n_rows for size in self.sizes])
        n_rows, wanted = int(rows_p.sum()), None
        if self.n_votes > most_votes:
            n_some = max(1, int(n_rows * most_votes / self.n_votes))
            # Rows are numbered through the parts, so that uncollapsed they are those one machine would choose.
            wanted = np.sort(np.random.default_rng(0).choice(n_rows, n_some, replace=False))
        edges = np.concatenate([[0], np.cumsum(rows_p)])
        asked = [
            self.crew.ask(rows_of_part, part, self.b, None if wanted is None else _between(wanted, first, last))
            for part, first, last in zip(self.parts, edges[:-1], edges[1:], strict=True)
        ]
        joined = join_rows(self.crew.fetch_all(asked), whole=wanted is None)
        return LogPosterior(joined, self.pseudo_k, self.pseudo_akv, self.threads, self.better_than_chance)

    def posterior_rk(self, at: Parameters) -> Floats:
        """Refuse: rows stay with the workers."""
        msg = "the rows of a ballot in parts stay with the workers."
        raise NotImplementedError(msg)

    def _each(self, work: Any, at: Parameters, *given: Any) -> list[Future[Any]]:
        large = at.log_confusion_akv.nbytes > SMALL
        return self.crew.each(work, self.parts, self.b, self.crew.send(at) if large else at, *given)


class SpreadCovariance(ScoreCovariance):
    """What the votes of all parts leave unknown, multiplied with but never formed."""

    def __init__(self, log_posterior: SpreadLogPosterior, at: Parameters) -> None:
        self.spread = log_posterior
        # The parts' posteriors are made once, and made again where a worker was lost.
        self.held = log_posterior._each(covariance_of_part, at)

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


def product_of_part(held: ScoreCovariance, gain_ck: Floats, base_k: Floats) -> tuple[Floats, Floats]:
    """Multiply one part's covariance with a vector."""
    return held.product(gain_ck, base_k)


def rows_of_part(part: Part, b: int, wanted: Ints | None) -> Patterns:
    """Give some rows of one part, or all."""
    patterns = part.patterns[b]
    return patterns.take(np.arange(patterns.n_rows) if wanted is None else wanted)


def _between(wanted: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    at, until = np.searchsorted(wanted, [first, last])
    return wanted[at:until] - first


def join_rows(several: Sequence[Patterns], *, whole: bool) -> Patterns:
    """Put rows of several parts one below the other; if they are all rows, identical ones become one again."""
    start_r = np.concatenate([[0], *(np.diff(one.start_r) for one in several)]).cumsum()
    columns = {
        name: np.concatenate([getattr(one, name) for one in several]) for name in ("code_v", "weight_r", "clamp_r")
    }
    n_rows, first = len(columns["weight_r"]), several[0]
    if not whole:
        return Patterns(first.n_annotators, first.n_labels, start_r, **columns, row_i=np.arange(n_rows))
    ballot = Ballot(
        question="",
        labels=tuple(map(str, range(first.n_labels))),
        positive=first.n_labels - 1,
        item_i=np.arange(n_rows),
        annotator_a=np.arange(first.n_annotators),
        start_i=start_r,
        code_v=columns["code_v"],
        count_i=columns["weight_r"],
        gold_i=columns["clamp_r"],
        published_i=columns["clamp_r"],
    )
    return collapse(ballot, use_gold=True)


def no_rows(ballot: Ballot) -> Patterns:
    """Give patterns of a ballot's annotators and labels without any rows."""
    nothing = np.zeros(0)
    return Patterns(
        n_annotators=ballot.n_annotators,
        n_labels=ballot.n_labels,
        start_r=np.zeros(1, dtype=np.int64),
        code_v=nothing.astype(np.int32),
        weight_r=nothing,
        clamp_r=nothing.astype(np.int16),
        row_i=nothing.astype(np.int64),
    )
