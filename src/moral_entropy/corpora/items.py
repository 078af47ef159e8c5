"""Items: distinct texts get an id, a domain, and one vote of each annotator.

Takes annotations, returns them with items; knows nothing of labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from moral_entropy.errors import VotesError
from moral_entropy.votes.options import OnRepeat
from moral_entropy.votes.source import ReadingLog

if TYPE_CHECKING:
    import polars as pl


def text_id(corpus: str, text: str) -> str:
    """Name a text: the corpus, and 64 bits of the text's BLAKE2b hash in hexadecimal digits.

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


def name_items(frame: pl.DataFrame, corpus: str, log: ReadingLog, *, by_domain: bool) -> pl.DataFrame:
    """Add the item of every annotation, and give each item one domain.

    Parameters
    ----------
    frame
        Annotations with a text or a source_id each.
    corpus
        "mftc", "mfrc" or "emfd".
    log
        Where remarks go.
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
    """Deal with annotators who labelled a text more than once.

    Parameters
    ----------
    frame
        Annotations with their items, in the order of the files.
    on_repeat
        "error", keep the "first" or the "last", or "count" each.
    log
        Where counts and remarks go.
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
