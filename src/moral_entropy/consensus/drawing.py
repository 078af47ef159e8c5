"""The Gaussian at the mode → draws of the parameters."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.densities import Densities
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import mode_in_log_ratios
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.result import Curvature
from moral_entropy.votes.table import Ballot, Floats

NUMBERS_AT_ONCE = 1 << 23
"""Normal numbers that are held at once where there are too many parameters for a matrix."""

EDGE = 1e-6
"""Probability below which a mode counts as lying on the edge of the simplex."""


def draw(
    ground: Densities, at: Parameters, ballot: Ballot, settings: FitOptions
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
    rng = _stream(ballot, settings.seed)
    if ground.nested is not None:
        found = Curvature("nested", "logit-mode", True, float("nan"))
        return found, ground.nested.draw(rng, settings.draws), None
    coordinates, target, centre = _centre(ground, at, settings)
    gaussian: laplace.Gaussian
    dense = n_parameters <= laplace.DENSE
    gaussian = laplace.dense_gaussian(target, centre) if dense else laplace.krylov_gaussian(target, centre)
    drawn, length_s = _draw_around(pack(centre), gaussian, ballot.n_labels, settings.draws, rng)
    found = Curvature(gaussian.method, coordinates, gaussian.positive_definite, gaussian.smallest)
    if ground.simplex.better_than_chance:
        return found, drawn.at_least_chance(), None
    # Steps are linear in the normal numbers, so their density is the Gaussian's up to a constant.
    return found, drawn, None if ground.rows is not None else -0.5 * length_s


def _draw_around(
    centre_p: Floats, gaussian: laplace.Gaussian, n_labels: int, n_draws: int, rng: np.random.Generator
) -> tuple[Parameters, Floats]:
    """Draw parameters, and give the squared length of each draw in standard normal numbers.

    Some draws at a time where there are very many parameters: their normal numbers and steps need not all be held.
    """
    tile = n_draws if gaussian.method == "dense" else max(1, NUMBERS_AT_ONCE // len(centre_p))
    like = unpack(centre_p, n_labels)
    log_sk = np.empty((n_draws, *like.log_prevalence_k.shape))
    log_sakv = np.empty((n_draws, *like.log_confusion_akv.shape))
    length_s = np.empty(n_draws)
    for first in range(0, n_draws, tile):
        some = slice(first, min(first + tile, n_draws))
        normal_sp = rng.standard_normal((some.stop - first, len(centre_p)))
        # Beyond e^600 a probability underflows, and its log is lost.
        drawn = unpack((centre_p + gaussian.step(normal_sp.T).T).clip(-600.0, 600.0), n_labels)
        log_sk[some], log_sakv[some] = drawn.log_prevalence_k, drawn.log_confusion_akv
        length_s[some] = np.einsum("sp,sp->s", normal_sp, normal_sp)
    return Parameters(log_sk, log_sakv), length_s


def _centre(ground: Densities, at: Parameters, settings: FitOptions) -> tuple[str, LogPosterior, Parameters]:
    """Choose where the Gaussian sits, and the density whose curvature it has."""
    if ground.rows is not None:
        return "logit-mode", ground.log_ratio, at
    if settings.coordinates == "jeffreys":
        # Half of the Jacobian: the density by Jeffreys' measure, whose mode lies inside the simplex under any prior.
        half = replace(ground.log_ratio, pseudo_k=ground.alpha_k - 0.5, pseudo_akv=ground.beta_akv - 0.5)
        return "jeffreys", half, mode_in_log_ratios(half, at)
    # On the edge of the simplex, where flat priors let a mode lie, only the mode in log ratios has a curvature.
    coordinates = "logit-mode" if at.least < EDGE else settings.coordinates
    target = ground.simplex if coordinates == "paper" else ground.log_ratio
    centre = mode_in_log_ratios(ground.log_ratio, at) if coordinates == "logit-mode" else at
    return coordinates, target, centre


def _stream(ballot: Ballot, seed: int) -> np.random.Generator:
    """Give a question its own stream: one more question changes no draw of the others."""
    return np.random.default_rng([seed, zlib.crc32(ballot.question.encode()), zlib.crc32(ballot.part.encode())])
