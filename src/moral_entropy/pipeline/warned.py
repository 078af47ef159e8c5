"""Warnings of the library, collected instead of raised: a run keeps them and says them once, at its end."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from moral_entropy.errors import MoralEntropyWarning


@contextmanager
def collected() -> Iterator[list[warnings.WarningMessage]]:
    """Collect our own warnings while the block runs; pass all others on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MoralEntropyWarning)
        yield caught
    for other in caught:
        if not issubclass(other.category, MoralEntropyWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def messages(caught: list[warnings.WarningMessage]) -> list[str]:
    """Give the texts of our own among them, each once."""
    ours = (str(warning.message) for warning in caught if issubclass(warning.category, MoralEntropyWarning))
    return list(dict.fromkeys(ours))
