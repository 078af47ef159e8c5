"""Which mode: several starts, the highest summit, and who came close.

A posterior over confusion matrices has switched modes, in which labels, or a team's labels, trade names. All starts
are climbed roughly (on a sample of the rows where there are many votes), the best is climbed to the top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.climb import MAX_PASSES, TOLERANCE, Summit, climb
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.starts import starts

ROUGH = 0.05
"""Tolerance of the first climbs, in standard errors."""

ROUGH_NEWTON = 200
"""Parameters up to which Newton steps pay in a rough climb."""

SCOUT_VOTES = 400_000
"""Votes above which the starts are compared on a sample of the rows."""

SADDLE = 2_500
"""Parameters up to which a summit is checked for being a saddle: ties that make one need few annotators."""

CLOSE = 3.0
"""Nats within which another mode is worth a warning."""

APART = 0.02
"""Difference in some prevalence from which two summits are different modes."""


@dataclass(frozen=True, eq=False)
class Mode:
    """The best summit, and the others.

    Parameters
    ----------
    summit
        Where the climb from the best start ended.
    passes
        Passes over the votes, all starts together.
    log_posteriors
        Height each start reached in its rough climb (on the sample, where one was taken).
    rival
        Name, distance in nats and prevalence of the highest mode that is not this one, if any.
    """

    summit: Summit
    passes: int
    log_posteriors: Mapping[str, float]
    rival: tuple[str, float, tuple[float, ...]] | None


def find_mode(
    log_posterior: LogPosterior,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = MAX_PASSES,
    watch: Callable[[float], None] | None = None,
) -> Mode:
    """Climb from every start, and from the best one to the top.

    Parameters
    ----------
    log_posterior
        What to climb.
    tolerance, max_passes, watch
        As in `climb`; `max_passes` holds for each climb.
    """
    scout = _scout(log_posterior)
    summits = {
        name: climb(scout, start, tolerance=ROUGH, max_passes=max_passes, newton=ROUGH_NEWTON, watch=watch)
        for name, start in starts(scout)
    }
    heights = {name: summit.log_posterior for name, summit in summits.items()}
    # The paper's start wins a tie: `max` keeps the first of equals.
    best = max(heights, key=lambda name: round(heights[name], 3))
    summit = climb(log_posterior, summits[best].at, tolerance=tolerance, max_passes=max_passes, watch=watch)
    summit = leave_saddle(log_posterior, summit, tolerance=tolerance, max_passes=max_passes)
    passes = summit.passes + sum(other.passes for other in summits.values())
    return Mode(summit, passes, heights, _rival(summits, best))


def _scout(log_posterior: LogPosterior) -> LogPosterior:
    patterns = log_posterior.patterns
    n_votes = len(patterns.code_v)
    if n_votes <= SCOUT_VOTES:
        return log_posterior
    n_rows = max(1, int(patterns.n_rows * SCOUT_VOTES / n_votes))
    rows = np.random.default_rng(0).choice(patterns.n_rows, n_rows, replace=False)
    sample: Patterns = patterns.take(np.sort(rows))
    return LogPosterior(sample, log_posterior.pseudo_k, log_posterior.pseudo_akv, log_posterior.threads)


def _rival(summits: Mapping[str, Summit], best: str) -> tuple[str, float, tuple[float, ...]] | None:
    top = summits[best]
    apart = {
        name: summit
        for name, summit in summits.items()
        if np.abs(summit.at.prevalence_k - top.at.prevalence_k).max() > APART
    }
    if not apart:
        return None
    name = max(apart, key=lambda other: apart[other].log_posterior)
    distance = top.log_posterior - apart[name].log_posterior
    return name, distance, tuple(apart[name].at.prevalence_k.tolist())


def leave_saddle(log_posterior: LogPosterior, summit: Summit, *, tolerance: float, max_passes: int) -> Summit:
    """Climb on from a point that is level but no maximum, such as two annotators who always disagree."""
    for _ in range(3):
        if log_posterior.n_parameters > SADDLE or not summit.converged:
            return summit
        if laplace.newton_step(log_posterior, summit.at, np.zeros(log_posterior.n_parameters)) is not None:
            return summit
        direction_p = laplace.escape_direction(log_posterior, summit.at)
        if direction_p is None:
            return summit
        away = unpack(pack(summit.at) + direction_p, len(summit.at.log_prevalence_k))
        onward = climb(log_posterior, away, tolerance=tolerance, max_passes=max_passes)
        if onward.log_posterior <= summit.log_posterior:
            return summit
        summit = onward
    return summit


def mode_in_log_ratios(log_ratio: LogPosterior, near: Parameters) -> Parameters:
    """Climb the density in log-ratio coordinates from the mode on the simplex."""
    return climb(log_ratio, near).at
