"""A training on a run folder: targets and texts of the run in, a model in a folder of its own out.

`run_training` does what `moral-entropy train` does, and prints nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moral_entropy import __version__
from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.run import Run, read_run
from moral_entropy.train.checkpoint import Checkpoints
from moral_entropy.train.classifier import (
    Classifier,
    Watch,
    check_out,
    ignore_point,
    save_classifier,
    train_classifier,
)
from moral_entropy.train.model_card import model_card
from moral_entropy.train.options import TFIDF, TrainOptions
from moral_entropy.train.reference import Reference
from moral_entropy.train.run_targets import targets_from_run
from moral_entropy.train.splits import split_validation
from moral_entropy.train.targets import Targets, check_classes
from moral_entropy.train.worth import Worth, find_worth


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
    worth
        What it is worth on the validation texts; None where there are none.
    """

    path: Path
    classifier: Classifier
    train: Targets
    validation: Targets | None
    worth: Worth | None = None


def run_training(
    run: Run | str | Path,
    out: str | Path,
    options: TrainOptions | None = None,
    *,
    advance: Advance = ignore,
    watch: Watch = ignore_point,
) -> TrainRun:
    """Train a classifier on the labels of a run and save it.

    Parameters
    ----------
    run
        The run, or its folder.
    out
        Folder of the model; it appears when the model is complete, or not at all.
    options
        What to learn, which model to train, and how.
    advance, watch
        Called with the share done, and with every point of the learning curve.
    """
    options = options or TrainOptions()
    check_out(out)
    checkpoints = _checkpoints(Path(out), options)
    run = run if isinstance(run, Run) else read_run(run)
    targets = targets_from_run(run, options.labels, votes=options.votes, text=options.text, weight=options.weight)
    train, validation = split_validation(targets, options.validation, seed=options.seed)
    check_classes(train)
    classifier = train_classifier(train, validation, options, checkpoints=checkpoints, advance=advance, watch=watch)
    worth = None
    if validation is not None:
        worth = find_worth(classifier, train, validation, *_references(run, options))
        classifier = classifier.cooled(worth.temperature)
    facts = {**_facts(options, train, validation), "worth": None if worth is None else worth.facts}
    path = save_classifier(classifier, out, facts, card=model_card(run, classifier, train, facts))
    if checkpoints is not None:
        checkpoints.clear()
    return TrainRun(path, classifier, train, validation, worth)


def _references(run: Run, options: TrainOptions) -> tuple[list[Reference], Targets]:
    """Return what the model may be measured against, and the share of the votes of each item."""

    def of(kind: str) -> Targets:
        return targets_from_run(run, kind, votes=options.votes, text=options.text)

    found = [Reference("consensus", of("soft"), of("hard"))]
    with suppress(TrainError):
        gold = of("gold")
        found.insert(0, Reference("gold", gold, gold))
    return found, of("smoothed-share")


def _checkpoints(out: Path, options: TrainOptions) -> Checkpoints | None:
    if options.model == TFIDF:
        return None
    target = out.resolve()
    folder = target.with_name(f".{target.name}.training")
    checkpoints = Checkpoints(folder, options.checkpoint_steps, options.resume)
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
        "max_length": options.max_length,
        "settings": {} if options.model == TFIDF else options.settings(),
        "items": train.n_items,
        "validation_items": validation.n_items if validation is not None else 0,
        "notes": list(train.notes),
    }
