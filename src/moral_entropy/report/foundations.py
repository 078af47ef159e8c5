"""The five moral foundations: their colours in the paper and what they are about, for questions of their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Foundation:
    """A moral foundation.

    Parameters
    ----------
    colour
        As in the paper's figures.
    names
        Names a question about it goes by, in lower case.
    meaning
        What it is about.
    """

    colour: str
    names: tuple[str, ...]
    meaning: str


FOUNDATIONS = {
    "authority": Foundation(
        "#6A4C93",
        ("authority", "subversion"),
        "Respect for rank, duty and tradition, and anger at those who undermine them.",
    ),
    "care": Foundation(
        "#00B4A6",
        ("care", "harm"),
        "Compassion for those who suffer and the wish to protect them; harm is its violation.",
    ),
    "fairness": Foundation(
        "#3498DB",
        ("fairness", "cheating", "equality", "proportionality"),
        "Justice, equal rights and giving back what one got; cheating is its violation.",
    ),
    "loyalty": Foundation(
        "#E74C3C",
        ("loyalty", "betrayal", "ingroup"),
        "Standing by one's own group, team or country; betrayal is its violation.",
    ),
    "sanctity": Foundation(
        "#F39C12",
        ("sanctity", "purity", "degradation"),
        "Keeping body and spirit clean and what is sacred untouched; degradation is its violation.",
    ),
}


def foundation_of(question: str) -> str | None:
    """Return the foundation that a question is about, by its name; None for any other.

    Examples
    --------
    >>> foundation_of("Care/Harm"), foundation_of("toxic")
    ('care', None)
    """
    words = set(re.split(r"[^a-z]+", question.lower())) - {""}
    found = [name for name, foundation in FOUNDATIONS.items() if words & set(foundation.names)]
    return found[0] if len(found) == 1 and words <= set(FOUNDATIONS[found[0]].names) else None


def definitions_of(names: Sequence[str]) -> dict[str, str]:
    """Return what the questions that are foundations are about, by name."""
    found = {name: foundation_of(name) for name in names}
    return {name: FOUNDATIONS[foundation].meaning for name, foundation in found.items() if foundation}
