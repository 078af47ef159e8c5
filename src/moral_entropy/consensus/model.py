"""The log posterior of prevalence and confusion, and what follows from its expected counts.

Takes `Patterns` and pseudo-counts; one pass over the votes at given `Parameters` returns an `Expectation`, from
which the log posterior, its gradient, and EM's next parameters are computed. Class labels are summed out throughout.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus import kernels
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.votes.table import Floats

BLOCKS = 16
"""Blocks of rows in a large pass; fixed, so that results do not depend on the number of threads."""

SMALL = 400_000
"""Votes below which one block in one thread is faster than several threads."""

OWN_BYTES = 1 << 28
"""Most memory, in bytes, for the sums of annotators' own blocks by several threads."""

FLOOR = 1e-12
"""Least probability of a label: under flat priors a mode may lie on the edge of the simplex."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Prevalence and confusion, as logs. Axes: **a** annotator, true **k**, **v**oted."""

    log_prevalence_k: Floats
    log_confusion_akv: Floats

    @property
    def prevalence_k(self) -> Floats:
        """The prevalence itself."""
        return np.exp(self.log_prevalence_k)

    @property
    def confusion_akv(self) -> Floats:
        """The confusion itself."""
        return np.exp(self.log_confusion_akv)

    @property
    def least(self) -> float:
        """The smallest of all these probabilities."""
        return float(np.exp(min(self.log_prevalence_k.min(), self.log_confusion_akv.min(initial=0.0))))

    def at_least_chance(self) -> Parameters:
        """Raise every probability of a right answer that is below chance to chance; leading axes are kept."""
        confusion_akv = self.confusion_akv
        n_labels = confusion_akv.shape[-1]
        right_ak = np.diagonal(confusion_akv, axis1=-2, axis2=-1)[..., None]
        short_ak = right_ak < 1.0 / n_labels
        shrink_ak = np.where(short_ak, (1.0 - 1.0 / n_labels) / np.maximum(1.0 - right_ak, 1e-300), 1.0)
        lifted_akv = np.where(np.eye(n_labels, dtype=bool) & short_ak, 1.0 / n_labels, confusion_akv * shrink_ak)
        return Parameters(self.log_prevalence_k, np.log(lifted_akv))

    def push_ck(self) -> Floats:
        """By vote code, the log ratio of each further label's likelihood to label 0's."""
        by_code = self.log_confusion_akv.transpose(0, 2, 1).reshape(-1, len(self.log_prevalence_k))
        return np.ascontiguousarray(by_code[:, 1:] - by_code[:, :1])

    def base_k(self) -> Floats:
        """The log ratio of each further label's prevalence to label 0's."""
        return np.asarray(self.log_prevalence_k[1:] - self.log_prevalence_k[0])


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected counts at some parameters, pseudo-counts included, and the log posterior there."""

    items_k: Floats
    votes_akv: Floats
    log_posterior: float

    def maximum(self) -> Parameters:
        """Return the parameters that maximise the likelihood of the counts: EM's next step."""
        return Parameters(_log_shares(self.items_k), _log_shares(self.votes_akv))

    def gradient(self, at: Parameters) -> Floats:
        """Compute the derivative of the log posterior in log-ratio coordinates at the parameters of the pass."""
        prevalence = self.items_k - self.items_k.sum() * at.prevalence_k
        confusion = self.votes_akv - self.votes_akv.sum(axis=-1, keepdims=True) * at.confusion_akv
        return np.concatenate([prevalence[1:], confusion[..., 1:].ravel()])


def _log_shares(counts: Floats) -> Floats:
    shares = np.maximum(counts / counts.sum(axis=-1, keepdims=True), FLOOR)
    return np.asarray(np.log(shares / shares.sum(axis=-1, keepdims=True)))


