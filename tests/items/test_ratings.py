"""Ordered labels, from reading to tables, against planted truths and laws."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import moral_entropy as me
from moral_entropy.corpora.simulate import write_simulated
from moral_entropy.errors import VotesError
from moral_entropy.runs.reload import read_run_votes
from moral_entropy.verdict.verdict import how_wrong


def ratings(seed=0, *, n_items=120, n_raters=8, per_item=5, bias=(), reverse=(), levels=5, shift=0):
    """Simulate ratings: items' values plus a rater's bias plus noise, rounded; some raters turn the scale round."""
    rng = np.random.default_rng(seed)
    bias_a = np.zeros(n_raters)
    bias_a[: len(bias)] = bias
    value_i, rows = rng.normal((levels + 1) / 2, levels / 4.5, n_items), []
    for i in range(n_items):
        for a in rng.permutation(n_raters)[:per_item]:
            value = levels + 1 - value_i[i] if a in reverse else value_i[i] + bias_a[a]
            rows.append((i, f"r{a}", int(np.clip(np.round(value + rng.normal(0, 0.6)), 1, levels)) + shift))
    return pl.DataFrame(rows, schema=["item", "annotator", "rating"], orient="row")


def scale_of(labels, **options):
    """Read one vote per label and item pair, and return the ballot with the notes and what was left out."""
    table = pl.DataFrame({"item": np.arange(len(labels)) // 3, "annotator": [f"a{n % 3}" for n in range(len(labels))],
                          "label": labels})  # fmt: skip
    votes = me.read_votes(table, **options)
    return votes.ballots[0], votes.reading


WORDS = ["agree", "strongly agree", "neutral", "disagree", "strongly disagree", "agree"]


@pytest.mark.parametrize(
    ("labels", "options", "levels"),
    [
        (WORDS, {}, ("strongly disagree", "disagree", "neutral", "agree", "strongly agree")),
        (["High", "low", "medium", "low", "high", "don't know"], {}, ("low", "medium", "high")),
        (["maybe", "yes", "no"] * 3, {}, ("no", "maybe", "yes")),
        (["bronze", "silver", "gold"] * 3, {"order": ("bronze", "silver", "gold")}, ("bronze", "silver", "gold")),
        (["1", "2", "4", "5", "1", "2"], {"scale": "ordinal"}, ("1", "2", "3", "4", "5")),
        (["5 - good", "1 - bad", "3 - so so"] * 3, {"scale": "ordinal"}, ("1 - bad", "3 - so so", "5 - good")),
    ],
)
def test_levels_are_in_the_order_of_their_scale(labels, options, levels):
    ballot, _ = scale_of(labels, **options)
    named = [label for label in ballot.labels if label in levels or label.lower() in levels]
    assert ballot.scale == "ordinal" and [label.lower() for label in named] == list(levels)


@pytest.mark.parametrize("labels", [["care", "harm", "none"] * 3, ["No", "Yes", "Unsure"] * 3, ["0", "1", "2"] * 3,
                                    ["yes", "no"] * 6])  # fmt: skip
def test_names_stay_names(labels):
    assert scale_of(labels)[0].scale == "nominal"


def test_numbered_classes_are_no_levels_but_ratings_are():
    rng = np.random.default_rng(1)
    truth_i = rng.integers(0, 8, 300)
    # Confused with any other class, near or far.
    votes_ia = np.where(rng.random((300, 4)) < 0.7, truth_i[:, None], rng.integers(0, 8, (300, 4)))
    classes = pl.DataFrame({"item": np.repeat(np.arange(300), 4), "annotator": np.tile(list("abcd"), 300),
                            "label": votes_ia.ravel()})  # fmt: skip
    assert me.read_votes(classes).ballots[0].scale == "nominal"
    votes = me.read_votes(ratings(levels=7).rename({"rating": "label"}))
    assert votes.ballots[0].scale == "ordinal"
    assert any("1 < 2 < 3 < 4 < 5 < 6 < 7 (guessed; --scale nominal" in note for note in votes.reading.notes)


def test_what_is_no_level_is_counted_and_named():
    table = ratings().with_columns(pl.col("rating").cast(pl.String))
    odd = pl.DataFrame({"item": [0, 1, 2, 3], "annotator": ["x"] * 4, "rating": ["55", "3.5", "good", "99"]})
    votes = me.read_votes(pl.concat([table, odd.cast({"item": table.schema["item"]})]))
    ballot = votes.ballots[0]
    assert ballot.labels == tuple("12345") and votes.reading.dropped["no level of the scale"] == 4
    assert all(any(repr(label) in note for note in votes.reading.notes) for label in ("55", "3.5", "good", "99"))


def test_an_unknown_order_is_asked_for():
    with pytest.raises(VotesError, match="--order"):
        scale_of(["red", "green", "blue"] * 3, scale="ordinal")


def test_two_labels_are_the_two_label_model_whatever_the_scale():
    table = ratings(levels=5).with_columns(rating=(pl.col("rating") > 3).cast(pl.Int64))
    plain, ordered = (me.fit(me.read_votes(table, scale=scale), draws=0).p_ik for scale in ("nominal", "ordinal"))
    assert np.array_equal(plain, ordered)


def test_turning_the_scale_round_mirrors_everything():
    table = ratings(seed=3, bias=(1.0,))
    turned = table.with_columns(rating=6 - pl.col("rating"))
    first, second = (me.audit(votes, draws=0, use_text="off") for votes in (table, turned))
    p_ik, mirrored_ik = first.consensus.p_ik, second.consensus.p_ik
    np.testing.assert_allclose(p_ik, mirrored_ik[:, ::-1], atol=1e-6)
    score_i, mirrored_i = (run.table("scores")["mean"].to_numpy() for run in (first, second))
    np.testing.assert_allclose(score_i, 6.0 - mirrored_i, atol=1e-5)
    bias_a, mirrored_a = (run.table("raters")["bias"].to_numpy() for run in (first, second))
    np.testing.assert_allclose(bias_a, -mirrored_a, atol=1e-9)


@pytest.mark.parametrize("levels", [4, 5, 7])
def test_a_scale_turned_round_has_the_same_mode_where_there_are_several(levels):
    # Searched one way round, 7 levels and seed 5 end at another mode when turned (p .11 apart).
    for seed in range(6):
        table = ratings(seed=seed, per_item=2, levels=levels)
        turned = table.with_columns(rating=levels + 1 - pl.col("rating"))
        first, second = (me.fit(me.read_votes(votes, scale="ordinal"), draws=0).fits[0] for votes in (table, turned))
        np.testing.assert_allclose(first.model_ik, second.model_ik[:, ::-1], atol=1e-9)
        assert first.search.converged and second.search.converged


def test_renaming_raters_changes_nothing():
    table = ratings(seed=4)
    renamed = table.with_columns(annotator=pl.col("annotator").replace({"r0": "z", "r5": "a"}))
    first, second = (me.fit(me.read_votes(votes), draws=0).p_ik for votes in (table, renamed))
    np.testing.assert_allclose(first, second, atol=1e-7)


def test_no_level_that_voters_use_vanishes():
    table = ratings(seed=5, n_items=400, levels=6, per_item=4)
    [fit] = me.fit(me.read_votes(table), draws=0).fits
    share_k = np.bincount(fit.label_i, minlength=6) / fit.ballot.n_items
    used_k = fit.ballot.votes_k / fit.ballot.votes_k.sum()
    assert (share_k[used_k > 0.08] > 0.3 * used_k[used_k > 0.08]).all() and share_k.max() < 1.6 * used_k.max()
    thin = ratings(seed=5, n_items=150, n_raters=60, levels=9, per_item=5)
    [fit] = me.fit(me.read_votes(thin), draws=0).fits
    median_i = (np.cumsum(fit.ballot.counts_ik, axis=1) >= fit.ballot.votes_i[:, None] / 2).argmax(axis=1)
    voted_k, label_k = (np.bincount(label_i, minlength=9) for label_i in (median_i, fit.label_i))
    assert (label_k[voted_k >= 5] >= 0.4 * voted_k[voted_k >= 5]).all()


def test_planted_biases_and_a_turned_scale_are_found():
    table = ratings(seed=6, n_items=300, bias=(0.0, 1.0, -1.0), reverse=(7,))
    run = me.audit(table, draws=0, use_text="off")
    role = dict(run.table("raters").select("annotator", "role").iter_rows())
    assert (role["r1"], role["r2"], role["r7"]) == ("lenient", "severe", "reversed")
    codes = {finding.code for finding in run.consensus.findings} | set(run.findings["code"].to_list())
    assert {"ME121", "ME123", "ME124"} <= codes


def test_a_lenient_rater_is_called_that_and_not_guessing(tmp_path):
    # One level too high nearly always: never the others' level, yet the votes follow theirs.
    run = me.audit(ratings(seed=6, n_items=300, levels=7, bias=(2.0,)), tmp_path / "run", draws=50, use_text="off")
    assert set(run.annotators["role"].to_list()) == {""}
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "r0 rates higher than the others: +" in page and "ike guessing" not in page
    assert not any("majority of the others" in line for line in str(run).splitlines())


def test_rules_on_ratings_are_graded_by_hand():
    run = me.audit(ratings(seed=7), draws=0, use_text="off")
    fit, rules = run.consensus.fits[0], run.table("rating_rules")
    mean_i = fit.ballot.counts_ik @ np.arange(1.0, 6.0) / fit.ballot.votes_i
    off_ik = np.abs(mean_i[:, None] - np.arange(1.0, 6.0))
    figure = rules.filter(rule="mean", metric="mae", reference="consensus")["value"].item()
    assert figure == pytest.approx((off_ik * fit.p_ik).sum(axis=1).mean())
    at_least_3_i = fit.p_ik[:, 2:].sum(axis=1)
    wrong = np.where(mean_i >= 3, 1 - at_least_3_i, at_least_3_i).mean()
    assert rules.filter(rule="mean", metric="wrong", cut="3")["value"].item() == pytest.approx(wrong)


def test_scores_keep_their_exact_means_and_survive_the_folder(tmp_path):
    rng = np.random.default_rng(8)
    value_i = rng.uniform(0, 100, 80)
    table = pl.DataFrame({"item": np.repeat(np.arange(80), 4), "annotator": np.tile(list("abcd"), 80),
                          "score": np.round(np.repeat(value_i, 4) + rng.normal(0, 8, 320), 1)})  # fmt: skip
    run = me.audit(table, tmp_path / "run", draws=0, use_text="off", report=False)
    assert run.questions[0].scale == "interval"
    means = table.group_by("item").agg(pl.col("score").mean()).sort("item")
    np.testing.assert_allclose(run.table("scores")["mean_votes"].to_numpy(), means["score"].to_numpy())
    ballot, before = read_run_votes(tmp_path / "run").ballots[0], me.read_votes(table).ballots[0]
    assert ballot.levels == before.levels and np.array_equal(ballot.score_v, before.score_v)


def test_another_scale_of_some_judges_is_named():
    long, short = ratings(levels=10, n_items=200), ratings(levels=5, n_items=200, seed=2)
    short = short.with_columns(annotator=pl.col("annotator").replace({f"r{a}": f"s{a}" for a in range(8)}))
    votes = me.read_votes(pl.concat([long, short]))
    assert any(note.startswith("another scale?") and "s0" in note for note in votes.reading.notes)


def test_a_run_of_levels_answers_every_command(tmp_path):
    table = ratings(seed=9, bias=(1.0,)).with_columns(side=pl.col("annotator").is_in(["r0", "r1", "r2", "r3"]))
    run = me.audit(table, tmp_path / "run", draws=50, use_text="off", annotator_group=("side",))
    [explanation] = run.explain("3")
    assert run.next(3).height == 3
    assert explanation.score[1] <= explanation.score[0] <= explanation.score[2]
    assert run.table("groups").filter(label="(mean)").height == 2
    assert "Raters, in points of the scale" in (tmp_path / "run" / "report.html").read_text()


def carried(from_k, to_k):
    """Return the least work that carries one distribution over to another, step by step: by linear programming."""
    n, at = len(from_k), np.arange(len(from_k))
    rows, columns = np.kron(np.eye(n), np.ones(n)), np.tile(np.eye(n), n)
    work = np.abs(np.subtract.outer(at, at)).ravel()
    return linprog(work, A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([from_k, to_k])).fun


@pytest.mark.parametrize(("step", "scale"), [(1, "ordinal"), (25, "ordinal"), (1, "nominal")])
def test_lewidi_has_the_distances_of_its_task(step, scale, tmp_path):
    table = ratings(seed=11, n_items=40).with_columns(rating=step * pl.col("rating"))
    run = me.audit(table, draws=0, use_text="off", scale=scale, order=tuple(str(step * n) for n in range(1, 6)))
    [file] = run.export(tmp_path / "q.json", to="lewidi")
    for entry in json.loads(file.read_text()).values():
        votes, distance = [int(vote) for vote in entry["annotations"].split(",")], entry["distance_to_votes"]
        soft, label = entry["soft_label"], int(entry["hard_label"])
        share_k = [votes.count(int(name)) / len(votes) for name in soft]
        if scale == "nominal":
            gaps = [abs(p - share) for p, share in zip(soft.values(), share_k, strict=True)]
            by_hand = {"manhattan": sum(gaps), "error_rate": sum(vote != label for vote in votes) / 5}
        else:
            by_hand = {"wasserstein": carried(list(soft.values()), share_k),
                       "absolute_distance": sum(abs(vote - label) for vote in votes) / 5 / (4 * step)}  # fmt: skip
        assert distance == pytest.approx(by_hand, abs=1e-9)


def test_a_check_within_one_level_is_half_wrong():
    run = me.audit(ratings(seed=10), draws=0, use_text="off")
    rows = pl.DataFrame({"question": ["rating"] * 3, "truth": ["2", "3", "5"], "label": ["2", "2", "2"]})
    assert rows.select(how_wrong(run)).to_series().to_list() == [0.0, 0.5, 1.0]


def test_simulated_levels_are_read_as_levels(tmp_path):
    path = tmp_path / "votes.parquet"
    write_simulated(path, n_items=300, n_annotators=10, votes_per_item=5, n_labels=5, seed=3, ordered=True)
    assert me.read_votes(path, gold="gold").ballots[0].scale == "ordinal"
