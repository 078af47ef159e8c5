"""Labels: cells that name several, a map that merges some and leaves out others, which one is positive.

Works on the distinct cells of a column, never on single votes.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from moral_entropy.options import ReadOptions
from moral_entropy.votes.table import UNKNOWN, Ints, ReadingLog, refuse, shown
from moral_entropy.votes.values import (
    NO,
    NONE,
    NUMBER,
    YES,
    canonical_label,
    code_labels,
    count_codes,
    distinct_cells,
    no_answers,
    recode,
    sort_labels,
    spell_label,
)

POSITIVE_NAMES = ("1", "true", "yes", "positive", "y", "t", "+1", "+", "pass", "correct", "c")
NEGATIONS = ("non", "not", "no")
PREFIXES = ("non-", "non", "un", "im", "in")
NEGATIVE_NAMES = frozenset(
    {*NEGATIONS, "neg", "negative", "none", "neither", "benign", "normal", "other", "absent", "false", "n", "f", "0",
     "nein", "nicht", "kein", "keine", "nee", "niet", "geen", "nej", "nie", "não", "nao", "нет"}
)  # fmt: skip
"""First words of a label that says that something is not there; the last line is not English."""

NO_YES = ("0", "1")
MOST_LABELS = 1_000
LIST_SEPARATOR = "\x1f"
SEPARATORS = "|;,\n/+&"
MOST_IN_LISTS, LONGEST_IN_LIST = 60, 60
"""More labels, or longer ones, are texts and no lists of labels."""

JSON_LIST = re.compile(r"\s*\[.*\]\s*", flags=re.DOTALL)
NOTHING = frozenset({"none", "nonmoral", "notmoral", "nm", "nothing", "noneoftheabove", "nolabel", "nofoundation"})
"""Labels that mean no to every other, where cells name several; in lower case, letters only."""

CLOSE = 0.84
"""Similarity of two spellings (`difflib`) from which a rare one may be a typing error of a frequent one."""

LabelMap = Mapping[str, str | None]
"""What each label is renamed to; None for one that is left out."""


class Cells(NamedTuple):
    """An answer column as codes of its distinct cells. Axes: **c** distinct cell, **r** row.

    Parameters
    ----------
    labels_c
        The labels of each cell, after the label map; None for a cell that is no vote.
    single_c
        Whether the cell names one label at most, before the label map.
    code_r
        Each row's cell; `UNKNOWN` where it is empty.
    separator
        What stands between the labels of a cell, if cells may name several; else empty.
    """

    labels_c: list[tuple[str, ...] | None]
    single_c: list[bool]
    code_r: Ints
    separator: str = ""


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
            target.update({canonical_label(label) or "": None for label in value})
        elif value is False or (isinstance(value, (str, int, float)) and value is not True):
            target[canonical_label(name) or ""] = None if value is False else canonical_label(value)
        else:
            refuse(
                f'{where} says {name} = {value!r}. Write {name} = "other label" to merge it, '
                f'or {name} = "" to leave it out.'
            )
    return target


def _map_cells(
    cells: list[tuple[str, ...] | None], n_c: Ints, options: ReadOptions, log: ReadingLog, *, lists: bool
) -> list[tuple[str, ...] | None]:
    """Merge and leave out labels as the label map says, and log how many votes that changed."""
    if not (label_map := load_label_map(options.labels)):
        return cells
    renamed, moved, mentions = [], 0, 0
    for cell, n in zip(cells, n_c, strict=True):
        names = [rename_label(label, label_map) for label in cell or ()]
        moved += int(n) * sum(name not in (label, None) for label, name in zip(cell or (), names, strict=True))
        mentions += int(n) * names.count(None)
        renamed.append(None if cell is None else tuple(sort_labels(name for name in names if name is not None)))
    if moved:
        log.note(f"the label map renamed {moved:,} votes.")
    labels = {label.casefold() for cell in cells for label in cell or ()}
    if idle := [name for name in label_map if name.casefold() not in labels]:
        log.note(f"{len(idle)} entries of the label map match no label: {shown(idle, 5)}.")
    if mentions and lists:
        left_out = f"the label map left out {mentions:,} mentions of a label"
        log.note(f"{left_out}; their votes still count as no to the others.")
    return renamed


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
    if words and len(labels) > len({plain in YES for plain in alike}) and all(plain in YES + NO for plain in alike):
        name_of = {plain: YES[0] if plain in YES else NO[0] for plain in alike}
    else:
        # The spelling with the fewest capitals.
        name_of = {plain: min(alike[plain], key=lambda label: (sum(map(str.isupper, label)), label)) for plain in alike}
    return {label: name_of[plain] for plain, spellings in alike.items() for label in spellings}


def note_same(name_of: Mapping[str, str], log: ReadingLog, subject: str = "labels") -> None:
    """Note which labels, or ids, are one."""
    spellings: dict[str, list[str]] = {}
    for label, name in name_of.items():
        if label != name:
            spellings.setdefault(name, []).append(repr(label))
    if spellings:
        names = shown([f"{name!r} (also {shown(labels, 5)})" for name, labels in spellings.items()], 5)
        log.note(f"{subject} that are spelt differently count as one: {names} (--keep-case keeps them apart).")


def note_blank(blank: Iterable[str], labels: Iterable[str], log: ReadingLog) -> None:
    """Note which words were taken for no answer, and that "none" was not."""
    if names := sorted(blank):
        log.note(f"taken for no answer: {shown(list(map(repr, names)))} (--missing names others).")
    if none := [label for label in labels if label.casefold() == NONE]:
        log.note(f"{none[0]!r} is read as a label (--missing {none[0]} takes it for no answer).")


def note_typing_errors(n_of: Mapping[str, int], log: ReadingLog) -> None:
    """Note rare labels whose spelling is close to that of a frequent one, with the lines of a label map for them.

    Examples
    --------
    >>> log = ReadingLog()
    >>> note_typing_errors({"authority": 90, "authorrity": 2, "care": 40}, log)
    >>> print(log.notes[0][:71])
    rare labels may be typing errors: 'authorrity' (2 votes) of 'authority'
    """
    errors = {}
    for label, n in n_of.items():
        frequent = [name for name, count in n_of.items() if count >= 10 * n and count > 5]
        for near in get_close_matches(label, frequent, n=1, cutoff=CLOSE) if len(label) > 3 else ():
            negated = any(
                label in (start + near, near.removeprefix(start)) for start in PREFIXES if start in label + near
            )
            if not negated and re.sub(r"\d", "", label) != re.sub(r"\d", "", near):
                errors[label] = near
    if errors:
        names = shown([f"{label!r} ({n_of[label]:,} votes) of {near!r}" for label, near in errors.items()])
        keys = {label: label if re.fullmatch(r"[A-Za-z0-9_-]+", label) else json.dumps(label) for label in errors}
        lines = "  and  ".join(f"{keys[label]} = {json.dumps(near)}" for label, near in errors.items())
        log.note(
            f"rare labels may be typing errors: {names}. To join them, write  {lines}  into a file labels.toml and add "
            "--labels labels.toml."
        )


# --- Cells of an answer column ------------------------------------------------------------------------------------


def code_cells(column: pl.Series, options: ReadOptions, log: ReadingLog) -> Cells:
    """Code the distinct cells of an answer column, each one label or several.

    Parameters
    ----------
    column
        Labels, texts such as `care, harm` or `["care"]`, or lists of labels. An empty text is no vote; an empty list
        names nothing, which is a vote.
    options
        What the user asked for: the separator (guessed where it is None), the label map (a cell from which all of
        several labels are left out is still a vote), which words mean no answer, and whether case matters.
    log
        Where notes go.

    Examples
    --------
    >>> cells = code_cells(pl.Series(["care, harm", "", "care", "harm"]), ReadOptions(), ReadingLog())
    >>> cells.labels_c, cells.code_r.tolist(), cells.separator
    ([('care',), ('care', 'harm'), ('harm',)], [1, -1, 0, 2], ',')
    """
    lists = column.dtype.is_nested()
    if lists:
        column = column.cast(pl.List(pl.String)).list.join(LIST_SEPARATOR).alias(column.name)
    distinct, code_r = distinct_cells(column)
    separator = options.multilabel or ""
    if lists:
        separator = LIST_SEPARATOR
    elif options.multilabel is None and distinct.dtype == pl.String:
        separator = guess_separator(distinct.to_list(), log, column.name)
    if separator:
        texts = [str(cell) for cell in distinct.to_list()]
        cells = _tidied_cells([split_cell(text, separator) for text in texts], options, log)
        # An empty list names nothing, which is a vote.
        votes = [cell or lists or JSON_LIST.fullmatch(text) for cell, text in zip(cells, texts, strict=True)]
        labels_c = [cell if is_vote else None for cell, is_vote in zip(cells, votes, strict=True)]
    else:
        coded = code_labels(column, options.missing)
        note_blank(coded.blank, coded.values.to_list() if options.missing is None else [], log)
        labels_c, code_r = [(label,) for label in coded.values.to_list()], coded.code_r
    check_few(len({label for cell in labels_c for label in cell or ()}), column.name, len(column))
    single_c = [cell is None or len(cell) < 2 for cell in labels_c]
    labels_c = _map_cells(labels_c, count_codes(code_r, len(labels_c)), options, log, lists=bool(separator))
    order = sorted(range(len(labels_c)), key=lambda c: labels_c[c] or ()) if separator else range(len(labels_c))
    place = {c: at for at, c in enumerate(order)}
    places = [UNKNOWN if cell is None else place[c] for c, cell in enumerate(labels_c)]
    code_r = recode(code_r, places)
    return Cells([labels_c[c] for c in order], [single_c[c] for c in order], code_r, separator)


def guess_separator(cells: Sequence[str], log: ReadingLog, name: str = "label") -> str:
    """Guess what stands between the labels of cells that name several; empty where each names one.

    The parts of a list recur: nearly all of them are also cells of their own.

    Examples
    --------
    >>> [guess_separator(cells, ReadingLog()) for cells in (["care|harm", "care", "harm"], ["yes, a bit", "no"])]
    ['|', '']
    """
    texts = [cell for cell in cells if cell.strip()]
    in_brackets = [text for text in texts if JSON_LIST.fullmatch(text)]
    if 2 * len(in_brackets) > len(texts):
        _note_lists(name, in_brackets[0], "in brackets", log)
        return ","
    for separator in SEPARATORS:
        lists = [(text, labels) for text in texts if len(labels := split_cell(text, separator)) > 1]
        if lists and _recur(texts, [labels for _, labels in lists], separator):
            _note_lists(name, lists[0][0], f"separated by {separator!r}", log)
            return separator
    return ""


def _note_lists(name: str, example: str, between: str, log: ReadingLog) -> None:
    log.note(
        f"cells of {name!r} such as {shown([example])!r} name several labels, {between} (guessed): each label is a "
        'yes/no question (--multilabel "" reads combinations as labels).'
    )


def _recur(texts: Sequence[str], lists: Sequence[tuple[str, ...]], separator: str) -> bool:
    """Return whether the parts of lists are labels: most are cells of their own, the others in several lists."""
    labels = {label.casefold() for cell in lists for label in cell}
    alone = {text.strip().casefold() for text in texts} & labels
    places = {label: sum(label in map(str.casefold, cell) for cell in lists) for label in labels - alone}
    if len(labels) > MOST_IN_LISTS or max(map(len, labels)) > LONGEST_IN_LIST:
        return False
    if separator not in "|;" and all(NUMBER.fullmatch(label) for label in labels):
        # 3,5 is a number and 1/2/2026 a date, but 1, 3 and 1,3,4 are lists.
        return separator == "," and (any(len(cell) > 2 for cell in lists) or any(", " in text for text in texts))
    if not alone:
        return len(labels) < len(lists) and min(places.values()) > 1
    return len(alone) == len(labels) or (len(alone) >= 3 and len(alone) >= 0.6 * len(labels))


def split_cell(cell: str, separator: str) -> tuple[str, ...]:
    """Split a cell into its distinct labels; commas in round brackets and the marks of a JSON list do not count.

    Examples
    --------
    >>> split_cell("care (kind, warm), harm", ","), split_cell('["care", "harm"]', ",")
    (('care (kind, warm)', 'harm'), ('care', 'harm'))
    """
    if JSON_LIST.fullmatch(cell):
        parts = [part.strip().strip("\"'") for part in cell.strip()[1:-1].split(",")]
    elif len(separator) == 1 and separator in SEPARATORS and "(" in cell:
        parts = re.split(re.escape(separator) + r"(?![^()]*\))", cell)
    else:
        parts = cell.split(separator)
    return tuple(dict.fromkeys(name for part in parts if (name := spell_label(part)) is not None))


def _tidied_cells(cells: list[tuple[str, ...]], options: ReadOptions, log: ReadingLog) -> list[tuple[str, ...]]:
    """Take out words that mean no answer, and call labels that differ only in case alike."""
    labels = sorted({label for cell in cells for label in cell})
    blank = no_answers(labels, options.missing)
    present = [label for label in labels if label not in blank]
    name_of = {label: label for label in present} if options.keep_case else same_labels(present, words=False)
    note_blank(blank, [], log)
    note_same(name_of, log)
    return [tuple(dict.fromkeys(name_of[label] for label in cell if label not in blank)) for cell in cells]


def means_nothing(label: str, options: ReadOptions) -> bool:
    """Return whether a label beside lists of labels means no to all of them; the label map can say otherwise."""
    plain = re.sub(r"[^a-z]", "", label.casefold())
    return plain in NOTHING and label.casefold() not in {name.casefold() for name in load_label_map(options.labels)}


def choose_classes(question: str, present: Sequence[str], n_k: Sequence[int], options: ReadOptions) -> tuple[str, ...]:
    """Return the labels of a question: those that occur, or those the user listed.

    Parameters
    ----------
    question
        Name of the question, for errors.
    present, n_k
        The labels that occur, sorted, and how often.
    options
        Its `classes` is a list of labels, or their number.
    """
    if options.classes is None:
        return tuple(present)
    if isinstance(options.classes, int):
        listed = _numbered(options.classes, present, question)
    else:
        names = [options.classes] if isinstance(options.classes, str) else options.classes
        listed = sort_labels(name for value in names if (name := canonical_label(value)) is not None)
    outside = [(label, n) for label, n in zip(present, n_k, strict=True) if label not in listed]
    if outside:
        votes = sum(n for _, n in outside)
        refuse(
            f"classes lists {len(listed)} labels ({shown(listed)}), but {votes:,} votes on {question!r} say something "
            f"else. First: {outside[0][0]!r}. Add it to classes (CLI: --classes), or leave it out with labels "
            "(CLI: --labels)."
        )
    if len(listed) < 2:
        refuse(f"classes lists {len(listed)} label. There must be two at least, or there is nothing to tell apart.")
    return tuple(listed)


def choose_positive(labels: Sequence[str], positive: str | None) -> tuple[int, bool]:
    """Return the index of the positive label, and whether it was guessed: by its meaning, else the last.

    Examples
    --------
    >>> choose_positive(("No", "Yes"), None), choose_positive(("a", "b"), "A"), choose_positive(("a", "b"), None)
    ((1, True), (0, False), (1, True))
    >>> choose_positive(("Hateful", "Non-hateful"), None), choose_positive(("cancer", "other"), None)
    ((0, True), (0, True))
    """
    if positive is not None and (at := match_label(positive, labels)) is not None:
        return at, False
    folded = [label.casefold() for label in labels]
    if (at := next((folded.index(name) for name in POSITIVE_NAMES if name in folded), None)) is not None:
        return at, True
    affirmed = [k for k, label in enumerate(folded) if not _is_negative(label, folded)]
    return affirmed[0] if len(labels) == 2 and len(affirmed) == 1 else len(labels) - 1, True


def _is_negative(label: str, labels: Sequence[str]) -> bool:
    first = re.split(r"[\W_]+", label.strip())[0]
    return first in NEGATIVE_NAMES or any(label == word + name for word in NEGATIONS for name in labels)


def match_label(name: object, labels: Sequence[str]) -> int | None:
    """Return the index of a label: spelt exactly so, else ignoring case, else by yes and no, if only one fits."""
    label_name = canonical_label(name)
    if label_name is None:
        return None
    if label_name in labels:
        return list(labels).index(label_name)
    plain = [label.casefold() for label in labels]
    close = [k for k, label in enumerate(plain) if label == label_name.casefold()]
    if not close and all(label in YES + NO for label in plain):
        kind = next((kind for kind in (YES, NO) if label_name.casefold() in kind), ())
        close = [k for k, label in enumerate(plain) if label in kind]
    return close[0] if len(close) == 1 else None


def check_few(n_labels: int, column: str, n_rows: int) -> None:
    """Refuse a column with more than a thousand distinct values, which can hardly be labels."""
    if n_labels > MOST_LABELS:
        refuse(
            f"the label column {column!r} has {n_labels:,} different values in {n_rows:,} rows: it does not look "
            'like labels. Name another with label="COLUMN" (CLI: --label COLUMN), or split cells such as '
            'care,harm with multilabel="," (CLI: --multilabel ",").'
        )


def _numbered(n_classes: int, present: Sequence[str], question: str) -> list[str]:
    """Return the labels when only their number is known."""
    if n_classes < len(present):
        refuse(
            f"classes is {n_classes}, but the votes on {question!r} have {len(present)} labels: {shown(present)}. "
            f"Use classes={len(present)} (CLI: --classes {len(present)}), or merge some with labels (CLI: --labels)."
        )
    for start in (0, 1):
        numbers = [str(k) for k in range(start, start + n_classes)]
        if n_classes == len(present) or set(present) <= set(numbers):
            return list(present) if n_classes == len(present) else numbers
    refuse(
        f"classes is {n_classes}, but the votes on {question!r} name only {len(present)}: {shown(present)}. "
        "List all of them by name (CLI: --classes a,b,c)."
    )


def _read_toml(path: Path) -> Mapping[str, Any]:
    try:
        if path.exists() and not path.is_file():
            problem = "is a pipe or a device, and is read more than once. Save it to a file first"
            refuse(f"the label map {str(path)!r} {problem}.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        refuse(f"the label map {str(path)!r} cannot be read: {error.strerror}.")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        refuse(f'the label map {path.name} is no TOML: {error}. Its lines read like  harm = "care".')