def _at_least_chance(votes_akv: Floats) -> Floats:
    """Raise counts of right answers to chance: the shares of the counts are then the best row within the bound."""
    n_labels = votes_akv.shape[-1]
    right_ak = np.diagonal(votes_akv, axis1=1, axis2=2)
    chance_ak = (votes_akv.sum(axis=-1) - right_ak) / (n_labels - 1)
    return np.asarray(np.where(np.eye(n_labels, dtype=bool), np.maximum(right_ak, chance_ak)[..., None], votes_akv))


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """The log posterior of one ballot.

    Parameters
    ----------
    patterns
        The votes.
    pseudo_k, pseudo_akv
        Pseudo-counts of prevalence and confusion: alpha - 1 and beta - 1 for a density on the simplex, alpha
        and beta for one in log-ratio coordinates.
    threads
        At most this many threads; all cores by default.
    better_than_chance
        Whether right answers are kept at chance or above.
    """

    patterns: Patterns
    pseudo_k: Floats
    pseudo_akv: Floats
    threads: int | None = None
    better_than_chance: bool = False

    @property
    def n_parameters(self) -> int:
        """Free parameters: log ratios of the prevalence and of every confusion row."""
        n_labels = self.patterns.n_labels
        return (n_labels - 1) * (1 + self.patterns.n_annotators * n_labels)

    @cached_property
    def votes_c(self) -> Floats:
        """Votes by code: the labels' expected votes always add up to these."""
        return self.patterns.votes_c

    @cached_property
    def n_items(self) -> float:
        """Items with a vote."""
        return float(self.patterns.weight_r.sum())

    @cached_property
    def bound_b(self) -> NDArray[np.int64]:
        """Rows at which the blocks begin, of about equally many votes each."""
        start_r = self.patterns.start_r
        if start_r[-1] < SMALL:
            return np.array([0, self.patterns.n_rows])
        edges = np.searchsorted(start_r, np.linspace(0, start_r[-1], BLOCKS + 1))
        edges[0], edges[-1] = 0, self.patterns.n_rows
        return edges.astype(np.int64)

    @cached_property
    def _buffers(self) -> tuple[Floats, Floats]:
        n_blocks, n_labels = len(self.bound_b) - 1, self.patterns.n_labels
        return np.zeros((n_blocks, len(self.votes_c), n_labels - 1)), np.zeros((n_blocks, n_labels))

    @property
    def n_votes(self) -> int:
        """Votes that a pass reads; those of identical items count once."""
        return len(self.patterns.code_v)

    @cached_property
    def n_cells(self) -> float:
        """Number of updates of curvature cells in a pass over the votes."""
        n_other = self.patterns.n_labels - 1
        return float(((np.diff(self.patterns.start_r) * (n_other + 1) * n_other + n_other) ** 2.0).sum())

    def sample_rows(self, most_votes: int) -> LogPosterior:
        """Return the log posterior of a sample of the rows, where there are more votes than `most_votes`."""
        patterns = self.patterns
        if self.n_votes <= most_votes:
            return self
        n_rows = max(1, int(patterns.n_rows * most_votes / self.n_votes))
        rows = np.random.default_rng(0).choice(patterns.n_rows, n_rows, replace=False)
        return replace(self, patterns=patterns.take(np.sort(rows)))

    def expect(self, at: Parameters) -> Expectation:
        """Compute expected counts and log posterior at some parameters, in one pass over the votes."""
        return self._expectation(at, *self.pass_over(at))

    def pass_over(self, at: Parameters) -> tuple[Floats, Floats]:
        """Return the sums of one pass: expected votes of labels after the first; their items, log likelihood."""
        patterns = self.patterns
        count_bck, total_bt = self._buffers
        count_bck[:], total_bt[:] = 0.0, 0.0
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r, patterns.clamp_r)
        push_ck, base_k = at.push_ck(), at.base_k()

        def run(first: int, last: int) -> None:
            if patterns.n_labels == 2:
                parameters = (push_ck[:, 0].copy(), base_k[0])
                kernels.binary_pass(*rows, *parameters, self.bound_b, first, last, count_bck[:, :, 0], total_bt)
            else:
                kernels.general_pass(*rows, push_ck, base_k, self.bound_b, first, last, count_bck, total_bt)

        over_blocks(run, len(self.bound_b) - 1, self.threads)
        return count_bck.sum(axis=0), total_bt.sum(axis=0)

    def _expectation(self, at: Parameters, count_ck: Floats, total_t: Floats) -> Expectation:
        n_labels = self.patterns.n_labels
        items_k = np.concatenate([[self.n_items - total_t[:-1].sum()], total_t[:-1]])
        # Label 0 has the remaining votes; rounding can leave about -1e-12.
        all_ck = np.column_stack([self.votes_c - count_ck.sum(axis=1), count_ck]).clip(min=0.0)
        votes_akv = all_ck.reshape(-1, n_labels, n_labels).transpose(0, 2, 1)
        log_label0 = self.n_items * at.log_prevalence_k[0] + self.votes_c @ at.log_confusion_akv[:, 0, :].ravel()
        log_prior = self.pseudo_k @ at.log_prevalence_k + (self.pseudo_akv * at.log_confusion_akv).sum()
        counts_akv = votes_akv + self.pseudo_akv
        return Expectation(
            items_k=items_k.clip(min=0.0) + self.pseudo_k,
            votes_akv=_at_least_chance(counts_akv) if self.better_than_chance else counts_akv,
            log_posterior=float(total_t[-1] + log_label0 + log_prior),
        )

    def posterior_rk(self, at: Parameters) -> Floats:
        """Compute the label probabilities of every row at some parameters."""
        patterns = self.patterns
        posterior_rk = np.empty((patterns.n_rows, patterns.n_labels))
        rows = (patterns.start_r, patterns.code_v, patterns.clamp_r)
        push_ck, base_k = at.push_ck(), at.base_k()

        def run(first: int, last: int) -> None:
            lo, hi = self.bound_b[first], self.bound_b[last]
            kernels.row_posteriors(*rows, push_ck, base_k, lo, hi, posterior_rk)

        over_blocks(run, len(self.bound_b) - 1, self.threads)
        return posterior_rk

    def take_missing(self, at: Parameters, curvature_pp: Floats) -> None:
        """Subtract the missing information from the lower triangle of the complete-data information, in place."""
        patterns = self.patterns
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r)
        kernels.add_missing_information(*rows, self.posterior_rk(at), at.confusion_akv, curvature_pp)

    def covariance(self, at: Parameters) -> ScoreCovariance:
        """Return the covariance of the complete-data score at some parameters, as an operator."""
        return ScoreCovariance(self, at)


