"""MFTC: a JSON list of subcorpora with their tweets → annotations.

Layout: `[{Corpus, Tweets: [{tweet_id, tweet_text?, annotations: [{annotator, annotation}]}]}]`. Labels stay as
published.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moral_entropy.corpora.annotations import annotation_table
from moral_entropy.errors import VotesError
from moral_entropy.files import no_such_file
from moral_entropy.votes.source import MAGIC_GZIP
from moral_entropy.votes.table import one_line

if TYPE_CHECKING:
    import polars as pl

NO_TEXT = "no tweet text available"


def read_mftc(path: str | Path) -> pl.DataFrame:
    """Read a file of the Moral Foundations Twitter Corpus.

    Parameters
    ----------
    path
        `MFTC_V4_text.json`, or `MFTC_V4.json` without texts; may be gzipped.

    Returns
    -------
    pl.DataFrame
        One row per annotation: text (null where there is none), source_id (the tweet's), domain (the subcorpus),
        annotator, cell.

    Examples
    --------
    >>> import tempfile
    >>> votes = [{"annotator": "annotator00", "annotation": "care,harm"}]
    >>> tweet = {"tweet_id": "7", "tweet_text": "no tweet text available", "annotations": votes}
    >>> path = Path(tempfile.mkdtemp()) / "MFTC_V4_text.json"
    >>> _ = path.write_text(json.dumps([{"Corpus": "ALM", "Tweets": [tweet]}]))
    >>> read_mftc(path).rows()
    [(None, '7', 'ALM', 'annotator00', 'care,harm')]
    """
    path = Path(path)
    return annotation_table(_annotations(_load(path), path.name))


def _load(path: Path) -> list[Any]:
    try:
        raw = path.read_bytes()
        subcorpora = json.loads(gzip.decompress(raw) if raw.startswith(MAGIC_GZIP) else raw)
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        msg = f"{path.name} is a damaged gzip file: {one_line(error)}. Was it copied whole?"
        raise VotesError(msg) from error
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror or error}."
        raise VotesError(msg) from error
    except json.JSONDecodeError as error:
        msg = f"{path.name} is no JSON: {error.msg} in line {error.lineno:,}. Was it copied whole? {_EXPECTED}"
        raise VotesError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path.name} is not UTF-8: byte {error.start:,} is 0x{error.object[error.start]:02x}. {_EXPECTED}"
        raise VotesError(msg) from error
    except RecursionError as error:
        msg = f"{path.name} nests its records too deep. {_EXPECTED}"
        raise VotesError(msg) from error
    if not isinstance(subcorpora, list) or not subcorpora:
        msg = f"{path.name} holds {_kind(subcorpora)}, not a list of subcorpora. {_EXPECTED}"
        raise VotesError(msg)
    return subcorpora


_EXPECTED = "MFTC is a JSON list of {Corpus, Tweets: [{tweet_id, tweet_text, annotations}]}."


def _annotations(subcorpora: list[Any], name: str) -> Iterator[tuple[Any, ...]]:
    for number, subcorpus in enumerate(subcorpora, 1):
        where = f"subcorpus {number} of {name}"
        domain = _field(subcorpus, "Corpus", (str, int), where)
        for at, tweet in enumerate(_field(subcorpus, "Tweets", (list,), where), 1):
            where_tweet = f"tweet {at:,} of {domain} in {name}"
            votes = _field(tweet, "annotations", (list,), where_tweet)
            text, tweet_id = _text(tweet.get("tweet_text")), tweet.get("tweet_id")
            for vote in votes:
                if not isinstance(vote, dict):
                    msg = f"an annotation of {where_tweet} is {_kind(vote)}, not {{annotator, annotation}}. {_EXPECTED}"
                    raise VotesError(msg)
                yield text, tweet_id, domain, vote.get("annotator"), vote.get("annotation")


def _field(record: Any, key: str, kinds: tuple[type, ...], where: str) -> Any:
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kinds):
        found = ", ".join(map(str, record)) if isinstance(record, dict) else _kind(record)
        problem = f"no {key}" if value is None else f"{_kind(value)} as its {key}"
        msg = f"{where} has {problem}. Found: {found or 'nothing'}. {_EXPECTED}"
        raise VotesError(msg)
    return value


def _text(text: Any) -> str | None:
    if not isinstance(text, str) or " ".join(text.split()).casefold() in ("", NO_TEXT):
        return None
    # Half of an emoji, left where a tweet was cut off, is no UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _kind(value: Any) -> str:
    if isinstance(value, (list, dict)) and not value:
        return f"an empty {type(value).__name__}"
    return {"NoneType": "null", "str": "a text", "dict": "a record", "list": "a list"}.get(
        type(value).__name__, "a number"
    )
