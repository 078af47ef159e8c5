"""Curvature at the mode → a Gaussian in log-ratio coordinates → draws of the parameters.

The Hessian is exact, by Louis' identity: the information with all labels known, minus the covariance of that score
given the votes. It is a dense matrix for up to a few thousand parameters. For more there are exact blocks per annotator
and a Krylov space for their coupling, so that no matrix of that size is ever held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh, solve_triangular

from moral_entropy.consensus.components import component_shares, vote_scores
from moral_entropy.consensus.model import Expectation, LogPosterior, Parameters
from moral_entropy.votes.table import Floats

DENSE = 6_000
"""Largest number of parameters for which the curvature is held as a matrix."""

KRYLOV = 128
"""Dimensions of the Krylov space beyond `DENSE` parameters; each costs a pass over the votes."""

KRYLOV_VOTES = 5e8
"""Upper limit of votes × dimensions of the Krylov space."""

FLAT = 1e-9
"""Share of the complete-data information below which a direction counts as flat: no more than rounding."""

LEAST_INFORMATION = 1e-3
"""Share of the complete-data information assumed in directions the votes leave flat."""


class Gaussian(Protocol):
    """Turns standard normal numbers into steps away from the mode."""

    @property
    def method(self) -> str:
        """How the curvature is held."""
        ...

    @property
    def positive_definite(self) -> bool:
        """Whether it is that of a maximum."""
        ...

    @property
    def smallest(self) -> float:
        """Share of information left in the worst direction."""
        ...

    def step(self, normal_ps: Floats) -> Floats:
        """Return one step per column of standard normal numbers."""
        ...


def complete_blocks(
    log_posterior: LogPosterior, at: Parameters, expected: Expectation | None = None
) -> tuple[Floats, Floats]:
    """Compute the information of prevalence and of each confusion row with all labels known, pseudo-counts included."""
    expected = expected or log_posterior.expect(at)
    prevalence = _multinomial(expected.items_k.sum(axis=-1), at.prevalence_k)
    confusion = _multinomial(expected.votes_akv.sum(axis=-1), at.confusion_akv)
    return prevalence, confusion


def _multinomial(total: Floats, shares: Floats) -> Floats:
    inner = shares[..., 1:]
    outer = inner[..., :, None] * inner[..., None, :]
    eye = np.eye(inner.shape[-1])
    return np.asarray(total)[..., None, None] * (inner[..., :, None] * eye - outer)


def information(log_posterior: LogPosterior, at: Parameters) -> Floats:
    """Compute the negative Hessian of the log posterior in log-ratio coordinates: `curvature_pp`, symmetric."""
    lower_pp = np.tril(lower_information(log_posterior, at))
    return lower_pp + np.tril(lower_pp, -1).T


def lower_information(log_posterior: LogPosterior, at: Parameters, expected: Expectation | None = None) -> Floats:
    """Compute the same, valid only on and below the diagonal, which is all that a Cholesky factorisation reads."""
    curvature_pp = _block_diagonal(*complete_blocks(log_posterior, at, expected))
    log_posterior.take_missing(at, curvature_pp)
    return curvature_pp


def _block_diagonal(prevalence: Floats, confusion: Floats) -> Floats:
    """Put the blocks of the weights, one per domain, and of all rows along the diagonal of one matrix."""
    sizes = [blocks.size // blocks.shape[-1] for blocks in (prevalence, confusion)]
    whole, begin = np.zeros((sum(sizes),) * 2), 0
    for blocks, size in zip((prevalence, confusion), sizes, strict=True):
        n_other = blocks.shape[-1]
        first = begin + np.arange(0, size, n_other)[:, None, None]
        down, across = np.indices((n_other, n_other))
        whole[first + down, first + across] = blocks.reshape(-1, n_other, n_other)
        begin += size
    return whole


@dataclass(frozen=True, eq=False)
class DenseGaussian:
    """A Gaussian given by the Cholesky factor of its precision, `lower_pp` (or by a square root of its inverse)."""

    lower_pp: Floats
    positive_definite: bool
    smallest: float
    method: str = "dense"

    def step(self, normal_ps: Floats) -> Floats:
        """Solve with the factor: steps with the curvature's inverse as covariance."""
        if self.positive_definite:
            step_ps: Floats = solve_triangular(self.lower_pp, normal_ps, lower=True, trans="T", check_finite=False)
            return step_ps
        return self.lower_pp @ normal_ps