class ScoreCovariance:
    """The missing information at some parameters: the covariance of the complete-data score, never held as a matrix."""

    def __init__(self, log_posterior: LogPosterior, at: Parameters) -> None:
        self.log_posterior, self.at = log_posterior, at
        self.posterior_rk = log_posterior.posterior_rk(at)

    def take_own(self, own_app: Floats) -> Floats:
        """Subtract it from each annotator's own block, in place; return the prevalence's block: `items_kk`."""
        patterns, bound_b = self.log_posterior.patterns, self.log_posterior.bound_b
        n_blocks = min(len(bound_b) - 1, max(1, OWN_BYTES // max(own_app.nbytes, 1)))
        edge_b = bound_b[np.arange(n_blocks + 1) * (len(bound_b) - 1) // n_blocks]
        own_bapp = np.zeros((n_blocks, *own_app.shape))
        items_bkk = np.zeros((n_blocks, patterns.n_labels, patterns.n_labels))
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r, self.posterior_rk)

        def run(first: int, last: int) -> None:
            for b in range(first, last):
                lo, hi = edge_b[b], edge_b[b + 1]
                kernels.add_own_information(*rows, self.at.confusion_akv, lo, hi, own_bapp[b], items_bkk[b])

        over_blocks(run, n_blocks, self.log_posterior.threads)
        own_app += own_bapp.sum(axis=0)
        return np.asarray(items_bkk.sum(axis=0))

    def product(self, gain_ck: Floats, base_k: Floats) -> tuple[Floats, Floats]:
        """Multiply it with a vector, in one pass over the votes; `gain_ck` is what a vote adds to label k's score."""
        patterns, bound_b = self.log_posterior.patterns, self.log_posterior.bound_b
        n_blocks, binary = len(bound_b) - 1, patterns.n_labels == 2
        out_bck = np.zeros((n_blocks, len(gain_ck), 1 if binary else patterns.n_labels))
        total_bk = np.zeros((n_blocks, out_bck.shape[-1]))
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r)
        over_c, base = gain_ck[:, -1] - gain_ck[:, 0], base_k[-1] - base_k[0]

        def run(first: int, last: int) -> None:
            blocks = (bound_b, first, last)
            if binary:
                p_r, out = self.posterior_rk[:, 1], (out_bck[:, :, 0], total_bk[:, 0])
                kernels.binary_covariance_pass(*rows, p_r, over_c, base, *blocks, *out)
            else:
                kernels.covariance_pass(*rows, self.posterior_rk, gain_ck, base_k, *blocks, out_bck, total_bk)

        over_blocks(run, n_blocks, self.log_posterior.threads)
        out_ck, total_k = out_bck.sum(axis=0), total_bk.sum(axis=0)
        return (np.hstack([-out_ck, out_ck]), np.hstack([-total_k, total_k])) if binary else (out_ck, total_k)


def available_cores() -> int:
    """Return the number of cores this process may use; all of them where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def over_blocks(run: Callable[[int, int], None], n_blocks: int, threads: int | None = None, *, grain: int = 1) -> None:
    """Call `run(first, last)` on ranges of blocks that cover all of them, in threads where that helps.

    Parameters
    ----------
    run
        Does blocks `first` to `last`; its result must not depend on the thread.
    n_blocks
        How many blocks there are.
    threads
        At most this many threads; all cores by default.
    grain
        Ranges per thread: more of them balance the load, and let an interrupt through sooner.
    """
    n_threads = min(n_blocks, threads or available_cores())
    n_ranges = min(n_blocks, n_threads * grain)
    edges = [n_blocks * t // max(n_ranges, 1) for t in range(n_ranges + 1)]
    if n_threads <= 1:
        for first, last in pairwise(edges):
            run(first, last)
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        list(pool.map(run, edges[:-1], edges[1:]))
    finally:
        pool.shutdown(cancel_futures=True)
