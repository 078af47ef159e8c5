"""LeWiDi: the files of the shared tasks on learning with disagreements.

One JSON object with one key per item: `annotations` and `annotators` in the same order, separated by commas, or, in
the third edition, `annotations` by annotator. `soft_label` is a summary and ignored; `hard_label` can be named as
published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import (
    QUESTION_KEY,
    ExportedVotes,
    Record,
    mapping,
    peek,
    read_json,
    scalars,
    text_of,
)
from moral_entropy.votes.table import ReadingLog

TITLE = "LeWiDi"
QUESTION = "label"
ABOUT_VOTES = frozenset({"annotations", "annotators", "text", "number of annotations", "number of annotators"})


def detect(path: Path) -> bool:
    """Return whether a file is one of LeWiDi."""
    seen = peek(path)
    items = {key[0] for key in seen.keys if len(key) == 2 and key[1] == "annotations"}
    return any(seen.has(item, "annotators") or seen.has(item, "soft_label") for item in items)


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file.

    Parameters
    ----------
    path
        The JSON file.
    log
        Where counts and notes go.
    """
    entries = read_json(path)
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        msg = f"{path.name} is not one JSON object with a record for each item, as LeWiDi's files are."
        raise VotesError(msg)
    votes = ExportedVotes(path.name, TITLE, log)
    for item, entry in entries.items():
        votes.add_item(item, _facts(entry))
        asked = mapping(entry.get("other_info")).get(QUESTION_KEY)
        question = asked if isinstance(asked, str) else QUESTION
        for annotator, label in _annotations(entry, item, path.name):
            votes.add_vote(item, annotator, question, label)
    return votes.to_table("Files of a test split may come without annotations; take train or dev.")


def _annotations(entry: Record, item: str, name: str) -> list[tuple[str, Any]]:
    given = entry.get("annotations")
    if isinstance(given, dict):
        return [(annotator, _split(label)) for annotator, label in given.items() if label not in (None, "")]
    labels, annotators = _listed(given), _listed(entry.get("annotators"))
    if labels and len(labels) != len(annotators):
        msg = (
            f"item {item!r} of {name} has {len(labels)} annotations by {len(annotators)} annotators. "
            "There must be one of each; correct it, or take the item out."
        )
        raise VotesError(msg)
    return list(zip(annotators, labels, strict=False))


def _listed(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else [] if cell is None else str(cell).split(",")
    texts = [str(part).strip() for part in parts]
    return texts if any(texts) else []


def _split(label: Any) -> Any:
    """Split labels such as `neutral,contradiction`; other values stay as they are."""
    return [part.strip() for part in label.split(",")] if isinstance(label, str) and "," in label else label


def _facts(entry: Record) -> dict[str, Any]:
    text = entry.get("text")
    texts = scalars(mapping(text))
    about = {name: value for name, value in entry.items() if name not in ABOUT_VOTES}
    whole = " / ".join(str(part) for part in texts.values()) if texts else text_of(scalars({"text": text}))
    # Other facts come last, so that a domain among them is the domain.
    other = {name: value for name, value in mapping(entry.get("other_info")).items() if name != QUESTION_KEY}
    return scalars(about) | scalars(other) | {"text": whole}
