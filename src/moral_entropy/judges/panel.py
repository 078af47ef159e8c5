"""Run → the votes of a panel on one question, and what any part of the panel would have said.

How each judge votes and how probable each state of an item is are those of the run, fitted once on all votes; a part
of the panel then has a posterior of its own. Judges who were counted as one are never both in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import softmax

from moral_entropy.consensus.states import corners
from moral_entropy.judges.known import known_items
from moral_entropy.runs.between_labels import FittedStates, positions
from moral_entropy.runs.run import Question, Run
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_ITEMS = 4_000
"""Items that a panel is looked at on: those with known answers first, then others at random."""

MOST_JUDGES = 200
"""Judges up to whom a panel is taken apart; more are a crowd."""


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

    def evidence(self, j: int) -> Floats:
        """Return the log likelihood of one judge's votes by item and state; 0 where there is none."""
        vote_i = self.vote_ji[j]
        cast_i = np.maximum(vote_i, 0)
        found_iz = np.where(self.unsure_ji[j][:, None], self.unsure_jzk[j].T[cast_i], self.vote_jzk[j].T[cast_i])
        found_iz[vote_i == UNKNOWN] = 0.0
        return np.asarray(found_iz)

    def posterior(self, some: Sequence[int]) -> Floats:
        """Return the label probabilities that some judges alone would have given: `p_ik`."""
        log_iz = self.prior_iz.copy()
        for j in self.counted(some):
            log_iz += self.evidence(j)
        return np.asarray(softmax(log_iz, axis=1) @ self.mix_zk)

    @cached_property
    def _all_log_iz(self) -> Floats:
        """Log weights of the states by the votes of everybody."""
        return np.asarray(self.prior_iz + sum(self.evidence(j) for j in self.counted(range(len(self.judges)))))

    def posterior_without(self, j: int) -> Floats:
        """Return the label probabilities by the votes of everybody who is not counted with one judge: `p_ik`."""
        [own] = self.counted(np.flatnonzero(self.group_j == self.group_j[j]).tolist())
        return np.asarray(softmax(self._all_log_iz - self.evidence(own), axis=1) @ self.mix_zk)

    def counted(self, some: Sequence[int]) -> list[int]:
        """Leave out who is counted with an earlier one of the same judges."""
        return list({int(self.group_j[j]): j for j in reversed(some)}.values())[::-1]

    def others(self, j: int) -> list[int]:
        """Return everybody who is not counted with one judge."""
        return [other for other in range(len(self.judges)) if self.group_j[other] != self.group_j[j]]


def read_panel(run: Run, question: Question, *, seed: int = 0) -> Panel:
    """Read the panel of one question from a run; of many items a part."""
    known = known_items(run, question)
    at_i = _some(known.gold_i != UNKNOWN, seed)
    items = pl.DataFrame({"item": known.items.gather(at_i)}).with_row_index("at")
    votes = run.table("votes", where=pl.col("question") == question.name)
    judge_of = run.manifest.get("unsure", {})
    name = pl.col("annotator").cast(pl.String)
    votes = votes.with_columns(annotator=name.replace(judge_of), unsure=name.is_in(list(judge_of)))
    judges = votes["annotator"].drop_nulls().unique().sort().to_list()
    coded = votes.join(items, on="item", how="inner", maintain_order="left").drop_nulls("annotator")
    vote_ji = np.full((len(judges), len(at_i)), UNKNOWN, dtype=np.int64)
    where = positions(coded["annotator"], judges, default=0), coded["at"].to_numpy()
    # Backwards: of two votes of one judge on one item the first stays.
    vote_ji[where[0][::-1], where[1][::-1]] = positions(coded["label"], list(question.labels), default=UNKNOWN)[::-1]
    unsure_ji = np.zeros(vote_ji.shape, dtype=np.bool_)
    unsure_ji[where[0][::-1], where[1][::-1]] = coded["unsure"].to_numpy()[::-1]
    fits = [fit for fit in run.manifest["questions"] if fit["question"] == question.name]
    return Panel(
        question=question,
        judges=judges,
        vote_ji=vote_ji,
        gold_i=known.gold_i[at_i],
        weight_i=known.weight_i[at_i],
        n_all=len(known.items),
        unsure_ji=unsure_ji,
        **_fitted(run, fits[0], judges, items, judge_of),
    )


def _some(known_i: NDArray[np.bool_], seed: int) -> Ints:
    if len(known_i) <= MOST_ITEMS:
        return np.arange(len(known_i))
    order_i = np.random.default_rng([seed, len(known_i)]).permutation(len(known_i))
    first = order_i[np.argsort(~known_i[order_i], kind="stable")]
    return np.sort(first[:MOST_ITEMS])


def _fitted(
    run: Run, fit: dict[str, Any], judges: list[str], items: pl.DataFrame, judge_of: dict[str, str]
) -> dict[str, Any]:
    """Read how judges vote, from the first part of a question that was fitted in several."""
    labels, n_labels = fit["labels"], len(fit["labels"])
    here = (pl.col("question") == fit["question"]) & (pl.col("part") == fit["part"])
    cells = run.table("annotators", where=here)
    confusion_akv = cells["probability"].to_numpy().reshape(-1, n_labels, n_labels)
    names = cells["annotator"].cast(pl.String).gather_every(n_labels**2)
    second = {judge: name for name, judge in judge_of.items()}
    place_j, second_j = (
        positions(pl.Series(some, dtype=pl.String), names.to_list(), default=len(names))
        for some in (judges, [second.get(name, name) for name in judges])
    )
    # Who voted in another part only tells nothing here.
    confusion_akv = np.concatenate([confusion_akv, np.full((1, n_labels, n_labels), 1.0 / n_labels)])
    if fit["mixture"] is None:
        states, weight_dz = corners(n_labels), np.array([[fit["prevalence"][label] for label in labels]])
        domain_i: Ints = np.zeros(items.height, dtype=np.int64)
        power = float(fit["exponent"]["value"])
    else:
        between = FittedStates.of(fit)
        states, weight_dz, power = between.states, between.states.weight_of_states(between.weight_dg), between.power
        domains = items.join(run.table("items", where=here).select("item", "domain"), on="item", how="left",
                             maintain_order="left")["domain"]  # fmt: skip
        domain_i = between.domain_i(domains) if between.domains else np.zeros(items.height, dtype=np.int64)
    return {
        "prior_iz": np.log(weight_dz)[domain_i],
        "vote_jzk": np.log(states.votes_azv(confusion_akv[place_j] ** power)),
        "unsure_jzk": np.log(states.votes_azv(confusion_akv[second_j] ** power)),
        "mix_zk": states.mix_zk,
        "group_j": _groups(judges, [[judge_of.get(str(one), one) for one in some] for some in fit["counted_as_one"]]),
    }


def _groups(judges: list[str], counted: Sequence[Sequence[Any]]) -> Ints:
    group_of = {str(name): g for g, group in enumerate(counted) for name in group}
    return np.array([group_of.get(name, len(counted) + j) for j, name in enumerate(judges)], dtype=np.int64)
