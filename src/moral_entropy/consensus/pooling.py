"""Pooling: what annotators have in common, learnt from the votes.

Full pooling gives all annotators one confusion matrix. Partial pooling lets their rows vary around common ones:
row k of every annotator ~ Dir(c_k m_k), where m_k, the common row, and c_k, how closely annotators keep to it, are
learnt by maximum marginal likelihood. The E-step is the Laplace approximation at the mode, so doubt about labels
counts; the common rows keep their own uncertainty in the draws, the concentrations do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, polygamma

from moral_entropy.consensus import laplace
from moral_entropy.consensus.climb import Summit, climb
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import Mode, find_mode
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.votes.table import Floats

POOLING = ("none", "partial", "full")

TYPICAL_VOTES = 20.0
"""Prior median of the concentrations: annotators keep to the common row as if each had 20 votes in it."""

ROUNDS = 60
"""Most rounds of learning the common rows."""

SETTLED = 2e-3
"""Change of every common probability, and of every log concentration, at which learning ends."""

EXPECTATION_DRAWS = 64
"""Draws, half of them mirrored, from which the expected log probabilities of a round are taken."""


@dataclass(frozen=True, eq=False)
class CommonRows:
    """The rows annotators have in common. Axes: true **k**, **v**oted.

    Parameters
    ----------
    mean_kv
        The common rows.
    concentration_k
        How many votes each is worth in an annotator's own row.
    """

    mean_kv: Floats
    concentration_k: Floats

    @property
    def beta_kv(self) -> Floats:
        """The Dirichlet parameters of every annotator's rows."""
        return self.mean_kv * self.concentration_k[:, None]

    def far_from(self, other: CommonRows) -> float:
        """Give the largest change in probability or log concentration."""
        mean = np.abs(self.mean_kv - other.mean_kv).max()
        return float(max(mean, np.abs(np.log(self.concentration_k / other.concentration_k)).max()))


@dataclass(frozen=True, eq=False)
class Pooled:
    """The end of learning: the common rows, and the mode under them."""

    rows: CommonRows
    log_posterior: LogPosterior
    mode: Mode


def pool_fully(patterns: Patterns) -> Patterns:
    """Give the same votes as if one annotator had cast them all.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=20, n_annotators=4, votes_per_item=3).votes
    >>> pooled = pool_fully(collapse(votes.ballots[0]))
    >>> pooled.n_annotators, pooled.code_v.max() < 2
    (1, True)
    """
    n_labels = patterns.n_labels
    label_v = (patterns.code_v % n_labels).astype(np.int64)
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    order_v = np.lexsort((label_v, row_v))
    return replace(patterns, code_v=label_v[order_v].astype(patterns.code_v.dtype), n_annotators=1)


def learn_rows(
    patterns: Patterns,
    alpha_k: Floats,
    row_kv: Floats,
    known_akv: Floats,
    *,
    threads: int | None = None,
    tolerance: float,
    max_passes: int,
    watch: Callable[[float], None] | None = None,
) -> Pooled:
    """Learn the rows that annotators have in common, and find the mode under them.

    Parameters
    ----------
    patterns
        The votes.
    alpha_k
        Prior of the prevalence.
    row_kv
        Dirichlet prior of the common rows: what is believed of a typical annotator.
    known_akv
        Votes known from elsewhere, by annotator; they count as votes.
    threads, tolerance, max_passes
        As in `find_mode`.
    watch
        Told the share done.
    """

    def under(rows: CommonRows) -> LogPosterior:
        return LogPosterior(patterns, alpha_k, rows.beta_kv + known_akv, threads)

    rows = _first_rows(patterns, alpha_k, row_kv, threads, max_passes)
    log_posterior = under(rows)
    mode = find_mode(log_posterior, tolerance=1e-3, max_passes=max_passes)
    summit, passes = mode.summit, mode.passes
    for n in range(ROUNDS):
        before, rows = rows, _next_rows(log_posterior, summit.at, row_kv)
        log_posterior = under(rows)
        summit = climb(log_posterior, summit.at, tolerance=1e-3, max_passes=max_passes)
        passes += summit.passes
        if watch is not None:
            watch((n + 1) / ROUNDS)
        if rows.far_from(before) < SETTLED:
            break
    summit = climb(log_posterior, summit.at, tolerance=tolerance, max_passes=max_passes)
    return Pooled(rows, log_posterior, _ended(mode, summit, passes + summit.passes))


def _ended(mode: Mode, summit: Summit, passes: int) -> Mode:
    return replace(mode, summit=summit, passes=passes)


def _first_rows(
    patterns: Patterns, alpha_k: Floats, row_kv: Floats, threads: int | None, max_passes: int
) -> CommonRows:
    """Begin from full pooling: the one matrix that all annotators would share."""
    shared = LogPosterior(pool_fully(patterns), alpha_k, row_kv[None], threads)
    mode = find_mode(shared, tolerance=1e-3, max_passes=max_passes)
    return CommonRows(mode.summit.at.confusion_akv[0], np.full(len(row_kv), TYPICAL_VOTES))


def _next_rows(log_posterior: LogPosterior, at: Parameters, row_kv: Floats) -> CommonRows:
    log_akv = _expected_logs(log_posterior, at)
    # Annotators nobody heard on a label say nothing about the common row, but their prior copies would.
    heard_a = log_posterior.votes_c.reshape(len(log_akv), -1).sum(axis=1) > 0
    n_heard = int(heard_a.sum())
    sum_kv = log_akv[heard_a].sum(axis=0)
    found = [_best_row(sum_v, n_heard, prior_v) for sum_v, prior_v in zip(sum_kv, row_kv, strict=True)]
    return CommonRows(np.array([mean_v for mean_v, _ in found]), np.array([c for _, c in found]))


