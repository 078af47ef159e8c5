"""Numba kernels that are compiled once: their machine code is kept in the user's cache folder.

`compiled` turns a function into a kernel. The name of the folder holds the version and a digest of all kernel sources:
Numba checks one file at a time and would not notice a change in a function that a kernel of another file calls.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import FunctionCache, NullCache
from numba.core.runtime.nrt import rtsys
from numba.core.sigutils import normalize_signature

from moral_entropy import __version__
from moral_entropy.cache import cache_folder

SOURCES = (
    "rules/kernels.py",
    "compiled.py",
    "consensus/dependence_kernels.py",
    "consensus/draw_kernels.py",
    "consensus/kernels.py",
    "consensus/state_draw_kernels.py",
    "consensus/state_kernels.py",
    "consensus/tempering_kernels.py",
    "consensus/vector_math.py",
    "ties.py",
    "validate/draw_kernels.py",
)
"""Every file with kernels, or with functions, constants and compiler options that they use."""

KEPT = 5
"""Number of versions whose folders are kept, those used last."""

COMPILING_ONCE = "compiling for this processor, only this once: some ten seconds"
COMPILING_AGAIN = (
    "compiling for this processor: some ten seconds, and again next time, since the cache folder cannot be written "
    "to. Name another in MORAL_ENTROPY_CACHE."
)

LOOK_AGAIN = 0.01
"""Seconds after which one looks again whether another process has compiled a kernel."""

FOLDER_NAME = re.compile(r"\d[\w.+]*-[0-9a-f]{16}")

# Its entries are made at import, so that no type checker sees them.
config: Any = numba.config

Function = Callable[..., Any]
Say = Callable[[str], None]


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function at its first call, or loads what was compiled before.

    Parameters
    ----------
    options
        Options of `numba.njit`. Kernels release Python's global lock, so that threads run in parallel.

    Examples
    --------
    >>> @compiled()
    ... def double(x):
    ...     return x + x
    >>> double(21)
    42
    """

    def decorate(function: Function) -> Function:
        made: Any = njit(nogil=True, **options)(function)
        if not config.DISABLE_JIT:
            # As `njit(cache=True)` does, with a cache of our own.
            made._cache = _cache_of(function)
        kernel: Function = made
        return kernel

    return decorate


def compile_for(kernel: Any, types: str) -> None:
    """Compile a kernel for arguments of some types, written as Numba writes them, or load it, without calling it.

    As long as that takes a mark in the cache folder lets another process wait for it: see `waiting_for`.

    Examples
    --------
    >>> double = compiled()(lambda x: x + x)
    >>> compile_for(double, "f8")
    >>> double.signatures
    [(float64,)]
    """
    with kernel._cache.marked() if isinstance(kernel._cache, _KeptCache) else nullcontext():
        # Numba keeps what it compiles under what it is given: types, as a call does, and not their names.
        kernel.compile(normalize_signature(f"({types},)")[0])


@contextmanager
def announcing_compilation(say: Say) -> Iterator[None]:
    """Call `say` with a sentence, once, when something must be compiled before the block can continue."""
    _Announcement.say, before = say, _Announcement.say
    try:
        yield
    finally:
        _Announcement.say = before


@contextmanager
def waiting_for(other: subprocess.Popen[bytes]) -> Iterator[None]:
    """Wait for the kernel that another process is compiling, if it is needed here, rather than compile it here too."""
    _KeptCache.other, before = other, _KeptCache.other
    try:
        yield
    finally:
        _KeptCache.other = before


@cache
def kernel_folder() -> Path | None:
    """Create the folder for the kernels of this version and return it; None where nothing can be kept.

    `$NUMBA_CACHE_DIR` comes first, then the user's cache folder. Folders of versions not used for long are removed.
    """
    try:
        root = Path(config.CACHE_DIR) / "moral-entropy" if config.CACHE_DIR else cache_folder() / "kernels"
        folder = root.absolute() / f"{__version__}-{sources_digest()}"
        fresh = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        # Marks it as in use; raises where it cannot be written.
        os.utime(folder)
        if fresh:
            clear_old(root, KEPT)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def sources_digest() -> str:
    """Return 16 hexadecimal digits that change with any kernel source."""
    here = Path(__file__).parent
    contents = b"\0".join((here / name).read_bytes() for name in SOURCES)
    return hashlib.sha256(contents).hexdigest()[:16]


def clear_old(root: Path, kept: int) -> None:
    """Remove all folders of kernels except those used last.

    A program that still uses a removed one loses nothing: its kernels are in memory, and Numba makes the folder again.
    """
    ours = [path for path in root.iterdir() if FOLDER_NAME.fullmatch(path.name) and not path.is_symlink()]
    for path in sorted(ours, key=_last_used, reverse=True)[kept:]:
        shutil.rmtree(path, ignore_errors=True)


def _last_used(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    # Another program has just removed it.
    return 0.0


class _Announcement:
    """Holds the function to call when something is compiled; None once it was called."""

    say: Say | None = None

    @classmethod
    def announce(cls, text: str) -> None:
        say, cls.say = cls.say, None
        if say is not None:
            say(text)


class _KeptCache(FunctionCache):
    """Numba's cache of one function; a problem with files costs a compilation, never the run."""

    other: subprocess.Popen[bytes] | None = None
    """Another process that compiles."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Numba numbers the files of a function's signatures. Two programs that compile different ones at the same
        # time would both write number 1, and one signature could then get the other's code.
        self._cache_file._data_name_pattern = f"{self._impl.filename_base}.{uuid.uuid4().hex[:8]}.{{number:d}}.nbc"

    def _mark(self, process: int) -> Path:
        return Path(self.cache_path) / f"{self._impl.filename_base}.{process}.compiling"

    @contextmanager
    def marked(self) -> Iterator[None]:
        """Mark the kernel as one that this process is compiling, as long as the block lasts."""
        mark = self._mark(os.getpid())
        with suppress(OSError):
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
        try:
            yield
        finally:
            with suppress(OSError):
                mark.unlink(missing_ok=True)

    def _wait_for_other(self) -> None:
        other = self.other
        while other is not None and self._mark(other.pid).exists() and other.poll() is None:
            _Announcement.announce(COMPILING_ONCE)
            time.sleep(LOOK_AGAIN)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load what was compiled for these types; None if there is nothing usable.

        Numba would first import all that it needs to compile, a third of a second. Loading takes only its runtime,
        and compiling imports the rest itself.
        """
        self._wait_for_other()
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except Exception:
            # A broken file may raise anything. Without its index it is ignored, and written again.
            found = None
            with suppress(OSError):
                self.flush()
        if found is None:
            _Announcement.announce(COMPILING_ONCE)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled, if the disk allows it."""
        with suppress(OSError):
            super().save_overload(sig, data)


class _NoCache(NullCache):
    """A cache that keeps nothing, and reports that."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Find nothing."""
        _Announcement.announce(COMPILING_AGAIN)


def _cache_of(function: Callable[..., Any]) -> Any:
    folder = kernel_folder()
    if folder is None:
        return _NoCache()
    # Numba reads this when a cache is made; kernels of other libraries must stay where they are.
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        kept = _KeptCache(function)
    except (OSError, RuntimeError):
        return _NoCache()
    finally:
        config.CACHE_DIR = before
    return kept if Path(kept.cache_path).is_relative_to(folder) else _NoCache()
