"""The best mode: search from several starts, keep the highest, and report a second mode that comes close.

A posterior over confusion matrices has further modes in which labels, or the labels of a team, are swapped. From every
start there is a rough search (on a sample of the rows where there are many votes), from the best result an exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.coordinates import pack, unpack_like
from moral_entropy.consensus.em import Optimum, maximise
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.options import MAX_PASSES, TOLERANCE
from moral_entropy.consensus.result import Rival
from moral_entropy.consensus.starts import starts
from moral_entropy.ties import highest

ROUGH = 0.05
"""Tolerance of the rough searches, in standard errors."""

ROUGH_NEWTON = 200
"""Largest number of parameters for which a rough search uses Newton steps."""

SAMPLE_VOTES = 400_000
"""Votes above which the starts are compared on a sample of the rows."""

SADDLE = 500
"""Largest number of parameters for which an optimum is checked for being a saddle: ties among few annotators."""

NEAR = 0.03
"""Two searches lead to the same optimum if no probability differs by more than this."""

CLOSE = 3.0
"""Nats within which another mode is worth a warning."""

APART = 0.002
"""Two optima are different modes if their label probabilities differ by more than this on average."""

LEVEL = 1e-3
"""Tolerance of the searches from the candidates for the best mode, before they are compared."""


def find_mode(
    log_posterior: LogPosterior,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = MAX_PASSES,
    watch: Callable[[float], None] | None = None,
) -> Optimum:
    """Search from every start, and from the best result to the exact mode.

    Parameters
    ----------
    log_posterior
        The function to maximise.
    tolerance, max_passes, watch
        As in `maximise`; `max_passes` holds for each search.
    """
    sample = log_posterior.sample_rows(SAMPLE_VOTES)
    optima = _rough_searches(sample, max_passes, watch)
    passes = sum(optimum.passes for optimum in optima.values())
    reached = {name: optimum.log_posterior for name, optimum in optima.items()}
    candidates = _distinct(sample, optima)
    if len(candidates) > 1:
        candidates = {
            name: maximise(sample, optimum.at, tolerance=LEVEL, max_passes=max_passes)
            for name, optimum in candidates.items()
        }
        passes += sum(optimum.passes for optimum in candidates.values())
    best = _best(candidates)
    optimum = maximise(log_posterior, candidates[best].at, tolerance=tolerance, max_passes=max_passes, watch=watch)
    optimum = leave_saddle(log_posterior, optimum, tolerance=tolerance, max_passes=max_passes)
    rival = _rival(sample, candidates, best)
    return replace(optimum, passes=passes + optimum.passes, starts=reached, rival=rival)


def _rough_searches(sample: LogPosterior, max_passes: int, watch: Callable[[float], None] | None) -> dict[str, Optimum]:
    """Search roughly from every start; a search that comes near an earlier optimum ends there and shares it."""
    optima: dict[str, Optimum] = {}
    for name, start in starts(sample):
        joined: list[Optimum] = []

        def joins(at: Parameters, joined: list[Optimum] = joined) -> bool:
            joined += [optimum for optimum in optima.values() if leads_to_same(at, optimum.at)]
            return bool(joined)

        optimum = maximise(
            sample, start, tolerance=ROUGH, max_passes=max_passes, newton=ROUGH_NEWTON, watch=watch, stop_if=joins
        )
        optima[name] = replace(joined[0], passes=optimum.passes) if joined else optimum
    return optima


def leads_to_same(one: Parameters, other: Parameters) -> bool:
    """Return whether two sets of parameters are so close that they lead to the same optimum."""
    weights = np.abs(one.weight_g - other.weight_g).max()
    return bool(max(weights, np.abs(one.confusion_akv - other.confusion_akv).max(initial=0.0)) < NEAR)


def _best(optima: Mapping[str, Optimum]) -> str:
    # Earlier starts win a tie, the paper's first: `max` keeps the first of equals.
    return max(optima, key=lambda name: round(optima[name].log_posterior, 3))


def _distinct(sample: LogPosterior, optima: Mapping[str, Optimum]) -> dict[str, Optimum]:
    """Keep the best optimum, and others about as high that are different modes."""
    best = _best(optima)
    top = optima[best]
    kept = {best: top}
    for name, optimum in optima.items():
        near = optimum.log_posterior > top.log_posterior - 2 * CLOSE
        if near and all(_difference(sample, other, optimum)[0] > APART for other in kept.values()):
            kept[name] = optimum
    return {name: kept[name] for name in optima if name in kept}


def _difference(sample: LogPosterior, one: Optimum, other: Optimum) -> tuple[float, float]:
    """Compute the mean difference of the label probabilities, and the share of items whose label differs."""
    one_rk, other_rk = sample.posterior_rk(one.at), sample.posterior_rk(other.at)
    weight_r = sample.patterns.weight_r
    mean = np.average(np.abs(one_rk - other_rk).max(axis=1), weights=weight_r)
    return float(mean), float(np.average(highest(one_rk) != highest(other_rk), weights=weight_r))


def _rival(sample: LogPosterior, candidates: Mapping[str, Optimum], best: str) -> Rival | None:
    top, rivals = candidates[best], []
    for name, optimum in candidates.items():
        mean, changed = _difference(sample, top, optimum)
        if name != best and mean > APART:
            # Log posteriors of candidates are known to about 1e-6: a smaller difference is none.
            distance = round(top.log_posterior - optimum.log_posterior, 3) + 0.0
            rivals.append(Rival(name, distance, changed, tuple(optimum.at.weight_g.tolist())))
    return min(rivals, key=lambda rival: rival.distance, default=None)


def leave_saddle(log_posterior: LogPosterior, optimum: Optimum, *, tolerance: float, max_passes: int) -> Optimum:
    """Continue from a saddle point, such as that of two annotators who always disagree, to a maximum."""
    for _ in range(3):
        if log_posterior.n_parameters > SADDLE or log_posterior.better_than_chance or not optimum.converged:
            return optimum
        if laplace.newton_step(log_posterior, optimum.at, np.zeros(log_posterior.n_parameters)) is not None:
            return optimum
        direction_p = laplace.escape_direction(log_posterior, optimum.at)
        if direction_p is None:
            return optimum
        away = unpack_like(pack(optimum.at) + direction_p, optimum.at)
        further = maximise(log_posterior, away, tolerance=tolerance, max_passes=max_passes)
        if further.log_posterior <= optimum.log_posterior:
            return optimum
        optimum = further
    return optimum


def mode_in_log_ratios(log_ratio: LogPosterior, near: Parameters) -> Parameters:
    """Maximise the density in log-ratio coordinates, beginning from the mode on the simplex."""
    optimum = leave_saddle(log_ratio, maximise(log_ratio, near), tolerance=TOLERANCE, max_passes=MAX_PASSES)
    return optimum.at
