"""How many more votes: forecasts and plans against a planted truth, and items that are never asked for."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.planning import (
    QUEUE,
    forecast,
    labels_put_right,
    last_useful,
    next_votes,
    open_questions,
    plan,
    votes_to_reach,
)

DESIGNS = [
    {"n_items": 500, "n_annotators": 8, "votes_per_item": 3},
    {"n_items": 500, "n_annotators": 8, "votes_per_item": 3, "accuracy": (0.55, 0.8)},
    {"n_items": 1000, "n_annotators": 30, "votes_per_item": 2, "accuracy": (0.65, 0.9)},
    {"n_items": 300, "n_annotators": 5, "votes_per_item": 3, "accuracy": (0.7, 0.9)},
    {"n_items": 800, "n_annotators": 12, "votes_per_item": 3, "n_labels": 3},
    {"n_items": 800, "n_annotators": 12, "votes_per_item": 4, "n_labels": 5, "accuracy": (0.45, 0.8)},
    {"n_items": 1000, "n_annotators": 20, "votes_per_item": 3, "prevalence_k": [0.9, 0.1], "accuracy": (0.75, 0.95)},
    {"n_items": 2000, "n_annotators": 100, "votes_per_item": 3},
    {"n_items": 600, "n_annotators": 10, "votes_per_item": 5, "accuracy": (0.6, 0.8)},
    {"n_items": 400, "n_annotators": 40, "votes_per_item": 2.5, "accuracy": (0.7, 0.95)},
]
"""Sizes, accuracies, numbers of labels and prevalences of simulated corpora."""


def frame_of(simulated):
    ballot = simulated.votes.ballots[0]
    item_v = np.repeat(np.arange(ballot.n_items), np.diff(ballot.start_i))
    columns = {"item": item_v, "annotator": (ballot.code_v // ballot.n_labels).astype(np.int64)}
    return pl.DataFrame(columns | {"label": [str(code) for code in ballot.code_v % ballot.n_labels]})


def audited(frame, **options):
    return me.audit(frame, draws=0, report=False, **options)


def top_of(run):
    two = len(run.questions[0].labels) == 2
    p_i = run.items.sort("item")["p"].to_numpy()
    return np.maximum(p_i, 1 - p_i) if two else p_i


def with_one_more_vote(simulated, frame, items, rng):
    """Let somebody who has not voted yet vote on each of some items."""
    voters = dict(frame.group_by("item").agg("annotator").rows())
    rows = []
    for item in items:
        free = [a for a in range(len(simulated.confusion_akv)) if a not in voters[item]]
        if free:
            annotator = rng.choice(free)
            p_v = simulated.confusion_akv[annotator, simulated.truth_i[item]]
            rows.append((item, annotator, str(rng.choice(len(p_v), p=p_v))))
    return pl.concat([frame, pl.DataFrame(rows, schema=frame.schema, orient="row")]) if rows else frame


def errors_after(design, seed, rounds=3):
    """Return the predicted and the true share of wrong labels, now and after each round of further votes."""
    simulated, rng = me.simulate_votes(**design, seed=seed), np.random.default_rng(seed)
    frame = frame_of(simulated)
    run = audited(frame)
    predicted = forecast(run).filter(question="(all)")["wrong"].to_list()[: rounds + 1]
    true = []
    for turn in range(rounds + 1):
        labels = run.items.sort("item")["label"].cast(pl.Int64).to_numpy()
        true.append(float(np.mean(labels != simulated.truth_i)))
        if turn < rounds:
            frame = with_one_more_vote(simulated, frame, np.flatnonzero(top_of(run) < 0.75), rng)
            run = audited(frame)
    return np.array(predicted), np.array(true)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS, ids=range(len(DESIGNS)))
def test_wrong_labels_after_further_votes_are_as_predicted(design):
    pairs = [errors_after(design, seed) for seed in range(5)]
    predicted, true = (np.mean(side, axis=0) for side in zip(*pairs, strict=True))
    assert np.abs(predicted - true).max() < 0.03


def test_two_designs_at_once():
    for design in (DESIGNS[0], DESIGNS[4]):
        predicted, true = errors_after(design, 100, rounds=2)
        # One sample of 500 labels is off by 1.5 points.
        assert np.abs(predicted - true).max() < 0.04
        assert predicted[-1] < predicted[0]


@pytest.fixture(scope="module")
def simulated():
    return me.simulate_votes(n_items=300, n_annotators=8, votes_per_item=3, seed=3)


@pytest.fixture(scope="module")
def run(simulated):
    return audited(frame_of(simulated))


def test_the_forecast_starts_from_the_run(run):
    curve = forecast(run).filter(question="(all)")
    assert curve["uncertain"][0] == pytest.approx(np.mean(top_of(run) < 0.75), abs=1e-12)
    assert curve["votes"][0] == 0 and curve["votes"][1] == pytest.approx(np.sum(top_of(run) < 0.75))
    assert curve["votes"].is_sorted() and curve["items"][0] == 300
    assert forecast(run).equals(forecast(run))


def test_what_the_run_would_publish_is_what_it_publishes(run):
    [fit] = open_questions(run)
    assert fit.published(fit.p_iz, fit.count_ik, np.arange(len(fit.p_ik))) == pytest.approx(fit.p_ik, abs=1e-9)


def test_labels_put_right_by_one_vote_is_the_value_of_information(run):
    [fit] = open_questions(run)
    average_zv = np.tensordot(fit.votes_a / fit.votes_a.sum(), fit.vote_azv, axes=1)
    ratio_ik = fit.p_ik / (fit.p_iz @ fit.mix_zk)
    right_i = np.zeros(len(fit.p_ik))
    for v in range(2):
        joint_ik = np.einsum("iz,zk,z->ik", fit.p_iz, fit.mix_zk, average_zv[:, v])
        right_i += (joint_ik * ratio_ik).max(axis=1)
    at_i = np.arange(len(fit.p_ik))
    assert labels_put_right(fit, at_i, ahead=1) == pytest.approx(np.maximum(right_i - fit.p_ik.max(axis=1), 0))
    assert (labels_put_right(fit, at_i) >= labels_put_right(fit, at_i, ahead=1) - 1e-12).all()


def test_the_label_of_ordered_questions_is_the_median_here_too():
    rng = np.random.default_rng(5)
    item_v, value_v = np.repeat(np.arange(200), 3), np.repeat(rng.uniform(1, 6, 200), 3)
    rating_v = np.clip(np.round(value_v + rng.normal(0, 1.3, 600)), 1, 6).astype(int)
    run = audited(pl.DataFrame({"item": item_v, "annotator": np.tile(np.arange(3), 200), "rating": rating_v}))
    [fit] = open_questions(run)
    # The median of a million draws shared out by p, and not where its running sum passes a half.
    level_i = [int(np.median(np.repeat(np.arange(6), np.round(1e6 * p_k).astype(int)))) for p_k in fit.p_ik]
    p_i = fit.p_ik[np.arange(200), level_i]
    assert (p_i < fit.p_ik.max(axis=1) - 0.01).sum() > 5, "no item whose median is not its likeliest level"
    assert [fit.labels[level] for level in level_i] == run.items["label"].to_list()
    curve = forecast(run).filter(question="(all)")
    assert curve["uncertain"][0] == pytest.approx(np.mean(p_i < 0.75), abs=1e-12)
    by_item = dict(zip(run.items["item"].to_list(), zip(level_i, p_i, strict=True), strict=True))
    for item, reason in next_votes(run, 200).select("item", "reason").iter_rows():
        level, p = by_item[item]
        assert reason == f"rating: {fit.labels[level]} {round(100 * p)}% after 3 votes"
    average_zv = np.tensordot(fit.votes_a / fit.votes_a.sum(), fit.vote_azv, axes=1)
    for i in range(0, 200, 20):
        gain = -p_i[i]
        for v in range(6):
            joint_k = (fit.p_iz[i] * average_zv[:, v]) @ fit.mix_zk * fit.p_ik[i] / (fit.p_iz[i] @ fit.mix_zk)
            below, total = 0, joint_k.sum()
            while joint_k[: below + 1].sum() < total / 2:
                below += 1
            gain += joint_k[below]
        assert labels_put_right(fit, np.array([i]), ahead=1)[0] == pytest.approx(max(gain, 0.0), abs=1e-9)


def test_further_votes_on_the_best_items_put_more_right_than_on_others():
    wrong = {"best": 0, "others": 0}
    for seed in range(4):
        simulated, rng = (
            me.simulate_votes(n_items=300, n_annotators=12, votes_per_item=3, seed=seed),
            np.random.default_rng(0),
        )
        frame = frame_of(simulated)
        best = next_votes(audited(frame), 60)["item"].cast(pl.Int64).to_list()
        others = [item for item in range(300) if item not in set(best)]
        for name, items in (("best", best), ("others", list(rng.choice(others, 60, replace=False)))):
            more = frame
            for _ in range(3):
                more = with_one_more_vote(simulated, more, items, rng)
            labels = audited(more).items.sort("item")["label"].cast(pl.Int64).to_numpy()
            wrong[name] += np.sum(labels != simulated.truth_i)
    assert wrong["best"] < 0.95 * wrong["others"]


def test_settled_items_are_never_listed(simulated):
    frame = frame_of(simulated)
    gold = pl.DataFrame({"item": range(100), "gold": [str(label) for label in simulated.truth_i[:100]]})
    run = audited(frame, gold=gold)
    sheet = run.spot_check(20).with_columns(answer=pl.lit("1"))
    run = run.with_answers(sheet)
    checked = set(run.table("spot_checks").drop_nulls("answer")["item"].cast(pl.String))
    listed = set(next_votes(run, 300)["item"].cast(pl.String))
    assert listed and not listed & (checked | {str(item) for item in range(100)})


def test_an_item_of_two_questions_is_one_row(simulated):
    frame = frame_of(simulated)
    other = frame.with_columns(label=pl.when(pl.col("item") % 3 == 0).then(pl.lit("0")).otherwise("label"))
    both = pl.concat([frame.with_columns(question=pl.lit("a")), other.with_columns(question=pl.lit("b"))])
    run = audited(both)
    queue = next_votes(run, 300)
    assert queue["item"].is_unique().all() and queue.columns == list(QUEUE)
    apart = pl.concat([next_votes(run, 300, question=name) for name in "ab"])
    sums = dict(apart.group_by("item").agg(pl.col("labels_right").sum()).iter_rows())
    for item, right, questions in queue.select("item", "labels_right", "questions").iter_rows():
        assert right == pytest.approx(sums[item]) and set(questions.split(", ")) <= {"a", "b"}


def test_targets_and_the_end_of_use():
    curve = pl.DataFrame({"votes": [0.0, 100, 200, 300], "uncertain": [0.4, 0.2, 0.1, 0.1],
                          "wrong": [0.2, 0.1, 0.0999, 0.0998], "items": [1000.0] * 4})  # fmt: skip
    assert votes_to_reach(curve, "uncertain", 0.15) == 150
    assert votes_to_reach(curve, "wrong", 0.01) is None
    assert last_useful(curve) == 1
    # A first round that does little counts with the next one, which does much.
    late = curve.with_columns(wrong=pl.Series([0.2, 0.1995, 0.1, 0.0999]))
    assert last_useful(late) == 2 and last_useful(late.head(3)) == 2 and last_useful(late.head(1)) == 0


@pytest.mark.parametrize("design", [DESIGNS[0], DESIGNS[4], DESIGNS[6]], ids=["two", "three", "rare"])
def test_intervals_of_a_plan_hold(design):
    """The labels' shares, corrected by the checks, lie within the interval, which is as narrow as planned."""
    design = {name: value for name, value in design.items() if name != "n_items"}
    inside, widths = [], []
    for seed in range(3):
        pilot = me.simulate_votes(**design, n_items=250, seed=seed)
        best = plan(audited(frame_of(pilot)), 0.03, price=1, check_price=5).row(0, named=True)
        size = design | {"votes_per_item": best["votes_per_item"], "prevalence_k": pilot.prevalence_k}
        study = me.simulate_votes(**size, n_items=best["items"], confusion_akv=pilot.confusion_akv, seed=seed + 50)
        label_i = audited(frame_of(study)).items.sort("item")["label"].cast(pl.Int64).to_numpy()
        rng = np.random.default_rng(seed)
        for _ in range(5):
            at_j = rng.permutation(best["items"])[: best["checks"]]
            for k, share in enumerate(pilot.prevalence_k):
                said_i = label_i == k
                difference_j = (study.truth_i[at_j] == k).astype(float) - said_i[at_j]
                estimate = said_i.mean() + difference_j.mean()
                half = 1.645 * np.sqrt(said_i.var() / best["items"] + difference_j.var(ddof=1) / best["checks"])
                inside.append(abs(estimate - share) <= half)
                widths.append(half)
    assert np.mean(inside) >= 0.85
    assert np.max(widths) < 0.03 * 1.25


