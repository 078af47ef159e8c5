"""Posterior draws: of the parameters, from the Gaussian at the mode; and what follows from them for every item.

Items are summarised row by row: no array of draws × items is ever held.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, softmax

from moral_entropy.consensus import draw_kernels as kernels
from moral_entropy.consensus import laplace
from moral_entropy.consensus import state_draw_kernels as state_kernels
from moral_entropy.consensus.coordinates import pack, unpack, unpack_like
from moral_entropy.consensus.densities import Densities
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import mode_in_log_ratios
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.rare_states import skew_rare_weights
from moral_entropy.consensus.result import Curvature, DrawSummary, Mixture, ParameterFit, nothing_between
from moral_entropy.consensus.states import States
from moral_entropy.consensus.threads import over_blocks
from moral_entropy.progress import Advance, ignore
from moral_entropy.ties import settle_halves
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints

NUMBERS_AT_ONCE = 1 << 21
"""Normal random numbers held at once where there are too many parameters for a dense matrix."""

EDGE = 1e-6
"""Probability below which a mode counts as lying on the edge of the simplex."""

BLOCK_ROWS = 4_096
"""Rows per call of a kernel."""

CODES_AT_ONCE = 4_096
"""Codes of votes whose draws are brought into order together."""

LOGS_AT_ONCE = 1 << 22
"""Logs of parameters held at once, in addition to the draws."""

SHIFTS = 6
"""How often drawn rows are moved towards their mode. Of eight labels a fifth of the way is left each time, of twenty up
to two fifths: in the end less than a thousandth."""


def draw(
    densities: Densities, at: Parameters, ballot: Ballot, options: FitOptions
) -> tuple[Curvature, Parameters, Floats | None]:
    """Draw parameters from the Gaussian at the mode; return its curvature, the draws, and the log density of each.

    The log density is None where draws are not from that Gaussian alone: bounded by chance, or common rows uncertain.

    Parameters
    ----------
    densities, at
        The densities, and the mode found in them.
    ballot
        The question, whose name is part of the seed: every question has random numbers of its own.
    options
        Number of draws, seed and coordinates.
    """
    n_parameters = densities.simplex.n_parameters
    if options.draws == 0:
        nothing = unpack(np.empty((0, n_parameters)), ballot.n_labels, at.log_weight_g.shape)
        return Curvature("none", options.coordinates, True, float("nan")), nothing, None
    rng = _stream(ballot, options.seed)
    if densities.nested is not None:
        found = Curvature("nested", "logit-mode", True, float("nan"))
        return found, densities.nested.draw(rng, options.draws), None
    coordinates, target, centre = _centre(densities, at, options)
    gaussian = laplace.gaussian_at(target, centre)
    drawn, length_s = _draw_around(centre, gaussian, options.draws, rng)
    if target.between is not None:
        log_sdg, added_s = skew_rare_weights(drawn.log_weight_g, centre.log_weight_g)
        drawn, length_s = replace(drawn, log_weight_g=log_sdg), length_s - 2.0 * added_s
        if ballot.n_labels > 2:
            centre_rows(drawn.log_confusion_akv, centre.log_confusion_akv)
    found = Curvature(gaussian.method, coordinates, gaussian.positive_definite, gaussian.smallest)
    if densities.simplex.better_than_chance:
        return found, drawn.at_least_chance(), None
    # Steps are linear in the normal numbers, so their density is the Gaussian's up to a constant (and what was skewed).
    return found, drawn, None if densities.rows is not None else -0.5 * length_s


def _draw_around(
    centre: Parameters, gaussian: laplace.Gaussian, n_draws: int, rng: np.random.Generator
) -> tuple[Parameters, Floats]:
    """Draw parameters; return them, and the squared length of each draw in standard normal numbers.

    Where there are very many parameters, draws are made in batches to save memory.
    """
    centre_p = pack(centre)
    tile = n_draws if gaussian.method == "dense" else max(1, NUMBERS_AT_ONCE // len(centre_p))
    log_sg = np.empty((n_draws, *centre.log_weight_g.shape))
    log_sakv = np.empty((n_draws, *centre.log_confusion_akv.shape))
    length_s = np.empty(n_draws)
    for first in range(0, n_draws, tile):
        some = slice(first, min(first + tile, n_draws))
        normal_sp = rng.standard_normal((some.stop - first, len(centre_p)))
        # Beyond e^600 a probability underflows, and its log is lost.
        drawn = unpack_like((centre_p + gaussian.step(normal_sp.T).T).clip(-600.0, 600.0), centre)
        log_sg[some], log_sakv[some] = drawn.log_weight_g, drawn.log_confusion_akv
        length_s[some] = np.einsum("sp,sp->s", normal_sp, normal_sp)
    return Parameters(log_sg, log_sakv), length_s


def centre_rows(log_sakv: Floats, mode_akv: Floats) -> None:
    """Move drawn rows, in place, until their mean is the mode.

    The mode in log ratios is the mean of a row whose votes' labels are known. A Gaussian around it has another mean: of
    many labels most have hardly any votes, their logs are wide, and the right half of each takes from the others. In
    logs every draw of a row moves by the same amount, so they stay a Gaussian's. With two labels it would be a point
    of a row or less (docs/evidence/validation.md), and they are left alone.

    Parameters
    ----------
    log_sakv
        Logs of the drawn rows.
    mode_akv
        Logs of the rows at the mode.

    Examples
    --------
    >>> mode_akv = np.log([[[0.9, 0.05, 0.05]]])
    >>> wide_sakv = mode_akv + np.random.default_rng(0).normal(size=(1000, 1, 1, 3)) * [0.0, 2.0, 2.0]
    >>> log_sakv = wide_sakv - np.log(np.exp(wide_sakv).sum(axis=-1, keepdims=True))
    >>> np.exp(log_sakv).mean(axis=0).round(2)
    array([[[0.75, 0.13, 0.13]]])
    >>> centre_rows(log_sakv, mode_akv)
    >>> np.exp(log_sakv).mean(axis=0).round(2)
    array([[[0.9 , 0.05, 0.05]]])
    """
    n_draws, n_annotators, n_labels, _ = log_sakv.shape
    tile = max(1, LOGS_AT_ONCE // (n_draws * n_labels**2))
    for first in range(0, n_annotators, tile):
        some = slice(first, first + tile)
        row_sakv, shift_akv = np.exp(log_sakv[:, some]), np.zeros_like(mode_akv[some])
        for _ in range(SHIFTS):
            by_akv = mode_akv[some] - np.log(row_sakv.mean(axis=0))
            row_sakv *= np.exp(by_akv)
            row_sakv /= row_sakv.sum(axis=-1, keepdims=True)
            shift_akv += by_akv
        log_sakv[:, some] += shift_akv
        log_sakv[:, some] -= np.log(np.exp(log_sakv[:, some]).sum(axis=-1, keepdims=True))


def _centre(densities: Densities, at: Parameters, options: FitOptions) -> tuple[str, LogPosterior, Parameters]:
    """Choose the centre of the Gaussian, and the density whose curvature it has."""
    if densities.rows is not None or densities.log_ratio.between is not None:
        return "logit-mode", densities.log_ratio, at
    if options.coordinates == "jeffreys":
        # Half of the Jacobian: the density by Jeffreys' measure, whose mode lies inside the simplex under any prior.
        half = replace(densities.log_ratio, pseudo_g=densities.alpha_g - 0.5, pseudo_akv=densities.beta_akv - 0.5)
        return "jeffreys", half, mode_in_log_ratios(half, at)
    # On the edge of the simplex, where flat priors let a mode lie, only the mode in log ratios has a curvature.
    coordinates = "logit-mode" if at.least < EDGE else options.coordinates
    target = densities.simplex if coordinates == "paper" else densities.log_ratio
    centre = mode_in_log_ratios(densities.log_ratio, at) if coordinates == "logit-mode" else at
    return coordinates, target, centre


def _stream(ballot: Ballot, seed: int) -> np.random.Generator:
    """Return the random generator of a question: one more question changes no draw of the others."""
    return np.random.default_rng([seed, zlib.crc32(ballot.question.encode()), zlib.crc32(ballot.part.encode())])


def state_draws(
    states: States, weight_sdg: Floats, confusion_sakv: Floats
) -> tuple[Floats, Floats, NDArray[np.int64], Floats]:
    """Return draws as the kernels of the mixed model take them. Axes: **c** code, **k** label, **z** state, **s** draw.

    They are the probability of a vote by the label it was for, relative to the largest, `vote_cks`; the weight of every
    state by domain, `weight_dzs`; and where the states lie: their two labels, `ends_ze`, and how much they have of the
    first, `share_z`.
    """
    n_draws, _, n_labels, _ = confusion_sakv.shape
    vote_cks = np.array(confusion_sakv.transpose(1, 3, 2, 0), order="C").reshape(-1, n_labels, n_draws)
    # Some codes at a time: with very many annotators each step would hold a copy of all draws.
    for first in range(0, len(vote_cks), CODES_AT_ONCE):
        some_cks = vote_cks[first : first + CODES_AT_ONCE]
        # Products of some votes must not vanish in all states at once; so small a share of the largest changes nothing.
        some_cks /= some_cks.max(axis=1, keepdims=True)
        np.maximum(some_cks, 1e-30, out=some_cks)
    weight_sdz = states.weight_of_states(weight_sdg)
    return vote_cks, np.ascontiguousarray(weight_sdz.transpose(1, 2, 0)), states.ends_ze, states.share_z


def summarise_mixed(
    patterns: Patterns,
    states: States,
    weight_sdg: Floats,
    confusion_sakv: Floats,
    *,
    positive: int,
    interval: float = 0.9,
    threads: int | None = None,
    advance: Advance = ignore,
) -> DrawSummary:
    """Compute the same as `summarise` where items may lie between labels, with ambiguity and mass between labels."""
    n_rows, n_labels = patterns.n_rows, patterns.n_labels
    mean_rk, out = np.empty((n_rows, n_labels)), np.empty((5, n_rows))
    rows = (patterns.start_r, patterns.code_v, patterns.clamp_r, patterns.domain_r)
    draws = (*state_draws(states, weight_sdg, confusion_sakv), states.ambiguity_z)
    ranked = (positive if n_labels == 2 else -1, *_tail(interval))

    def run(lo: int, hi: int) -> None:
        state_kernels.mixed_summaries(*rows, *draws, *ranked, lo, hi, mean_rk, *out)

    _over_rows(run, n_rows, threads, advance)
    settle_halves(mean_rk)
    return DrawSummary(patterns.spread(mean_rk), *map(patterns.spread, out))


def _tail(interval: float) -> tuple[float, float]:
    """Return the mass of each tail, and the standard deviations beyond which values are ranked."""
    tail = (1.0 - interval) / 2.0
    return tail, float(-ndtri(min(2.0 * tail, 0.5)))


def _over_rows(run: Callable[[int, int], None], n_rows: int, threads: int | None, advance: Advance) -> None:
    """Call `run` on ranges of rows that cover all, in threads."""
    done = [0]

    def some(first: int, last: int) -> None:
        for block in range(first, last):
            lo, hi = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, n_rows)
            run(lo, hi)
            done[0] += hi - lo
            advance(done[0] / n_rows)

    over_blocks(some, -(-n_rows // BLOCK_ROWS), threads, grain=64)


def summarise(
    patterns: Patterns,
    prevalence_sk: Floats,
    confusion_sakv: Floats,
    *,
    positive: int,
    interval: float = 0.9,
    threads: int | None = None,
    advance: Advance = ignore,
) -> DrawSummary:
    """Compute every item's mean, interval and expected entropy over the draws.

    Parameters
    ----------
    patterns
        The votes.
    prevalence_sk, confusion_sakv
        Draws of the parameters.
    positive
        Of two labels, the one the interval is about; of more, the interval is the likeliest label's.
    interval
        Mass of the central interval.
    threads
        At most this many threads.
    advance
        Called with the share done.
    """
    n_rows, n_labels = patterns.n_rows, patterns.n_labels
    mean_rk, low_r, high_r, entropy_r = np.empty((n_rows, n_labels)), *np.empty((3, n_rows))
    push_cks, base_ks = log_ratios(prevalence_sk, confusion_sakv)
    rows = (patterns.start_r, patterns.code_v, patterns.clamp_r)
    ranked, out = _tail(interval), (low_r, high_r, entropy_r)

    def run(lo: int, hi: int) -> None:
        if n_labels == 2:
            kernels.binary_summaries(*rows, push_cks[:, 0], base_ks[0], *ranked, lo, hi, mean_rk[:, 1], *out)
        else:
            kernels.general_summaries(*rows, push_cks, base_ks, *ranked, lo, hi, mean_rk, *out)

    _over_rows(run, n_rows, threads, advance)
    if n_labels == 2:
        mean_rk[:, 0] = 1.0 - mean_rk[:, 1]
        if positive == 0:
            low_r, high_r = 1.0 - high_r, 1.0 - low_r
    settle_halves(mean_rk)
    return DrawSummary(
        mean_ik=patterns.spread(mean_rk),
        low_i=patterns.spread(low_r),
        high_i=patterns.spread(high_r),
        expected_entropy_i=patterns.spread(entropy_r),
        ambiguity_i=nothing_between(len(patterns.row_i)),
        interior_i=nothing_between(len(patterns.row_i)),
    )


def log_ratios(prevalence_sk: Floats, confusion_sakv: Floats) -> tuple[Floats, Floats]:
    """Compute log likelihood ratios to label 0 by vote code, label and draw, and log ratios of the prevalence."""
    return _ratios(np.log(prevalence_sk), confusion_sakv, np.log)


def ratios_of_logs(drawn: Parameters) -> tuple[Floats, Floats]:
    """Compute the same from draws as logs."""
    return _ratios(drawn.log_weight_g, drawn.log_confusion_akv, np.asarray)


def _ratios(log_sk: Floats, given_sakv: Floats, log: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
    n_draws, n_annotators, n_labels, _ = given_sakv.shape
    push_avks = np.empty((n_annotators, n_labels, n_labels - 1, n_draws))
    # In batches of annotators: the logs of all would take as much memory as the draws.
    for first in range(0, n_annotators, step := max(1, LOGS_AT_ONCE // (n_draws * n_labels**2 or 1))):
        log_sakv = log(given_sakv[:, first : first + step])
        ratio_sakv = log_sakv[:, :, 1:] - log_sakv[:, :, :1]
        push_avks[first : first + step] = ratio_sakv.transpose(1, 3, 2, 0)
    push_cks = push_avks.reshape(-1, n_labels - 1, n_draws)
    return push_cks, np.ascontiguousarray((log_sk[:, 1:] - log_sk[:, :1]).T)


def mixed_posterior_of_rows(patterns: Patterns, mixture: Mixture, confusion_sakv: Floats, row_r: Ints) -> Floats:
    """Compute the same where items may lie between labels."""
    some, states = patterns.take(row_r), mixture.states
    weight_sdz = states.weight_of_states(mixture.weight_sdg)
    domain_r = some.domain_r if some.n_domains > 1 else np.zeros(some.n_rows, dtype=np.int32)
    row_v = np.repeat(np.arange(some.n_rows), np.diff(some.start_r))
    posterior_srk = np.empty((len(weight_sdz), some.n_rows, patterns.n_labels))
    for s, confusion_akv in enumerate(confusion_sakv):
        log_cz = np.log(states.votes_azv(confusion_akv)).transpose(0, 2, 1).reshape(-1, states.n_states)
        log_rz = np.log(weight_sdz[s])[domain_r]
        np.add.at(log_rz, row_v, log_cz[some.code_v])
        posterior_srk[s] = softmax(log_rz, axis=-1) @ states.mix_zk
    clamped = some.clamp_r != UNKNOWN
    posterior_srk[:, clamped] = np.eye(patterns.n_labels)[some.clamp_r[clamped]]
    return posterior_srk


def posterior_of_rows(patterns: Patterns, prevalence_sk: Floats, confusion_sakv: Floats, row_r: Ints) -> Floats:
    """Compute the label probabilities of some rows in every draw: `posterior_srk`."""
    some = patterns.take(row_r)
    n_labels = patterns.n_labels
    log_sck = np.log(confusion_sakv).transpose(0, 1, 3, 2).reshape(len(prevalence_sk), -1, n_labels)
    log_srk = np.repeat(np.log(prevalence_sk)[:, None], some.n_rows, axis=1)
    row_v = np.repeat(np.arange(some.n_rows), np.diff(some.start_r))
    for s, log_ck in enumerate(log_sck):
        np.add.at(log_srk[s], row_v, log_ck[some.code_v])
    posterior_srk: Floats = softmax(log_srk, axis=-1)
    clamped = some.clamp_r != UNKNOWN
    posterior_srk[:, clamped] = np.eye(n_labels)[some.clamp_r[clamped]]
    return posterior_srk


def drawn_posterior(fit: ParameterFit, patterns: Patterns, row_r: Ints) -> Floats:
    """Compute the label probabilities of some rows in every draw of a fit: `posterior_srk`."""
    if fit.mixture is not None:
        return mixed_posterior_of_rows(patterns, fit.mixture, fit.confusion_sakv, row_r)
    return posterior_of_rows(patterns, fit.prevalence_sk, fit.evidence_sakv, row_r)
