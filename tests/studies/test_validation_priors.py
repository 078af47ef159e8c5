"""The study of priors: what it writes about a grid made by hand, and where it writes it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from support import load_script

study = load_script("studies/validation_priors.py")


def rows_of(name, values, reach):
    prevalence, rows, pooling = name.split(" · ")
    return [
        {"prior": name, "prevalence_prior": prevalence, "rows": rows, "pooling": pooling, "question": question,
         "figure": "prevalence", "subject": "1", "value": value, "low": value - reach, "high": value + reach}
        for question, value in values.items()
    ]  # fmt: skip


def test_priors_are_held_against_the_truth_nearest_first():
    far = rows_of("flat · 6/2 · none", {"care": 0.05, "harm": 0.10}, 0.01)
    near = rows_of("80,20 · 1.8/1.2 · full", {"care": 0.22, "harm": 0.28}, 0.03)
    table = study.distance_table(pl.DataFrame(far + near), {"care": 0.2, "harm": 0.3}).splitlines()
    assert table[3] == "| 80,20 | 1.8/1.2 | full | 22.0% | 28.0% | 2.0 | 2.0 | 2 of 2 |"
    assert table[4] == "| flat | 6/2 | none | 5.0% | 10.0% | 17.5 | 20.0 | 0 of 2 |"


def test_truth_is_the_share_of_gold():
    votes = study.twin_votes("mfrc", scale=0.01)
    truth = study.true_prevalence(votes)
    for ballot in votes.ballots:
        gold = np.array([ballot.labels[k] for k in ballot.gold_i])
        assert truth[ballot.question] == pytest.approx((gold == ballot.labels[ballot.positive]).mean())


def test_only_its_own_part_of_the_page_is_rewritten():
    page = "\n".join(
        ["before", "<!-- priors: written by studies/validation_priors.py -->", "old", "<!-- end of priors -->", "after"]
    )
    assert study.with_part(page, "priors", "new \\1") == page.replace("old", "\nnew \\1\n")
    with pytest.raises(ValueError, match="no place"):
        study.with_part("nothing", "priors", "new")
