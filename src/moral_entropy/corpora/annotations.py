"""Annotations of a published corpus: the table that every reader returns, and what is made of it.

Cells such as `Care,HARM ` become yes or no for every foundation; distinct texts become items, with one domain and one
annotation per annotator. The functions that read delimited files are shared by the readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import VotesError
from moral_entropy.votes.options import OnRepeat
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import ReadingLog, shown

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("text", "source_id", "domain", "annotator", "cell")
"""Text, the publisher's id of it if there is one, domain, annotator, and the labels as published."""

NONE = "none"
"""Stands for no foundation in the map of published labels."""


def annotation_table(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """Return a table of annotations; all cells are texts.

    Parameters
    ----------
    rows
        One tuple per annotation, in the order of `COLUMNS`; `None` where something is missing.

    Examples
    --------
    >>> annotation_table([("Be kind.", 7, "ALM", " ann ", "care")]).rows()
    [('Be kind.', '7', 'ALM', 'ann', 'care')]
    """
    import polars as pl

    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    texts = [[None if value is None else str(value) for value in column] for column in columns]
    frame = pl.DataFrame(dict(zip(COLUMNS, texts, strict=True)), schema=dict.fromkeys(COLUMNS, pl.String))
    return tidy_annotations(frame)


def tidy_annotations(frame: pl.DataFrame) -> pl.DataFrame:
    """Trim all columns but the text, turn blank cells into null, and end the lines of texts in one way.

    Parameters
    ----------
    frame
        The columns of `COLUMNS`, of type String.
    """
    import polars as pl

    # A file that was saved on Windows must have the same items.
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
        The published name of each column wanted, in lower case.
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

    actual = {name.strip().casefold(): name for name in source.columns}
    missing = [name for name in columns.values() if name not in actual]
    if missing:
        msg = (
            f"{source.name} has no column {missing[0]!r}. Found: {shown(source.columns)}. "
            f"Is it {file}, as published and with its header?"
        )
        raise VotesError(msg)
    return pl.DataFrame([source.column(actual[name]).cast(pl.String).alias(role) for role, name in columns.items()])


def plain_id(name: str) -> pl.Expr:
    """Spell the ids of a column whose numbers may have become floats: `7.0` is `7`.

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


def read_cell(cell: str, foundation_of: Mapping[str, str]) -> tuple[frozenset[str], bool, tuple[str, ...]]:
    """Read the labels of a cell, separated by commas, whatever their case and blanks.

    Parameters
    ----------
    cell
        As published.
    foundation_of
        The foundation, or "none", of every label in lower case.

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
    known = {foundation_of[label.casefold()] for label in labels if label.casefold() in foundation_of}
    unknown = tuple(label for label in labels if label.casefold() not in foundation_of)
    return frozenset(known - {NONE}), NONE in known, unknown


def add_foundations(
    frame: pl.DataFrame,
    foundations: Sequence[str],
    foundation_of: Mapping[str, str],
    log: ReadingLog,
    *,
    corpus: str,
    ignore_unknown: bool,
) -> pl.DataFrame:
    """Replace the cell by one 0/1 column per foundation.

    Parameters
    ----------
    frame
        Annotations.
    foundations
        Names of the columns to add.
    foundation_of
        As in `read_cell`.
    log
        Where counts and notes go.
    corpus
        Name of the corpus, for errors.
    ignore_unknown
        Whether to pass over labels that are not known; an annotation that has no other is left out.
    """
    import polars as pl

    read = {cell: read_cell(cell, foundation_of) for cell in frame["cell"].unique()}
    unknown = {cell: labels[0] for cell, (_, _, labels) in read.items() if labels}
    culprits = frame.filter(pl.col("cell").is_in(list(unknown)))
    if culprits.height and not ignore_unknown:
        raise VotesError(_unknown_labels(culprits, frame.height, unknown, foundation_of, corpus))
    if culprits.height:
        counted = f"{culprits.height:,} annotations name a label that {corpus} does not have, such as"
        log.note(f"{counted} {unknown[culprits['cell'][0]]!r}; it is passed over.")
    answers = pl.DataFrame(
        {
            "cell": list(read),
            **{name: [int(name in named) for named, _, _ in read.values()] for name in foundations},
            "both": [none and bool(named) for named, none, _ in read.values()],
            "says": [none or bool(named) for named, none, _ in read.values()],
        },
        schema={
            "cell": pl.String,
            **dict.fromkeys(foundations, pl.Int8),
            **dict.fromkeys(("both", "says"), pl.Boolean),
        },
    )
    frame = frame.join(answers, on="cell", how="left", maintain_order="left")
    if both := int(frame["both"].sum()):
        log.note(f"{both:,} annotations name a foundation and none at once; the foundation counts.")
    # A cell of commas alone says nothing, as does one with unknown labels only.
    log.drop("no known label", int((~frame["says"]).sum()))
    return frame.filter("says").drop("both", "says", "cell")


def _unknown_labels(
    culprits: pl.DataFrame, n_rows: int, unknown: Mapping[str, str], foundation_of: Mapping[str, str], corpus: str
) -> str:
    first = culprits.row(0, named=True)
    where = first["text"] if first["text"] is not None else first["source_id"]
    return (
        f"{culprits.height:,} of {n_rows:,} annotations name a label that {corpus} does not have. "
        f"First: {unknown[first['cell']]!r}, by {first['annotator']} on {where[:40]!r}. "
        f"Known: {', '.join(foundation_of)}. Correct the file, or pass over such labels with ignore_unknown=True "
        "(CLI: --ignore-unknown)."
    )


def text_id(corpus: str, text: str) -> str:
    """Return the id of a text: the corpus, and 64 bits of the text's BLAKE2b hash in hexadecimal digits.

    Parameters
    ----------
    corpus
        "mftc", "mfrc" or "emfd".
    text
        Its text, lines ending in a line feed.

    Examples
    --------
    >>> text_id("mftc", "Be kind.")
    'mftc-9cc11283e899a1a2'
    """
    return f"{corpus}-{blake2b(text.encode(), digest_size=8).hexdigest()}"


def add_items(frame: pl.DataFrame, corpus: str, log: ReadingLog, *, by_domain: bool) -> pl.DataFrame:
    """Add the id of the item to every annotation, and keep one domain per item.

    Parameters
    ----------
    frame
        Annotations with a text or a source_id each.
    corpus
        "mftc", "mfrc" or "emfd".
    log
        Where notes go.
    by_domain
        Whether a text that occurs in two domains is two items.
    """
    import polars as pl

    texts = frame["text"].drop_nulls().unique()
    ids = pl.DataFrame({"text": texts, "item": pl.Series([text_id(corpus, t) for t in texts], dtype=pl.String)})
    frame = frame.join(ids, on="text", how="left", maintain_order="left")
    frame = frame.with_columns(pl.col("item").fill_null(pl.format("{}-tweet-{}", pl.lit(corpus), "source_id")))
    if by_domain:
        apart = pl.format("{}@{}", "item", "domain")
        return frame.with_columns(pl.coalesce(apart, "item").alias("item"))
    n_domains = frame.group_by("item").agg(pl.col("domain").drop_nulls().n_unique())["domain"]
    if several := int((n_domains > 1).sum()):
        log.note(f"{several:,} texts occur in several domains; the first by name is taken (or use --by-domain).")
    return frame.with_columns(pl.col("domain").min().over("item"))


def tidy_domains(frame: pl.DataFrame, known: Sequence[str]) -> pl.DataFrame:
    """Spell domains as the paper does, where only case and blanks differ.

    Parameters
    ----------
    frame
        Annotations.
    known
        The paper's names.

    Examples
    --------
    >>> import polars as pl
    >>> tidy_domains(pl.DataFrame({"domain": ["french  politics", "Mars"]}), ["French Politics"])["domain"].to_list()
    ['French Politics', 'Mars']
    """
    import polars as pl

    spelling = {name.casefold(): name for name in known}
    change: Mapping[str, str] = {
        domain: spelling.get(" ".join(domain.split()).casefold(), domain)
        for domain in frame["domain"].drop_nulls().unique()
    }
    return frame.with_columns(pl.col("domain").replace(change))


def settle_repeats(
    frame: pl.DataFrame, on_repeat: OnRepeat, log: ReadingLog, *, also: Sequence[str] = ()
) -> pl.DataFrame:
    """Refuse, drop or keep the annotations of annotators who labelled a text more than once.

    Parameters
    ----------
    frame
        Annotations with their items, in the order of the files.
    on_repeat
        "error", keep the "first" or the "last", or "count" each.
    log
        Where counts and notes go.
    also
        Columns that must agree too, for two annotations to be a repeat.
    """
    import polars as pl

    key = ["item", "annotator", *also]
    again = frame.filter(~pl.struct(key).is_first_distinct())
    if not again.height:
        return frame
    if on_repeat == "error":
        item, annotator = again.select("item", "annotator").row(0)
        msg = (
            f"{again.height:,} of {frame.height:,} annotations repeat an (item, annotator) pair. First: item {item!r}, "
            f'annotator {annotator!r}. Choose on_repeat="first", "last" or "count" (CLI: --on-repeat first).'
        )
        raise VotesError(msg)
    if on_repeat == "count":
        log.note(f"{again.height:,} repeats are kept as votes of their own; audit them with --on-repeat count.")
        return frame
    log.drop(f"repeats, the {on_repeat} kept", again.height)
    return frame.unique(key, keep=on_repeat, maintain_order=True)
