"""Files that appear whole or not at all, and tables that a spreadsheet can open without harm.

Writes to a hidden file next to the wanted one and renames it at the end. Run folders have the same in
`moral_entropy.runs.folder`.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from moral_entropy.errors import FileError, UsageError, VotesError
from moral_entropy.stopping import unfinished

if TYPE_CHECKING:
    import polars as pl

WAITS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.65)
"""Seconds to wait before a file that somebody has open is renamed again."""

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")


def no_such_file(path: str | Path) -> VotesError:
    """Return the error about an input file that is not there.

    Examples
    --------
    >>> print(no_such_file("votse.csv"))
    there is no file 'votse.csv'. Check the path and the folder you are in.
    """
    return VotesError(f"there is no file {str(path)!r}. Check the path and the folder you are in.")


def refuse_missing(paths: Iterable[Any]) -> None:
    """Refuse input files that are not there, before anything is loaded to read them.

    Parameters
    ----------
    paths
        Paths; whatever is no path, a pattern of several files, or "-" for standard input is passed over.

    Examples
    --------
    >>> refuse_missing([None, "-", "parts/*.parquet", __file__])
    >>> refuse_missing(["votse.csv"])
    Traceback (most recent call last):
    ...
    moral_entropy.errors.VotesError: there is no file 'votse.csv'. Check the path and the folder you are in.
    """
    for path in paths:
        is_file = isinstance(path, str | Path) and str(path) != "-" and not glob.has_magic(str(path))
        # Not Path.exists: some versions of it fail on names that no file can have.
        if is_file and not os.path.exists(path):  # noqa: PTH110
            raise no_such_file(path)


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Open a path to write to, and rename it to `path` once the block ends well.

    When the block fails, what it wrote is removed and a file already at `path` stays as it was.

    Parameters
    ----------
    path
        Where the file shall be in the end; its folder must exist.

    Raises
    ------
    FileError
        The file cannot be written there.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "votes.csv"
    >>> with whole_file(target) as partial:
    ...     written = partial.write_text("item,annotator,label")
    ...     target.exists()
    False
    >>> target.exists(), partial.exists()
    (True, False)
    """
    path = Path(path)
    if not path.parent.is_dir():
        msg = f"cannot write {path}: there is no folder {path.parent}. Make it first, or write elsewhere."
        raise FileError(msg)
    if path.is_dir():
        msg = f"cannot write {path}: it is a folder. Name a file in it."
        raise FileError(msg)
    aside = path.with_name(f".{path.name}.partial-{os.getpid()}-{os.urandom(3).hex()}")
    try:
        with unfinished(aside) as partial:
            yield partial
            flush(partial)
            move(partial, path)
    except Exception as error:
        refused = refused_by_system(error)
        if refused is None:
            raise
        msg = f"cannot write {path}: {refused.strerror or refused}. {what_to_do(refused)}"
        raise FileError(msg) from error


def refused_by_system(error: BaseException) -> OSError | None:
    """Return the system's refusal behind an error of Polars, which has words of its own for a full disk.

    Examples
    --------
    >>> refused_by_system(OSError(28, "No space left on device")).errno
    28
    >>> refused_by_system(ValueError("os error 28")) is None
    True
    """
    ours = isinstance(error, OSError) and error.errno is not None
    if ours or not (isinstance(error, OSError) or type(error).__module__.startswith("polars")):
        return error if isinstance(error, OSError) else None
    if match := re.search(r"os error (\d+)", str(error)):
        return OSError(int(match[1]), os.strerror(int(match[1])))
    if isinstance(error, OSError):
        return error
    # The end of a Parquet file could not be written.
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if "transport error" in str(error) else None


def what_to_do(refused: OSError) -> str:
    """Say what helps when the system refuses to write."""
    full = refused.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    return "Make room, or write elsewhere with -o." if full else "Write elsewhere."


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all; line ends stay as they are."""
    with whole_file(path) as partial:
        partial.write_bytes(text.encode())


def flush(path: Path) -> None:
    """Wait until a file or folder is on the disk: renaming is atomic, but not ordered against what was written.

    Windows opens no folders, and flushes only what may be written to.
    """
    windows = sys.platform == "win32"
    if windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def move(path: Path, target: Path) -> None:
    """Rename a file or folder, in place of what is there: a file, or an empty folder.

    Windows renames nothing over a folder, and nothing that somebody has open: a virus scanner or an indexer does for a
    moment, so it is tried again for two seconds.
    """
    if sys.platform != "win32":
        path.rename(target)
        return
    if path.is_dir() and target.is_dir():
        target.rmdir()
    for wait in WAITS:
        with suppress(PermissionError):
            path.replace(target)
            return
        time.sleep(wait)
    path.replace(target)


def check_free(target: Path, *, force: bool) -> None:
    """Raise a `UsageError` if the target exists, unless `force` is given."""
    empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not empty and not force:
        msg = f"{target} exists. Choose another name with -o, or replace it with --force."
        raise UsageError(msg)


FORMULA = r"^'*[=+\-@\t\r]"
"""How a cell begins that a spreadsheet would take for a formula, or that would be read as such a cell made harmless."""


def without_formulas(frame: Frame) -> Frame:
    """Put a ' before every text of a table that a spreadsheet would take for a formula.

    Examples
    --------
    >>> import polars as pl
    >>> without_formulas(pl.DataFrame({"text": ["=1+1", "fine", "@me", None]}))["text"].to_list()
    ["'=1+1", 'fine', "'@me", None]
    """
    import polars as pl

    cell = pl.col(pl.String)
    return frame.with_columns(pl.when(cell.str.contains(FORMULA)).then("'" + cell).otherwise(cell).name.keep())


def cache_folder() -> Path:
    """Return the folder for what can be made again: `$MORAL_ENTROPY_CACHE`, else `moral-entropy` among the caches.

    These are in `$XDG_CACHE_HOME` or `~/.cache`; on macOS `~/Library/Caches`, on Windows `%LOCALAPPDATA%`.

    Raises
    ------
    OSError
        The user has no home folder; callers then continue without a cache.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, {"MORAL_ENTROPY_CACHE": "fast-disk"}):
    ...     cache_folder().name
    'fast-disk'
    """
    if folder := os.environ.get("MORAL_ENTROPY_CACHE"):
        return Path(folder)
    if home := os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else ""):
        return Path(home) / "moral-entropy"
    try:
        home_folder = Path.home()
    except RuntimeError as error:
        raise OSError(str(error)) from error
    return home_folder / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "moral-entropy"
