"""Hypothesis runs the same examples each time, at any speed of the machine. Run folders and the study, made once."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory):
    from report_support import make_run, vote_frame

    return make_run(vote_frame(), tmp_path_factory.mktemp("plain") / "run")


@pytest.fixture(scope="session")
def many_run(tmp_path_factory):
    from report_support import make_run, vote_frame

    frame = vote_frame(labels=("anger", "joy", "none"), questions=("tone",), n_items=90)
    return make_run(frame, tmp_path_factory.mktemp("many") / "run")


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory):
    from report_support import hostile_frame, make_run

    return make_run(hostile_frame(), tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """The paper's study on twins; sampling and many replicates take seconds, and have tests of their own."""
    from moral_entropy.corpora import reproduce
    from moral_entropy.options import Inputs, ReproduceOptions

    out = tmp_path_factory.mktemp("study") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce, "CHECKS", {"ensemble": (30, {"members": 2})})
        patch.setattr("moral_entropy.train.run.REPLICATES", 20)
        inputs, options = Inputs(twins=True, scale=0.025), ReproduceOptions(draws=100, seed=1)
        return reproduce.run_study(inputs, out, options, command="typed")


@pytest.fixture
def with_findings(plain_run, tmp_path):
    """A copy of a run folder with these findings alone."""
    from moral_entropy.runs.run import findings_frame, read_run

    def with_findings(findings):
        path = tmp_path / "run"
        shutil.copytree(plain_run, path, dirs_exist_ok=True)
        findings_frame(findings).write_parquet(path / "findings.parquet")
        return read_run(path)

    return with_findings
