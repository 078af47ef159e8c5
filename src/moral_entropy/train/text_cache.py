"""What is made of texts once and kept: `of_texts` makes only what a cache does not have.

A text goes by the hash of its letters. How things are made, read and kept is the caller's: `features` and
`hidden_states` have files of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from moral_entropy.progress import Advance

TEXTS_PER_FILE = 4_096
"""Texts that are made and kept together."""


def text_key(text: str) -> str:
    """Hash a text: the name under which the cache keeps what was made of it."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def file_name(keys: Sequence[str]) -> str:
    """Return the name of the file that holds what was made of some texts."""
    return hashlib.blake2b("".join(keys).encode(), digest_size=16).hexdigest()


def of_texts(
    texts: Sequence[str],
    read: Callable[[set[str]], dict[str, Any]],
    make: Callable[[list[str], Advance], Any],
    keep: Callable[[list[str], Any], dict[str, Any]],
    *,
    advance: Advance,
) -> list[Any]:
    """Return what is made of every text, in order; a text that comes twice is made once.

    Parameters
    ----------
    texts
        The texts.
    read
        Called with the wanted keys; returns what the cache has of them.
    make
        Makes something of each of some texts.
    keep
        Called with keys and what was made; puts it into the cache and returns it by key.
    advance
        Called with the share done.

    Examples
    --------
    >>> made = []
    >>> def lengths(texts, advance):
    ...     made.extend(texts)
    ...     return [len(text) for text in texts]
    >>> cache = {text_key("known"): 5}
    >>> of_texts(["known", "new", "new"], lambda keys: dict(cache), lengths,
    ...          lambda keys, found: dict(zip(keys, found)), advance=print)
    [5, 3, 3]
    >>> made
    ['new']
    """
    keys = [text_key(text) for text in texts]
    known = read(set(keys))
    todo = list({key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items())
    for start in range(0, len(todo), TEXTS_PER_FILE):
        some = todo[start : start + TEXTS_PER_FILE]
        share = lambda part, start=start, some=some: advance((start + part * len(some)) / len(todo))  # noqa: E731
        made = make([text for _, text in some], share)
        known.update(keep([key for key, _ in some], made))
    return [known[key] for key in keys]
