"""Labels: cells that name several, a map that merges some and leaves out others, which one is positive.

Works on the distinct cells of a column, never on single votes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.source import is_stream
from moral_entropy.votes.table import UNKNOWN, Ints, ReadingLog, shown
from moral_entropy.votes.values import (
    NO,
    NONE,
    YES,
    Coded,
    canonical_label,
    coded_as,
    count_codes,
    distinct_cells,
    no_answers,
    recode,
    sort_labels,
    spell_label,
)

POSITIVE_NAMES = ("1", "true", "yes", "positive", "y", "t", "pass", "correct", "c")
NEGATIONS = ("non", "not", "no")
NEGATIVE_NAMES = frozenset(
    {*NEGATIONS, "neg", "negative", "none", "neither", "benign", "normal", "other", "absent", "false", "n", "f", "0",
     "nein", "nicht", "kein", "keine", "nee", "niet", "geen", "nej", "nie", "não", "nao", "нет"}
)  # fmt: skip
"""First words of a label that says that something is not there; the last line is not English."""

NO_YES = ("0", "1")
MOST_LABELS = 1_000
LIST_SEPARATOR = "\x1f"

LabelMap = Mapping[str, str | None]
"""What each label is renamed to; None for one that is left out."""


def rename_label(label: str, label_map: LabelMap) -> str | None:
    """Return what a label becomes, None if it is left out; an exact match goes before one that ignores case."""
    if label in label_map:
        return label_map[label]
    folded = {name.casefold(): target for name, target in label_map.items()}
    return folded.get(label.casefold(), label)


def load_label_map(labels: str | Path | Mapping[str, Any] | None) -> LabelMap:
    """Read a label map: a TOML file, or a mapping of the same shape.

    Parameters
    ----------
    labels
        `harm = "care"` merges, `nm = ""` or `nm = false` leaves out, as does `drop = ["nm", "x"]`.

    Examples
    --------
    >>> label_map = load_label_map({"harm": "care", "drop": ["nm"]})
    >>> [rename_label(label, label_map) for label in ("Harm", "nm", "loyalty")]
    ['care', None, 'loyalty']
    """
    if labels is None:
        return {}
    where = "the label map" if isinstance(labels, Mapping) else Path(labels).name
    entries = labels if isinstance(labels, Mapping) else _read_toml(Path(labels))
    target: dict[str, str | None] = {}
    for name, value in entries.items():
        if name == "drop" and isinstance(value, (list, tuple)):
            target.update({canonical_label(gone) or "": None for gone in value})
        elif value is False or (isinstance(value, (str, int, float)) and value is not True):
            target[canonical_label(name) or ""] = None if value is False else canonical_label(value)
        else:
            msg = (
                f'{where} says {name} = {value!r}. Write {name} = "other label" to merge it, '
                f'or {name} = "" to leave it out.'
            )
            raise VotesError(msg)
    return target


def map_labels(coded: Coded, options: ReadOptions, log: ReadingLog) -> Coded:
    """Merge and leave out labels of a coded column as the label map says, and log how many votes that changed."""
    if not (label_map := load_label_map(options.labels)):
        return coded
    old = coded.values.to_list()
    new = [rename_label(label, label_map) for label in old]
    n_k = count_codes(coded.code_r, len(old))
    gone = sum(int(n) for n, label in zip(n_k, new, strict=True) if label is None)
    moved = sum(int(n) for n, was, label in zip(n_k, old, new, strict=True) if label not in (None, was))
    log.drop("label left out by the label map", gone)
    _note_map(label_map, old, moved, log)
    return coded_as(new, coded.code_r)


def _note_map(label_map: LabelMap, labels: Iterable[str], moved: int, log: ReadingLog) -> None:
    if moved:
        log.note(f"the label map renamed {moved:,} votes.")
    seen = {label.casefold() for label in labels}
    idle = [name for name in label_map if name.casefold() not in seen]
    if idle:
        log.note(f"{len(idle)} entries of the label map match no label: {shown(idle, 5)}.")


def same_labels(labels: Sequence[str], *, words: bool = True) -> dict[str, str]:
    """Return what each label is called where some differ only in case or blanks, or all say yes or no.

    Parameters
    ----------
    labels
        Distinct labels of one question.
    words
        Whether y, true and 1 are yes, if all labels are of that kind and some say the same.

    Examples
    --------
    >>> same_labels(["Care", "care", "harm"])
    {'Care': 'care', 'care': 'care', 'harm': 'harm'}
    >>> same_labels(["0", "1"]), same_labels(["Y", "yes", "n"])
    ({'0': '0', '1': '1'}, {'Y': 'yes', 'yes': 'yes', 'n': 'no'})
    """
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(" ".join(label.casefold().split()), []).append(label)
    kinds = {plain in YES for plain in alike}
    if words and len(labels) > len(kinds) and all(plain in YES + NO for plain in alike):
        return {label: YES[0] if plain in YES else NO[0] for plain, several in alike.items() for label in several}
    # The spelling with the fewest capitals.
    spellings = {plain: sorted((sum(map(str.isupper, label)), label) for label in alike[plain]) for plain in alike}
    called = {plain: several[0][1] for plain, several in spellings.items()}
    return {label: called[plain] for plain, several in alike.items() for label in several}


def note_same(called: Mapping[str, str], log: ReadingLog) -> None:
    """Note which labels are one."""
    spellings: dict[str, list[str]] = {}
    for label, name in called.items():
        if label != name:
            spellings.setdefault(name, []).append(repr(label))
    if spellings:
        told = [f"{name!r} (also {shown(several, 5)})" for name, several in spellings.items()]
        log.note(f"labels that are spelt differently count as one: {shown(told, 5)} (--keep-case keeps them apart).")


def merge_same(coded: Coded) -> Coded:
    """Return a coded column with labels that are the same as one."""
    return coded_as([*same_labels(coded.values.to_list()).values()], coded.code_r)


def note_blank(blank: Iterable[str], labels: Iterable[str], log: ReadingLog) -> None:
    """Note which words were taken for no answer, and that "none" was not."""
    if names := sorted(blank):
        log.note(f"taken for no answer: {', '.join(map(repr, names))} (--missing names others).")
    if kept := [label for label in labels if label.casefold() == NONE]:
        log.note(f"{kept[0]!r} is read as a label (--missing {kept[0]} takes it for no answer).")


def code_label_sets(column: pl.Series, options: ReadOptions, log: ReadingLog) -> Coded:
    """Code a column whose cells name several labels; the distinct values are sorted lists of labels.

    Parameters
    ----------
    column
        Texts such as `care,harm`, or lists of labels. An empty text is no vote; an empty list names nothing.
    options
        What the user asked for: the separator, the label map (a cell from which all labels are left out is an empty
        list, and still a vote), which words mean no answer, and whether case matters.
    log
        Where notes go.

    Examples
    --------
    >>> cells = code_label_sets(pl.Series(["care, harm", "", "care"]), ReadOptions(multilabel=","), ReadingLog())
    >>> cells.values.to_list(), cells.code_r.tolist()
    ([['care'], ['care', 'harm']], [1, -1, 0])
    """
    lists, separator = isinstance(column.dtype, pl.List), options.multilabel
    if lists:
        separator = LIST_SEPARATOR
        column = column.cast(pl.List(pl.String)).list.join(separator)
    texts, code_r = distinct_cells(column.cast(pl.String))
    cells = _tidied_cells([_split_cell(cell, separator or ",") for cell in texts.to_list()], options, log)
    check_few(len({label for cell in cells for label in cell}), column.name, len(column))
    label_map = load_label_map(options.labels)
    _note_mapped_sets(cells, count_codes(code_r, len(texts)), label_map, log)
    new = [{rename_label(name, label_map) for name in cell} - {None} for cell in cells]
    mapped = [tuple(sorted(map(str, names))) if cell or lists else None for cell, names in zip(cells, new, strict=True)]
    order = {cell: k for k, cell in enumerate(sorted({cell for cell in mapped if cell is not None}))}
    places = [UNKNOWN if cell is None else order[cell] for cell in mapped]
    return Coded(pl.Series([list(cell) for cell in order], dtype=pl.List(pl.String)), recode(code_r, places))


def labels_in_sets(cells: Coded) -> list[str]:
    """Return all labels that some cell of `code_label_sets` names, sorted."""
    return sort_labels(cells.values.explode().drop_nulls().to_list())


def _split_cell(cell: str, separator: str) -> tuple[str, ...]:
    names = [spell_label(name) for name in cell.split(separator)]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _tidied_cells(cells: list[tuple[str, ...]], options: ReadOptions, log: ReadingLog) -> list[tuple[str, ...]]:
    """Take out words that mean no answer, and call labels that differ only in case alike."""
    labels = sorted({label for cell in cells for label in cell})
    blank = no_answers(labels, options.missing)
    kept = [label for label in labels if label not in blank]
    called = {label: label for label in kept} if options.keep_case else same_labels(kept, words=False)
    note_blank(blank, [] if options.missing is not None else kept, log)
    note_same(called, log)
    return [tuple(dict.fromkeys(called[label] for label in cell if label not in blank)) for cell in cells]


def _note_mapped_sets(cells: list[tuple[str, ...]], n_c: Ints, label_map: LabelMap, log: ReadingLog) -> None:
    if not label_map:
        return
    moved = gone = 0
    for cell, n in zip(cells, n_c, strict=True):
        new = [rename_label(name, label_map) for name in cell]
        gone += int(n) * new.count(None)
        moved += int(n) * sum(label not in (name, None) for name, label in zip(cell, new, strict=True))
    _note_map(label_map, {name for cell in cells for name in cell}, moved, log)
    if gone:
        log.note(f"the label map left out {gone:,} mentions of a label; their votes still count as no to the others.")


def choose_classes(question: str, found: Sequence[str], n_k: Sequence[int], options: ReadOptions) -> tuple[str, ...]:
    """Return the labels of a question: those that occur, or those the user listed.

    Parameters
    ----------
    question
        Name of the question, for errors.
    found, n_k
        The labels that occur, sorted, and how often.
    options
        Its `classes` is a list of labels, or their number.
    """
    if options.classes is None:
        return tuple(found)
    if isinstance(options.classes, int):
        listed = _numbered(options.classes, found, question)
    else:
        given = [options.classes] if isinstance(options.classes, str) else options.classes
        listed = sort_labels(name for value in given if (name := canonical_label(value)) is not None)
    outside = [(label, n) for label, n in zip(found, n_k, strict=True) if label not in listed]
    if outside:
        votes = sum(n for _, n in outside)
        msg = (
            f"classes lists {len(listed)} labels ({shown(listed)}), but {votes:,} votes on {question!r} say something "
            f"else. First: {outside[0][0]!r}. Add it to classes (CLI: --classes), or leave it out with labels "
            "(CLI: --labels)."
        )
        raise VotesError(msg)
    if len(listed) < 2:
        msg = f"classes lists {len(listed)} label. There must be two at least, or there is nothing to tell apart."
        raise VotesError(msg)
    return tuple(listed)


def choose_positive(labels: Sequence[str], asked: str | None) -> tuple[int, bool]:
    """Return the index of the positive label, and whether it was guessed: by its meaning, else the last.

    Examples
    --------
    >>> choose_positive(("No", "Yes"), None), choose_positive(("a", "b"), "A"), choose_positive(("a", "b"), None)
    ((1, True), (0, False), (1, True))
    >>> choose_positive(("Hateful", "Non-hateful"), None), choose_positive(("cancer", "other"), None)
    ((0, True), (0, True))
    """
    if asked is not None and (at := match_label(asked, labels)) is not None:
        return at, False
    folded = [label.casefold() for label in labels]
    if (named := next((folded.index(name) for name in POSITIVE_NAMES if name in folded), None)) is not None:
        return named, True
    affirmed = [k for k, label in enumerate(folded) if not _is_negative(label, folded)]
    return affirmed[0] if len(labels) == 2 and len(affirmed) == 1 else len(labels) - 1, True


def _is_negative(label: str, labels: Sequence[str]) -> bool:
    first = re.split(r"[\W_]+", label.strip())[0]
    return first in NEGATIVE_NAMES or any(label == word + other for word in NEGATIONS for other in labels)


def match_label(name: object, labels: Sequence[str]) -> int | None:
    """Return the index of a label: spelt exactly so, else ignoring case, else by yes and no, if only one fits."""
    wanted = canonical_label(name)
    if wanted is None:
        return None
    if wanted in labels:
        return list(labels).index(wanted)
    plain = [label.casefold() for label in labels]
    close = [k for k, label in enumerate(plain) if label == wanted.casefold()]
    if not close and all(label in YES + NO for label in plain):
        kind = next((kind for kind in (YES, NO) if wanted.casefold() in kind), ())
        close = [k for k, label in enumerate(plain) if label in kind]
    return close[0] if len(close) == 1 else None


def check_few(n_labels: int, column: str, n_rows: int) -> None:
    """Refuse a column with more than a thousand distinct values, which can hardly be labels."""
    if n_labels > MOST_LABELS:
        msg = (
            f"the label column {column!r} has {n_labels:,} different values in {n_rows:,} rows: it does not look "
            'like labels. Name another with label="COLUMN" (CLI: --label COLUMN), or split cells such as '
            'care,harm with multilabel="," (CLI: --multilabel ",").'
        )
        raise VotesError(msg)


def _numbered(n_classes: int, found: Sequence[str], question: str) -> list[str]:
    """Return the labels when only their number is known."""
    if n_classes < len(found):
        msg = (
            f"classes is {n_classes}, but the votes on {question!r} have {len(found)} labels: {shown(found)}. "
            f"Use classes={len(found)} (CLI: --classes {len(found)}), or merge some with labels (CLI: --labels)."
        )
        raise VotesError(msg)
    for start in (0, 1):
        numbers = [str(k) for k in range(start, start + n_classes)]
        if n_classes == len(found) or set(found) <= set(numbers):
            return list(found) if n_classes == len(found) else numbers
    msg = (
        f"classes is {n_classes}, but the votes on {question!r} name only {len(found)}: {shown(found)}. "
        "List all of them by name (CLI: --classes a,b,c)."
    )
    raise VotesError(msg)


def _read_toml(path: Path) -> Mapping[str, Any]:
    if is_stream(path):
        msg = f"the label map {str(path)!r} is a pipe or a device, and is read more than once. Save it to a file first."
        raise VotesError(msg)
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        msg = f"the label map {str(path)!r} cannot be read: {error.strerror}."
        raise VotesError(msg) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f'the label map {path.name} is no TOML: {error}. Its lines read like  harm = "care".'
        raise VotesError(msg) from error
