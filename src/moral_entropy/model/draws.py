"""One Gaussian at the mode, in log-ratio coordinates as in the paper's listing; draws of the parameters from it.

The curvature is exact (Louis 1982) and dense for up to some thousand parameters. For more there is one block per
annotator, and for annotators of very many labels the information with all labels known, row by row. Items are
summarised row by row: no array of draws × items is ever held.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular
from scipy.sparse import csr_array
from scipy.special import softmax

from moral_entropy.model import kernels
from moral_entropy.model.patterns import Patterns
from moral_entropy.model.posterior import Counts, Parameters, Posterior, derivatives, labelled_information
from moral_entropy.model.search import Optimum, pack, unpack
from moral_entropy.model.states import States
from moral_entropy.model.threads import over_blocks
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints

DENSE, DENSE_CELLS = 4_000, 2e10
"""Most parameters for which the curvature is held as a matrix, and most updates of it in a pass over the votes."""

ANNOTATOR_BLOCK, BLOCK_NUMBERS = 90, 1 << 26
"""Most parameters of an annotator, those of ten labels, and most numbers in all blocks, for blocks by annotator."""

LEAST_INFORMATION = 1e-3
"""Share of the information with all labels known that is assumed in directions which the votes leave flat."""

LEAST_ITEMS = 1.0
"""Items' worth of information about every weight at least: of a rare state in a small domain the votes say nothing,
and a Gaussian in logs would put half of all items there."""

LEAST_VOTES = 0.1
"""Votes' worth of information about every label of a row at least, in the default model: of answers that an annotator
never gave the votes say nothing, and a Gaussian in logs would give them often. Chosen by Gibbs sampling on eleven
public sets of 2 to 10 labels, of 0, .05, .1, .25 and .5: without it intervals of four and more labels were 1.6 to 6.5
times as wide."""

NUMBERS_AT_ONCE = 1 << 22
"""Numbers held at once where draws are made or looked at some at a time."""

BLOCK_ROWS = 512
"""Rows per call of the kernel: their draws are held."""

MOST_SUMMARIES = 9e9
"""Most rows × draws × votes per row × states: of very many rows fewer draws are looked at, 100 at least."""


class Curvature(NamedTuple):
    """How the curvature at the mode was held, and the smallest share of information left in any direction."""

    method: str
    positive_definite: bool
    smallest: float


Root = Callable[[Floats], Floats]
"""Turns standard normal numbers, one row per draw, into steps away from the mode."""


def draw(
    posterior: Posterior, optimum: Optimum, ballot: Ballot, n_draws: int, seed: int
) -> tuple[Curvature, Parameters, Floats]:
    """Draw parameters around the mode; return also the log density of each draw under the Gaussian, up to a constant.

    Every question has random numbers of its own: one more question changes no draw of the others.
    """
    centre_p = pack(optimum.at)
    if not n_draws:
        return Curvature("none", True, float("nan")), unpack(np.empty((0, len(centre_p))), optimum.at), np.empty(0)
    rng = np.random.default_rng([seed, zlib.crc32(ballot.question.encode()), zlib.crc32(ballot.part.encode())])
    dense = posterior.n_parameters <= DENSE and posterior.n_cells <= DENSE_CELLS
    curvature, root = (_dense if dense else _by_annotator)(posterior, optimum.at, optimum.counts)
    weight_sdg, confusion_sakv = (np.empty((n_draws, *part.shape)) for part in optimum.at)
    log_density_s = np.empty(n_draws)
    tile = n_draws if dense else max(1, NUMBERS_AT_ONCE // len(centre_p))
    for first in range(0, n_draws, tile):
        draws = slice(first, min(first + tile, n_draws))
        normal_sp = rng.standard_normal((draws.stop - first, len(centre_p)))
        log_density_s[draws] = -0.5 * np.einsum("sp,sp->s", normal_sp, normal_sp)
        weight_sdg[draws], confusion_sakv[draws] = unpack((centre_p + root(normal_sp)).clip(-600.0, 600.0), optimum.at)
    return curvature, Parameters(weight_sdg, confusion_sakv), log_density_s


def _dense(posterior: Posterior, at: Parameters, counts: Counts) -> tuple[Curvature, Root]:
    """Factor the whole curvature; where it is not that of a maximum, assume a little information in flat directions."""
    n_weights, n_own = at.weight_dg[:, 1:].size, at.confusion_akv[0, :, 1:].size
    curvature_pp, weights = posterior.information(at, counts), np.arange(n_weights)
    curvature_pp[weights, weights] = np.maximum(curvature_pp[weights, weights], LEAST_ITEMS)
    for first in range(n_weights, len(curvature_pp), n_own):
        block = slice(first, first + n_own)
        curvature_pp[block, block] += _least_own(posterior)
    known_p = derivatives(posterior.completed(counts), at)[1]
    known_p[weights] = np.maximum(known_p[weights], LEAST_ITEMS)
    scale_p = 1.0 / np.sqrt(known_p)
    scaled_pp = np.tril(curvature_pp) * np.outer(scale_p, scale_p)
    scaled_pp += np.tril(scaled_pp, -1).T
    try:
        lower_pp = cholesky(scaled_pp, lower=True, check_finite=False)
        smallest = _smallest(lower_pp)
    except LinAlgError:
        smallest = 0.0
    if smallest > 0.0:
        return (
            Curvature("dense", True, smallest),
            lambda normal_sp: (
                solve_triangular(lower_pp, normal_sp.T, lower=True, trans="T", check_finite=False).T * scale_p
            ),
        )
    value_q, vector_pq = eigh(scaled_pp)
    # The symmetric root: the sign and the choice of tied eigenvectors depend on the processor, this root does not.
    root_pp = (vector_pq / np.sqrt(value_q.clip(min=LEAST_INFORMATION))) @ vector_pq.T
    return Curvature("dense", False, round(float(value_q[0]), 4)), lambda normal_sp: normal_sp @ root_pp * scale_p


def _least_own(posterior: Posterior) -> Floats:
    """Return the least information about an annotator's rows, the same whichever label the log ratios are against."""
    n_labels, least = posterior.patterns.n_labels, LEAST_VOTES if posterior.common else 0.0
    return np.asarray(np.kron(np.eye(n_labels), least * (np.eye(n_labels - 1) - 1.0 / n_labels)), dtype=np.float64)


