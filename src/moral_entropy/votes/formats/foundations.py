"""Annotations of the moral corpora as published → votes, yes or no on each of the five foundations.

The readers of MFTC, MFRC and eMFD share this. Cells such as `Care,HARM ` name foundations; distinct texts of a domain
are items; an annotator has one vote per item and foundation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.records import peek
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import ReadingLog

if TYPE_CHECKING:
    import polars as pl

FOUNDATIONS = ("authority", "care", "fairness", "loyalty", "sanctity")
NONE = "none"
"""Stands for no foundation among the meanings of labels."""

COLUMNS = ("text", "source", "domain", "annotator", "cell")
"""Text, the publisher's id of it if there is one, domain, annotator, and the labels as published."""

Meanings = Mapping[str, str]
"""The foundation, or "none", of every published label in lower case."""


def has_columns(path: Path, names: Iterable[str]) -> bool:
    """Return whether a file is a table with these columns, in any case."""
    return {name.strip().casefold() for name in peek(path).names} >= set(names)


def read_columns(path: Path, columns: Mapping[str, str], log: ReadingLog) -> pl.DataFrame:
    """Read columns of a table as texts, by their published name in lower case; ids such as `7.0` become `7`."""
    import polars as pl

    source = open_source(path)
    log.add(source.log)
    actual = {name.strip().casefold(): name for name in source.columns}
    missing = [name for name in columns.values() if name not in actual]
    if missing:
        msg = f"{source.name} has no column {missing[0]!r}. Found: {', '.join(source.columns)}. Is it as published?"
        raise VotesError(msg)
    cells = [source.column(actual[name]).cast(pl.String).alias(role) for role, name in columns.items()]
    # Numbers of documents and coders may have become floats.
    ids = [name for name in ("annotator", "document") if name in columns and "document" in columns]
    return pl.DataFrame(cells).with_columns(pl.col(ids).str.strip_chars().str.replace(r"^(\d+)\.0+$", "${1}"))


def to_votes(
    frame: pl.DataFrame, corpus: str, meanings: Meanings, domains: Sequence[str], log: ReadingLog
) -> pl.DataFrame:
    """Return one row per vote: item, annotator, question (the foundation), label (0 or 1), domain, text.

    Parameters
    ----------
    frame
        One row per annotation, in the order of the file; texts in the columns of `COLUMNS`.
    corpus
        "mftc", "mfrc" or "emfd"; ids of items begin with it.
    meanings
        What the labels mean.
    domains
        Names of domains, which are spelt so where only case and blanks differ.
    log
        Where counts and notes go.
    """
    import polars as pl

    frame = _tidied(frame, domains)
    reasons = {
        "no text": pl.col("text").is_null() & pl.col("source").is_null(),
        "no annotator": pl.col("annotator").is_null(),
        "no label": pl.col("cell").is_null(),
    }
    for reason, is_missing in reasons.items():
        log.drop(reason, frame.select(is_missing.sum()).item())
        frame = frame.filter(~is_missing)
    frame = _answered(frame, corpus, meanings, log)
    if frame.is_empty():
        left_out = ", ".join(f"{reason} {count:,}" for reason, count in log.dropped.items()) or "no annotation at all"
        msg = f"no annotation is left of {corpus}: {left_out}. Is it the file as published?"
        raise VotesError(msg)
    ids = {text: text_id(corpus, text) for text in frame["text"].drop_nulls().unique()}
    item = pl.coalesce(pl.col("text").replace_strict(ids, default=None), pl.format(f"{corpus}-tweet-{{}}", "source"))
    frame = frame.with_columns(pl.coalesce(pl.format("{}@{}", item, "domain"), item).alias("item"))
    kept = frame.unique(["item", "annotator"], keep="first", maintain_order=True)
    log.drop("repeats, the first kept", frame.height - kept.height)
    index = ["item", "annotator", "domain", "text"]
    votes = kept.unpivot(FOUNDATIONS, index=index, variable_name="question", value_name="label")
    return votes.select("item", "annotator", "question", "label", "domain", "text").sort(
        "item", "annotator", "question"
    )


def _tidied(frame: pl.DataFrame, domains: Sequence[str]) -> pl.DataFrame:
    """Trim all columns but the text, turn blanks into nulls, end lines of texts in one way, spell domains."""
    import polars as pl

    # A file that was saved on Windows must have the same items.
    text = pl.col("text").str.replace_all("\r\n", "\n", literal=True)
    trimmed = pl.col(COLUMNS[1:]).str.strip_chars()
    frame = frame.select(
        pl.when(text.str.strip_chars() != "").then(text).alias("text"), pl.when(trimmed != "").then(trimmed).name.keep()
    )
    spelling = {name.casefold(): name for name in domains}
    names = {
        name: spelling.get(" ".join(name.split()).casefold(), name) for name in frame["domain"].drop_nulls().unique()
    }
    return frame.with_columns(pl.col("domain").replace(names))


def _answered(frame: pl.DataFrame, corpus: str, meanings: Meanings, log: ReadingLog) -> pl.DataFrame:
    """Replace the cell by a text for each foundation: 1 if it is named, 0 if not."""
    import polars as pl

    read = {cell: read_cell(cell, meanings) for cell in frame["cell"].unique()}
    unknown = {cell: labels[0] for cell, (_, _, labels) in read.items() if labels}
    culprits = frame.filter(pl.col("cell").is_in(list(unknown)))
    if culprits.height:
        first = culprits.row(0, named=True)
        msg = (
            f"{culprits.height:,} of {frame.height:,} annotations name a label that {corpus} does not have. First: "
            f"{unknown[first['cell']]!r}, by {first['annotator']} on {(first['text'] or first['source'])[:40]!r}. "
            f"Known: {', '.join(meanings)}. Correct the file, or leave these annotations out."
        )
        raise VotesError(msg)
    answers = pl.DataFrame(
        [
            (cell, none, *("1" if name in named else "0" for name in FOUNDATIONS))
            for cell, (named, none, _) in read.items()
        ],
        schema={"cell": pl.String, "none": pl.Boolean, **dict.fromkeys(FOUNDATIONS, pl.String)},
        orient="row",
    )
    frame = frame.join(answers, on="cell", maintain_order="left")
    named = pl.any_horizontal(pl.col(FOUNDATIONS) == "1")
    if both := frame.select((named & pl.col("none")).sum()).item():
        log.note(f"{both:,} annotations name a foundation and none at once; the foundation counts.")
    # A cell of commas alone says nothing.
    log.drop("no known label", frame.select((~named & ~pl.col("none")).sum()).item())
    return frame.filter(named | pl.col("none"))


def read_cell(cell: str, meanings: Meanings) -> tuple[frozenset[str], bool, tuple[str, ...]]:
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
    meant = {meanings[label.casefold()] for label in labels if label.casefold() in meanings}
    unknown = tuple(label for label in labels if label.casefold() not in meanings)
    return frozenset(meant - {NONE}), NONE in meant, unknown


def text_id(corpus: str, text: str) -> str:
    """Return the id of a text: the corpus, and 64 bits of the text's BLAKE2b hash in hexadecimal digits.

    Examples
    --------
    >>> text_id("mftc", "Be kind.")
    'mftc-9cc11283e899a1a2'
    """
    return f"{corpus}-{blake2b(text.encode(), digest_size=8).hexdigest()}"
