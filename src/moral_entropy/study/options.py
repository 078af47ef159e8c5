"""Options of a study of targets: what is compared, with which models, and how texts are held out.

Imports nothing heavy, since the help of a command is made from what is here.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moral_entropy.errors import UsageError
from moral_entropy.train.options import Hyperparameters, option

MODELS = ("tfidf", "minilm")
SplitBy = Literal["items", "domains", "leave-domain-out"]


@dataclass(frozen=True)
class StudyOptions(Hyperparameters):
    """One study: the same models trained on every kind of target, and scored on the same unseen texts.

    Differences are those of "soft", or of the first target where it is not among them, less each other one. A seed
    decides which of the texts that are not tested are for validation, and all chance in training. `held_out` is the
    share of the annotators whose votes are taken away to score against; 0 leaves that reference out. `split_seed`
    decides which texts are tested and who is held out. Intervals hold `interval` of `replicates` resamplings of texts
    and seeds.
    """

    targets: tuple[str, ...] = option(("soft", "share", "any", "majority", "two-vote"), "Kinds of target to compare.")
    models: tuple[str, ...] = option(MODELS, "Models to compare them with.")
    seeds: int = option(5, "Trainings per model and target.")
    split: SplitBy = option("items", "How texts are held out.")  # noqa: RUF009
    votes: str | None = option(None, "File with the texts, by item.")
    text: str | None = option(None, "Column of the texts.")
    held_out: float = 0.25
    split_seed: int = 0
    replicates: int = 400
    interval: float = 0.9

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
        if self.seeds < 1:
            msg = "no seed, no study: ask for at least one, and several for intervals over them."
            raise UsageError(msg)

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
