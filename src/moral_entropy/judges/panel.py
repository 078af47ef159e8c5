"""Run → the votes of a panel on one question, what each judge adds, which part of it is best, what it is worth.

From 30 known answers on these say how each judge votes, what it adds and which panel is best; whatever grades was
learnt on other items. Without them nobody is graded: the consensus of all takes the side of judges who err together.
"""

from __future__ import annotations

import math
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import log_softmax, stdtrit

from moral_entropy.judges.estimates import CLEAR
from moral_entropy.judges.known import ENOUGH, KnownItems, vote_matrix
from moral_entropy.judges.values import schema
from moral_entropy.runs.run import Run
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_ITEMS = 4_000
"""Items that a panel is looked at on: those with known answers first, then others at random."""

EXHAUSTIVE = 12
"""Judges up to whom every panel is tried; of more, those who are best alone."""

ADDED = schema("float nats nats_se saved saved_se")
PANELS = schema("text question judges", "int size", "float wrong wrong_unseen")


class Panel(NamedTuple):
    """A panel on one question. Axes: **j** judge, **i** item, **k** label.

    Parameters
    ----------
    reference, judges
        The items of the question with their known answers, and the names of the judges.
    at_i, gold_i, weight_i
        Which of the items the panel is looked at on, their known answers, or `UNKNOWN`, and how many each stands for.
    vote_ji
        Votes of the judges, or `UNKNOWN`.
    group_j
        Whom each judge is counted with, copies and those whom the audit found to be far more alike than the others: the
        number of the first of them.
    originals
        Of judges who are counted as one, the first.
    counts_ik
        Votes of these by label.
    """

    reference: KnownItems
    judges: list[str]
    at_i: Ints
    gold_i: Ints
    weight_i: Floats
    vote_ji: Ints
    group_j: Ints
    originals: list[int]
    counts_ik: Ints


def read_panel(run: Run, reference: KnownItems) -> Panel:
    """Read the panel of one question from a run; of many items a part."""
    n, judges, question = len(reference.items), reference.judges, reference.question
    at_i = np.arange(n)
    if n > MOST_ITEMS:
        order_i = np.random.default_rng([0, n]).permutation(n)
        at_i = np.sort(order_i[np.argsort(~reference.known_i[order_i], kind="stable")][:MOST_ITEMS])
    votes = run.table("votes", where=pl.col("question") == question.name).drop_nulls("annotator")
    vote_ji = vote_matrix(votes, reference.items.gather(at_i), judges, list(question.labels))
    copies = [fit["counted_as_one"] for fit in run.manifest["questions"] if fit["question"] == question.name]
    alike = run.findings.filter(metric="alike", question=question.name)["subject"]
    group_j = np.arange(len(judges))
    for members in (*chain(*copies), *(text.split(", ") for text in alike)):
        at = np.flatnonzero(np.isin(judges, [str(name) for name in members]))
        group_j[np.isin(group_j, group_j[at])] = group_j[at].min(initial=len(judges))
    originals, labels = np.unique(group_j).tolist(), np.arange(len(question.labels))
    counts_ik = (vote_ji[originals][:, :, None] == labels).sum(axis=0)
    answers = (reference.gold_i[at_i], reference.weight_i[at_i])
    return Panel(reference, judges, at_i, *answers, vote_ji, group_j, originals, counts_ik)


def _halves(panel: Panel) -> list[tuple[Ints, Floats, Floats, Floats]]:
    """Return each half of the known answers, as the other half says that judges vote.

    Answers `gold_i`, weights `weight_i`, log shares of the labels `log_k`, and log likelihoods of the labels by every
    judge's vote `log_jik`, 0 where there is none.
    """
    rows, n_labels = np.flatnonzero(panel.gold_i != UNKNOWN), len(panel.reference.question.labels)
    half_i = np.random.default_rng(len(rows)).permutation(len(rows)) % 2
    halves = []
    for half in (0, 1):
        learn, grade = rows[half_i != half], rows[half_i == half]
        # One pseudo-vote for the label itself and half a one for each: as good as the model's own prior.
        count_jkv = np.tile(0.5 + 0.5 * np.eye(n_labels), (len(panel.judges), 1, 1))
        judge_v, at_v = np.nonzero(panel.vote_ji[:, learn] != UNKNOWN)
        np.add.at(count_jkv, (judge_v, panel.gold_i[learn][at_v], panel.vote_ji[:, learn][judge_v, at_v]), 1.0)
        log_jvk = np.log(count_jkv / count_jkv.sum(axis=2, keepdims=True)).transpose(0, 2, 1)
        share_k = np.bincount(panel.gold_i[learn], weights=panel.weight_i[learn], minlength=n_labels) + 0.5
        vote_ji = panel.vote_ji[:, grade]
        log_jik = np.take_along_axis(log_jvk, np.maximum(vote_ji, 0)[:, :, None], axis=1)
        log_jik[vote_ji == UNKNOWN] = 0.0
        halves.append((panel.gold_i[grade], panel.weight_i[grade], np.log(share_k / share_k.sum()), log_jik))
    return halves


