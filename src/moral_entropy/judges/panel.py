"""Run → the votes of a panel on one question, what any part of the panel would have said, and which part is the best.

How each judge votes and how probable each state of an item is are those of the run, fitted once on all votes; a part
of the panel then has a posterior of its own. Judges who were counted as one are never both in it. What a judge adds is
graded by known answers where there are enough, else by the consensus of all, which takes the side of judges who err
together: what was used is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from scipy.special import softmax, xlogy

from moral_entropy.items.states import FittedStates, positions
from moral_entropy.judges.known import known_items
from moral_entropy.model.states import States
from moral_entropy.runs.run import Question, Run
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_JUDGES = 200
"""Judges up to whom a panel is taken apart; more are a crowd."""

MOST_ITEMS = 4_000
"""Items that a panel is looked at on: those with known answers first, then others at random."""

ENOUGH = 30
"""Known answers from which judges are graded by them."""

EXHAUSTIVE = 12
"""Judges up to whom every panel is tried; of more, those who are best alone."""

MOST_GRADED = 1_000
"""Items that panels are graded on: of more a random part."""

FLOOR = 1e-12

ADDED = pl.Schema({**dict.fromkeys(("nats", "nats_se", "saved", "saved_se"), pl.Float64()), "graded_by": pl.String()})
PANELS = pl.Schema(
    {
        **dict.fromkeys(("question", "judges"), pl.String()),
        "size": pl.Int64(),
        **dict.fromkeys(("cost", "wrong", "wrong_unseen"), pl.Float64()),
        "graded_by": pl.String(),
    }
)


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

    @property
    def n_gold(self) -> int:
        """How many answers are known."""
        return int((self.gold_i != UNKNOWN).sum())

    def take(self, kept_i: Ints) -> Panel:
        """Keep some items."""
        rows = {name: getattr(self, name)[kept_i] for name in ("gold_i", "weight_i", "prior_iz")}
        return replace(self, vote_ji=self.vote_ji[:, kept_i], **rows)

    def voted(self, j: int) -> Ints:
        """Return the items that one judge voted on."""
        return np.flatnonzero(self.vote_ji[j] != UNKNOWN)

    def evidence(self, j: int, at_i: Ints | slice = slice(None)) -> Floats:
        """Return the log likelihood of one judge's votes by item and state; 0 where there is none."""
        vote_i = self.vote_ji[j, at_i]
        return np.asarray(np.where((vote_i == UNKNOWN)[:, None], 0.0, self.vote_jzk[j].T[np.maximum(vote_i, 0)]))

    def posterior(self, members: Sequence[int]) -> Floats:
        """Return the label probabilities that some judges alone would have given: `p_ik`."""
        return self.labels(self._log_weights(members))

    def _log_weights(self, members: Sequence[int]) -> Floats:
        return np.asarray(self.prior_iz + sum(self.evidence(j) for j in self.counted(members)))

    @cached_property
    def log_iz(self) -> Floats:
        """Log weights of the states by the votes of everybody."""
        return self._log_weights(range(len(self.judges)))

    def log_without(self, j: int, at_i: Ints) -> Floats:
        """Return log weights of states of some items, by everybody who is not counted with one judge: `log_iz`."""
        [first] = self.counted(np.flatnonzero(self.group_j == self.group_j[j]).tolist())
        return np.asarray(self.log_iz[at_i] - self.evidence(first, at_i))

    def labels(self, log_iz: Floats) -> Floats:
        """Return label probabilities by log weights of states: `p_ik`."""
        return np.asarray(softmax(log_iz, axis=1) @ self.mix_zk)

    def counted(self, members: Sequence[int]) -> list[int]:
        """Leave out who is counted with an earlier one of the same judges."""
        return list({int(self.group_j[j]): j for j in reversed(members)}.values())[::-1]

    def others(self, j: int) -> list[int]:
        """Return everybody who is not counted with one judge."""
        return [other for other in range(len(self.judges)) if self.group_j[other] != self.group_j[j]]

    def graded(self) -> tuple[Panel, Floats, str]:
        """Return the panel on the items that grade it, how probable each label is there, and by what that is known."""
        if self.n_gold < ENOUGH:
            return self, self.posterior(range(len(self.judges))), "consensus"
        panel = self.take(np.flatnonzero(self.gold_i != UNKNOWN))
        return panel, np.asarray(np.eye(self.mix_zk.shape[1])[panel.gold_i]), "known answers"


