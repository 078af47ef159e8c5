"""Files on disk → `Source`: CSV, TSV, Parquet, JSON Lines and JSON arrays of records, each also gzipped.

The extension says what a file is; its first bytes correct it. Knows nothing of what a column means.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import hashlib
import io
import json
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from moral_entropy.errors import VotesError
from moral_entropy.votes.source import Source, from_polars, one_line
from moral_entropy.votes.values import NUMBER, series_of

if TYPE_CHECKING:
    import polars as pl

DELIMITERS = ",;\t|"
EXTENSIONS = {
    "parquet": "parquet", "pq": "parquet", "csv": "text", "tsv": "text", "tab": "text", "txt": "text",
    "json": "json", "jsonl": "lines", "ndjson": "lines",
}  # fmt: skip
MAGIC_PARQUET, MAGIC_GZIP, MAGIC_ZIP = b"PAR1", b"\x1f\x8b", b"PK\x03\x04"
UTF8_BOM, UTF16_BOMS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
STANDARD_INPUT = ("-", "/dev/stdin")


@contextmanager
def on_disk(source: Any) -> Iterator[Any]:
    """Replace a stream by a temporary file with all its bytes; anything else stays as it is.

    A file is read several times: to detect its format, to hash it, column by column. A stream can be read only once.

    Parameters
    ----------
    source
        "-" or "/dev/stdin" for standard input, the path of a pipe or a device, or any other source of votes.

    Yields
    ------
    Any
        The path of the copy, which has the name of the stream, or `source` itself.
    """
    if not is_stream(source):
        yield source
        return
    with TemporaryDirectory(prefix="moral-entropy-") as folder:
        copy = Path(folder) / Path("stdin" if str(source) in STANDARD_INPUT else source).name
        with _open_stream(source) as stream, copy.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        yield copy


def is_stream(source: Any) -> bool:
    """Tell whether a source is standard input, a pipe or a device, which can be read only once."""
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    return str(source) in STANDARD_INPUT or (path.exists() and not path.is_file() and not path.is_dir())


def _open_stream(source: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(source) not in STANDARD_INPUT:
        return Path(source).open("rb")
    if sys.stdin is None:
        msg = "standard input is closed. Name a file with the votes."
        raise VotesError(msg)
    return nullcontext(sys.stdin.buffer)


def open_files(source: str | Path | Sequence[str | Path]) -> Source:
    """Open one file, or the Parquet parts that a glob or a list names.

    Parameters
    ----------
    source
        A path, a glob such as `votes/*.parquet`, or a list of paths.
    """
    if isinstance(source, (str, Path)) and (Path(source).is_file() or not glob.has_magic(str(source))):
        return _open_file(Path(source))
    paths = _parts(source)
    if len(paths) == 1:
        return _open_file(paths[0])
    digest = hashlib.sha256()
    for path in paths:
        _check_parquet_part(path)
        hash_into(digest, path)
    return _open_parquet(paths, f"{paths[0].name} … {paths[-1].name}", digest.hexdigest())


def _open_file(path: Path) -> Source:
    head = head_of(path)
    if head.startswith(MAGIC_PARQUET):
        digest = hashlib.sha256()
        hash_into(digest, path)
        return _open_parquet([path], path.name, digest.hexdigest())
    raw = path.read_bytes()
    data = gunzip(raw, path.name) if raw.startswith(MAGIC_GZIP) else raw
    sha256 = hashlib.sha256(raw).hexdigest()
    kind = _kind(path, data)
    if kind == "parquet":
        return _open_parquet(io.BytesIO(data), path.name, sha256)
    check_utf8(data, path.name)
    data = data.removeprefix(UTF8_BOM)
    if kind == "text":
        return from_polars(_read_delimited(data, path), path.name, textual=True, sha256=sha256)
    return from_polars(_read_json(data, kind, path.name), path.name, sha256=sha256)


def _parts(source: str | Path | Sequence[str | Path]) -> list[Path]:
    one = isinstance(source, (str, Path))
    names = glob.glob(str(source)) if one else [str(part) for part in source]  # type: ignore[union-attr]  # noqa: PTH207
    if not names:
        what = f"no file matches {str(source)!r}" if one else "the list of files is empty"
        msg = f"{what}. Check the path and the folder you are in."
        raise VotesError(msg)
    return sorted(Path(name) for name in names)


def _check_parquet_part(path: Path) -> None:
    if not head_of(path).startswith(MAGIC_PARQUET):
        msg = f"{path.name} is not a Parquet file. Only Parquet can be read in several parts; join the others first."
        raise VotesError(msg)


def head_of(path: Path) -> bytes:
    """Read a file's first bytes, or say why there are none."""
    if is_stream(path):
        msg = f"{str(path)!r} is a pipe or a device, which can be read only once. Save what it holds to a file first."
        raise VotesError(msg)
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError as error:
        msg = f"there is no file {str(path)!r}. Check the path and the folder you are in."
        raise VotesError(msg) from error
    except IsADirectoryError as error:
        msg = f"{str(path)!r} is a folder. Name a file, or Parquet parts as {str(path / '*.parquet')!r}."
        raise VotesError(msg) from error
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror}."
        raise VotesError(msg) from error
    if not head:
        msg = f"{path.name} is empty (0 bytes). Was it written to the end?"
        raise VotesError(msg)
    return head


