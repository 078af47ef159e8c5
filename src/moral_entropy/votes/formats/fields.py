"""What the records of an export hold, of which no shape is taken for granted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from moral_entropy.votes.columns import guess_column
from moral_entropy.votes.table import refuse

Record = dict[str, Any]


def dicts(value: Any) -> list[Record]:
    """Return the records in a list; none if it is no list.

    Examples
    --------
    >>> dicts([{"id": 1}, "no record"]), dicts(None)
    ([{'id': 1}], [])
    """
    return [part for part in listed(value) if isinstance(part, dict)]


def listed(value: Any) -> list[Any]:
    """Return a list as it is; anything else becomes an empty one."""
    return value if isinstance(value, list) else []


def mapping(value: Any) -> Record:
    """Return a record as it is; anything else becomes an empty one."""
    return value if isinstance(value, dict) else {}


def at(record: Any, *path: str) -> Any:
    """Return what records within each other hold under these keys; None where there is nothing.

    Examples
    --------
    >>> at({"meta": {"panel": 3}}, "meta", "panel"), at({"meta": 7}, "meta", "panel")
    (3, None)
    """
    for key in path:
        record = mapping(record).get(key)
    return record


def scalars(record: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Keep the values that are texts, numbers, true or false, but for some keys.

    Examples
    --------
    >>> scalars({"text": "so", "vector": [1.0], "n": 3, "none": None})
    {'text': 'so', 'n': 3}
    """
    plain = {str(name): value for name, value in mapping(record).items() if isinstance(value, (str, int, float, bool))}
    return {name: value for name, value in plain.items() if name not in without}


def first_of(record: Any, *names: str) -> Any:
    """Return the value of the first key that has one other than null or an empty text."""
    return next((value for name in names if (value := at(record, name)) not in (None, "")), None)


def text_of(fields: Mapping[str, Any]) -> str | None:
    """Return an item's text: the field with the likeliest name, else the first that is a text and no address.

    Examples
    --------
    >>> text_of({"url": "https://example.org", "article": "So it goes."})
    'So it goes.'
    """
    texts = {name: value for name, value in fields.items() if isinstance(value, str) and value.strip()}
    if likely := guess_column("text", texts):
        return texts[likely]
    return next((text for text in texts.values() if "://" not in text and not text.startswith("/data/")), None)


def last_text(messages: Any, role: str | None = None) -> str | None:
    """Return a prompt as one text: of a list of messages the last one, of anybody or of one role.

    Examples
    --------
    >>> last_text([{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}], role="user")
    '2 + 2?'
    """
    if isinstance(messages, str):
        return messages
    contents = [message.get("content") for message in dicts(messages) if role is None or message.get("role") == role]
    return next((text for text in reversed(contents) if isinstance(text, str)), None)


def paired(labels: list[Any], annotators: list[Any], item: Any, name: str, remedy: str) -> Iterator[tuple[Any, Any]]:
    """Return pairs of annotator and label that lie side by side, and refuse an item with more of either."""
    if len(labels) != len(annotators):
        n = f"{len(labels)} annotations by {len(annotators)} annotators"
        refuse(f"item {item!r} of {name} has {n}. There must be one of each; {remedy}.")
    return zip(annotators, labels, strict=True)