def read_panel(run: Run, question: Question, *, seed: int = 0) -> Panel:
    """Read the panel of one question from a run; of many items a part.

    Parameters
    ----------
    run, question
        The run, and one of its questions.
    seed
        Of the part of many items.
    """
    known = known_items(run, question)
    at_i = _at_most(known.gold_i != UNKNOWN, seed)
    items = known.items.gather(at_i)
    votes = run.table("votes", where=pl.col("question") == question.name).drop_nulls("annotator")
    names = votes["annotator"].cast(pl.String)
    judges = names.unique().sort().to_list()
    places = pl.DataFrame({"item": items}).with_row_index("at")
    coded = votes.with_columns(judge=names).join(places, on="item", how="inner", maintain_order="left")
    vote_ji = np.full((len(judges), len(items)), UNKNOWN, dtype=np.int64)
    where = positions(coded["judge"], judges, default=0), coded["at"].to_numpy()
    # Backwards: of two votes of one judge on one item the first stays.
    vote_ji[where[0][::-1], where[1][::-1]] = positions(coded["label"], list(question.labels), default=UNKNOWN)[::-1]
    rows: dict[str, Any] = {"gold_i": known.gold_i[at_i], "weight_i": known.weight_i[at_i], "n_all": len(known.items)}
    return Panel(question, judges, vote_ji, **rows, **_fitted(run, question, items, judges))


def _at_most(first_i: Any, seed: int) -> Ints:
    if len(first_i) <= MOST_ITEMS:
        return np.arange(len(first_i))
    order_i = np.random.default_rng([seed, len(first_i)]).permutation(len(first_i))
    return np.sort(order_i[np.argsort(~first_i[order_i], kind="stable")][:MOST_ITEMS])


def _fitted(run: Run, question: Question, items: pl.Series, judges: list[str]) -> dict[str, Any]:
    """Read how judges vote, from the first part of a question that was fitted in several."""
    fit = next(fit for fit in run.manifest["questions"] if fit["question"] == question.name)
    labels, n_labels = fit["labels"], len(fit["labels"])
    here = (pl.col("question") == fit["question"]) & (pl.col("part") == fit["part"])
    domain_i: Ints = np.zeros(len(items), dtype=np.int64)
    if fit["mixture"] is None:
        states, weight_dz = States(n_labels), np.array([[fit["prevalence"][label] for label in labels]])
    else:
        between = FittedStates.of(fit)
        states, weight_dz = between.states, between.states.weight_of_states(between.weight_dg)
        if between.domains:
            domains = run.table("items", where=here).select("item", "domain")
            joined = items.to_frame("item").join(domains, on="item", how="left", maintain_order="left")
            domain_i = between.domain_i(joined["domain"])
    cells = run.table("annotators", where=here)
    names = cells["annotator"].cast(pl.String).gather_every(n_labels**2).to_list()
    # Who voted in another part only tells nothing here.
    nothing_akv = np.full((1, n_labels, n_labels), 1.0 / n_labels)
    confusion_akv = np.concatenate([cells["probability"].to_numpy().reshape(-1, n_labels, n_labels), nothing_akv])
    place_j = positions(pl.Series(judges, dtype=pl.String), names, default=len(names))
    group_of = {str(name): g for g, group in enumerate(fit["counted_as_one"]) for name in group}
    alone = len(fit["counted_as_one"])
    return {
        "prior_iz": np.log(weight_dz)[domain_i],
        "vote_jzk": np.log(states.votes_azv(confusion_akv[place_j])),
        "mix_zk": states.mix_zk,
        "group_j": np.array([group_of.get(name, alone + j) for j, name in enumerate(judges)], dtype=np.int64),
    }


def added_by_each(panel: Panel) -> pl.DataFrame:
    """Compute what every judge adds to those who are not counted with it: `ADDED`, a row per judge.

    `nats` is the log score of the right label with the judge less that without, mean per item; `saved` the share of
    items labelled right with the judge and wrong without, less the opposite. Each has its standard error.
    """
    panel, truth_ik, graded_by = panel.graded()
    rows = []
    for j in range(len(panel.judges)):
        nats_i, saved_i = np.zeros(len(truth_ik)), np.zeros(len(truth_ik))
        at_i = panel.voted(j)
        without_iz, truth_ak = panel.log_without(j, at_i), truth_ik[at_i]
        before_ak, after_ak = panel.labels(without_iz), panel.labels(without_iz + panel.evidence(j, at_i))
        # The expected log ratio under the truth, or under the consensus of all.
        nats_i[at_i] = xlogy(truth_ak, np.maximum(after_ak, FLOOR) / np.maximum(before_ak, FLOOR)).sum(axis=1)
        saved_i[at_i] = _right(truth_ak, after_ak) - _right(truth_ak, before_ak)
        rows.append((*_mean(nats_i, panel.weight_i), *_mean(saved_i, panel.weight_i), graded_by))
    return pl.DataFrame(rows, schema=ADDED, orient="row")


