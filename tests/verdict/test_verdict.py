"""The verdict: never a yes from votes alone, and with checked labels what they show."""

from __future__ import annotations

import math
import random

import numpy as np
import polars as pl
import pytest
from report_support import vote_frame
from scipy import stats

import moral_entropy as me
from moral_entropy.findings import Finding
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.run import read_run
from moral_entropy.verdict.crowds import crowds_of_people, guess_who_voted
from moral_entropy.verdict.error_rate import error_rate, tally
from moral_entropy.verdict.headlines import headlines, uncertain_by_kind
from moral_entropy.verdict.verdict import answer_for, expected_error, give_verdict

HIGH = Finding("fit", "converged", 0, level="bad", text="the fit did not converge")
LOW = Finding("votes", "items_without_votes", 7, level="note", text="7 items have no vote")


def simulated(accuracy, votes_per_item, seed=0):
    """Audit votes of ten annotators on 200 items, each right so often."""
    draw = random.Random(seed)
    truth = [draw.random() < 0.4 for _ in range(200)]
    rows = [
        {"item": item, "annotator": f"A{who}", "label": str(int(truth[item] == (draw.random() < accuracy)))}
        for item in range(200)
        for who in draw.sample(range(10), votes_per_item)
    ]
    return me.audit(pl.DataFrame(rows), draws=40)


@pytest.fixture(scope="module")
def sure():
    """Votes so good that the model has hardly a doubt."""
    return simulated(0.97, 7)


@pytest.fixture(scope="module")
def unsure():
    return simulated(0.7, 3)


def test_votes_alone_never_say_yes(sure, unsure):
    for run in (sure, unsure):
        for found in ([], [LOW], [HIGH]):
            verdict = give_verdict(run, found)
            assert verdict.answer in {"unknown", "not yet"} and verdict.status in {"unknown", "stop"}
            assert verdict.error is None and "votes cannot say how many are wrong" in verdict.text


def test_what_votes_alone_say(sure, unsure):
    assert give_verdict(sure, [LOW]).title == "Votes alone cannot tell: check some labels."
    assert give_verdict(sure, [HIGH]).title == "Not yet: 1 warning to settle first."
    flagged = give_verdict(unsure, [])
    assert flagged.floor > crowds_of_people().flag
    assert flagged.title == "Not yet: more than 10% of the labels are likely wrong."
    assert f"Expect at least {flagged.floor:.1%} to be wrong" in flagged.text


def test_the_floor_is_the_models_expected_error(unsure):
    by_hand = sum(min(p, 1 - p) for p in unsure.items["p_model"]) / unsure.items.height
    assert expected_error(unsure) == pytest.approx(by_hand)


def test_the_range_of_crowds_alike_is_that_of_the_data_file(unsure):
    low, high = give_verdict(unsure, []).alike
    crowds = crowds_of_people()
    belief = crowds.belief(expected_error(unsure))
    normal = stats.norm(belief.mean, belief.sd)
    for share, mass in ((low, 0.05), (high, 0.95)):
        logit = math.log(share / (1 - share))
        assert normal.cdf(logit) == pytest.approx(mass, abs=1e-6)


def test_language_models_have_no_range():
    votes = vote_frame(questions=("care",), annotators=["gpt-4o", "claude-3", "llama-70b", "qwen-2"], gold=False)
    run = me.audit(votes, draws=20)
    assert guess_who_voted(["gpt-4o", "claude-3"]) == "models" and guess_who_voted(["judge 1", "judge 2"]) == "people"
    assert run.verdict.alike is None
    assert "taken for language models (if not: --voters people); for these there is no range." in run.verdict.text
    assert me.audit(votes, draws=20, voters="people").verdict.alike is not None


@pytest.mark.parametrize(
    ("wrong", "n", "claimed", "answer"),
    [
        (0, 50, 0.0, "ship"),
        (1, 50, 0.0, "ship"),
        (2, 50, 0.0, "not yet"),
        (8, 50, 0.15, "ship soft"),
        (8, 50, 0.02, "not yet"),
        (0, 10, 0.0, "not yet"),
        (20, 1_000, 0.0, "ship"),
    ],
)
def test_the_answer_follows_from_the_checks(wrong, n, claimed, answer):
    rate = error_rate(tally([1] * wrong + [0] * (n - wrong)), 1e9)
    assert answer_for(rate, 0.10, claimed) == answer


@pytest.mark.parametrize("share", [0.1001, 0.12, 0.2, 0.5])
@pytest.mark.parametrize("n", [20, 50, 100, 500])
def test_wrong_assurance_is_rarer_than_one_sheet_in_twenty(share, n):
    """Adding up all sheets that say ship, where more is wrong than tolerated."""
    says = [answer_for(error_rate(tally([1] * k + [0] * (n - k)), 1e9), 0.10, 1.0) == "ship" for k in range(n + 1)]
    assert sum(stats.binom.pmf(k, n, share) for k in range(n + 1) if says[k]) <= 0.05


