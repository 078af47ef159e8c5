"""What checked labels say of the consensus, rules and annotators: against plain counting."""

from __future__ import annotations

from collections import Counter, defaultdict

import polars as pl
import pytest
from report_support import vote_frame
from scipy import stats

import moral_entropy as me
from moral_entropy.errors import UsageError
from moral_entropy.pipeline import settle
from moral_entropy.planning import next_votes
from moral_entropy.verdict.verdict import checks_of, n_labels
from moral_entropy.verification import verify

FRAME = vote_frame(questions=("care",), n_items=150, seed=8)
TRUTH = dict(FRAME.select("item", "gold").unique().iter_rows())


def filled(run, n, **given):
    sheet = run.spot_check(n, **given)
    return sheet.with_columns(answer=pl.col("item").replace_strict(TRUTH))


@pytest.fixture(scope="module")
def run():
    return me.audit(FRAME.drop("gold"), draws=40)


@pytest.fixture(scope="module")
def checked(run):
    return run.with_answers(filled(run, 60))


def weighted(run, wrong):
    """Share of wrong ones among the checked items, by plain loops."""
    rows = [(row["item"], row["weight"]) for row in run.table("spot_checks").iter_rows(named=True)]
    known = [(wrong(item), weight) for item, weight in rows if wrong(item) is not None]
    return sum(is_wrong * weight for is_wrong, weight in known) / sum(weight for _, weight in known), len(known)


def share_of_sheet(run, sheet):
    """Share of wrong labels on one sheet, by plain loops."""
    label = dict(run.items.select("item", "label").iter_rows())
    rows = run.table("spot_checks").filter(sheet=sheet)
    wrong = [label[item] != TRUTH[item] for item in rows["item"]]
    return sum(a * b for a, b in zip(wrong, rows["weight"], strict=True)) / rows["weight"].sum()


def named(run, kind, name):
    [row] = run.checked.filter(kind=kind, name=name).to_dicts()
    return row


def test_the_consensus(checked):
    label = dict(checked.items.select("item", "label").iter_rows())
    share, n = weighted(checked, lambda item: label[item] != TRUTH[item])
    row = named(checked, "consensus", "consensus")
    assert (row["value"], row["checked"]) == (pytest.approx(share), n)
    assert checked.verdict.error.value == pytest.approx(share)


def test_only_labels_drawn_from_blocks_are_worth_more_than_their_number(run, checked):
    def width_against_jeffreys(checks, n):
        worth = n / (1 - n / 150)
        plain = stats.beta(checks.error.value * worth + 0.5, (1 - checks.error.value) * worth + 0.5).interval(0.9)
        return (checks.error.high - checks.error.low) / (plain[1] - plain[0])

    assert width_against_jeffreys(checks_of(checked), 60) == pytest.approx(1.0, abs=0.01)
    # Of 40 the labels nearest to a half are wrong, as p says.
    sheet = filled(run, 40)
    doubt = run.items.with_columns(doubt=(pl.col("p") - 0.5).abs()).filter(pl.col("item").is_in(sheet["item"]))
    risky = doubt.sort("doubt", "item")["item"].head(5)
    label = dict(run.items.select("item", "label").iter_rows())
    wrong = {item: next(other for other in set(label.values()) if other != label[item]) for item in risky}
    answer = [wrong.get(item, label[item]) for item in sheet["item"]]
    assert width_against_jeffreys(checks_of(run.with_answers(sheet.with_columns(answer=pl.Series(answer)))), 40) < 0.95


@pytest.mark.parametrize("rule", ["any", "majority", "strict-majority", "two-vote", "unanimous"])
def test_every_rule(checked, rule):
    votes = defaultdict(list)
    for item, label in FRAME.select("item", "label").iter_rows():
        votes[item].append(label == "1")
    says = {
        "any": any,
        "majority": lambda given: 2 * sum(given) >= len(given),
        "strict-majority": lambda given: 2 * sum(given) > len(given),
        "two-vote": lambda given: sum(given) >= 2,
        "unanimous": all,
    }[rule]
    share, n = weighted(checked, lambda item: says(votes[item]) != (TRUTH[item] == "1"))
    row = named(checked, "rule", rule)
    assert (row["value"], row["checked"]) == (pytest.approx(share), n)


