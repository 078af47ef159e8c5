"""Which items are compared, in what order, and what cannot be compared."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from comparison.folders import item, random_items, write_run

from moral_entropy.comparison import compare
from moral_entropy.errors import RunFolderError

TWO = {"q": ("no", "yes")}


def runs(tmp_path, items_a, items_b, labels_a=TWO, labels_b=None, **facts):
    a = write_run(tmp_path / "a", items_a, labels_a)
    return a, write_run(tmp_path / "b", items_b, labels_b or labels_a, **facts)


def of(p_by_item, question="q", labels=TWO["q"], **more):
    return [item(question, name, (1 - p, p), labels, **more) for name, p in p_by_item.items()]


def test_items_that_moved_most_come_first(tmp_path):
    a, b = runs(tmp_path, of({1: 0.9, 2: 0.5, 3: 0.2, 4: 0.3}), of({4: 0.3, 3: 0.6, 2: 0.45, 9: 0.1}))
    comparison = compare(a, b)
    assert comparison.overlap.rows() == [("q", 3, 1, 1)]
    items = comparison.items
    assert items["item"].to_list() == [3, 2, 4] and items["item"].dtype == pl.Int64
    assert items["change"].to_list() == pytest.approx([0.4, -0.05, 0.0])
    assert items["moved"].to_list() == pytest.approx([0.4, 0.05, 0.0])
    assert items["label_changed"].to_list() == [True, True, False]
    # Intervals are p ± 0.05: those of item 2 touch.
    assert items["apart"].to_list() == [True, False, False]
    assert items.select("label_a", "p_a", "p_low_a", "p_high_a").row(0) == pytest.approx(("no", 0.2, 0.15, 0.25))


def test_three_labels_move_by_total_variation(tmp_path):
    labels = {"tone": ("calm", "glad", "sad")}
    a = [item("tone", "x", (0.5, 0.3, 0.2), labels["tone"]), item("tone", "y", (0.2, 0.2, 0.6), labels["tone"])]
    b = [item("tone", "y", (0.2, 0.2, 0.6), labels["tone"]), item("tone", "x", (0.1, 0.6, 0.3), labels["tone"])]
    items = compare(*runs(tmp_path, a, b, labels)).items
    assert items["item"].to_list() == ["x", "y"]
    assert items["moved"].to_list() == pytest.approx([0.4, 0.0])
    assert items["change"].null_count() == 2
    # Intervals of different labels cannot be held against each other.
    assert items["apart"].to_list() == [None, False]


def test_ids_match_as_text(tmp_path):
    comparison = compare(*runs(tmp_path, of({1: 0.9, 2: 0.5}), of({"1": 0.7, "x": 0.1})))
    assert comparison.items["item"].to_list() == ["1"]


def test_order_of_rows_is_irrelevant(tmp_path):
    rng = np.random.default_rng(1)
    items = random_items(rng, TWO, 20, domains=("s", "t"))
    others = random_items(rng, TWO, 20, domains=("s", "t"))
    one = compare(*runs(tmp_path, items, others))
    (tmp_path / "turned").mkdir()
    two = compare(*runs(tmp_path / "turned", items[::-1], others))
    assert all(getattr(one, name).equals(getattr(two, name)) for name in ("overlap", "items", "shifts", "agreement"))


def test_notes_say_what_is_left_out(tmp_path):
    a = of({1: 0.9, 2: 0.5}, domain="s") + of({1: 0.9}, "only")
    b = of({1: 0.7, 2: 0.5}, domain="t", count=2.0) + of({8: 0.9}, "apart")
    labels_a = {**TWO, "only": TWO["q"], "apart": TWO["q"]}
    folders = runs(tmp_path, a, b, labels_a, {**TWO, "apart": TWO["q"]}, interval=0.5, converged=False)
    notes = "\n".join(compare(*folders).notes)
    for said in (
        f"only {folders[0]} has 1 question (first: 'only')",
        "no shared item in 1 question (first: 'apart')",
        f"{folders[1]} did not converge",
    ):
        assert said in notes


def test_what_differs_between_manifests(tmp_path):
    comparison = compare(*runs(tmp_path, of({1: 0.9}), of({1: 0.9}), draws=20, seed=3, command="x"))
    assert comparison.settings == (("draws", 0, 20), ("seed", 0, 3))


BAD = {
    "no shared question": (of({1: 0.9}), TWO, of({1: 0.9}, "r"), {"r": TWO["q"]}, "share no question.*'q'.*'r'"),
    "other labels": (of({1: 0.9}), TWO, of({1: 0.9}), {"q": ("0", "1")}, "1 of 1 shared.*'q' has 0, 1 and not no, yes"),
    "other positive": (of({1: 0.9}), TWO, of({1: 0.9}), {"q": ("yes", "no")}, "yes, no and not no, yes.*--positive"),
    "more labels": (of({1: 0.9}), TWO, of({1: 0.9}), {"q": ("no", "so", "yes")}, "--classes"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_compared_is_refused(tmp_path, what):
    items_a, labels_a, items_b, labels_b, message = BAD[what]
    with pytest.raises(RunFolderError, match=message):
        compare(*runs(tmp_path, items_a, items_b, labels_a, labels_b))


def test_order_of_three_labels_is_irrelevant(tmp_path):
    first, other = ("calm", "glad", "sad"), ("sad", "calm", "glad")
    a = write_run(tmp_path / "a", [item("tone", "x", (0.5, 0.3, 0.2), first)], {"tone": first})
    b = write_run(tmp_path / "b", [item("tone", "x", (0.2, 0.5, 0.3), other)], {"tone": other})
    assert compare(a, b).items["moved"].to_list() == pytest.approx([0.0])
