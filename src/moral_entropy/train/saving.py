"""A trained model as a folder: whole or not at all.

Beside the model's own files lie `moral_entropy.json`, which says what the outputs are, and `README.md`, the model
card. A folder of the Hugging Face kind loads with `AutoModelForSequenceClassification.from_pretrained` too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moral_entropy.errors import TrainError
from moral_entropy.runs.folder import writing
from moral_entropy.train.checkpoint import cannot_write
from moral_entropy.train.classifier import TFIDF, Classifier
from moral_entropy.train.head import head_from_facts

FACTS, CARD = "moral_entropy.json", "README.md"


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
    """Write a trained model and give its folder.

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
    described = {**facts, "head": classifier.head.facts()}
    try:
        with writing(out) as folder:
            classifier.save(folder)
            (folder / FACTS).write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            if card is not None:
                (folder / CARD).write_text(card, encoding="utf-8")
            # Weights are written for their owner's eyes only; the umask shall decide, as for every other file.
            mode = (folder / FACTS).stat().st_mode
            for file in folder.iterdir():
                file.chmod(mode)
    except TrainError:
        raise
    except Exception as error:
        if not _refused(error):
            raise
        what = f"the model to {out}"
        raise cannot_write(what, error) from error
    return Path(out)


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
    facts = _facts(path)
    head = head_from_facts(facts["head"])
    if facts["model"] == TFIDF:
        from moral_entropy.train.tfidf import load_tfidf

        return load_tfidf(path, head)
    from moral_entropy.train.encoder import load_encoder
    from moral_entropy.train.finetune import Finetuned

    return Finetuned(head, load_encoder(str(path.resolve()), head, device=device), int(facts["max_length"]))


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((path / FACTS).read_text(encoding="utf-8"))
        if {"head", "model", "max_length"} <= set(facts):
            return facts
        why = f"its {FACTS} is incomplete"
    except OSError:
        why = f"it has no {FACTS}" if path.is_dir() else "there is no such folder"
    except (ValueError, TypeError):
        why = f"its {FACTS} is damaged"
    msg = f"{path} is no trained model: {why}. Make one with: moral-entropy train run/ -o {path}"
    raise TrainError(msg)


def _refused(error: Exception) -> bool:
    """Tell whether the system refused to write; safetensors has an error of its own for that."""
    return isinstance(error, OSError) or (
        type(error).__name__ == "SafetensorError" and "os error" in str(error).lower()
    )
