"""Workers and schedulers that die: the same answer, or a clear error and no run folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster.processes import running
from cluster.tables import LEARNT, assert_same_tables, vote_table, write_parts

from moral_entropy import __version__
from moral_entropy.cluster.workers import DaskWorkers, connected
from moral_entropy.consensus.options import FitOptions
from moral_entropy.errors import ClusterError, MissingExtraError
from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.validate.vote_access import one_link

OPTIONS = AuditOptions(fit=FitOptions(draws=30, domain_prevalence="off"), report=False)


@dataclass(frozen=True, eq=False)
class Fated(DaskWorkers):
    """Workers to whom something happens once a sum, links, or a table have been asked for so often."""

    happens: Any = None
    sums: int | None = None
    rows: int | None = None
    links: int | None = None
    seen: list[str] = field(default_factory=list)

    def total(self, addends):
        self._count("sum", self.sums)
        return super().total(addends)

    def joined(self, join, results):
        if join is one_link:
            self._count("links", self.links)
        return super().joined(join, results)

    def in_order(self, work, parts, *given):
        for made in super().in_order(work, parts, *given):
            self._count("rows", self.rows)
            yield made

    def _count(self, what, fatal):
        self.seen.append(what)
        if self.seen.count(what) == fatal:
            self.happens()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    path = write_parts(vote_table(600, 10, seed=1), folder / "parts", 3)
    audit(path, folder / "one", OPTIONS)
    return path, folder / "one"


@pytest.mark.parametrize(
    "fate",
    [{"sums": 3}, {"links": 1}, {"rows": 2}],
    ids=["in mid-fit", "while the posterior is checked", "while files are written"],
)
def test_a_killed_worker_changes_nothing(tmp_path, workers, processes, source, fate):
    path, one = source
    fated = Fated(workers.client, happens=processes.kill_worker, **fate)
    processes.add_worker()
    n_workers = len(processes.workers)
    audit(path, tmp_path / "many", OPTIONS, workers=fated, part_rows=900)
    assert len(processes.workers) == n_workers - 1
    assert_same_tables(one, tmp_path / "many", close=LEARNT)


def test_a_cluster_that_is_gone_is_an_error_and_leaves_nothing_behind(tmp_path, source, monkeypatch):
    monkeypatch.setattr("moral_entropy.cluster.workers.CONNECT", 4.0)
    path, _ = source
    (tmp_path / "processes").mkdir()
    with running(tmp_path / "processes", n_workers=1) as processes, connected(processes.address) as workers:
        deserted = Fated(workers.client, patience=1.0, happens=processes.kill_worker, sums=2)
        with pytest.raises(ClusterError, match="no worker"):
            audit(path, tmp_path / "run" / "many", OPTIONS, workers=deserted, part_rows=900)
        processes.add_worker()
        headless = Fated(workers.client, happens=processes.kill_scheduler, sums=2)
        with pytest.raises(ClusterError, match=r"scheduler at tcp://.* is gone .* Nothing was written"):
            audit(path, tmp_path / "run" / "many", OPTIONS, workers=headless, part_rows=900)
    # The folder was made for the run, and goes with it.
    assert not (tmp_path / "run").exists()


def test_an_address_where_nobody_answers_is_an_error(monkeypatch):
    monkeypatch.setattr("moral_entropy.cluster.workers.CONNECT", 0.5)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"), connected("tcp://127.0.0.1:9"):
        pass


PRETEND = "import moral_entropy.cluster.workers as module; module.__version__ = {!r}"


def test_every_worker_is_asked_for_its_version(workers):
    workers.client.wait_for_workers(2, timeout=60)
    [one, *others] = sorted(workers.client.nthreads())
    workers.client.run(exec, PRETEND.format("0.0.1"), workers=[one])
    try:
        said = (
            rf"1 of {len(others) + 1} workers have another moral-entropy than this machine .* First: {one} has 0\.0\.1"
        )
        with pytest.raises(ClusterError, match=said):
            workers.check_version()
    finally:
        workers.client.run(exec, PRETEND.format(__version__), workers=[one])
    workers.check_version()


def test_a_local_cluster_listens_on_loopback_and_shows_no_pages(monkeypatch):
    started = {}

    class Cluster:
        def __init__(self, **options):
            started.update(options)
            raise KeyboardInterrupt

    monkeypatch.setattr("distributed.LocalCluster", Cluster)
    with pytest.raises(KeyboardInterrupt), connected("local"):
        pass
    assert started["host"] == "127.0.0.1" and started["dashboard_address"] == "127.0.0.1:0"
    assert started["scheduler_kwargs"] == {"dashboard": False}


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"moral-entropy\[cluster\]"), connected("local"):
        pass
