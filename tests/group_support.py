"""Simulated groups of annotators: logistic voters whose groups differ in nothing, in threshold or in truth."""

from __future__ import annotations

import numpy as np
import polars as pl

from moral_entropy.groups.truths import YesVotes


def crowd(seed=0, sizes=(6, 6), items=80, votes=40, threshold=0.0, parting=0.0):
    """Return votes, each annotator's group, and the places of the items by group."""
    rng = np.random.default_rng(seed)
    group_a = np.repeat(np.arange(len(sizes)), sizes)
    place_ig = np.repeat(rng.choice([-1.8, 1.8], size=items)[:, None], len(sizes), axis=1)
    place_ig[:, 1:] *= np.where(rng.random((items, len(sizes) - 1)) < parting, -1.0, 1.0)
    threshold_a = rng.normal(0.0, 0.4, len(group_a)) + threshold * group_a
    item_v = np.concatenate([np.sort(rng.choice(items, votes, replace=False)) for _ in group_a])
    annotator_v = np.repeat(np.arange(len(group_a)), votes)
    logit_v = place_ig[item_v, group_a[annotator_v]] - threshold_a[annotator_v]
    yes_v = rng.random(len(item_v)) < 1.0 / (1.0 + np.exp(-logit_v))
    return YesVotes(item_v, annotator_v, yes_v, items, len(group_a)), group_a, place_ig


def frame_of(votes, group_a, names=("men", "women")):
    """Return the votes as a table with a column of groups."""
    return pl.DataFrame(
        {
            "item": votes.item_v,
            "annotator": [f"a{a:02}" for a in votes.annotator_v],
            "label": np.where(votes.yes_v, "yes", "no"),
            "gender": [names[group_a[a]] for a in votes.annotator_v],
        }
    )
