"""Options of a training: what to learn, which model learns it, and how.

Imports nothing heavy, since the help of a command is made from what is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from moral_entropy.errors import UsageError

TFIDF = "tfidf"
Weight = Literal["epistemic", "votes"]


def option(default: Any, help: str) -> Any:
    """Declare an option: its default and its help text."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Hyperparameters:
    """How a neural classifier is trained; `tfidf` uses none of these.

    `learning_rate` is the highest one, reached after the warm-up; None stands for 3e-5, and 5e-3 with `head_only`.
    `warmup` is the share of the steps in which it rises, `clip` the largest norm of a gradient, `weight_decay` that of
    AdamW.
    """

    epochs: int = option(3, "Passes over the texts, at most.")
    batch_size: int = option(32, "Texts per step.")
    learning_rate: float | None = option(None, "At its highest; 3e-5, for a head alone 5e-3.")
    max_length: int = option(128, "Tokens per text, at most.")
    layers: int | None = option(None, "Train the last N layers only.")
    head_only: bool = option(False, "Encode texts once, train the head.")
    device: str = option("auto", "cpu, cuda, …; auto takes a GPU.")
    warmup: float = 0.1
    clip: float = 1.0
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        wrong = [
            ("epochs", self.epochs < 1, "at least 1"),
            ("batch_size", self.batch_size < 1, "at least 1"),
            ("learning_rate", self.learning_rate is not None and not 0 < self.learning_rate < 10, "between 0 and 10"),
            ("max_length", self.max_length < 3, "at least 3"),
            ("layers", self.layers is not None and self.layers < 1, "at least 1"),
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
        """The learning rate after the warm-up."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 5e-3 if self.head_only else 3e-5

    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyperparameters alone, by name."""
        return {one.name: getattr(self, one.name) for one in fields(Hyperparameters)}


@dataclass(frozen=True)
class TrainOptions(Hyperparameters):
    """One training: targets, texts, model, hyperparameters, early stopping and checkpoints.

    `weight` is what items are weighted by: nothing by default. After `patience` epochs without a lower validation loss
    the training stops (0: never), and the weights of the best epoch are kept. `seed` decides the validation texts, the
    start of the head, the order of the texts, and dropout.
    """

    model: str = option("minilm", "minilm, tfidf, a folder or a hub name.")
    labels: str = option("soft", "soft,share,any,majority,two-vote,hard,published, or a rule.")
    votes: str | None = option(None, "File with the texts, by item.")
    text: str | None = option(None, "Column of the texts.")
    weight: Weight | None = option(None, "Weight items; all alike if not given.")  # noqa: RUF009
    validation: float = option(0.1, "Share of texts to stop by.")
    patience: int = option(1, "Stop after N epochs without gain; 0 never.")
    seed: int = option(0, "Same seed, same model on a CPU.")
    checkpoint_steps: int = option(50, "Keep the state every N steps.")
    resume: bool = option(False, "Go on after a kill.")

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        super().__post_init__()
        if not 0 <= self.validation < 1:
            msg = f"--validation {self.validation:g} is no share of the texts. Write 0.1 for a tenth, 0 for none."
            raise UsageError(msg)
        if self.patience < 0:
            msg = f"patience is {self.patience}. It must be at least 0."
            raise UsageError(msg)
        if self.model == TFIDF and self.resume:
            msg = "tfidf trains in seconds and keeps no checkpoints, so there is nothing to resume. Leave --resume out."
            raise UsageError(msg)

    def settings(self) -> dict[str, Any]:
        """Return what decides the steps of a training, by name."""
        return {**self.hyperparameters(), "seed": self.seed, "patience": self.patience}
