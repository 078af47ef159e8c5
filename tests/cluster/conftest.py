"""One scheduler with two workers for all tests of a cluster."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the cluster extra is not installed")


@pytest.fixture(scope="session")
def processes(tmp_path_factory):
    from cluster.processes import running

    # Tests side by side on a busy machine take minutes; processes end by themselves even if nobody ends them.
    with running(tmp_path_factory.mktemp("cluster"), lifetime=1_800.0) as started:
        yield started


@pytest.fixture(scope="session")
def workers(processes):
    from moral_entropy.cluster.workers import connected

    with connected(processes.address) as workers:
        yield workers
