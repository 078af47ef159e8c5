"""EM and its accelerators → the mode of the log posterior.

SQUAREM (Varadhan & Roland 2008, scheme S3) in log-ratio coordinates strides along EM's path; near the top Newton steps
finish, or where there are too many parameters for them, mixtures of EM steps (Anderson 1965). A step that does not
gain is not taken, so the log posterior never falls. The climb stops on the gradient, measured in standard errors, not
on a slow log posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.model import Expectation, LogPosterior, Parameters
from moral_entropy.consensus.options import MAX_PASSES, TOLERANCE
from moral_entropy.votes.table import Floats

STALLED = 1e-7
"""What is left where a climb that no step moves any more counts as done: rounding, next to an edge of the simplex."""

NEWTON_STEEPNESS = 1.0
"""Scaled gradient from which Newton steps are tried."""

MIXING_STEEPNESS = 0.03
"""Scaled gradient from which EM steps are mixed: farther up, where EM is less linear, strides are better."""

MEMORY = 12
"""Steps of EM that a mixed one is made of."""


@dataclass(frozen=True, eq=False)
class Summit:
    """Where one climb ended."""

    at: Parameters
    expected: Expectation
    passes: int
    converged: bool
    gradient_norm: float
    trace: tuple[float, ...] = field(repr=False, default=())

    @property
    def log_posterior(self) -> float:
        """Height of the summit."""
        return self.expected.log_posterior


def climb(
    log_posterior: LogPosterior,
    start: Parameters,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = MAX_PASSES,
    newton: int = 2_500,
    watch: Callable[[float], None] | None = None,
    known: Callable[[Parameters], bool] | None = None,
) -> Summit:
    """Climb from a start to the nearest mode.

    Parameters
    ----------
    log_posterior
        What to climb.
    start
        Where to begin.
    tolerance
        Stop when no derivative exceeds this, in standard errors.
    max_passes
        Passes over the votes after which to give up, truthfully.
    newton
        Finish with Newton steps where there are at most this many parameters.
    watch
        Called with the scaled gradient after every stride.
    known
        Near the top, asked whether the way on is known already; then the climb ends there.
    """
    walker = _Walker(log_posterior, start)
    while walker.steepness > tolerance and walker.passes < max_passes:
        if watch is not None:
            watch(walker.steepness)
        if known is not None and walker.steepness < NEWTON_STEEPNESS and known(walker.at):
            break
        if walker.mixing_pays(newton):
            walker.mix()
        elif not (walker.newton_pays(newton) and walker.newton()):
            walker.stride()
        if walker.stuck:
            break
    # At the limits of rounding a gradient can stall just above the tolerance.
    content = max(tolerance, STALLED if walker.stuck else 0.0, walker.rounding)
    converged = walker.steepness <= content
    norm = float(np.abs(walker.gradient_p).max())
    return Summit(walker.at, walker.expected, walker.passes, converged, norm, tuple(walker.trace))


class _Walker:
    """Where the climb stands; every move keeps or raises the log posterior."""

    def __init__(self, log_posterior: LogPosterior, start: Parameters) -> None:
        self.log_posterior = log_posterior
        self.passes = 0
        self.stuck = False
        self.trace: list[float] = []
        start = start.at_least_chance() if log_posterior.better_than_chance else start
        self._arrive(start, self._expect(start))
        self.newton_due = self.newton_cost
        self.mixer: _Mixer | None = None

    def _expect(self, at: Parameters) -> Expectation:
        self.passes += 1
        return self.log_posterior.expect(at)

    def _arrive(self, at: Parameters, expected: Expectation) -> None:
        self.at, self.expected = at, expected
        self.gradient_p = expected.gradient(at)
        self.steepness = self._steepness(self.gradient_p)
        self.trace.append(expected.log_posterior)

    def _steepness(self, gradient_p: Floats) -> float:
        """Largest derivative in standard errors; parameters nobody voted on are at their prior already."""
        return float((np.abs(gradient_p) / self._scale_p()).max())

    def _scale_p(self) -> Floats:
        """One over the standard error of each parameter, were all labels known."""
        at, expected = self.at, self.expected
        prevalence = expected.items_k.sum() * at.prevalence_k * (1 - at.prevalence_k)
        totals = expected.votes_akv.sum(axis=-1, keepdims=True)
        confusion = totals * at.confusion_akv * (1 - at.confusion_akv)
        return np.asarray(np.sqrt(np.concatenate([prevalence[1:], confusion[..., 1:].ravel()]) + 1e-3))

    @property
    def rounding(self) -> float:
        """How small a scaled gradient can be told from 0 with sums over this many votes."""
        size = 1.0 + float(self.expected.items_k.sum())
        return 64 * np.finfo(float).eps * size

    def stride(self) -> None:
        """Two EM steps, a stride along their path, and back to EM's own step where that does not gain."""
        x0 = pack(self.at)
        one = self.expected.maximum()
        at_one = self._expect(one)
        two = at_one.maximum()
        x1, x2 = pack(one), pack(two)
        r, v = x1 - x0, x2 - 2 * x1 + x0
        length = -float(np.sqrt((r @ r) / max(float(v @ v), 1e-300)))
        if length < -1.0:
            far = unpack(x0 - 2 * length * r + length**2 * v, len(self.at.log_prevalence_k))
            far = far.at_least_chance() if self.log_posterior.better_than_chance else far
            at_far = self._expect(far)
            if at_far.log_posterior >= at_one.log_posterior:
                self._arrive(far, at_far)
                return
        at_two = self._expect(two)
        self.stuck = bool(np.abs(x2 - x0).max() < 1e-13)
        if at_two.log_posterior >= self.expected.log_posterior - self._noise():
            self._arrive(two, at_two)

    def mixing_pays(self, most_parameters: int) -> bool:
        """Near the top, where a Newton step's matrix would be too large."""
        near = self.log_posterior.n_parameters > most_parameters and self.steepness < MIXING_STEEPNESS
        return near and not self.log_posterior.better_than_chance

    def mix(self) -> None:
        """Take the best mixture of the last EM steps, and EM's own step where that does not gain."""
        self.mixer = self.mixer or _Mixer(self._scale_p())
        x0, one = pack(self.at), self.expected.maximum()
        x1 = pack(one)
        self.stuck = bool(np.abs(x1 - x0).max() < 1e-13)
        there = unpack(self.mixer.mixed(x0, x1), len(self.at.log_prevalence_k))
        expected = self._expect(there)
        if expected.log_posterior < self.expected.log_posterior - self._noise():
            self.mixer = None
            there, expected = one, self._expect(one)
        self._arrive(there, expected)

    def _noise(self) -> float:
        return 1e-13 * abs(self.expected.log_posterior)

    def newton_pays(self, most_parameters: int) -> bool:
        """Near the top, with a matrix that fits, and once the strides have cost as much as the step would."""
        if self.log_posterior.better_than_chance:
            return False
        near = self.log_posterior.n_parameters <= most_parameters and self.steepness < NEWTON_STEEPNESS
        return near and self.passes >= self.newton_due

    def newton(self) -> bool:
        """Take a Newton step, shortened once if need be; False where it does not gain."""
        step_p = laplace.newton_step(self.log_posterior, self.at, self.gradient_p, self.expected)
        if step_p is not None:
            x0, n_labels = pack(self.at), len(self.at.log_prevalence_k)
            for share in (1.0, 0.25):
                there = unpack(x0 + share * step_p, n_labels)
                expected = self._expect(there)
                if expected.log_posterior >= self.expected.log_posterior - self._noise():
                    self._arrive(there, expected)
                    return True
        self.newton_due = self.passes + max(30, 2 * self.newton_cost)
        return False

    @cached_property
    def newton_cost(self) -> int:
        """What a Newton step costs, in passes: rough, from the number of cells touched and of parameters."""
        n_other, cells = self.log_posterior.patterns.n_labels - 1, self.log_posterior.n_cells
        n_parameters = float(self.log_posterior.n_parameters)
        # Cells of a matrix that outgrows the cache are several times as dear.
        cells, factor = cells * (2.0 if n_parameters < 500 else 8.0), n_parameters**3 / 30.0
        return int((cells + factor) / (1e4 + 3.0 * n_other * self.log_posterior.n_votes))


class _Mixer:
    """Anderson's mixing (1965): the combination of the last EM steps that would leave least to go, were EM linear.

    Lengths are measured in standard errors, in which EM's map is symmetric near the top; mixing then gains as
    conjugate gradients would, for one pass a step.
    """

    def __init__(self, scale_p: Floats) -> None:
        self.scale_p = scale_p
        self.last: list[tuple[Floats, Floats]] = []

    def mixed(self, x0: Floats, x1: Floats) -> Floats:
        """Give where to go on, from where EM's step started and where it led."""
        self.last = [*self.last[-MEMORY:], ((x1 - x0) * self.scale_p, x1)]
        if len(self.last) == 1:
            return x1
        step_pm, end_pm = (np.stack(several, axis=1) for several in zip(*self.last, strict=True))
        weight_m, *_ = np.linalg.lstsq(np.diff(step_pm), step_pm[:, -1], rcond=1e-12)
        return np.asarray(x1 - np.diff(end_pm) @ weight_m)