def _expected_logs(log_posterior: LogPosterior, at: Parameters) -> Floats:
    """Expected log probabilities of every row under the Gaussian at the mode: `log_akv`."""
    dense = log_posterior.n_parameters <= laplace.DENSE
    gaussian: laplace.Gaussian
    gaussian = laplace.dense_gaussian(log_posterior, at) if dense else laplace.krylov_gaussian(log_posterior, at)
    half_ps = np.random.default_rng(0).standard_normal((log_posterior.n_parameters, EXPECTATION_DRAWS // 2))
    step_ps = gaussian.step(half_ps)
    x_sp = pack(at) + np.concatenate([step_ps, -step_ps], axis=1).T
    drawn = unpack(x_sp.clip(-600.0, 600.0), len(at.log_prevalence_k))
    return np.asarray(drawn.log_confusion_akv.mean(axis=0))


def _best_row(sum_v: Floats, n_annotators: int, prior_v: Floats) -> tuple[Floats, float]:
    """Give the common row and concentration that make the expected log probabilities likeliest."""

    def loss(x: Floats) -> tuple[float, Floats]:
        mean_v, c = _unpacked(x)
        beta_v = c * mean_v
        value = beta_v @ sum_v - n_annotators * (gammaln(beta_v).sum() - gammaln(c)) + prior_v @ np.log(mean_v)
        value += np.log(c) - 2.0 * np.log(TYPICAL_VOTES + c)
        by_beta_v = sum_v - n_annotators * (digamma(beta_v) - digamma(c))
        by_mean_v = c * by_beta_v + prior_v / mean_v
        by_ratio = (mean_v * (by_mean_v - mean_v @ by_mean_v))[1:]
        by_log_c = beta_v @ by_beta_v + 1.0 - 2.0 * c / (TYPICAL_VOTES + c)
        return -float(value), -np.append(by_ratio, by_log_c)

    guess_v = np.exp(sum_v / max(n_annotators, 1)) + 1e-9
    start = np.append(np.log(guess_v[1:] / guess_v[0]), np.log(TYPICAL_VOTES))
    bounds = [(-12.0, 12.0)] * (len(sum_v) - 1) + [(np.log(0.5), np.log(5e3))]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return _unpacked(found.x)


def _unpacked(x: Floats) -> tuple[Floats, float]:
    ratios = np.append(0.0, x[:-1])
    share_v = np.exp(ratios - ratios.max())
    return share_v / share_v.sum(), float(np.exp(x[-1]))


def common_row_steps(
    gaussian: laplace.DenseGaussian, rows: CommonRows, n_annotators: int, row_kv: Floats, normal_qs: Floats
) -> Floats:
    """Turn standard normal numbers into what doubt about the common rows adds to every annotator's: `step_ps`.

    The common rows' log ratios have a Gaussian posterior of their own; all rows lean with them.

    Parameters
    ----------
    gaussian
        Of the parameters, with the common rows known.
    rows
        The common rows.
    n_annotators
        How many annotators share them.
    row_kv
        Prior of the common rows.
    normal_qs
        K (K - 1) standard normal numbers a draw.
    """
    lean_pq, own_qq = _leaning(rows, n_annotators, row_kv)
    follow_pq = cho_solve((gaussian.lower_pp, True), lean_pq, check_finite=False)
    precision_qq = own_qq - lean_pq.T @ follow_pq
    value_q, vector_qq = np.linalg.eigh(precision_qq)
    # No more doubt than the prior of the common rows allows.
    least = np.linalg.eigvalsh(_row_information(row_kv / row_kv.sum(axis=1, keepdims=True), row_kv.sum(axis=1)))[0]
    root_qq = vector_qq / np.sqrt(value_q.clip(min=least))
    return np.asarray(follow_pq @ (root_qq @ normal_qs))


def _leaning(rows: CommonRows, n_annotators: int, row_kv: Floats) -> tuple[Floats, Floats]:
    """How every coordinate's gradient moves with the common log ratios, and those ratios' own information."""
    n_labels = len(row_kv)
    n_other = n_labels - 1
    size = n_labels * n_other
    lean_qq, own_qq = np.zeros((size, size)), np.zeros((size, size))
    for k, (mean_v, c) in enumerate(zip(rows.mean_kv, rows.concentration_k, strict=True)):
        at = slice(k * n_other, (k + 1) * n_other)
        move_vu = (np.diag(mean_v) - np.outer(mean_v, mean_v))[:, 1:]
        lean_qq[at, at] = c * move_vu[1:]
        own_qq[at, at] = n_annotators * c**2 * move_vu.T @ (polygamma(1, c * mean_v)[:, None] * move_vu)
    own_qq += _row_information(rows.mean_kv, row_kv.sum(axis=1))
    head = np.zeros((n_other, size))
    return np.concatenate([head, np.tile(lean_qq, (n_annotators, 1))]), own_qq


def _row_information(mean_kv: Floats, total_k: Floats) -> Floats:
    """Information of a Dirichlet prior about its own log ratios, block by block."""
    n_other = mean_kv.shape[1] - 1
    own_qq = np.zeros((len(mean_kv) * n_other,) * 2)
    for k, (mean_v, total) in enumerate(zip(mean_kv, total_k, strict=True)):
        at = slice(k * n_other, (k + 1) * n_other)
        own_qq[at, at] = total * (np.diag(mean_v) - np.outer(mean_v, mean_v))[1:, 1:]
    return own_qq
