"""Cells of any type as small integers, and labels: several in a cell, merged or left out by a map, the positive one.

Cells are reduced to their distinct values first, and only those are looked at: there is no Python object per row.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.options import ReadOptions
from moral_entropy.votes.scales import names_ratings
from moral_entropy.votes.table import BLOCK, UNKNOWN, Ints, ReadingLog, refuse, shown

MISSING = frozenset({"", "NA", "<NA>", "NaN", "nan", "null", "NULL", "N/A", "n/a", "#N/A"})
"""Texts that stand for an empty cell in any column. "none" is not one of them: in some corpora it is a label."""

NO_ANSWER = frozenset({"na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "-", "--", "–", "?", "no answer"})
"""Labels that mean that nobody answered, in lower case; "none" is one among yes and no and among numbers."""

NONE = "none"
VERDICTS = frozenset(re.findall(r"\w+", "pass fail passed failed correct incorrect right wrong tie c i p"))
"""Words of judges beside which "none" and "error" are no labels."""

MACHINE_ERROR = re.compile(
    r"(api|http|server|parse|parsing|json|connection|timeout|key|value|type|rate ?limit)?[ _]?(error|exception)\b.*\d.*"
    r"|(\w+ ?)?(error|exception|failed to \w+)[:(].*|(http|status)[ :]*[45]\d\d\b.*|.*rate[ _-]?limit.*|traceback.*"
    r"|(request )?time[ds]?[ -]?out.*|#(ref|value|name\?|div/0|num|null)!?",
    flags=re.DOTALL,
)
"""Error texts of machines in place of an answer, in lower case."""

YES, NO = ("yes", "y", "true", "t", "1"), ("no", "n", "false", "f", "0")

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
MINUS = "\N{MINUS SIGN}"
INTEGRAL = r"^-?(0|[1-9][0-9]{0,18})(\.0+)?$"
DECIMAL = re.compile(r"[0-9]+\.[0-9]*[1-9][0-9]*")
MAX_SHORT = np.iinfo(np.int16).max
EXACT, EXACT_SHORT = 2**53, 2**24
"""From here on two whole numbers can be the same float, of 64 and of 32 bits."""


class Coded(NamedTuple):
    """A column as codes. Axis: **r** row.

    Parameters
    ----------
    values
        The distinct values, canonical and sorted.
    code_r
        For every row the position of its value; `UNKNOWN` where the cell is empty.
    blank
        What cells say that are empty but for a word such as `NA`.
    """

    values: pl.Series
    code_r: Ints
    blank: tuple[str, ...] = ()


def code_ids(column: pl.Series, *, textual: bool = False) -> Coded:
    """Code a column of ids: integers where all of them are, else stripped strings.

    Parameters
    ----------
    column
        The ids, of any type.
    textual
        Whether the column comes from a file without types, so that "7" may well be a number.

    Examples
    --------
    >>> import polars as pl
    >>> ids = code_ids(pl.Series([2.0, 1.0, None]))
    >>> ids.values.to_list(), ids.code_r.tolist()
    ([1, 2], [1, 0, -1])
    >>> code_ids(pl.Series(["10", "9", "a "]), textual=True).values.to_list()
    ['10', '9', 'a']
    """
    distinct, code_r = distinct_cells(column)
    if distinct.dtype.is_integer():
        return Coded(distinct, code_r)
    if distinct.dtype.is_float():
        exact = EXACT if distinct.dtype == pl.Float64 else EXACT_SHORT
        if len(large := distinct.filter(distinct.is_finite() & (distinct.abs() >= exact))):
            problem = f"{len(large):,} ids of column {column.name!r} are floats of {exact:,} or more, which are rounded"
            refuse(f"{problem}. First: {large[0]:.17g}. Write ids as whole numbers or as text.")
        integral = (distinct.is_finite() & (distinct == distinct.floor())).all()
        spelt = distinct.cast(pl.Int64 if integral else pl.String)
    else:
        spelt = distinct.cast(pl.String).str.strip_chars()
        spelt = spelt.set(spelt.is_in(list(MISSING)), None)
        if textual and spelt.str.contains(INTEGRAL).all():
            numbers = spelt.str.replace(r"\.0+$", "").cast(pl.Int64, strict=False)
            spelt = numbers if numbers.null_count() == spelt.null_count() else spelt
    # Distinct cells that mean the same become one.
    values = spelt.drop_nulls().unique().sort()
    places = values.search_sorted(spelt).cast(pl.Int64).set(spelt.is_null(), UNKNOWN)
    return Coded(values, recode(code_r, places.to_numpy()))


def code_labels(column: pl.Series, missing: Collection[str] | None = None) -> Coded:
    """Code a column of labels: always strings, and `0`, `0.0` and `"0"` are one label.

    Parameters
    ----------
    column
        The labels, of any type.
    missing
        Labels that mean no answer; None for the usual ones.

    Examples
    --------
    >>> import polars as pl
    >>> labels = code_labels(pl.Series(["10", " 9", "9.0", "NA"]))
    >>> labels.values.to_list(), labels.code_r.tolist()
    (['9', '10'], [1, 0, 0, -1])
    >>> code_labels(pl.Series(["True", "FALSE"])).values.to_list()
    ['false', 'true']
    """
    distinct, code_r = distinct_cells(column)
    cells = distinct.to_list()
    spelt = [spell_label(cell) for cell in cells]
    numbers = {cell.strip() for cell in cells if isinstance(cell, str) and DECIMAL.fullmatch(cell.strip())}
    if len(numbers) > len({number.rstrip("0") for number in numbers}):
        # 1.1 and 1.10 in one column are codes, such as those of a taxonomy, and no numbers.
        texts = [str(cell).strip() for cell in cells]
        spelt = [text if text in numbers else name for text, name in zip(texts, spelt, strict=True)]
    if {name.casefold() for name in spelt if name} <= {"true", "false"}:
        spelt = [name and name.casefold() for name in spelt]
    blank = no_answers((name for name in spelt if name), missing)
    place = {name: k for k, name in enumerate(sort_labels(name for name in spelt if name and name not in blank))}
    code_r = recode(code_r, [place.get(name or "", UNKNOWN) for name in spelt])
    return Coded(pl.Series(list(place), dtype=pl.String), code_r, tuple(sorted(blank)))


def no_answers(labels: Iterable[str], missing: Collection[str] | None = None) -> set[str]:
    """Return the labels that mean no answer, judged by all labels of a question.

    Parameters
    ----------
    labels
        The distinct labels.
    missing
        Those that the user named, in any case; None for the usual ones.

    Examples
    --------
    >>> sorted(no_answers(["yes", "no", "N/A", "none"])), sorted(no_answers(["care", "none", "?"]))
    (['N/A', 'none'], ['?'])
    >>> no_answers(["+", "-"]), no_answers(["yes", "skip", "NA"], missing=["Skip"])
    (set(), {'skip'})
    """
    folded = {label: label.casefold() for label in labels}
    if missing is not None:
        words = {name.strip().casefold() for name in missing}
        return {label for label, plain in folded.items() if plain in words}
    blank = {label for label, plain in folded.items() if plain in NO_ANSWER or MACHINE_ERROR.fullmatch(plain)}
    present = {plain for label, plain in folded.items() if label not in blank and plain not in (NONE, "error")}
    if "+" in present:
        blank.discard("-")
    if present and all(plain in YES + NO or plain in VERDICTS or NUMBER.fullmatch(plain) for plain in present):
        blank |= {label for label, plain in folded.items() if plain in (NONE, "error")}
    return blank if len(blank) < len(folded) or all(plain in NO_ANSWER for plain in folded.values()) else set()


def recode(code_r: Ints, new_of: Sequence[int] | Ints) -> Ints:
    """Replace every code by `new_of[code]`; an empty row stays empty.

    Parameters
    ----------
    code_r
        The codes, `UNKNOWN` where there is none.
    new_of
        The new code for every old one.

    Examples
    --------
    >>> recode(np.array([0, -1, 1]), [5, -1]).tolist()
    [5, -1, -1]
    """
    # The code of an empty row, -1, finds the last entry.
    lookup = np.append(np.asarray(new_of, dtype=np.int64), UNKNOWN)
    narrow: Ints = lookup.astype(np.int16 if lookup.max(initial=0) < MAX_SHORT else np.int32)
    return np.take(narrow, code_r)


def count_codes(code_v: Ints, n_codes: int) -> Ints:
    """Count how often each code occurs, without empty rows and without a copy of the whole array.

    Examples
    --------
    >>> count_codes(np.array([2, 0, -1, 2]), 4).tolist()
    [1, 0, 2, 0]
    """
    counts = np.zeros(n_codes + 1, dtype=np.int64)
    step = max(BLOCK, n_codes)
    for at in range(0, len(code_v), step):
        counts += np.bincount(code_v[at : at + step].astype(np.int64) + 1, minlength=n_codes + 1)
    return counts[1:]


def canonical_label(value: Any) -> str | None:
    """Spell one value as a label; `None` for an empty cell, and for a word such as `NA`."""
    name = spell_label(value)
    return None if name in MISSING else name


def spell_label(value: Any) -> str | None:
    """Spell one value as a label; `None` for an empty cell."""
    if value is None or value != value:
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    text = str(value).strip()
    if NUMBER.fullmatch(text) or NUMBER.fullmatch(text.replace(MINUS, "-")):
        text = text.replace(MINUS, "-")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    return text or None


def sort_labels(labels: Iterable[str]) -> list[str]:
    """Sort distinct labels: as numbers if all of them are, else as text.

    Examples
    --------
    >>> sort_labels(["10", "9", "-1"]), sort_labels(["10", "9", "x"])
    (['-1', '9', '10'], ['10', '9', 'x'])
    """
    distinct = set(labels)
    if all(NUMBER.fullmatch(label) for label in distinct):
        return sorted(distinct, key=lambda label: (float(label), label))
    return sorted(distinct)


def series_of(name: str, values: list[Any]) -> pl.Series:
    """Make a column of Python objects; of mixed types, each is spelt as a label.

    Whole numbers in a column with floats stay apart: from 2**53 on, where two can be the same float, all become text.

    Parameters
    ----------
    name
        Name of the column.
    values
        Its cells, `None` where empty.

    Examples
    --------
    >>> series_of("label", [1, "1", True, None]).to_list()
    ['1', '1', '1', None]
    >>> series_of("item", [2**53, 2**53 + 1, 7.0]).to_list()
    ['9007199254740992', '9007199254740993', '7']
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds & {dict, list}:
        # A record, or a list with anything but texts and numbers in it, becomes a text.
        plain = [not isinstance(value, dict) and not (isinstance(value, list) and {dict, list} & set(map(type, value)))
                 for value in values]  # fmt: skip
        cells = zip(values, plain, strict=True)
        values = [value if is_plain else json.dumps(value, ensure_ascii=False) for value, is_plain in cells]
        kinds = {type(value) for value in values if value is not None}
    try:
        if len(kinds) <= 1:
            return pl.Series(name, values)
        if kinds == {int, float} and not any(isinstance(value, int) and abs(value) >= EXACT for value in values):
            return pl.Series(name, values, dtype=pl.Float64)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        pass
    numbers = any(issubclass(kind, Real) and not issubclass(kind, (bool, np.bool_)) for kind in kinds)
    numbers = numbers or any(isinstance(value, str) and NUMBER.fullmatch(value.strip()) for value in values)
    if numbers:
        # Beside 0 and 1, true and false mean the same two things.
        values = [int(value) if isinstance(value, (bool, np.bool_)) else value for value in values]
    return pl.Series(name, [canonical_label(value) for value in values], dtype=pl.String)


