"""Cells of any type as small integers, and labels: several in a cell, merged or left out by a map, the positive one.

Cells are reduced to their distinct values first, and only those are looked at: there is no Python object per row.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
INTEGRAL = r"^-?(0|[1-9][0-9]{0,17})(\.0+)?$"
DECIMAL = re.compile(r"[0-9]+\.[0-9]*[1-9][0-9]*")
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
    if textual:
        column = _typed_integers(column)
    distinct, code_r = distinct_cells(column)
    if distinct.dtype.is_integer():
        return Coded(distinct, code_r)
    return _regroup(_canonical_ids(distinct, textual), code_r)


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
    """
    distinct, code_r = distinct_cells(column)
    spelt = spell_labels(distinct.to_list())
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
    narrow: Ints = lookup.astype(_code_type(int(lookup.max(initial=0)) + 1))
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


def fold_ids(ids: pl.Series) -> pl.Series:
    """Return ids without case, blanks beyond one, and marks that nobody sees; accents in one spelling."""
    unseen = r"[\u200b-\u200f\u2060\ufeff\u00ad]"
    plain = ids.str.normalize("NFKC").str.replace_all(unseen, "").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars()


def spell_labels(values: Iterable[Any]) -> list[str | None]:
    """Spell each value as a label, such that equal labels are spelt alike; `None` for an empty cell.

    Parameters
    ----------
    values
        Distinct cells of one column.

    Examples
    --------
    >>> spell_labels([1, 2.0, " 1.50", " ", float("nan"), "care "])
    ['1', '2', '1.5', None, None, 'care']
    >>> spell_labels(["True", "FALSE"])
    ['true', 'false']
    """
    cells = list(values)
    names = [spell_label(value) for value in cells]
    numbers = {str(cell).strip() for cell in cells if isinstance(cell, str) and DECIMAL.fullmatch(cell.strip())}
    if len(numbers) > len({number.rstrip("0") for number in numbers}):
        # 1.1 and 1.10 in one column are codes, such as those of a taxonomy, and no numbers.
        texts = [str(cell).strip() for cell in cells]
        names = [text if text in numbers else name for text, name in zip(texts, names, strict=True)]
    folded = {name.casefold() for name in names if name is not None}
    if folded <= {"true", "false"}:
        return [None if name is None else name.casefold() for name in names]
    return names


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
        values = [_unnested(value) for value in values]
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


def _unnested(value: Any) -> Any:
    """Spell what is nested: a record, or a list with anything but texts and numbers in it."""
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(part, (dict, list)) for part in value)):
        try:
            return json.dumps(value, ensure_ascii=False)
        except RecursionError:
            return None
    return value


def _code_type(n_values: int) -> type[np.int16] | type[np.int32]:
    return np.int16 if n_values <= np.iinfo(np.int16).max else np.int32


def _typed_integers(column: pl.Series) -> pl.Series:
    """Turn text into integers if nothing is lost: "007" stays text."""
    if column.dtype != pl.String:
        return column
    integers = column.cast(pl.Int64, strict=False)
    if integers.null_count() == column.null_count() and (integers.cast(pl.String) == column).all():
        return integers
    return column


def _canonical_ids(distinct: pl.Series, textual: bool) -> pl.Series:
    if distinct.dtype.is_float():
        _refuse_rounded(distinct)
        integral = distinct.is_finite() & (distinct == distinct.floor())
        return distinct.cast(pl.Int64) if integral.all() else distinct.cast(pl.String)
    text = distinct.cast(pl.String).str.strip_chars()
    text = text.set(text.is_in(list(MISSING)), None)
    if textual and text.str.contains(INTEGRAL).all():
        return text.str.replace(r"\.0+$", "").cast(pl.Int64)
    return text


def _refuse_rounded(distinct: pl.Series) -> None:
    exact = EXACT if distinct.dtype == pl.Float64 else EXACT_SHORT
    large = distinct.filter(distinct.is_finite() & (distinct.abs() >= exact))
    if len(large):
        problem = f"{len(large):,} ids of column {distinct.name!r} are floats of {exact:,} or more, which are rounded"
        refuse(f"{problem}. First: {large[0]:.17g}. Write ids as whole numbers or as text.")


def distinct_cells(column: pl.Series) -> tuple[pl.Series, Ints]:
    """Return the distinct cells of a column, and for each row the position of its cell among them."""
    if column.dtype == pl.Boolean:
        code_r = column.cast(pl.Int16).fill_null(UNKNOWN).to_numpy()
        return pl.Series([False, True]), code_r
    if column.dtype in (pl.UInt64, pl.Int128) and not _fits(column):
        column = column.cast(pl.String)
    if column.dtype.is_integer():
        return _distinct_integers(column)
    if column.dtype.is_float():
        column = column.fill_nan(None)
        distinct = column.drop_nulls().unique().sort()
        return distinct, _positions(column, distinct.to_numpy())
    text = as_text(column)
    distinct = text.drop_nulls().unique()
    code = text.cast(pl.Enum(distinct)).to_physical().cast(pl.Int32)
    return distinct, code.fill_null(UNKNOWN).to_numpy()


def _fits(column: pl.Series) -> bool:
    """Return whether all numbers of a column fit into 64 bits with a sign."""
    low, high = column.min() or 0, column.max() or 0
    return bool(low >= np.iinfo(np.int64).min and high <= np.iinfo(np.int64).max)  # type: ignore[operator]


