"""Notes on how the consensus of a run differs from the paper's model, shown wherever its figures are."""

from __future__ import annotations

from typing import Any

LEARNT = {"heldout": "learnt from left-out votes", "gold": "learnt from gold labels"}


def model_notes(manifest: dict[str, Any]) -> list[str]:
    """Describe how the consensus differs from the paper's model; no notes where it does not.

    Examples
    --------
    >>> model_notes({"temper": 0.5, "questions": [{"question": "care", "part": "", "exponent": {"value": 0.5}}]})
    ['tempered consensus: every vote counts as 0.5 of one (as told); all figures are against it']
    >>> model_notes({"pooling": "full", "questions": []})
    ['full pooling: all annotators have the same error rates']
    >>> model_notes({"questions": []})
    []
    """
    notes = []
    if manifest.get("temper", "off") != "off":
        notes.append(
            f"tempered consensus: every vote counts as {_powers(manifest)} of one "
            f"({LEARNT.get(str(manifest['temper']), 'as told')}); all figures are against it"
        )
    pooling = manifest.get("pooling", "none")
    if pooling == "partial":
        asked = manifest.get("options", {}).get("fit", {}).get("pooling", "auto")
        why = "" if asked == "partial" else "as many annotators gave few votes each, "
        notes.append(f"partial pooling: {why}error rates of annotators are drawn towards those that all have in common")
    elif pooling == "full":
        notes.append("full pooling: all annotators have the same error rates")
    if manifest.get("constrain", "none") != "none":
        notes.append("constrained: every annotator's chance to be right is kept at chance or above")
    return notes


def _powers(manifest: dict[str, Any]) -> str:
    """Describe the exponent, by question where they differ."""
    fits = manifest["questions"]
    values = [f"{fit['exponent']['value']:.2g}" for fit in fits]
    if len(set(values)) == 1:
        return values[0]
    names = [f"{fit['question']} / {fit['part']}" if fit["part"] else fit["question"] for fit in fits]
    return ", ".join(f"{value} ({name})" for name, value in zip(names, values, strict=True))
