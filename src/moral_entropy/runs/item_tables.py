"""Fitted parts → rows of the tables about items and votes, a chunk at a time, and mean entropies by domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.consensus.dependence import effective_by_row
from moral_entropy.consensus.entropy import EntropyParts, is_ambiguous, is_uncertain
from moral_entropy.consensus.fitted import PartFit
from moral_entropy.consensus.item_classes import PartialBallot
from moral_entropy.consensus.patterns import as_rows
from moral_entropy.consensus.published import published_interval
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.names import ALL
from moral_entropy.runs.tables import ROWS_PER_GROUP
from moral_entropy.schemas import ALL_PARTS, BETWEEN, ENTROPY, ITEMS, POSTERIOR, TEXTS, VOTES, with_between, with_ids
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

ITEMS_SUMMED, ITEMS_COUNTED, TOTAL, UNCERTAIN, AMBIGUOUS, FIRST_PART = range(6)
"""Columns of `sum_df`, see `entropy_sums`; from `FIRST_PART` on the parts of the entropy, as in `named_parts`."""


def item_frames(one: PartFit, b: int) -> Iterator[pl.DataFrame]:
    """Yield one row per item of a ballot of one part."""
    fit = one.consensus.fits[b]
    bounds = published_interval(fit)
    for chunk in fit.chunks(ROWS_PER_GROUP):
        yield _item_frame(one.consensus.votes, fit, chunk, one.entropies[b].of(chunk), bounds)


def posterior_frames(one: PartFit, b: int) -> Iterator[pl.DataFrame]:
    """Yield one row per item and label of a ballot of one part."""
    fit, items = one.consensus.fits[b], one.consensus.votes.items
    ballot, schema = fit.ballot, with_ids(POSTERIOR, item=items.dtype)
    for chunk in fit.chunks(ROWS_PER_GROUP // ballot.n_labels):
        n_items = chunk.stop - chunk.start
        columns = {
            "question": pl.repeat(ballot.question, n_items * ballot.n_labels, eager=True),
            "item": items.gather(np.repeat(ballot.item_i[chunk], ballot.n_labels)),
            "class": pl.Series(list(ballot.labels) * n_items),
            "p_map": fit.posterior_ik[chunk].ravel(),
            "p_model": fit.summary.mean_ik[chunk].ravel(),
            "p": fit.p_ik[chunk].ravel(),
        }
        yield pl.DataFrame(columns, schema=schema)


def vote_frames(one: PartFit, b: int) -> Iterator[pl.DataFrame]:
    """Yield one row per vote of a ballot of one part."""
    votes, ballot = one.consensus.votes, one.consensus.votes.ballots[b]
    schema = votes_schema(votes)
    labels = pl.Series(ballot.labels, dtype=pl.String)
    for start in range(0, ballot.n_votes, ROWS_PER_GROUP):
        at_v = np.arange(start, min(start + ROWS_PER_GROUP, ballot.n_votes))
        code_v = ballot.code_v[at_v]
        item_v = np.searchsorted(ballot.start_i, at_v, side="right") - 1
        columns = {
            "question": pl.repeat(ballot.question, len(at_v), eager=True),
            "item": votes.items.gather(ballot.item_i[item_v]),
            "annotator": votes.annotators.gather(ballot.annotator_a[code_v // ballot.n_labels]),
            "label": labels.gather(code_v % ballot.n_labels),
        }
        if ballot.row_v is not None:
            columns |= {name: cells.gather(ballot.row_v[at_v]) for name, cells in votes.kept.items()}
        yield pl.DataFrame(columns, schema=schema)


def votes_schema(votes: Votes) -> pl.Schema:
    """Return the columns of the table of votes: those of `VOTES`, and those that were kept."""
    own = with_ids(VOTES, item=votes.items.dtype, annotator=votes.annotators.dtype)
    return pl.Schema({**own, **{name: cells.dtype for name, cells in votes.kept.items()}})


def text_frames(one: PartFit) -> Iterator[pl.DataFrame]:
    """Yield one row per item of one part with its text; none where there are no texts."""
    votes = one.consensus.votes
    schema = with_ids(TEXTS, item=votes.items.dtype)
    if votes.texts is None:
        return
    for start in range(0, votes.n_items, ROWS_PER_GROUP):
        columns = {"item": votes.items.slice(start, ROWS_PER_GROUP), "text": votes.texts.slice(start, ROWS_PER_GROUP)}
        yield pl.DataFrame(columns, schema=schema)


def counts_of(ballot: Ballot, chunk: slice) -> NDArray[np.int64]:
    """Count the votes of some items by label, without counting those of all items: `counts_ik`."""
    n_items, n_labels = chunk.stop - chunk.start, ballot.n_labels
    first, last = ballot.start_i[chunk.start], ballot.start_i[chunk.stop]
    key_v = np.repeat(np.arange(n_items) * n_labels, ballot.votes_i[chunk])
    key_v += ballot.code_v[first:last] % n_labels
    return np.bincount(key_v, minlength=n_items * n_labels).reshape(n_items, n_labels)


def _item_frame(
    votes: Votes, fit: QuestionFit, chunk: slice, entropy: EntropyParts, bounds: tuple[Floats, Floats]
) -> pl.DataFrame:
    ballot, label_i = fit.ballot, fit.label_i[chunk]
    item_i = ballot.item_i[chunk]
    row_i = np.arange(len(item_i))
    parts = {name: _or_null(part_i) for name, part_i in named_parts(entropy).items()}
    # p is about the positive label of two, and about the consensus label of more.
    about_i = np.full(len(item_i), ballot.positive) if ballot.n_labels == 2 else label_i
    columns = {
        "question": pl.repeat(ballot.question, len(item_i), eager=True),
        "item": votes.items.gather(item_i),
        "domain": domain_names(votes, item_i),
        "n_votes": ballot.votes_i[chunk].astype(np.int32),
        "n_positive": counts_of(ballot, chunk)[row_i, about_i].astype(np.int32),
        "effective_votes": _effective(fit, chunk),
        "p_map": fit.posterior_ik[chunk][row_i, about_i],
        "p_model": fit.summary.mean_ik[chunk][row_i, about_i],
        "p": fit.p_ik[chunk][row_i, about_i],
        "p_low": _or_null(bounds[0][chunk]),
        "p_high": _or_null(bounds[1][chunk]),
        "p_calibrated": _calibrated(fit, chunk, row_i, about_i),
        "label": pl.Series(ballot.labels, dtype=pl.String).gather(label_i),
        "entropy": entropy.total_i,
        **{name: parts[name] for name in ALL_PARTS},
        "count": ballot.count_i[chunk],
        "part": pl.repeat(ballot.part, len(item_i), eager=True),
        "gold": _label_names(ballot, ballot.gold_i[chunk]),
        "published": _label_names(ballot, ballot.published_i[chunk]),
        **{name: part for name, part in parts.items() if name == BETWEEN},
    }
    schema = with_between(ITEMS) if BETWEEN in columns else ITEMS
    return pl.DataFrame(columns, schema=with_ids(schema, item=votes.items.dtype))


def _calibrated(fit: QuestionFit, chunk: slice, row_i: Ints, about_i: Ints) -> pl.Series:
    """Return p recalibrated by gold; null where there is none, or where only a part of it is at hand."""
    # With items in several parts every part would learn from its own gold alone.
    found = None if isinstance(fit.ballot, PartialBallot) else fit.recalibrated
    if found is None:
        return pl.repeat(None, len(row_i), dtype=pl.Float64, eager=True)
    return pl.Series(found[0][chunk][row_i, about_i])


def _effective(fit: QuestionFit, chunk: slice) -> pl.Series:
    """Compute how many independent votes the votes on some items are worth; null where nobody looked."""
    if fit.worth is None:
        return pl.repeat(None, chunk.stop - chunk.start, dtype=pl.Float64, eager=True)
    pairs = fit.worth.pairs
    if not len(pairs.first_p):
        return pl.Series(fit.ballot.votes_i[chunk].astype(np.float64))
    rows = as_rows(fit.ballot, np.full(fit.ballot.n_items, UNKNOWN, dtype=np.int16)).take(
        np.arange(*chunk.indices(fit.ballot.n_items))
    )
    return pl.Series(effective_by_row(rows, pairs, pairs.shrunk_p))


def domain_names(votes: Votes, item_i: Ints) -> pl.Series:
    """Return the domains of some items by name, null where an item has none."""
    names = pl.Series([*votes.domains, None], dtype=pl.String)
    # The code of no domain is -1: the last entry, which is null.
    return names.gather(votes.domain_i[item_i] % len(names))


def _label_names(ballot: Ballot, label_i: Ints) -> pl.Series:
    """Return labels by name, null where an item has none."""
    if (label_i == UNKNOWN).all():
        return pl.repeat(None, len(label_i), dtype=pl.String, eager=True)
    names = pl.Series([*ballot.labels, None], dtype=pl.String)
    # The code of no label is -1: the last entry, which is null.
    return names.gather(label_i.astype(np.int64) % len(names))


def _or_null(values_i: Floats) -> pl.Series:
    return pl.Series(values_i).fill_nan(None)


def entropy_sums(one: PartFit) -> tuple[Floats, ...]:
    """Add up the entropies of every fit by domain: `sum_df`, the last row for items of no domain.

    Columns: rows, items, total entropy, items whose label is uncertain (more than half of the entropy there can be),
    items that are ambiguous (see `is_ambiguous`), and the parts of the entropy, in the order of `named_parts`.
    """
    sums, n_places = [], len(one.consensus.votes.domains) + 1
    for fit, entropy in zip(one.consensus.fits, one.entropies, strict=True):
        place_i = one.consensus.votes.domain_i[fit.ballot.item_i] % n_places
        uncertain_i = is_uncertain(entropy.total_i, fit.ballot.n_labels)
        ambiguous_i = is_ambiguous(entropy.total_i, entropy.lasting_i, fit.ballot.n_labels)
        values: tuple[Any, ...] = (1.0, entropy.total_i, uncertain_i, ambiguous_i, *named_parts(entropy).values())
        columns = [np.bincount(place_i, minlength=n_places)]
        columns += [np.bincount(place_i, weights=fit.ballot.count_i * value, minlength=n_places) for value in values]
        sums.append(np.column_stack(columns).astype(np.float64))
    return tuple(sums)


def entropy_frame(consensus: Consensus, sums: Sequence[Floats]) -> pl.DataFrame:
    """Return mean entropies by question and domain, from sums over all parts: one row each, all domains first."""
    rows = []
    for question in consensus.votes.questions:
        of_fits = [sum_df for fit, sum_df in zip(consensus.fits, sums, strict=True) if fit.question == question]
        sum_df = np.sum(of_fits, axis=0)
        rows.append(_means(question, ALL, sum_df.sum(axis=0)))
        for domain, sum_f in zip(consensus.votes.domains, sum_df[:-1], strict=True):
            if sum_f[ITEMS_SUMMED]:
                rows.append(_means(question, domain, sum_f))
    schema = with_between(ENTROPY) if BETWEEN in rows[0] else ENTROPY
    return pl.DataFrame(rows, schema=schema).with_columns(pl.col(pl.Float64).fill_nan(None))


def _means(question: str, domain: str, sum_f: Floats) -> dict[str, object]:
    named = {"question": question, "domain": domain, "n_items": round(sum_f[ITEMS_COUNTED])}
    return named | {"total": float(sum_f[TOTAL] / sum_f[ITEMS_COUNTED])} | mean_parts(sum_f)


def mean_parts(sum_f: Floats) -> dict[str, float]:
    """Return the means of the parts of the entropy by name, from sums over items: see `entropy_sums`."""
    names = (*ALL_PARTS, BETWEEN)[: len(sum_f) - FIRST_PART]
    return {name: float(sum_f[FIRST_PART + n] / sum_f[ITEMS_COUNTED]) for n, name in enumerate(names)}


def named_parts(entropy: EntropyParts) -> dict[str, Floats]:
    """Return the parts of the entropy by the names of `ALL_PARTS`, then what lies between groups, where that is known.

    Examples
    --------
    >>> two = np.zeros(2)
    >>> list(named_parts(EntropyParts(two, two, two, two)))
    ['ambiguity', 'doubt_votes', 'doubt_annotators', 'aleatoric', 'epistemic']
    """
    three = (entropy.ambiguity_i, entropy.votes_i, entropy.annotators_i)
    found = dict(zip(ALL_PARTS, (*three, entropy.aleatoric_i, entropy.epistemic_i), strict=True))
    return found if entropy.between_i is None else found | {BETWEEN: entropy.between_i}
