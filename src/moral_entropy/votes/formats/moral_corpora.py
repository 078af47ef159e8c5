"""The moral corpora as published → votes, yes or no on each of the five foundations.

MFTC, the Moral Foundations Twitter Corpus: `[{Corpus, Tweets: [{tweet_id, tweet_text?, annotations: [{annotator,
annotation}]}]}]`; the subcorpus is the domain. MFRC, the Reddit corpus: one row per annotation, `text, subreddit,
bucket, annotator, annotation, confidence`; the bucket is the domain. eMFD: one row per highlight, a passage that a
coder marked for the foundation assigned to them, `content, assigned_domain, coder_id, document_id`; a highlight is a
yes on it and a no on the other four, which is a strong assumption. The paper's author prepared tables of MFTC and eMFD
(`morality-MFTC`, `morality-eMFD` on the hub), which have other columns. Cells such as `Care,HARM ` name foundations;
distinct texts of a domain are items; an annotator has one vote per item and foundation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.columns import plain_name
from moral_entropy.votes.formats.records import export_of, peek, read_json
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import ReadingLog, refuse

FOUNDATIONS = ("authority", "care", "fairness", "loyalty", "sanctity")
NONE = "none"
"""Stands for no foundation among the meanings of labels."""

COLUMNS = ("text", "source", "domain", "annotator", "cell")
"""Text, the publisher's id of it if there is one, domain, annotator, and the labels as published."""

MFRC = {"text": "text", "domain": "bucket", "annotator": "annotator", "cell": "annotation"}
EMFD = {"text": "content", "cell": "assigned_domain", "annotator": "coder_id", "document": "document_id"}
MFTC_TABLE = {"text": "text", "source": "tweet_id", "domain": "corpus", "annotator": "annotator", "cell": "annotation"}
EMFD_TABLE = {"text": "text", "cell": "label", "annotator": "annotator", "document": "document_id"}
MFTC_LAYOUT = "MFTC is a list of {Corpus, Tweets: [{tweet_id, tweet_text, annotations: [{annotator, annotation}]}]}"
MEANINGS: Mapping[str, Mapping[str, str]] = {
    "mftc": {
        "care": "care", "harm": "care", "fairness": "fairness", "cheating": "fairness", "loyalty": "loyalty",
        "betrayal": "loyalty", "authority": "authority", "subversion": "authority", "purity": "sanctity",
        "degradation": "sanctity", "non-moral": NONE, "nm": NONE, "nh": NONE
    },
    "mfrc": {
        "care": "care", "proportionality": "fairness", "equality": "fairness", "loyalty": "loyalty",
        "authority": "authority", "purity": "sanctity", "thin morality": NONE, "non-moral": NONE
    },
    "emfd": {**{name: name for name in FOUNDATIONS}, "purity": "sanctity"}
}  # fmt: skip
"""The foundation, or "none", of every published label in lower case."""

DOMAINS = {
    "mftc": ("ALM", "BLM", "Baltimore", "Davidson", "Election", "MeToo", "Sandy"),
    "mfrc": ("Everyday Morality", "US Politics", "French Politics"),
}
"""Names of domains, which are spelt so where only case and blanks differ."""

NO_TEXT = "no tweet text available"
UNTAGGED = "Untagged"


