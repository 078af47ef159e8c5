"""An audit on a cluster is the audit of one machine: the same p, rates and annotators, with workers lost or not."""

from __future__ import annotations

import os
import signal

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.pipeline.options import AuditOptions

distributed = pytest.importorskip("distributed")

N_PARTS = 4


def votes_frame(seed=3, n_items=1_200):
    """Three labels, two domains, 12 annotators, one of whom copies another; some gold."""
    simulated = me.simulate_votes(n_items=n_items, n_annotators=12, votes_per_item=5, n_labels=3, seed=seed)
    ballot, rng = simulated.votes.ballots[0], np.random.default_rng(seed)
    item_v = np.repeat(np.arange(n_items), ballot.votes_i)
    frame = pl.DataFrame(
        {
            "item": [f"t{item:05}" for item in item_v],
            "annotator": [f"ann_{code // 3}" for code in ballot.code_v],
            "label": [("anger", "joy", "none")[code % 3] for code in ballot.code_v],
            "domain": [("forum", "news", "mail")[item % 3] for item in item_v],
            "gold": [("anger", "joy", "none")[ballot.gold_i[item]] if item % 10 == 0 else None for item in item_v],
        }
    )
    copied = frame.filter(pl.col("annotator") == "ann_2").with_columns(annotator=pl.lit("copy"))
    return pl.concat([frame, copied]).sort("item", "annotator"), rng


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    frame, _ = votes_frame()
    folder = tmp_path_factory.mktemp("votes") / "votes"
    folder.mkdir()
    part = pl.col("item").rank("dense") * N_PARTS // (frame["item"].n_unique() + 1)
    for n, piece in enumerate(frame.with_columns(part=part).partition_by("part", include_key=False)):
        piece.write_parquet(folder / f"part-{n}.parquet")
    return folder


@pytest.fixture(scope="module")
def local(dataset, tmp_path_factory):
    return me.audit(str(dataset / "*.parquet"), tmp_path_factory.mktemp("local") / "run", draws=100, report=False)


@pytest.fixture(scope="module")
def workers():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spread(dataset, workers, tmp_path_factory):
    return on_cluster(dataset, tmp_path_factory.mktemp("spread") / "run", workers)


def on_cluster(source, out, workers, **more):
    from moral_entropy.scale import audit_on_cluster

    options = AuditOptions().changed({"draws": 100}, "audit")
    return audit_on_cluster(source, out, options, cluster=workers.scheduler_address, **more)


def same_items(one, other):
    key = ["question", "item"]
    a, b = one.items.sort(key), other.items.sort(key)
    assert a.select(*key, "label", "domain", "gold", "n_votes").equals(b.select(*key, "label", "domain", "gold", "n_votes"))
    for name in ("p", "p_map", "p_model", "p_low", "p_high", "entropy", "doubt_annotators", "ambiguity"):
        np.testing.assert_allclose(a[name].to_numpy(), b[name].to_numpy(), atol=1e-9, rtol=0, err_msg=name)


def test_p_is_that_of_one_machine(local, spread):
    assert local.manifest["questions"][0]["counted_as_one"] == [["ann_2", "copy"]]
    same_items(local, spread)
    posterior = [run.table("posterior").sort("item", "class")["p"].to_numpy() for run in (local, spread)]
    np.testing.assert_allclose(*posterior, atol=1e-9, rtol=0)


def test_rates_of_rules_are_those_of_one_machine(local, spread):
    key = ["question", "domain", "label", "rule", "reference", "metric"]
    both = local.rules.join(spread.rules, on=key, how="full", suffix="_spread", nulls_equal=True)
    assert both.height == local.rules.height == spread.rules.height
    np.testing.assert_allclose(both["value"].to_numpy(), both["value_spread"].to_numpy(), atol=1e-8, rtol=0)
    expected = both.filter(pl.col("metric").str.starts_with("expected_"))
    np.testing.assert_allclose(expected["low"].to_numpy(), expected["low_spread"].to_numpy(), atol=1e-8, rtol=0)


@pytest.mark.parametrize("table", ["annotators", "annotator_summary", "agreement", "entropy", "audit_any_by_votes", "pushes"])
def test_tables_are_those_of_one_machine(local, spread, table):
    one, other = local.table(table), spread.table(table)
    words = [name for name, kind in one.schema.items() if not kind.is_float()]
    assert one.select(words).equals(other.select(words))
    for name in set(one.columns) - set(words):
        np.testing.assert_allclose(one[name].to_numpy(), other[name].to_numpy(), atol=1e-8, rtol=0, err_msg=name)
