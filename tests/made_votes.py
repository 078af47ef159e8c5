"""Votes made to trigger a diagnostic, and votes made not to."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
from support import votes_of


def draw_rows(rng, items, annotators, right_a, *, votes, n_labels=2, truth_of=None, reversed_team=False):
    """Rows (item, annotator, label): each item gets so many votes of those annotators, right with their chances."""
    rows = []
    for i in items:
        truth = int(truth_of[i])
        for a in rng.choice(annotators, size=votes, replace=False):
            wrong = (truth + int(rng.integers(1, n_labels))) % n_labels
            label = truth if rng.random() < right_a[a] else wrong
            rows.append((i, int(a), 1 - label if reversed_team else label))
    return rows


def two_teams(*, links, seed=0, reversed_team=True, items=(300, 200), size=5, votes=4, right=0.85, prevalence=0.5):
    """Two teams with items of their own, and some items that both vote on; the second may read the scale reversed."""
    rng = np.random.default_rng(seed)
    n_first, n_second = items
    truth = (rng.random(n_first + n_second) < prevalence).astype(int)
    right_a = np.full(2 * size, right)
    first, second = np.arange(size), np.arange(size, 2 * size)
    rows = draw_rows(rng, range(n_first), first, right_a, votes=votes, truth_of=truth)
    rows += draw_rows(
        rng, range(n_first, n_first + n_second), second, right_a, votes=votes, truth_of=truth,
        reversed_team=reversed_team,
    )  # fmt: skip
    rows += draw_rows(rng, range(links), second, right_a, votes=1, truth_of=truth, reversed_team=reversed_team)
    return votes_of(rows), truth


def copied(votes, one, other, *, share=1.0, seed=0):
    """The same votes, but whenever both voted on an item, `other` says what `one` said (with some chance)."""
    rng = np.random.default_rng(seed)
    ballot = votes.ballots[0]
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    said = {int(i): int(k) for i, a, k in zip(item_v, annotator_v, label_v, strict=True) if a == one}
    rows = [
        (int(i), int(a), said[int(i)] if a == other and int(i) in said and rng.random() < share else int(k))
        for i, a, k in zip(item_v, annotator_v, label_v, strict=True)
    ]
    return votes_of(rows, ballot.n_labels)


def tied_votes(labels="01", annotators="abc", times=3):
    """Every pattern of votes equally often: annotators, labels and most items are as good as each other."""
    rows = []
    for n, pattern in enumerate(itertools.product(labels, repeat=len(annotators))):
        for copy in range(times):
            item, text = f"i{n:02}.{copy}", f"word{n % 3} word{n % 3 + 3} {'rare' * (n % 5 == 0)}"
            rows += [
                {"item": item, "annotator": a, "label": label, "text": text, "gold": pattern[copy % len(annotators)]}
                for a, label in zip(annotators, pattern, strict=True)
            ]
    return pl.DataFrame(rows)
