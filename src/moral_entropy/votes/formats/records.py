"""Files of annotation tools → records → a long table of votes; and the verdict inside a judge's text.

`peek` reads a quarter of a megabyte at most and never fails: what cannot be read has no names. No shape of a record is
taken for granted. The table has the columns item, annotator, question and label, then what the export says about the
item. A label column of lists means that some votes choose several labels.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import guess_column, plain_name
from moral_entropy.votes.formats.fields import at, dicts, mapping
from moral_entropy.votes.labels import canonical_label, series_of
from moral_entropy.votes.layouts import ANONYMOUS
from moral_entropy.votes.source import (
    MAGIC_GZIP,
    ZIP_ERRORS,
    find_header,
    is_stream,
    kind_of,
    marked_encoding,
    open_source,
    read_json,
    read_records,
)
from moral_entropy.votes.table import ReadingLog, refuse

HEAD_BYTES, LOOKED_AT = 1 << 18, 20
MOST_NESTED = 64
# A string may be cut off at the end of what was read; nothing after its opening quote is structure.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]:]', flags=re.DOTALL)

KeyPath = tuple[str, ...]


class Peek(NamedTuple):
    """What lies at a path.

    Parameters
    ----------
    kind
        folder, zip, parquet, json, text, or nothing if there is no such file.
    marks
        What signatures look for, in lower case and without underscores: columns, members of a zip, files of a folder;
        of JSON every key after the keys of the objects around it, as in `/data/text`, once more with a slash at its end
        where its value is an array.
    """

    kind: str
    marks: frozenset[str] = frozenset()

    def fits(self, signatures: Collection[str]) -> bool:
        """Return whether a signature fits: each of its patterns is one of the marks, or none after an exclamation."""
        return any(
            all(
                any(re.fullmatch(pattern.lstrip("!"), mark) for mark in self.marks) != pattern.startswith("!")
                for pattern in signature.split()
            )
            for signature in signatures
        )


class Format(NamedTuple):
    """How an export is read into a long table and recognised; where it may be a folder, which of its files count."""

    read: Callable[[Path, ReadingLog], Any]
    signatures: tuple[str, ...]
    files: tuple[str, ...]


FORMATS: dict[str, Format] = {}
"""The exports that can be read, by name; tried in this order."""

Reader = TypeVar("Reader", bound=Callable[..., Any])


def export_of(name: str, *signatures: str, files: Collection[str] = ()) -> Callable[[Reader], Reader]:
    """Make a function the reader of a format.

    Parameters
    ----------
    name
        As `--format` has it.
    *signatures
        What tells its files, any of them: see `Peek.fits`.
    files
        Patterns of the names of its files in a folder.
    """

    def add(read: Reader) -> Reader:
        FORMATS[name] = Format(read, signatures, tuple(files))
        return read

    return add


def detect_format(path: Path) -> str | None:
    """Return the format of a file or folder; None for a plain table, or what cannot be read."""
    head = peek(path)
    for name, tool in FORMATS.items():
        files = _in_folder(name, path)[:LOOKED_AT] if head.kind == "folder" else []
        if head.fits(tool.signatures) or any(peek(file).fits(tool.signatures) for file in files):
            return name
    return None


def files_of(name: str, path: Path) -> list[Path]:
    """Return the files of an export: the file itself, or those of a folder that the tool wrote."""
    files, signatures = _in_folder(name, path) if path.is_dir() else [path], FORMATS[name].signatures
    by_content = path.is_dir() and not peek(path).fits(signatures)
    return [file for file in files if peek(file).fits(signatures)] if by_content else files


def _in_folder(name: str, path: Path) -> list[Path]:
    return sorted(file for pattern in FORMATS[name].files for file in path.glob(pattern))


def peek(path: Path) -> Peek:
    """Return what lies at a path, a file or a folder: its kind and the names in it."""
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return Peek("nothing")
    if path.is_dir():
        files = [*path.glob("*"), *path.glob("*/*")]
        return Peek("folder", frozenset(plain_name(file.relative_to(path).as_posix()) for file in files))
    # A stream can be read once: its first bytes would be missing when its votes are read.
    return Peek("nothing") if is_stream(path) else _peek_file(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=32)
def _peek_file(path: Path, _size: int, _changed: int) -> Peek:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if head.startswith(MAGIC_GZIP):
            with gzip.open(path) as file:
                head = file.read(HEAD_BYTES)
        kind = kind_of(path, head)
        if kind == "parquet":
            return Peek(kind, frozenset(map(plain_name, pl.read_parquet_schema(path))))
        if kind in ("zip", "excel"):
            with zipfile.ZipFile(path) as archive:
                return Peek(kind, frozenset(map(plain_name, archive.namelist())))
        head = head.decode(marked_encoding(head) or "utf-8-sig", errors="ignore").encode(errors="ignore")
        if kind == "text":
            return Peek(kind, frozenset(map(plain_name, find_header(head, path)[0])))
    except (*ZIP_ERRORS, ValueError, VotesError, pl.exceptions.PolarsError):
        return Peek("nothing")
    keys, lists = key_paths(head)
    ends = [*((key, "") for key in keys), *((key, "/") for key in lists if key)]
    return Peek("json", frozenset("/" + "/".join(map(plain_name, key)) + end for key, end in ends))


def key_paths(head: bytes) -> tuple[frozenset[KeyPath], frozenset[KeyPath]]:
    """List the keys of JSON that may be cut off anywhere, and those whose value is an array.

    Examples
    --------
    >>> keys, lists = key_paths(b'[{"id": 1, "data": {"text": "a: {b"}, "annotations": [{"result": [{"va')
    >>> sorted(keys)
    [('annotations',), ('annotations', 'result'), ('data',), ('data', 'text'), ('id',)]
    >>> sorted(lists)
    [(), ('annotations',), ('annotations', 'result')]
    """
    keys: set[KeyPath] = set()
    lists: set[KeyPath] = set()
    around: list[tuple[KeyPath, KeyPath]] = []
    inside: KeyPath = ()
    value: KeyPath = ()
    string = b""
    for match in TOKEN.finditer(head):
        token = match[0]
        if token == b":":
            value = (*inside, _decoded(string))
            keys.add(value)
        elif token in (b"{", b"["):
            if len(around) > MOST_NESTED:
                break
            if token == b"[":
                lists.add(value)
            around.append((inside, value))
            inside = value
        elif token in (b"}", b"]"):
            inside, value = around.pop() if around else ((), ())
        else:
            string = token
    return frozenset(keys), frozenset(lists)


def _decoded(string: bytes) -> str:
    try:
        return str(json.loads(string))
    except ValueError:
        return string.decode(errors="replace")


def read_rows(path: Path, log: ReadingLog, inside: str = "") -> list[dict[str, Any]]:
    """Read records of JSON, which may be inside an object, or rows of a table; a cell of a CSV is a text, or None."""
    if peek(path).kind == "json":
        return dicts(at(read_json(path), inside)) if f"/{inside}/" in peek(path).marks else read_records(path)
    source = open_source(path)
    log.add(source.log)
    return pl.DataFrame([source.column(name).alias(name) for name in source.columns]).to_dicts()


# --- Votes, added one by one, and the verdict inside a text of a judge ----------------------------------------------

ROLES = ("item", "annotator", "question", "label")
MOST_CHOICES = 20
FREE_TEXT_FROM = 6
"""Fewer answers than this are too few to tell free text from labels."""

NO_VERDICT = " without a verdict"
"""Why there is no vote of a language model that was asked for one, after its name."""

ITEM_KEY, QUESTION_KEY = "moral_entropy_item", "moral_entropy_question"
"""Under these names our exports for annotation tools remember which item and question of a run a record is about."""

NOBODY_NAMED = "the votes are anonymous: all share one confusion matrix."

NAMES = "verdict|score|rating|grade|label|choice|winner|preference|decision|judgement|judgment|answer"
BRACKETS = re.compile(r"\[\[\s*([^\[\]\n]{1,40}?)\s*\]\]")
TAGS = re.compile(rf"<({NAMES})>\s*([^<\n]{{1,40}}?)\s*</\1>", re.IGNORECASE)
STATED = re.compile(
    rf"(?:^|[\s*_#(])(?:final\s+|overall\s+|my\s+)?(?:{NAMES})\**\s*(?:is|:|=)\s*[*_\"'`]*"
    r"(-?\d+(?:\.\d+)?|[A-Za-z]+)(?:\s*/\s*\d+)?", re.I
)  # fmt: skip
ALONE = re.compile(
    r"[\s*_\"'`(]*(yes|no|pass|fail|true|false|correct|incorrect|[A-E]|tie|-?\d+(?:\.\d+)?)[\s*_\"'`).!]*", re.I
)
FIRST_WORD = re.compile(r"[\s*_\"'`]*(yes|no)\b[\s*_\"'`]*[,.:;!\n-]", re.IGNORECASE)
KEYS = ("verdict", "score", "rating", "grade", "label", "choice", "winner", "preference", "decision", "pass", "answer")
"""Keys of a verdict in JSON, and names of one in a text."""

Vote = tuple[Any, Any, str, Any]
"""Item, annotator, question, and a label or a tuple of them."""


class ExportedVotes:
    """The votes of one export, added one by one.

    Parameters
    ----------
    name, tool
        Of the file, and of the tool that wrote it.
    log
        Where counts and notes go.
    judges
        Whether language models were asked, so that no label is a failure of a judge.
    """

    def __init__(self, name: str, tool: str, log: ReadingLog, *, judges: bool = False) -> None:
        self.name, self.tool, self.log, self.judges = name, tool, log, judges
        self.votes: list[Vote] = []
        self.facts: dict[Any, dict[str, Any]] = {}

    def add_item(self, item: Any, facts: Mapping[str, Any]) -> None:
        """Add an item, voted on or not, and facts about it."""
        present = {name: value for name, value in facts.items() if value is not None}
        self.facts.setdefault(_id(item), {}).update(present)

    def add_vote(self, item: Any, annotator: Any, question: Any, label: Any) -> None:
        """Add a vote; a list or tuple chooses all its labels, and none at all is counted, of judges by their names."""
        choice: str | tuple[str, ...] | None
        if isinstance(label, (list, tuple)):
            choice = tuple(dict.fromkeys(name for part in label if (name := canonical_label(part)) is not None))
        else:
            choice = None if isinstance(label, dict) else canonical_label(label)
        if annotator == ANONYMOUS:
            annotator = None
            self.log.note(NOBODY_NAMED)
        if choice is None:
            self.log.drop(f"{_id(annotator)}{NO_VERDICT}" if self.judges else "no label", 1)
        else:
            self.votes.append((_id(item), _id(annotator), str(question), choice))

    def to_table(self, hint: str, *, free_text: bool = False, surely: Collection[str] = ()) -> pl.DataFrame:
        """Return the votes as a long table.

        Parameters
        ----------
        hint
            What to do when there are no votes.
        free_text
            Whether some answers may be free text, to be left out.
        surely
            Questions whose answers are known to be labels.
        """
        votes = self._unwrapped(self._without_free_text(surely) if free_text else self.votes)
        if not votes:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in self.log.dropped.items())
            left_out = f" Left out: {reasons}." if reasons else ""
            refuse(f"{self.name}, read as an export of {self.tool}, has no votes.{left_out} {hint}")
        # An item that has no vote is kept as a row without one.
        voted, questions = {vote[0] for vote in votes}, sorted({vote[2] for vote in votes})
        votes += [(item, None, question, None) for item in self.facts if item not in voted for question in questions]
        cells = dict(zip(ROLES, zip(*votes, strict=True), strict=True))
        labels, dtype = list(cells["label"]), pl.DataType.from_python(str)
        if any(isinstance(label, tuple) for label in labels):
            labels, dtype = [[label] if isinstance(label, str) else label for label in labels], pl.List(pl.String)
        label_column = pl.Series("label", labels, dtype=dtype)
        column_of: dict[str, str] = {}
        for name in dict.fromkeys(name for facts in self.facts.values() for name in facts):
            # A name that would be taken for a part of the vote, or for gold labels, gets a prefix.
            is_role = name.strip().casefold() in ROLES or guess_column("gold", [name])
            column_of.setdefault(f"data.{name}" if is_role else name, name)
        about = [self.facts.get(item, {}) for item in cells["item"]]
        facts = [series_of(column, [fact.get(name) for fact in about]) for column, name in column_of.items()]
        return pl.DataFrame([*(series_of(role, list(cells[role])) for role in ROLES[:3]), label_column, *facts])

    def _unwrapped(self, votes: Sequence[Vote]) -> list[Vote]:
        """Take single choices out of their lists; with several to choose from, choosing none is a vote too."""
        multiple = {question for _, _, question, label in votes if isinstance(label, tuple) and len(label) > 1}
        plain = []
        for item, annotator, question, label in votes:
            if not isinstance(label, tuple) or question in multiple or label:
                single = isinstance(label, tuple) and question not in multiple
                plain.append((item, annotator, question, label[0] if single else label))
            else:
                self.log.drop("no choice", 1)
        return plain

    def _without_free_text(self, surely: Collection[str]) -> list[Vote]:
        answers: dict[str, list[Any]] = {}
        for _, _, question, label in self.votes:
            answers.setdefault(question, []).append(label)
        left_out = set()
        for question in answers.keys() - surely:
            # Many different answers, few of them given twice.
            labels, n = answers[question], len(answers[question])
            single = n >= FREE_TEXT_FROM and not any(isinstance(label, tuple) for label in labels)
            if single and len(set(labels)) > max(n / 5, min(MOST_CHOICES, n / 2 + 2)):
                left_out.add(question)
        if not left_out or len(left_out) == len(answers):
            return self.votes
        names = ", ".join(repr(question) for question in sorted(left_out))
        self.log.note(f"answers that look like free text are left out: {names}.")
        return [vote for vote in self.votes if vote[2] not in left_out]


def _id(value: Any) -> Any:
    """Return an id that is a text or a number, whatever the export holds in its place."""
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def verdict_in(text: Any) -> Any:
    """Return the verdict of a judge's text by stated patterns; None where it has none, which is the judge's failure.

    Looked for in this order: `[[A]]` (the last one), a JSON object with a verdict, `<verdict>A</verdict>`, a line such
    as `Score: 4` (the last one), and a text that is a verdict and nothing else, or begins with yes or no. A number,
    true or false is a verdict itself; of an object, the value of the first of `KEYS`.

    Examples
    --------
    >>> verdict_in("Both are fine, but [[B]]"), verdict_in("Clear and correct. Score: 4/5"), verdict_in("Yes, it does.")
    ('B', '4', 'Yes')
    >>> verdict_in('{"reason": "short", "score": 3}'), verdict_in("I cannot judge this.") is None
    (3, True)
    """
    if isinstance(text, dict):
        return next((text[key] for key in KEYS if text.get(key) not in (None, "")), None)
    if not isinstance(text, str):
        return text if isinstance(text, (bool, int, float)) else None
    if marked := BRACKETS.findall(text):
        return marked[-1]
    start, end = text.find("{"), text.rfind("}")
    with suppress(ValueError, RecursionError):
        verdict = verdict_in(mapping(json.loads(text[start : end + 1]))) if 0 <= start < end else None
        if isinstance(verdict, (str, bool, int, float)):
            return verdict
    if marked := TAGS.findall(text):
        return marked[-1][1]
    if stated := STATED.findall(text):
        return stated[-1]
    match = ALONE.fullmatch(text) or FIRST_WORD.match(text)
    return None if match is None else match[1]
