"""The settings of `make test-cpus` are ones that this processor and its libraries can be told."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest
from support import load_script

other_cpus = load_script("tools/other_cpus.py")


def test_every_library_and_number_of_threads_has_its_turn():
    found = list(other_cpus.settings())
    told = {name for setting in found for name in setting.variables}
    assert {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "OPENBLAS_CORETYPE"} <= told
    assert {setting.variables["OPENBLAS_CORETYPE"] for setting in found} == {"Haswell", "Zen", "SkylakeX"}
    assert {setting.threads for setting in found} == {1, 2}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86")
def test_fused_multiplication_is_off_and_so_are_512_bits():
    features = other_cpus.unfused_features().split(",")
    assert "-fma" in features and not [name for name in features if name.startswith("+avx512")]


def test_numpy_takes_the_names_of_what_it_shall_not_use():
    names = other_cpus.numpy_features()
    code = "import numpy._core._multiarray_umath as u, sys; sys.exit(any(u.__cpu_features__[n] for n in sys.argv[1:]))"
    environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(names)}
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *names],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_setting_beyond_the_processor_is_left_out_with_a_word(monkeypatch, capsys):
    monkeypatch.setattr(other_cpus, "processor_can", lambda: {"avx2", "fma"})
    monkeypatch.setattr(other_cpus, "run", lambda setting: (setting, int(setting.name == "unfused"), "3 passed in 1 s"))
    assert other_cpus.main() == 1
    printed = capsys.readouterr().out
    assert "wide: left out, as this processor has no avx512f" in printed and "plain, 1 threads (NUMBA" in printed