def dense_gaussian(log_posterior: LogPosterior, at: Parameters) -> DenseGaussian:
    """Factor the curvature; where it is not that of a maximum, assume a little information in flat directions."""
    curvature_pp = information(log_posterior, at)
    scale_p = 1.0 / np.sqrt(_complete_diagonal(log_posterior, at))
    try:
        lower_pp = cholesky(curvature_pp, lower=True, check_finite=False)
        smallest = _smallest_share(lower_pp, scale_p)
    except np.linalg.LinAlgError:
        smallest = 0.0
    if smallest > FLAT:
        return DenseGaussian(lower_pp, positive_definite=True, smallest=smallest)
    value_q, vector_pq = eigh(curvature_pp * np.outer(scale_p, scale_p))
    # The symmetric root: the sign and the choice of tied eigenvectors depend on the processor, this root does not.
    root_pp = scale_p[:, None] * (vector_pq / np.sqrt(value_q.clip(min=LEAST_INFORMATION))) @ vector_pq.T
    return DenseGaussian(root_pp, positive_definite=False, smallest=float(value_q[0]))


def _complete_diagonal(log_posterior: LogPosterior, at: Parameters) -> Floats:
    prevalence, confusion = complete_blocks(log_posterior, at)
    # On the edge of the simplex a probability rounds to 0 or 1, and its information to nothing.
    diagonals = [np.diagonal(blocks, axis1=-2, axis2=-1).ravel() for blocks in (prevalence, confusion)]
    return np.concatenate(diagonals).clip(min=1e-12)


def _smallest_share(lower_pp: Floats, scale_p: Floats, iterations: int = 30) -> float:
    # Inverse iteration on the curvature scaled to complete-data information of 1.
    vector_p = np.ones(len(scale_p)) / np.sqrt(len(scale_p))
    share = 1.0
    for _ in range(iterations):
        half_p = solve_triangular(lower_pp, vector_p / scale_p, lower=True, check_finite=False)
        next_p = solve_triangular(lower_pp, half_p, lower=True, trans="T", check_finite=False) / scale_p
        before, share = share, 1.0 / float(np.linalg.norm(next_p))
        vector_p = next_p * share
        if abs(share - before) < 1e-3 * share:
            break
    return share


def newton_step(
    log_posterior: LogPosterior, at: Parameters, gradient_p: Floats, expected: Expectation | None = None
) -> Floats | None:
    """Compute the Newton step, or None where the curvature is not that of a maximum."""
    try:
        curvature_pp = lower_information(log_posterior, at, expected)
        factor = cho_factor(curvature_pp, lower=True, check_finite=False, overwrite_a=True)
    except np.linalg.LinAlgError:
        return None
    step_p: Floats = cho_solve(factor, gradient_p, check_finite=False)
    return step_p


def escape_direction(log_posterior: LogPosterior, at: Parameters) -> Floats | None:
    """Find a direction in which a stationary point is a minimum, or None at a maximum."""
    curvature_pp = information(log_posterior, at)
    scale_p = 1.0 / np.sqrt(_complete_diagonal(log_posterior, at))
    value_q, vector_pq = eigh(curvature_pp * np.outer(scale_p, scale_p))
    if value_q[0] >= -1e-9:
        return None
    direction_p = scale_p * _one_of(vector_pq[:, value_q < value_q[0] + 1e-6])
    # The sign is fixed by the first largest entry, so that the same votes always leave a saddle on the same side.
    size_p = np.abs(direction_p)
    sign = np.sign(direction_p[(size_p >= size_p.max() * (1.0 - 1e-6)).argmax()])
    return np.asarray(direction_p * sign)


