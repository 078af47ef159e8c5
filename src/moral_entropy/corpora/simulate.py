"""Votes drawn from a known truth, for tests, benchmarks and the demo.

In: sizes and a seed. Out: `SimulatedVotes` in memory, or a Parquet file written in bounded memory. Both hold the
same votes for the same seed, since items are drawn in blocks of a fixed size, each with a seed of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.files import whole_file
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import UNKNOWN, Floats, Votes, ballot_from_codes

BLOCK_ITEMS = 65_536
"""Items drawn with one seed. Another number here is another data set for every seed."""

ROW_GROUP = 1_000_000
COLUMNS = pl.Schema({"item": pl.Int64(), "annotator": pl.Int32(), "label": pl.Int8(), "gold": pl.Int8()})
MAX_LABELS = np.iinfo(np.int8).max

FEW_VOTES = 32
"""Up to this many votes per item annotators are drawn one after the other, beyond by ranking random numbers."""

CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class SimulatedVotes:
    """Votes and what they were drawn from. Axes: **i** item, **a** annotator, true **k**, **v**oted.

    Parameters
    ----------
    votes
        The votes; items and annotators are numbered from 0, `gold_i` of the one ballot is the truth.
    truth_i
        True label of every item.
    prevalence_k
        Chance of each true label.
    confusion_akv
        Chance of each vote given the true label, for those who voted: rows follow `votes.annotators`.
    """

    votes: Votes
    truth_i: NDArray[np.int8]
    prevalence_k: Floats
    confusion_akv: Floats


class _Parameters(NamedTuple):
    # Everything that decides the votes, so that memory and file draw the same ones.
    n_items: int
    n_annotators: int
    votes_per_item: float
    seed: int
    prevalence_k: Floats
    confusion_akv: Floats

    @property
    def n_blocks(self) -> int:
        return -(-self.n_items // BLOCK_ITEMS)


_Block = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]
"""Votes on consecutive items, sorted by item and annotator: item_v, annotator_v, label_v, truth_i, votes_i."""


def simulate_votes(
    *,
    n_items: int,
    n_annotators: int,
    votes_per_item: float,
    n_labels: int = 2,
    seed: int = 0,
    prevalence_k: ArrayLike | None = None,
    confusion_akv: ArrayLike | None = None,
    accuracy: tuple[float, float] = (0.6, 0.9),
) -> SimulatedVotes:
    """Draw votes of known annotators on items of known truth.

    Parameters
    ----------
    n_items, n_annotators
        How many of each. Annotators who draw no vote are left out of the result.
    votes_per_item
        Votes on every item, by as many different annotators. A whole number is met by every item; any other is
        a mean, and items get one vote or more.
    n_labels
        Labels a vote can take; they are called "0", "1", …
    seed
        Same seed, same votes.
    prevalence_k
        Chance of each true label; drawn from Dir(10, …, 10) by default.
    confusion_akv
        Chance of each vote given the truth, for every annotator; by default drawn: right with a chance uniform
        in `accuracy`, wrong in favour of some labels over others.
    accuracy
        Range of the chance to be right, for each annotator and true label.

    Examples
    --------
    >>> simulated = simulate_votes(n_items=100, n_annotators=5, votes_per_item=3)
    >>> simulated.votes.n_votes, simulated.confusion_akv.shape
    (300, (5, 2, 2))
    """
    parameters = _make_parameters(
        n_items, n_annotators, votes_per_item, n_labels, seed, prevalence_k, confusion_akv, accuracy
    )
    blocks = zip(*(_draw_block(parameters, block) for block in range(parameters.n_blocks)), strict=True)
    item_v, annotator_v, label_v, truth_i, _ = (np.concatenate(parts) for parts in blocks)
    voter_a, annotator_v = np.unique(annotator_v, return_inverse=True)
    labels = tuple(str(label) for label in range(n_labels))
    ballot = ballot_from_codes("label", labels, item_v=item_v, annotator_v=annotator_v, label_v=label_v, gold_i=truth_i)
    votes = Votes(
        items=pl.Series("item", np.arange(n_items, dtype=np.int64)),
        annotators=pl.Series("annotator", voter_a.astype(np.int64)),
        ballots=(ballot,),
        domains=(),
        domain_i=np.full(n_items, UNKNOWN, dtype=np.int32),
    )
    return SimulatedVotes(votes, truth_i, parameters.prevalence_k, parameters.confusion_akv[voter_a])


def write_simulated(
    path: str | Path,
    *,
    n_items: int,
    n_annotators: int,
    votes_per_item: float,
    n_labels: int = 2,
    seed: int = 0,
    ordered: bool = False,
    advance: Advance = ignore,
) -> int:
    """Write the votes of `simulate_votes` to a Parquet file without holding all of them in memory.

    Columns: item (int64), annotator (int32), label and gold (int8); one row per vote, sorted.

    Parameters
    ----------
    path
        The file; it appears when it is complete.
    n_items, n_annotators, votes_per_item, n_labels, seed
        As in `simulate_votes`.
    ordered
        Whether labels are levels of a scale: see `graded_confusion`.
    advance
        Called with the share that is done.

    Returns
    -------
    int
        How many votes were written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "votes.parquet"
    >>> write_simulated(path, n_items=100, n_annotators=5, votes_per_item=3)
    300
    """
    from polars.io.plugins import register_io_source

    confusion_akv = graded_confusion(n_annotators, n_labels, seed) if ordered else None
    parameters = _make_parameters(n_items, n_annotators, votes_per_item, n_labels, seed, confusion_akv=confusion_akv)
    n_votes = 0

    def frames(*_asked: object) -> Iterator[pl.DataFrame]:
        nonlocal n_votes
        for block in range(parameters.n_blocks):
            item_v, annotator_v, label_v, truth_i, votes_i = _draw_block(parameters, block)
            n_votes += len(item_v)
            gold_v = np.repeat(truth_i, votes_i)
            yield pl.DataFrame(dict(zip(COLUMNS, (item_v, annotator_v, label_v, gold_v), strict=True)), schema=COLUMNS)
            advance((block + 1) / parameters.n_blocks)

    with whole_file(path) as partial:
        register_io_source(frames, schema=COLUMNS, is_pure=True).sink_parquet(partial, row_group_size=ROW_GROUP)
    return n_votes


def graded_confusion(n_annotators: int, n_labels: int, seed: int = 0) -> Floats:
    """Draw how raters rate every level: the level plus a bias plus noise, rounded, open at both ends of the scale.

    Examples
    --------
    >>> graded_confusion(2, 5).shape
    (2, 5, 5)
    """
    rng = np.random.default_rng([seed, 1])
    bias_a, spread_a = rng.normal(0.0, 0.4, n_annotators), np.exp(rng.normal(np.log(0.6), 0.3, n_annotators))
    bound_b = np.concatenate([[-np.inf], np.arange(n_labels - 1) + 0.5, [np.inf]])
    centre_ak = np.arange(n_labels) + bias_a[:, None]
    return np.asarray(np.diff(ndtr((bound_b - centre_ak[..., None]) / spread_a[:, None, None]), axis=-1))


def _make_parameters(
    n_items: int,
    n_annotators: int,
    votes_per_item: float,
    n_labels: int,
    seed: int,
    prevalence_k: ArrayLike | None = None,
    confusion_akv: ArrayLike | None = None,
    accuracy: tuple[float, float] = (0.6, 0.9),
) -> _Parameters:
    if n_items < 1 or n_annotators < 1:
        msg = f"cannot simulate {n_items:,} items and {n_annotators:,} annotators: there must be one of each at least."
    elif not 2 <= n_labels <= MAX_LABELS:
        msg = f"cannot simulate votes with {n_labels} labels: choose from 2 to {MAX_LABELS}."
    elif not votes_per_item >= 1:
        msg = f"votes per item: {votes_per_item:g}, but every simulated item has a vote: choose 1 or more."
    elif votes_per_item > n_annotators:
        msg = (
            f"votes per item: {votes_per_item:g}, but there are only {n_annotators:,} annotators and each votes once "
            f"on an item. Ask for more annotators, or for at most {n_annotators:,} votes per item."
        )
    else:
        msg = f"the seed is {seed}: choose 0 or more." if seed < 0 else ""
    if msg:
        raise UsageError(msg)
    # Both are drawn even where given, so that naming one does not move the other.
    rng = np.random.default_rng([seed, 0])
    random_k = rng.dirichlet(np.full(n_labels, 10.0))
    random_akv = _draw_confusion(rng, n_annotators, n_labels, accuracy)
    chances = _checked("prevalence_k", prevalence_k, random_k), _checked("confusion_akv", confusion_akv, random_akv)
    return _Parameters(n_items, n_annotators, votes_per_item, seed, *chances)


def _draw_confusion(
    rng: np.random.Generator, n_annotators: int, n_labels: int, accuracy: tuple[float, float]
) -> Floats:
    low, high = accuracy
    if not 0 <= low <= high <= 1:
        msg = f"accuracy is ({low:g}, {high:g}): give a range within 0 and 1, the lower end first."
        raise UsageError(msg)
    right_ak = rng.uniform(low, high, size=(n_annotators, n_labels))
    wrong_akw = rng.dirichlet(np.full(n_labels - 1, 2.0), size=(n_annotators, n_labels))
    confusion_akv = np.empty((n_annotators, n_labels, n_labels))
    for k in range(n_labels):
        confusion_akv[:, k, k] = right_ak[:, k]
        wrong = [v for v in range(n_labels) if v != k]
        confusion_akv[:, k, wrong] = wrong_akw[:, k] * (1 - right_ak[:, k, None])
    return confusion_akv


def _checked(name: str, choice: ArrayLike | None, default: Floats) -> Floats:
    if choice is None:
        return default
    values = np.asarray(choice, dtype=float)
    if values.shape != default.shape:
        msg = f"{name} has shape {values.shape}, but these sizes need {default.shape}."
        raise VotesError(msg)
    bad = ~((values >= 0).all(axis=-1) & np.isclose(values.sum(axis=-1), 1.0))
    if bad.any():
        msg = (
            f"{bad.sum()} of {bad.size} rows of {name} are no probabilities. First: {values[bad][0].tolist()}. "
            "Make each row non-negative with sum 1."
        )
        raise VotesError(msg)
    return values


def _draw_block(parameters: _Parameters, block: int) -> _Block:
    first = block * BLOCK_ITEMS
    n_items = min(BLOCK_ITEMS, parameters.n_items - first)
    rng = np.random.default_rng([parameters.seed, 1, block])
    truth_i = _draw_labels(rng, parameters.prevalence_k[None], np.zeros(n_items, dtype=np.int64))
    votes_i = _draw_counts(rng, parameters, n_items)
    annotator_v = assign_evenly(rng, votes_i, parameters.n_annotators)
    n_labels = len(parameters.prevalence_k)
    row_v = annotator_v.astype(np.int64) * n_labels + np.repeat(truth_i, votes_i)
    label_v = _draw_labels(rng, parameters.confusion_akv.reshape(-1, n_labels), row_v)
    item_v = np.repeat(np.arange(first, first + n_items), votes_i)
    return item_v, annotator_v, label_v, truth_i, votes_i


def _draw_labels(rng: np.random.Generator, chance_rk: Floats, row_v: NDArray[np.int64]) -> NDArray[np.int8]:
    # One column at a time: the label is how many steps of the cumulative chance lie below one uniform number.
    below_rk = chance_rk.cumsum(axis=1)[:, :-1]
    uniform_v = rng.random(len(row_v))
    label_v = np.zeros(len(row_v), dtype=np.int8)
    for below_r in np.ascontiguousarray(below_rk.T):
        label_v += uniform_v >= below_r[row_v]
    return label_v


def _draw_counts(rng: np.random.Generator, parameters: _Parameters, n_items: int) -> NDArray[np.int64]:
    if float(parameters.votes_per_item).is_integer():
        return np.full(n_items, int(parameters.votes_per_item))
    n_rest = parameters.n_annotators - 1
    return 1 + rng.binomial(n_rest, (parameters.votes_per_item - 1) / n_rest, size=n_items)


def assign_evenly(rng: np.random.Generator, votes_i: NDArray[np.int64], n_annotators: int) -> NDArray[np.int32]:
    """Draw the annotators of each item: all different, every set of them as likely as any other.

    Parameters
    ----------
    rng
        Where the randomness comes from.
    votes_i
        How many annotators each item gets.
    n_annotators
        How many there are to draw from.

    Returns
    -------
    NDArray[np.int32]
        Annotators of the first item ascending, then those of the second, and so on.

    Examples
    --------
    >>> assign_evenly(np.random.default_rng(0), np.array([3, 3]), 3).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    draw = _draw_one_by_one if votes_i.max(initial=0) <= FEW_VOTES else _draw_by_rank
    return draw(rng, votes_i, n_annotators)


