"""What the labels of a question count: the share of yes, the mean of numbers, the win rate of one of two.

Takes the labels of a question, returns one `Quantity` or several. Knows no votes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.run import Question
from moral_entropy.votes.table import Floats

FIRST, SECOND = (
    ("a", "left", "first", "model_a", "answer a", "a1"),
    ("b", "right", "second", "model_b", "answer b", "a2"),
)
TIES = ("tie", "ties", "draw", "equal", "same", "both", "c", "neither", "tie (bothbad)")
"""What the two sides of a comparison and a tie are called, in small letters."""

GRADES = {"c": 1.0, "correct": 1.0, "p": 0.5, "partial": 0.5, "i": 0.0, "incorrect": 0.0, "n": 0.0, "noanswer": 0.0}
"""What grades of Inspect count: correct, partially correct, incorrect, no answer."""

KINDS = {"text": pl.String(), "int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean()}


def schema(*columns: str) -> pl.Schema:
    """Return the columns of a table from texts that name a kind and then columns of it.

    Examples
    --------
    >>> schema("text judge", "float right").names()
    ['judge', 'right']
    """
    return pl.Schema({name: KINDS[text.split()[0]] for text in columns for name in text.split()[1:]})


def bounded(*names: str, bounds: Sequence[str] = ("", "_low", "_high")) -> str:
    """Return figures with their intervals, as `schema` takes them."""
    return "float " + " ".join(f"{name}{bound}" for name in names for bound in bounds)


class Quantity(NamedTuple):
    """Something that is averaged over items. Axis: **k** label.

    Parameters
    ----------
    name
        What it is, as "share of yes".
    value_k
        What each label counts, scaled so that the least is 0 and the most 1.
    least, most
        The scale: 0 and 1 for shares.
    """

    name: str
    value_k: Floats
    minimum: float = 0.0
    maximum: float = 1.0

    def limit(self, value: float) -> float:
        """Return a limit on the scale from 0 to 1; of a share, percent are understood.

        Examples
        --------
        >>> Quantity("share of 'yes'", np.array([0.0, 1.0])).limit(70)
        0.7
        """
        if is_share(self.name) and not 0.0 <= value <= 1.0:
            if not 1.0 < value <= 100.0:
                msg = f"at_least is {value:g}; a share is between 0 and 1, or in percent up to 100 (--at-least 70)."
                raise UsageError(msg)
            value /= 100.0
        return (value - self.minimum) / (self.maximum - self.minimum)

    def unscaled(self, value: float) -> float:
        """Return a scaled mean on the scale of the labels."""
        return self.minimum + (self.maximum - self.minimum) * value


def quantities(
    question: Question, value_by_label: Mapping[str, float] | None = None, *, pairwise: bool = False
) -> list[Quantity]:
    """Return what is averaged for a question.

    Parameters
    ----------
    question
        The question.
    value_by_label
        What each label counts, if the user says so; labels that are not named are an error.
    pairwise
        Whether two were compared, so that the codes 1, 2 and 0 are the first, the second and a tie.

    Examples
    --------
    >>> [quantity.name for quantity in quantities(Question("ok", ("no", "yes"), "yes"))]
    ["share of 'yes'"]
    >>> [quantity] = quantities(Question("stars", ("1", "2", "5"), None))
    >>> quantity.name, quantity.value_k.tolist(), quantity.unscaled(0.5)
    ('mean', [0.0, 0.25, 1.0], 3.0)
    >>> [quantity] = quantities(Question("better", ("A", "B", "tie"), None))
    >>> quantity.name, quantity.value_k.tolist()
    ("win rate of 'A'", [1.0, 0.0, 0.5])
    >>> [quantity.name for quantity in quantities(Question("tone", ("anger", "fear", "joy"), None))][:2]
    ["share of 'anger'", "share of 'fear'"]
    """
    labels = question.labels
    if value_by_label:
        return [_scaled("mean value", _stated(question, value_by_label))]
    if (grades := _looked_up(labels, GRADES)) is not None:
        return [Quantity("share of correct answers", grades)]
    if (compared := sides(labels, codes=pairwise)) is not None:
        return [Quantity(f"win rate of {compared[0]!r}", compared[1])]
    if question.positive is None:
        with suppress(ValueError):
            if all(map(math.isfinite, numbers := [float(label) for label in labels])):
                return [_scaled("mean", numbers)]
    names = labels if question.positive is None else (question.positive,)
    return [Quantity(f"share of {label!r}", np.array([float(name == label) for name in labels])) for label in names]


def is_share(name: str) -> bool:
    """Return whether a quantity of this name is a share, which people read as percent.

    Examples
    --------
    >>> is_share("win rate of 'A'"), is_share("mean")
    (True, False)
    """
    return name.startswith(("share of", "win rate of"))


def _scaled(name: str, numbers: Sequence[float]) -> Quantity:
    minimum, maximum = min(numbers), max(numbers)
    return Quantity(name, (np.array(numbers) - minimum) / (maximum - minimum), minimum, maximum)


def sides(labels: Sequence[str], *, codes: bool = False) -> tuple[str, Floats] | None:
    """Return the first side of a comparison and what each label counts for it; None where labels are no sides.

    Examples
    --------
    >>> sides(["0", "1", "2"]), sides(["0", "1", "2"], codes=True)
    (None, ('1', array([0.5, 1. , 0. ])))
    """
    value_of = {**dict.fromkeys(FIRST, 1.0), **dict.fromkeys(SECOND, 0.0), **dict.fromkeys(TIES, 0.5)}
    if codes and "2" in labels:
        value_of |= {"1": 1.0, "2": 0.0, "0": 0.5, "3": 0.5}
    value_k = _looked_up(labels, value_of)
    return None if value_k is None else (labels[int(value_k.argmax())], value_k)


def _looked_up(labels: Sequence[str], value_of: Mapping[str, float]) -> Floats | None:
    """Return what labels count; None where one is not in the table, or where none counts 1 or 0."""
    value_k = np.array([value_of.get(label.strip().casefold(), math.nan) for label in labels])
    return value_k if {0.0, 1.0} <= {*value_k.tolist()} and not np.isnan(value_k).any() else None


def _stated(question: Question, value_by_label: Mapping[str, float]) -> list[float]:
    strange = [label for label in value_by_label if label not in question.labels]
    missing = [label for label in question.labels if label not in value_by_label]
    if strange or missing or len(set(value_by_label.values())) < 2:
        reason = f"{missing[0]!r} is not among them." if missing else "all labels count the same."
        if strange:
            reason = f"{strange[0]!r} is no label of {question.name!r}.{did_you_mean(strange[0], question.labels)}"
        msg = f"the values of labels do not fit: {reason} Labels: {', '.join(question.labels)} (CLI: --values A=1,B=0)."
        raise UsageError(msg)
    return [value_by_label[label] for label in question.labels]