def _one_of(tied_pq: Floats) -> Floats:
    """Choose one of several directions of equal curvature; it does not depend on the basis that LAPACK returned."""
    if tied_pq.shape[1] == 1:
        return tied_pq[:, 0]
    mixed_p: Floats = tied_pq @ (tied_pq.T @ (1.0 / np.arange(1.0, len(tied_pq) + 1.0)))
    return mixed_p / np.linalg.norm(mixed_p)


@dataclass(frozen=True, eq=False)
class KrylovGaussian:
    """Blocks per annotator, and the coupling between them in a Krylov space.

    With the block-diagonal curvature L L' the whole is L (I - C) L', and I - C is taken as the identity outside
    the space spanned by `basis_pm`, in which its inverse square root is `root_mm`.
    """

    blocks: tuple[Floats, Floats]
    basis_pm: Floats
    root_mm: Floats
    positive_definite: bool
    smallest: float
    method: str = "krylov"

    def step(self, normal_ps: Floats) -> Floats:
        """Correct the numbers inside the space, then solve with the blocks."""
        inside_ms = self.basis_pm.T @ normal_ps
        coupled_ps = normal_ps + self.basis_pm @ (self.root_mm @ inside_ms - inside_ms)
        return _solve_blocks(self.blocks, coupled_ps, transposed=True)


def krylov_gaussian(log_posterior: LogPosterior, at: Parameters, seed: int = 0) -> KrylovGaussian:
    """Factor the blocks, and resolve their coupling by Lanczos iteration with full reorthogonalisation."""
    operator = _Coupling(log_posterior, at)
    n = log_posterior.n_parameters
    m = int(min(KRYLOV, n, max(16, KRYLOV_VOTES / max(log_posterior.n_votes, 1))))
    basis_pm, tri = np.zeros((n, m)), np.zeros((m, m))
    vector_p = np.random.default_rng(seed).standard_normal(n)
    vector_p /= np.linalg.norm(vector_p)
    size = m
    for j in range(m):
        basis_pm[:, j] = vector_p
        image_p = operator(vector_p)
        tri[j, j] = vector_p @ image_p
        for _ in range(2):
            image_p -= basis_pm[:, : j + 1] @ (basis_pm[:, : j + 1].T @ image_p)
        norm = float(np.linalg.norm(image_p))
        if j + 1 == m or norm < 1e-10:
            size = j + 1
            break
        tri[j, j + 1] = tri[j + 1, j] = norm
        vector_p = image_p / norm
    value_q, vector_mq = eigh(tri[:size, :size])
    root_mm = (vector_mq / np.sqrt(value_q.clip(min=LEAST_INFORMATION))) @ vector_mq.T
    positive = bool(value_q[0] > 0)
    return KrylovGaussian(operator.blocks, basis_pm[:, :size], root_mm, positive, float(value_q[0]))