def _draw_one_by_one(rng: np.random.Generator, votes_i: NDArray[np.int64], n_annotators: int) -> NDArray[np.int32]:
    # Items with many votes first, so that those still drawing are always a prefix.
    order_i = np.argsort(-votes_i, kind="stable")
    voter_ti = np.full((votes_i.max(initial=0), len(votes_i)), n_annotators, dtype=np.int32)
    for t in range(len(voter_ti)):
        n_open = np.count_nonzero(votes_i > t)
        # The new one is the r-th of those not chosen yet. Stepping over the chosen, which are sorted, finds it;
        # once it fits below one of them it takes that place, and the larger is carried on.
        carried_i = rng.integers(n_annotators - t, size=n_open, dtype=np.int32)
        for voter_i in voter_ti[:t, :n_open]:
            carried_i += carried_i >= voter_i
            smaller_i = np.minimum(voter_i, carried_i)
            np.maximum(voter_i, carried_i, out=carried_i)
            voter_i[:] = smaller_i
        voter_ti[t, :n_open] = carried_i
    voter_it = np.empty(voter_ti.shape[::-1], dtype=np.int32)
    voter_it[order_i] = voter_ti.T
    return voter_it[voter_it < n_annotators]


def _draw_by_rank(rng: np.random.Generator, votes_i: NDArray[np.int64], n_annotators: int) -> NDArray[np.int32]:
    rows_at_once = max(1, CELLS_AT_ONCE // n_annotators)
    parts = []
    for first in range(0, len(votes_i), rows_at_once):
        rows_i = votes_i[first : first + rows_at_once]
        rank_ia = rng.random((len(rows_i), n_annotators)).argsort(axis=1).argsort(axis=1)
        parts.append(np.nonzero(rank_ia < rows_i[:, None])[1].astype(np.int32))
    return np.concatenate(parts)
