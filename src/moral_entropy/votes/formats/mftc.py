"""MFTC: the Moral Foundations Twitter Corpus, a JSON list of subcorpora with their tweets.

Layout: `[{Corpus, Tweets: [{tweet_id, tweet_text?, annotations: [{annotator, annotation}]}]}]`, with texts
(`MFTC_V4_text.json`) or without (`MFTC_V4.json`); or as the paper's author prepared it, a table with one row per
annotation (`morality-MFTC` on the hub). The subcorpus is the domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.foundations import COLUMNS, has_columns, read_columns, to_votes
from moral_entropy.votes.formats.records import peek, read_json
from moral_entropy.votes.table import ReadingLog

if TYPE_CHECKING:
    import polars as pl

LAYOUT = "MFTC is a JSON list of {Corpus, Tweets: [{tweet_id, tweet_text, annotations: [{annotator, annotation}]}]}"
NO_TEXT = "no tweet text available"
LABELS = {
    "care": ("care", "harm"),
    "fairness": ("fairness", "cheating"),
    "loyalty": ("loyalty", "betrayal"),
    "authority": ("authority", "subversion"),
    "sanctity": ("purity", "degradation"),
    "none": ("non-moral", "nm", "nh"),
}
MEANINGS = {label: foundation for foundation, labels in LABELS.items() for label in labels}
PREPARED = {"text": "text", "source": "tweet_id", "domain": "corpus", "annotator": "annotator", "cell": "annotation"}
DOMAINS = ("ALM", "BLM", "Baltimore", "Davidson", "Election", "MeToo", "Sandy")


def detect(path: Path) -> bool:
    """Return whether a file is MFTC as published, or as the paper's author prepared it."""
    published = peek(path).has("Corpus") and peek(path).has("Tweets", "annotations")
    return published or has_columns(path, PREPARED.values())


def to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of `MFTC_V4_text.json`, of `MFTC_V4.json`, or of `morality-MFTC`."""
    import polars as pl

    if has_columns(path, PREPARED.values()):
        return to_votes(read_columns(path, PREPARED, log), "mftc", MEANINGS, DOMAINS, log)
    rows = list(_annotations(read_json(path), path.name))
    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    return to_votes(frame, "mftc", MEANINGS, DOMAINS, log)


def _annotations(subcorpora: Any, name: str) -> Iterator[tuple[str | None, ...]]:
    for number, subcorpus in enumerate(_listed(subcorpora, name), 1):
        domain = _field(subcorpus, "Corpus", f"subcorpus {number} of {name}")
        tweets = _listed(_field(subcorpus, "Tweets", f"{domain} in {name}"), f"Tweets of {domain} in {name}")
        for at, tweet in enumerate(tweets, 1):
            where = f"tweet {at:,} of {domain} in {name}"
            for vote in _listed(_field(tweet, "annotations", where), f"annotations of {where}"):
                if not isinstance(vote, dict):
                    msg = f"an annotation of {where} is {str(vote)[:40]!r}. {LAYOUT}."
                    raise VotesError(msg)
                cells = (tweet.get("tweet_id"), domain, vote.get("annotator"), vote.get("annotation"))
                yield _text(tweet.get("tweet_text")), *(None if cell is None else str(cell) for cell in cells)


def _listed(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        msg = f"{where} is no list. {LAYOUT}."
        raise VotesError(msg)
    return value


def _field(record: Any, key: str, where: str) -> Any:
    if not isinstance(record, dict) or record.get(key) is None:
        names = ", ".join(record) if isinstance(record, dict) else str(record)[:40]
        msg = f"{where} has no {key}. Found: {names or 'nothing'}. {LAYOUT}."
        raise VotesError(msg)
    return record[key]


def _text(text: Any) -> str | None:
    if not isinstance(text, str) or " ".join(text.split()).casefold() in ("", NO_TEXT):
        return None
    # Half of an emoji, left where a tweet was cut off, is no UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