class _Coupling:
    """The curvature between annotators, scaled so that each annotator's own block is the identity."""

    def __init__(self, log_posterior: LogPosterior, at: Parameters) -> None:
        self.log_posterior, self.at = log_posterior, at
        self.states, self.n_labels = log_posterior.states, log_posterior.patterns.n_labels
        self.covariance = log_posterior.covariance(at)
        prevalence, confusion = complete_blocks(log_posterior, at)
        self.complete = prevalence.reshape(-1, *prevalence.shape[-2:]), confusion
        if not self.states.corners_only:
            self.share_czk = component_shares(self.states, at.confusion_akv)
            self.component_att = log_posterior.unknown_component(at, vote_scores(self.states, at.confusion_akv))
        self.blocks = self._own_blocks()

    def _own_blocks(self) -> tuple[Floats, Floats]:
        """Cholesky factors of the weights' blocks, one per domain, and of every annotator's block."""
        n_other = self.n_labels - 1
        prevalence, confusion = self.complete
        own_app = np.zeros((len(confusion), self.n_labels * n_other, self.n_labels * n_other))
        for k in range(self.n_labels):
            rows = slice(k * n_other, (k + 1) * n_other)
            own_app[:, rows, rows] = confusion[:, k]
        items_dzz = self.covariance.take_own(own_app)
        if not self.states.corners_only:
            own_app -= self.component_att
        add = self.states.add_groups
        items_dgg = np.swapaxes(add(np.swapaxes(add(items_dzz), 1, 2)), 1, 2)
        lower_dgg = _safe_cholesky(prevalence - items_dgg[:, 1:, 1:], prevalence)
        return lower_dgg, _safe_cholesky(own_app, confusion)

    def __call__(self, vector_p: Floats) -> Floats:
        """Multiply with I - C."""
        step_p = _solve_blocks(self.blocks, vector_p[:, None], transposed=True)[:, 0]
        return _solve_blocks(self.blocks, self.curvature(step_p)[:, None], transposed=False)[:, 0]

    def curvature(self, vector_p: Floats) -> Floats:
        """Multiply with the whole curvature, in one pass over the votes."""
        prevalence, confusion = self.complete
        n_weights, n_labels = prevalence.size // prevalence.shape[-1], self.n_labels
        u_dg = vector_p[:n_weights].reshape(prevalence.shape[:-1])
        u_akv = vector_p[n_weights:].reshape(-1, n_labels, n_labels - 1)
        complete_dg = np.einsum("dgh,dh->dg", prevalence, u_dg)
        complete_akv = np.einsum("akvw,akw->akv", confusion, u_akv)
        full_akv = np.concatenate([np.zeros((*u_akv.shape[:2], 1)), u_akv], axis=-1)
        gain_akv = full_akv - (self.at.confusion_akv * full_akv).sum(axis=-1, keepdims=True)
        base_dz = np.concatenate([np.zeros((len(u_dg), 1)), u_dg], axis=1)[:, self.states.group_z]
        sum_ck, sum_dz = self._product(gain_akv.transpose(0, 2, 1).reshape(-1, n_labels), base_dz)
        sum_akv = sum_ck.reshape(-1, n_labels, n_labels).transpose(0, 2, 1)
        missing_akv = (sum_akv - self.at.confusion_akv * sum_akv.sum(axis=-1, keepdims=True))[..., 1:]
        if not self.states.corners_only:
            own_at = np.einsum("atu,au->at", self.component_att, u_akv.reshape(len(u_akv), -1))
            missing_akv = missing_akv + own_at.reshape(u_akv.shape)
        missing_dg = self.states.add_groups(sum_dz)[:, 1:]
        return np.concatenate([(complete_dg - missing_dg).ravel(), (complete_akv - missing_akv).ravel()])

    def _product(self, gain_ck: Floats, base_dz: Floats) -> tuple[Floats, Floats]:
        """Multiply the covariance over states with a vector, given and returned by component of each vote."""
        if self.states.corners_only:
            return self.covariance.product(np.ascontiguousarray(gain_ck), base_dz)
        sum_cz, sum_dz = self.covariance.product(np.einsum("czk,ck->cz", self.share_czk, gain_ck), base_dz)
        return np.einsum("czk,cz->ck", self.share_czk, sum_cz), sum_dz


def _safe_cholesky(blocks: Floats, complete: Floats) -> Floats:
    """Factor each block, assuming at least a little information in flat directions."""
    value, vector = np.linalg.eigh(blocks)
    least = LEAST_INFORMATION * np.linalg.eigvalsh(complete).max(axis=-1)
    least = least.max(axis=-1) if least.ndim > value.ndim - 1 else least
    value = np.maximum(value, np.asarray(least)[..., None])
    return np.linalg.cholesky((vector * value[..., None, :]) @ np.swapaxes(vector, -1, -2))


def _solve_blocks(blocks: tuple[Floats, Floats], right_ps: Floats, *, transposed: bool) -> Floats:
    prevalence, confusion = blocks
    if transposed:
        prevalence, confusion = np.swapaxes(prevalence, -1, -2), np.swapaxes(confusion, -1, -2)
    n_weights, n_columns = prevalence.size // prevalence.shape[-1], right_ps.shape[-1]
    head = np.linalg.solve(prevalence, right_ps[:n_weights].reshape(len(prevalence), -1, n_columns))
    tail = np.linalg.solve(confusion, right_ps[n_weights:].reshape(len(confusion), -1, n_columns))
    return np.concatenate([head.reshape(-1, n_columns), tail.reshape(-1, n_columns)])
