"""Run folders, made once."""

from __future__ import annotations

import shutil

import pytest
from report_support import hostile_frame, make_run, vote_frame

from moral_entropy.runs.findings import findings_frame
from moral_entropy.runs.run import read_run


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory):
    return make_run(vote_frame(), tmp_path_factory.mktemp("plain") / "run")


@pytest.fixture(scope="session")
def many_run(tmp_path_factory):
    frame = vote_frame(labels=("anger", "joy", "none"), questions=("tone",), n_items=90)
    return make_run(frame, tmp_path_factory.mktemp("many") / "run")


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory):
    return make_run(hostile_frame(), tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture
def with_findings(plain_run, tmp_path):
    """A copy of a run folder with these findings alone."""

    def with_findings(findings):
        path = tmp_path / "run"
        shutil.copytree(plain_run, path, dirs_exist_ok=True)
        findings_frame(findings).write_parquet(path / "findings.parquet")
        return read_run(path)

    return with_findings