def test_every_annotator(checked):
    for who in "abcdef":
        given = dict(FRAME.filter(annotator=who).select("item", "label").iter_rows())
        share, n = weighted(checked, lambda item, given=given: (item in given and given[item] != TRUTH[item]) or
                            (None if item not in given else False))  # fmt: skip
        row = named(checked, "annotator", who)
        assert (row["value"], row["checked"]) == (pytest.approx(share), n)


def test_of_several_labels_plurality_and_the_consensus():
    frame = vote_frame(questions=("tone",), labels=("anger", "joy", "none"), n_items=90, seed=2)
    truth = dict(frame.select("item", "gold").unique().iter_rows())
    run = me.audit(frame.drop("gold"), draws=40)
    sheet = run.spot_check(30).with_columns(answer=pl.col("item").replace_strict(truth))
    run = run.with_answers(sheet)
    votes = {item: Counter(group["label"]) for (item,), group in frame.group_by("item")}

    def tied_wrong(item):
        most = max(votes[item].values())
        top = [label for label, n in votes[item].items() if n == most]
        return 1 - (truth[item] in top) / len(top)

    share, _ = weighted(run, tied_wrong)
    assert named(run, "rule", "plurality")["value"] == pytest.approx(share)
    assert "majority" not in run.checked["name"].to_list()


def test_gold_is_counted_where_nothing_else_was_checked(run):
    with_gold = me.audit(FRAME, draws=40, gold="gold")
    label = dict(with_gold.items.select("item", "label").iter_rows())
    wrong = sum(label[item] != TRUTH[item] for item in TRUTH)
    checks = checks_of(with_gold)
    assert (checks.error.wrong, checks.error.checked, n_labels(with_gold)) == (wrong, 150, 150)
    assert checks_of(run) is None and checks.rows is None and with_gold.verdict.checked_by == "gold"
    assert with_gold.verdict.error.low == with_gold.verdict.error.high == wrong / 150


def test_a_column_that_was_only_guessed_to_be_gold_checks_nothing():
    guessed = me.audit(FRAME, draws=20)
    assert checks_of(guessed) is None and guessed.verdict.answer == "unknown"
    assert "with --gold gold they count" in " ".join(repr(guessed).split())


def test_answers_become_the_labels_of_a_new_run(run, tmp_path):
    sheet = run.spot_check(60)
    answered = run.with_answers(sheet.with_columns(answer=pl.col("item").replace_strict(TRUTH)))
    settled = settle(answered, tmp_path / "settled")
    labels = dict(settled.items.select("item", "label").iter_rows())
    assert all(labels[item] == TRUTH[item] for item in sheet["item"])
    assert next_votes(settled, 90).join(sheet, on="item", how="semi").is_empty()
    # What was wrong is told of the labels before, and labels that nobody checked are no worse.
    assert settled.verdict.error.wrong == answered.verdict.error.wrong
    before, after = (sum(TRUTH[item] != label for item, label in one.items.select("item", "label").iter_rows())
                     for one in (run, settled))  # fmt: skip
    assert after <= before - answered.verdict.error.wrong + 2
    assert settled.items["p_calibrated"].null_count() == 0 and verify(settled).stands


def test_a_run_without_answers_cannot_be_settled(run):
    with pytest.raises(UsageError, match=r"no label of .* was checked"):
        settle(run)


def test_gold_that_the_fit_has_seen_checks_nothing():
    assert checks_of(me.audit(FRAME, draws=20, gold_as_evidence=True)) is None


def test_a_spot_check_goes_before_gold():
    both = me.audit(FRAME, draws=40, gold="gold")
    assert both.with_answers(filled(both, 30)).verdict.checked_by == "spot check"


def test_sheets_add_up(run):
    once = run.with_answers(filled(run, 30))
    twice = once.with_answers(filled(once, 20))
    checks = checks_of(twice)
    assert checks.error.checked == 50
    shares = [share_of_sheet(twice, sheet) for sheet in (1, 2)]
    assert checks.error.value == pytest.approx((30 * shares[0] + 20 * shares[1]) / 50)


def test_repairs_measure_nothing(run):
    mended = run.with_answers(filled(run, 30, repair=True))
    assert checks_of(mended) is None and mended.verdict.error is None
