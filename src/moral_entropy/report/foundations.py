"""The five moral foundations: their colours in the paper, and what they are about, for questions that bear their names.

Questions of any other name get the colours of Okabe and Ito, which people with colour blindness can tell apart.
"""

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

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C")


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


def colours_of(names: Sequence[str]) -> list[str]:
    """Return a colour per name: its foundation's, or the next of Okabe and Ito's.

    Examples
    --------
    >>> colours_of(["care", "toxic"])
    ['#00B4A6', '#0072B2']
    """
    others = [name for name in names if foundation_of(name) is None]
    colours = {name: OKABE_ITO[at % len(OKABE_ITO)] for at, name in enumerate(others)}
    return [colours.get(name) or FOUNDATIONS[foundation_of(name) or ""].colour for name in names]


def definitions_of(names: Sequence[str]) -> dict[str, str]:
    """Return what the questions that are foundations are about, by name."""
    found = {name: foundation_of(name) for name in names}
    return {name: FOUNDATIONS[foundation].meaning for name, foundation in found.items() if foundation}
