"""The command by itself: help and version."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import moral_entropy


def test_alone_it_prints_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "audit" in out and "simulate" in out


def test_it_knows_its_version(run):
    assert run("--version") == (0, f"moral-entropy {moral_entropy.__version__}\n", "")


@pytest.mark.parametrize("command", ["audit", "check", "simulate"])
def test_every_command_has_help_with_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0 and f"Example: moral-entropy {command} " in out


def test_no_escape_codes_without_a_terminal(folder):
    environment = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "PY_COLORS")}
    command = [sys.executable, "-m", "moral_entropy", "audit", "votes.csv", "-o", "run", "--draws", "20"]
    finished = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert b"\x1b" not in finished.stdout + finished.stderr
    assert b"\r" not in finished.stdout + finished.stderr


def test_whoever_stops_reading_is_no_error_and_the_run_is_whole(folder):
    # The pipe is closed before anything is printed: a real process, since standard output must be a file.
    code = (
        "import os, sys; from moral_entropy.cli.main import main; read, write = os.pipe(); os.dup2(write, 1); "
        "os.close(read); sys.exit(main())"
    )
    command = [sys.executable, "-c", code]
    for arguments, expected in (
        (["audit", "votes.csv", "-o", "run", "--draws", "20", "--no-report"], 0),
        (["check", "run", "--max", "any.fdr=0"], 1),
        (["next", "run", "-n", "3"], 0),
        (["audit", "--help"], 0),
    ):
        finished = subprocess.run([*command, *arguments], stderr=subprocess.PIPE, text=True, check=False)
        assert (finished.returncode, finished.stderr) == (expected, ""), arguments
    assert moral_entropy.read_run("run").items.height == 162
