"""Verdicts: same, differs, not comparable, and why."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from moral_entropy.reproduce.figures import SCHEMA
from moral_entropy.reproduce.published import PLACE, Published, compare_figures, read_published

RATE = Published("audit", "mftc", "fpr", 0.2, 0.005, printed="20.0%", rule="any", reference="consensus")
SIZE = Published("corpora", "mftc", "texts", 100, 0, printed="100")
ALL_THREE = ("mftc", "mfrc", "emfd")


def ours_at(figure, **more):
    return {name: getattr(figure, name) for name in PLACE} | more


def compared(figure, value, corpora=ALL_THREE, **basis):
    rows = [] if value == "absent" else [ours_at(figure, value=value, low=0.1, high=0.3, n=5)]
    return compare_figures((figure,), pl.DataFrame(rows, schema=SCHEMA), corpora, **basis).row(0, named=True)


@pytest.mark.parametrize(
    ("figure", "value", "basis", "verdict", "note"),
    [
        (RATE, 0.2049, {}, "same", ""),
        (RATE, 0.2051, {}, "differs", ""),
        (RATE, 0.1949, {"corpora": ("mftc",)}, "differs", ""),
        (RATE, "absent", {"corpora": ("mfrc",)}, "not comparable", "MFTC was not given"),
        (RATE, None, {}, "not comparable", "no such figure in these votes"),
        (replace(RATE, reference="gold"), "absent", {}, "not comparable", "no gold labels"),
        (
            replace(RATE, section="soft labels"),
            "absent",
            {},
            "not comparable",
            "no classifier was trained",
        ),
        (replace(RATE, corpus="(all)"), 0.2, {"corpora": ("mftc", "emfd")}, "not comparable", "of MFTC and eMFD alone"),
        (replace(RATE, corpus="(all)"), 0.2, {}, "same", ""),
        (RATE, 0.2, {"twins": True}, "not comparable", "simulated votes"),
        (SIZE, 100, {"twins": True}, "same", ""),
        (SIZE, 101, {"twins": True}, "differs", ""),
        (SIZE, 100, {"twins": True, "scale": 0.5}, "not comparable", "simulated votes"),
        (replace(RATE, bound="at most", tolerance=0), 0.1, {}, "same", ""),
        (replace(RATE, bound="at most", tolerance=0), 0.21, {}, "differs", ""),
        (replace(RATE, bound="at least", tolerance=0), 0.21, {}, "same", ""),
        (replace(RATE, note="mind"), 0.2, {"twins": True}, "not comparable", "simulated votes; mind"),
    ],
)
def test_verdicts(figure, value, basis, verdict, note):
    row = compared(figure, value, **basis)
    assert (row["verdict"], row["note"]) == (verdict, note)
    if value in ("absent", None):
        assert row["ours"] is row["difference"] is row["within"] is None
    else:
        assert row["difference"] == pytest.approx(value - figure.value) and (row["low"], row["high"]) == (0.1, 0.3)


def test_within_is_told_whether_comparable_or_not():
    assert compared(RATE, 0.201, twins=True)["within"] is True
    assert compared(RATE, 0.301, twins=True)["within"] is False


def test_the_paper_beside_itself_is_the_same():
    published = tuple(one for one in read_published() if one.section != "soft labels")
    ours = pl.DataFrame([ours_at(one, value=one.value) for one in published], schema=SCHEMA)
    found = compare_figures(published, ours.unique(maintain_order=True), ALL_THREE)
    assert found["verdict"].unique().to_list() == ["same"]
    assert found["difference"].abs().max() == 0


def test_columns():
    found = compare_figures(read_published(), pl.DataFrame(schema=SCHEMA), ALL_THREE)
    assert found.columns[:12] == [
        "section", "corpus", "domain", "foundation", "rule", "metric", "published", "ours", "low", "high",
        "difference", "verdict",
    ]  # fmt: skip
    assert found["verdict"].unique().to_list() == ["not comparable"]
    assert found["ours"].dtype == pl.Float64
