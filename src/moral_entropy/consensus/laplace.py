"""Curvature at the mode → a Gaussian in log-ratio coordinates → draws of the parameters.

The Hessian is exact, by Louis' identity: the information with all labels known, minus the covariance of that score
given the votes. It is a dense matrix for up to a few thousand parameters. For more there are exact blocks per
annotator, or per confusion row of many labels, and a Krylov space for their coupling: no matrix of that size is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh, solve_triangular

from moral_entropy.consensus.components import component_shares, vote_scores
from moral_entropy.consensus.model import Expectation, LogPosterior, Parameters
from moral_entropy.votes.table import Floats

DENSE = 6_000
"""Largest number of parameters for which the curvature is held as a matrix."""

DENSE_CELLS = 5e9
"""Most updates of that matrix in a pass over the votes: of many labels a few votes on an item make very many."""

KRYLOV = 128
"""Dimensions of the Krylov space beyond `DENSE` parameters; each costs a pass over the votes."""

KRYLOV_VOTES = 5e8
"""Upper limit of votes × dimensions of the Krylov space."""

KRYLOV_NUMBERS = 1 << 27
"""Upper limit of parameters × dimensions of the Krylov space: its basis takes at most a gigabyte."""

ANNOTATOR_BLOCK = 90
"""Most parameters of an annotator for one block to hold all of them, those of ten labels; above, each row has one."""

BLOCK_NUMBERS = 1 << 26
"""Most numbers in all annotators' blocks; above, each row has one."""

FLAT = 1e-9
"""Share of the complete-data information below which a direction counts as flat: no more than rounding."""

LEAST_INFORMATION = 1e-3
"""Share of the complete-data information assumed in directions the votes leave flat."""


DAMPING, LEAST_DAMPING = 0.01, 1e-6
"""Share of the complete-data information by which Newton steps are damped: the first time, and at least."""


LONGEST_STEP = 10.0
"""Damped Newton steps longer than this in any log ratio are not tried: they lead over the edge of the simplex."""


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
    """Compute the information of weights and of each confusion row with all labels known, pseudo-counts included."""
    expected = expected or log_posterior.expect(at)
    weights = _multinomial(expected.items_g.sum(axis=-1), at.weight_g)
    confusion = _multinomial(expected.votes_akv.sum(axis=-1), at.confusion_akv)
    return weights, confusion


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


