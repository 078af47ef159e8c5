"""Sides by name, and a missing extra that is a finding or an error, as asked."""

from __future__ import annotations

import pytest
from support import random_rows, votes_of

from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.fitted import local_fit
from moral_entropy.errors import MissingExtraError
from moral_entropy.findings import Finding, alarm_sentences
from moral_entropy.validate import nuts_sampler
from moral_entropy.validate.sides import CHEAP, SIDES, examine, examine_cheaply


@pytest.fixture(scope="module")
def consensus():
    import numpy as np

    return fit(votes_of(random_rows(np.random.default_rng(1), 60, 5, 2)), draws=60)


def test_a_side_has_a_question_and_lies_in_a_file_of_its_name():
    for name, side in SIDES.items():
        assert side.name == name and side.title.endswith("?") and side.meaning.endswith(".")
        assert side.run.__module__ == f"moral_entropy.validate.{name.replace('-', '_')}"


def test_cheap_sides_are_examined_together(consensus):
    alone = [finding for side in CHEAP for finding in examine(consensus, side)]
    assert [(f.side, f.figure, f.value) for f in examine_cheaply(local_fit(consensus))] == [
        (f.side, f.figure, pytest.approx(f.value, nan_ok=True)) for f in alone
    ]


def test_a_missing_extra_is_an_error_only_where_the_side_was_asked_for(consensus, monkeypatch):
    def missing():
        what = "sampling with NUTS needs nutpie and ArviZ"
        raise MissingExtraError(what, "mcmc")

    monkeypatch.setattr(nuts_sampler, "import_nutpie", missing)
    with pytest.raises(MissingExtraError, match=r"moral-entropy\[mcmc\]"):
        examine(consensus, "nuts")
    (left_out,) = examine(consensus, "nuts", required=False)
    assert (left_out.figure, left_out.level) == ("left_out", "info")
    assert "moral-entropy[mcmc]" in left_out.text


def test_alarms_of_one_kind_are_one_sentence_with_the_worst_first():
    findings = [
        Finding("temper", "exponent", 0.5, question="a", level="doubt", text="doubt about a"),
        Finding("temper", "exponent", 0.1, question="b", level="bad", text="b is bad."),
        Finding("temper", "exponent", 1.0, question="c", level="good", text="fine"),
        Finding("gold", "ece", 0.3, question="a", level="doubt", text="off."),
    ]
    assert alarm_sentences(findings) == ["b: b is bad. The same in 1 more: a.", "a: off."]