def _smallest(lower_pp: Floats) -> float:
    """Return the smallest eigenvalue of L L', by inverse iteration."""
    vector_p, smallest = np.ones(len(lower_pp)) / np.sqrt(len(lower_pp)), 1.0
    for _ in range(30):
        half_p = solve_triangular(lower_pp, vector_p, lower=True, check_finite=False)
        next_p = solve_triangular(lower_pp, half_p, lower=True, trans="T", check_finite=False)
        before, smallest = smallest, 1.0 / float(np.linalg.norm(next_p))
        vector_p = next_p * smallest
        if abs(smallest - before) < 1e-3 * smallest:
            break
    # Iterated roughly: its further digits depend on the last bits of sums.
    return round(smallest, 4)


def _by_annotator(posterior: Posterior, at: Parameters, counts: Counts) -> tuple[Curvature, Root]:
    """Factor the curvature block by block: the weights of a domain, the rows of an annotator, or single rows."""
    n_own, n_weights = at.confusion_akv[0, :, 1:].size, at.weight_dg[:, 1:].size
    roots, completed = None, posterior.completed(counts)
    # Blocks of 300 labels would take gigabytes.
    if n_own <= ANNOTATOR_BLOCK and len(at.confusion_akv) * n_own**2 <= BLOCK_NUMBERS:
        roots = _inverse_roots(posterior.own_information(at, counts) + _least_own(posterior))
    weights = labelled_information(completed.weight_dg, at.weight_dg)
    weight_roots = _inverse_roots(weights + np.eye(weights.shape[-1]) * LEAST_ITEMS)

    def root(normal_sp: Floats) -> Floats:
        head = _times(weight_roots, normal_sp[:, :n_weights])
        if roots is not None:
            return np.concatenate([head, _times(roots, normal_sp[:, n_weights:])], axis=1)
        # The inverse information of a multinomial row is D + 1 1' / n_0, with D = diag(1 / n_v): a root of it.
        votes_akv = np.maximum(completed.confusion_akv, LEAST_VOTES if posterior.common else 1e-3)
        normal_sakv = normal_sp[:, n_weights:].reshape(len(normal_sp), *votes_akv[..., 1:].shape)
        root_akv, rest_ak = np.sqrt(votes_akv[..., 1:]), votes_akv[..., 1:].sum(axis=-1)
        gain_ak = (np.sqrt(1.0 + rest_ak / votes_akv[..., 0]) - 1.0) / rest_ak
        along_sak = (normal_sakv * root_akv).sum(axis=-1) * gain_ak
        tail = normal_sakv / root_akv + along_sak[..., None]
        return np.concatenate([head, tail.reshape(len(normal_sp), -1)], axis=1)

    return Curvature("rows" if roots is None else "annotators", True, float("nan")), root


