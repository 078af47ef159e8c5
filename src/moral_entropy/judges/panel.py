"""Run → the votes of a panel on one question, what any part of it would have said, which part is best, better labels.

How each judge votes is as the run has fitted it. From 30 known answers on these overrule the fit: they say how each
judge votes, what it adds and which panel is best; whatever grades was learnt on other items. Without them nobody is
graded: the consensus of all takes the side of judges who err together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from scipy.special import softmax, stdtrit

from moral_entropy.judges.known import ENOUGH, KnownItems, fitted_votes, vote_matrix
from moral_entropy.judges.values import schema
from moral_entropy.runs.run import Run
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_ITEMS = 4_000
"""Items that a panel is looked at on: those with known answers first, then others at random."""

EXHAUSTIVE = 12
"""Judges up to whom every panel is tried; of more, those who are best alone."""

FLOOR = 1e-12

ADDED = schema("float nats nats_se saved saved_se")
PANELS = schema("text question judges", "int size", "float wrong wrong_unseen")


@dataclass(frozen=True, eq=False)
class Panel:
    """A panel on one question. Axes: **j** judge, **i** item, **k** label, **z** state between labels.

    Parameters
    ----------
    reference
        The items of the question, and their known answers.
    at_i
        Which of them the panel is looked at on.
    vote_ji
        Votes of the judges, or `UNKNOWN`.
    prior_iz, vote_jzk, mix_zk, group_j
        As `fitted_votes` returns them.
    """

    reference: KnownItems
    at_i: Ints
    vote_ji: Ints
    prior_iz: Floats
    vote_jzk: Floats
    mix_zk: Floats
    group_j: Ints

    @property
    def judges(self) -> list[str]:
        """Names of the judges."""
        return self.reference.judges

    @property
    def gold_i(self) -> Ints:
        """Known answers, or `UNKNOWN`."""
        return self.reference.gold_i[self.at_i]

    @property
    def weight_i(self) -> Floats:
        """How many items each stands for."""
        return self.reference.weight_i[self.at_i]

    @property
    def n_known(self) -> int:
        """How many answers are known."""
        return int((self.gold_i != UNKNOWN).sum())

    def take(self, rows: Ints) -> Panel:
        """Return the panel on a part of the items."""
        return replace(self, at_i=self.at_i[rows], vote_ji=self.vote_ji[:, rows], prior_iz=self.prior_iz[rows])

    def learnt(self, rows: Ints) -> Panel:
        """Return the panel as the known answers of a part of the items describe it: states are labels."""
        n_labels = self.mix_zk.shape[1]
        here = rows[self.gold_i[rows] != UNKNOWN]
        # One pseudo-vote for the label itself and half a one for each: as good as the model's own prior.
        count_jkv = np.tile(0.5 + 0.5 * np.eye(n_labels), (len(self.judges), 1, 1))
        for j, vote_i in enumerate(self.vote_ji[:, here]):
            voted_i = vote_i != UNKNOWN
            np.add.at(count_jkv[j], (self.gold_i[here][voted_i], vote_i[voted_i]), 1.0)
        share_k = np.bincount(self.gold_i[here], weights=self.weight_i[here], minlength=n_labels) + 0.5
        prior_iz = np.tile(np.log(share_k / share_k.sum()), (len(self.gold_i), 1))
        vote_jzk = np.log(count_jkv / count_jkv.sum(axis=2, keepdims=True))
        return replace(self, prior_iz=prior_iz, vote_jzk=vote_jzk, mix_zk=np.eye(n_labels))

    def evidence(self, j: int) -> Floats:
        """Return the log likelihood of one judge's votes by item and state; 0 where there is none."""
        vote_i = self.vote_ji[j]
        return np.asarray(np.where((vote_i == UNKNOWN)[:, None], 0.0, self.vote_jzk[j].T[np.maximum(vote_i, 0)]))

    def log_weights(self, members: Sequence[int]) -> Floats:
        """Return log weights of the states by the votes of some judges, copies counted once: `log_iz`."""
        members_once = {int(self.group_j[j]): j for j in reversed(members)}.values()
        return np.asarray(self.prior_iz + sum(self.evidence(j) for j in members_once))

    def labels(self, log_iz: Floats) -> Floats:
        """Return label probabilities by log weights of states: `p_ik`."""
        return np.asarray(softmax(log_iz, axis=1) @ self.mix_zk)

    def others(self, j: int) -> list[int]:
        """Return everybody who is not counted with one judge."""
        return [colleague for colleague in range(len(self.judges)) if self.group_j[colleague] != self.group_j[j]]

    def halves(self) -> list[Panel]:
        """Return the panel on two halves of the known answers; in each, judges vote as the answers of the other say."""
        panel = self.take(np.flatnonzero(self.gold_i != UNKNOWN))
        half_i = np.random.default_rng(panel.n_known).permutation(panel.n_known) % 2
        rows = [np.flatnonzero(half_i == half) for half in (0, 1)]
        return [panel.learnt(rows[1 - half]).take(rows[half]) for half in (0, 1)]


