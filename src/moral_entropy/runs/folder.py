"""A run folder: it appears whole or not at all, and replaces nothing but an earlier run; its tables and its manifest.

Everything is written to a hidden folder next to the target, which is renamed into place when the last file is there.
Whatever stops the run before that, nothing that looks like a run is left. Tables are written from chunks, so that none
has to fit in memory, and the same rows always make the same bytes. The manifest, one JSON file, carries two kinds of
digests, by which `verify` sees that something was changed: `files` has one for every file that a command wrote, `seal`
is that of the manifest itself.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.files import flush, move, refused_by_system, whole_file, write_text
from moral_entropy.schemas import SCHEMAS
from moral_entropy.stopping import unfinished, uninterrupted

MANIFEST = "manifest.json"
"""The file that makes a folder a run folder."""

MANIFEST_KEYS = frozenset({"version", "command", "versions", "seconds"})
"""What every manifest of ours holds; other programs have files of that name too."""

SHEETS, OF_PAPER = "spot-check*.csv", "paper-*"
"""Names of the sheets of labels to check, and of the paper's tables and figures (`reproduce`)."""

OTHER_FILES = (
    MANIFEST, "report.html", "dataset-card.md", "croissant.json", "methods.tex", "methods.bib",
    "validation.parquet", "refined.parquet", "soft_labels.parquet", "comparison.parquet", "figures.parquet",
    "comparison.md", "comparison.html", "index.html",
    "audit_one_label.parquet", "camps.parquet", "pushes.parquet",
    ".DS_Store", "Thumbs.db", "desktop.ini",
)  # fmt: skip
"""Files besides its tables that may lie in a folder which `--force` replaces, also of earlier versions."""


HOST = re.sub(r"[^A-Za-z0-9]", "_", socket.gethostname())

SYNCHRONIZE, ACCESS_DENIED, STILL_RUNNING = 0x0010_0000, 5, 0x102
"""Constants of Windows: the right to wait for a process, and what it answers."""


