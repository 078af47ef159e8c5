"""An audit on a cluster is the audit of one machine: the same p, rates and annotators, with workers lost or not."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import VotesError
from moral_entropy.options import AuditOptions

distributed = pytest.importorskip("distributed")

N_PARTS = 4


def votes_frame(seed=3, n_items=1_200):
    """Three labels, two domains, 12 annotators, one of whom copies another; some gold."""
    simulated = me.simulate_votes(n_items=n_items, n_annotators=12, votes_per_item=5, n_labels=3, seed=seed)
    ballot = simulated.votes.ballots[0]
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
    return pl.concat([frame, copied]).sort("item", "annotator")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    frame = votes_frame()
    folder = tmp_path_factory.mktemp("votes") / "votes"
    folder.mkdir()
    part = pl.col("item").rank("dense") * N_PARTS // (frame["item"].n_unique() + 1)
    for n, piece in enumerate(frame.with_columns(part=part).partition_by("part", include_key=False)):
        piece.write_parquet(folder / f"part-{n}.parquet")
    return folder


@pytest.fixture(scope="module")
def local(dataset, tmp_path_factory):
    return me.audit(
        str(dataset / "*.parquet"), tmp_path_factory.mktemp("local") / "run", draws=100, report=False, gold="gold"
    )


@pytest.fixture(scope="module")
def workers():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spread(dataset, workers, tmp_path_factory):
    return on_cluster(dataset, tmp_path_factory.mktemp("spread") / "run", workers)


def on_cluster(source, out, workers, gold="gold", **more):
    from moral_entropy.scale import audit_on_cluster

    options = AuditOptions().changed({"draws": 100, "gold": gold}, "audit")
    return audit_on_cluster(source, out, options, cluster=workers.scheduler_address, **more)


def same_items(one, other):
    key = ["question", "item"]
    a, b = one.items.sort(key), other.items.sort(key)
    assert a.select(*key, "label", "domain", "gold", "n_votes").equals(
        b.select(*key, "label", "domain", "gold", "n_votes")
    )
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


@pytest.mark.parametrize(
    "table", ["annotators", "annotator_summary", "agreement", "entropy", "audit_any_by_votes", "contributions"]
)
def test_tables_are_those_of_one_machine(local, spread, table):
    one, other = local.table(table), spread.table(table)
    words = [name for name, kind in one.schema.items() if not kind.is_float()]
    assert one.select(words).equals(other.select(words))
    for name in set(one.columns) - set(words):
        np.testing.assert_allclose(one[name].to_numpy(), other[name].to_numpy(), atol=1e-8, rtol=0, err_msg=name)


def test_a_cluster_run_is_a_run(spread, dataset, capsys):
    """Workers wrote the tables of items in parts; every command reads them."""
    assert spread.manifest["cluster"]["parts"] == N_PARTS
    assert sorted(path.name for path in (spread.path / "items.parquet").iterdir()) == [
        f"part-{n:05}.parquet" for n in range(N_PARTS)
    ]
    assert not list(spread.path.rglob(".*"))
    assert spread.manifest["votes"] == votes_frame().height == spread.table("votes").height
    folder = str(spread.path)
    assert main(["explain", folder, "t00007"]) == 0
    assert "t00007" in capsys.readouterr().out
    assert main(["next", folder, "-n", "5"]) == 0
    assert main(["report", folder]) == 0
    assert (spread.path / "report.html").is_file()
    assert main(["check", folder, "--max", "uncertain=0.99"]) == 0
    assert main(["export", folder, "--to", "csv", "-o", str(spread.path.parent / "exported.csv")]) == 0


def test_a_worker_killed_in_mid_run_changes_nothing(dataset, local, workers, tmp_path):
    """The process of one of two workers is killed between two passes; its partitions are read again."""
    killed = []

    def kill(stage, share):
        if stage == "searching" and share > 0.3 and not killed:
            killed.append(next(iter(workers.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    run = on_cluster(dataset, tmp_path / "run", workers, progress=kill)
    assert killed
    same_items(local, run)


def test_an_item_in_two_files_is_named(dataset, workers, tmp_path):
    frame = pl.read_parquet(dataset / "part-0.parquet")
    item = frame["item"][0]
    frame.write_parquet(tmp_path / "a.parquet")
    frame.filter(item=item).head(1).write_parquet(tmp_path / "b.parquet")
    named = rf"1 items have votes in two partitions .* item '{item}' \(a.parquet and b"
    with pytest.raises(VotesError, match=named):
        on_cluster(tmp_path, tmp_path / "run", workers)
    assert not (tmp_path / "run").exists()


def test_honest_annotators_are_not_alike_because_few_items_are_held(tmp_path, monkeypatch):
    """Items of a sample stand for fifty others each; two annotators share one or two of them."""
    monkeypatch.setattr("moral_entropy.scale.SAMPLE_VOTES", 800)
    simulated = me.simulate_votes(n_items=8_000, n_annotators=60, votes_per_item=5, seed=4)
    [ballot] = simulated.votes.ballots
    frame = {"item": np.repeat(np.arange(8_000), ballot.votes_i), "annotator": ballot.code_v // 2}
    pl.DataFrame(frame | {"label": np.take(["no", "yes"], ballot.code_v % 2)}).write_parquet(tmp_path / "votes.parquet")
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as inside:
        run = on_cluster(tmp_path / "votes.parquet", tmp_path / "run", inside, gold=None)
    metrics = set(run.table("findings")["metric"])
    assert "sampled" in metrics and "alike" not in metrics


def test_one_large_file_is_cut_where_the_item_changes(dataset, local, workers, tmp_path, monkeypatch):
    monkeypatch.setattr("moral_entropy.votes.parts.ROWS_AT_ONCE", 1_501)
    pl.read_parquet(dataset).write_parquet(tmp_path / "votes.parquet", row_group_size=1_000)
    run = on_cluster(tmp_path / "votes.parquet", tmp_path / "run", workers)
    assert run.manifest["cluster"]["parts"] == -(-votes_frame().height // 1_501)
    same_items(local, run)


def test_a_question_may_be_absent_from_a_file(workers, tmp_path):
    rng, rows = np.random.default_rng(1), []
    for question, n_items in (("care", 300), ("harm", 120)):
        for item, true in enumerate(rng.random(n_items) < 0.4):
            for a in rng.choice(8, 4, replace=False):
                rows.append((f"i{item:04}", f"a{a}", question, "yes" if (rng.random() < 0.8) == true else "no"))
    frame = pl.DataFrame(rows, schema=["item", "annotator", "question", "label"], orient="row").sort("item")
    (tmp_path / "votes").mkdir()
    for name, inside in (("a", pl.col("item") < "i0150"), ("b", pl.col("item") >= "i0150")):
        frame.filter(inside).write_parquet(tmp_path / "votes" / f"{name}.parquet")
    run = on_cluster(tmp_path / "votes", tmp_path / "run", workers, gold=None)
    assert run.manifest["items"] == 300
    same_items(me.audit(frame, draws=100), run)


def test_a_damaged_file_is_named(dataset, workers, tmp_path):
    whole = (dataset / "part-0.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole)
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(VotesError, match=r"b\.parquet is a damaged or truncated"):
        on_cluster(tmp_path, tmp_path / "run", workers)
    (tmp_path / "b.parquet").write_text("item,annotator,label")
    with pytest.raises(VotesError, match=r"b\.parquet is not a Parquet file"):
        on_cluster(tmp_path, tmp_path / "run", workers)


def test_what_needs_one_machine_says_so(dataset, tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main(["audit", str(dataset), "-o", out, "--cluster", "local", "--fit-by", "domain"]) == 2
    assert "--fit-by needs all votes on one machine." in capsys.readouterr().err
    assert main(["audit", str(dataset), "-o", out, "--cluster", "nowhere"]) == 2
    assert "there is no Dask scheduler at 'nowhere'" in capsys.readouterr().err


def test_without_dask_the_extra_is_named(dataset, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["audit", str(dataset), "-o", str(tmp_path / "run"), "--cluster", "local"]) == 1
    assert "pip install 'moral-entropy[cluster]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_command_starts_and_stops_its_own_workers(dataset, local, tmp_path, capsys):
    out = str(tmp_path / "run")
    assert main(["audit", str(dataset), "-o", out, "--cluster", "local", "--draws", "100", "--gold", "gold"]) == 0
    same_items(local, me.read_run(tmp_path / "run"))
