"""What a manifest must hold before anything reads it: keys and the types of their values, some of them nested.

Takes plain values, returns the first thing that is not as an audit writes it. Keys that are not listed may be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any

Shape = Any
"""A type, a tuple of types, a list with the shape of its entries, or a dict of shapes by key, `str` for any keys."""

NUMBER = (int, float)
MAYBE_NUMBER, MAYBE_TEXT = (int, float, NoneType), (str, NoneType)


QUESTION: Shape = {
    **dict.fromkeys(("question", "part", "solver"), str),
    "labels": [str],
    "positive": MAYBE_TEXT,
    **dict.fromkeys(("items", "items_without_votes", "votes", "annotators", "passes"), int),
    **dict.fromkeys(("items_counted", "entropy", "uncertain", "ambiguous"), NUMBER),
    "prevalence": {str: NUMBER},
    **dict.fromkeys(("ambiguity", "doubt_votes", "doubt_annotators", "aleatoric", "epistemic"), MAYBE_NUMBER),
    **dict.fromkeys(("log_posterior", "gradient_norm"), MAYBE_NUMBER),
    **dict.fromkeys(("converged", "flat"), bool),
    **dict.fromkeys(("modes", "curvature"), dict),
    "exponent": dict,
    "common": (dict, NoneType),
    "mixture": (dict, NoneType),
    "counted_as_one": [list],
}
MANIFEST: Shape = {
    **dict.fromkeys(("version", "command", "model", "coordinates", "pooling"), str),
    "input": {"source": str, "sha256": MAYBE_TEXT},
    "columns": {str: object},
    "guessed": [str],
    "dropped": {str: int},
    "notes": [str],
    **dict.fromkeys(("rows", "items", "items_without_votes", "annotators", "votes", "draws", "seed"), int),
    **dict.fromkeys(("anonymous", "converged", "use_gold"), bool),
    "domains": [str],
    "questions": [QUESTION],
    "fit_by": MAYBE_TEXT,
    "priors": {
        "prevalence": object,
        **dict.fromkeys(("diagonal", "off_diagonal"), MAYBE_NUMBER),
        "annotators": dict,
        "by_question": {str: [NUMBER]},
    },
    "interval": NUMBER,
    "options": {"read": {"on_repeat": str, "keep_case": bool, "missing": object}, "fit": dict},
    "warnings": [str],
    "versions": {str: str},
    "seconds": {str: NUMBER},
}


def first_problem(manifest: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a manifest, if anything is.

    Examples
    --------
    >>> first_problem({})
    "has no 'version'"
    """
    return next(_problems(manifest, MANIFEST, ""), None) or next(_impossible(manifest), None)


def rows_of(manifest: Mapping[str, Any], table: str) -> int | None:
    """Return how many rows a table has, from what the manifest says of its fits; None for tables it says nothing of.

    Examples
    --------
    >>> fit = {"items": 5, "votes": 15, "annotators": 3, "labels": ["no", "yes"]}
    >>> [rows_of({"questions": [fit]}, name) for name in ("votes", "annotators", "findings")]
    [15, 12, None]
    """
    sizes: dict[str, Callable[[Mapping[str, Any]], int]] = {
        "items": lambda fit: int(fit["items"]),
        "votes": lambda fit: int(fit["votes"]),
        "annotators": lambda fit: int(fit["annotators"]) * len(fit["labels"]) ** 2,
        "posterior": lambda fit: int(fit["items"]) * len(fit["labels"]) if len(fit["labels"]) > 2 else 0,
    }
    return sum(sizes[table](fit) for fit in manifest["questions"]) if table in sizes else None


def _problems(value: Any, shape: Shape, where: str) -> Iterator[str]:
    if isinstance(shape, dict) and not isinstance(value, dict):
        yield f"has {_shown(value)} as {where!r}, not a record"
    elif isinstance(shape, dict):
        for key, inner in _by_key(shape, value).items():
            path = f"{where}.{key}" if where else key
            if key not in value:
                yield f"has no {path!r}"
            else:
                yield from _problems(value[key], inner, path)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"has {_shown(value)} as {where!r}, not a list"
        else:
            for at, inner in enumerate(value):
                yield from _problems(inner, shape[0], f"{where}[{at}]")
    elif not _is(value, shape):
        yield f"has {_shown(value)} as {where!r}"


def _by_key(shape: dict[Any, Shape], value: dict[str, Any]) -> dict[str, Shape]:
    return dict.fromkeys(value, shape[str]) if str in shape else shape


def _is(value: Any, kinds: Any) -> bool:
    # True is an int to Python, and not to a reader of a manifest.
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    return isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed or object in allowed)


def _impossible(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say what has the right type and cannot be."""
    if not manifest["questions"]:
        yield "has no questions"
    # Runs of earlier versions have no digests.
    if not isinstance(manifest.get("files", {}), dict):
        yield f"has {_shown(manifest['files'])} as 'files', not a record"
    if not 0 < manifest["interval"] < 1:
        yield f"has {manifest['interval']!r} as 'interval'"
    for fit in manifest["questions"]:
        labels, name = fit["labels"], fit["question"]
        if len(labels) < 2 or len(set(labels)) < len(labels):
            yield f"has {len(labels)} labels of {name!r}, some alike or too few"
        elif (fit["positive"] is not None) != (len(labels) == 2) or fit["positive"] not in (None, *labels):
            yield f"has {fit['positive']!r} as the positive label of {name!r}"
        elif set(fit["prevalence"]) != set(labels):
            yield f"has a prevalence of other labels than those of {name!r}"
        elif manifest["model"] == "mixed" and fit["mixture"] is None:
            yield f"has no mixture of {name!r}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
