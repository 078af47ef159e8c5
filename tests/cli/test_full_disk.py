"""A full disk is told in words by every command that writes, and what was there stays. A limit on files stands in."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager

import pytest

from moral_entropy.cli.main import main

resource = pytest.importorskip("resource", reason="limits on files are POSIX's")

COMMANDS = {
    "audit votes.csv -o new --draws 0 --no-report": "the system refused",
    "audit votes.csv -o run --draws 0 --no-report --force": "the system refused",
    "validate run --checks identifiability --quiet": "cannot write",
    "report run --force": "cannot write",
    "export run --to csv -o out.csv": "cannot write",
    "export run --to hf -o out": "the system refused",
    "export run --to lewidi -o out": "the system refused",
    "export run --to label-studio -o out.json": "cannot write",
    "export run --to wide -o wide.csv": "cannot write",
    "simulate --items 300 -o made.parquet": "cannot write",
}


@contextmanager
def most_bytes(n):
    import signal

    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.skipif(sys.platform == "darwin", reason="files of pytest are limited too")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_it_and_keeps_what_was_there(plain_run, tmp_path, monkeypatch, capsys, command):
    shutil.copytree(plain_run, tmp_path / "run")
    rows = "".join(f"{n},{who},{(n + at) % 3 % 2}\n" for n in range(40) for at, who in enumerate("abc"))
    (tmp_path / "votes.csv").write_text(f"item,annotator,label\n{rows}")
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    # Modules that are loaded under the limit would leave bytecode cut short, which no later run could load.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with most_bytes(500):
        code = main(command.split())
    error = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning: ")]
    assert code == 1 and len(error) == 1 and COMMANDS[command] in error[0]
    assert "Make room, or write elsewhere" in error[0]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
