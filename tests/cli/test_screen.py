"""What whoever waits at a terminal sees."""

from __future__ import annotations

import io
import sys

import pytest

from moral_entropy.progress import show_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "hidden", "shown"), [(Terminal, False, True), (Terminal, True, False), (io.StringIO, False, False)]
)
def test_bars_are_for_whoever_watches_and_did_not_ask_for_quiet(monkeypatch, stream, hidden, shown):
    monkeypatch.setattr(sys, "stderr", stream())
    with show_progress(hidden=hidden) as progress:
        progress("fitting", 0.5)
    assert ("fitting" in sys.stderr.getvalue()) == shown
    assert shown or sys.stderr.getvalue() == ""
