"""A run folder appears whole or not at all, and replaces nothing but an earlier run.

Everything is written to a hidden folder next to the target, which is renamed into place when the last file is
there. Whatever stops the run before that, nothing that looks like a run is left.
"""

from __future__ import annotations

import csv
import glob
import json
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

from moral_entropy.errors import RunFolderError
from moral_entropy.files import flush, move, refused_by_system
from moral_entropy.stopping import unfinished, uninterrupted

MANIFEST = "manifest.json"
"""The file that makes a folder a run folder."""

MANIFEST_KEYS = frozenset({"version", "command", "versions", "seconds"})
"""What every manifest of ours holds; other programs have files of that name too."""

EARLIER_FILES = ("validation.parquet", "refined.parquet", "soft_labels.parquet")
"""Files that runs of earlier versions have."""

SHEETS = "spot-check*.csv"
"""Names of the sheets of labels to check."""

OTHER_FILES = (
    MANIFEST, "report.html", "dataset-card.md", "croissant.json", "methods.tex", "methods.bib",
    "comparison.parquet", "figures.parquet", "comparison.md", "comparison.html",
    ".DS_Store", "Thumbs.db", "desktop.ini",
)  # fmt: skip
"""Files besides its tables that may lie in a folder which `--force` replaces."""


SYNCHRONIZE, ACCESS_DENIED, STILL_RUNNING = 0x0010_0000, 5, 0x102
"""Constants of Windows: the right to wait for a process, and what it answers."""


@contextmanager
def writing(
    path: str | Path, *, force: bool = False, inputs: Iterable[Any] = (), kept: Iterable[Any] = ()
) -> Iterator[Path]:
    """Open a hidden folder to write to, which becomes `path` when the block ends well.

    Parameters
    ----------
    path
        Where the run folder shall be. Folders above it are made when they are missing.
    force
        Replace a run folder that is already there. Anything else is never replaced: not a folder whose manifest is
        another program's, and not one that holds a file which no run has.
    inputs
        What is read in the block: paths, globs, lists of them. A folder that holds one of them is not replaced.
    kept
        Filled-in sheets which the block copies into the new folder; a folder that holds another one is not replaced.

    Yields
    ------
    Path
        A hidden folder next to `path`; removed when the block raises, Ctrl-C included.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with writing(f"{home}/run") as folder:
    ...         _ = (folder / "manifest.json").write_text("{}")
    ...     sorted(path.name for path in Path(home).iterdir())
    ['run']
    """
    read, safe = list(_paths(inputs)), list(_paths(kept))
    with whole_folder(path, lambda target: _check_free(target, force=force, inputs=read, kept=safe)) as folder:
        yield folder


@contextmanager
def whole_folder(path: str | Path, check: Callable[[Path], None]) -> Iterator[Path]:
    """Open a hidden folder to write to, which becomes `path` when the block ends well, in place of what is there.

    Parameters
    ----------
    path
        Where the folder shall be. Folders above it are made when they are missing.
    check
        Called with the resolved path before and after the block; raises if what is there must not be replaced.
    """
    target = Path(path).resolve()
    _sweep(target)
    check(target)
    with _tidy(target), unfinished(_sibling(target, "partial")) as partial:
        _make(partial)
        yield partial
        _sync(partial)
        check(target)
        _put_in_place(partial, target)


@contextmanager
def _tidy(target: Path) -> Iterator[None]:
    """If the block fails, remove folders above the target that it made, and name the refusal behind Polars' error."""
    lacking = [folder for folder in target.parents if not os.path.lexists(folder)]
    try:
        yield
    except BaseException as error:
        for folder in lacking:
            with suppress(OSError):
                folder.rmdir()
        refused = None if isinstance(error, OSError) else refused_by_system(error)
        if refused is None:
            raise
        raise OSError(refused.errno, refused.strerror, str(target)) from error


def is_run_folder(path: Path) -> bool:
    """Return whether a folder holds a manifest."""
    return (path / MANIFEST).is_file()


def _check_free(target: Path, *, force: bool, inputs: Iterable[Path], kept: Sequence[Path] = ()) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        msg = f"{target} is a file, and a run needs a folder. Choose another with -o."
        raise RunFolderError(msg)
    if target.is_mount():
        msg = f"{target} is a mount point, which cannot be replaced by a run. Name a folder in it: -o {target / 'run'}."
        raise RunFolderError(msg)
    found = sorted(entry.name for entry in target.iterdir())
    if not found:
        return
    if not force:
        msg = (
            f"{target} exists and holds {len(found)} file{'s' * (len(found) > 1)}. First: {found[0]}. "
            "Choose another folder with -o, or replace this run with --force (force=True)."
        )
        raise RunFolderError(msg)
    _check_replaceable(target, found)
    _check_sheets(target, kept)
    inside = [path for path in inputs if target in (path, *path.parents)]
    if inside:
        msg = f"{inside[0]} is read by this run, and --force would delete {target}. Choose another folder with -o."
        raise RunFolderError(msg)


