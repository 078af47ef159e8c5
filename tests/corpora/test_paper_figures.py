"""The paper's figures were entered right, and agree with each other where they should."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.corpora.figures import SCHEMA
from moral_entropy.corpora.published import (
    CORPORA,
    PLACE,
    READINGS,
    Published,
    compare_figures,
    foundations,
    read_published,
    spell,
    spell_gap,
)
from moral_entropy.corpora.twins import corpus_facts

PAPER = Path(__file__).parents[2] / "../shared/seed/moral-entropy-paper.tex"
NAMES = {"MFRC": "mfrc", "MFTC": "mftc", "eMFD": "emfd"}


def figures(**wanted):
    return [one for one in read_published() if all(getattr(one, name) == value for name, value in wanted.items())]


def value(**wanted):
    [found] = figures(**wanted)
    return found.value


def test_how_many_there_are():
    assert Counter(one.section for one in read_published()) == {
        "corpora": 15 * 7 + 4 + 3,
        "audit": 4 * 4 + 14 * 3,
        "domains": 6 * 2 + 2,
        "entropy": 150,
        "entropy shares": 5,
        "soft labels": 6,
        "annotators": 2,
    }
    assert len({(*one.place, one.value) for one in read_published()}) == len(read_published())


def test_places_and_readings_are_known():
    for one in read_published():
        assert one.corpus in (*CORPORA, "(all)")
        assert one.reading in ("", *READINGS)
        assert one.printed and one.tolerance >= 0


@pytest.mark.parametrize(
    ("expected", "where"),
    [
        (0.1257, {"metric": "aleatoric", "domain": "MeToo", "foundation": "authority"}),
        (0.0006, {"metric": "epistemic", "domain": "MeToo", "foundation": "authority"}),
        (0.0046, {"metric": "epistemic", "domain": "Internal Unrest", "foundation": "loyalty"}),
        (0.0520, {"metric": "aleatoric", "domain": "French Politics", "foundation": "sanctity"}),
        (0.657, {"metric": "flagged", "domain": "MeToo", "foundation": "authority"}),
        (0.187, {"metric": "flagged", "domain": "Untagged", "foundation": "sanctity"}),
        (4.92, {"metric": "annotations_per_text", "domain": "BLM"}),
        (0.955, {"metric": "auc", "foundation": "care"}),
        (0.306, {"metric": "fpr", "corpus": "(all)", "reading": "pooled"}),
        (0.548, {"metric": "fnr", "corpus": "mfrc", "rule": "any", "reading": "cells"}),
        (0.966, {"metric": "fnr", "reference": "gold", "reading": "mean"}),
        (0.838, {"metric": "fnr", "domain": "Davidson", "reading": "mean"}),
    ],
)
def test_spot_checks(expected, where):
    assert value(**where) == expected


def test_texts_add_up():
    for corpus in CORPORA:
        rows = figures(corpus=corpus, metric="texts")
        assert sum(one.value for one in rows if one.domain != "(all)") == value(
            corpus=corpus, metric="texts", domain="(all)"
        )
    assert sum(value(corpus=corpus, metric="texts", domain="(all)") for corpus in CORPORA) == 106_627
    assert value(corpus="(all)", metric="texts") == 106_627


def test_the_corpora_are_those_the_twins_follow():
    for corpus in CORPORA:
        facts = corpus_facts(corpus)
        assert tuple(facts["foundations"]) == foundations()
        for domain in facts["domains"]:
            at = {"corpus": corpus, "domain": domain["name"]}
            assert value(**at, metric="texts") == domain["items"]
            assert value(**at, metric="annotations_per_text") == domain["votes_per_item"]
            flagged = [value(**at, metric="flagged", foundation=name) for name in foundations()]
            assert flagged == list(domain["any_rule"])


def test_the_paper_says_of_its_table_what_the_table_says():
    for corpus, mean, largest in (("mftc", 0.003, 0.01), ("mfrc", 0.003, 0.01), ("emfd", None, 0.0605)):
        aleatoric = {one.place[:3]: one.value for one in figures(corpus=corpus, metric="aleatoric")}
        epistemic = {one.place[:3]: one.value for one in figures(corpus=corpus, metric="epistemic")}
        share = [epistemic[at] / (aleatoric[at] + epistemic[at]) for at in aleatoric]
        assert max(share) < largest
        if mean is not None:
            assert sum(share) / len(share) == pytest.approx(mean, abs=0.0005)


def test_annotations_are_what_the_table_makes_them():
    texts = {one.place[:2]: one.value for one in figures(metric="texts") if one.domain != "(all)"}
    each = {one.place[:2]: one.value for one in figures(metric="annotations_per_text")}
    total = {name: sum(texts[at] * each[at] for at in texts if at[0] == name) for name in CORPORA}
    assert abs(total["mftc"] - value(corpus="mftc", metric="annotations")) < 2_500
    assert figures(corpus="(all)", metric="annotations")[0].holds(sum(total.values())) is True


@pytest.fixture(scope="module")
def tex():
    if not PAPER.is_file():
        pytest.skip("the paper is not at hand: it is looked for in ../shared/seed")
    return PAPER.read_text(encoding="utf-8")


def test_entropies_are_those_of_the_paper(tex):
    found, corpus = {}, ""
    for line in tex[tex.index("Corpus & Ale") : tex.index("tab:entropy-decomp}\n\\end")].splitlines():
        corpus = NAMES.get("".join(re.findall(r"textit\{(\w+)\}", line)), corpus)
        if numbers := re.findall(r"\d\.\d{4}", line):
            found[corpus, line.split(" & ")[0].title()] = list(map(float, numbers))
    ours = {}
    for one in figures(section="entropy"):
        ours.setdefault((one.corpus, one.domain.title()), {})[one.foundation, one.metric] = one.value
    order = [(name, part) for name in ("authority", "care", "fairness", "loyalty", "sanctity") for part in PARTS]
    assert {at: [cells[key] for key in order] for at, cells in ours.items()} == found


PARTS = ("aleatoric", "epistemic")


def test_the_corpora_are_those_of_the_paper(tex):
    table = tex[tex.index("Corpus & Subcorpus") : tex.index("\\label{tab:corpora}")].replace("{,}", "")
    for one in figures(section="corpora"):
        if one.domain != "(all)":
            [line] = [line for line in table.splitlines() if re.search(rf"& {one.domain} +&", line)]
            assert spell(one.metric, one.value).replace("%", "").replace(",", "") in line.split("&", 2)[2]


def test_figures_of_the_text_are_in_the_text(tex):
    plain = tex.replace("\\%", "%").replace("{,}", ",").replace("{=}", "=").replace("$", "").replace("--", "–")
    others = {"roughly a third": "a third", "≈83%": "approx83", "never above 6%": "never exceeds 6%"}
    others |= {"2 of 7": "only two domains", "over 250,000": "over 250,000", "63–65%": "63–65%"}
    for one in read_published():
        if one.section in ("audit", "domains", "entropy shares", "annotators", "soft labels"):
            wanted = others.get(one.printed, one.printed.removeprefix("≈"))
            assert wanted in plain.replace("\\", ""), one


@given(
    value=st.floats(0, 1), tolerance=st.floats(0, 0.2), gap=st.floats(-0.5, 0.5), bound=st.sampled_from(["", "at most"])
)
def test_holds_is_a_matter_of_distance(value, tolerance, gap, bound):
    figure = Published("audit", "mftc", "fpr", value, tolerance, bound=bound)
    assert figure.holds(value)
    if abs(abs(gap) - tolerance) > 1e-9:
        assert figure.holds(value + gap) == (gap < tolerance and (bound == "at most" or gap > -tolerance))


def test_spelling():
    assert spell("fnr", 0.0) == "0.0%" and spell("auc", 0.95) == "0.950" and spell("annotations_per_text", 3) == "3.00"
    assert spell_gap("texts", -1200) == "−1,200" and spell_gap("auc", 0.0004) == "0.000"


RATE = Published("audit", "mftc", "fpr", 0.2, 0.005, printed="20.0%", rule="any", reference="consensus")


def compared(figure, value, corpora=tuple(CORPORA), **basis):
    rows = [] if value is None else [{name: getattr(figure, name) for name in PLACE} | {"value": value}]
    return compare_figures((figure,), pl.DataFrame(rows, schema=SCHEMA), corpora, **basis).row(0, named=True)


@pytest.mark.parametrize(
    ("figure", "value", "corpora", "within", "note"),
    [
        (RATE, 0.2049, tuple(CORPORA), True, ""),
        (RATE, 0.2051, ("mftc",), False, ""),
        (RATE, None, ("mfrc",), None, "MFTC was not given"),
        (replace(RATE, reference="gold"), None, tuple(CORPORA), None, "no gold labels"),
        (replace(RATE, section="soft labels", reference=""), None, ("mftc",), None, "no classifier was trained"),
        (replace(RATE, corpus="(all)"), 0.2, ("mftc", "emfd"), True, "of MFTC and eMFD alone"),
        (replace(RATE, bound="at most", tolerance=0), 0.1, tuple(CORPORA), True, ""),
        (replace(RATE, bound="at least", tolerance=0, note="mind"), 0.1, tuple(CORPORA), False, "mind"),
    ],
)
def test_a_figure_beside_ours(figure, value, corpora, within, note):
    row = compared(figure, value, corpora)
    assert (row["within"], row["note"]) == (within, note)
    assert row["distance"] == (None if value is None else pytest.approx(value - figure.value))


def test_expected_rates_and_the_truth_stand_beside():
    rows = [
        {"corpus": "mftc", "domain": "(all)", "foundation": "(all)", "rule": "any", "reference": reference,
         "metric": metric, "value": value}
        for reference, metric, value in (("consensus", "fpr", 0.1), ("consensus", "expected_fpr", 0.3),
                                         ("gold", "fpr", 0.4))
    ]  # fmt: skip
    for twins, truth in ((True, 0.4), (False, None)):
        row = compare_figures((RATE,), pl.DataFrame(rows, schema=SCHEMA), ("mftc",), twins=twins).row(0, named=True)
        assert (row["ours"], row["expected"], row["truth"]) == (0.1, 0.3, truth)


def test_the_paper_beside_itself_is_the_same():
    rows = [{name: getattr(one, name) for name in PLACE} | {"value": one.value} for one in read_published()]
    ours = pl.DataFrame(rows, schema=SCHEMA).unique(maintain_order=True)
    beside = compare_figures(read_published(), ours, tuple(CORPORA))
    assert beside["within"].all() and beside["distance"].abs().max() == 0