def test_with_checks_the_verdict_is_a_number(sure):
    sheet = sure.spot_check(50).join(sure.items.select("item", "label"), on="item", maintain_order="left")
    flipped = pl.when(pl.int_range(pl.len()) < 8).then(pl.lit("wrong")).otherwise(pl.lit("right"))
    other = {"0": "1", "1": "0"}
    answers = sheet.with_columns(answer=pl.when(flipped == "wrong").then(pl.col("label").replace(other))
                                 .otherwise(pl.col("label"))).drop("label")  # fmt: skip
    verdict = sure.with_answers(answers).verdict
    assert verdict.answer == "not yet" and verdict.title == "Not yet: too many are wrong."
    assert verdict.text.startswith("8 of 50 labels checked are wrong: 16% (90% interval ")
    assert "p does not admit it" in verdict.text
    right = sheet.with_columns(answer=pl.col("label")).drop("label")
    assert sure.with_answers(right).verdict.answer == "ship"
    few = right.with_columns(answer=pl.when(pl.int_range(pl.len()) < 10).then(pl.col("answer")).otherwise(pl.lit("")))
    undecided = sure.with_answers(few).verdict
    assert (
        undecided.title == "Not yet: too few labels were checked." and "more checks would settle it" in undecided.text
    )


def test_the_tolerance_is_the_users(sure):
    sheet = sure.spot_check(50).join(sure.items.select("item", "label"), on="item", maintain_order="left")
    right = sheet.with_columns(answer=pl.col("label")).drop("label")
    strict = me.audit(sure.consensus.votes, draws=40, tolerance=0.01).with_answers(right)
    assert strict.verdict.answer == "not yet" and "tolerated: 1%" in strict.verdict.text


def test_four_headlines(plain_run, many_run):
    for path in (plain_run, many_run):
        run = read_run(path)
        names = [one.name for one in headlines(run, run.verdict)]
        rule = "majority" if path == plain_run else "plurality"
        assert names == ["labels found wrong", "labels uncertain", "effective votes per item", f"changed by {rule}"]


def test_headlines_are_the_figures_of_the_tables(many_run):
    run = read_run(many_run)
    shown = {one.name: one for one in headlines(run, run.verdict)}
    rows = run.table("audit").filter(rule="plurality", metric="disagreement", label="(multiclass)")
    wanted = rows.filter(reference="consensus", domain="(all)", question="tone")["value"].item()
    assert shown["changed by plurality"].value == f"{wanted:.1%}"
    worth = sum(run.items["effective_votes"]) / run.items.height
    assert shown["effective votes per item"].value == f"{worth:.1f}"
    wrong = sum(a != b for a, b in run.items.select("gold", "label").iter_rows())
    assert shown["labels found wrong"].value == f"{wrong / run.items.height:.1%}"


def test_uncertain_labels_are_told_apart_by_their_largest_part(unsure):
    by_hand = dict.fromkeys(("ambiguity", "doubt_votes", "doubt_annotators"), 0)
    for row in unsure.items.iter_rows(named=True):
        if row["entropy"] > math.log(2) / 2:
            by_hand[max(by_hand, key=lambda part, row=row: row[part])] += 1 / unsure.items.height
    found = uncertain_by_kind(unsure)
    assert {kind: found[kind] for kind in by_hand} == pytest.approx(by_hand)
    uncertain = [fit["uncertain"] for fit in unsure.manifest["questions"]]
    assert sum(found.values()) == pytest.approx(sum(uncertain) / len(uncertain))


def test_findings_reach_the_verdict_of_votes_alone(with_findings):
    bad = Finding("fit", "converged", 0, "care", level="bad", text="the fit did not converge.")
    run = with_findings([bad])
    assert give_verdict(run, cautions(run)).checked_by == "gold"


def test_ambiguity_is_not_told_from_too_few_votes_where_votes_are_few():
    rng = np.random.default_rng(6)
    said = []
    for n_annotators in (4, 40):
        between = rng.random((60, 1)) < 0.5
        yes = rng.random((60, n_annotators)) < np.where(between, 0.5, 0.95)
        rows = [(i, f"a{a}", "yes" if yes[i, a] else "no") for i in range(60) for a in range(n_annotators)]
        votes = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
        run = me.audit(votes, draws=50)
        note = next(one.note for one in headlines(run, run.verdict) if one.name == "labels uncertain")
        said.append("look alike" in note)
        assert "ambiguous" in note
    assert said == [True, False]
