"""What is known of the published files: counts to expect, where they are, what their labels mean.

Reads `data/published_files.toml`; knows no file of a user.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import fill

from moral_entropy.corpora.twins import corpus_facts
from moral_entropy.votes.options import OnRepeat


@dataclass(frozen=True)
class Published:
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
        """Give the foundation, or "none", of each published label in small letters."""
        return {label: foundation for foundation, labels in self.labels.items() for label in labels}


@cache
def _read_published() -> dict[str, Published]:
    source = files("moral_entropy.corpora") / "data" / "published_files.toml"
    tables = tomllib.loads(source.read_text(encoding="utf-8"))
    return {name: Published(**table) for name, table in tables.items()}


def published(name: str) -> Published:
    """Give what is known of the files of a corpus.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd", in any case.

    Examples
    --------
    >>> published("mfrc").rows
    61226
    >>> published("MFTC").foundation_of()["harm"]
    'care'
    """
    corpus_facts(name)  # refuses a name that is none, with the one that was meant
    return _read_published()[name.lower()]


def where_published(name: str) -> str:
    """Say in words where a corpus is published and under which licence.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".

    Examples
    --------
    >>> print(where_published("mfrc").splitlines()[0])
    Moral Foundations Reddit Corpus (MFRC)
    """
    known = published(name)
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
