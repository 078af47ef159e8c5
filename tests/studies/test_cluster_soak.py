"""The soak's own bookkeeping: it sees a wrong answer where there is one. Its processes are tested in tests/cluster."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

pytest.importorskip("distributed", reason="the cluster extra is not installed")

from cluster.processes import soak


def test_a_gap_is_seen_whatever_differs():
    frame = pl.DataFrame({"item": ["a", "b"], "n": [1, 2], "p": [0.5, None]})
    assert soak.table_gap(frame, frame) == 0.0
    assert soak.table_gap(frame, frame.with_columns(p=pl.Series([0.5 + 1e-6, None]))) == pytest.approx(1e-6)
    for other in (
        frame.with_columns(item=pl.Series(["a", "c"])),
        frame.with_columns(n=pl.Series([1, 3])),
        frame.with_columns(p=pl.Series([0.5, 0.1])),
        frame.head(1),
        frame.drop("n"),
    ):
        assert soak.table_gap(frame, other) == np.inf


def test_a_missing_table_is_a_wrong_answer(tmp_path):
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
        pl.DataFrame({"p": [0.5]}).write_parquet(tmp_path / name / "items.parquet")
    assert soak.largest_gap(tmp_path / "one", tmp_path / "many") == 0.0
    (tmp_path / "many" / "items.parquet").unlink()
    assert soak.largest_gap(tmp_path / "one", tmp_path / "many") == np.inf


def test_the_table_counts_rounds_by_how_they_ended():
    rounds = [
        soak.Round("two labels", 4.0, 2, 1e-15),
        soak.Round("two labels", 6.0, 1, 1e-3),
        soak.Round("three labels", 5.0, 3, np.nan, "gone"),
    ]
    text = soak.as_text(rounds, n_workers=3, every=6.0, seed=0)
    assert "| two labels | 2 | 3 | 1 | 0 | 1 | 1.0e-03 | 5.0 |" in text
    assert "| all | 3 | 6 | 1 | 1 | 1 | 1.0e-03 | 5.0 |" in text


def test_the_page_has_a_place_for_the_table():
    page = soak.PAGE.read_text(encoding="utf-8")
    assert "\n\nfigures\n\n" in soak.with_table(page, "figures")
    with pytest.raises(ValueError, match="no place"):
        soak.with_table("nothing", "figures")
