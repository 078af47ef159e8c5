"""Functions compiled by Numba, once: their machine code is kept in the user's cache folder.

`compiled` turns a function into a kernel. The folder carries the version and a digest of all kernel sources, since
Numba looks at one file at a time and would not notice a change in a function that a kernel of another file calls.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import FunctionCache, NullCache

from moral_entropy import __version__
from moral_entropy.cache import cache_folder

SOURCES = (
    "grading/kernels.py",
    "compiled.py",
    "consensus/draw_kernels.py",
    "consensus/kernels.py",
    "consensus/temper_kernels.py",
    "consensus/vector_math.py",
    "ties.py",
    "validate/draw_kernels.py",
)
"""Every file with kernels, or with what goes into them: functions, constants, how they are compiled."""

KEPT = 5
"""Folders of versions that stay, those used last."""

COMPILING_ONCE = "compiling for this processor, only this once: some twenty seconds"
COMPILING_AGAIN = (
    "compiling for this processor: some twenty seconds, and again next time, since the cache folder cannot be written "
    "to. Name another in MORAL_ENTROPY_CACHE."
)

FOLDER_NAME = re.compile(r"\d[\w.+]*-[0-9a-f]{16}")

# Its entries are made while it is loaded, so that no type checker sees them.
config: Any = numba.config

Function = Callable[..., Any]
Say = Callable[[str], None]


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Give a decorator that compiles a function when it is first called, or takes what was compiled before.

    Parameters
    ----------
    options
        As `numba.njit` takes them. Kernels let go of Python's lock, so that threads run side by side.

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


@contextmanager
def telling(say: Say) -> Iterator[None]:
    """Have `say` told in a sentence, once, when something must be compiled before the block can go on."""
    _Listener.say, before = say, _Listener.say
    try:
        yield
    finally:
        _Listener.say = before


@cache
def kernel_folder() -> Path | None:
    """Make the folder for the kernels of this version and give it; None where nothing can be kept.

    `$NUMBA_CACHE_DIR` comes first, then the user's cache folder. Folders of versions not used for long are removed.
    """
    try:
        root = Path(config.CACHE_DIR) / "moral-entropy" if config.CACHE_DIR else cache_folder() / "kernels"
        folder = root.absolute() / f"{__version__}-{sources_digest()}"
        fresh = not folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        # Marks it as in use; refused where it cannot be written.
        os.utime(folder)
        if fresh:
            clear_old(root, KEPT)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def sources_digest() -> str:
    """Give 16 digits that change with any kernel source."""
    here = Path(__file__).parent
    contents = b"\0".join((here / name).read_bytes() for name in SOURCES)
    return hashlib.sha256(contents).hexdigest()[:16]


def clear_old(root: Path, kept: int) -> None:
    """Remove all folders of kernels but those used last.

    A program still running on a removed one loses nothing: its kernels are in memory, and Numba makes the folder again.
    """
    ours = [path for path in root.iterdir() if FOLDER_NAME.fullmatch(path.name) and not path.is_symlink()]
    for path in sorted(ours, key=_last_used, reverse=True)[kept:]:
        shutil.rmtree(path, ignore_errors=True)


def _last_used(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    # Another program has just removed it.
    return 0.0


class _Listener:
    """Who wants to know that something is being compiled; nobody once told."""

    say: Say | None = None

    @classmethod
    def tell(cls, text: str) -> None:
        say, cls.say = cls.say, None
        if say is not None:
            say(text)


class _KeptCache(FunctionCache):
    """Numba's cache of one function; trouble with files costs a compilation, never the run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Numba numbers the files of a function's signatures. Two programs that compile different ones at the same
        # time would both write number 1, and one signature could then be given the other's code.
        self._cache_file._data_name_pattern = f"{self._impl.filename_base}.{uuid.uuid4().hex[:8]}.{{number:d}}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Give what was compiled for these types; None if nothing usable was."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception:
            # A broken file may raise anything at all. Without its index it is forgotten, and written anew.
            found = None
            with suppress(OSError):
                self.flush()
        if found is None:
            _Listener.tell(COMPILING_ONCE)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if the disk takes it."""
        with suppress(OSError):
            super().save_overload(sig, data)


class _NoCache(NullCache):
    """Keeps nothing, and says so."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Find nothing."""
        _Listener.tell(COMPILING_AGAIN)


def _cache_of(function: Callable[..., Any]) -> Any:
    folder = kernel_folder()
    if folder is None:
        return _NoCache()
    # Numba reads this when a cache is made; other libraries' kernels are not to move with ours.
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        kept = _KeptCache(function)
    except (OSError, RuntimeError):
        return _NoCache()
    finally:
        config.CACHE_DIR = before
    return kept if Path(kept.cache_path).is_relative_to(folder) else _NoCache()
