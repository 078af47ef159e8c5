"""Changes of prevalence and entropy, and agreement, against plain loops and other people's code."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from compare.folders import item, random_items, write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from moral_entropy.compare import resample
from moral_entropy.compare.table import compare_runs

LABELS = {"care": ("no", "yes"), "tone": ("calm", "glad", "sad"), "harm": ("no", "yes")}
DOMAINS = ("BLM", "Sandy", None)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two runs that share items 3 to 39 of 40 and 43, with their rows."""
    home, rng = tmp_path_factory.mktemp("pair"), np.random.default_rng(4)
    a = random_items(rng, LABELS, 40, domains=DOMAINS)
    b = random_items(rng, LABELS, 40, domains=DOMAINS, first=3)
    runs = write_run(home / "a", a, LABELS), write_run(home / "b", b, LABELS)
    return compare_runs(*runs), [row for row, _ in a], [row for row, _ in b], a, b


def shared_rows(rows_a, rows_b, question, domain="(all)"):
    by_name = {(row["question"], row["item"]): row for row in rows_b}
    pairs = [(row, by_name.get((row["question"], row["item"]))) for row in rows_a]
    wanted = {"(all)": lambda _: True, "(none)": lambda found: found is None}.get(domain, lambda found: found == domain)
    asked = lambda name: question == "(all)" or name == question  # noqa: E731
    return [(one, two) for one, two in pairs if two and asked(one["question"]) and wanted(one["domain"])]


def figures(frame, **group):
    return {row["metric"]: row for row in frame.filter(**group).to_dicts()}


@pytest.mark.parametrize("domain", ["(all)", "BLM", "Sandy", "(none)"])
@pytest.mark.parametrize("question", ["care", "tone", "(all)"])
def test_entropies_are_plain_means(pair, question, domain):
    comparison, rows_a, rows_b, *_ = pair
    rows = shared_rows(rows_a, rows_b, question, domain)
    found = figures(comparison.shifts.filter(label="(all)"), question=question, domain=domain)
    for part in ("entropy", "ambiguity", "doubt_votes", "doubt_annotators"):
        a, b = (sum(row[side][part] for row in rows) / len(rows) for side in (0, 1))
        assert found[part]["a"] == pytest.approx(a, abs=1e-12)
        assert found[part]["b"] == pytest.approx(b, abs=1e-12)
        assert found[part]["change"] == pytest.approx(b - a, abs=1e-12)
        assert found[part]["low"] <= found[part]["change"] <= found[part]["high"]
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


def test_labels_of_questions_are_not_pooled_when_some_have_three(pair):
    comparison = pair[0]
    assert comparison.shifts.filter(question="(all)", metric="prevalence").is_empty()
    assert comparison.agreement.filter(question="(all)", metric="kappa")["value"].null_count() == 4


@pytest.mark.parametrize("question", ["care", "tone"])
@pytest.mark.parametrize("domain", ["(all)", "Sandy", "(none)"])
def test_agreement_is_that_of_scikit_learn(pair, question, domain):
    comparison, rows_a, rows_b, *_ = pair
    rows = shared_rows(rows_a, rows_b, question, domain)
    said = [[row[side]["label"] for row in rows] for side in (0, 1)]
    found = figures(comparison.agreement, question=question, domain=domain)
    assert found["agreement"]["value"] == pytest.approx(np.mean([x == y for x, y in zip(*said, strict=True)]))
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(*said), abs=1e-12)
    assert found["kappa"]["low"] <= found["kappa"]["value"] <= found["kappa"]["high"]


def test_correlation_is_that_of_numpy(pair):
    comparison, rows_a, rows_b, items_a, items_b = pair
    rows = shared_rows(rows_a, rows_b, "care")
    expected = np.corrcoef([one["p"] for one, _ in rows], [two["p"] for _, two in rows])[0, 1]
    assert figures(comparison.agreement, question="care", domain="(all)")["correlation"]["value"] == pytest.approx(
        expected
    )
    p_a, p_b = (
        {(name, label): p for _, more in items for _, name, label, p, *_ in more} for items in (items_a, items_b)
    )
    keys = [key for key in p_a if key in p_b]
    expected = np.corrcoef([p_a[key] for key in keys], [p_b[key] for key in keys])[0, 1]
    assert figures(comparison.agreement, question="tone", domain="(all)")["correlation"]["value"] == pytest.approx(
        expected
    )


def test_intervals_are_those_of_a_plain_bootstrap(tmp_path):
    rng, labels, n_items = np.random.default_rng(8), {"q": ("no", "yes")}, 300
    p_a = rng.beta(2, 3, n_items)
    p_b = np.clip(p_a + rng.normal(0.05, 0.1, n_items), 0.001, 0.999)
    runs = []
    for name, p_i in (("a", p_a), ("b", p_b)):
        items = [item("q", n, (1 - p, p), labels["q"]) for n, p in enumerate(p_i.tolist())]
        runs.append(write_run(tmp_path / name, items, labels))
    comparison = compare_runs(*runs, replicates=4_000)
    drawn_si = rng.integers(n_items, size=(4_000, n_items))
    said_a, said_b = p_a >= 0.5, p_b >= 0.5
    kappa_s = [cohen_kappa_score(said_a[row_i], said_b[row_i]) for row_i in drawn_si[:1_500]]
    correlation_s = [np.corrcoef(p_a[row_i], p_b[row_i])[0, 1] for row_i in drawn_si]
    [prevalence] = comparison.shifts.filter(metric="prevalence").to_dicts()
    found = figures(comparison.agreement)
    for row, value_s in (
        (prevalence, (p_b - p_a)[drawn_si].mean(axis=1)),
        (found["kappa"], kappa_s),
        (found["correlation"], correlation_s),
    ):
        low, high = np.quantile(value_s, [0.05, 0.95])
        assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.12 * (high - low))