def as_text(column: pl.Series) -> pl.Series:
    """Return a column of any type as text."""
    if column.dtype == pl.String:
        return column
    try:
        # A cast leaves out fractions of a second.
        return column.dt.to_string("%H:%M:%S%.f") if column.dtype == pl.Time else column.cast(pl.String)
    except pl.exceptions.PolarsError:
        return pl.Series(column.name, [canonical_label(value) for value in column.to_list()], dtype=pl.String)


def _distinct_integers(column: pl.Series) -> tuple[pl.Series, Ints]:
    filled = column.drop_nulls() if column.null_count() else column
    if not len(filled):
        return pl.Series([], dtype=pl.Int64), np.full(len(column), UNKNOWN, dtype=np.int16)
    low, high = int(filled.min()), int(filled.max())  # type: ignore[arg-type]
    span = high - low + 1
    if span > max(2 * len(column), 1 << 16):
        distinct = filled.unique().sort().cast(pl.Int64)
        return distinct, _positions(column, distinct.to_numpy())
    # A narrow range needs no sorting: mark what occurs, and number the marks.
    present = np.zeros(span, dtype=np.bool_)
    for _, cells, _ in _blocks(column, low):
        present[cells - low] = True
    place = np.cumsum(present, dtype=np.int32) - 1
    code_r = np.empty(len(column), dtype=_code_type(int(place[-1]) + 1))
    for at, cells, empty in _blocks(column, low):
        code = code_r[at : at + len(cells)]
        code[:] = place[cells - low]
        code[empty] = UNKNOWN
    return pl.Series(np.flatnonzero(present) + low), code_r


def _positions(column: pl.Series, distinct: Any) -> Ints:
    code_r = np.empty(len(column), dtype=_code_type(len(distinct)))
    for at, cells, empty in _blocks(column, distinct[0] if len(distinct) else 0):
        place = np.searchsorted(distinct, cells)
        place[empty] = UNKNOWN
        code_r[at : at + len(cells)] = place
    return code_r


def _blocks(column: pl.Series, fill: Any) -> Iterator[tuple[int, Any, Any]]:
    """Iterate over blocks of a column of numbers: first row, cells, positions in the block of empty cells."""
    wide = pl.Float64 if column.dtype.is_float() else pl.Int64
    nowhere = np.empty(0, dtype=np.int64)
    for at in range(0, len(column), BLOCK):
        block = column.slice(at, BLOCK)
        empty = np.flatnonzero(block.is_null().to_numpy()) if block.null_count() else nowhere
        yield at, block.cast(wide).fill_null(fill).to_numpy(), empty


def _regroup(canonical: pl.Series, code_r: Ints) -> Coded:
    """Merge distinct cells that mean the same, and sort what is left."""
    values = canonical.drop_nulls().unique().sort()
    if values.dtype == pl.String:
        place = canonical.cast(pl.Enum(values)).to_physical().cast(pl.Int32)
    else:
        place = pl.Series(np.searchsorted(values.to_numpy(), canonical.fill_null(0).to_numpy()))
        place = place.set(canonical.is_null(), None)
    return Coded(values, recode(code_r, place.cast(pl.Int64).fill_null(UNKNOWN).to_numpy()))


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
            refuse(f'{where} says {name} = {value!r}. Write {name} = "label" to merge it, {name} = "" to leave it out.')
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
            starts = [start for start in PREFIXES if start in label + near]
            negated = any(label in (start + near, near.removeprefix(start)) for start in starts)
            if not negated and re.sub(r"\d", "", label) != re.sub(r"\d", "", near):
                errors[label] = near
    if errors:
        names = shown([f"{label!r} ({n_of[label]:,} votes) of {near!r}" for label, near in errors.items()])
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
    ([None, ('care',), ('care', 'harm'), ('harm',)], [2, -1, 1, 3], ',')
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
    if (n_labels := len({label for cell in labels_c for label in cell or ()})) > MOST_LABELS and not (
        options.scale == "interval" or names_ratings(column.name)
    ):
        problem = f"the label column {column.name!r} has {n_labels:,} different values in {len(column):,} rows"
        way = 'Name another (--label COLUMN), split cells such as care,harm (--multilabel ","), or say --scale interval'
        refuse(f"{problem}. {way}.")
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
    texts = sorted(cell for cell in cells if cell.strip())
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
    cells = f"cells of {name!r} such as {shown([example])!r} name several labels, {between} (guessed)"
    log.note(f'{cells}: each label is a yes/no question (--multilabel "" reads combinations as labels).')


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
        problem = f"classes is {shown(listed)}, but {votes:,} votes on {question!r} say something else"
        refuse(f"{problem}. First: {outside[0][0]!r}. Add it (--classes), or leave it out (--labels).")
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


def _numbered(n_classes: int, present: Sequence[str], question: str) -> list[str]:
    """Return the labels when only their number is known."""
    for listed in ([str(k) for k in range(start, start + n_classes)] for start in (0, 1)):
        if set(present) <= set(listed):
            return listed
    if n_classes != len(present):
        problem = f"classes is {n_classes}, but the votes on {question!r} have {len(present)} labels: {shown(present)}"
        refuse(f"{problem}. List all of them by name (CLI: --classes a,b,c), or merge some (--labels).")
    return list(present)


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
