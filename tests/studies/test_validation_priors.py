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


def test_the_sentence_and_the_figure_hold_the_ends_of_the_grid():
    names = ("flat · 6/2 · none", "80,20 · 1.8/1.2 · full", "500,500 · 4/1 · none")
    shares = (0.31, 0.42, 0.5)
    rows = [row for name, share in zip(names, shares, strict=True) for row in rows_of(name, {"care": share}, 0.02)]
    rates = [{**row, "figure": "fnr", "subject": "majority", "value": row["value"] / 2} for row in rows]
    grid = pl.DataFrame(rows + rates)
    said = study.prior_sentence(grid)
    assert "from 31.0% to 50.0%, and majority's FNR from 15.5% to 25.0%." in said
    assert "Under 3 priors" in said
    spec = study.prior_chart(grid, {"care": 0.4})
    drawn = spec["data"]["values"]
    assert sorted(row["value"] for row in drawn) == sorted(shares)
    assert {row["truth"] for row in drawn} == {0.4}


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
