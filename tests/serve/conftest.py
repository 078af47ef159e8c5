"""One small run, copied for every test that decides something."""

from __future__ import annotations

import shutil

import pytest
from report_support import make_run, vote_frame


@pytest.fixture(scope="session")
def votes_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    vote_frame(n_items=70, gold=False).write_csv(path)
    return path


@pytest.fixture(scope="session")
def made_run(votes_file, tmp_path_factory):
    return make_run(votes_file, tmp_path_factory.mktemp("made") / "run", report=False, draws=30)


@pytest.fixture
def run(made_run, tmp_path):
    return shutil.copytree(made_run, tmp_path / "run")
