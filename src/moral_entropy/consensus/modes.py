"""Which mode: several starts, the highest summit, and who came close.

A posterior over confusion matrices has switched modes, in which labels, or a team's labels, trade names. All starts
are climbed roughly (on a sample of the rows where there are many votes), the best is climbed to the top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.climb import Summit, climb
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.options import MAX_PASSES, TOLERANCE
from moral_entropy.consensus.result import Rival
from moral_entropy.consensus.starts import starts
from moral_entropy.ties import highest

ROUGH = 0.05
"""Tolerance of the first climbs, in standard errors."""

ROUGH_NEWTON = 200
"""Parameters up to which Newton steps pay in a rough climb."""

SCOUT_VOTES = 400_000
"""Votes above which the starts are compared on a sample of the rows."""

SADDLE = 500
"""Parameters up to which a summit is checked for being a saddle: ties that make one need few annotators."""

NEAR = 0.03
"""Difference of every probability up to which two climbs lead to the same summit."""

CLOSE = 3.0
"""Nats within which another mode is worth a warning."""

APART = 0.002
"""Mean difference of the label probabilities from which two summits are different modes."""

LEVEL = 1e-3
"""Tolerance to which contenders for the best mode are climbed before they are compared."""


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
        The highest mode that is not this one, if it came close.
    """

    summit: Summit
    passes: int
    log_posteriors: Mapping[str, float]
    rival: Rival | None


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
    scout = log_posterior.scout(SCOUT_VOTES)
    summits = _rough_climbs(scout, max_passes, watch)
    passes = sum(summit.passes for summit in summits.values())
    heights = {name: summit.log_posterior for name, summit in summits.items()}
    contenders = _distinct(scout, summits)
    if len(contenders) > 1:
        contenders = {
            name: climb(scout, summit.at, tolerance=LEVEL, max_passes=max_passes) for name, summit in contenders.items()
        }
        passes += sum(summit.passes for summit in contenders.values())
    best = _best(contenders)
    summit = climb(log_posterior, contenders[best].at, tolerance=tolerance, max_passes=max_passes, watch=watch)
    summit = leave_saddle(log_posterior, summit, tolerance=tolerance, max_passes=max_passes)
    return Mode(summit, passes + summit.passes, heights, _rival(scout, contenders, best))


def _rough_climbs(scout: LogPosterior, max_passes: int, watch: Callable[[float], None] | None) -> dict[str, Summit]:
    """Climb from every start; a climb that meets an earlier one's summit ends there and shares it."""
    summits: dict[str, Summit] = {}
    for name, start in starts(scout):
        met: list[Summit] = []

        def known(at: Parameters, met: list[Summit] = met) -> bool:
            met += [summit for summit in summits.values() if _joins(at, summit.at)]
            return bool(met)

        summit = climb(
            scout, start, tolerance=ROUGH, max_passes=max_passes, newton=ROUGH_NEWTON, watch=watch, known=known
        )
        summits[name] = replace(met[0], passes=summit.passes) if met else summit
    return summits


def _joins(one: Parameters, other: Parameters) -> bool:
    """Whether two sets of parameters are near enough to lie on the slope of one summit."""
    prevalence = np.abs(one.prevalence_k - other.prevalence_k).max()
    return bool(max(prevalence, np.abs(one.confusion_akv - other.confusion_akv).max(initial=0.0)) < NEAR)


def _best(summits: Mapping[str, Summit]) -> str:
    # Earlier starts win a tie, the paper's first: `max` keeps the first of equals.
    return max(summits, key=lambda name: round(summits[name].log_posterior, 3))


def _distinct(scout: LogPosterior, summits: Mapping[str, Summit]) -> dict[str, Summit]:
    """Keep the best summit, and those about as high that are elsewhere."""
    best = _best(summits)
    top = summits[best]
    kept = {best: top}
    for name, summit in summits.items():
        near = summit.log_posterior > top.log_posterior - 2 * CLOSE
        if near and all(_difference(scout, other, summit)[0] > APART for other in kept.values()):
            kept[name] = summit
    return {name: kept[name] for name in summits if name in kept}


def _difference(scout: LogPosterior, one: Summit, other: Summit) -> tuple[float, float]:
    """Mean difference of the label probabilities, and the share of items whose label differs."""
    one_rk, other_rk = scout.posterior_rk(one.at), scout.posterior_rk(other.at)
    weight_r = scout.patterns.weight_r
    mean = np.average(np.abs(one_rk - other_rk).max(axis=1), weights=weight_r)
    return float(mean), float(np.average(highest(one_rk) != highest(other_rk), weights=weight_r))


def _rival(scout: LogPosterior, contenders: Mapping[str, Summit], best: str) -> Rival | None:
    top, rivals = contenders[best], []
    for name, summit in contenders.items():
        mean, changed = _difference(scout, top, summit)
        if name != best and mean > APART:
            # Heights of contenders are known to about 1e-6: less than that is no distance.
            distance = round(top.log_posterior - summit.log_posterior, 3) + 0.0
            rivals.append(Rival(name, distance, changed, tuple(summit.at.prevalence_k.tolist())))
    return min(rivals, key=lambda rival: rival.distance, default=None)


def leave_saddle(log_posterior: LogPosterior, summit: Summit, *, tolerance: float, max_passes: int) -> Summit:
    """Climb on from a point that is level but no maximum, such as two annotators who always disagree."""
    for _ in range(3):
        if log_posterior.n_parameters > SADDLE or log_posterior.better_than_chance or not summit.converged:
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
    summit = leave_saddle(log_ratio, climb(log_ratio, near), tolerance=TOLERANCE, max_passes=MAX_PASSES)
    return summit.at
