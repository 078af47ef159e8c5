"""The training: run folder → targets → a model in a folder of its own.

`run_training` does what `moral-entropy train` does, and prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy import __version__
from moral_entropy.errors import TrainError, UsageError
from moral_entropy.pipeline.model_card import model_card
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.checkpoint import EVERY, Checkpoints
from moral_entropy.train.classifier import TFIDF, Classifier, train_classifier
from moral_entropy.train.run_targets import targets_from_run
from moral_entropy.train.saving import check_out, save_classifier
from moral_entropy.train.settings import TrainSettings, Watch, look_away
from moral_entropy.train.splits import place_texts
from moral_entropy.train.targets import Targets, Weight, check_classes

FEWEST = 10
"""Texts without which there is no training."""


@dataclass(frozen=True)
class TrainOptions:
    """What to ask of a training.

    Parameters
    ----------
    model
        "minilm", "tfidf", a folder, or a name on the hub.
    labels
        Kind of targets.
    votes, text
        File with the texts and its column; by default the texts of the run.
    weight
        What items are weighed by: "epistemic", "votes", or nothing.
    validation
        Share of the texts that is not trained on but stops the training.
    settings
        How to train.
    resume
        Go on where a killed training of the same settings stopped.
    checkpoint_steps
        Steps between two checkpoints.
    """

    model: str = "minilm"
    labels: str = "soft"
    votes: str | None = None
    text: str | None = None
    weight: Weight | None = None
    validation: float = 0.1
    settings: TrainSettings = field(default_factory=TrainSettings)
    resume: bool = False
    checkpoint_steps: int = EVERY

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        if not 0 <= self.validation < 1:
            msg = f"--validation {self.validation:g} is no share of the texts. Write 0.1 for a tenth, 0 for none."
            raise UsageError(msg)
        if self.model == TFIDF and self.resume:
            msg = "tfidf trains in seconds and keeps no checkpoints, so there is nothing to resume. Leave --resume out."
            raise UsageError(msg)


@dataclass(frozen=True, eq=False)
class TrainRun:
    """A finished training.

    Parameters
    ----------
    path
        The model's folder.
    classifier
        The model.
    train, validation
        What it learnt from, and what it was stopped by.
    """

    path: Path
    classifier: Classifier
    train: Targets
    validation: Targets | None


def run_training(
    run: str | Path,
    out: str | Path,
    options: TrainOptions | None = None,
    *,
    advance: Advance = ignore,
    watch: Watch = look_away,
) -> TrainRun:
    """Train a classifier on the labels of a run and save it.

    Parameters
    ----------
    run
        The run folder.
    out
        Folder of the model; it appears when the model is complete, or not at all.
    options
        What to ask for.
    advance, watch
        Told the share done, and every point of the learning curve.
    """
    options = options or TrainOptions()
    check_out(out)
    checkpoints = _checkpoints(Path(out), options)
    targets = targets_from_run(run, options.labels, votes=options.votes, text=options.text, weight=options.weight)
    train, validation = hold_out(targets, options.validation, seed=options.settings.seed)
    check_classes(train)
    classifier = train_classifier(
        options.model, train, validation, options.settings, checkpoints=checkpoints, advance=advance, watch=watch
    )
    facts = _facts(options, train, validation)
    path = save_classifier(classifier, out, facts, card=model_card(run, classifier, train, facts))
    if checkpoints is not None:
        checkpoints.clear()
    return TrainRun(path, classifier, train, validation)


def hold_out(targets: Targets, share: float, *, seed: int) -> tuple[Targets, Targets | None]:
    """Split off a share of the texts; items of one text stay together.

    Parameters
    ----------
    targets
        All of them.
    share
        Of the texts that are held out; 0 for none.
    seed
        Decides which.
    """
    held_i = place_texts(targets.texts, seed=seed, purpose="validation") < share
    train = targets.take(np.flatnonzero(~held_i))
    if train.n_items < FEWEST:
        msg = f"{train.n_items} texts are left to train on, and {FEWEST} are the fewest. Audit more items with a text."
        raise TrainError(msg)
    return train, targets.take(np.flatnonzero(held_i)) if held_i.any() else None


def checkpoint_folder(out: Path) -> Path:
    """Give the folder in which a training towards `out` keeps its state."""
    target = out.resolve()
    return target.with_name(f".{target.name}.training")


def _checkpoints(out: Path, options: TrainOptions) -> Checkpoints | None:
    if options.model == TFIDF:
        return None
    checkpoints = Checkpoints(checkpoint_folder(out), options.checkpoint_steps, options.resume)
    if not options.resume and checkpoints.file.is_file():
        msg = (
            f"an earlier training towards {out} was stopped and left {checkpoints.folder}. Go on with it by --resume, "
            "or delete that folder to start anew."
        )
        raise TrainError(msg)
    if options.resume and not checkpoints.file.is_file():
        msg = f"there is nothing to resume: no training towards {out} left a checkpoint. Start anew without --resume."
        raise TrainError(msg)
    return checkpoints


def _facts(options: TrainOptions, train: Targets, validation: Targets | None) -> dict[str, Any]:
    return {
        "version": __version__,
        "model": options.model,
        "labels": options.labels,
        "weight": options.weight,
        "max_length": options.settings.max_length,
        "settings": {} if options.model == TFIDF else options.settings.facts(),
        "items": train.n_items,
        "validation_items": validation.n_items if validation is not None else 0,
        "notes": list(train.notes),
    }
