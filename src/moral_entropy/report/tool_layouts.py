"""Rows of a run → records that annotation tools import: votes as annotations, p as predictions.

Label Studio's tasks, Argilla's records, Prodigy's tasks. Each remembers the item and question of the run, so that what
comes back from the tool is joined to it (`votes/formats` reads them). A row without votes asks for some: the same
layouts serve the queue of `moral-entropy next`. Takes plain dicts, touches no file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Literal

from moral_entropy import __version__
from moral_entropy.votes.formats.exported_votes import ITEM_KEY, QUESTION_KEY
from moral_entropy.votes.layouts import ANONYMOUS

Tool = Literal["label-studio", "argilla", "prodigy"]
Row = Mapping[str, Any]
"""Question, item, text, labels, soft_label, label, annotators, annotations; for a queue also ask and expected_gain."""

AGENT = f"moral-entropy {__version__}"
TEXT = "text"
ASKED = ("ask", "expected_gain")


def label_studio_tasks(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one task per item: what annotators chose, and a prediction per question with its probability as score.

    Rows of one item must lie side by side.
    """
    for at, (item, group) in enumerate(_by_item(rows), 1):
        predictions = [
            {"model_version": AGENT, "score": _chance(row), "result": [_choice(row, row["label"], n)]}
            for n, row in enumerate(group, 1)
            if row["label"] is not None
        ]
        annotations = [
            {"completed_by": _who(who, "email"), "was_cancelled": False, "result": [_choice(row, label, n)]}
            for n, row in enumerate(group, 1)
            for who, label in _votes(row)
        ]
        data = {TEXT: _text(group[0]), ITEM_KEY: item} | {key: group[0][key] for key in ASKED if key in group[0]}
        yield {"id": at, "data": data, "annotations": annotations, "predictions": predictions}


def _choice(row: Row, label: str, at: int) -> dict[str, Any]:
    question, value = row["question"], {"choices": [label]}
    return {"id": f"result{at}", "from_name": question, "to_name": TEXT, "type": "choices", "value": value}


def argilla_records(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one record per item: responses by question, and p as suggestions. Rows of one item lie side by side."""
    for item, group in _by_item(rows):
        responses = {
            row["question"]: [
                {"value": label, "user_id": None if who == ANONYMOUS else who, "status": "submitted"}
                for who, label in _votes(row)
            ]
            for row in group
        }
        suggestions = {
            row["question"]: {"value": row["label"], "score": _chance(row), "agent": AGENT}
            for row in group
            if row["label"] is not None
        }
        yield {
            "id": item,
            "fields": {TEXT: _text(group[0])},
            "metadata": {key: group[0][key] for key in ASKED if group[0].get(key) is not None},
            "suggestions": suggestions,
            "responses": {question: given for question, given in responses.items() if given},
            "vectors": {},
        }


def prodigy_tasks(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one task per vote, as `db-out` has them; of a row without votes one task that waits for an answer."""
    for row in rows:
        task = {
            TEXT: _text(row),
            ITEM_KEY: row["item"],
            QUESTION_KEY: row["question"],
            "_input_hash": _hash(row["item"]),
            "_task_hash": _hash(row["item"], row["question"]),
            "_view_id": "choice",
            "options": [{"id": label, "text": label} for label in row["labels"]],
            "config": {"choice_style": "single"},
            "score": _chance(row),
            "meta": {"suggested": row["label"], "score": _chance(row)} | {k: row[k] for k in ASKED if k in row},
        }
        given = _votes(row)
        if not given and "ask" in row:
            yield task
        for who, label in given:
            by = {} if who == ANONYMOUS else {"_annotator_id": who, "_session_id": who}
            yield task | {"accept": [label], "answer": "accept"} | by


LAYOUTS: dict[Tool, Callable[[Iterable[Row]], Iterator[dict[str, Any]]]] = {
    "label-studio": label_studio_tasks,
    "argilla": argilla_records,
    "prodigy": prodigy_tasks,
}


def _by_item(rows: Iterable[Row]) -> Iterator[tuple[Any, list[Row]]]:
    for item, group in groupby(rows, key=lambda row: row["item"]):
        yield item, list(group)


def _votes(row: Row) -> list[tuple[str, str]]:
    return list(zip(row.get("annotators") or (), row.get("annotations") or (), strict=True))


def _who(annotator: str, key: str) -> dict[str, str] | None:
    return None if annotator == ANONYMOUS else {key: annotator}


def _text(row: Row) -> str:
    return row.get(TEXT) or ""


def _chance(row: Row) -> float | None:
    """Return the probability of the consensus label."""
    if row["label"] is None or row["soft_label"] is None:
        return None
    return float(dict(zip(row["labels"], row["soft_label"], strict=True))[row["label"]])


def _hash(*names: str) -> int:
    """Return a number of 31 bits, as Prodigy's hashes are."""
    digest = hashlib.sha256("\0".join(names).encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1