def added_by_each(panel: Panel, order: list[int]) -> pl.DataFrame:
    """Compute what every judge adds to those who are kept before it: `ADDED`, a row per judge of `order`.

    Kept are those who add nats `CLEAR`ly and are not counted with one who is kept. `nats` is the log score of the right
    label with the judge less that without, mean per item; `saved` the share of items labelled right with the judge and
    wrong without, less the opposite. Each has its standard error.
    """
    halves, members, rows = _halves(panel), list[int](), list[tuple[float, ...]]()
    weight_i = np.concatenate([weight_i for _, weight_i, _, _ in halves])
    for j in order:
        nats, saved = [], []
        before_j = [i for i in members if panel.group_j[i] != panel.group_j[j]]
        for gold_i, _, log_k, log_jik in halves:
            before_ik = log_k + log_jik[before_j].sum(axis=0)
            after_ik = before_ik + log_jik[j]
            log_before_i, log_after_i = (log_softmax(log_ik, axis=1)[np.arange(len(gold_i)), gold_i]
                                         for log_ik in (before_ik, after_ik))  # fmt: skip
            nats.append(log_after_i - log_before_i)
            saved.append(1.0 * (highest(after_ik) == gold_i) - (highest(before_ik) == gold_i))
        rows.append((*_mean(np.concatenate(nats), weight_i), *_mean(np.concatenate(saved), weight_i)))
        if rows[-1][0] > CLEAR * rows[-1][1] and before_j == members:
            members.append(j)
    return pl.DataFrame(rows, schema=ADDED, orient="row")


def _mean(value_i: Floats, weight_i: Floats) -> tuple[float, float]:
    mean, share_i = float(np.average(value_i, weights=weight_i)), weight_i / weight_i.sum()
    return mean, math.sqrt(float((share_i**2) @ (value_i - mean) ** 2))


def best_panels(panel: Panel) -> pl.DataFrame:
    """Return the panels that no other beats of the same size or a smaller one, smallest first: `PANELS`.

    `wrong` is the share of known answers that the panel misses, `wrong_unseen` the same for panels up to the size
    chosen on one half of them and graded on the other: a fair figure, as the best of many panels looks better than it
    is. Of judges who are counted as one only the first may be in a panel.
    """
    halves = _halves(panel)

    def wrong_shares(members: tuple[int, ...]) -> list[float]:
        """Return which share a panel labels wrong in each half."""
        return [float(np.average(highest(log_k + log_jik[list(members)].sum(axis=0)) != gold_i, weights=weight_i))
                for gold_i, weight_i, log_k, log_jik in halves]  # fmt: skip

    alone = sorted(panel.originals, key=lambda j: (tie_key(float(np.mean(wrong_shares((j,))))), j))
    candidates = sorted(alone[:EXHAUSTIVE])
    tried: list[tuple[int, ...]] = [(j,) for j in sorted(alone)]
    tried += [members for size in range(2, len(candidates) + 1) for members in combinations(candidates, size)]
    size_p = np.array([len(members) for members in tried])
    share_ph = np.array([wrong_shares(members) for members in tried])
    wrong_p = np.average(share_ph, axis=1, weights=[weight_i.sum() for _, weight_i, _, _ in halves])
    rows: list[tuple[Any, ...]] = []
    for p in np.lexsort((tie_key(wrong_p), size_p)).tolist():
        if not rows or tie_key(wrong_p[p]) < tie_key(rows[-1][3]):
            up_to_size_ph = share_ph[size_p <= size_p[p]]
            first, second = tie_key(up_to_size_ph).argmin(axis=0)
            unseen = float(up_to_size_ph[first, 1] + up_to_size_ph[second, 0]) / 2
            names = ", ".join(panel.judges[j] for j in tried[p])
            rows.append((panel.reference.question.name, names, len(tried[p]), float(wrong_p[p]), unseen))
    return pl.DataFrame(rows, schema=PANELS, orient="row")


def effective_judges(panel: Panel, mass: float = 0.9) -> tuple[float, float, float] | None:
    """Return how many independent judges the panel is worth on items with known answers, with an interval.

    The design effect of correctness: the number of judges, divided by how much more the share of right votes varies
    from item to item than it would if they erred independently. At most the number of judges: that they err together
    less often than by chance is chance, as a rule. None with fewer than two judges or 30 known answers.

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
    if min(alone_i.sum(), together_i.sum()) < 1e-12:
        return None
    effect = float(together_i.sum() / alone_i.sum())
    # The ratio of two means, by the delta method, on the scale of its logarithm.
    influence_i = together_i / together_i.mean() - alone_i / alone_i.mean()
    half = float(stdtrit(n - 1, (1.0 + mass) / 2)) * float(influence_i.std(ddof=1)) / math.sqrt(n)
    value, low, high = (min(n_judges / effect * math.exp(log), n_judges) for log in (0.0, -half, half))
    return value, low, high
