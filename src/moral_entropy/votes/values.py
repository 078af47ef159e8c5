"""Cells of any type as small integers.

Takes a column, returns its distinct values in canonical form, sorted, and one code per row. Never makes a
Python object per row: cells are reduced to their distinct values first, and only those are looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.votes.table import BLOCK, UNKNOWN, Ints, refuse

MISSING = frozenset({"", "NA", "<NA>", "NaN", "nan", "null", "NULL", "N/A", "n/a", "#N/A"})
"""Texts that stand for an empty cell in any column. "none" is not one of them: in some corpora it is a label."""

NO_ANSWER = frozenset({"na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "-", "--", "–", "?", "no answer"})
"""Labels that mean that nobody answered, in lower case; "none" is one among yes and no and among numbers."""

NONE = "none"
VERDICTS = frozenset(
    ["pass", "fail", "passed", "failed", "correct", "incorrect", "right", "wrong", "tie", "c", "i", "p"]
)
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

    @property
    def complete(self) -> bool:
        """Whether no row is empty."""
        return not len(self.code_r) or int(self.code_r.min()) >= 0


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
    return coded_as([None if name in blank else name for name in spelt], code_r, blank)


def coded_as(names: Sequence[str | None], code_r: Ints, blank: Iterable[str] = ()) -> Coded:
    """Return a column coded by new names of its labels; several may have one name, None is no label."""
    order = {name: k for k, name in enumerate(sort_labels(name for name in names if name is not None))}
    places = [UNKNOWN if name is None else order[name] for name in names]
    return Coded(pl.Series(list(order), dtype=pl.String), recode(code_r, places), tuple(sorted(blank)))


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
    return (
        ids.str.normalize("NFKC").str.replace_all(unseen, "").str.to_lowercase().str.replace_all(r"\s+", " ")
    ).str.strip_chars()


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
    if NUMBER.fullmatch(text):
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
        refuse(
            f"{len(large):,} ids of column {distinct.name!r} are floats of {exact:,} or more, where different ids are "
            f"rounded to the same number. First: {large[0]:.17g}. Write ids as whole numbers or as text."
        )


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
        return column.cast(pl.String)
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
    place = np.cumsum(present, dtype=np.int32)
    place -= 1
    place = place.astype(_code_type(int(place[-1]) + 1), copy=False)
    complete = bool(present.all())
    code_r = np.empty(len(column), dtype=place.dtype)
    for at, cells, empty in _blocks(column, low):
        code = code_r[at : at + len(cells)]
        code[:] = cells - low if complete else np.take(place, cells - low)
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
