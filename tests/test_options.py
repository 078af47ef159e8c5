"""Options are declared once: keywords, plain values and error messages follow from the fields."""

from __future__ import annotations

import inspect
import json
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import moral_entropy as me
from moral_entropy.errors import FitError, UsageError
from moral_entropy.option_fields import StageOptions, as_plain, from_plain, option, options_in, sections
from moral_entropy.options import (
    AuditOptions,
    FitOptions,
    GradeOptions,
    GroupOptions,
    PanelOptions,
    PriorOptions,
    ReadOptions,
    VerdictOptions,
)

STAGES = (ReadOptions, PriorOptions, FitOptions, GradeOptions, AuditOptions)
TAKEN_BY = {ReadOptions: me.read_votes, FitOptions: me.fit, GradeOptions: me.audit_rules}


@dataclass(frozen=True)
class Some(StageOptions):
    names: tuple[str, ...] = option("Names.", ())
    pair: tuple[float, float] | None = option("Two numbers.")
    way: Literal["fast", "exact"] = option("How.", "fast")
    power: Literal["off"] | float = option("A power.", "off")
    of: int | str | None = option("A number or a column.")
    size: int = option("How many.", 3, least=1)
    on: bool = option("Whether.", False, flag="--switched-on")


@pytest.mark.parametrize("stage", STAGES)
def test_every_field_is_an_option_with_a_help_text_or_another_stage(stage):
    declared = {one.name: one for one in options_in(stage)}
    assert {one.name for one in fields(stage)} == {*declared, *sections(stage)}
    for one in declared.values():
        assert one.help.endswith((".", "…")) and one.help[0] != " "
        assert one.kind is bool or one.flag in ("", f"--{one.name.replace('_', '-')}") or one.flag.startswith("--prior")


@pytest.mark.parametrize("stage", TAKEN_BY)
def test_the_function_shows_every_option_with_its_default_and_its_help(stage):
    function = TAKEN_BY[stage]
    parameters = inspect.signature(function).parameters
    listed = options_in(stage)
    assert [parameters[one.name].default for one in listed] == [one.default for one in listed]
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    words = " ".join(inspect.getdoc(function).split())
    assert [one.name for one in listed if f"{one.name} {one.help}" not in words] == []
    assert "**changes" not in words


@pytest.mark.parametrize("stage", TAKEN_BY)
def test_a_wrong_keyword_is_a_type_error_that_names_the_nearest(stage):
    function, name = TAKEN_BY[stage], options_in(stage)[0].name
    nothing = [None] * (2 if stage is GradeOptions else 1)
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) has no option '{name}x'\. Did you mean '{name}'\?"):
        function(*nothing, **{f"{name}x": 1})


def test_an_object_and_keywords_together_change_only_what_is_named():
    base = FitOptions(draws=20, seed=4)
    assert base.changed({"draws": 0}) == FitOptions(draws=0, seed=4)
    assert base == FitOptions(draws=20, seed=4)


def test_fit_takes_options_keywords_or_both():
    votes = me.simulate_votes(n_items=120, n_annotators=6, votes_per_item=5, seed=1).votes
    asked = FitOptions(draws=20, seed=3, interval=0.8)
    found = [me.fit(votes, asked), me.fit(votes, draws=20, seed=3, interval=0.8), me.fit(votes, asked, seed=3)]
    assert [one.options for one in found] == [asked] * 3
    for one in found[1:]:
        np.testing.assert_array_equal(one.p_ik, found[0].p_ik)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"names": "care"}, {"names": ("care",)}),
        ({"names": ["care", "harm"]}, {"names": ("care", "harm")}),
        ({"names": None}, {"names": ()}),
        ({"names": [1, True]}, {"names": ("1", "True")}),
        ({"pair": [np.float64(1), 2]}, {"pair": (1.0, 2.0)}),
        ({"power": np.float32(0.5)}, {"power": 0.5}),
        ({"size": np.int64(4)}, {"size": 4}),
        ({"of": 3}, {"of": 3}),
        ({"of": "n"}, {"of": "n"}),
    ],
)
def test_values_become_the_type_of_their_field(given, kept):
    options = Some(**given)
    assert {name: getattr(options, name) for name in kept} == kept
    json.dumps(as_plain(options))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"way": "slow"}, "way is 'slow'; choose one of fast, exact."),
        ({"power": "on"}, "power is 'on'; choose one of off, or write a number."),
        ({"size": 2.5}, "size is 2.5; write a whole number."),
        ({"size": 0}, "size is 0; it is at least 1."),
        ({"pair": (1.0, 2.0, 3.0)}, "pair is (1.0, 2.0, 3.0); write two numbers, as 1.8,1.2."),
        ({"on": "yes"}, "on is 'yes'; write true or false."),
    ],
)
def test_what_cannot_be_says_how_to_write_it(given, words):
    with pytest.raises(UsageError) as caught:
        Some(**given)
    assert str(caught.value) == words


