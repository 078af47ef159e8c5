"""Tables of votes to read on a cluster and on one machine, and how far two run folders are apart."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.testing import assert_allclose

LEARNT = 1e-6
"""How near figures are where domains are learnt: in rounds, in which the last bits of sums over parts add up."""


def vote_table(n_items, n_annotators, seed, labels=("no", "yes"), questions=("care", "harm")):
    """Votes with domains, some gold, some without a label; rows in no order."""
    rng = np.random.default_rng(seed)
    item_i = rng.permutation(n_items)
    frames = []
    for question in questions:
        truth_i = rng.integers(len(labels), size=n_items)
        for _ in range(4):
            right_i = rng.random(n_items) < 0.7
            label_i = np.where(right_i, truth_i, rng.integers(len(labels), size=n_items))
            columns = {
                "item": [f"item {7 * i}" for i in item_i],
                "annotator": [f"ann {a:02d}" for a in rng.integers(n_annotators, size=n_items)],
                "label": [labels[k] if rng.random() > 0.01 else None for k in label_i],
                "question": [question] * n_items,
                "domain": [("north", "south", None)[i % 3] for i in item_i],
                "gold": [labels[truth_i[n]] if i % 5 == 0 else None for n, i in enumerate(item_i)],
                "wave": [("first", "second")[i % 2] for i in item_i],
            }
            frames.append(pl.DataFrame(columns))
    frame = pl.concat(frames).unique(subset=["item", "annotator", "question"], keep="first", maintain_order=True)
    return frame.sample(fraction=1.0, shuffle=True, seed=seed)


def write_parts(frame, folder, n_parts):
    """Write a table as Parquet parts; give the glob that names them."""
    folder.mkdir(exist_ok=True)
    rows = -(-frame.height // n_parts)
    for n in range(n_parts):
        frame.slice(n * rows, rows).write_parquet(folder / f"part-{n:02d}.parquet")
    return str(folder / "part-*.parquet")


def assert_same_tables(one, many, *, close, without=()):
    """Two run folders hold the same tables: figures up to rounding, everything else to the letter.

    Only one machine, which has the gold and the votes of all items, recalibrates p and looks at every judge.
    """
    names = {path.name for path in one.glob("*.parquet")} - set(without)
    assert names == {path.name for path in many.glob("*.parquet")} - set(without)
    for name in sorted(names):
        expected, found = pl.read_parquet(one / name), pl.read_parquet(many / name)
        if name == "items.parquet":
            assert found["p_calibrated"].is_null().all()
            expected, found = expected.drop("p_calibrated"), found.drop("p_calibrated")
        if name == "findings.parquet":
            expected = expected.filter((pl.col("figure") != "recalibration") & (pl.col("side") != "judges"))
        assert found.schema == expected.schema, name
        assert found.height == expected.height, name
        for column in expected.columns:
            if expected[column].dtype.is_float():
                assert found[column].is_null().equals(expected[column].is_null()), (name, column)
                assert_allclose(
                    found[column].to_numpy(),
                    expected[column].to_numpy(),
                    rtol=close,
                    atol=close,
                    err_msg=f"{name} {column}",
                )
            else:
                assert found[column].equals(expected[column], null_equal=True), (name, column)
