"""Simulated raters whose bias and spread are known, and scores that others compute: what the study of ratings shows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from support import load_script, real_data

from moral_entropy import fit, read_votes
from moral_entropy.items.ratings import study_ratings

study = load_script("studies/ratings.py")


def votes_from(ballot):
    """Write a simulated ballot as a table of votes, and read it."""
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    rater_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    vote_v = label_v + 1 if ballot.score_v is None else ballot.score_v
    return read_votes(pl.DataFrame({"item": item_v, "annotator": rater_v, "score": vote_v}))


def shares(n_seeds, *, levels):
    """Return how often intervals hold, in how many crowds a turned scale is named, and anybody of clean raters."""
    held, n_reversed, n_clean = np.zeros(2), 0, 0
    for seed in range(100, 100 + n_seeds):
        ballot, bias_a, spread_a = study.simulated(seed, levels=levels)
        frame = raters_of(ballot)
        for at, (figure, truth_a) in enumerate((("bias", bias_a), ("spread", spread_a))):
            low_a, high_a = (frame[f"{figure}_{end}"].to_numpy() for end in ("low", "high"))
            held[at] += ((low_a <= truth_a) & (truth_a <= high_a)).mean() / n_seeds
        n_reversed += (
            raters_of(study.simulated(seed, levels=levels, reverse=True, bias=0.3)[0])["role"][0] == "reversed"
        )
        n_clean += (raters_of(study.simulated(seed, levels=levels, bias=0.0)[0])["role"] != "").any()
    return held, n_reversed / n_seeds, n_clean / n_seeds


def raters_of(ballot):
    """Return the table of raters of a simulated ballot, in the order of their numbers."""
    raters = study_ratings(fit(votes_from(ballot), draws=0))[0]["raters"]
    return raters.sort(pl.col("annotator").cast(pl.Int64))


@pytest.mark.parametrize("levels", [True, False])
def test_known_raters_are_recovered(levels):
    held, n_reversed, n_clean = shares(4, levels=levels)
    # 48 raters: four standard errors on either side of the 90% that intervals promise.
    assert (held > 0.72).all() and n_reversed == 1.0 and n_clean == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("levels", [True, False])
def test_intervals_of_raters_hold_as_often_as_they_say(levels):
    held, n_reversed, n_clean = shares(60, levels=levels)
    assert ((held > 0.85) & (held < 0.95)).all()
    assert n_reversed >= 0.95 and n_clean <= 0.05


@pytest.mark.parametrize("bias", [0.0, 0.2, 0.8])
def test_means_of_scores_are_no_worse_than_plain_means(bias):
    for seed in range(5):
        ballot, _, _ = study.simulated(seed, levels=False, bias=bias)
        # The truth is drawn first: see `simulated`.
        truth_i = np.random.default_rng(seed).normal(3.0, 1.1, 200)
        scores = study_ratings(fit(votes_from(ballot), draws=0))[0]["scores"].sort(pl.col("item").cast(pl.Int64))
        error, plain = (np.sqrt(((scores[name] - truth_i) ** 2).mean()) for name in ("mean", "mean_votes"))
        assert error <= 1.01 * plain
        # Half a point of bias and more: taking biases off gains.
        assert bias < 0.5 or error < 0.9 * plain


def test_means_of_levels_are_in_the_order_of_p910():
    votes = read_votes(real_data("nflx_video") / "votes.csv")
    consensus = fit(votes, draws=0)
    scores = study_ratings(consensus)[0]["scores"].with_columns(p910=study.p910_scores(votes.ballots[0]))
    assert scores.select(pl.corr("mean", "p910", method="spearman")).item() >= 0.99
    # Beside the order: P.910's own conditions hold, residuals of every viewer add up to 0.
    ballot, p910_i = votes.ballots[0], scores["p910"].to_numpy()
    item_v, rater_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i), ballot.code_v // ballot.n_labels
    left_v = np.array(ballot.levels)[ballot.code_v % ballot.n_labels] - p910_i[item_v]
    left_v -= (np.bincount(rater_v, weights=left_v) / ballot.votes_a)[rater_v]
    weight_v = (ballot.votes_a / np.bincount(rater_v, weights=left_v**2))[rater_v]
    assert np.abs(np.bincount(item_v, weights=weight_v * left_v)).max() < 1e-6