def _check_replaceable(target: Path, found: list[str]) -> None:
    """Raise a `RunFolderError` for a folder that is no run or holds other files: --force deletes only our own."""
    foreign = [name for name in found if not _of_a_run(target / name)]
    if not is_run_folder(target):
        why = f"is no run folder: it has no {MANIFEST}, but {found[0]}"
    elif not _is_ours(target / MANIFEST):
        why = f"is no run folder: its {MANIFEST} is damaged, or another program's"
    elif foreign:
        more = f" and {len(foreign) - 1} more" * (len(foreign) > 1)
        why = f"holds {foreign[0]}{more}, which no run wrote"
    else:
        return
    msg = (
        f"{target} {why}. --force replaces only earlier runs, lest it delete something else. "
        "Choose another folder with -o."
    )
    raise RunFolderError(msg)


def _check_sheets(target: Path, kept: Sequence[Path]) -> None:
    """Raise a `RunFolderError` for a folder with a sheet that somebody has begun to fill in."""
    for path in sorted(target.glob(SHEETS)):
        if path.resolve() not in kept and (answers := _answers_on(path)):
            msg = (
                f"{path} has {answers:,} answer{'s' * (answers > 1)}, which --force would delete. Use them with "
                f"--spot-check {path}, or move the file elsewhere."
            )
            raise RunFolderError(msg)


def _answers_on(path: Path) -> int:
    """Count the answers on a sheet; one where it cannot be read, as it may hold some."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error):
        return 1
    if rows and "answer" not in rows[0]:
        return 1
    return sum(bool((row["answer"] or "").strip()) for row in rows)


def _is_ours(manifest: Path) -> bool:
    try:
        facts = json.loads(manifest.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        return False
    return isinstance(facts, dict) and facts.keys() >= MANIFEST_KEYS


def _of_a_run(path: Path) -> bool:
    """Return whether a file has the name of one that a command writes, or that a killed command leaves behind."""
    # Late: the tables' module needs this one.
    from moral_entropy.schemas import SCHEMAS

    names = (*OTHER_FILES, *EARLIER_FILES, *(f"{table}.parquet" for table in SCHEMAS))
    left = re.fullmatch(r"\.(.+?)(\.partial-\d+-[0-9a-f]{6}|\.\d+\.part|-[0-9a-f]{6}(\.parquet))", path.name)
    name = path.name if left is None else f"{left[1]}{left[3] or ''}"
    parts = path.is_dir() and all(PurePath(part.name).match("part-*.parquet") for part in path.iterdir())
    return (name in names or PurePath(name).match(SHEETS)) and (parts or not path.is_dir())


def _paths(inputs: Iterable[Any]) -> Iterator[Path]:
    """List the paths among some inputs, which may be globs, lists of paths or no paths at all."""
    for given in inputs:
        if isinstance(given, str | Path):
            names = glob.glob(str(given)) or [str(given)]  # noqa: PTH207
            yield from (Path(name).resolve() for name in names)
        elif isinstance(given, list | tuple):
            yield from _paths(given)


def _make(partial: Path) -> None:
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        # Path.mkdir and not tempfile: the folder that others will read follows the umask.
        partial.mkdir()
    except OSError as error:
        msg = f"cannot write to {partial.parent}: {error.strerror}. Choose another folder with -o."
        raise RunFolderError(msg) from error


def _put_in_place(partial: Path, target: Path) -> None:
    if target.is_dir():
        # Who may read the folder stays as it was.
        partial.chmod(target.stat().st_mode & 0o7777)
    if not target.is_dir() or not any(target.iterdir()):
        move(partial, target)
        return
    # Two renames; if the process dies between them, the next run puts the old folder back.
    replaced = _sibling(target, "replaced")
    with uninterrupted():
        move(target, replaced)
        move(partial, target)
        shutil.rmtree(replaced, ignore_errors=True)


def _sync(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        flush(path)


def _sibling(target: Path, state: str) -> Path:
    return target.with_name(f".{target.name}.{state}-{_host()}-{os.getpid()}-{secrets.token_hex(3)}")


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", socket.gethostname())


def _sweep(target: Path) -> None:
    """Remove what runs of dead processes left next to the target; put back what they had moved aside."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(partial|replaced)-{re.escape(_host())}-(\d+)-[0-9a-f]{{6}}")
    with suppress(OSError):
        for left in sorted(target.parent.iterdir()):
            found = pattern.fullmatch(left.name)
            if not found or _alive(int(found[2])):
                continue
            if found[1] == "replaced" and not target.exists():
                move(left, target)
            else:
                shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    """Return whether a process still runs; True where that cannot be told."""
    if sys.platform == "win32":
        return _alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _alive_on_windows(pid: int) -> bool:
    """Ask for the process by its number: `os.kill(pid, 0)` would send it Ctrl-C there."""
    import ctypes

    kernel = vars(ctypes)["windll"].kernel32
    handle = kernel.OpenProcess(SYNCHRONIZE, 0, pid)
    if not handle:
        return bool(kernel.GetLastError() == ACCESS_DENIED)
    # An open handle keeps the number of a process that has ended; waiting no time tells both apart.
    running = bool(kernel.WaitForSingleObject(handle, 0) == STILL_RUNNING)
    kernel.CloseHandle(handle)
    return running