def distinct_cells(column: pl.Series) -> tuple[pl.Series, Ints]:
    """Return the distinct cells of a column, and for each row the position of its cell among them."""
    if column.dtype == pl.Boolean:
        return pl.Series([False, True]), column.cast(pl.Int16).fill_null(UNKNOWN).to_numpy()
    is_integer, is_float = column.dtype.is_integer(), column.dtype.is_float()
    is_long = column.dtype in (pl.UInt64, pl.Int128)
    if is_long and column.cast(pl.Int64, strict=False).null_count() > column.null_count():
        is_integer, column = False, column.cast(pl.String)
    if not is_integer and not is_float:
        text = as_text(column)
        distinct = text.drop_nulls().unique().sort()
        return distinct, text.cast(pl.Enum(distinct)).to_physical().cast(pl.Int32).fill_null(UNKNOWN).to_numpy()
    column = column.fill_nan(None) if is_float else column
    distinct = column.drop_nulls().unique().sort()
    code_r: Ints = np.empty(len(column), dtype=np.int16 if len(distinct) <= MAX_SHORT else np.int32)
    # Blocks: positions of 64 bits for every row would be more than the column.
    for at in range(0, len(column), BLOCK):
        block = column.slice(at, BLOCK)
        code_r[at : at + BLOCK] = distinct.search_sorted(block).cast(pl.Int64).set(block.is_null(), UNKNOWN).to_numpy()
    return distinct.cast(pl.Int64) if is_integer else distinct, code_r