def test_plans_are_refused_in_words(run):
    with pytest.raises(me.MoralEntropyError, match=r"between 0 and 0\.5"):
        plan(run, 0.7)


@pytest.fixture(scope="module")
def with_texts():
    """Two votes per item, right in three quarters, and texts of which nine in ten name the label."""
    simulated = me.simulate_votes(n_items=800, n_annotators=15, votes_per_item=2, accuracy=(0.65, 0.85), seed=5)
    rng = np.random.default_rng(1)
    words = rng.choice([f"word{n}" for n in range(60)], size=(800, 6))
    says_i = np.where(rng.random(800) < 0.9, simulated.truth_i, 1 - simulated.truth_i)
    texts = [f"{' '.join(row)} {('river', 'harm')[label]}" for row, label in zip(words, says_i, strict=True)]
    frame = frame_of(simulated)
    frame = frame.with_columns(text=pl.Series(texts).gather(frame["item"]))
    return simulated, audited(frame, text="text", use_text="tfidf"), audited(frame.drop("text"))


def test_texts_that_count_count_in_what_further_votes_are_expected_to_do(with_texts):
    simulated, run, without = with_texts
    [fit] = open_questions(run)
    assert (fit.worth_i > 1).all()
    assert fit.published(fit.p_iz, fit.count_ik, np.arange(800)) == pytest.approx(fit.p_ik, abs=1e-9)
    expected = {}
    for name, audit in (("with", run), ("without", without)):
        labels = audit.items.sort("item")["label"].cast(pl.Int64).to_numpy()
        expected[name] = forecast(audit).filter(question="(all)")["wrong"]
        # Texts are taken for so many votes, which is a little less than what these know of the truth.
        assert expected[name][0] == pytest.approx(np.mean(labels != simulated.truth_i), abs=0.06)
    assert expected["with"][3] < 0.7 * expected["with"][0]
    # Where text and votes agree there is less to put right than where they do not.
    queue = next_votes(run, 50)["item"].cast(pl.Int64).to_list()
    p_i, text_i = (run.items.sort("item")[name].to_numpy() for name in ("p_votes", "p_text"))
    assert np.mean((p_i >= 0.5) != (text_i >= 0.5)) < np.mean((p_i[queue] >= 0.5) != (text_i[queue] >= 0.5))
