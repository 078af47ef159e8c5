"""Options of a training: what to learn, which model learns it, and how."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option

TFIDF = "tfidf"
Weight = Literal["epistemic", "votes", "prevalence"]
Precision = Literal["auto", "float32", "bfloat16"]

LEARN, TRAIN = "What to learn", "How to train"


@dataclass(frozen=True)
class TextOptions(StageOptions):
    """Where the texts are, if not in the run."""

    votes: str | None = option(
        None, "File with the texts, by item; those of the run when not given.", metavar="FILE", panel=LEARN
    )
    text: str | None = option(None, "Column of the texts; guessed when not given.", metavar="COLUMN", panel=LEARN)


@dataclass(frozen=True)
class Hyperparameters(StageOptions):
    """How a neural classifier is trained; `tfidf` uses none of these."""

    epochs: int = option(3, "Passes over the texts, at most.", panel=TRAIN, least=1)
    batch_size: int = option(32, "Texts per step.", panel=TRAIN, least=1)
    learning_rate: float | None = option(
        None, "Learning rate at its highest; 3e-5 when not given, with --head-only 5e-3.", panel=TRAIN
    )
    max_length: int = option(128, "Tokens per text, at most.", panel=TRAIN, least=3)
    layers: int | None = option(
        None,
        "Train the last N layers only, and what follows them; what the others make of a text is computed once.",
        panel=TRAIN,
        least=1,
    )
    head_only: bool = option(False, "Encode every text once and train the last layer alone.", panel=TRAIN)
    device: str = option("auto", "Where to compute: cpu, cuda, …; auto takes a GPU if there is one.", panel=TRAIN)
    accumulate: int = option(
        1, "Batches per step, whose gradients are added up; memory stays that of one batch.", panel=TRAIN, least=1
    )
    precision: Precision = option(
        "auto",
        "Numbers to train with; auto takes bfloat16 where the GPU or the processor computes with it.",
        panel=TRAIN,
    )
    warmup: float = option(0.1, "Share of the steps in which the learning rate rises.", flag="")
    clip: float = option(1.0, "Largest norm of a gradient.", flag="")
    weight_decay: float = option(0.01, "Weight decay of AdamW.", flag="")

    def __post_init__(self) -> None:
        """Refuse values that make no sense."""
        super().__post_init__()
        wrong = [
            ("learning_rate", self.learning_rate is not None and not 0 < self.learning_rate < 10, "between 0 and 10"),
            ("warmup", not 0 <= self.warmup < 1, "from 0 to below 1"),
            ("clip", not self.clip > 0, "above 0"),
        ]
        for name, bad, allowed in wrong:
            if bad:
                msg = f"{self.called(name)} is {getattr(self, name):g}; it must be {allowed}."
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
class TrainOptions(Hyperparameters, TextOptions):
    """One training: targets, texts, model, hyperparameters, early stopping and checkpoints."""

    model: str = option(
        "minilm", "Model to train: minilm, tfidf, a folder or a name on the hub.", metavar="NAME|PATH", panel=TRAIN
    )
    labels: str = option(
        "soft",
        "Kind of target: soft, share, any, majority, two-vote, hard, published, p_model, smoothed, gold, "
        "annotators (one output per annotator, averaged), annotators:COLUMN (per group), group:NAME (the p of one "
        "group), or a rule of the audit.",
        panel=LEARN,
    )
    weight: Weight | None = option(
        None,
        "What items are weighted by, or prevalence: rare questions count as much as frequent ones; all alike when not "
        "given.",
        panel=LEARN,
    )
    validation: float = option(0.1, "Share of the texts that are not trained on but stop the training.", panel=TRAIN)
    patience: int = option(
        1,
        "Stop after N epochs without a lower validation loss, and keep the best epoch; 0 never stops early.",
        panel=TRAIN,
        least=0,
    )
    seed: int = option(
        0, "Seed of the validation texts, the start, the order and dropout; same seed, same model on a CPU.",
        panel=TRAIN, least=0,
    )  # fmt: skip
    checkpoint_steps: int = option(50, "Steps between two checkpoints.", panel=TRAIN, least=1)
    resume: bool = option(False, "Go on where a killed training with the same options stopped.", panel=TRAIN)

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        super().__post_init__()
        if not 0 <= self.validation < 1:
            msg = f"--validation {self.validation:g} is no share of the texts. Write 0.1 for a tenth, 0 for none."
            raise UsageError(msg)
        if self.model == TFIDF and self.resume:
            msg = "tfidf trains in seconds and keeps no checkpoints, so there is nothing to resume. Leave --resume out."
            raise UsageError(msg)

    def settings(self) -> dict[str, Any]:
        """Return what decides the steps of a training, by name."""
        return {**self.hyperparameters(), "seed": self.seed, "patience": self.patience}
