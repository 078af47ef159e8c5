"""Options of a study of targets: what is compared, with which models, and how texts are held out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moral_entropy.errors import UsageError
from moral_entropy.options import option
from moral_entropy.train.options import Hyperparameters, TextOptions

MODELS = ("tfidf", "minilm")
SplitBy = Literal["items", "domains", "leave-domain-out"]

COMPARE = "What to compare"


@dataclass(frozen=True)
class StudyOptions(Hyperparameters, TextOptions):
    """One study: the same models trained on every kind of target, and scored on the same unseen texts."""

    targets: tuple[str, ...] = option(
        ("soft", "share", "any", "majority", "two-vote"),
        "Kinds of target; soft, or else the first, is compared with each other one.",
        panel=COMPARE,
    )
    models: tuple[str, ...] = option(
        MODELS, "Models to train: tfidf, minilm, folders or names on the hub.", panel=COMPARE
    )
    seeds: int = option(
        5, "Trainings per model and target; a seed decides the validation texts and all chance in training.",
        panel=COMPARE, least=1,
    )  # fmt: skip
    split: SplitBy = option(
        "items",
        "What is tested: a share of the texts (items), a share of each domain on its own (domains), or each domain "
        "with a model trained on the others (leave-domain-out).",
        metavar="NAME",
        panel=COMPARE,
    )
    train_texts: int | None = option(
        None, "Train on about so many of the texts; all that are not tested when not given.", panel=COMPARE, least=20
    )
    test_texts: int | None = option(
        None, "Score on about so many of the tested texts; all of them when not given.", panel=COMPARE, least=20
    )
    held_out: float = option(
        0.25, "Share of the annotators whose votes are taken away to score against; 0 leaves that out.", flag=""
    )
    split_seed: int = option(0, "Decides which texts are tested, and who is held out.", flag="", least=0)
    replicates: int = option(400, "Resamplings of texts and seeds.", flag="", least=1)
    interval: float = option(0.9, "Share of the resamplings inside every interval.", flag="")

    def __post_init__(self) -> None:
        """Refuse a study that cannot be made."""
        super().__post_init__()
        _check_names("target", self.targets)
        _check_names("model", self.models)
        if len(self.targets) < 2:
            msg = (
                f"one kind of target, {self.targets[0]!r}, cannot be compared with itself. "
                "Name several, such as soft,majority."
            )
            raise UsageError(msg)
        for model in self.models:
            _check_model(model)

    @property
    def base(self) -> str:
        """The target that the others are compared with."""
        return "soft" if "soft" in self.targets else self.targets[0]


def _check_names(what: str, names: Sequence[str]) -> None:
    twice = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
    if not names or twice:
        msg = f"{what} {twice[0]!r} is named twice." if twice else f"name at least one {what} to compare."
        raise UsageError(msg)


def _check_model(model: str) -> None:
    if model not in MODELS and "/" not in model and not Path(model).exists():
        close = difflib.get_close_matches(model, MODELS, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        msg = f"there is no model {model!r}{meant} Choose {' or '.join(MODELS)}, a folder, or a hub name OWNER/NAME."
        raise UsageError(msg)