def read_panel(run: Run, reference: KnownItems) -> Panel:
    """Read the panel of one question from a run; of many items a part."""
    n, judges = len(reference.items), reference.judges
    at_i = np.arange(n)
    if n > MOST_ITEMS:
        order_i = np.random.default_rng([0, n]).permutation(n)
        at_i = np.sort(order_i[np.argsort(~reference.known_i[order_i], kind="stable")][:MOST_ITEMS])
    items, question = reference.items.gather(at_i), reference.question
    votes = run.table("votes", where=pl.col("question") == question.name).drop_nulls("annotator")
    vote_ji = vote_matrix(votes, items, judges, list(question.labels))
    fitted = fitted_votes(run, question, items, judges)
    return Panel(reference, at_i, vote_ji, *fitted)


def added_by_each(panel: Panel) -> pl.DataFrame:
    """Compute what every judge adds to those who are not counted with it: `ADDED`, a row per judge.

    `nats` is the log score of the right label with the judge less that without, mean per item; `saved` the share of
    items labelled right with the judge and wrong without, less the opposite. Each has its standard error.
    """
    halves = panel.halves()
    weight_i = np.concatenate([half.weight_i for half in halves])
    rows = []
    for j in range(len(panel.judges)):
        nats, saved = [], []
        for half in halves:
            log_iz, at = half.log_weights(half.others(j)), np.arange(len(half.gold_i))
            before_ik, after_ik = half.labels(log_iz), half.labels(log_iz + half.evidence(j))
            log_before, log_after = (np.log(p_ik[at, half.gold_i] + FLOOR) for p_ik in (before_ik, after_ik))
            nats.append(log_after - log_before)
            saved.append(1.0 * (highest(after_ik) == half.gold_i) - (highest(before_ik) == half.gold_i))
        rows.append((*_mean(np.concatenate(nats), weight_i), *_mean(np.concatenate(saved), weight_i)))
    return pl.DataFrame(rows, schema=ADDED, orient="row")


def _mean(value_i: Floats, weight_i: Floats) -> tuple[float, float]:
    mean = float(np.average(value_i, weights=weight_i))
    share_i = weight_i / weight_i.sum()
    return mean, math.sqrt(float((share_i**2) @ (value_i - mean) ** 2))


