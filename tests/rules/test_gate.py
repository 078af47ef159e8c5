"""Limits on figures: found by name, held or not, and refused when there is no such figure."""

from __future__ import annotations

import math

import polars as pl
import pytest

from moral_entropy.errors import UsageError
from moral_entropy.rules.gate import check_limits


def row(question="(all)", domain="(all)", label="(all)", rule="any", reference="consensus", metric="fdr", value=0.3):
    named = {"question": question, "domain": domain, "label": label, "rule": rule, "reference": reference}
    return {**named, "metric": metric, "value": value, "low": value, "high": value, "n": 40}


FRAME = pl.DataFrame(
    [
        row(value=0.30),
        row(rule="quorum-2/3", value=0.05),
        row(metric="fnr", value=None),
        row(metric="cross_entropy", value=math.inf),
        row(reference="gold", value=0.35),
        row(question="(mean)", value=0.31),
        row(question="care", label="yes", value=0.10),
        row(question="care", label="yes", rule="quorum-2/3", value=0.11),
        row(question="care", domain="BLM", label="yes", value=0.12),
        row(domain="BLM", value=0.13),
        row(question="a/b:c", domain="x:y", label="1", value=0.14),
        row(question="tone", label="anger", value=0.21),
        row(question="tone", label="(all)", value=0.22),
        row(question="tone", label="(multiclass)", rule="plurality", metric="disagreement", value=0.23),
    ]
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("any.fdr", 0.30),
        ("any.fdr@consensus", 0.30),
        ("quorum-2/3.fdr", 0.05),
        ("any.fdr@gold", 0.35),
        ("(mean)/any.fdr", 0.31),
        ("care/any.fdr", 0.10),
        ("care/quorum-2/3.fdr", 0.11),
        ("BLM:care/any.fdr", 0.12),
        ("BLM:any.fdr", 0.13),
        ("x:y:a/b:c/any.fdr", 0.14),
        ("tone/any[anger].fdr", 0.21),
        ("tone/any.fdr", 0.22),
        ("tone/plurality[(multiclass)].disagreement", 0.23),
    ],
)
def test_figures_by_name_and_both_kinds_of_limit(name, value):
    at, below, above = (check_limits(FRAME, maxima=[f"{name}={limit}"])[0] for limit in (value, value - 0.01, 0.9))
    assert (at.held, below.held, above.held) == (True, False, True)
    assert at.value == value and at.n == 40
    at, below, above = (check_limits(FRAME, minima=[f"{name}={limit}"])[0] for limit in (value, value - 0.01, 0.9))
    assert (at.held, below.held, above.held) == (True, True, False)


def test_no_value_holds_nothing_and_infinity_is_too_much():
    missing, infinite = check_limits(FRAME, maxima=["any.fnr=1", "any.cross_entropy=9"])
    assert not missing.held and missing.value is None
    assert not infinite.held
    assert str(missing) == "FAILED: any.fnr has no value, limit 1"
    [held] = check_limits(FRAME, minima=["any.fdr=0.1"])
    assert str(held) == "holds: any.fdr is 0.3, must be at least 0.1 (n = 40)"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("any.fdr", "is no limit. Write rule.metric=number"),
        ("any.fdr=lots", "is no limit"),
        ("=0.2", "is no limit"),
        ("any.fdr=nan", "is no limit"),
        ("any.fdx=0.2", "no figure 'any.fdx'.*metrics: accuracy, fdr, fnr, cross_entropy, disagreement"),
        ("any=0.2", "no figure 'any'"),
        ("anny.fdr=0.2", r"no figure 'anny.fdr'.*rules: any, quorum-2/3, plurality"),
        ("care/many.fdr=0.2", "Did you mean care/any.fdr"),
        ("any.fdr@truth=0.2", "no figure 'any.fdr@truth'.*references: consensus, gold"),
        ("fairness/any.fdr=0.2", r"no figure 'fairness/any.fdr'.*questions: .*care.*domains: \(all\), BLM"),
        ("MeToo:care/any.fdr=0.2", "no figure 'MeToo:care/any.fdr'"),
    ],
)
def test_what_is_not_there_is_named_with_the_choices(spec, words):
    with pytest.raises(UsageError, match=words):
        check_limits(FRAME, maxima=[spec])


@pytest.mark.parametrize(
    ("kind", "limit", "strict", "outcome"),
    [
        ("maxima", 0.35, True, "holds"),
        ("maxima", 0.30, True, "undecided"),
        ("maxima", 0.24, True, "failed"),
        ("maxima", 0.32, False, "holds"),
        ("minima", 0.25, True, "holds"),
        ("minima", 0.30, True, "undecided"),
        ("minima", 0.36, True, "failed"),
        ("minima", 0.32, False, "failed"),
    ],
)
def test_strictly_the_whole_interval_must_hold(kind, limit, strict, outcome):
    frame = pl.DataFrame([{**row(value=0.31), "low": 0.25, "high": 0.35}])
    [found] = check_limits(frame, **{kind: [f"any.fdr={limit}"]}, strict=strict)
    assert (found.outcome, found.held) == (outcome, outcome == "holds")
    # A bound is compared as it is.
    [bound] = check_limits(frame, maxima=["any.fdr.high=0.35"], strict=True)
    assert bound.outcome == "holds" and bound.low is None


def test_no_value_cannot_be_decided_strictly_and_near_names_are_suggested():
    [missing] = check_limits(FRAME, maxima=["any.fnr=1"], strict=True)
    assert missing.outcome == "undecided"
    more = {"alpha": {"value": 0.5, "low": None, "high": None, "n": 3}}
    with pytest.raises(UsageError, match=r"no figure 'alfa'\. Did you mean alpha\? Figures: alpha, and .*rule\.metric"):
        check_limits(FRAME, minima=["alfa=0.2"], extra=more)
    with pytest.raises(UsageError, match=r"Did you mean quorum-2/3\.fdr or care/quorum-2/3\.fdr"):
        check_limits(FRAME, minima=["qorum-2/3.fdr=0.2"])
