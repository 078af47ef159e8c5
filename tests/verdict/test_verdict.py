"""The verdict: no answer from votes alone, and with checked labels what they show."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import moral_entropy as me
from moral_entropy.findings import Finding
from moral_entropy.runs.run import findings_frame, read_run
from moral_entropy.verdict.figures import ORDER, run_figures
from moral_entropy.verdict.verdict import answer_for, error_rate

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


def having(run, findings):
    """The same run with these findings alone."""
    return replace(run, tables=run.tables | {"findings": findings_frame(findings)})


def test_votes_alone_never_say_yes(sure, unsure):
    for run in (sure, unsure):
        for findings in ([], [LOW], [HIGH]):
            verdict = having(run, findings).verdict
            assert (verdict.answer, verdict.error) == ("unknown", None)
            assert verdict.status == ("stop" if HIGH in findings else "unknown")
            assert verdict.text.startswith("Votes cannot show mistakes that annotators share: check 50 labels.")
            # Of 29 right answers, and of 107 with 5% wrong, the exact bounds are 10%.
            assert "29 checks if none is found wrong, 107 if 5% are" in verdict.text
    assert having(sure, [LOW]).verdict.title == "Votes alone cannot tell: check some labels."
    assert having(sure, [HIGH]).verdict.title == "Votes alone cannot tell: 1 warning to settle first."


@pytest.mark.parametrize(
    ("wrong", "n", "claimed", "answer"),
    [
        (0, 50, 0.0, "ship"),
        (1, 50, 0.0, "ship"),
        (2, 50, 0.0, "not yet"),
        (2, 50, 0.05, "ship soft"),
        (8, 50, 0.15, "ship soft"),
        (8, 50, 0.02, "not yet"),
        (0, 10, 0.0, "not yet"),
        (20, 1_000, 0.0, "ship"),
    ],
)
def test_the_answer_follows_from_the_checks(wrong, n, claimed, answer):
    rate = error_rate([1] * wrong + [0] * (n - wrong), 1e9)
    assert answer_for(rate, 0.10, claimed) == answer


@pytest.mark.parametrize("share", [0.1001, 0.12, 0.2, 0.5])
@pytest.mark.parametrize("n", [20, 50, 100, 500])
def test_wrong_assurance_is_rarer_than_one_sheet_in_twenty(share, n):
    """Adding up all sheets that say ship, where more is wrong than tolerated."""
    says = [answer_for(error_rate([1] * k + [0] * (n - k), 1e9), 0.10, 1.0) == "ship" for k in range(n + 1)]
    assert sum(stats.binom.pmf(k, n, share) for k in range(n + 1) if says[k]) <= 0.05


TOLERANCES = st.floats(0.001, 0.999)
SHEETS = st.lists(st.tuples(st.booleans(), st.sampled_from([1.0, 2.0, 7.0])), min_size=1, max_size=80)


@given(SHEETS, st.floats(0, 1), TOLERANCES, TOLERANCES)
def test_the_more_is_tolerated_the_better_the_answer(sheet, claimed, tolerance, other):
    wrong, weight = zip(*sheet, strict=True)
    rate = error_rate(wrong, 1_000, weight_j=weight)
    answers = [ORDER.index(answer_for(rate, limit, claimed)) for limit in sorted((tolerance, other))]
    assert answers[0] <= answers[1]


@given(SHEETS, st.floats(0, 1), TOLERANCES, st.integers(0, 79))
def test_one_more_wrong_answer_never_makes_the_answer_better(sheet, claimed, tolerance, at):
    wrong, weight = zip(*sheet, strict=True)
    more = [w or n == at for n, w in enumerate(wrong)]
    rates = (error_rate(marks, 1_000, weight_j=weight) for marks in (more, wrong))
    answers = [ORDER.index(answer_for(rate, tolerance, claimed)) for rate in rates]
    assert answers[0] <= answers[1]


def test_a_blank_row_is_not_a_checked_one(sure):
    """Five of 50 wrong is not yet good enough, and leaving the wrong rows blank does not make it so."""
    sheet = sure.spot_check(50).join(sure.items.select("item", "label"), on="item", maintain_order="left")
    other = pl.col("label").replace({"0": "1", "1": "0"})
    first = pl.int_range(pl.len()) < 5
    wrong = sheet.with_columns(answer=pl.when(first).then(other).otherwise(pl.col("label"))).drop("label")
    blank = wrong.with_columns(answer=pl.when(first).then(pl.lit("")).otherwise(pl.col("answer")))
    told, left = (sure.with_answers(rows).verdict for rows in (wrong, blank))
    assert (told.error.checked, left.error.checked, left.error.wrong) == (50, 45, 0)
    assert left.error.bound <= 0.1 and left.answer == told.answer == "not yet"
    assert left.title == "Not yet: 5 rows of the sheet are blank."
    # Nor does a blank row take an answer back.
    assert sure.with_answers(wrong).with_answers(blank).verdict.error == told.error


def test_with_checks_the_verdict_is_a_number(sure):
    sheet = sure.spot_check(50).join(sure.items.select("item", "label"), on="item", maintain_order="left")
    flipped = pl.when(pl.int_range(pl.len()) < 8).then(pl.lit("wrong")).otherwise(pl.lit("right"))
    other = {"0": "1", "1": "0"}
    answers = sheet.with_columns(answer=pl.when(flipped == "wrong").then(pl.col("label").replace(other))
                                 .otherwise(pl.col("label"))).drop("label")  # fmt: skip
    verdict = sure.with_answers(answers).verdict
    assert verdict.answer == "not yet" and verdict.title == "Not yet: too many are wrong."
    assert verdict.text.startswith("8 of 50 labels checked are wrong: 16% (90% interval ")
    assert "By p itself" in verdict.text
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
    assert strict.verdict.answer == "ship soft" and "tolerated: 1%" in strict.verdict.text
    assert "more checks would settle it" in strict.verdict.text


def test_uncertain_labels_are_counted(unsure, many_run):
    for run in (unsure, read_run(many_run)):
        two = run.questions[0].positive is not None
        likely = [max(p, 1 - p) if two else p for p in run.items["p"]]
        assert run_figures(run)["uncertain"]["value"] == pytest.approx(np.mean([p < 0.75 for p in likely]))


def test_findings_reach_the_verdict_of_votes_alone(with_findings):
    bad = Finding("fit", "converged", 0, "care", level="bad", text="the fit did not converge.")
    run = with_findings([bad])
    assert run.verdict.checked_by == "gold"
