"""Words that mark the items of highest entropy.

Takes texts, returns words with z-scores: log-odds ratios of the highest items against the rest, with an informative
Dirichlet prior (Monroe, Colaresi and Quinn 2008, "Fightin' Words", Political Analysis 16(4), equations 15, 16, 20 and
22). A word counts once per item, so that no single text can make a word stand out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from moral_entropy.items.rank import first
from moral_entropy.names import ALL
from moral_entropy.ties import TIE, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

HIGH = 100
"""Number of items of highest entropy that are compared; a quarter of all where there are fewer than 400."""

WORDS = 30
"""Largest number of words in a ranking."""

SIGNIFICANT = 1.96
"""Least z-score of a word that is listed."""

FEWEST = 3
"""Least number of items of highest entropy that a word must be in."""

PRIOR_WORDS = 500.0
"""Weight of the prior, in words: the corpus' own shares, so that rare words need more evidence. Never more than the
highest items have."""

LONGEST = 2_000
"""Characters of a text that are read."""

TEXTS_AT_ONCE = 65_536
ENTITY = r"&(#\d{1,7}|[A-Za-z]{2,8});"
"""HTML entities such as &gt; and &quot; in posts, which are no words."""

Marked = tuple[list[str], list[float], list[str]]
"""Words, their z-scores, and why each is listed."""

PATTERN = r"[#@]?\p{L}[\p{L}\p{M}\p{N}_'’-]*"


def count_words(texts: pl.Series, group_i: Ints | None = None) -> pl.DataFrame:
    """Count the items each word is in, by group: columns group, word and n, sorted by group and word.

    Parameters
    ----------
    texts
        The texts; null where an item has none.
    group_i
        One number per item, such as the code of its domain; all 0 by default.

    Examples
    --------
    >>> import polars as pl
    >>> count_words(pl.Series(["Stop, STOP now", "now", None])).rows()
    [(0, 'now', 2), (0, 'stop', 1)]
    """
    group_i = np.zeros(len(texts), dtype=np.int32) if group_i is None else group_i.astype(np.int32)
    frame = pl.DataFrame({"group": group_i, "word": texts.cast(pl.String)})
    text = pl.col("word").str.slice(0, LONGEST).str.replace_all(ENTITY, " ")
    words = text.str.to_lowercase().str.extract_all(PATTERN).list.unique()
    # Some texts at a time: their words would be many times as large as the counts.
    pieces = [
        chunk.with_columns(words).explode("word").drop_nulls().group_by("group", "word").agg(n=pl.len().cast(pl.Int64))
        for chunk in frame.iter_slices(TEXTS_AT_ONCE)
    ]
    empty = pl.DataFrame(schema={"group": pl.Int32, "word": pl.String, "n": pl.Int64})
    return pl.concat([empty, *pieces]).group_by("group", "word").agg(pl.col("n").sum()).sort("group", "word")


def marking_words(all_words: pl.DataFrame, high_texts: pl.Series, n_items: int) -> Marked:
    """Find the words that mark some items against the rest, highest z-score first.

    Parameters
    ----------
    all_words
        Columns word and n: how many items each word is in, the marked ones included.
    high_texts
        Texts of the marked items.
    n_items
        Number of all items.
    """
    high = count_words(high_texts).select("word", high="n")
    joined = all_words.join(high, on="word", how="left", maintain_order="left").fill_null(0)
    high_w, all_w = joined["high"].to_numpy(), joined["n"].to_numpy()
    log_odds_w, z_w = log_odds(high_w, all_w - high_w, min(PRIOR_WORDS, float(high_w.sum())))
    listed_w = np.flatnonzero((z_w >= SIGNIFICANT) & (high_w >= FEWEST))
    order_w = listed_w[np.argsort(-tie_key(z_w[listed_w]), kind="stable")][:WORDS]
    reasons = [
        f"in {high_w[w]:,} of the {len(high_texts):,} items of highest entropy and {all_w[w] - high_w[w]:,} of the "
        f"{n_items - len(high_texts):,} others; log-odds {log_odds_w[w]:+z.2f}, z = {z_w[w]:.1f}"
        for w in order_w
    ]
    return joined["word"].gather(order_w).to_list(), z_w[order_w].tolist(), reasons


def log_odds(high_w: Ints, rest_w: Ints, prior_words: float = PRIOR_WORDS) -> tuple[Floats, Floats]:
    """Compute each word's log-odds ratio and z-score between two sets of counts. Axis: **w** word.

    Parameters
    ----------
    high_w, rest_w
        How often each word occurs in either set.
    prior_words
        Weight of the prior, whose shares are those of both sets together.

    Examples
    --------
    >>> ratio_w, z_w = log_odds(np.array([30, 70]), np.array([30, 970]), prior_words=10)
    >>> ratio_w.round(2).tolist(), z_w.round(1).tolist()
    ([2.51, -2.51], [9.8, -21.5])
    """
    both_w = high_w + rest_w
    # Without a word on one side the prior weighs nothing; a little of it keeps ratios finite.
    prior_w = max(prior_words, 1e-9) * both_w / max(both_w.sum(), 1)
    with_prior_sw = np.stack([high_w + prior_w, rest_w + prior_w])
    # A single word has no others; then every ratio is 1.
    others_sw = np.maximum(with_prior_sw.sum(axis=1, keepdims=True) - with_prior_sw, 1e-9)
    log_odds_sw = np.log(with_prior_sw / others_sw)
    ratio_w: Floats = log_odds_sw[0] - log_odds_sw[1]
    z_w: Floats = ratio_w / np.sqrt((1.0 / with_prior_sw).sum(axis=0))
    return ratio_w, z_w


def n_high(n_items: int) -> int:
    """Return how many of `n_items` items count as those of highest entropy."""
    return min(HIGH, n_items // 4)


def _highest(entropy_i: Floats) -> Ints:
    """Return the items of highest entropy, and all that tie with the last of them, unless those are too many."""
    top_n = first(entropy_i, n_high(len(entropy_i)))
    if not len(top_n):
        return top_n
    tied_n = np.flatnonzero(entropy_i >= entropy_i[top_n[-1]] - TIE)
    return tied_n if len(tied_n) <= len(entropy_i) // 4 else top_n


def words_by_domain(
    texts: pl.Series, domains: Sequence[str], item_i: Ints, domain_i: Ints, entropy_i: Floats,
    word_counts: dict[bytes, pl.DataFrame],
) -> Iterator[tuple[str, Marked]]:  # fmt: skip
    """Yield the words that mark the items of highest entropy of one question: over all domains, then by domain.

    Parameters
    ----------
    texts, domains
        The text of every item, and the names of the domains: of `Votes`.
    item_i, domain_i
        Row of `Votes.items` and code of the domain of every item of the question.
    entropy_i
        Its entropy; NaN where an item is left out.
    word_counts
        The words of all items, counted once for all questions about the same items: filled here.
    """
    if (key := item_i.tobytes()) not in word_counts:
        word_counts[key] = count_words(texts.gather(item_i), domain_i)
    for code in (None, *np.setdiff1d(domain_i, [UNKNOWN]).tolist()):
        inside = word_counts[key] if code is None else word_counts[key].filter(group=code)
        all_words = inside.group_by("word").agg(pl.col("n").sum()).sort("word")
        at_i = np.arange(len(item_i)) if code is None else np.flatnonzero(domain_i == code)
        high_n = item_i[at_i[_highest(entropy_i[at_i])]]
        domain = ALL if code is None else domains[code]
        yield domain, marking_words(all_words, texts.gather(high_n), len(at_i))