def hash_into(digest: Any, path: Path) -> None:
    """Add a file's bytes to a digest, block by block."""
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)


def gunzip(raw: bytes, name: str) -> bytes:
    """Unpack gzipped bytes."""
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"{name} is a damaged gzip file: {one_line(error)}. Was it copied whole?"
        raise VotesError(msg) from error


def _kind(path: Path, data: bytes) -> str:
    start = data.removeprefix(UTF8_BOM).lstrip()[:1]
    if not start:
        msg = f"{path.name} holds nothing but blank space. Was it written to the end?"
        raise VotesError(msg)
    if data.startswith(MAGIC_ZIP):
        msg = f"{path.name} is a zip file or an Excel workbook. Save the sheet with the votes as CSV (UTF-8)."
        raise VotesError(msg)
    if data.startswith(MAGIC_PARQUET):
        return "parquet"
    suffixes = [suffix.lstrip(".").lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    said = EXTENSIONS.get(suffixes[-1], "") if suffixes else ""
    if said == "parquet":
        msg = f"{path.name} is not a Parquet file, whatever its name says: it does not start with PAR1."
        raise VotesError(msg)
    if said == "text":
        return said
    return {b"[": "json", b"{": "lines"}.get(start, said or "text")


def check_utf8(data: bytes, name: str) -> None:
    """Refuse bytes that are not UTF-8, naming the first of them."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    size, at = 1 << 24, 0
    try:
        for at in range(0, len(data), size):
            decoder.decode(data[at : at + size], final=at + size >= len(data))
    except UnicodeDecodeError as error:
        # The decoder may have carried a few bytes over from the block before.
        carried = len(error.object) - len(data[at : at + size])
        offset = at - carried + error.start
        line = data.count(b"\n", 0, offset) + 1
        utf16 = data.startswith(UTF16_BOMS)
        msg = (
            f"{name} is not UTF-8: byte {offset:,} (line {line:,}) is 0x{data[offset]:02x}. Save it as UTF-8, or run: "
            f"iconv -f {'UTF-16' if utf16 else 'WINDOWS-1252'} -t UTF-8 {name} > utf8-{name.removesuffix('.gz')}"
        )
        raise VotesError(msg) from error


def _read_delimited(data: bytes, path: Path) -> pl.DataFrame:
    import polars as pl

    header, delimiter = header_of(data, path)
    if all(not cell.strip() or NUMBER.fullmatch(cell.strip()) for cell in header):
        msg = (
            f"{path.name} seems to have no header: its first line is {', '.join(header)}. "
            "Add a first line with the names of the columns, such as item,annotator,label."
        )
        raise VotesError(msg)
    try:
        frame = pl.read_csv(data, separator=delimiter, infer_schema=False)
    except pl.exceptions.NoDataError as error:
        msg = f"{path.name} has no header and no rows."
        raise VotesError(msg) from error
    except pl.exceptions.PolarsError as error:
        raise VotesError(_ragged(data, delimiter, len(header), path.name) or _unreadable(path.name, error)) from error
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def header_of(data: bytes, path: Path) -> tuple[list[str], str]:
    """Read the first line, split by whichever delimiter splits it most."""
    end = data.find(b"\n")
    line = data[: end if end >= 0 else len(data)].decode().rstrip("\r")
    # A tie goes to the delimiter that the extension promises.
    promised = "\t" if ".tsv" in path.suffixes or ".tab" in path.suffixes else ","
    try:
        rows = {delimiter: next(csv.reader([line], delimiter=delimiter), []) for delimiter in DELIMITERS}
    except csv.Error as error:
        msg = f"the first line of {path.name} is no header: {error}. Save it as CSV (UTF-8), one row per line."
        raise VotesError(msg) from error
    best = max(DELIMITERS, key=lambda delimiter: (len(rows[delimiter]), delimiter == promised))
    return rows[best], best


def _ragged(data: bytes, delimiter: str, width: int, name: str) -> str:
    """Find the first row that has more cells than the header."""
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8", newline=""), delimiter=delimiter)
    try:
        for row in rows:
            if len(row) > width:
                return (
                    f"line {rows.line_num:,} of {name} has {len(row)} cells, the header has {width}. "
                    f"Put texts that contain {delimiter!r} in double quotes."
                )
    except csv.Error:
        pass
    return ""


def _unreadable(name: str, error: Exception) -> str:
    return f"{name} cannot be read: {one_line(error)}. Is a double quote left open?"


def _open_parquet(source: Any, name: str, sha256: str) -> Source:
    import polars as pl

    try:
        return from_polars(pl.scan_parquet(source, glob=False), name, sha256=sha256)
    except (OSError, pl.exceptions.PolarsError) as error:
        msg = f"{name} is a damaged or truncated Parquet file: {one_line(error)}. Write or copy it anew."
        raise VotesError(msg) from error


def _read_json(data: bytes, kind: str, name: str) -> pl.DataFrame:
    records = json_array(data, name) if kind == "json" else json_lines(data, name)
    return _frame_of_records(records, name)


def json_array(data: bytes, name: str) -> list[Any]:
    """Parse a JSON array of records."""
    records = json_value(data, name)
    if not isinstance(records, list):
        msg = f"{name} holds one {type(records).__name__}, not a list of votes. Write a JSON array of records."
        raise VotesError(msg)
    return records


def json_value(data: bytes, name: str) -> Any:
    """Parse a file that is one JSON value."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        msg = f"{name} is no JSON: {error.msg} in line {error.lineno:,}. Was it written to the end?"
        raise VotesError(msg) from error
    except RecursionError as error:
        raise VotesError(_too_deep(name)) from error


def _too_deep(name: str) -> str:
    return f"{name} is JSON nested too deeply to be read. Check what wrote it."


def json_lines(data: bytes, name: str) -> list[Any]:
    """Parse JSON Lines: one record per line."""
    records = []
    for number, line in enumerate(io.BytesIO(data), 1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            msg = f"line {number:,} of {name} is no JSON: {error.msg}. JSON Lines have one record per line."
            raise VotesError(msg) from error
        except RecursionError as error:
            raise VotesError(_too_deep(name)) from error
    return records


def _frame_of_records(records: list[Any], name: str) -> pl.DataFrame:
    import polars as pl

    columns: dict[str, list[Any]] = {}
    for at, record in enumerate(records):
        if not isinstance(record, dict):
            msg = f"record {at + 1:,} of {name} is no record but {json.dumps(record)[:40]}. Write {{…}} for each vote."
            raise VotesError(msg)
        for key, value in record.items():
            cells = columns.setdefault(key, [])
            cells.extend([None] * (at - len(cells)))
            cells.append(value)
    for cells in columns.values():
        cells.extend([None] * (len(records) - len(cells)))
    return pl.DataFrame([series_of(key, cells) for key, cells in columns.items()])
