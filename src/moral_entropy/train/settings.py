"""Settings of a training, and the points of its learning curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from moral_entropy.errors import UsageError


class Point(NamedTuple):
    """A point of a learning curve: losses in nats an item, after so many steps; NaN where there is no validation."""

    step: int
    train_loss: float
    validation_loss: float


Watch = Callable[[Point], None]
"""Told every point of the learning curve as soon as it is known."""


def look_away(_point: Point) -> None:
    """Take a point and say nothing."""


@dataclass(frozen=True)
class TrainSettings:
    """How to train. What a model has no use for, it ignores: `tfidf` heeds none of them but `seed`.

    Parameters
    ----------
    epochs
        Passes over the texts at most.
    batch_size, learning_rate, max_length
        Texts a step; the height of the learning rate after warm-up (None: 3e-5, and 5e-3 for `head_only`); tokens a
        text at most.
    layers
        Train only the last so many layers and what follows them; all if None.
    head_only
        Train the last linear map alone, on texts encoded once.
    seed
        Of the head's start, the order of the texts, and dropout.
    patience
        Stop when the validation loss has not fallen for so many epochs; 0 never stops early. The weights of the best
        epoch are kept.
    device
        Such as "cpu" or "cuda"; "auto" takes a GPU where there is one.
    warmup
        Share of the steps in which the learning rate rises.
    clip
        Longest gradient.
    weight_decay
        Of AdamW.
    """

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float | None = None
    max_length: int = 128
    layers: int | None = None
    head_only: bool = False
    seed: int = 0
    patience: int = 1
    device: str = "auto"
    warmup: float = 0.1
    clip: float = 1.0
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        wrong = [
            ("epochs", self.epochs < 1, "at least 1"),
            ("batch_size", self.batch_size < 1, "at least 1"),
            ("learning_rate", self.learning_rate is not None and not 0 < self.learning_rate < 10, "between 0 and 10"),
            ("max_length", self.max_length < 3, "at least 3"),
            ("layers", self.layers is not None and self.layers < 1, "at least 1"),
            ("patience", self.patience < 0, "at least 0"),
            ("warmup", not 0 <= self.warmup < 1, "from 0 to below 1"),
            ("clip", not self.clip > 0, "above 0"),
        ]
        for name, bad, allowed in wrong:
            if bad:
                msg = f"{name} is {getattr(self, name)}. It must be {allowed}."
                raise UsageError(msg)
        if self.head_only and self.layers is not None:
            msg = "--head-only trains no layer, --layers some of them. Choose one."
            raise UsageError(msg)

    @property
    def peak_rate(self) -> float:
        """The learning rate after warm-up."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 5e-3 if self.head_only else 3e-5

    def facts(self) -> dict[str, Any]:
        """Give the settings as plain values."""
        return asdict(self)
