"""What the labels of a question count: the share of yes, the mean of numbers, the win rate of one of two.

Takes the labels of a question, returns one `Quantity` or several. Knows no votes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moral_entropy.errors import UsageError
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.run import Question
from moral_entropy.votes.table import Floats

FIRST, SECOND = ("a", "left", "first", "model_a", "answer a"), ("b", "right", "second", "model_b", "answer b")
TIES = ("tie", "ties", "draw", "equal", "same", "both", "c", "neither", "tie (bothbad)")
"""What the two sides of a comparison and a tie are called, in small letters."""


@dataclass(frozen=True, eq=False)
class Quantity:
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
    least: float = 0.0
    most: float = 1.0

    def scaled(self, value: float) -> float:
        """Return a mean on the scale from 0 to 1."""
        return (value - self.least) / (self.most - self.least)

    def unscaled(self, value: float) -> float:
        """Return a scaled mean on the scale of the labels."""
        return self.least + (self.most - self.least) * value


def quantities(question: Question, told: Mapping[str, float] | None = None) -> list[Quantity]:
    """Return what is averaged for a question.

    Parameters
    ----------
    question
        The question.
    told
        What each label counts, if the user says so; labels that are not named are an error.

    Examples
    --------
    >>> [one.name for one in quantities(Question("ok", ("no", "yes"), "yes"))]
    ["share of 'yes'"]
    >>> [found] = quantities(Question("stars", ("1", "2", "5"), None))
    >>> found.name, found.value_k.tolist(), found.unscaled(0.5)
    ('mean', [0.0, 0.25, 1.0], 3.0)
    >>> [found] = quantities(Question("better", ("A", "B", "tie"), None))
    >>> found.name, found.value_k.tolist()
    ("win rate of 'A'", [1.0, 0.0, 0.5])
    >>> [one.name for one in quantities(Question("tone", ("anger", "fear", "joy"), None))][:2]
    ["share of 'anger'", "share of 'fear'"]
    """
    labels = question.labels
    if told:
        return [_scaled("mean value", _told(question, told))]
    if (sides := _sides(labels)) is not None:
        first, value_k = sides
        return [Quantity(f"win rate of {first!r}", value_k)]
    if question.positive is not None:
        return [_share(labels, question.positive)]
    numbers = [_number(label) for label in labels]
    if all(map(math.isfinite, numbers)):
        return [_scaled("mean", numbers)]
    return [_share(labels, label) for label in labels]


def is_share(name: str) -> bool:
    """Return whether a quantity of this name is a share, which people read as percent.

    Examples
    --------
    >>> is_share("win rate of 'A'"), is_share("mean")
    (True, False)
    """
    return name.startswith(("share of", "win rate of"))


def _share(labels: Sequence[str], label: str) -> Quantity:
    return Quantity(f"share of {label!r}", np.array([float(other == label) for other in labels]))


def _scaled(name: str, numbers: Sequence[float]) -> Quantity:
    least, most = min(numbers), max(numbers)
    return Quantity(name, (np.array(numbers) - least) / (most - least), least, most)


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return math.nan


def _sides(labels: Sequence[str]) -> tuple[str, Floats] | None:
    """Return the first side of a comparison and what each label counts for it; None where labels are no sides."""
    folded = [label.strip().casefold() for label in labels]
    count = {**dict.fromkeys(FIRST, 1.0), **dict.fromkeys(SECOND, 0.0), **dict.fromkeys(TIES, 0.5)}
    values = [count.get(label, math.nan) for label in folded]
    if not {1.0, 0.0} <= set(values) or any(map(math.isnan, values)):
        return None
    value_k = np.array(values)
    return labels[int(value_k.argmax())], value_k


def _told(question: Question, told: Mapping[str, float]) -> list[float]:
    strange = [label for label in told if label not in question.labels]
    missing = [label for label in question.labels if label not in told]
    if strange or missing or len(set(told.values())) < 2:
        what = f"{missing[0]!r} is not among them." if missing else "all labels count the same."
        if strange:
            what = f"{strange[0]!r} is no label of {question.name!r}.{did_you_mean(strange[0], question.labels)}"
        msg = f"the values of labels do not fit: {what} Labels: {', '.join(question.labels)} (CLI: --values A=1,B=0)."
        raise UsageError(msg)
    return [told[label] for label in question.labels]