def _right(truth_ik: Floats, p_ik: Floats) -> Floats:
    return np.asarray(truth_ik[np.arange(len(p_ik)), highest(p_ik)])


def _mean(value_i: Floats, weight_i: Floats) -> tuple[float, float]:
    mean = float(np.average(value_i, weights=weight_i))
    share_i = weight_i / weight_i.sum()
    return mean, math.sqrt(float((share_i**2) @ (value_i - mean) ** 2))


def best_panels(panel: Panel, cost_j: Floats, *, seed: int = 0) -> pl.DataFrame:
    """Return the panels that no other beats at the same price or a lower one, cheapest first: `PANELS`.

    `cost` is what one item costs, `wrong` the share of items that the panel labels wrong, `wrong_unseen` the same for
    panels of the price chosen on one half of the items and graded on the other: a fair figure, as the best of many
    panels looks better than it is. Of judges who are counted as one only the cheapest may be in a panel. A single item
    has no halves, and so no best panel.

    Parameters
    ----------
    panel
        The panel.
    cost_j
        What one vote of each judge costs.
    seed
        Of the halves.
    """
    panel, truth_ik, graded_by = panel.graded()
    if (n := len(truth_ik)) > MOST_GRADED:
        kept_i = np.sort(np.random.default_rng([seed, n]).choice(n, MOST_GRADED, replace=False))
        panel, truth_ik = panel.take(kept_i), truth_ik[kept_i]
    if len(truth_ik) < 2:
        return PANELS.to_frame()
    half_i = np.random.default_rng([seed, len(truth_ik)]).permutation(len(truth_ik)) % 2 == 0
    weight_is = panel.weight_i[:, None] * np.stack([np.ones(len(half_i)), half_i, ~half_i], axis=1)
    weight_is /= weight_is.sum(axis=0)
    evidence_jiz = np.stack([panel.evidence(j) for j in range(len(panel.judges))])

    def wrong_shares(members: tuple[int, ...]) -> Floats:
        """Return which share a panel labels wrong: of all items, of one half, of the other."""
        p_ik = panel.labels(panel.prior_iz + evidence_jiz[list(members)].sum(axis=0))
        return np.asarray((1.0 - _right(truth_ik, p_ik)) @ weight_is)

    cheapest: dict[int, int] = {}
    for j in sorted(range(len(panel.judges)), key=lambda j: (tie_key(cost_j[j]), j)):
        cheapest.setdefault(int(panel.group_j[j]), j)
    alone = sorted(cheapest.values(), key=lambda j: (tie_key(wrong_shares((j,))[0]), j))
    candidates = sorted(alone[:EXHAUSTIVE])
    tried: list[tuple[int, ...]] = [(j,) for j in sorted(alone)]
    tried += [members for size in range(2, len(candidates) + 1) for members in combinations(candidates, size)]
    cost_p = np.array([sum(cost_j[j] for j in members) for members in tried])
    share_ps = np.array([wrong_shares(members) for members in tried])
    rows = [
        (panel.question.name, ", ".join(panel.judges[j] for j in tried[p]), len(tried[p]), float(cost_p[p]),
         float(share_ps[p, 0]), _unseen(share_ps[cost_p <= cost_p[p] + 1e-9, 1:]), graded_by)
        for p in _frontier(cost_p, share_ps[:, 0])
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=PANELS, orient="row")


def _unseen(share_ph: Floats) -> float:
    """Choose the best panel on one half of the items, grade it on the other, and the other way round."""
    best_h = tie_key(share_ph).argmin(axis=0)
    return float(np.mean([share_ph[best_h[0], 1], share_ph[best_h[1], 0]]))


def _frontier(cost_p: Floats, share_p: Floats) -> list[int]:
    """Return which panels no other beats at the same price or a lower one, cheapest first."""
    best: list[int] = []
    for p in np.lexsort((tie_key(share_p), tie_key(cost_p))).tolist():
        if not best or tie_key(share_p[p]) < tie_key(share_p[best[-1]]):
            best.append(p)
    return best
