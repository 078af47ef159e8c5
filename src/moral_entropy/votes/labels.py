"""Labels: merged, dropped, matched, and which of them is the positive one.

Works on the distinct labels of a column; never on single votes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import shown
from moral_entropy.votes.files import is_stream
from moral_entropy.votes.options import Options
from moral_entropy.votes.values import Coded, canonical_label, count_codes, recode, sort_labels

POSITIVE_NAMES = ("1", "true", "yes", "positive", "y", "t")
MOST_LABELS = 1_000


@dataclass
class Tally:
    """What was left out and remarked on while reading.

    Parameters
    ----------
    dropped
        Rows or votes left out, by reason.
    notes
        Remarks for the user.
    """

    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def drop(self, reason: str, n: int) -> None:
        """Count what was left out, if anything was."""
        if n:
            self.dropped[reason] = self.dropped.get(reason, 0) + int(n)

    def note(self, sentence: str) -> None:
        """Remark on something, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


@dataclass(frozen=True)
class LabelMap:
    """Which labels are merged into others, and which are left out (`None`)."""

    target: Mapping[str, str | None] = field(default_factory=dict)

    def __call__(self, label: str) -> str | None:
        """Give what a label becomes; an exact match comes before one that ignores case."""
        if label in self.target:
            return self.target[label]
        folded = {name.casefold(): target for name, target in self.target.items()}
        return folded.get(label.casefold(), label)


def load_label_map(labels: str | Path | Mapping[str, Any] | None) -> LabelMap:
    """Read a map of labels: a TOML file, or a mapping of the same shape.

    Parameters
    ----------
    labels
        `harm = "care"` merges, `nm = ""` or `nm = false` leaves out, as does `drop = ["nm", "x"]`.

    Examples
    --------
    >>> change = load_label_map({"harm": "care", "drop": ["nm"]})
    >>> change("Harm"), change("nm"), change("loyalty")
    ('care', None, 'loyalty')
    """
    if labels is None:
        return LabelMap()
    where = "the label map" if isinstance(labels, Mapping) else Path(labels).name
    entries = labels if isinstance(labels, Mapping) else _read_toml(Path(labels))
    target: dict[str, str | None] = {}
    for name, value in entries.items():
        if name == "drop" and isinstance(value, (list, tuple)):
            target.update({_key(gone): None for gone in value})
        elif value is False or (isinstance(value, (str, int, float)) and value is not True):
            target[_key(name)] = None if value is False else canonical_label(value)
        else:
            msg = (
                f'{where} says {name} = {value!r}. Write {name} = "other label" to merge it, '
                f'or {name} = "" to leave it out.'
            )
            raise VotesError(msg)
    return LabelMap(target)


def map_labels(coded: Coded, change: LabelMap, tally: Tally) -> Coded:
    """Merge and leave out labels of a coded column, and count how many votes that touched."""
    import polars as pl

    if not change.target:
        return coded
    old = coded.values.to_list()
    new = [change(label) for label in old]
    n_k = count_codes(coded.code_r, len(old))
    gone = sum(int(n) for n, label in zip(n_k, new, strict=True) if label is None)
    moved = sum(int(n) for n, was, label in zip(n_k, old, new, strict=True) if label not in (None, was))
    tally.drop("label left out by the label map", gone)
    note_map(change, old, moved, tally)
    order = {label: k for k, label in enumerate(sort_labels(label for label in new if label is not None))}
    places = [-1 if label is None else order[label] for label in new]
    return Coded(pl.Series(list(order), dtype=pl.String), recode(coded.code_r, places))


def note_map(change: LabelMap, labels: Iterable[str], moved: int, tally: Tally) -> None:
    """Remark on how many votes the map renamed, and on entries that met no label."""
    if moved:
        tally.note(f"the label map renamed {moved:,} votes.")
    seen = {label.casefold() for label in labels}
    idle = [name for name in change.target if name.casefold() not in seen]
    if idle:
        tally.note(f"{len(idle)} entries of the label map match no label: {shown(idle, 5)}.")


def choose_classes(question: str, found: Sequence[str], n_k: Sequence[int], options: Options) -> tuple[str, ...]:
    """Give the labels of a question: those that occur, or those the user listed.

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
    """Give the index of the positive label, and whether it was guessed.

    Examples
    --------
    >>> choose_positive(("No", "Yes"), None), choose_positive(("a", "b"), "A"), choose_positive(("a", "b"), None)
    ((1, True), (0, False), (1, True))
    """
    if asked is not None and (at := match_label(asked, labels)) is not None:
        return at, False
    folded = [label.casefold() for label in labels]
    return next((folded.index(name) for name in POSITIVE_NAMES if name in folded), len(labels) - 1), True


def match_label(name: object, labels: Sequence[str]) -> int | None:
    """Find a label: spelt exactly so, else ignoring case if only one fits."""
    spelt = canonical_label(name)
    if spelt is None:
        return None
    if spelt in labels:
        return list(labels).index(spelt)
    close = [k for k, label in enumerate(labels) if label.casefold() == spelt.casefold()]
    return close[0] if len(close) == 1 else None


def check_few(n_labels: int, column: str, n_rows: int) -> None:
    """Refuse a column with so many distinct values that it can hardly hold labels."""
    if n_labels > MOST_LABELS:
        msg = (
            f"the label column {column!r} has {n_labels:,} different values in {n_rows:,} rows: it does not look "
            'like labels. Name another with label="COLUMN" (CLI: --label COLUMN), or split cells such as '
            'care,harm with multilabel="," (CLI: --multilabel ",").'
        )
        raise VotesError(msg)


def _numbered(n_classes: int, found: Sequence[str], question: str) -> list[str]:
    """Give the labels when only their number is known."""
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


def _key(name: object) -> str:
    return canonical_label(name) or ""


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
