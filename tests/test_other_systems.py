"""Windows and macOS, simulated: folders that cannot be opened, files that somebody holds, consoles without Unicode."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from moral_entropy import files
from moral_entropy.cli.main import main
from moral_entropy.files import cache_folder, flush, move, whole_file
from moral_entropy.report.words import shown_title
from moral_entropy.runs import folder as run_folder
from moral_entropy.runs.folder import _alive, writing
from moral_entropy.runs.run import Run


@pytest.fixture
def windows(monkeypatch):
    """Open no folder, flush nothing that is only read, and rename nothing over a folder, as Windows does."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(files, "WAITS", (0.0, 0.0, 0.0))
    opened, fsync, replace = os.open, os.fsync, Path.replace
    writable = set()

    def open_file(path, flags, *rest, **at):
        # Removing folders opens them here, with dir_fd, which Windows does not have.
        if not at and Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        handle = opened(path, flags, *rest, **at)
        if flags & os.O_RDWR:
            writable.add(handle)
        return handle

    def fsync_file(handle):
        if handle not in writable:
            raise OSError(9, "Bad file descriptor")
        fsync(handle)

    def replace_path(self, target):
        if Path(target).is_dir():
            raise PermissionError(5, "Access is denied", str(target))
        return replace(self, target)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "fsync", fsync_file)
    monkeypatch.setattr(Path, "replace", replace_path)
    return monkeypatch


def test_files_and_folders_are_flushed(windows, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    flush(tmp_path / "a.txt")
    flush(tmp_path)


def test_a_run_folder_takes_the_place_of_an_empty_one_and_of_an_earlier_run(windows, tmp_path):
    windows.setattr(run_folder, "_alive", lambda _: True)
    (tmp_path / "run").mkdir()
    facts = '{"version": "", "command": "", "versions": {}, "seconds": {}}'
    for told in ("one", "two"):
        with writing(tmp_path / "run", force=True) as folder:
            (folder / "manifest.json").write_text(facts)
            (folder / "report.html").write_text(told)
        assert (tmp_path / "run" / "report.html").read_text() == told
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_file_that_somebody_holds_for_a_moment_is_replaced_later(windows, tmp_path):
    tries, replace = [], Path.replace

    def held_twice(self, target):
        tries.append(target)
        if len(tries) < 3:
            raise PermissionError(32, "The process cannot access the file")
        return replace(self, target)

    windows.setattr(Path, "replace", held_twice)
    with whole_file(tmp_path / "votes.csv") as partial:
        partial.write_text("item")
    assert (tmp_path / "votes.csv").read_text() == "item" and len(tries) == 3


def test_a_file_that_somebody_keeps_is_an_error_in_words(windows, tmp_path):
    def always_held(self, target):
        raise PermissionError(32, "The process cannot access the file")

    windows.setattr(Path, "replace", always_held)
    refused = pytest.raises(files.FileError, match=r"cannot write .*votes.csv: The process cannot access the file")
    with refused, whole_file(tmp_path / "votes.csv") as partial:
        partial.write_text("item")
    assert list(tmp_path.iterdir()) == []


def test_elsewhere_nothing_is_tried_twice(tmp_path):
    (tmp_path / "a").write_text("a")
    move(tmp_path / "a", tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        move(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("handle", "error", "waited", "alive"),
    [(7, 0, 0x102, True), (7, 0, 0, False), (0, 87, 0, False), (0, 5, 0, True)],
    ids=["running", "ended", "no such process", "another user's"],
)
def test_no_process_is_sent_a_signal_to_see_whether_it_lives(handle, error, waited, alive, monkeypatch):
    closed = []
    kernel = SimpleNamespace(
        OpenProcess=lambda _access, _inherit, pid: handle if pid == 99 else 0,
        GetLastError=lambda: error,
        WaitForSingleObject=lambda _handle, _time: waited,
        CloseHandle=closed.append,
    )
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("on Windows this would be Ctrl-C"))
    assert _alive(99) is alive
    assert closed == ([handle] if handle else [])


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437"])
def test_a_console_without_unicode_shows_what_it_can(encoding, tmp_path, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    err = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["audit", str(tmp_path / "投票→.csv"), "-o", str(tmp_path / "run")]) == 1
    assert main(["audit", "--help"]) == 0
    for stream in (out, err):
        stream.flush()
    told = err.buffer.getvalue().decode(encoding)
    assert told.startswith("error: ") and "\\u6295" in told and "Traceback" not in told
    assert "Usage" in out.buffer.getvalue().decode(encoding)


def test_signals_that_a_system_lacks_are_not_asked_for(monkeypatch):
    from moral_entropy.stopping import Stopped, begin_listening, end_listening, restore_signals

    monkeypatch.delattr(signal, "setitimer")
    monkeypatch.delattr(signal, "SIGALRM")
    begin_listening()
    try:
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGTERM)
        assert end_listening() == 143
    finally:
        restore_signals(program_ends=False)


def test_cache_folders_are_those_of_the_system(monkeypatch, tmp_path):
    for name in ("MORAL_ENTROPY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    wanted = {"win32": "Local", "darwin": "Library/Caches", "linux": ".cache"}
    for system, place in wanted.items():
        monkeypatch.setattr(sys, "platform", system)
        assert cache_folder() == tmp_path / place / "moral-entropy"


@pytest.mark.parametrize("source", [r"C:\data\votes.csv", "/data/votes.csv", r"\\server\share\votes.csv", "votes.csv"])
def test_a_report_is_called_by_the_name_of_the_file_whatever_the_separator(source):
    assert shown_title(Run({"input": {"source": source}})) == "votes.csv"
