"""Facts: what the source says about items beside the votes, such as domain and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moral_entropy.votes.columns import Found
from moral_entropy.votes.labels import Tally
from moral_entropy.votes.marks import Rows
from moral_entropy.votes.options import Options
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import UNKNOWN
from moral_entropy.votes.values import MISSING, Coded, code_labels

if TYPE_CHECKING:
    import polars as pl

MOST_GUESSED_DOMAINS = 200


def read_domains(source: Source, found: Found, rows: Rows, tally: Tally) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Read each item's domain: the names, sorted, and one code per item."""
    nothing = (), np.full(len(rows.items), UNKNOWN, dtype=np.int32)
    if (name := found.get("domain")) is None:
        return nothing
    domains = code_labels(source.column(name))
    if "domain" in found.guessed and len(domains.values) > MOST_GUESSED_DOMAINS:
        tally.note(f"column {name!r} has {len(domains.values):,} values and is not taken for the domain.")
        return nothing
    domain_i = _first_of_item(domains, rows, f"domain ({name!r})", tally)
    return tuple(domains.values.to_list()), domain_i


def read_texts(source: Source, found: Found, rows: Rows) -> pl.Series | None:
    """Read each item's text; of several, the first in the alphabet, whatever the order of the rows."""
    import polars as pl

    if (name := found.get("text")) is None:
        return None
    frame = pl.DataFrame({"item": rows.item_r, "text": source.column(name).cast(pl.String)})
    blank = pl.col("text").is_null() | pl.col("text").str.strip_chars().is_in(list(MISSING))
    texts = frame.filter((pl.col("item") >= 0) & ~blank).group_by("item").agg(pl.col("text").min())
    every = pl.DataFrame({"item": np.arange(len(rows.items), dtype=rows.item_r.dtype)})
    return every.join(texts, on="item", how="left", maintain_order="left").get_column("text")


def read_extra(source: Source, options: Options, rows: Rows, tally: Tally) -> dict[str, pl.Series]:
    """Read the columns to keep beside the items, as labels; null where an item has none."""
    import polars as pl

    extra = {}
    for name in dict.fromkeys(options.keep):
        values = code_labels(source.column(name))
        code_i = _first_of_item(values, rows, repr(name), tally)
        chosen = pl.Series(code_i).cast(pl.Int64)
        extra[name] = values.values.gather(chosen.set(chosen < 0, None)).alias(name)
    return extra


def _first_of_item(coded: Coded, rows: Rows, what: str, tally: Tally) -> NDArray[np.int32]:
    """Give each item the first of its values in sorted order, and count items that have several."""
    at_r = np.flatnonzero((coded.code_r >= 0) & (rows.item_r >= 0))
    item_r, code_r = rows.item_r[at_r], coded.code_r[at_r].astype(np.int32)
    low_i = np.full(len(rows.items), np.iinfo(np.int32).max, dtype=np.int32)
    high_i = np.full(len(rows.items), UNKNOWN, dtype=np.int32)
    np.minimum.at(low_i, item_r, code_r)
    np.maximum.at(high_i, item_r, code_r)
    if several := int(((high_i >= 0) & (low_i != high_i)).sum()):
        tally.note(f"{several:,} items have more than one {what}; the first in sorted order is taken.")
    return np.where(high_i >= 0, low_i, UNKNOWN).astype(np.int32)
