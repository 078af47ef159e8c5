"""Classifier: what a training returns, whichever model was trained.

`train_classifier` finds the trainer by the model's name: `tfidf` needs scikit-learn, every other PyTorch and
Transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from moral_entropy.progress import Advance, ignore
from moral_entropy.train.checkpoint import Checkpoints
from moral_entropy.train.head import Head
from moral_entropy.train.settings import Point, TrainSettings, Watch, look_away
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Floats

TFIDF = "tfidf"


class Classifier(Protocol):
    """A trained model: texts in, probabilities out."""

    @property
    def head(self) -> Head:
        """What its outputs mean."""

    @property
    def curve(self) -> Sequence[Point]:
        """How the losses fell."""

    def probabilities(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Give the probability of every output for every text: `p_io`."""

    def save(self, folder: Path) -> None:
        """Write the model's files into a folder that is there."""


def train_classifier(
    model: str,
    train: Targets,
    validation: Targets | None = None,
    settings: TrainSettings | None = None,
    *,
    checkpoints: Checkpoints | None = None,
    advance: Advance = ignore,
    watch: Watch = look_away,
) -> Classifier:
    """Train a model on targets.

    Parameters
    ----------
    model
        "tfidf", "minilm", the folder of a Hugging Face model, or its name on the hub.
    train
        What to learn.
    validation
        What to stop early by; never trained on.
    settings
        How to train.
    checkpoints
        Where the state of the training is kept, to go on after a kill; None for nowhere. `tfidf` needs none.
    advance
        Told the share done.
    watch
        Told every point of the learning curve.
    """
    settings = settings or TrainSettings()
    if model == TFIDF:
        from moral_entropy.train.tfidf import train_tfidf

        return train_tfidf(train, validation, settings, advance=advance, watch=watch)
    from moral_entropy.train.finetune import finetune

    return finetune(model, train, validation, settings, checkpoints=checkpoints, advance=advance, watch=watch)
