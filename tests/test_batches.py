"""Batches of items: a planted drop is named, nothing is where nothing changed, and figures are those of the runs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

import moral_entropy as me
from moral_entropy.batches import batch_figures, compare_batches, flips, limits_against, share_items
from moral_entropy.verdict.figures import run_figures


def frame_of(simulated, first=0):
    ballot = simulated.votes.ballots[0]
    item_v = np.repeat(np.arange(ballot.n_items), np.diff(ballot.start_i)) + first
    annotators = [f"a{code // 2:02}" for code in ballot.code_v]
    labels = [("no", "yes")[code % 2] for code in ballot.code_v]
    return pl.DataFrame({"item": item_v, "annotator": annotators, "label": labels})


def batches(seed, drop, n_items=600):
    """Two batches by twelve annotators, of whom the first four become less accurate in the second."""
    accuracy_a = np.random.default_rng(seed).uniform(0.78, 0.92, 12)
    runs = []
    for number, less in enumerate((0.0, drop)):
        right_a = accuracy_a - less * (np.arange(12) < 4)
        confusion_akv = np.array([[[right, 1 - right], [1 - right, right]] for right in right_a])
        simulated = me.simulate_votes(
            n_items=n_items, n_annotators=12, votes_per_item=6, confusion_akv=confusion_akv, prevalence_k=[0.6, 0.4],
            seed=seed + 1000 * number,
        )  # fmt: skip
        runs.append(me.audit(frame_of(simulated, first=n_items * number), draws=200, report=False))
    return runs


def changed(result):
    return set(result["annotators"].filter("changed")["annotator"])


DROPPED = {"a00", "a01", "a02", "a03"}


@pytest.mark.slow
def test_a_drop_of_15_points_is_named_and_clean_batches_are_not():
    by_seed = [changed(compare_batches(*batches(seed, 0.15))) for seed in range(30)]
    assert np.mean([bool(names & DROPPED) for names in by_seed]) >= 0.9
    assert np.mean([len(names & DROPPED) / 4 for names in by_seed]) >= 0.8
    clean = [changed(compare_batches(*batches(seed, 0.0))) for seed in range(30)]
    assert np.mean([not names for names in clean]) >= 0.95


@pytest.fixture(scope="module")
def worse():
    return batches(0, 0.15)


def test_the_sentence_names_the_worse_batch_and_who_changed(worse):
    result = me.compare(*worse)
    assert changed(result) <= DROPPED and changed(result)
    assert "is worse than" in result["sentence"] and "annotators who changed: a0" in result["sentence"]
    back = compare_batches(*reversed(worse))
    assert "is better than" in back["sentence"] and changed(back) == changed(result)


def test_figures_are_those_of_the_runs(worse):
    a, b = worse
    result = compare_batches(a, b)["figures"]
    alpha = result.filter(figure="alpha").row(0, named=True)
    for run, side in ((a, "_a"), (b, "_b")):
        expected = run.table("agreement").filter(domain="(all)", statistic="krippendorff_alpha")["value"].item()
        assert alpha[f"value{side}"] == expected
        p_i = run.items["p"].to_numpy()
        uncertain = np.mean(np.maximum(p_i, 1 - p_i) < 0.75)
        row = result.filter(figure="uncertain").row(0, named=True)
        assert row[f"value{side}"] == pytest.approx(uncertain)
        exact = binomtest(round(600 * uncertain), 600).proportion_ci(0.9, method="exact")
        assert (row[f"low{side}"], row[f"high{side}"]) == pytest.approx((exact.low, exact.high), abs=1e-6)
    assert alpha["change"] == alpha["value_b"] - alpha["value_a"] and alpha["low"] < alpha["change"] < alpha["high"] < 0


def test_limits_against_an_earlier_run(worse):
    a, b = worse
    maxima, minima = limits_against(b, a)
    figures = {(row["question"], row["figure"]): row["value"] for row in batch_figures(a).to_dicts()}
    assert minima == [f"label/alpha={figures['label', 'alpha'] - 0.05:.6g}"]
    assert maxima == [f"label/uncertain={figures['label', 'uncertain'] + 0.05:.6g}"]


def test_two_versions_of_a_judge_on_an_anchor_set(worse):
    a, _ = worse
    votes = a.table("votes")
    every_ninth = (pl.int_range(pl.len()) % 9 == 0) & (pl.col("annotator") == "a05")
    other = votes.with_columns(
        label=pl.when(every_ninth).then(pl.col("label").replace({"no": "yes", "yes": "no"})).otherwise("label")
    )
    b = me.audit(other.select("item", "annotator", "label"), draws=0, report=False)
    assert share_items(a, b)
    rows = {row["annotator"]: row for row in flips(a, b).to_dicts()}
    n, flipped = votes.filter(annotator="a05").height, votes.filter(every_ninth).height
    exact = binomtest(flipped, n).proportion_ci(0.9, method="exact")
    row = rows["a05"]
    assert (row["n"], row["flips"]) == (n, flipped) and (row["low"], row["high"]) == pytest.approx(
        (exact.low, exact.high)
    )
    assert all(row["flips"] == 0 for name, row in rows.items() if name != "a05")


def test_uncertain_and_alpha_by_domain():
    frame = frame_of(me.simulate_votes(n_items=90, n_annotators=6, votes_per_item=4, seed=2))
    run = me.audit(
        frame.with_columns(domain=pl.when(pl.col("item") < 40).then(pl.lit("x")).otherwise(pl.lit("y"))),
        draws=0,
        report=False,
    )
    figures = run_figures(run)
    for domain in "xy":
        p_i = run.items.filter(domain=domain)["p"].to_numpy()
        expected = np.mean(np.maximum(p_i, 1 - p_i) < 0.75)
        assert (
            figures[f"{domain}:label/uncertain"]["value"]
            == figures[f"{domain}:uncertain"]["value"]
            == pytest.approx(expected)
        )
        assert figures[f"{domain}:label/alpha"]["value"] is not None