def best_panels(panel: Panel) -> pl.DataFrame:
    """Return the panels that no other beats of the same size or a smaller one, smallest first: `PANELS`.

    `wrong` is the share of known answers that the panel misses, `wrong_unseen` the same for panels up to the size
    chosen on one half of them and graded on the other: a fair figure, as the best of many panels looks better than it
    is. Of judges who are counted as one only the first may be in a panel.
    """
    halves = panel.halves()
    evidence = [np.stack([half.evidence(j) for j in range(len(panel.judges))]) for half in halves]

    def wrong_shares(members: tuple[int, ...]) -> list[float]:
        """Return which share a panel labels wrong in each half."""
        p_hik = [half.labels(half.prior_iz + evidence_jiz[list(members)].sum(axis=0))
                 for half, evidence_jiz in zip(halves, evidence, strict=True)]  # fmt: skip
        return [float(np.average(highest(p_ik) != half.gold_i, weights=half.weight_i))
                for half, p_ik in zip(halves, p_hik, strict=True)]  # fmt: skip

    originals = np.unique(panel.group_j, return_index=True)[1].tolist()
    alone = sorted(originals, key=lambda j: (tie_key(float(np.mean(wrong_shares((j,))))), j))
    candidates = sorted(alone[:EXHAUSTIVE])
    tried: list[tuple[int, ...]] = [(j,) for j in sorted(alone)]
    tried += [members for size in range(2, len(candidates) + 1) for members in combinations(candidates, size)]
    size_p = np.array([len(members) for members in tried])
    share_ph = np.array([wrong_shares(members) for members in tried])
    wrong_p = np.average(share_ph, axis=1, weights=[half.weight_i.sum() for half in halves])
    rows: list[tuple[Any, ...]] = []
    for p in np.lexsort((tie_key(wrong_p), size_p)).tolist():
        if not rows or tie_key(wrong_p[p]) < tie_key(rows[-1][3]):
            rows.append((panel.reference.question.name, ", ".join(panel.judges[j] for j in tried[p]), len(tried[p]),
                         float(wrong_p[p]), _unseen(share_ph[size_p <= size_p[p]])))  # fmt: skip
    return pl.DataFrame(rows, schema=PANELS, orient="row")


def _unseen(share_ph: Floats) -> float:
    """Choose the best panel on one half of the items, grade it on the other, and the other way round."""
    best_h = tie_key(share_ph).argmin(axis=0)
    return float(np.mean([share_ph[best_h[0], 1], share_ph[best_h[1], 0]]))


def effective_judges(panel: Panel, mass: float = 0.9) -> tuple[float, float, float] | None:
    """Return how many independent judges the panel is worth on items with known answers, with an interval.

    The design effect of correctness: the number of judges, divided by how much more the share of right votes varies
    from item to item than it would if they erred independently. None with fewer than two judges or 30 known answers.

    Examples
    --------
    Four judges, of whom two always err together, are worth about three:

    >>> from types import SimpleNamespace
    >>> wrong_ji = np.random.default_rng(0).random((4, 4_000)) < 0.2
    >>> wrong_ji[1] = wrong_ji[0]
    >>> n, low, high = effective_judges(SimpleNamespace(gold_i=np.zeros(4_000, int), vote_ji=wrong_ji * 1))
    >>> round(n), low < 8 / 3 < high
    (3, True)
    """
    voted_ji = (panel.vote_ji != UNKNOWN) & (panel.gold_i != UNKNOWN)
    right_ji = (panel.vote_ji == panel.gold_i).astype(float)
    all_i = voted_ji.all(axis=0)
    n_judges, n = len(right_ji), int(all_i.sum())
    if n_judges < 2 or n < ENOUGH:
        return None
    off_ji = right_ji[:, all_i] - right_ji[:, all_i].mean(axis=1, keepdims=True)
    together_i, alone_i = off_ji.sum(axis=0) ** 2, (off_ji**2).sum(axis=0)
    if alone_i.sum() < FLOOR or together_i.sum() < FLOOR:
        return None
    effect = float(together_i.sum() / alone_i.sum())
    # The ratio of two means, by the delta method, on the scale of its logarithm.
    influence_i = together_i / together_i.mean() - alone_i / alone_i.mean()
    half = float(stdtrit(n - 1, (1.0 + mass) / 2)) * float(influence_i.std(ddof=1)) / math.sqrt(n)
    return n_judges / effect, n_judges / effect * math.exp(-half), min(n_judges / effect * math.exp(half), n_judges**2)
