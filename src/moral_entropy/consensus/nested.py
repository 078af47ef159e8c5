"""Partial pooling by nested Laplace approximation: annotators' own rows are integrated out, not maximised.

With hundreds of annotators of few votes each, the joint mode of all parameters is biased: each annotator adds a
little overfitting. So the outer parameters (prevalence, common rows, concentrations) are those of the highest
*marginal* posterior, whose log at each value is the maximum over rows minus half the log determinant of their curvature
(Tierney & Kadane 1986; Rue, Martino & Chopin 2009). With two labels there are five outer parameters, few enough for
finite differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.special import gammaln

from moral_entropy.consensus import laplace
from moral_entropy.consensus.common_rows import TYPICAL_VOTES, CommonRows, row_score
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.threads import one_blas_thread
from moral_entropy.votes.table import Floats

STEPS = np.array([0.15, 0.15, 0.3, 0.15, 0.3])
"""Steps of the finite differences: log ratios of prevalence and rows, logs of the concentrations."""

LONGEST = np.array([0.7, 0.7, 1.0, 0.7, 1.0])
"""Largest change of each outer parameter in one Newton step."""

ROUNDS = 15

GAIN = 0.02
"""Nats that a further step must promise, else the search ends."""

FLAT, RIDGE = 6.0, 0.6
"""Curvature below which a direction is measured again, and the step used for that."""

LEAST_CURVATURE = np.array([0.05, 0.2, 0.1, 0.2, 0.1])
"""Least curvature of each outer parameter, where votes and priors leave it flat: standard deviations of 2 to 4."""


@dataclass(frozen=True, eq=False)
class Settled:
    """Annotators' rows at their conditional mode given outer parameters.

    Parameters
    ----------
    at
        Prevalence as given, rows at their conditional mode.
    density
        The log posterior; its prior of the rows follows from the outer parameters.
    lower_pp
        Cholesky factor of the rows' curvature there.
    value
        Log marginal posterior of the outer parameters.
    passes
        Passes over the votes it took.
    """

    at: Parameters
    density: LogPosterior
    lower_pp: Floats = field(repr=False)
    value: float = 0.0
    passes: int = 0


@dataclass(frozen=True, eq=False)
class NestedMode:
    """The marginal mode of the outer parameters, its curvature, and how the rows depend on them.

    Parameters
    ----------
    outer_q
        Log ratio of the prevalence; of each true label's common row the log ratio, and the log concentration.
    curvature_qq
        Negative Hessian of the log marginal posterior, made positive definite where it was flat.
    settled
        The rows there.
    follow_pq
        Derivative of the rows' log ratios by the outer parameters.
    converged
        Whether no further step promised a gain.
    passes
        Passes over the votes, all together.
    """

    outer_q: Floats
    curvature_qq: Floats
    settled: Settled
    follow_pq: Floats
    converged: bool
    passes: int

    @property
    def rows(self) -> CommonRows:
        """The common rows and concentrations."""
        return rows_of(self.outer_q)

    def draw(self, rng: np.random.Generator, draws: int) -> Parameters:
        """Draw outer parameters, and the rows given them."""
        root_qq = np.linalg.cholesky(np.linalg.inv(self.curvature_qq))
        step_qs = root_qq @ rng.standard_normal((draws, len(self.outer_q))).T
        normal_ps = rng.standard_normal((draws, len(self.follow_pq))).T
        own_ps = laplace.DenseGaussian(self.settled.lower_pp, True, float("nan")).step(normal_ps)
        x_p = pack(self.settled.at)
        x_sp = np.empty((draws, len(x_p)))
        x_sp[:, 0] = x_p[0] + step_qs[0]
        x_sp[:, 1:] = x_p[1:] + (self.follow_pq @ step_qs + own_ps).T
        return unpack(x_sp.clip(-600.0, 600.0), 2)


def rows_of(outer_q: Floats) -> CommonRows:
    """Return the common rows of given outer parameters.

    Examples
    --------
    >>> rows_of(np.array([0.0, -1.386, 3.0, 0.847, 3.0])).mean_kv.round(2).tolist()
    [[0.8, 0.2], [0.3, 0.7]]
    """
    one_k = 1.0 / (1.0 + np.exp(-outer_q[[1, 3]]))
    return CommonRows(np.column_stack([1.0 - one_k, one_k]), np.exp(outer_q[[2, 4]]))


@one_blas_thread()
def nested_mode(
    plain: LogPosterior, row_kv: Floats, start: Parameters, *, watch: Callable[[float], None] | None = None
) -> NestedMode:
    """Find the outer parameters of the highest marginal posterior.

    Parameters
    ----------
    plain
        The log posterior of the votes on two labels, with the prior of the prevalence; votes known from elsewhere, by
        annotator, are its only other pseudo-votes.
    row_kv
        Prior of the common rows.
    start
        One matrix for all annotators, to begin from.
    watch
        Called with the share done.
    """
    marginal = _Marginal(plain, row_kv)
    ratio = start.log_weight_g[1] - start.log_weight_g[0]
    rows = start.log_confusion_akv[0, :, 1] - start.log_confusion_akv[0, :, 0]
    outer_q = np.array([ratio, rows[0], np.log(TYPICAL_VOTES), rows[1], np.log(TYPICAL_VOTES)])
    here, converged = marginal.settle(outer_q, None), False
    for n in range(ROUNDS):
        local = marginal.quadratic(outer_q, here)
        step_q = _limited_step(local)
        converged = float(local.slope_q @ step_q) / 2.0 < GAIN
        if watch is not None:
            watch((n + 1) / ROUNDS)
        if converged:
            break
        outer_q, here, moved = _line_search(marginal, outer_q, here, step_q)
        if not moved:
            break
    return NestedMode(outer_q, local.curvature_qq, here, local.follow_pq, converged, marginal.passes)


def _limited_step(local: _Quadratic) -> Floats:
    """Return the Newton step, or where that is too long the best step within the limits (a trust region)."""
    pull_qq = np.diag(1.0 / LONGEST**2)
    for strength in (0.0, *np.geomspace(1e-3, 1e5, 33)):
        step_q = np.linalg.solve(local.curvature_qq + strength * pull_qq, local.slope_q)
        if np.abs(step_q / LONGEST).max() <= 1.0:
            break
    return np.asarray(step_q)


def _line_search(marginal: _Marginal, outer_q: Floats, here: Settled, step_q: Floats) -> tuple[Floats, Settled, bool]:
    """Take the step, or a share of it where the whole step does not gain; return also whether any did."""
    for share in (1.0, 0.5, 0.2, 0.05):
        there = marginal.settle(outer_q + share * step_q, here)
        if there.value > here.value:
            return outer_q + share * step_q, there, True
    return outer_q, here, False


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """Slope and curvature of the marginal at a point, and the derivative of the rows by the outer parameters."""

    slope_q: Floats
    curvature_qq: Floats
    follow_pq: Floats


class _Marginal:
    """The log marginal posterior of the outer parameters."""

    def __init__(self, plain: LogPosterior, row_kv: Floats) -> None:
        self.plain, self.row_kv, self.known_akv = plain, row_kv, plain.pseudo_akv
        self.has_votes_a = plain.votes_c.reshape(len(self.known_akv), -1).sum(axis=1) > 0
        self.passes = 0

    def settle(self, outer_q: Floats, near: Settled | None) -> Settled:
        """Find the rows' conditional mode by Newton steps; a Cholesky factor is reused as long as steps shrink fast."""
        rows = rows_of(outer_q)
        density = replace(self.plain, pseudo_akv=rows.beta_kv + self.known_akv)
        at = self._begin(outer_q, rows, near)
        lower_pp = None if near is None else near.lower_pp
        expected, size = density.expect(at), np.inf
        for _ in range(60):
            slope_p = expected.gradient(at)[1:]
            if lower_pp is None:
                lower_pp = self._factor(density, at)
            step_p = cho_solve((lower_pp, True), slope_p, check_finite=False)
            before, size = size, float(np.abs(step_p).max())
            if size < 1e-5:
                break
            there = _shifted(at, step_p)
            then = density.expect(there)
            self.passes += 1
            if then.log_posterior >= expected.log_posterior:
                at, expected = there, then
                # A factor from elsewhere still serves while steps shrink fast.
                lower_pp = lower_pp if size < 0.3 * before else None
            else:
                # The factor is from too far away, or the step too long: an EM step always gains.
                at = Parameters(at.log_weight_g, expected.maximum().log_confusion_akv)
                expected, lower_pp = density.expect(at), None
        lower_pp = self._factor(density, at)
        value = expected.log_posterior + self._prior(rows) - float(np.log(np.diag(lower_pp)).sum())
        return Settled(at, density, lower_pp, value, self.passes)

    def _begin(self, outer_q: Floats, rows: CommonRows, near: Settled | None) -> Parameters:
        log_k = unpack(np.array([outer_q[0], 0.0, 0.0]), 2).log_weight_g
        if near is None:
            return Parameters(log_k, np.tile(np.log(rows.mean_kv), (len(self.known_akv), 1, 1)))
        return Parameters(log_k, near.at.log_confusion_akv)

    def _factor(self, density: LogPosterior, at: Parameters) -> Floats:
        """Factor the curvature of the rows, the prevalence held fixed."""
        curvature_pp = laplace.lower_information(density, at)[1:, 1:]
        for share in (0.0, 1e-6, 1e-3, 1e-1, 1.0):
            try:
                lifted_pp = curvature_pp + share * np.diag(np.diag(curvature_pp).clip(min=1e-3))
                lower_pp: Floats = cholesky(lifted_pp, lower=True, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            return lower_pp
        return np.diag(np.sqrt(np.diag(curvature_pp).clip(min=1e-3)))

    def _prior(self, rows: CommonRows) -> float:
        """Log density of the outer parameters, and the normaliser of the rows' prior."""
        n_voting, score = int(self.has_votes_a.sum()), 0.0
        for mean_v, c, prior_v in zip(rows.mean_kv, rows.concentration_k, self.row_kv, strict=True):
            score += n_voting * float(gammaln(c) - gammaln(c * mean_v).sum()) + row_score(mean_v, float(c), prior_v)
        return score

    def quadratic(self, outer_q: Floats, here: Settled) -> _Quadratic:
        """Compute slope and curvature by finite differences in every direction and pair of directions."""
        n = len(outer_q)
        ahead, behind = (
            [self.settle(outer_q + sign * STEPS[q] * np.eye(n)[q], here) for q in range(n)] for sign in (1.0, -1.0)
        )
        up_q, down_q = np.array([one.value for one in ahead]), np.array([one.value for one in behind])
        hessian_qq = np.diag((up_q - 2 * here.value + down_q) / STEPS**2)
        for q, r in combinations(range(n), 2):
            step_q = STEPS[q] * np.eye(n)[q] + STEPS[r] * np.eye(n)[r]
            both = self.settle(outer_q + step_q, here).value + self.settle(outer_q - step_q, here).value
            alone = up_q[q] + up_q[r] + down_q[q] + down_q[r] - 2 * here.value
            hessian_qq[q, r] = hessian_qq[r, q] = (both - alone) / (2 * STEPS[q] * STEPS[r])
        follow_pq = np.column_stack(
            [(pack(one.at) - pack(other.at))[1:] / (2 * h) for one, other, h in zip(ahead, behind, STEPS, strict=True)]
        )
        slope_q, curvature_qq = self._along_ridges(outer_q, here, (up_q - down_q) / (2 * STEPS), -hessian_qq)
        return _Quadratic(slope_q, _positive_definite(curvature_qq), follow_pq)

    def _along_ridges(
        self, outer_q: Floats, here: Settled, slope_q: Floats, curvature_qq: Floats
    ) -> tuple[Floats, Floats]:
        """Measure flat directions again with steps about as long as their standard deviation."""
        value_q, vector_qq = np.linalg.eigh(curvature_qq)
        for q in np.flatnonzero(value_q < FLAT):
            along_q = vector_qq[:, q]
            up, down = (self.settle(outer_q + sign * RIDGE * along_q, here).value for sign in (1.0, -1.0))
            value_q[q] = -(up - 2 * here.value + down) / RIDGE**2
            slope_q = slope_q + along_q * ((up - down) / (2 * RIDGE) - along_q @ slope_q)
        return slope_q, (vector_qq * value_q) @ vector_qq.T


def _shifted(at: Parameters, step_p: Floats) -> Parameters:
    """Move the rows' log ratios; the prevalence stays."""
    moved = unpack(pack(at) + np.concatenate([[0.0], step_p.clip(-4.0, 4.0)]), 2)
    return Parameters(at.log_weight_g, moved.log_confusion_akv)


def _positive_definite(curvature_qq: Floats) -> Floats:
    """Raise every eigenvalue to a least curvature, in units of `LEAST_CURVATURE`."""
    scale_q = 1.0 / np.sqrt(LEAST_CURVATURE)
    value_q, vector_qq = np.linalg.eigh(curvature_qq * np.outer(scale_q, scale_q))
    lifted_qq = (vector_qq * value_q.clip(min=1.0)) @ vector_qq.T
    return np.asarray(lifted_qq / np.outer(scale_q, scale_q))
