"""A run folder appears whole or not at all.

Everything is written to a hidden folder beside the target, which is renamed into place when the last file is
there. Whatever stops the run before that, nothing that looks like a run is left.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from moral_entropy.errors import RunFolderError

MANIFEST = "manifest.json"
"""The file that makes a folder a run folder."""


@contextmanager
def writing(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Give a folder to write to that becomes `path` when the block ends well.

    Parameters
    ----------
    path
        Where the run folder shall be. Folders above it are made when they are missing.
    force
        Replace a run folder that is already there. Anything else is never replaced.

    Yields
    ------
    Path
        A hidden folder beside `path`; removed when the block raises, Ctrl-C included.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with writing(f"{home}/run") as folder:
    ...         _ = (folder / "manifest.json").write_text("{}")
    ...     sorted(path.name for path in Path(home).iterdir())
    ['run']
    """
    target = Path(path).resolve()
    _sweep(target)
    _check_free(target, force=force)
    partial = _sibling(target, "partial")
    try:
        # Within the block: a signal that comes as soon as the folder is there must clear it away too.
        _make(partial)
        yield partial
        _sync(partial)
        _check_free(target, force=force)
        _put_in_place(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_run_folder(path: Path) -> bool:
    """Tell whether a folder holds a manifest."""
    return (path / MANIFEST).is_file()


def _check_free(target: Path, *, force: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        msg = f"{target} is a file, and a run needs a folder. Choose another with -o."
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
    if not is_run_folder(target):
        msg = (
            f"{target} is no run folder: it has no {MANIFEST}, but {found[0]}. --force replaces only earlier runs, "
            "lest it delete something else. Choose another folder with -o."
        )
        raise RunFolderError(msg)


def _make(partial: Path) -> None:
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        # Path.mkdir and not tempfile: the folder that others will read follows the umask.
        partial.mkdir()
    except OSError as error:
        msg = f"cannot write to {partial.parent}: {error.strerror}. Choose another folder with -o."
        raise RunFolderError(msg) from error


def _put_in_place(partial: Path, target: Path) -> None:
    if not is_run_folder(target):
        partial.rename(target)
        return
    # Two renames; if the process dies between them, the next run puts the old folder back.
    replaced = _sibling(target, "replaced")
    target.rename(replaced)
    partial.rename(target)
    shutil.rmtree(replaced, ignore_errors=True)


def _sync(folder: Path) -> None:
    # Renaming is atomic, but not ordered against the files' contents unless those are on the disk first.
    for path in [*folder.iterdir(), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sibling(target: Path, state: str) -> Path:
    return target.with_name(f".{target.name}.{state}-{_host()}-{os.getpid()}-{secrets.token_hex(3)}")


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", socket.gethostname())


def _sweep(target: Path) -> None:
    """Clear away what runs of dead processes left beside the target; put back what they had moved aside."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(partial|replaced)-{re.escape(_host())}-(\d+)-[0-9a-f]{{6}}")
    with suppress(OSError):
        for left in sorted(target.parent.iterdir()):
            found = pattern.fullmatch(left.name)
            if not found or _alive(int(found[2])):
                continue
            if found[1] == "replaced" and not target.exists():
                left.rename(target)
            else:
                shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
