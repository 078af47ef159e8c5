"""Changes of prevalence and entropy, and agreement, against plain loops and other people's code."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from comparison.folders import item, random_items, write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from moral_entropy.comparison import compare

LABELS = {"care": ("no", "yes"), "tone": ("calm", "glad", "sad"), "harm": ("no", "yes")}
DOMAINS = ("BLM", "Sandy", None)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two runs that share items 3 to 39 of 40 and 43, with their rows."""
    home, rng = tmp_path_factory.mktemp("pair"), np.random.default_rng(4)
    a = random_items(rng, LABELS, 40, domains=DOMAINS)
    b = random_items(rng, LABELS, 40, domains=DOMAINS, first=3)
    runs = write_run(home / "a", a, LABELS), write_run(home / "b", b, LABELS)
    return compare(*runs), [row for row, _ in a], [row for row, _ in b], a, b


def shared_rows(rows_a, rows_b, question, domain="(all)"):
    by_name = {(row["question"], row["item"]): row for row in rows_b}
    pairs = [(row, by_name.get((row["question"], row["item"]))) for row in rows_a]
    wanted = {"(all)": lambda _: True, "(none)": lambda found: found is None}.get(domain, lambda found: found == domain)
    return [(one, two) for one, two in pairs if two and one["question"] == question and wanted(one["domain"])]


def figures(frame, **group):
    return {row["metric"]: row for row in frame.filter(**group).to_dicts()}


@pytest.mark.parametrize("domain", ["(all)", "BLM", "Sandy", "(none)"])
@pytest.mark.parametrize("question", ["care", "tone"])
def test_entropies_are_plain_means(pair, question, domain):
    comparison, rows_a, rows_b, *_ = pair
    rows = shared_rows(rows_a, rows_b, question, domain)
    found = figures(comparison.shifts.filter(label="(all)"), question=question, domain=domain)
    for part in ("entropy", "ambiguity", "doubt_votes", "doubt_annotators"):
        a, b = (sum(row[side][part] for row in rows) / len(rows) for side in (0, 1))
        assert found[part]["a"] == pytest.approx(a, abs=1e-12)
        assert found[part]["b"] == pytest.approx(b, abs=1e-12)
        assert found[part]["change"] == pytest.approx(b - a, abs=1e-12)
        assert found[part]["n"] == len(rows)


def test_prevalence_is_the_mean_of_p(pair):
    comparison, rows_a, rows_b, *_ = pair
    rows = shared_rows(rows_a, rows_b, "care", "BLM")
    [found] = comparison.shifts.filter(question="care", domain="BLM", metric="prevalence").to_dicts()
    assert found["label"] == "yes"
    assert found["change"] == pytest.approx(np.mean([two["p"] - one["p"] for one, two in rows]), abs=1e-12)


def test_prevalence_of_every_label_of_three(pair):
    comparison, _, _, items_a, items_b = pair
    p_a, p_b = (
        {(name, label): p for _, more in items for _, name, label, p, *_ in more} for items in (items_a, items_b)
    )
    found = comparison.shifts.filter(question="tone", domain="(all)", metric="prevalence")
    assert found["label"].to_list() == ["calm", "glad", "sad"]
    for label, change in found.select("label", "change").iter_rows():
        differences = [p_b[key] - p for key, p in p_a.items() if key[1] == label and key in p_b]
        assert change == pytest.approx(np.mean(differences), abs=1e-12)
    assert found["change"].sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("question", ["care", "tone"])
def test_agreement_is_that_of_scikit_learn(pair, question):
    comparison, rows_a, rows_b, *_ = pair
    rows = shared_rows(rows_a, rows_b, question)
    said = [[row[side]["label"] for row in rows] for side in (0, 1)]
    found = figures(comparison.agreement, question=question)
    assert found["agreement"]["value"] == pytest.approx(np.mean([x == y for x, y in zip(*said, strict=True)]))
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(*said), abs=1e-12)


def test_an_item_that_stands_for_three_counts_thrice(tmp_path):
    rng, labels = np.random.default_rng(6), {"q": ("no", "yes")}
    p_si = rng.uniform(0.05, 0.95, (2, 12))
    counted, spelt_out = [], []
    for side, p_i in zip("ab", p_si.tolist(), strict=True):
        rows = [item("q", f"{n}", (1 - p, p), labels["q"], count=1.0 + n % 3) for n, p in enumerate(p_i)]
        counted.append(write_run(tmp_path / f"{side}1", rows, labels))
        rows = [item("q", f"{n}-{m}", (1 - p, p), labels["q"]) for n, p in enumerate(p_i) for m in range(1 + n % 3)]
        spelt_out.append(write_run(tmp_path / f"{side}2", rows, labels))
    one, other = compare(*counted), compare(*spelt_out)
    for table, columns in (("shifts", ["a", "b", "change", "n"]), ("agreement", ["value", "n"])):
        np.testing.assert_allclose(getattr(one, table).select(columns), getattr(other, table).select(columns))


@st.composite
def two_runs(draw):
    """Probabilities of two runs on some of the same items."""
    share = st.floats(0.001, 0.999)
    return [draw(st.dictionaries(st.integers(0, 9), share, min_size=1)) | {99: draw(share)} for _ in range(2)]


@settings(max_examples=25, deadline=None)
@given(runs=two_runs())
def test_the_other_way_round_every_change_has_the_other_sign(runs):
    labels = {"q": ("no", "yes")}
    with tempfile.TemporaryDirectory() as home:
        paths = [
            write_run(Path(home) / str(n), [item("q", i, (1 - p, p), labels["q"]) for i, p in run.items()], labels)
            for n, run in enumerate(runs)
        ]
        there, back = compare(*paths), compare(*reversed(paths))
        same = compare(paths[0], paths[0])
    turned = back.shifts.select(a="b", b="a", change=-pl.col("change"))
    np.testing.assert_allclose(there.shifts.select(turned.columns), turned, atol=1e-12)
    np.testing.assert_allclose(there.agreement["value"].fill_null(9), back.agreement["value"].fill_null(9), atol=1e-9)
    assert set(same.shifts["change"]) == {0.0}


def test_without_draws_there_are_no_parts(tmp_path):
    rng, labels = np.random.default_rng(3), {"q": ("no", "yes")}
    a = write_run(tmp_path / "a", random_items(rng, labels, 20, draws=False), labels)
    b = write_run(tmp_path / "b", random_items(rng, labels, 20), labels)
    comparison = compare(a, b)
    found = figures(comparison.shifts)
    assert found["doubt_votes"]["change"] is None
    assert found["entropy"]["change"] is not None
    assert comparison.items["apart"].null_count() == 20