@contextmanager
def writing(
    path: str | Path, *, force: bool = False, inputs: Iterable[Any] = (), sheets: Iterable[Any] = ()
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
    sheets
        Filled-in sheets: those in the folder are copied into the new one; a folder that holds another one is not
        replaced.

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
    read, safe = list(_paths(inputs)), list(_paths(sheets))

    def check(target: Path) -> None:
        for obstacle in _obstacles(target, force=force, inputs=read, sheets=safe):
            raise RunFolderError(obstacle)

    with whole_folder(path, check) as folder:
        for sheet in safe:
            if sheet.is_file() and sheet.parent == Path(path).resolve():
                shutil.copyfile(sheet, folder / sheet.name)
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
    lacking = [folder for folder in target.parents if not os.path.lexists(folder)]
    try:
        with unfinished(_sibling(target, "partial")) as partial:
            try:
                partial.parent.mkdir(parents=True, exist_ok=True)
                # Path.mkdir and not tempfile: the folder that others will read follows the umask.
                partial.mkdir()
            except OSError as error:
                msg = f"cannot write to {partial.parent}: {error.strerror}. Choose another folder with -o."
                raise RunFolderError(msg) from error
            yield partial
            for entry in [*partial.rglob("*"), partial]:
                flush(entry)
            check(target)
            _put_in_place(partial, target)
    except BaseException as error:
        for folder in lacking:
            with suppress(OSError):
                folder.rmdir()
        # The system's refusal behind Polars' error is named.
        refused = None if isinstance(error, OSError) else refused_by_system(error)
        if refused is None:
            raise
        raise OSError(refused.errno, refused.strerror, str(target)) from error


def _obstacles(target: Path, *, force: bool, inputs: Iterable[Path], sheets: Sequence[Path]) -> Iterator[str]:
    """Yield why what is at the target must not be replaced: `--force` deletes only our own."""
    files = sorted(entry.name for entry in target.iterdir()) if target.is_dir() else []
    if target.exists() and not target.is_dir():
        yield f"{target} is a file, and a run needs a folder. Choose another with -o."
    if target.is_mount():
        yield f"{target} is a mount point, which cannot be replaced by a run. Name a folder in it: -o {target / 'run'}."
    if not files:
        return
    if not force:
        yield (
            f"{target} exists and holds {len(files)} file{'s' * (len(files) > 1)}. First: {files[0]}. "
            "Choose another folder with -o, or replace this run with --force (force=True)."
        )
    why, foreign, facts = "", [name for name in files if not _of_a_run(target / name)], None
    with suppress(ValueError, OSError, RecursionError):
        facts = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    if not (target / MANIFEST).is_file():
        why = f"is no run folder: it has no {MANIFEST}, but {files[0]}"
    elif not isinstance(facts, dict) or not facts.keys() >= MANIFEST_KEYS:
        why = f"is no run folder: its {MANIFEST} is damaged, or another program's"
    elif foreign:
        why = f"holds {foreign[0]}{f' and {len(foreign) - 1} more' * (len(foreign) > 1)}, which no run wrote"
    if why:
        yield (
            f"{target} {why}. --force replaces only earlier runs, lest it delete something else. "
            "Choose another folder with -o."
        )
    for path in sorted(target.glob(SHEETS)):
        if path.resolve() not in sheets and (answers := _answers_on(path)):
            yield (
                f"{path} has {answers:,} answer{'s' * (answers > 1)}, which --force would delete. Use them with "
                f"--spot-check {path}, or move the file elsewhere."
            )
    for path in inputs:
        if target in (path, *path.parents):
            yield f"{path} is read by this run, and --force would delete {target}. Choose another folder with -o."


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


def _of_a_run(path: Path) -> bool:
    """Return whether a file has the name of one that a command writes, or that a killed command leaves behind."""
    names = (*OTHER_FILES, *(f"{table}.parquet" for table in SCHEMAS))
    partial = re.fullmatch(r"\.(.+?)(\.partial-\d+-[0-9a-f]{6}|\.\d+\.part|-[0-9a-f]{6}(\.parquet))", path.name)
    name = path.name if partial is None else f"{partial[1]}{partial[3] or ''}"
    parts = not path.is_dir() or all(PurePath(part.name).match("part-*.parquet") for part in path.iterdir())
    return parts and (name in names or any(PurePath(name).match(pattern) for pattern in (SHEETS, OF_PAPER)))


def _paths(inputs: Iterable[Any]) -> Iterator[Path]:
    """List the paths among some inputs, which may be globs, lists of paths or no paths at all."""
    for source in inputs:
        if isinstance(source, str | Path):
            names = glob.glob(str(source)) or [str(source)]  # noqa: PTH207
            yield from (Path(name).resolve() for name in names)
        elif isinstance(source, list | tuple):
            yield from _paths(source)


def _put_in_place(partial: Path, target: Path) -> None:
    if not target.is_dir():
        move(partial, target)
        return
    if not any(target.iterdir()):
        # Filled and not replaced, as a shell may be in it; the manifest, which makes it a run, comes last.
        with uninterrupted():
            for path in sorted(partial.iterdir(), key=lambda path: (path.name == MANIFEST, path.name)):
                move(path, target / path.name)
            partial.rmdir()
        return
    # Who may read the folder stays as it was.
    partial.chmod(target.stat().st_mode & 0o7777)
    # Two renames; if the process dies between them, the next run puts the old folder back.
    replaced = _sibling(target, "replaced")
    with uninterrupted():
        move(target, replaced)
        move(partial, target)
        shutil.rmtree(replaced, ignore_errors=True)


def _sibling(target: Path, state: str) -> Path:
    return target.with_name(f".{target.name}.{state}-{HOST}-{os.getpid()}-{secrets.token_hex(3)}")


def _sweep(target: Path) -> None:
    """Remove what runs of dead processes left next to the target; put back what they had moved aside."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(partial|replaced)-{HOST}-(\d+)-[0-9a-f]{{6}}")
    with suppress(OSError):
        for folder in sorted(target.parent.iterdir()):
            match = pattern.fullmatch(folder.name)
            if not match or _alive(int(match[2])):
                continue
            if match[1] == "replaced" and not target.exists():
                move(folder, target)
            else:
                shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    """Return whether a process still runs; True where that cannot be told."""
    if sys.platform == "win32":
        return _alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
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


# --- Tables ----------------------------------------------------------------------------------------------------------


ROWS_PER_GROUP = 262_144

IDS = ("item", "annotator")
"""Columns that are integers where all ids of the input were."""


def write_table(path: Path, schema: pl.Schema, chunks: Iterable[pl.DataFrame]) -> None:
    """Write chunks of rows to one Parquet file without ever holding more than a few of them.

    Parameters
    ----------
    path
        The file.
    schema
        Its columns, in order; every chunk must have exactly these.
    chunks
        Its rows.
    """
    from polars.io.plugins import register_io_source

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        for chunk in chunks:
            yield chunk.select(with_columns or schema.names())

    frame = register_io_source(source, schema=schema, validate_schema=True)
    # A fixed size of row groups keeps the bytes the same whatever the number of threads.
    frame.sink_parquet(path, compression="zstd", row_group_size=ROWS_PER_GROUP, maintain_order=True)


def read_table(path: str | Path, name: str, *, where: pl.Expr | None = None) -> pl.DataFrame:
    """Read one table of a run folder back, or some rows of it.

    Parameters
    ----------
    path
        The run folder.
    name
        One of `SCHEMAS`, such as "items" or "audit".
    where
        Which rows to read; all by default.

    Examples
    --------
    >>> read_table("nowhere", "items")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.RunFolderError: nowhere is no run folder: there is no such folder. ...
    """
    rows = scan_table(path, name)
    try:
        return rows.collect() if where is None else rows.filter(where).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(Path(path) / f"{name}.parquet", error) from error


def scan_table(path: str | Path, name: str) -> pl.LazyFrame:
    """Scan one table of a run folder, after a look at its columns and their types.

    Parameters
    ----------
    path
        The run folder.
    name
        One of `SCHEMAS`.
    """
    folder = checked_folder(path)
    file = folder / f"{name}.parquet"
    if not file.exists():
        names = ", ".join(sorted(entry.stem for entry in folder.glob("*.parquet"))) or "none"
        msg = f"{folder} has no table {name!r}. Found: {names}."
        raise RunFolderError(msg)
    try:
        # An audit on a cluster writes tables of items as folders of part files.
        scanned = pl.scan_parquet(sorted(file.glob("*.parquet")) if file.is_dir() else file, glob=False)
        schema = scanned.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(file, error) from error
    for column, kind in SCHEMAS[name].items():
        if column not in schema:
            msg = f"{file} lacks the column {column!r}. Run the audit again."
            raise RunFolderError(msg)
        may_be_integer = (column in IDS or kind.is_integer()) and schema[column].is_integer()
        if schema[column] != kind and not may_be_integer:
            msg = f"{file} has {schema[column]} in the column {column!r}, not {kind}. Run the audit again."
            raise RunFolderError(msg)
    return scanned


def _unreadable(file: Path, error: Exception) -> RunFolderError:
    return RunFolderError(f"{file} cannot be read: {str(error).splitlines()[0]}. Run the audit again.")


def checked_folder(path: str | Path) -> Path:
    """Return the path of a run folder; raise a `RunFolderError` that says why it is none."""
    folder = Path(path)
    if not folder.is_dir():
        why = "it is a file" if folder.exists() else "there is no such folder"
    elif not (folder / MANIFEST).is_file():
        why = f"it has no {MANIFEST}"
    else:
        return folder
    msg = f"{folder} is no run folder: {why}. Make one with: moral-entropy audit votes.csv -o {folder}"
    raise RunFolderError(msg)


# --- The manifest ----------------------------------------------------------------------------------------------------


FILES, SEAL = "files", ',\n  "seal": "'
"""The fact with the digests of files; and how the last line of a manifest begins, which has that of all lines above."""


def write_manifest(folder: Path, facts: Mapping[str, Any], *, unbroken: bool = True) -> dict[str, Any]:
    """Write the facts about a run and return them; figures that are not finite become null: JSON has no others.

    A seal that was broken stays broken: no later command shall make good what somebody changed by hand.
    """
    plain: dict[str, Any] = plain_facts(facts)
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    seal = hashlib.sha256(text.encode()).hexdigest() if unbroken else "broken"
    write_text(folder / MANIFEST, f'{text[:-2]}{SEAL}{seal}"\n}}\n')
    return plain


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a run folder back, without its seal.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     _ = write_manifest(Path(run), {"seed": 0, "gradient_norm": float("nan")})
    ...     read_manifest(run)
    {'seed': 0, 'gradient_norm': None}
    """
    return _read_sealed(path)[0]


def _read_sealed(path: str | Path) -> tuple[dict[str, Any], bool]:
    """Read the facts of a run folder, and whether their seal is unbroken."""
    file = checked_folder(path) / MANIFEST
    try:
        text = file.read_text(encoding="utf-8")
        facts = json.loads(text)
        facts.pop("seal", None)
    except (ValueError, OSError) as error:
        msg = f"{file} cannot be read: {error}. Run the audit again."
        raise RunFolderError(msg) from error
    except (AttributeError, TypeError) as error:
        msg = f"{file} holds no manifest but a JSON {type(facts).__name__}. Run the audit again."
        raise RunFolderError(msg) from error
    above, _, seal = text.rpartition(SEAL)
    digest = hashlib.sha256((above + "\n}").encode()).hexdigest()
    return facts, seal == f'{digest}"\n}}\n'


def change_manifest(folder: Path, **changes: Any) -> dict[str, Any]:
    """Change facts in the manifest of a run folder and return all of them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     _ = write_manifest(Path(run), {"seed": 0})
    ...     change_manifest(Path(run), seconds={"fit": 1.5})
    {'seed': 0, 'seconds': {'fit': 1.5}}
    """
    facts, unbroken = _read_sealed(folder)
    return write_manifest(folder, facts | changes, unbroken=unbroken)


def note_files(folder: Path, names: Iterable[str]) -> None:
    """Note the digests of files that were just written into a run folder."""
    facts, unbroken = _read_sealed(folder)
    digests = facts.get(FILES, {}) | {name: digest_of(folder / name) for name in names}
    write_manifest(folder, facts | {FILES: digests}, unbroken=unbroken)


def write_rows(folder: Path, name: str, rows: pl.DataFrame) -> None:
    """Write a small table into a run folder, whole or not at all, and note its digest."""
    with whole_file(folder / f"{name}.parquet") as partial:
        rows.write_parquet(partial, compression="zstd")
    note_files(folder, [f"{name}.parquet"])


def changed_files(path: str | Path) -> list[str]:
    """Name the files of a run folder that are gone, or no longer as a command wrote them."""
    folder, (facts, unbroken) = Path(path), _read_sealed(path)
    files = facts[FILES].items() if isinstance(facts.get(FILES), dict) else ()
    # A stranger's manifest may name files elsewhere: these are never read.
    inside = {name for name, _ in files if Path(name).name == name}
    gone = [name for name, digest in files
            if name not in inside or not (folder / name).exists() or digest_of(folder / name) != digest]  # fmt: skip
    return gone + [MANIFEST] * (not unbroken)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; of a folder of part files, that of their names and digests."""
    if path.is_dir():
        parts = "".join(f"{part.name} {digest_of(part)}\n" for part in sorted(path.iterdir()))
        return hashlib.sha256(parts.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain_facts(value: Any) -> Any:
    """Return facts as JSON has them: lists, names, numbers that are finite."""
    if isinstance(value, Mapping):
        return {str(key): plain_facts(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_facts(inner) for inner in value]
    if hasattr(value, "to_dicts"):  # Polars' frames
        return plain_facts(value.to_dicts())
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return plain_facts(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
