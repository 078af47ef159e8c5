"""What whoever waits at a terminal sees."""

from __future__ import annotations

import io
import sys

import pytest

from moral_entropy import compiled
from moral_entropy.cli.screen import Bars


class Terminal(io.StringIO):
    def isatty(self):
        return True


def third(x):
    return x / 3


def use_new_kernel():
    assert compiled.compiled()(third)(6) == 2


@pytest.fixture
def show(tmp_path, monkeypatch):
    """Use bars and a new kernel at a terminal, and give all that was shown."""
    monkeypatch.setattr(compiled, "kernel_folder", lambda: tmp_path)

    def use(**flags):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", Terminal())
            with Bars(**flags) as progress:
                progress("fitting", 0.5)
                use_new_kernel()
            return sys.stderr.getvalue()

    return use


def test_compiling_is_announced_once(show):
    shown = show(hidden=False)
    assert shown.count(compiled.COMPILING_ONCE) == 1 and "fitting" in shown
    shown = show(hidden=False)
    assert compiled.COMPILING_ONCE not in shown and "fitting" in shown


def test_quiet_is_quiet(show):
    assert show(hidden=True) == ""
