"""Consensus → rows of items.parquet, posterior.parquet and entropy.parquet; items a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.entropy.parts import EntropyParts, entropy_by_domain
from moral_entropy.runs.tables import ENTROPY, ITEMS, POSTERIOR, ROWS_PER_GROUP, with_ids
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes


def item_frames(consensus: Consensus, parts: EntropyParts) -> Iterator[pl.DataFrame]:
    """Give a row for every question and item, in chunks.

    Parameters
    ----------
    consensus
        The fits.
    parts
        Their entropies, all fits one below the other.
    """
    offset = 0
    for fit in consensus.fits:
        for chunk in fit.chunks(ROWS_PER_GROUP):
            at = slice(offset + chunk.start, offset + chunk.stop)
            yield _item_frame(consensus.votes, fit, chunk, parts, at)
        offset += fit.ballot.n_items


def posterior_frames(consensus: Consensus) -> Iterator[pl.DataFrame]:
    """Give a row for every item and label of the questions that have more than two labels, in chunks."""
    schema = with_ids(POSTERIOR, item=consensus.votes.items.dtype)
    for fit in consensus.fits:
        ballot = fit.ballot
        if ballot.n_labels == 2:
            continue
        for chunk in fit.chunks(ROWS_PER_GROUP // ballot.n_labels):
            n_items = chunk.stop - chunk.start
            columns = {
                "question": pl.repeat(ballot.question, n_items * ballot.n_labels, eager=True),
                "item": consensus.votes.items.gather(np.repeat(ballot.item_i[chunk], ballot.n_labels)),
                "class": pl.Series(list(ballot.labels) * n_items),
                "p_map": fit.posterior_ik[chunk].ravel(),
                "p": fit.summary.mean_ik[chunk].ravel(),
            }
            yield pl.DataFrame(columns, schema=schema)


def entropy_frame(consensus: Consensus, parts: EntropyParts) -> pl.DataFrame:
    """Give a row for every question and domain, all domains together too."""
    rows = [asdict(row) for row in entropy_by_domain(consensus, parts)]
    return pl.DataFrame(rows, schema=ENTROPY).with_columns(pl.col(pl.Float64).fill_nan(None))


def has_posterior_table(consensus: Consensus) -> bool:
    """Tell whether any question has more than two labels."""
    return any(fit.ballot.n_labels > 2 for fit in consensus.fits)


def counts_of(ballot: Ballot, chunk: slice) -> NDArray[np.int64]:
    """Count the votes of some items by label, without counting those of all items: `counts_ik`."""
    n_items, n_labels = chunk.stop - chunk.start, ballot.n_labels
    first, last = ballot.start_i[chunk.start], ballot.start_i[chunk.stop]
    key_v = np.repeat(np.arange(n_items) * n_labels, ballot.votes_i[chunk])
    key_v += ballot.code_v[first:last] % n_labels
    return np.bincount(key_v, minlength=n_items * n_labels).reshape(n_items, n_labels)


def _item_frame(votes: Votes, fit: QuestionFit, chunk: slice, parts: EntropyParts, at: slice) -> pl.DataFrame:
    ballot, label_i = fit.ballot, fit.label_i[chunk]
    item_i = ballot.item_i[chunk]
    row_i = np.arange(len(item_i))
    # p is about the positive label of two, and about the consensus label of more.
    about_i = np.full(len(item_i), ballot.positive) if ballot.n_labels == 2 else label_i
    columns = {
        "question": pl.repeat(ballot.question, len(item_i), eager=True),
        "item": votes.items.gather(item_i),
        "domain": domain_names(votes, item_i),
        "n_votes": ballot.votes_i[chunk].astype(np.int32),
        "n_positive": counts_of(ballot, chunk)[row_i, about_i].astype(np.int32),
        "p_map": fit.posterior_ik[chunk][row_i, about_i],
        "p": fit.summary.mean_ik[chunk][row_i, about_i],
        "p_low": _or_null(fit.summary.low_i[chunk]),
        "p_high": _or_null(fit.summary.high_i[chunk]),
        "label": pl.Series(ballot.labels, dtype=pl.String).gather(label_i),
        "entropy": parts.total_i[at],
        "aleatoric": _or_null(parts.aleatoric_i[at]),
        "epistemic": _or_null(parts.epistemic_i[at]),
        "count": ballot.count_i[chunk],
        "part": pl.repeat(ballot.part, len(item_i), eager=True),
        "gold": _label_names(ballot, ballot.gold_i[chunk]),
        "published": _label_names(ballot, ballot.published_i[chunk]),
    }
    return pl.DataFrame(columns, schema=with_ids(ITEMS, item=votes.items.dtype))


def domain_names(votes: Votes, item_i: Ints) -> pl.Series:
    """Give the domain of some items by name, null where an item has none."""
    names = pl.Series([*votes.domains, None], dtype=pl.String)
    # The code of no domain is -1: the last entry, which is null.
    return names.gather(votes.domain_i[item_i] % len(names))


def _label_names(ballot: Ballot, label_i: Ints) -> pl.Series:
    """Give labels by name, null where an item has none."""
    if (label_i == UNKNOWN).all():
        return pl.repeat(None, len(label_i), dtype=pl.String, eager=True)
    names = pl.Series([*ballot.labels, None], dtype=pl.String)
    # The code of no label is -1: the last entry, which is null.
    return names.gather(label_i.astype(np.int64) % len(names))


def _or_null(values_i: Floats) -> pl.Series:
    return pl.Series(values_i).fill_nan(None)
