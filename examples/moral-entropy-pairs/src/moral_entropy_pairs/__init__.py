"""A format, a rule and a model for moral-entropy, found by the entry points in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy import Ballot, Rule


def read_pairs(path: Path) -> pl.DataFrame:
    """Read lines such as `t1: ann=yes bob=no` into one row per vote."""
    rows = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        item, _, votes = line.partition(":")
        for vote in votes.split():
            annotator, _, label = vote.partition("=")
            rows.append({"item": item.strip(), "annotator": annotator, "label": label})
    return pl.DataFrame(rows, schema={"item": pl.String, "annotator": pl.String, "label": pl.String})


ALL_BUT_ONE = Rule(
    "all-but-one",
    "at most one vote negative",
    lambda counts_ip: counts_ip[:, 0] <= 1,  # columns: votes for other labels, votes for the positive one
    pointwise=True,
)


def weigh_by_agreement(ballot: Ballot) -> NDArray[np.float64]:
    """Weigh every vote by how often its annotator votes as most others do; return label probabilities per item.

    The idea is that of Worker Agreement With Aggregate (wawa): one round of plain votes, one of weighted votes.
    """
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    plurality_i = ballot.counts_ik.argmax(axis=1)
    agrees_v = (label_v == plurality_i[item_v]).astype(np.float64)
    weight_a = np.bincount(annotator_v, agrees_v, ballot.n_annotators) / np.bincount(
        annotator_v, minlength=ballot.n_annotators
    )
    # Half a vote for every label: where nobody voted all are equally likely, and none is ever ruled out.
    score_ik = np.full((ballot.n_items, ballot.n_labels), 0.5)
    np.add.at(score_ik, (item_v, label_v), weight_a[annotator_v])
    return np.asarray(score_ik / score_ik.sum(axis=1, keepdims=True))
