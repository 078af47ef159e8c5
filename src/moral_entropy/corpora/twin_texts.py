"""Short synthetic texts for the twins.

In: the domain and where every item lies for each foundation. Out: one distinct text per item, neutral filler of the
domain with cue words of the foundations. Knows nothing of votes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import UsageError
from moral_entropy.votes.table import Floats

CUE_KEPT, CUE_FALSE = 0.8, 0.05
"""Chance that a text carries a cue of a foundation that is clearly in it, and of one that is clearly not."""


@dataclass(frozen=True)
class Phrases:
    """What texts are made of.

    Parameters
    ----------
    openings
        First words, by domain.
    details, closings
        Filler of every domain.
    cue_links
        Words before a cue.
    cues
        Cue words, by foundation.
    """

    openings: Mapping[str, Sequence[str]]
    details: Sequence[str]
    closings: Sequence[str]
    cue_links: Sequence[str]
    cues: Mapping[str, Sequence[str]]


@cache
def read_phrases() -> Phrases:
    """Read the package's phrases.

    Examples
    --------
    >>> read_phrases().cues["fairness"][:2]
    ['justice', 'equality']
    """
    source = files("moral_entropy.corpora") / "data" / "twin_phrases.toml"
    return Phrases(**tomllib.loads(source.read_text(encoding="utf-8")))


def write_texts(rng: np.random.Generator, domain: str, place_if: Floats, foundations: Sequence[str]) -> list[str]:
    """Write one text for each item of a domain, all of them different.

    Parameters
    ----------
    rng
        Where the randomness comes from.
    domain
        Name of the domain, which chooses the openings.
    place_if
        Where each item lies for each foundation: 0 is clearly no, 1 clearly yes.
    foundations
        Their names.

    Examples
    --------
    >>> place_if = np.array([[1.0, 0.0], [0.0, 0.0]])
    >>> first, second = write_texts(np.random.default_rng(1), "Sandy", place_if, ("care", "fairness"))
    >>> first
    'by the closed subway markets opened as usual including healing students swapped their notebooks last night'
    >>> second
    'at the petrol queue people compared train tickets one column appeared late as reported'
    """
    phrases = read_phrases()
    # "No second detail" is the last of the choices.
    fillers = (phrases.openings[domain], phrases.details, [*phrases.details, ""], phrases.closings)
    opening_i, detail_i, second_i, closing_i = _draw_fillers(
        rng, domain, [len(each) for each in fillers], len(place_if)
    )
    cue_if = rng.random(place_if.shape) < CUE_FALSE + place_if * (CUE_KEPT - CUE_FALSE)
    cues_i = _draw_cues(rng, cue_if, [phrases.cues[name] for name in foundations], phrases.cue_links)
    columns = zip(opening_i.tolist(), detail_i.tolist(), cues_i, second_i.tolist(), closing_i.tolist(), strict=True)
    return [
        " ".join(filter(None, (fillers[0][a], fillers[1][b], cues, fillers[2][c], fillers[3][d])))
        for a, b, cues, c, d in columns
    ]


def _draw_fillers(
    rng: np.random.Generator, domain: str, sizes: Sequence[int], n_items: int
) -> tuple[NDArray[np.int64], ...]:
    n_choices = int(np.prod(sizes))
    if n_items > n_choices:
        msg = f"there are only {n_choices:,} texts for domain {domain!r}, not {n_items:,}. Choose a smaller scale."
        raise UsageError(msg)
    # Without replacement: no two items of the domain share their filler.
    return np.unravel_index(rng.choice(n_choices, size=n_items, replace=False), sizes)


def _draw_cues(
    rng: np.random.Generator, cue_if: NDArray[np.bool_], words: Sequence[Sequence[str]], links: Sequence[str]
) -> list[str]:
    link_if = rng.integers(len(links), size=cue_if.shape)
    word_if = rng.integers([len(each) for each in words], size=cue_if.shape)
    found: list[list[str]] = [[] for _ in cue_if]
    for i, f in np.argwhere(cue_if).tolist():
        found[i].append(f"{links[link_if[i, f]]} {words[f][word_if[i, f]]}")
    return [" ".join(each) for each in found]
