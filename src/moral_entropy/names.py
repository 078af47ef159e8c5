"""Names in tables: what stands for no single question, domain, label or part."""

from __future__ import annotations

ALL = "(all)"
"""All together: pooled, every item counting once."""

MEAN = "(mean)"
"""The plain mean over questions, domains or splits."""

MULTICLASS = "(multiclass)"
"""The label itself, right or wrong, of a question with more than two labels."""

NO_DOMAIN = "(none)"
"""Items without a domain, or without a value of another column they are split by."""

UNKNOWN_GROUP = "(unknown)"
"""Annotators whose group is not known."""


def person(name: str) -> str:
    """Return the name of an annotator as the subject of a sentence.

    Examples
    --------
    >>> person("80"), person("ann")
    ('annotator 80', 'ann')
    """
    return f"annotator {name}" if name.isdecimal() else name
