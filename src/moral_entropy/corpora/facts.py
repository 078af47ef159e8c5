"""Facts about the three moral corpora: the paper's table of them, and the published files.

Reads `data/corpora.toml` and `data/published_files.toml`; knows no file of a user.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from textwrap import fill
from typing import Any

from moral_entropy.errors import UsageError
from moral_entropy.votes.options import OnRepeat


@dataclass(frozen=True)
class DomainFacts:
    """A domain of a corpus, as in the paper's table "Corpora"; see `data/corpora.toml`.

    Parameters
    ----------
    name
        Its name; "(all)" for the whole corpus.
    items
        Number of texts.
    votes_per_item
        Annotations per text.
    any_rule
        Share of the texts that at least one annotator flagged, for each foundation.
    team
        The annotators of the domain; None where all annotators work on it.
    """

    name: str
    items: int
    votes_per_item: float
    any_rule: Sequence[float]
    team: Sequence[int] | None = None


@dataclass(frozen=True)
class CorpusFacts:
    """A corpus; see `data/corpora.toml`. Sequences follow `foundations`."""

    full_name: str
    foundations: Sequence[str]
    annotators: int
    fewest_votes: int
    most_votes: int
    uneven: float
    sensitivity: Sequence[float]
    specificity: Sequence[float]
    prevalence: Sequence[float]
    domains: Sequence[DomainFacts]


@cache
def _read_facts() -> dict[str, CorpusFacts]:
    source = files("moral_entropy.corpora") / "data" / "corpora.toml"
    tables: dict[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))
    foundations = tables.pop("foundations")
    return {
        name: CorpusFacts(
            foundations=foundations, **{**table, "domains": [DomainFacts(**domain) for domain in table["domains"]]}
        )
        for name, table in tables.items()
    }


def corpus_facts(name: str) -> CorpusFacts:
    """Return what the paper says of a corpus.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd", in any case.

    Examples
    --------
    >>> corpus_facts("mftc").annotators
    23
    >>> corpus_facts("mtfc")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: there is no twin of 'mtfc'; did you mean 'mftc'? Choose from mftc, mfrc, emfd.
    """
    known = _read_facts()
    if name.lower() not in known:
        close = get_close_matches(name.lower(), known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        msg = f"there is no twin of {name!r}{meant} Choose from {', '.join(known)}."
        raise UsageError(msg)
    return known[name.lower()]


@dataclass(frozen=True)
class PublishedFiles:
    """The files of a corpus; see `data/published_files.toml`.

    Parameters
    ----------
    files
        Names of the files.
    rows, texts, texts_by_domain
        Annotations, distinct texts, and distinct texts within domains that the whole files hold.
    on_repeat
        What is done by default when an annotator labelled a text twice.
    where, licence, reference
        Where the files are published, under which licence, and the article about them.
    labels
        The published labels of each foundation, and of "none".
    """

    files: str
    rows: int
    texts: int
    texts_by_domain: int
    on_repeat: OnRepeat
    where: str
    licence: str
    reference: str
    labels: Mapping[str, Sequence[str]]

    def foundation_of(self) -> dict[str, str]:
        """Return the foundation, or "none", of each published label in lower case."""
        return {label: foundation for foundation, labels in self.labels.items() for label in labels}


@cache
def _read_published() -> dict[str, PublishedFiles]:
    source = files("moral_entropy.corpora") / "data" / "published_files.toml"
    tables = tomllib.loads(source.read_text(encoding="utf-8"))
    return {name: PublishedFiles(**table) for name, table in tables.items()}


def published_files(name: str) -> PublishedFiles:
    """Return what is known of the published files of a corpus.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd", in any case.

    Examples
    --------
    >>> published_files("mfrc").rows
    61226
    >>> published_files("MFTC").foundation_of()["harm"]
    'care'
    """
    corpus_facts(name)  # refuses a wrong name, and suggests the right one
    return _read_published()[name.lower()]


def where_published(name: str) -> str:
    """Return a text that says where a corpus is published and under which licence.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".

    Examples
    --------
    >>> print(where_published("mfrc").splitlines()[0])
    Moral Foundations Reddit Corpus (MFRC)
    """
    known = published_files(name)
    paragraphs = {
        "Published": known.where,
        "Licence": f"{known.licence}.",
        "Files": f"{known.files}.",
        "Article": f"{known.reference}.",
    }
    lines = [f"{corpus_facts(name).full_name} ({_short_name(name)})"]
    for what, text in paragraphs.items():
        lines.append(
            fill(f"{what}: {text}", 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )
    return "\n".join(lines)


def _short_name(name: str) -> str:
    return {"emfd": "eMFD"}.get(name.lower(), name.upper())
