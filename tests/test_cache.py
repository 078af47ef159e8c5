"""Where things are kept that can be made again, on every system."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moral_entropy.files import cache_folder

NAMES = ("MORAL_ENTROPY_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("system", "given", "folder"),
    [
        ("linux", {}, ".cache/moral-entropy"),
        ("linux", {"XDG_CACHE_HOME": "x"}, "x/moral-entropy"),
        ("linux", {"LOCALAPPDATA": "l"}, ".cache/moral-entropy"),
        ("darwin", {}, "Library/Caches/moral-entropy"),
        ("win32", {"LOCALAPPDATA": "l"}, "l/moral-entropy"),
        ("win32", {}, ".cache/moral-entropy"),
        ("linux", {"XDG_CACHE_HOME": "x", "MORAL_ENTROPY_CACHE": "m"}, "m"),
    ],
)
def test_it_is_where_the_system_keeps_caches(home, monkeypatch, system, given, folder):
    monkeypatch.setattr(sys, "platform", system)
    for name, value in given.items():
        monkeypatch.setenv(name, str(home / value))
    assert cache_folder() == home / folder


def test_whoever_has_no_home_is_told_as_if_the_disk_refused(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(OSError, match="home"):
        cache_folder()