def _inverse_roots(block_bpp: Floats) -> Floats:
    """Return the symmetric inverse square root of every block, with a little information in flat directions."""
    diagonal_bp = np.diagonal(block_bpp, axis1=-2, axis2=-1)
    floor_b = LEAST_INFORMATION * np.maximum(diagonal_bp.max(axis=-1), 1e-6)
    value_bq, vector_bpq = np.linalg.eigh(block_bpp)
    root_bq = 1.0 / np.sqrt(np.maximum(value_bq, floor_b[:, None]))
    return np.asarray((vector_bpq * root_bq[:, None, :]) @ np.swapaxes(vector_bpq, -1, -2))


def _times(root_bpp: Floats, normal_sp: Floats) -> Floats:
    """Multiply consecutive columns with one matrix after the other."""
    n_blocks, n_own, _ = root_bpp.shape
    step_sbq = np.einsum("sbp,bpq->sbq", normal_sp.reshape(-1, n_blocks, n_own), root_bpp)
    return np.asarray(step_sbq.reshape(normal_sp.shape))


def summarise(
    patterns: Patterns,
    states: States,
    samples: Parameters,
    *,
    pool_r: Floats,
    share_rk: Floats,
    about_r: Ints,
    interval: float,
    threads: int | None = None,
    advance: Advance = ignore,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Summarise every row's label probabilities over the draws: mean, interval of one label, mean entropy.

    Parameters
    ----------
    patterns, states, samples
        The votes, the states, and draws of the parameters.
    pool_r, share_rk
        Weight of the vote share in each row's probabilities, and that share.
    about_r
        The label that each row's interval is about.
    interval
        Mass of the central interval.
    threads, advance
        At most this many threads; called with the share done.
    """
    n_rows, n_labels, about_r = patterns.n_rows, patterns.n_labels, about_r.astype(np.int64)
    n_used = int(max(100, MOST_SUMMARIES // max(len(patterns.code_v) * states.n_states, 1)))
    confusion_sakv, weight_sdg = samples.confusion_akv[:n_used], samples.weight_dg[:n_used]
    vote_cks = np.array(confusion_sakv.transpose(1, 3, 2, 0), order="C").reshape(-1, n_labels, len(weight_sdg))
    # Products of some votes must not vanish in all states at once; so small a share of the largest changes nothing.
    for vote_ks in vote_cks:
        vote_ks /= vote_ks.max(axis=0)
        np.maximum(vote_ks, 1e-30, out=vote_ks)
    weight_dzs = np.ascontiguousarray(states.weight_of_states(weight_sdg).transpose(1, 2, 0))
    mean_rk, (low_r, high_r, entropy_r) = np.empty((n_rows, n_labels)), np.empty((3, n_rows))
    arguments = (patterns.arrays, vote_cks, weight_dzs, states.ends_ze, states.share_z, pool_r, share_rk, about_r)
    tails, rows_done = [(1.0 - interval) / 2.0, (1.0 + interval) / 2.0], [0]

    def run(first: int, last: int) -> None:
        for block in range(first, last):
            lo, hi = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, n_rows)
            p_rs = np.empty((hi - lo, vote_cks.shape[-1]))
            kernels.draw_summaries(*arguments, lo, hi, mean_rk, entropy_r, p_rs)
            low_r[lo:hi], high_r[lo:hi] = np.quantile(p_rs, tails, axis=1, overwrite_input=True)
            rows_done[0] += hi - lo
            advance(rows_done[0] / n_rows)

    over_blocks(run, -(-n_rows // BLOCK_ROWS), threads, grain=64)
    return mean_rk, low_r, high_r, entropy_r


def _log_states(patterns: Patterns, states: States, samples: Parameters) -> Iterator[tuple[slice, Floats]]:
    """Yield the log probability of each row's votes together with each state, some draws at a time: `log_srz`."""
    votes_rc = csr_array(
        (np.ones(len(patterns.code_v)), patterns.code_v, patterns.start_r),
        shape=(patterns.n_rows, patterns.n_annotators * patterns.n_labels),
    )
    domain_r = patterns.domain_r if patterns.n_domains > 1 else np.zeros(patterns.n_rows, dtype=np.int32)
    n_draws, n_states = len(samples.weight_dg), states.n_states
    # Some copies of these numbers are made on the way.
    tile = max(1, NUMBERS_AT_ONCE // (8 * sum(votes_rc.shape) * n_states))
    for first in range(0, n_draws, tile):
        draws = slice(first, min(first + tile, n_draws))
        vote_sazv = states.votes_azv(samples.confusion_akv[draws])
        log_cx = np.log(vote_sazv.transpose(1, 3, 0, 2)).reshape(votes_rc.shape[1], -1)
        log_srz = (votes_rc @ log_cx).reshape(patterns.n_rows, -1, n_states).swapaxes(0, 1)
        yield draws, log_srz + np.log(states.weight_of_states(samples.weight_dg[draws]))[:, domain_r]


def posterior_draws(patterns: Patterns, states: States, samples: Parameters, rows: Ints) -> Floats:
    """Compute the model's label probabilities of some rows in every draw: `p_srk`."""
    chosen_rows = patterns.take(rows)
    p_srk = np.empty((len(samples.weight_dg), chosen_rows.n_rows, patterns.n_labels))
    for draws, log_srz in _log_states(chosen_rows, states, samples):
        p_srk[draws] = softmax(log_srz, axis=-1) @ states.mix_zk
    clamped = chosen_rows.clamp_r != UNKNOWN
    p_srk[:, clamped] = np.eye(patterns.n_labels)[chosen_rows.clamp_r[clamped]]
    return p_srk


def log_likelihoods(patterns: Patterns, states: States, samples: Parameters) -> Floats:
    """Compute the log likelihood of all votes in every draw."""
    log_s, clamped = np.empty(len(samples.weight_dg)), np.flatnonzero(patterns.clamp_r != UNKNOWN)
    for draws, log_srz in _log_states(patterns, states, samples):
        # SciPy's logsumexp takes three times as long: it allows for infinite and complex numbers.
        top_sr = log_srz.max(axis=-1)
        log_sr = np.log(np.exp(log_srz - top_sr[..., None]).sum(axis=-1)) + top_sr
        log_sr[:, clamped] = log_srz[:, clamped, patterns.clamp_r[clamped]]
        log_s[draws] = log_sr @ patterns.weight_r
    return log_s
