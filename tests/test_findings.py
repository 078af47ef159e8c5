"""Findings of one kind become one warning, the worst first, and everything that is said of it is said once."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.errors import ThinDataWarning, UsageError
from moral_entropy.findings import (
    ALIASES,
    CODES,
    RANK,
    Finding,
    headline,
    merge_alike,
    mute,
    overview,
    warning_sentences,
    without_warnings,
)

some_findings = st.lists(
    st.builds(
        Finding,
        check=st.sampled_from(["fit", "gold"]),
        metric=st.sampled_from(["one", "other"]),
        value=st.just(1.0),
        question=st.sampled_from(["", "care", "harm"]),
        subject=st.sampled_from(["", "ann"]),
        level=st.sampled_from(list(RANK)),
        text=st.just("something."),
    ),
    max_size=12,
)


@given(found=some_findings)
def test_every_kind_is_said_once_and_the_worst_first(found):
    merged = merge_alike(found)
    kinds = [(worst.check, worst.metric) for worst, _ in merged]
    assert sorted(kinds) == sorted({(f.check, f.metric) for f in found if f.level in ("note", "doubt", "bad")})
    ranks = [RANK[worst.level] for worst, _ in merged]
    assert ranks == sorted(ranks)
    for worst, others in merged:
        alike = [f for f in found if (f.check, f.metric) == (worst.check, worst.metric)]
        assert RANK[worst.level] == min(RANK[f.level] for f in alike)
        assert {f.place for f in alike if f.level in ("note", "doubt", "bad")} - {worst.place, ""} <= set(others)
        assert len(set(others)) == len(others)
    assert len(warning_sentences(found)) == sum(worst.is_warning for worst, _ in merged)


def test_a_sentence_has_what_was_found_what_it_means_and_what_to_do():
    doubt = Finding(
        "temper", "exponent", 0.5, "care", level="doubt", text="too sure.", meaning="Bad.", remedy="Mend it."
    )
    note = Finding(
        "votes", "rows_left_out", 9, level="note", text="9 rows were left out.", meaning="Few.", remedy="Look."
    )
    assert warning_sentences([note, doubt]) == ["Too sure. Bad. Mend it."]
    elsewhere = Finding("temper", "other", 0.5, "harm", text="fine.")
    assert warning_sentences([note, doubt, elsewhere]) == ["care: too sure. Bad. Mend it."]
    assert headline(note, []) == "9 rows were left out."


def test_several_of_one_question_are_told_apart_by_their_subjects():
    pairs = [
        Finding("dependence", "pair_excess", 0.2, "care", subject=name, level="bad", text=f"{name} agree.")
        for name in ("a · b", "c · d", "e · f")
    ]
    # A name at the beginning is spelt as it is.
    assert warning_sentences(pairs) == ["a · b agree. The same in 2 more: c · d, e · f."]


def test_only_our_own_warnings_are_silenced():
    with pytest.warns(UserWarning, match="of others"), without_warnings():
        warnings.warn("ours", ThinDataWarning, stacklevel=1)
        warnings.warn("of others", UserWarning, stacklevel=1)


def test_every_code_is_documented_once():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    codes = [code for code, _ in CODES.values()]
    assert len(set(codes)) == len(codes)
    for kind, (code, title) in CODES.items():
        assert f'- <a id="{code.lower()}"></a>{code} `{kind}`: {title}\n' in page


def test_a_muted_finding_warns_nobody_and_is_listed():
    doubt = Finding("votes", "votes_per_item", 1.2, level="doubt", text="1.2 votes per item.")
    [muted] = mute([doubt], ["me012"])
    assert muted.level == "muted" and not muted.is_warning and warning_sentences([muted]) == []
    assert {row["code"]: row["status"] for row in overview([muted])}["ME012"] == "muted"
    with pytest.raises(UsageError, match="no finding has the code 'ME999'"):
        mute([doubt], ["ME999"])


def test_names_of_0_2_answer_with_a_warning():
    finding = Finding("votes", "votes_per_item", 1.2, level="doubt", remedy="Act.")
    for old, new in ALIASES.items():
        with pytest.warns(DeprecationWarning, match=new):
            assert getattr(finding, old) == getattr(finding, new)