def test_the_error_is_that_of_the_stage():
    with pytest.raises(FitError, match="model is 'some'; choose one of mixed, paper"):
        FitOptions(model="some")


NOT_DEFAULT = AuditOptions(
    read=ReadOptions(
        **{name: name.upper() for name in ("item", "annotator", "label", "question", "domain", "text", "gold")},
        published="shipped", count="n", positive="yes", questions=("a,b", "c"),
        labels={"harm": "care", "nm": False}, on_repeat="count", anonymous=True, of=7, gold_file=Path("gold.csv"),
        keep=("age", "time"), facts=("wave",), format="long", sheet="Votes", encoding="cp1250", missing=("x", "skip"),
        keep_case=True, scale="ordinal", order=("low", "high"),
    ),
    priors=PriorOptions(prevalence=(80.0, 20.0), confusion=(3.0, 1.5), annotators="known.csv"),
    fit=FitOptions(
        draws=0, seed=9, model="paper", solver="adam", steps=50, interval=0.5, use_gold=True,
        merge=("ann+bob", "C+++cy"), threads=2,
    ),
    groups=GroupOptions(annotator_group=("gender", "age+land"), annotators="people.csv",
    target="shares.csv"), verdict=VerdictOptions(
        spot_check=("checked.csv",), decisions="decisions.jsonl", tolerance=0.2, ignore=("ME001",)),
    grade=GradeOptions(rules=("any", "quorum-0.75"), cost_fp=2.0, cost_fn=0.1, smoothing=1.0),
    judges=PanelOptions(roles="roles.csv"), fit_by="wave", use_text="tfidf", report=False,
)  # fmt: skip
OTHERS = (
    replace(NOT_DEFAULT, priors=PriorOptions(preset="mft")),
    replace(NOT_DEFAULT, read=ReadOptions(multilabel=",", exclude=("ann", "b,c"))),
    replace(NOT_DEFAULT, read=ReadOptions(anonymous=True, counts=("a", "b"), classes=("a", "b"), of=None)),
    replace(NOT_DEFAULT, fit=FitOptions(domain_prevalence="off")),
    AuditOptions(),
)


def values_of(options: StageOptions) -> dict[str, Any]:
    own = {one.name: getattr(options, one.name) for one in options_in(type(options))}
    return own | {f"{name}.{key}": value for name in sections(type(options))
                  for key, value in values_of(getattr(options, name)).items()}  # fmt: skip


def test_every_option_is_tried_with_a_value_that_is_not_its_default():
    default = values_of(AuditOptions())
    tried = {name for one in (NOT_DEFAULT, *OTHERS) for name, value in values_of(one).items() if value != default[name]}
    assert tried == set(default)


@pytest.mark.parametrize("options", [NOT_DEFAULT, *OTHERS])
def test_plain_values_hold_every_option_exactly(options):
    text = json.dumps(as_plain(options))
    assert from_plain(AuditOptions, json.loads(text), "manifest.json") == options


def test_a_settings_file_may_name_options_as_python_does_or_as_the_flags_do():
    text = """
    fit_by = "wave"
    use_text = "tfidf"
    [read]
    questions = "care, harm"
    [priors]
    prior-prevalence = [80, 20]
    [fit]
    model = "paper"
    gold-as-evidence = true
    solver = "adam"
    steps = 9
    """
    expected = AuditOptions(
        ReadOptions(questions=("care", "harm")),
        PriorOptions(prevalence=(80, 20)),
        FitOptions(model="paper", use_gold=True, solver="adam", steps=9),
        fit_by="wave",
        use_text="tfidf",
    )
    assert from_plain(AuditOptions, tomllib.loads(text), "settings.toml") == expected


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"fit": {"drawz": 5}}, r"s\.toml \[fit\] has 'drawz', which is no option there\. Did you mean 'draws'\?"),
        ({"fitt": {"draws": 5}}, r"s\.toml has 'fitt', which is no option there\. Did you mean 'fit'\?"),
        ({"draws": 5}, r"s\.toml has 'draws', which is no option there\."),
        ({"fit": 5}, r"s\.toml has 'fit'"),
        ({"fit": {"draws": "many"}}, r"s\.toml \[fit\]: draws is 'many'; write a whole number\."),
        ({"fit": {"use_gold": "yes"}}, r"use_gold is 'yes'; write true or false\."),
    ],
)
def test_a_settings_file_that_is_wrong_is_refused(values, words):
    with pytest.raises(UsageError, match=words):
        from_plain(AuditOptions, values, "s.toml")