def _block_diagonal(weights: Floats, confusion: Floats) -> Floats:
    """Put the blocks of the weights, one per domain, and of all rows along the diagonal of one matrix."""
    sizes = [blocks.size // blocks.shape[-1] for blocks in (weights, confusion)]
    whole, begin = np.zeros((sum(sizes),) * 2), 0
    for blocks, size in zip((weights, confusion), sizes, strict=True):
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


def gaussian_at(log_posterior: LogPosterior, at: Parameters) -> Gaussian:
    """Return the Gaussian with the curvature at some parameters, held as is affordable."""
    dense = log_posterior.n_parameters <= DENSE and log_posterior.n_cells <= DENSE_CELLS
    return dense_gaussian(log_posterior, at) if dense else krylov_gaussian(log_posterior, at)


def _complete_diagonal(log_posterior: LogPosterior, at: Parameters) -> Floats:
    weights, confusion = complete_blocks(log_posterior, at)
    # On the edge of the simplex a probability rounds to 0 or 1, and its information to nothing.
    diagonals = [np.diagonal(blocks, axis1=-2, axis2=-1).ravel() for blocks in (weights, confusion)]
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


def damped_newton_steps(
    log_posterior: LogPosterior, at: Parameters, gradient_p: Floats, expected: Expectation, damping: float
) -> Iterator[tuple[float, Floats]]:
    """Yield ever more damped Newton steps, each with its damping: the share of complete-data information added.

    Undamped it is Newton's step; damped by the whole of that information it is half an EM step, which always gains.
    """
    for used, factor in damped_factors(log_posterior, at, expected, max(damping, LEAST_DAMPING)):
        step_p = cho_solve(factor, gradient_p, check_finite=False)
        if np.abs(step_p).max() < LONGEST_STEP:
            yield used, step_p


Factor = tuple[Floats, bool]
"""A Cholesky factor, as SciPy returns it."""


def damped_factors(
    log_posterior: LogPosterior, at: Parameters, expected: Expectation, damping: float
) -> Iterator[tuple[float, Factor]]:
    """Yield the factors of ever more damped curvature, each with its damping, where it is that of a maximum."""
    complete_pp = _block_diagonal(*complete_blocks(log_posterior, at, expected))
    curvature_pp = complete_pp.copy()
    log_posterior.take_missing(at, curvature_pp)
    while damping <= 1.0:
        damped_pp = curvature_pp + damping * complete_pp
        try:
            factor = cho_factor(damped_pp, lower=True, check_finite=False, overwrite_a=True)
        except np.linalg.LinAlgError:
            pass
        else:
            yield damping, factor
        damping = 4.0 * damping if damping > 0.0 else DAMPING


@dataclass(eq=False)
class KeptCurvature:
    """The factor of the curvature at some earlier parameters; None before there is one, and where it led astray.

    Steps with it cost one pass over the votes, while a Newton step costs many: near a mode, and from one density to one
    much like it, curvature hardly changes.
    """

    factor: Factor | None = None

    def step(self, gradient_p: Floats) -> Floats | None:
        """Compute the step with this curvature; None without one, and where it would be too long."""
        if self.factor is None or len(self.factor[0]) != len(gradient_p):
            return None
        step_p: Floats = cho_solve(self.factor, gradient_p, check_finite=False)
        return step_p if np.abs(step_p).max() < LONGEST_STEP else None


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


class Blocks(Protocol):
    """A factor L of the curvature's blocks L L', those between the blocks left out."""

    def solve(self, right_ps: Floats, *, transposed: bool) -> Floats:
        """Solve with the factor, or with its transpose, for every column."""
        ...


@dataclass(frozen=True, eq=False)
class AnnotatorBlocks:
    """One block for the weights of every domain and one for every annotator, as inverses of their Cholesky factors."""

    inverse_dgg: Floats
    inverse_app: Floats

    def solve(self, right_ps: Floats, *, transposed: bool) -> Floats:
        """Multiply with the inverses."""
        n_weights = self.inverse_dgg.size // self.inverse_dgg.shape[-1]
        several = ((self.inverse_dgg, right_ps[:n_weights]), (self.inverse_app, right_ps[n_weights:]))
        return np.concatenate([_times_blocks(inverse, some, transposed) for inverse, some in several])


def _times_blocks(inverse_bpp: Floats, right_ps: Floats, transposed: bool) -> Floats:
    """Multiply consecutive rows with one matrix after the other."""
    inverse_bpp = np.swapaxes(inverse_bpp, -1, -2) if transposed else inverse_bpp
    product_bps = inverse_bpp @ right_ps.reshape(len(inverse_bpp), -1, right_ps.shape[-1])
    return product_bps.reshape(right_ps.shape)


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """One block for the weights of every domain and one for every confusion row, these not held as matrices.

    A row's block is D + m t' + t m' - (n + sum m) t t', with its shares t, its votes n, what is unknown of them m,
    and a diagonal D. It is held as D and the two directions in which D^-1/2 block D^-1/2 is not the identity.
    """

    inverse_dgg: Floats
    scale_akv: Floats
    axis_akvd: Floats
    gain_akd: Floats

    def solve(self, right_ps: Floats, *, transposed: bool) -> Floats:
        """Scale by D, and stretch along the two directions."""
        n_weights, n_columns = self.inverse_dgg.size // self.inverse_dgg.shape[-1], right_ps.shape[-1]
        tail_akvs = right_ps[n_weights:].reshape(*self.scale_akv.shape, n_columns)
        tail_akvs = tail_akvs if transposed else tail_akvs * self.scale_akv[..., None]
        along_akds = np.swapaxes(self.axis_akvd, -1, -2) @ tail_akvs
        tail_akvs = tail_akvs + self.axis_akvd @ (self.gain_akd[..., None] * along_akds)
        tail_akvs = tail_akvs * self.scale_akv[..., None] if transposed else tail_akvs
        head = _times_blocks(self.inverse_dgg, right_ps[:n_weights], transposed)
        return np.concatenate([head, tail_akvs.reshape(-1, n_columns)])


def row_blocks(inverse_dgg: Floats, votes_ak: Floats, share_akv: Floats, unknown_akv: Floats) -> RowBlocks:
    """Factor the block of every confusion row.

    Parameters
    ----------
    inverse_dgg
        The inverses of the factors of the weights' blocks.
    votes_ak, share_akv
        Expected votes of each row, pseudo-counts included, and its shares.
    unknown_akv
        Of these votes, the sum of p (1 - p), where p is the probability that the vote belongs to the row.
    """
    known_akv = votes_ak[..., None] * share_akv
    left_akv = known_akv - unknown_akv
    kept_akv = np.where(left_akv > FLAT * known_akv, left_akv, LEAST_INFORMATION * known_akv)
    scale_akv = 1.0 / np.sqrt(kept_akv[..., 1:].clip(min=1e-12))
    share, unknown = scale_akv * share_akv[..., 1:], scale_akv * unknown_akv[..., 1:]
    length_ak = np.linalg.norm(share, axis=-1)
    first_akv = share / length_ak[..., None]
    along_ak = (first_akv * unknown).sum(axis=-1)
    rest_akv = unknown - along_ak[..., None] * first_akv
    across_ak = np.linalg.norm(rest_akv, axis=-1)
    second_akv = rest_akv / np.where(across_ak > 0, across_ak, 1.0)[..., None]
    plane_akdd = np.zeros((*votes_ak.shape, 2, 2))
    plane_akdd[..., 0, 0] = length_ak * (2 * along_ak - (votes_ak + unknown_akv.sum(axis=-1)) * length_ak)
    plane_akdd[..., 0, 1] = plane_akdd[..., 1, 0] = length_ak * across_ak
    value_akd, turn_akdd = np.linalg.eigh(plane_akdd)
    left_akd = np.where(value_akd > FLAT - 1.0, 1.0 + value_akd, LEAST_INFORMATION)
    axis_akvd = np.stack([first_akv, second_akv], axis=-1) @ turn_akdd
    return RowBlocks(inverse_dgg, scale_akv, axis_akvd, 1.0 / np.sqrt(left_akd) - 1.0)


@dataclass(frozen=True, eq=False)
class KrylovGaussian:
    """Blocks per annotator or per confusion row, and the coupling between them in a Krylov space.

    With the block-diagonal curvature L L' the whole is L (I - C) L', and I - C is taken as the identity outside
    the space spanned by the rows of `basis_mp`, in which its inverse square root is `root_mm`.
    """

    blocks: Blocks
    basis_mp: Floats
    root_mm: Floats
    positive_definite: bool
    smallest: float
    method: str = "krylov"

    def step(self, normal_ps: Floats) -> Floats:
        """Correct the numbers inside the space, then solve with the blocks."""
        inside_ms = self.basis_mp @ normal_ps
        coupled_ps = normal_ps + self.basis_mp.T @ (self.root_mm @ inside_ms - inside_ms)
        return self.blocks.solve(coupled_ps, transposed=True)


def krylov_gaussian(log_posterior: LogPosterior, at: Parameters, seed: int = 0) -> KrylovGaussian:
    """Factor the blocks, and resolve their coupling by Lanczos iteration with full reorthogonalisation."""
    operator = _Coupling(log_posterior, at)
    n = log_posterior.n_parameters
    most = min(KRYLOV_VOTES / max(log_posterior.n_votes, 1), KRYLOV_NUMBERS / n)
    m = int(min(KRYLOV, n, max(16, most)))
    basis_mp, tri = np.zeros((m, n)), np.zeros((m, m))
    vector_p = np.random.default_rng(seed).standard_normal(n)
    vector_p /= np.linalg.norm(vector_p)
    size = m
    for j in range(m):
        basis_mp[j] = vector_p
        image_p = operator(vector_p)
        tri[j, j] = vector_p @ image_p
        for _ in range(2):
            image_p -= (basis_mp[: j + 1] @ image_p) @ basis_mp[: j + 1]
        norm = float(np.linalg.norm(image_p))
        if j + 1 == m or norm < 1e-10:
            size = j + 1
            break
        tri[j, j + 1] = tri[j + 1, j] = norm
        vector_p = image_p / norm
    value_q, vector_mq = eigh(tri[:size, :size])
    root_mm = (vector_mq / np.sqrt(value_q.clip(min=LEAST_INFORMATION))) @ vector_mq.T
    positive = bool(value_q[0] > 0)
    return KrylovGaussian(operator.blocks, basis_mp[:size], root_mm, positive, float(value_q[0]))


class _Coupling:
    """The curvature between blocks, scaled so that each block is the identity."""

    def __init__(self, log_posterior: LogPosterior, at: Parameters) -> None:
        expected = log_posterior.expect(at)
        self.log_posterior, self.at = log_posterior, at
        self.states, self.n_labels = log_posterior.states, log_posterior.patterns.n_labels
        self.weight_dg = np.atleast_2d(at.weight_g)
        self.items_d, self.votes_ak = np.atleast_2d(expected.items_g).sum(axis=1), expected.votes_akv.sum(axis=-1)
        self.covariance = log_posterior.covariance(at)
        self.components = None if log_posterior.between is None else Components.of(log_posterior, at)
        self.blocks = self._own_blocks()

    def _own_blocks(self) -> Blocks:
        """Factor the blocks: an annotator's while they are small, else a row's."""
        size, n_annotators = self.n_labels * (self.n_labels - 1), len(self.votes_ak)
        numbers = size * max(size, self.n_labels * self.states.n_states if self.components else 0)
        if size > ANNOTATOR_BLOCK or n_annotators * numbers > BLOCK_NUMBERS:
            unknown_ck, items_dzz = self.covariance.own_rows()
            unknown_akv = unknown_ck.reshape(-1, self.n_labels, self.n_labels).transpose(0, 2, 1)
            return row_blocks(self._weight_blocks(items_dzz), self.votes_ak, self.at.confusion_akv, unknown_akv)
        own_app = np.zeros((n_annotators, size, size))
        complete_akvw = _multinomial(self.votes_ak, self.at.confusion_akv)
        for k in range(self.n_labels):
            rows = slice(k * (self.n_labels - 1), (k + 1) * (self.n_labels - 1))
            own_app[:, rows, rows] = complete_akvw[:, k]
        complete_ap = np.einsum("app->ap", own_app).copy()
        items_dzz = self.covariance.take_own(own_app)
        if self.components:
            own_app -= self.log_posterior.unknown_component(self.at, vote_scores(self.states, self.at.confusion_akv))
        return AnnotatorBlocks(self._weight_blocks(items_dzz), _inverse_factor(own_app, complete_ap))

    def _weight_blocks(self, items_dzz: Floats) -> Floats:
        """Invert the factors of the weights' blocks, one per domain."""
        complete_dgg = _multinomial(self.items_d, self.weight_dg)
        add = self.states.add_groups
        items_dgg = np.swapaxes(add(np.swapaxes(add(items_dzz), 1, 2)), 1, 2)
        return _inverse_factor(complete_dgg - items_dgg[:, 1:, 1:], np.einsum("dgg->dg", complete_dgg))

    def __call__(self, vector_p: Floats) -> Floats:
        """Multiply with I - C."""
        step_p = self.blocks.solve(vector_p[:, None], transposed=True)[:, 0]
        return self.blocks.solve(self.curvature(step_p)[:, None], transposed=False)[:, 0]

    def curvature(self, vector_p: Floats) -> Floats:
        """Multiply with the whole curvature, in one pass over the votes."""
        n_labels, at, (n_domains, n_groups) = self.n_labels, self.at, self.weight_dg.shape
        n_weights = n_domains * (n_groups - 1)
        u_dg, u_akv = np.zeros(self.weight_dg.shape), np.zeros(at.confusion_akv.shape)
        u_dg[:, 1:] = vector_p[:n_weights].reshape(n_domains, -1)
        u_akv[..., 1:] = vector_p[n_weights:].reshape(-1, n_labels, n_labels - 1)
        mean_d = (self.weight_dg * u_dg).sum(axis=1, keepdims=True)
        complete_dg = self.items_d[:, None] * self.weight_dg * (u_dg - mean_d)
        gain_akv = u_akv - (at.confusion_akv * u_akv).sum(axis=-1, keepdims=True)
        complete_akv = self.votes_ak[..., None] * at.confusion_akv * gain_akv
        gain_ck = np.ascontiguousarray(gain_akv.transpose(0, 2, 1).reshape(-1, n_labels))
        sum_ck, sum_dz = self._product(gain_ck, np.ascontiguousarray(u_dg[:, self.states.group_z]))
        sum_akv = sum_ck.reshape(-1, n_labels, n_labels).transpose(0, 2, 1)
        missing_akv = sum_akv - at.confusion_akv * sum_akv.sum(axis=-1, keepdims=True)
        left_dg = complete_dg - self.states.add_groups(sum_dz)
        return np.concatenate([left_dg[:, 1:].ravel(), (complete_akv - missing_akv)[..., 1:].ravel()])

    def _product(self, gain_ck: Floats, base_dz: Floats) -> tuple[Floats, Floats]:
        """Multiply the missing information with a vector, given and returned by the label each vote was for."""
        if self.components is None:
            return self.covariance.product(gain_ck, base_dz)
        gain_cz = self.components.over_states(gain_ck)
        sum_cz, sum_dz = self.covariance.product(gain_cz, base_dz)
        return self.components.by_label(gain_ck, gain_cz, sum_cz), sum_dz


@dataclass(frozen=True, eq=False)
class Components:
    """For which label each vote was, by code and state: probabilities, and expected votes."""

    share_czk: Floats
    votes_cz: Floats

    @classmethod
    def of(cls, log_posterior: LogPosterior, at: Parameters) -> Components:
        """Compute them at some parameters."""
        count_cz, _ = log_posterior.pass_over(at)
        return cls(component_shares(log_posterior.states, at.confusion_akv), log_posterior.votes_by_state(count_cz))

    def over_states(self, gain_ck: Floats) -> Floats:
        """Return what a vote adds to each state's score: its mean over the labels it may have been for."""
        return np.asarray(np.einsum("czk,ck->cz", self.share_czk, gain_ck))

    def by_label(self, gain_ck: Floats, gain_cz: Floats, sum_cz: Floats) -> Floats:
        """Return a product by label: between states, as given, and within them, where the label is not known."""
        votes_ck = np.einsum("czk,cz->ck", self.share_czk, self.votes_cz)
        within_ck = np.einsum("czk,cz->ck", self.share_czk, sum_cz - self.votes_cz * gain_cz)
        return np.asarray(votes_ck * gain_ck + within_ck)


def _inverse_factor(blocks: Floats, complete: Floats) -> Floats:
    """Return the inverse of each block's Cholesky factor, assuming a little information in flat directions.

    Parameters
    ----------
    blocks
        Symmetric matrices.
    complete
        Their diagonals with all labels known, the scale by which directions are flat.
    """
    scale = 1.0 / np.sqrt(complete.clip(min=1e-12))
    value, vector = np.linalg.eigh(blocks * scale[..., :, None] * scale[..., None, :])
    value = np.where(value > FLAT, value, LEAST_INFORMATION)
    lower = np.linalg.cholesky((vector * value[..., None, :]) @ np.swapaxes(vector, -1, -2))
    return np.asarray(np.linalg.inv(lower) * scale[..., None, :])