def test_items_are_resampled_in_pairs(tmp_path):
    # p of b is that of a plus the same everywhere: whichever items are drawn, the change is the same.
    labels, rng = {"q": ("no", "yes")}, np.random.default_rng(2)
    p_i = rng.uniform(0.1, 0.7, 60).tolist()
    runs = [
        write_run(tmp_path / name, [item("q", n, (1 - p - by, p + by), labels["q"]) for n, p in enumerate(p_i)], labels)
        for name, by in (("a", 0.0), ("b", 0.2))
    ]
    [row] = compare_runs(*runs).shifts.filter(metric="prevalence").to_dicts()
    assert (row["change"], row["low"], row["high"]) == pytest.approx((0.2, 0.2, 0.2), abs=1e-12)


def test_questions_share_the_items_that_are_drawn(tmp_path):
    # What one question gains on an item the other loses: pooled, nothing changes, whatever is drawn.
    labels, rng = {"q": ("no", "yes"), "r": ("no", "yes")}, np.random.default_rng(2)
    p_i = rng.uniform(0.3, 0.7, 50)
    gain_i = rng.uniform(-0.2, 0.2, 50)
    runs = []
    for name, sign in (("a", 0.0), ("b", 1.0)):
        items = [
            item(question, n, (1 - p, p), labels["q"])
            for question, side in (("q", sign), ("r", -sign))
            for n, p in enumerate((p_i + side * gain_i).tolist())
        ]
        runs.append(write_run(tmp_path / name, items, labels))
    pooled = compare_runs(*runs).shifts.filter(metric="prevalence", question="(all)").to_dicts()[0]
    assert (pooled["low"], pooled["high"]) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_blocks_join_without_a_seam(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    runs = [write_run(tmp_path / name, random_items(rng, LABELS, 30, domains=DOMAINS), LABELS) for name in "ab"]
    whole = compare_runs(*runs)
    monkeypatch.setattr(resample, "BLOCK_ITEMS", 7)
    blocks = compare_runs(*runs)
    values = ["a", "b", "change"]
    np.testing.assert_allclose(blocks.shifts.select(values), whole.shifts.select(values), atol=1e-13)
    assert not blocks.shifts["low"].equals(whole.shifts["low"])


def test_an_item_that_stands_for_three_counts_thrice(tmp_path):
    rng, labels = np.random.default_rng(6), {"q": ("no", "yes")}
    p_si = rng.uniform(0.05, 0.95, (2, 12))
    counted, spelt_out = [], []
    for side, p_i in zip("ab", p_si.tolist(), strict=True):
        rows = [item("q", f"{n}", (1 - p, p), labels["q"], count=1.0 + n % 3) for n, p in enumerate(p_i)]
        counted.append(write_run(tmp_path / f"{side}1", rows, labels))
        rows = [item("q", f"{n}-{m}", (1 - p, p), labels["q"]) for n, p in enumerate(p_i) for m in range(1 + n % 3)]
        spelt_out.append(write_run(tmp_path / f"{side}2", rows, labels))
    one, other = compare_runs(*counted), compare_runs(*spelt_out)
    for table, columns in (("shifts", ["a", "b", "change", "n"]), ("agreement", ["value", "n"])):
        np.testing.assert_allclose(one.tables()[table].select(columns), other.tables()[table].select(columns))


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
        there, back = compare_runs(*paths, replicates=50), compare_runs(*reversed(paths), replicates=50)
        same = compare_runs(paths[0], paths[0], replicates=20)
    turned = back.shifts.select(a="b", b="a", change=-pl.col("change"), low=-pl.col("high"), high=-pl.col("low"))
    np.testing.assert_allclose(there.shifts.select(turned.columns), turned, atol=1e-12)
    np.testing.assert_allclose(there.agreement["value"].fill_null(9), back.agreement["value"].fill_null(9), atol=1e-9)
    assert same.shifts.select("change", "low", "high").to_numpy().tolist() == [[0.0] * 3] * same.shifts.height


def test_the_same_seed_gives_the_same_figures(tmp_path):
    rng = np.random.default_rng(3)
    runs = [write_run(tmp_path / name, random_items(rng, LABELS, 20), LABELS) for name in "ab"]
    one, two, other = (compare_runs(*runs, seed=seed) for seed in (1, 1, 2))
    assert one.shifts.equals(two.shifts) and one.agreement.equals(two.agreement)
    assert not one.shifts.equals(other.shifts)


def test_without_draws_there_are_no_parts(tmp_path):
    rng, labels = np.random.default_rng(3), {"q": ("no", "yes")}
    a = write_run(tmp_path / "a", random_items(rng, labels, 20, draws=False), labels)
    b = write_run(tmp_path / "b", random_items(rng, labels, 20), labels)
    comparison = compare_runs(a, b)
    found = figures(comparison.shifts)
    assert found["doubt_votes"]["change"] is None and found["doubt_votes"]["low"] is None
    assert found["entropy"]["change"] is not None
    assert comparison.items["apart"].null_count() == 20