def as_text(column: pl.Series) -> pl.Series:
    """Return a column of any type as text."""
    if column.dtype == pl.String:
        return column
    try:
        # A cast leaves out fractions of a second.
        return column.dt.to_string("%H:%M:%S%.f") if column.dtype == pl.Time else column.cast(pl.String)
    except pl.exceptions.PolarsError:
        return pl.Series(column.name, [canonical_label(value) for value in column.to_list()], dtype=pl.String)


# --- Labels: renamed, joined, split, chosen -------------------------------------------------------------------------

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
    several_c
        Whether the cell names several labels, before the label map.
    code_r
        Each row's cell; `UNKNOWN` where it is empty.
    separator
        What stands between the labels of a cell, if cells may name several; else empty.
    """

    labels_c: list[tuple[str, ...] | None]
    several_c: list[bool]
    code_r: Ints
    separator: str = ""


def load_label_map(labels: str | Path | Mapping[str, Any] | None) -> LabelMap:
    """Read a label map: a TOML file, or a mapping of the same shape; labels to rename are in lower case.

    Parameters
    ----------
    labels
        `harm = "care"` merges, `nm = ""` or `nm = false` leaves out, as does `drop = ["nm", "x"]`.

    Examples
    --------
    >>> load_label_map({"Harm": "care", "drop": ["nm"]})
    {'harm': 'care', 'nm': None}
    """
    if labels is None:
        return {}
    where, entries = ("the label map", labels) if isinstance(labels, Mapping) else (Path(labels).name, {})
    if not isinstance(labels, Mapping):
        if (path := Path(labels)).exists() and not path.is_file():
            problem = "is a pipe or a device, and is read more than once. Save it to a file first"
            refuse(f"the label map {str(path)!r} {problem}.")
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            refuse(f"the label map {str(path)!r} cannot be read: {error.strerror}.")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            refuse(f'the label map {path.name} is no TOML: {error}. Its lines read like  harm = "care".')
    target: dict[str, str | None] = {}
    for name, value in entries.items():
        if name == "drop" and isinstance(value, (list, tuple)):
            target.update({(canonical_label(label) or "").casefold(): None for label in value})
        elif value is False or (isinstance(value, (str, int, float)) and value is not True):
            target[(canonical_label(name) or "").casefold()] = None if value is False else canonical_label(value)
        else:
            refuse(f'{where} says {name} = {value!r}. Write {name} = "label" to merge it, {name} = "" to leave it out.')
    return target


def _map_cells(
    cells: list[tuple[str, ...] | None], n_c: Ints, labels: str | Path | Mapping[str, Any], log: ReadingLog
) -> list[tuple[str, ...] | None]:
    """Merge and leave out labels as the label map says, and log how many votes that changed."""
    label_map, renamed, moved = load_label_map(labels), [], 0
    for cell, n in zip(cells, n_c, strict=True):
        names = [label_map.get(label.casefold(), label) for label in cell or ()]
        moved += int(n) * sum(name not in (label, None) for label, name in zip(cell or (), names, strict=True))
        renamed.append(None if cell is None else tuple(sort_labels(name for name in names if name is not None)))
    if moved:
        log.note(f"the label map renamed {moved:,} votes.")
    present = {label.casefold() for cell in cells for label in cell or ()}
    if idle := [name for name in label_map if name not in present]:
        log.note(f"{len(idle)} entries of the label map match no label: {shown(idle, 5)}.")
    return renamed


def same_labels(labels: Sequence[str], options: ReadOptions, log: ReadingLog, *, words: bool = True) -> dict[str, str]:
    """Return what each label is called where some differ only in case or blanks, or all say yes or no; note it.

    Parameters
    ----------
    labels
        Distinct labels of one question.
    options
        Its `keep_case` keeps all apart.
    log
        Where notes go.
    words
        Whether y, true and 1 are yes, if all labels are of that kind and some say the same.

    Examples
    --------
    >>> same_labels(["Care", "care", "harm"], ReadOptions(), ReadingLog())
    {'Care': 'care', 'care': 'care', 'harm': 'harm'}
    >>> same_labels(["Y", "yes", "n"], ReadOptions(), ReadingLog())
    {'Y': 'yes', 'yes': 'yes', 'n': 'no'}
    """
    if options.keep_case:
        return {label: label for label in labels}
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(" ".join(label.casefold().split()), []).append(label)
    if words and len(labels) > len({plain in YES for plain in alike}) and all(plain in YES + NO for plain in alike):
        name_of = {plain: YES[0] if plain in YES else NO[0] for plain in alike}
    else:
        # The spelling with the fewest capitals.
        name_of = {plain: min(alike[plain], key=lambda label: (sum(map(str.isupper, label)), label)) for plain in alike}
    spelling_of = {label: name_of[plain] for plain, spellings in alike.items() for label in spellings}
    if any(label != name for label, name in spelling_of.items()):
        note_same(spelling_of, log)
    return spelling_of


def note_same(name_of: Mapping[str, str], log: ReadingLog, subject: str = "labels") -> None:
    """Note which labels, or ids, are one."""
    spellings: dict[str, list[str]] = {}
    for label, name in name_of.items():
        if label != name:
            spellings.setdefault(name, []).append(repr(label))
    names = shown([f"{name!r} (also {shown(labels, 5)})" for name, labels in spellings.items()], 5)
    log.note(f"{subject} that are spelt differently count as one: {names} (--keep-case keeps them apart).")


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
            starts = [start for start in PREFIXES if start in label + near]
            negated = any(label in (start + near, near.removeprefix(start)) for start in starts)
            if not negated and re.sub(r"\d", "", label) != re.sub(r"\d", "", near):
                errors[label] = near
    if errors:
        names = shown([f"{key!r} ({n_of[key]:,} vote{'s' * (n_of[key] > 1)}) of {errors[key]!r}" for key in errors])
        keys = {label: label if re.fullmatch(r"[A-Za-z0-9_-]+", label) else json.dumps(label) for label in errors}
        lines = "  and  ".join(f"{keys[label]} = {json.dumps(near)}" for label, near in errors.items())
        way = f"write  {lines}  into a file labels.toml and add --labels labels.toml"
        log.note(f"rare labels may be typing errors: {names}. To join them, {way}.")


# --- Cells of an answer column ------------------------------------------------------------------------------------


def code_cells(column: pl.Series, options: ReadOptions, log: ReadingLog) -> Cells:
    """Code the distinct cells of an answer column, each one label or several.

    Parameters
    ----------
    column
        Labels, texts such as `care, harm` or `["care"]`, or lists of labels. An empty text is no vote; an empty list
        names nothing, which is a vote. Its name is for notes, empty where columns were put below each other.
    options
        What the user asked for: the separator (guessed where it is None), the label map (a cell from which all of
        several labels are left out is still a vote), which words mean no answer, and whether case matters.
    log
        Where notes go.

    Examples
    --------
    >>> cells = code_cells(pl.Series(["care, harm", "", "care", "harm"]), ReadOptions(), ReadingLog())
    >>> cells.labels_c, cells.code_r.tolist(), cells.separator
    ([None, ('care',), ('care', 'harm'), ('harm',)], [2, -1, 1, 3], ',')
    """
    lists = column.dtype.is_nested()
    if lists:
        column = column.cast(pl.List(pl.String)).list.join(LIST_SEPARATOR).alias(column.name)
    distinct, code_r = distinct_cells(column)
    separator = LIST_SEPARATOR if lists else options.multilabel or ""
    if not lists and options.multilabel is None and distinct.dtype == pl.String:
        separator = guess_separator(distinct.to_list(), log, column.name)
    if separator:
        texts = [str(cell) for cell in distinct.to_list()]
        split = [split_cell(text, separator) for text in texts]
        labels = sorted({label for cell in split for label in cell})
        blank = tuple(sorted(no_answers(labels, options.missing)))
    else:
        values, code_r, blank = code_labels(column, options.missing)
        labels_c: list[tuple[str, ...] | None] = [(label,) for label in values.to_list()]
    if blank:
        log.note(f"taken for no answer: {shown(list(map(repr, blank)))} (--missing names others).")
    if separator:
        name_of = same_labels([label for label in labels if label not in blank], options, log, words=False)
        cells = [tuple(dict.fromkeys(name_of[label] for label in cell if label in name_of)) for cell in split]
        # An empty list names nothing, which is a vote.
        pairs = zip(cells, texts, strict=True)
        labels_c = [cell if cell or lists or JSON_LIST.fullmatch(text) else None for cell, text in pairs]
    elif options.missing is None and (none := [label for label in values if label.casefold() == NONE]):
        log.note(f"{none[0]!r} is read as a label (--missing {none[0]} takes it for no answer).")
    if (n_labels := len({label for cell in labels_c for label in cell or ()})) > MOST_LABELS and not (
        options.scale == "interval" or names_ratings(column.name)
    ):
        where = f"the label column {column.name!r} has" if column.name else "the columns of votes have"
        problem = f"{where} {n_labels:,} different values in {len(column):,} rows"
        way = 'Name another (--label COLUMN), split cells such as care,harm (--multilabel ","), or say --scale interval'
        refuse(f"{problem}. {way}.")
    several_c = [len(cell or ()) > 1 for cell in labels_c]
    if options.labels is not None:
        labels_c = _map_cells(labels_c, count_codes(code_r, len(labels_c)), options.labels, log)
    code_r = recode(code_r, [UNKNOWN if cell is None else c for c, cell in enumerate(labels_c)])
    return Cells(labels_c, several_c, code_r, separator)


def guess_separator(cells: Sequence[str], log: ReadingLog, name: str = "label") -> str:
    """Guess what stands between the labels of cells that name several; empty where each names one.

    The parts of a list recur: nearly all of them are also cells of their own.

    Examples
    --------
    >>> [guess_separator(cells, ReadingLog()) for cells in (["care|harm", "care", "harm"], ["yes, a bit", "no"])]
    ['|', '']
    """
    texts = sorted(cell for cell in cells if cell.strip())
    in_brackets = [text for text in texts if JSON_LIST.fullmatch(text)]
    if 2 * len(in_brackets) > len(texts):
        example, between, separator = in_brackets[0], "in brackets", ","
    else:
        lists_of = {}
        for mark in SEPARATORS:
            with_mark = [text for text in texts if mark in text or text in in_brackets]
            lists_of[mark] = {text: parts for text in with_mark if len(parts := split_cell(text, mark)) > 1}
        separators = (mark for mark, lists in lists_of.items() if lists and _recur(texts, list(lists.values()), mark))
        if not (separator := next(separators, "")):
            return ""
        example, between = next(iter(lists_of[separator])), f"separated by {separator!r}"
    cells = f"cells{name and f' of {name!r}'} such as {shown([example])!r} name several labels, {between} (guessed)"
    log.note(f'{cells}: each label is a yes/no question (--multilabel "" reads combinations as labels).')
    return separator


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


def means_nothing(label: str, options: ReadOptions) -> bool:
    """Return whether a label beside lists of labels means no to all of them; the label map can say otherwise."""
    plain = re.sub(r"[^a-z]", "", label.casefold())
    return plain in NOTHING and label.casefold() not in load_label_map(options.labels)


def choose_classes(question: str, n_of: Mapping[str, int], classes: int | tuple[Any, ...]) -> tuple[str, ...]:
    """Return the labels of a question that the user listed, or counted.

    Parameters
    ----------
    question
        Name of the question, for errors.
    n_of
        The labels that occur, sorted, and how often.
    classes
        All labels, or their number.
    """
    present = tuple(n_of)
    if isinstance(classes, int):
        starts = ([str(k) for k in range(start, start + classes)] for start in (0, 1))
        listed = next((names for names in starts if set(present) <= set(names)), list(present))
        if classes != len(listed):
            problem = f"classes is {classes}, but the votes on {question!r} have {len(present)} labels"
            way = "List all of them by name (CLI: --classes a,b,c), or merge some (--labels)"
            refuse(f"{problem}: {shown(present)}. {way}.")
    else:
        listed = sort_labels(name for value in classes if (name := canonical_label(value)) is not None)
    if outside := [label for label in present if label not in listed]:
        n_votes = sum(n_of[label] for label in outside)
        problem = f"classes is {shown(listed)}, but {n_votes:,} votes on {question!r} say something else"
        refuse(f"{problem}. First: {outside[0]!r}. Add it (--classes), or leave it out (--labels).")
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
    negated = {word + name for word in NEGATIONS for name in folded}
    firsts = [re.split(r"[\W_]+", label.strip())[0] for label in folded]
    affirmed = [k for k, label in enumerate(folded) if firsts[k] not in NEGATIVE_NAMES and label not in negated]
    return affirmed[0] if len(labels) == 2 and len(affirmed) == 1 else len(labels) - 1, True


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