@export_of("mftc", "/corpus /tweets/annotations", "text tweetid corpus annotator annotation")
def read_mftc(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of `MFTC_V4_text.json`, of `MFTC_V4.json`, or of `morality-MFTC`."""
    if peek(path).kind != "json":
        return to_votes(read_columns(path, MFTC_TABLE, log), "mftc", log)
    rows = list(_tweet_annotations(read_json(path), path.name))
    return to_votes(pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row"), "mftc", log)


@export_of("mfrc", "text subreddit bucket annotator annotation")
def read_mfrc(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of `final_mfrc_data.csv`, or the same as Parquet."""
    return to_votes(read_columns(path, MFRC, log), "mfrc", log)


@export_of("emfd", "content assigneddomain coderid documentid", "text label annotator documentid focusduration")
def read_emfd(path: Path, log: ReadingLog, domains: pl.DataFrame | None = None) -> pl.DataFrame:
    """Read the votes of `highlights_raw.csv`, or the same as Parquet.

    Parameters
    ----------
    path
        The file.
    log
        Where counts and notes go.
    domains
        Columns document and domain; without it no highlight has a domain.
    """
    frame = read_columns(path, EMFD_TABLE if "label" in peek(path).marks else EMFD, log)
    if domains is not None:
        frame = frame.join(domains, on="document", how="left", maintain_order="left")
        frame = frame.with_columns(pl.col("domain").fill_null(UNTAGGED))
    log.note("a highlight is a yes on the coder's foundation and counts as a no on the other four, not asked about.")
    return to_votes(frame, "emfd", log)


def read_columns(path: Path, columns: Mapping[str, str], log: ReadingLog) -> pl.DataFrame:
    """Read columns of a table as texts, by their published names in any spelling; ids such as `7.0` become `7`."""
    source = open_source(path)
    log.add(source.log)
    actual = {plain_name(name): name for name in source.columns}
    if missing := [name for name in columns.values() if plain_name(name) not in actual]:
        refuse(f"{source.name} has no column {missing[0]!r}. Found: {', '.join(source.columns)}. Is it as published?")
    cells = [source.column(actual[plain_name(name)]).cast(pl.String).alias(role) for role, name in columns.items()]
    # Numbers of documents and coders may have become floats.
    ids = [name for name in ("annotator", "document") if name in columns and "document" in columns]
    return pl.DataFrame(cells).with_columns(pl.col(ids).str.strip_chars().str.replace(r"^(\d+)\.0+$", "${1}"))


def to_votes(frame: pl.DataFrame, corpus: str, log: ReadingLog) -> pl.DataFrame:
    """Return one row per vote: item, annotator, question (the foundation), label (0 or 1), domain, text.

    Parameters
    ----------
    frame
        One row per annotation, in the order of the file; texts in the columns of `COLUMNS`, of which some may lack.
    corpus
        "mftc", "mfrc" or "emfd"; ids of items begin with it.
    log
        Where counts and notes go.
    """
    frame = _tidied(frame, corpus)
    no_text = pl.col("text").is_null() & pl.col("source").is_null()
    lacking = {"no text": no_text, "no annotator": pl.col("annotator").is_null(), "no label": pl.col("cell").is_null()}
    for reason, is_missing in lacking.items():
        log.drop(reason, frame.select(is_missing.sum()).item())
        frame = frame.filter(~is_missing)
    frame = _answered(frame, corpus, log)
    if frame.is_empty():
        left_out = ", ".join(f"{reason} {count:,}" for reason, count in log.dropped.items()) or "no annotation at all"
        refuse(f"no annotation is left of {corpus}: {left_out}. Is it the file as published?")
    ids = {text: text_id(corpus, text) for text in frame["text"].drop_nulls().unique()}
    item = pl.coalesce(pl.col("text").replace_strict(ids, default=None), pl.format(f"{corpus}-tweet-{{}}", "source"))
    frame = frame.with_columns(pl.coalesce(pl.format("{}@{}", item, "domain"), item).alias("item"))
    first = frame.unique(["item", "annotator"], keep="first", maintain_order=True)
    log.drop("repeats, the first kept", frame.height - first.height)
    index = ["item", "annotator", "domain", "text"]
    votes = first.unpivot(FOUNDATIONS, index=index, variable_name="question", value_name="label")
    votes = votes.select("item", "annotator", "question", "label", "domain", "text")
    return votes.sort("item", "annotator", "question")


def _tidied(frame: pl.DataFrame, corpus: str) -> pl.DataFrame:
    """Trim all columns but the text, turn blanks into nulls, end lines of texts in one way, spell domains."""
    absent = {name: pl.lit(None, dtype=pl.String) for name in COLUMNS if name not in frame.columns}
    # A file that was saved on Windows must have the same items.
    text = pl.col("text").str.replace_all("\r\n", "\n", literal=True)
    trimmed = pl.col(COLUMNS[1:]).str.strip_chars()
    frame = frame.with_columns(**absent).select(
        pl.when(text.str.strip_chars() != "").then(text).alias("text"), pl.when(trimmed != "").then(trimmed).name.keep()
    )
    spelling = {name.casefold(): name for name in DOMAINS.get(corpus, ())}
    domains = frame["domain"].drop_nulls().unique()
    names = {name: spelling.get(" ".join(name.split()).casefold(), name) for name in domains}
    return frame.with_columns(pl.col("domain").replace(names))


def _answered(frame: pl.DataFrame, corpus: str, log: ReadingLog) -> pl.DataFrame:
    """Replace the cell by a text for each foundation: 1 if it is named, 0 if not."""
    meanings = MEANINGS[corpus]
    cells = {cell: read_cell(cell, meanings) for cell in frame["cell"].unique()}
    unknown = {cell: labels[0] for cell, (_, _, labels) in cells.items() if labels}
    culprits = frame.filter(pl.col("cell").is_in(list(unknown)))
    if culprits.height:
        first = culprits.row(0, named=True)
        problem = f"{culprits.height:,} of {frame.height:,} annotations name a label that {corpus} does not have"
        place = f"{unknown[first['cell']]!r}, by {first['annotator']} on {(first['text'] or first['source'])[:40]!r}"
        refuse(f"{problem}. First: {place}. Known: {', '.join(meanings)}. Correct the file.")
    schema = {"cell": pl.String, "none": pl.Boolean, **dict.fromkeys(FOUNDATIONS, pl.String)}
    rows = [(cell, no, *(str(int(name in names)) for name in FOUNDATIONS)) for cell, (names, no, _) in cells.items()]
    answers = pl.DataFrame(rows, schema=schema, orient="row")
    frame = frame.join(answers, on="cell", maintain_order="left")
    any_foundation = pl.any_horizontal(pl.col(FOUNDATIONS) == "1")
    if n_mixed := frame.select((any_foundation & pl.col("none")).sum()).item():
        log.note(f"{n_mixed:,} annotations name a foundation and none at once; the foundation counts.")
    # A cell of commas alone says nothing.
    log.drop("no known label", frame.select((~any_foundation & ~pl.col("none")).sum()).item())
    return frame.filter(any_foundation | pl.col("none"))


def read_cell(cell: str, meanings: Mapping[str, str]) -> tuple[frozenset[str], bool, tuple[str, ...]]:
    """Read the labels of a cell, separated by commas, whatever their case and blanks.

    Returns
    -------
    tuple
        The foundations it names, whether it names a label that stands for none, and the labels that are unknown.

    Examples
    --------
    >>> read_cell(" Care,HARM, x", {"care": "care", "harm": "care"})
    (frozenset({'care'}), False, ('x',))
    """
    labels = [" ".join(label.split()) for label in cell.split(",") if label.strip()]
    names = {meanings[label.casefold()] for label in labels if label.casefold() in meanings}
    unknown = tuple(label for label in labels if label.casefold() not in meanings)
    return frozenset(names - {NONE}), NONE in names, unknown


def text_id(corpus: str, text: str) -> str:
    """Return the id of a text: the corpus, and 64 bits of the text's BLAKE2b hash in hexadecimal digits.

    Examples
    --------
    >>> text_id("mftc", "Be kind.")
    'mftc-9cc11283e899a1a2'
    """
    return f"{corpus}-{blake2b(text.encode(), digest_size=8).hexdigest()}"


def _tweet_annotations(subcorpora: Any, name: str) -> Iterator[tuple[str | None, ...]]:
    for number, subcorpus in enumerate(_list(subcorpora, name), 1):
        domain = _field(subcorpus, "Corpus", f"subcorpus {number} of {name}")
        tweets = _list(_field(subcorpus, "Tweets", f"{domain} in {name}"), f"Tweets of {domain} in {name}")
        for at, tweet in enumerate(tweets, 1):
            where = f"tweet {at:,} of {domain} in {name}"
            for vote in _list(_field(tweet, "annotations", where), f"annotations of {where}"):
                if not isinstance(vote, dict):
                    refuse(f"an annotation of {where} is {str(vote)[:40]!r}. {MFTC_LAYOUT}.")
                cells = (tweet.get("tweet_id"), domain, vote.get("annotator"), vote.get("annotation"))
                yield _text(tweet.get("tweet_text")), *(None if cell is None else str(cell) for cell in cells)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(f"{where} is no list. {MFTC_LAYOUT}.")
    return value


def _field(record: Any, key: str, where: str) -> Any:
    if not isinstance(record, dict) or record.get(key) is None:
        names = ", ".join(record) if isinstance(record, dict) else str(record)[:40]
        refuse(f"{where} has no {key}. Found: {names or 'nothing'}. {MFTC_LAYOUT}.")
    return record[key]


def _text(text: Any) -> str | None:
    if not isinstance(text, str) or " ".join(text.split()).casefold() in ("", NO_TEXT):
        return None
    # Half of an emoji, left where a tweet was cut off, is no UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
