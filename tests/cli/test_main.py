"""The command by itself: help and version."""

from __future__ import annotations

import subprocess
import sys

import moral_entropy


def test_alone_it_prints_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "audit" in out and "simulate" in out


def test_it_knows_its_version(run):
    assert run("--version") == (0, f"moral-entropy {moral_entropy.__version__}\n", "")


def test_no_escape_codes_without_a_terminal(run, monkeypatch):
    for name in ("FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    code, out, err = run("audit", "votes.csv", "-o", "run", "--draws", "20", "--no-report")
    assert code == 0 and out and not {"\x1b", "\r"} & set(out + err)


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
        (["audit", "--help"], 0),
    ):
        finished = subprocess.run([*command, *arguments], stderr=subprocess.PIPE, text=True, check=False)
        assert (finished.returncode, finished.stderr) == (expected, ""), arguments
    assert moral_entropy.read_run("run").items.height == 162
