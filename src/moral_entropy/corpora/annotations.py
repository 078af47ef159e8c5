"""Annotations: a corpus as it is published, a row an annotation, before labels mean anything.

The table that every reader of a corpus returns, and what readers of delimited files share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import shown
from moral_entropy.votes.source import Source

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("text", "source_id", "domain", "annotator", "cell")
"""Text, the publisher's id of it if there is one, domain, who labelled it, and the labels as published."""


def annotation_table(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """Make a table of annotations, all of them texts.

    Parameters
    ----------
    rows
        A tuple an annotation, in the order of `COLUMNS`; `None` where something is missing.

    Examples
    --------
    >>> annotation_table([("Be kind.", 7, "ALM", " ann ", "care")]).rows()
    [('Be kind.', '7', 'ALM', 'ann', 'care')]
    """
    import polars as pl

    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    spelt = [[None if value is None else str(value) for value in column] for column in columns]
    frame = pl.DataFrame(dict(zip(COLUMNS, spelt, strict=True)), schema=dict.fromkeys(COLUMNS, pl.String))
    return tidy(frame)


def tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """Trim what is not text, empty what is blank, and end the lines of texts in one way.

    Parameters
    ----------
    frame
        The columns of `COLUMNS`, of type String.
    """
    import polars as pl

    # A file that went through Windows must not give other items.
    text = pl.col("text").str.replace_all("\r\n", "\n", literal=True)
    blank = text.str.strip_chars() == ""
    trimmed = pl.col(COLUMNS[1:]).str.strip_chars()
    emptied = pl.when(trimmed != "").then(trimmed).name.keep()
    return frame.select(pl.when(~blank).then(text).alias("text"), emptied)


def pick_columns(source: Source, columns: Mapping[str, str], file: str) -> pl.DataFrame:
    """Fetch columns as texts, under new names.

    Parameters
    ----------
    source
        The opened file.
    columns
        The published name of each column wanted, in small letters.
    file
        What the publisher calls the file, for errors.

    Examples
    --------
    >>> import polars as pl
    >>> from moral_entropy.votes.source import open_source
    >>> source = open_source(pl.DataFrame({"Text": ["Be kind."], "annotator": [7]}))
    >>> pick_columns(source, {"text": "text", "annotator": "annotator"}, "data.csv").rows()
    [('Be kind.', '7')]
    """
    import polars as pl

    spelt = {name.strip().casefold(): name for name in source.columns}
    missing = [name for name in columns.values() if name not in spelt]
    if missing:
        msg = (
            f"{source.name} has no column {missing[0]!r}. Found: {shown(source.columns)}. "
            f"Is it {file}, as published and with its header?"
        )
        raise VotesError(msg)
    return pl.DataFrame([source.column(spelt[name]).cast(pl.String).alias(role) for role, name in columns.items()])


def plain_id(name: str) -> pl.Expr:
    """Spell a column of numbers that may have become fractions: `7.0` is `7`.

    Parameters
    ----------
    name
        The column.

    Examples
    --------
    >>> import polars as pl
    >>> pl.DataFrame({"coder": ["7.0", "70", "a.0b"]}).select(plain_id("coder"))["coder"].to_list()
    ['7', '70', 'a.0b']
    """
    import polars as pl

    return pl.col(name).str.strip_chars().str.replace(r"^(\d+)\.0+$", "${1}")
