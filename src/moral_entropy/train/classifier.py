"""Trained classifiers, whichever model they are: train one, save it as a folder, load it again.

`tfidf` needs scikit-learn, every other model PyTorch and Transformers. A saved model is whole or not at all: beside its
own files lie `moral_entropy.json`, which says what the outputs are, and `README.md`, the model card. A folder of the
Hugging Face kind loads with `AutoModelForSequenceClassification.from_pretrained` too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.folder import writing
from moral_entropy.train.checkpoint import Checkpoints, cannot_write
from moral_entropy.train.head import Head, head_from_facts
from moral_entropy.train.options import TFIDF, TrainOptions
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Floats

FACTS, CARD = "moral_entropy.json", "README.md"


class Point(NamedTuple):
    """A point of a learning curve: losses in nats per item after so many steps; NaN where there is no validation."""

    step: int
    train_loss: float
    validation_loss: float


Watch = Callable[[Point], None]
"""Called with every point of the learning curve as soon as it is known."""


def ignore_point(_point: Point) -> None:
    """Take a point and do nothing."""


class Classifier(Protocol):
    """A trained model: texts in, probabilities out."""

    @property
    def head(self) -> Head:
        """What its outputs mean."""

    @property
    def curve(self) -> Sequence[Point]:
        """How the losses fell."""

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the logit of every output for every text: `logits_io`."""

    def probabilities(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the probability of every output for every text: `p_io`."""

    def cooled(self, temperature: float) -> Classifier:
        """Return the model whose logits are divided by a temperature."""

    def save(self, folder: Path) -> None:
        """Write the model's files into a folder that is there."""


def train_classifier(
    train: Targets,
    validation: Targets | None = None,
    options: TrainOptions | None = None,
    *,
    checkpoints: Checkpoints | None = None,
    advance: Advance = ignore,
    watch: Watch = ignore_point,
) -> Classifier:
    """Train a model on targets.

    Parameters
    ----------
    train
        What to learn.
    validation
        What to stop early by; never trained on.
    options
        Which model to train, and how.
    checkpoints
        Where the state of the training is kept, to go on after a kill; None for nowhere. `tfidf` needs none.
    advance
        Called with the share done.
    watch
        Called with every point of the learning curve.
    """
    options = options or TrainOptions()
    if train.voters is not None:
        from moral_entropy.train.averaged import average, voter_targets

        whole = options.model != TFIDF
        checked = None if validation is None else voter_targets(validation, whole=whole)
        inner = train_classifier(
            voter_targets(train, whole=whole), checked, options, checkpoints=checkpoints, advance=advance, watch=watch
        )
        return average(inner, train)
    if options.model == TFIDF:
        from moral_entropy.train.tfidf import train_tfidf

        return train_tfidf(train, validation, advance=advance, watch=watch)
    from moral_entropy.train.finetune import finetune

    return finetune(train, validation, options, checkpoints=checkpoints, advance=advance, watch=watch)


def check_out(out: str | Path) -> None:
    """Refuse a folder that holds anything, before hours are spent on a model that cannot be put there."""
    path = Path(out)
    if not path.exists():
        return
    if not path.is_dir():
        msg = f"{path} is a file, and a model needs a folder. Choose another with -o."
        raise TrainError(msg)
    found = sorted(entry.name for entry in path.iterdir())
    if found:
        msg = (
            f"{path} exists and holds {len(found)} file{'s' * (len(found) > 1)}. First: {found[0]}. A model replaces "
            "nothing; choose another folder with -o."
        )
        raise TrainError(msg)


def save_classifier(
    classifier: Classifier, out: str | Path, facts: Mapping[str, Any], *, card: str | None = None
) -> Path:
    """Write a trained model and return its folder.

    Parameters
    ----------
    classifier
        The model.
    out
        The folder; new or empty.
    facts
        What to remember about the training: `model`, `max_length` and whatever else.
    card
        The model card.
    """
    check_out(out)
    described = {**facts, "head": classifier.head.facts(), "voters": _voter_facts(classifier)}
    try:
        with writing(out) as folder:
            classifier.save(folder)
            (folder / FACTS).write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            if card is not None:
                (folder / CARD).write_text(card, encoding="utf-8")
            # Weights are written readable for their owner alone; let the umask decide, as for every other file.
            mode = (folder / FACTS).stat().st_mode
            for file in folder.iterdir():
                file.chmod(mode)
    except Exception as error:
        if not _is_refused_write(error):
            raise
        what = f"the model to {out}"
        raise cannot_write(what, error) from error
    return Path(out)


def _is_refused_write(error: Exception) -> bool:
    """Tell whether the system refused to write; safetensors has an error of its own for that."""
    return isinstance(error, OSError) or (
        type(error).__name__ == "SafetensorError" and "os error" in str(error).lower()
    )


def load_classifier(folder: str | Path, *, device: str = "auto") -> Classifier:
    """Load a model that `save_classifier` wrote.

    Examples
    --------
    >>> load_classifier("nowhere")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.TrainError: nowhere is no trained model: there is no such folder. ...
    """
    path = Path(folder)
    facts = _read_facts(path)
    head = head_from_facts(facts["head"])
    if not (voters := facts.get("voters")):
        return _load(path, facts, head, device)
    from moral_entropy.train.averaged import averaged_from_facts, voter_head

    return averaged_from_facts(voters, head, _load(path, facts, voter_head(voters), device))


def _voter_facts(classifier: Classifier) -> dict[str, Any] | None:
    """Return what a classifier averages, where it has an output per voter."""
    from moral_entropy.train.averaged import Averaged

    return classifier.facts() if isinstance(classifier, Averaged) else None


def _load(path: Path, facts: Mapping[str, Any], head: Head, device: str) -> Classifier:
    if facts["model"] == TFIDF:
        from moral_entropy.train.tfidf import load_tfidf

        return load_tfidf(path, head)
    from moral_entropy.train.encoder import load_encoder
    from moral_entropy.train.finetune import Finetuned

    encoder = load_encoder(str(path.resolve()), head, device=device)
    bad = [name for name, weights in encoder.model.named_parameters() if not bool(weights.isfinite().all())]
    if bad:
        msg = f"{path} holds weights that are not finite, in {len(bad):,} tensors. First: {bad[0]}. Train it again."
        raise TrainError(msg)
    return Finetuned(head, encoder, int(facts["max_length"]))


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((path / FACTS).read_text(encoding="utf-8"))
        if {"head", "model", "max_length"} <= set(facts) and isinstance(facts["max_length"], int):
            return facts
        why = f"its {FACTS} is incomplete"
    except OSError:
        why = f"it has no {FACTS}" if path.is_dir() else "there is no such folder"
    except (ValueError, TypeError):
        why = f"its {FACTS} is damaged"
    msg = f"{path} is no trained model: {why}. Make one with: moral-entropy train run/ -o {path}"
    raise TrainError(msg)
