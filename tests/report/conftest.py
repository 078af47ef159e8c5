"""Run folders, made once."""

from __future__ import annotations

import pytest
from report_support import hostile_frame, make_run, vote_frame


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
