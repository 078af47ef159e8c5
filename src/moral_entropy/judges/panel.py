"""Run → the votes of a panel on one question, and what any part of the panel would have said.

How each judge votes and how probable each state of an item is are those of the run, fitted once on all votes; a part
of the panel then has a posterior of its own. Judges who were counted as one are never both in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from moral_entropy.consensus.result import Consensus
from moral_entropy.judges.cast import cast_votes, judge_of_annotator
from moral_entropy.judges.fitted_panel import as_fitted, as_published
from moral_entropy.judges.known import known_items
from moral_entropy.runs.run import Question, Run
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_ITEMS = 4_000
"""Items that a panel is looked at on: those with known answers first, then others at random."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A panel on one question. Axes: **j** judge, **i** item, **k** label, **z** state between labels.

    Parameters
    ----------
    question
        The question.
    judges
        Names of the judges.
    vote_ji
        Their votes, or `UNKNOWN`; of an item asked about twice the first.
    gold_i, weight_i
        Known answers, and how many items each stands for.
    prior_iz
        Log weights of the states.
    vote_jzk
        Log probability of every vote by state.
    mix_zk
        The labels of each state.
    group_j
        Number of the group that each judge is counted with.
    n_all
        Items that the question has; `vote_ji` may be of a part.
    unsure_ji, unsure_jzk
        Which votes are unsure ones, where these were taken apart, and their log probability by state.
    """

    question: Question
    judges: list[str]
    vote_ji: Ints
    gold_i: Ints
    weight_i: Floats
    prior_iz: Floats
    vote_jzk: Floats
    mix_zk: Floats
    group_j: Ints
    n_all: int
    unsure_ji: NDArray[np.bool_]
    unsure_jzk: Floats

    @property
    def n_gold(self) -> int:
        """How many answers are known."""
        return int((self.gold_i != UNKNOWN).sum())

    def take(self, some_i: Ints) -> Panel:
        """Keep some items."""
        return replace(
            self,
            vote_ji=self.vote_ji[:, some_i],
            unsure_ji=self.unsure_ji[:, some_i],
            gold_i=self.gold_i[some_i],
            weight_i=self.weight_i[some_i],
            prior_iz=self.prior_iz[some_i],
        )

    def voted(self, j: int) -> Ints:
        """Return the items that one judge voted on."""
        return np.flatnonzero(self.vote_ji[j] != UNKNOWN)

    def evidence(self, j: int, at_i: Ints | slice = slice(None)) -> Floats:
        """Return the log likelihood of one judge's votes by item and state; 0 where there is none."""
        vote_i = self.vote_ji[j, at_i]
        cast_i = np.maximum(vote_i, 0)
        found_iz = np.where(self.unsure_ji[j, at_i, None], self.unsure_jzk[j].T[cast_i], self.vote_jzk[j].T[cast_i])
        found_iz[vote_i == UNKNOWN] = 0.0
        return np.asarray(found_iz)

    def posterior(self, some: Sequence[int]) -> Floats:
        """Return the label probabilities that some judges alone would have given: `p_ik`."""
        return self.labels(self._log_weights(some))

    def _log_weights(self, some: Sequence[int]) -> Floats:
        log_iz = self.prior_iz.copy()
        for j in self.counted(some):
            at_i = self.voted(j)
            log_iz[at_i] += self.evidence(j, at_i)
        return log_iz

    @cached_property
    def log_iz(self) -> Floats:
        """Log weights of the states by the votes of everybody."""
        return self._log_weights(range(len(self.judges)))

    def stands_for(self, j: int) -> int:
        """Return the judge whose votes count for one judge: the first of those that it is counted with."""
        [first] = self.counted(np.flatnonzero(self.group_j == self.group_j[j]).tolist())
        return first

    def log_without(self, j: int, at_i: Ints) -> Floats:
        """Return log weights of states of some items, by everybody who is not counted with one judge: `log_iz`."""
        return np.asarray(self.log_iz[at_i] - self.evidence(self.stands_for(j), at_i))

    def labels(self, log_iz: Floats) -> Floats:
        """Return label probabilities by log weights of states: `p_ik`."""
        return np.asarray(softmax(log_iz, axis=1) @ self.mix_zk)

    def counted(self, some: Sequence[int]) -> list[int]:
        """Leave out who is counted with an earlier one of the same judges."""
        return list({int(self.group_j[j]): j for j in reversed(some)}.values())[::-1]

    def others(self, j: int) -> list[int]:
        """Return everybody who is not counted with one judge."""
        return [other for other in range(len(self.judges)) if self.group_j[other] != self.group_j[j]]


def read_panel(run: Run, question: Question, *, seed: int = 0, consensus: Consensus | None = None) -> Panel:
    """Read the panel of one question from a run; of many items a part.

    Parameters
    ----------
    run, question
        The run, and one of its questions.
    seed
        Of the part of many items.
    consensus
        The fit that says how judges vote, if not the run's own: see `recount`.
    """
    known = known_items(run, question)
    at_i = _some(known.gold_i != UNKNOWN, seed)
    items = known.items.gather(at_i)
    cast = cast_votes(run, question, items)
    fitted = as_published(run, question, items) if consensus is None else as_fitted(consensus, items)
    return Panel(
        question=question,
        judges=cast.judges,
        vote_ji=cast.vote_ji,
        gold_i=known.gold_i[at_i],
        weight_i=known.weight_i[at_i],
        n_all=len(known.items),
        unsure_ji=cast.unsure_ji,
        **fitted.for_judges(cast.judges, judge_of_annotator(run)),
    )


def _some(known_i: NDArray[np.bool_], seed: int) -> Ints:
    if len(known_i) <= MOST_ITEMS:
        return np.arange(len(known_i))
    order_i = np.random.default_rng([seed, len(known_i)]).permutation(len(known_i))
    first = order_i[np.argsort(~known_i[order_i], kind="stable")]
    return np.sort(first[:MOST_ITEMS])
