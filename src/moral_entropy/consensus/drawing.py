"""The Gaussian at the mode → draws of the parameters."""

from __future__ import annotations

import zlib

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import mode_in_log_ratios
from moral_entropy.consensus.pooling import common_row_steps
from moral_entropy.consensus.result import Curvature
from moral_entropy.consensus.settings import Settings
from moral_entropy.consensus.summit import Ground
from moral_entropy.votes.table import Ballot, Floats

EDGE = 1e-6
"""Probability below which a mode counts as lying on the edge of the simplex."""


def draw(
    ground: Ground, at: Parameters, ballot: Ballot, settings: Settings
) -> tuple[Curvature, Parameters, Floats | None]:
    """Draw parameters from the Gaussian at the mode, with the log density of each draw where that is all they are.

    Parameters
    ----------
    ground, at
        The densities, and the mode found in them.
    ballot
        Whose name seeds the draws: questions have streams of their own.
    settings
        How many draws, which seed and coordinates.
    """
    n_parameters = ground.simplex.n_parameters
    if settings.draws == 0:
        nothing = unpack(np.empty((0, n_parameters)), ballot.n_labels)
        return Curvature("none", settings.coordinates, True, float("nan")), nothing, None
    coordinates, target, centre = _centre(ground, at, settings)
    gaussian: laplace.Gaussian
    dense = n_parameters <= laplace.DENSE
    gaussian = laplace.dense_gaussian(target, centre) if dense else laplace.krylov_gaussian(target, centre)
    # Questions have streams of their own: one more question changes no draw of the others.
    names = (ballot.question.encode(), ballot.part.encode())
    rng = np.random.default_rng([settings.seed, *map(zlib.crc32, names)])
    normal_sp = rng.standard_normal((settings.draws, n_parameters))
    step_ps = gaussian.step(normal_sp.T)
    if ground.rows is not None and isinstance(gaussian, laplace.DenseGaussian) and gaussian.positive_definite:
        step_ps = step_ps + _common_steps(gaussian, ground, settings.draws, rng)
    # Beyond e^600 a probability underflows, and its log is lost.
    drawn = unpack((pack(centre) + step_ps.T).clip(-600.0, 600.0), ballot.n_labels)
    found = Curvature(gaussian.method, coordinates, gaussian.positive_definite, gaussian.smallest)
    if ground.simplex.better_than_chance:
        return found, drawn.at_least_chance(), None
    # Steps are linear in the normal numbers, so their density is the Gaussian's up to a constant.
    return found, drawn, None if ground.rows is not None else -0.5 * np.einsum("sp,sp->s", normal_sp, normal_sp)


def _centre(ground: Ground, at: Parameters, settings: Settings) -> tuple[str, LogPosterior, Parameters]:
    """Choose where the Gaussian sits, and the density whose curvature it has."""
    if ground.rows is not None:
        return "logit-mode", ground.log_ratio, at
    # On the edge of the simplex, where flat priors let a mode lie, only the mode in log ratios has a curvature.
    coordinates = "logit-mode" if at.least < EDGE else settings.coordinates
    target = ground.simplex if coordinates == "paper" else ground.log_ratio
    centre = mode_in_log_ratios(ground.log_ratio, at) if coordinates == "logit-mode" else at
    return coordinates, target, centre


def _common_steps(gaussian: laplace.DenseGaussian, ground: Ground, draws: int, rng: np.random.Generator) -> Floats:
    assert ground.rows is not None
    assert ground.row_kv is not None
    n_labels = len(ground.row_kv)
    normal_qs = rng.standard_normal((draws, n_labels * (n_labels - 1))).T
    return common_row_steps(gaussian, ground.rows, len(ground.beta_akv), ground.row_kv, normal_qs)
