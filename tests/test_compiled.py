"""Kernels are compiled once, kept where the user may write, and never taken for others."""

from __future__ import annotations

import ast
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from moral_entropy import __version__, compiled
from moral_entropy.compiled import (
    COMPILING_AGAIN,
    COMPILING_ONCE,
    announcing_compilation,
    clear_old,
    kernel_folder,
    sources_digest,
)

PACKAGE = Path(compiled.__file__).parent
VARIABLES = ("MORAL_ENTROPY_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA")

USE_A_KERNEL = """
import json
import sys
import numpy as np
from moral_entropy.consensus.vector_math import logistic, __file__ as place
x_s, p_s, softplus_s, size_s, whole_s = np.array([0.0, 3.0]), *np.empty((4, 2))
logistic(x_s, p_s, softplus_s, size_s, whole_s, np.empty(2, np.int64))
stats = logistic.stats
counts = [sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]
print(json.dumps([place, list(p_s), *counts, "numba.typed.typeddict" in sys.modules]))
"""
P = [0.5, pytest.approx(0.9525741268224334)]


def halve(x):
    return x / 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where kernels made in this test are kept."""
    monkeypatch.setattr(compiled, "kernel_folder", lambda: tmp_path)
    return tmp_path


def kernel():
    return compiled.compiled()(halve)


def counts(made):
    return sum(made.stats.cache_hits.values()), sum(made.stats.cache_misses.values())


def files(folder):
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


@pytest.fixture
def read_only_package(tmp_path):
    """A copy of the package that nothing can be written into, even by an administrator."""
    copy = tmp_path / "site" / "moral_entropy"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    folders = [copy, *(path for path in copy.rglob("*") if path.is_dir())]
    for one in folders:
        # A file in the place where Python and Numba want their folder.
        (one / "__pycache__").touch()
        one.chmod(0o555)
    yield copy
    for one in folders:
        one.chmod(0o755)


def use_a_kernel(package, **variables):
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    finished = subprocess.run(
        [sys.executable, "-c", USE_A_KERNEL],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": str(package.parent), **variables},
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    place, p_s, hits, misses, can_compile = json.loads(finished.stdout)
    assert Path(place).is_relative_to(package) and p_s == P
    # What only compiling needs takes a third of a second to import.
    assert can_compile == (misses > 0)
    return hits, misses


def test_a_read_only_package_compiles_once(read_only_package, tmp_path):
    package, cache = files(read_only_package), tmp_path / "cache"
    assert use_a_kernel(read_only_package, XDG_CACHE_HOME=str(cache)) == (0, 1)
    kept = files(cache)
    assert {path.suffix for path in kept} >= {".nbi", ".nbc"}
    assert use_a_kernel(read_only_package, XDG_CACHE_HOME=str(cache)) == (1, 0)
    # The folder's own time moves: it says when the folder was last used.
    in_use = cache / "moral-entropy" / "kernels" / f"{__version__}-{sources_digest()}"
    assert {path for path, time in files(cache).items() if time != kept.get(path)} <= {in_use}
    assert files(read_only_package) == package


def test_without_any_folder_to_write_to_it_compiles_in_memory(read_only_package, tmp_path):
    package = files(read_only_package)
    assert use_a_kernel(read_only_package, HOME=os.devnull) == (0, 1)
    assert files(read_only_package) == package
    assert not list(tmp_path.rglob("*.nb[ic]"))


def test_kernels_are_loaded_again(folder):
    first, second = kernel(), kernel()
    assert first(3) == 1.5 and counts(first) == (0, 1)
    assert second(3) == 1.5 and counts(second) == (1, 0)


def test_two_programs_at_once_do_not_mix_their_code(folder, monkeypatch):
    one, other = kernel(), kernel()
    # Both look at the index before either has written to it.
    monkeypatch.setattr(other._cache._cache_file, "_load_index", dict)
    assert one(3) == 1.5 and other(3.0) == 1.5
    data = {path.name for path in folder.rglob("*.nbc")}
    assert len(data) == 2
    third = kernel()
    assert (third(7), third(7.0)) == (3.5, 3.5)
    # The later index has forgotten the first signature, which costs a compilation and no more.
    assert counts(third) == (1, 1)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_broken_files_cost_a_compilation(folder, suffix):
    kernel()(3)
    for path in folder.rglob(f"*.{suffix}"):
        path.write_bytes(b"not what was kept")
    again, after = kernel(), kernel()
    assert again(3) == 1.5 and counts(again) == (0, 1)
    assert after(3) == 1.5 and counts(after) == (1, 0)


def test_a_full_disk_stops_no_run(folder, monkeypatch):
    made = kernel()

    def refuse(_path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(made._cache._cache_file, "_open_for_write", refuse)
    assert made(3) == 1.5


def test_other_libraries_keep_their_folder(folder, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "theirs")
    kernel()
    assert numba.config.CACHE_DIR == "theirs"


def test_without_compilation_kernels_are_plain_functions(folder, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert kernel() is halve


@pytest.fixture
def find_folder(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    # Past the memory of what was found at first.
    return kernel_folder.__wrapped__


def test_the_folder_is_the_users(find_folder, tmp_path):
    root = tmp_path / "cache" / "moral-entropy" / "kernels"
    assert find_folder() == root / f"{__version__}-{sources_digest()}"
    assert find_folder().is_dir()


def test_the_folder_numba_is_told_to_use_comes_first(find_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    assert find_folder().parent == tmp_path / "numba" / "moral-entropy"
    assert not (tmp_path / "cache").exists()


def test_no_folder_where_a_file_is_in_the_way(find_folder, tmp_path):
    (tmp_path / "cache").touch()
    assert find_folder() is None


def test_a_new_version_clears_old_ones_away(find_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "KEPT", 2)
    for n, version in enumerate(("7.1.0", "7.2.0", "7.3.0")):
        monkeypatch.setattr(compiled, "__version__", version)
        os.utime(find_folder(), (n, n))
    monkeypatch.setattr(compiled, "__version__", "8.0.0")
    newest = find_folder()
    assert sorted(path.name[:5] for path in newest.parent.iterdir()) == ["7.3.0", "8.0.0"]


def test_only_our_folders_are_cleared_away(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"0.1.0-{'0' * 16}").symlink_to(tmp_path / "elsewhere")
    for name in (f"0.2.0-{'1' * 16}", "notes", f"x-{'1' * 16}", "0.1.0-abc"):
        (tmp_path / name).mkdir()
    clear_old(tmp_path, 0)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"elsewhere", f"0.1.0-{'0' * 16}", "notes", f"x-{'1' * 16}", "0.1.0-abc"}


@pytest.mark.parametrize("source", compiled.SOURCES)
def test_a_change_in_any_source_moves_the_folder(source, tmp_path, monkeypatch):
    for name in compiled.SOURCES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(PACKAGE / name, tmp_path / name)
    before = sources_digest()
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    assert sources_digest() == before
    with (tmp_path / source).open("a") as file:
        file.write("#")
    assert sources_digest() != before


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_every_file_with_kernels_is_among_the_sources():
    at_work = {"moral_entropy.compiled.compiled", "numba", "numba.njit"}
    found = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if at_work & {*imported(path)}}
    # One takes the decorator from a neighbour, one has a constant that goes into kernels.
    assert found == {*compiled.SOURCES} - {"consensus/tempering_kernels.py", "ties.py"}


@pytest.mark.parametrize("source", sorted({*compiled.SOURCES} - {"compiled.py"}))
def test_kernels_take_nothing_from_files_outside_the_sources(source):
    known = {f"moral_entropy.{name.removesuffix('.py').replace('/', '.')}" for name in compiled.SOURCES}
    ours = {name.rpartition(".")[0] for name in imported(PACKAGE / source) if name.startswith("moral_entropy.")}
    assert ours <= known


def test_whoever_waits_is_told_once(folder):
    said = []
    with announcing_compilation(said.append):
        kernel()(3)
        kernel()(3.0)
    kernel()(True)
    assert said == [COMPILING_ONCE]
    with announcing_compilation(said.append):
        kernel()(3)
    assert said == [COMPILING_ONCE]


def test_whoever_waits_each_time_is_told_why(monkeypatch):
    monkeypatch.setattr(compiled, "kernel_folder", lambda: None)
    said = []
    with announcing_compilation(said.append):
        assert kernel()(3) == 1.5
    assert said == [COMPILING_AGAIN]
