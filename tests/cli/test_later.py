"""What SciPy loads and no command uses is loaded when it is used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

IN_A_COMMAND = """
import sys
from moral_entropy.cli.later import UNUSED, load_unused_later
load_unused_later()
import scipy.special
assert set(UNUSED) <= set(sys.modules), "SciPy does not load them any more: this is of no use"
assert not any(name.startswith(tuple(f"{one}." for one in UNUSED)) for name in sys.modules)
import numpy.testing
from numpy import f2py
numpy.testing.assert_equal(1, 1)
assert f2py.get_include().endswith("src")
assert "numpy.f2py.f2py2e" in sys.modules
"""


def test_unused_modules_are_loaded_when_something_of_theirs_is_used():
    finished = subprocess.run([sys.executable, "-c", IN_A_COMMAND], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_command_loads_none_of_them(tmp_path):
    (tmp_path / "votes.csv").write_text("item,annotator,label\n1,a,yes\n1,b,no\n2,a,yes\n2,b,yes\n")
    command = [sys.executable, "-X", "importtime", "-m", "moral_entropy", "audit", "votes.csv", "-o", "run"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in finished.stderr.splitlines()}
    assert "scipy.special" in loaded
    assert "numpy.f2py.f2py2e" not in loaded


def test_a_program_that_calls_main_keeps_its_imports(tmp_path):
    from moral_entropy.cli.main import main

    before = list(sys.meta_path)
    assert main(["simulate", "--items", "9", "-o", str(tmp_path / "votes.parquet")]) == 0
    assert sys.meta_path == before


@pytest.mark.parametrize(("given", "found"), [({}, "4"), ({"OPENBLAS_THREAD_TIMEOUT": "20"}, "20")])
def test_threads_that_wait_soon_sleep_unless_somebody_has_said_when(given, found):
    typed = "import os, sys; sys.argv = ['moral-entropy', '--version']; from moral_entropy.cli.main import main; main()"
    command = [sys.executable, "-c", f"{typed}; print(os.environ['OPENBLAS_THREAD_TIMEOUT'], 'numpy' in sys.modules)"]
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    ran = subprocess.run(command, env=environment | given, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-2:] == [found, "False"]
