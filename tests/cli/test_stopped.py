"""A run that is stopped from outside leaves no run folder: real processes, real signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from moral_entropy.corpora.simulate import write_simulated
from moral_entropy.runs.manifest import read_manifest
from moral_entropy.runs.tables import read_table


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    write_simulated(path, n_items=30_000, n_annotators=30, votes_per_item=4, seed=2)
    return path


def begin(votes, target):
    command = [sys.executable, "-m", "moral_entropy", "audit", str(votes), "-o", str(target), "--draws", "500"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process, appears):
    while process.poll() is None and not appears():
        time.sleep(0.005)


def partials(target):
    return list(target.parent.glob(".*partial*"))


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_polite_stop_leaves_nothing(votes, tmp_path, stop, code):
    target = tmp_path / "run"
    process = begin(votes, target)
    wait_for(process, lambda: partials(target))
    process.send_signal(stop)
    out, err = process.communicate()
    assert process.returncode == code
    assert (out, err) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_kill_leaves_no_run_folder_and_the_next_run_sweeps(votes, tmp_path):
    target = tmp_path / "run"
    process = begin(votes, target)
    wait_for(process, lambda: partials(target))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not target.exists() and len(partials(target)) == 1
    process = begin(votes, target)
    process.communicate()
    assert process.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_kill_while_files_are_written_leaves_all_or_nothing(votes, tmp_path):
    target = tmp_path / "run"
    process = begin(votes, target)
    wait_for(process, lambda: target.exists() or list(tmp_path.glob(".*partial*/items.parquet")))
    process.kill()
    process.communicate()
    if target.exists():
        assert read_manifest(target)["converged"]
        assert read_table(target, "items").height == 30_000
