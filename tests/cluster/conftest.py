"""One scheduler with two workers for all tests of a cluster."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed", reason="the cluster extra is not installed")


@pytest.fixture(scope="session")
def processes(tmp_path_factory):
    from cluster.processes import running

    with running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="session")
def crew(processes):
    from moral_entropy.cluster.crew import connected

    with connected(processes.address) as crew:
        yield crew
