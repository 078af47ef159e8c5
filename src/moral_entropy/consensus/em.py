"""EM and its accelerators → the mode of the log posterior.

SQUAREM (Varadhan & Roland 2008, scheme S3) extrapolates EM steps in log-ratio coordinates. Near the mode Newton steps
finish, damped where the votes say so little that the log posterior is no bowl yet; a search that keeps curvature takes
several steps with it. Where there are too many parameters for Newton steps, Anderson mixing (1965) of EM steps does. A
step that would lower the log posterior is not taken. The search stops when the gradient, in standard errors, is small,
not when the log posterior rises slowly; except on a plateau, where a thousand passes were not enough and many more
would gain nothing that matters. It is then not called converged.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.coordinates import pack, unpack_like
from moral_entropy.consensus.model import Expectation, LogPosterior, Parameters
from moral_entropy.consensus.options import MAX_PASSES, TOLERANCE
from moral_entropy.consensus.threads import one_blas_thread
from moral_entropy.votes.table import Floats

if TYPE_CHECKING:
    from moral_entropy.consensus.result import Rival

STALLED = 1e-7
"""Scaled gradient that counts as converged once no step moves the parameters: rounding, near an edge of the simplex."""

NEWTON_GRADIENT = 1.0
"""Scaled gradient below which Newton steps are tried."""

MIXING_GRADIENT = 0.03
"""Scaled gradient below which EM steps are mixed: farther away, where EM is less linear, SQUAREM is better."""

STRETCH = 4.0
"""Factor by which extrapolations are shortened after one that did not gain, and lengthened again after one that did."""

UNDAMPED = 2
"""Newton steps that may fail before they are damped, where curvature is not kept."""

FALL, FURTHER = 0.4, 2
"""A step with kept curvature must lower the scaled gradient to this share of it, or the curvature is computed anew; and
steps with it after the search has met its tolerance: a Newton step would have ended well below it."""

PLATEAU_PASSES, PLATEAU_WINDOW, PLATEAU_GAIN = 1_000, 250, 0.05
"""A search that took the first number of passes ends where the last of them, the second number, gained fewer nats than
the third: densities there differ by a twentieth, and no posterior sd is known that well."""

MEMORY = 12
"""Number of past steps that Anderson mixing combines."""

MEMORY_NUMBERS = 1 << 26
"""Most numbers in these steps; fewer are combined where there are more parameters."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where the search for the mode ended.

    Parameters
    ----------
    at, expected
        The parameters there, and what they let one expect.
    passes
        Passes over the votes, of all searches together where there were several starts.
    converged, gradient_norm
        Whether the gradient met the tolerance, and its largest component.
    trace
        Log posterior after every step.
    flat
        Whether it ended on a plateau, before the gradient met the tolerance.
    starts
        Log posterior reached from each start, by its rough search (on a sample, where one was taken).
    rival
        The highest mode that is not this one, if it came close.
    """

    at: Parameters
    expected: Expectation
    passes: int
    converged: bool
    gradient_norm: float
    trace: tuple[float, ...] = field(repr=False, default=())
    flat: bool = False
    starts: Mapping[str, float] = field(default_factory=dict)
    rival: Rival | None = None

    @property
    def log_posterior(self) -> float:
        """Log posterior at the optimum."""
        return self.expected.log_posterior


@one_blas_thread()
def maximise(
    log_posterior: LogPosterior,
    start: Parameters,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = MAX_PASSES,
    newton: int = 2_500,
    watch: Callable[[float], None] | None = None,
    stop_if: Callable[[Parameters], bool] | None = None,
    kept: laplace.KeptCurvature | None = None,
) -> Optimum:
    """Maximise the log posterior from a start: find a mode near it.

    Parameters
    ----------
    log_posterior
        The function to maximise.
    start
        Parameters to begin from.
    tolerance
        Stop when no derivative exceeds this, in standard errors.
    max_passes
        Passes over the votes after which to give up; `converged` is then False.
    newton
        Finish with Newton steps where there are at most this many parameters.
    watch
        Called with the scaled gradient before every step.
    stop_if
        Called with the parameters near the mode; the search ends where it returns True.
    kept
        Where given, curvature is used for several steps, also that of an earlier search of a density much like this
        one; the last one is left in it.
    """
    search = _Search(log_posterior, start, kept)
    while search.scaled_gradient > tolerance and search.passes < max_passes:
        if watch is not None:
            watch(search.scaled_gradient)
        if stop_if is not None and search.scaled_gradient < NEWTON_GRADIENT and stop_if(search.at):
            break
        if search.mixing_pays(newton):
            search.mixing_step()
        elif not search.kept_step() and not (search.newton_pays(newton) and search.newton_step()):
            search.squarem_step()
        if search.stuck or search.flat:
            break
    for _ in range(FURTHER):
        search.kept_step()
    # At the limits of rounding a gradient can stall just above the tolerance.
    threshold = max(tolerance, STALLED if search.stuck else 0.0, search.rounding)
    converged = search.scaled_gradient <= threshold
    norm = float(np.abs(search.gradient_p).max())
    flat = search.flat and not converged
    return Optimum(search.at, search.expected, search.passes, bool(converged), norm, tuple(search.trace), flat)


class _Search:
    """The state of the search; every step keeps or raises the log posterior."""

    def __init__(
        self, log_posterior: LogPosterior, start: Parameters, kept: laplace.KeptCurvature | None = None
    ) -> None:
        self.log_posterior, self.kept = log_posterior, kept
        # From the mode of a density much like this one Newton steps lead to its mode at once.
        self.newton_due = self.newton_cost if kept is None or kept.factor is None else 0
        self.passes = 0
        self.stuck = False
        self.longest, self.undamped = np.inf, UNDAMPED
        self.damping = laplace.DAMPING if kept is None else 0.0
        self.trace: list[float] = []
        self.passes_of_trace: list[int] = []
        start = start.at_least_chance() if log_posterior.better_than_chance else start
        self._move_to(start, self._expect(start))
        self.mixer: AndersonMixing | None = None

    def _expect(self, at: Parameters) -> Expectation:
        self.passes += 1
        return self.log_posterior.expect(at)

    def _move_to(self, at: Parameters, expected: Expectation) -> None:
        self.at, self.expected = at, expected
        self.gradient_p = expected.gradient(at)
        self.scaled_gradient = self._scaled(self.gradient_p)
        self.trace.append(expected.log_posterior)
        self.passes_of_trace.append(self.passes)

    @property
    def flat(self) -> bool:
        """Whether the search has crept along a plateau."""
        if self.passes < PLATEAU_PASSES:
            return False
        before = bisect(self.passes_of_trace, self.passes - PLATEAU_WINDOW) - 1
        return self.trace[-1] - self.trace[max(before, 0)] < PLATEAU_GAIN

    def _scaled(self, gradient_p: Floats) -> float:
        """Return the largest derivative in standard errors; parameters without votes are at their prior already."""
        return float((np.abs(gradient_p) / self._scale_p()).max())

    def _scale_p(self) -> Floats:
        """Return one over the standard error of each parameter, as if all labels were known."""
        at, expected = self.at, self.expected
        items = expected.items_g.sum(axis=-1, keepdims=True)
        weights = items * at.weight_g * (1 - at.weight_g)
        totals = expected.votes_akv.sum(axis=-1, keepdims=True)
        confusion = totals * at.confusion_akv * (1 - at.confusion_akv)
        return np.asarray(np.sqrt(np.concatenate([weights[..., 1:].ravel(), confusion[..., 1:].ravel()]) + 1e-3))

    @property
    def rounding(self) -> float:
        """Smallest scaled gradient that rounding lets one distinguish from 0 in sums over this many items."""
        size = 1.0 + float(self.expected.items_g.sum())
        return 64 * np.finfo(float).eps * size

    def squarem_step(self) -> None:
        """Take two EM steps and extrapolate them; keep the second EM step where extrapolating does not gain."""
        x0 = pack(self.at)
        one = self.expected.maximum()
        at_one = self._expect(one)
        two = at_one.maximum()
        x1, x2 = pack(one), pack(two)
        r, v = x1 - x0, x2 - 2 * x1 + x0
        wanted = float(np.sqrt((r @ r) / max(float(v @ v), 1e-300)))
        length = -min(wanted, self.longest)
        if length < -1.0:
            far = unpack_like(x0 - 2 * length * r + length**2 * v, self.at)
            far = far.at_least_chance() if self.log_posterior.better_than_chance else far
            at_far = self._expect(far)
            if at_far.log_posterior >= at_one.log_posterior:
                self.longest *= STRETCH if wanted > self.longest else 1.0
                self._move_to(far, at_far)
                return
            if at_far.log_posterior < at_one.log_posterior - self._noise():
                self.longest = max(-length / STRETCH, STRETCH)
        at_two = self._expect(two)
        self.stuck = bool(np.abs(x2 - x0).max() < 1e-13)
        if at_two.log_posterior >= self.expected.log_posterior - self._noise():
            self._move_to(two, at_two)

    def mixing_pays(self, most_parameters: int) -> bool:
        """Whether the mode is near and the matrix of a Newton step would be too large."""
        near = self.log_posterior.n_parameters > most_parameters and self.scaled_gradient < MIXING_GRADIENT
        return near and not self.log_posterior.better_than_chance

    def mixing_step(self) -> None:
        """Take the best mixture of the last EM steps, or EM's own step where the mixture does not gain."""
        self.mixer = self.mixer or AndersonMixing(self._scale_p())
        x0, one = pack(self.at), self.expected.maximum()
        x1 = pack(one)
        self.stuck = bool(np.abs(x1 - x0).max() < 1e-13)
        there = unpack_like(self.mixer.mixed(x0, x1), self.at)
        expected = self._expect(there)
        if expected.log_posterior < self.expected.log_posterior - self._noise():
            self.mixer = None
            there, expected = one, self._expect(one)
        self._move_to(there, expected)

    def _noise(self) -> float:
        return 1e-13 * abs(self.expected.log_posterior)

    def newton_pays(self, most_parameters: int) -> bool:
        """Whether the mode is near, the matrix fits, and other steps have cost as much as a Newton step would."""
        if self.log_posterior.better_than_chance:
            return False
        near = self.log_posterior.n_parameters <= most_parameters and self.scaled_gradient < NEWTON_GRADIENT
        return near and self.passes >= self.newton_due

    def kept_step(self) -> bool:
        """Take a step with the curvature that was kept; return False where there is none, or it does not gain."""
        before = self.scaled_gradient
        if self.kept is None or before >= NEWTON_GRADIENT or (step_p := self.kept.step(self.gradient_p)) is None:
            return False
        gains = self._gains(step_p)
        if not gains or self.scaled_gradient > FALL * before:
            self.kept.factor = None
            # Below what rounding lets one tell no step can do better.
            self.stuck = gains and before <= self.rounding
        return gains

    def _keeping_step(self, kept: laplace.KeptCurvature) -> bool:
        """Take a Newton step, damped at once if needed, and keep its curvature."""
        damping = self.damping if self.damping >= laplace.LEAST_DAMPING else 0.0
        for used, factor in laplace.damped_factors(self.log_posterior, self.at, self.expected, damping):
            kept.factor = factor
            step_p = kept.step(self.gradient_p)
            if step_p is not None and self._gains(step_p):
                self.damping = used / STRETCH
                return True
        self.damping, kept.factor = laplace.DAMPING, None
        return False

    def newton_step(self) -> bool:
        """Take a Newton step, shortened once or damped if needed; return False where it does not gain."""
        if self.kept is not None:
            if self._keeping_step(self.kept):
                return True
        elif self.undamped > 0:
            step_p = laplace.newton_step(self.log_posterior, self.at, self.gradient_p, self.expected)
            if step_p is not None and any(self._gains(share * step_p) for share in (1.0, 0.25)):
                return True
            self.undamped -= 1
        else:
            density = (self.log_posterior, self.at, self.gradient_p, self.expected)
            for damping, step_p in laplace.damped_newton_steps(*density, self.damping):
                if self._gains(step_p):
                    self.damping = damping / STRETCH
                    return True
            self.damping = laplace.DAMPING
        self.newton_due = self.passes + max(30, 2 * self.newton_cost)
        return False

    def _gains(self, step_p: Floats) -> bool:
        """Take a step if it does not lower the log posterior."""
        there = unpack_like(pack(self.at) + step_p, self.at)
        expected = self._expect(there)
        gains = expected.log_posterior >= self.expected.log_posterior - self._noise()
        if gains:
            self._move_to(there, expected)
        return gains

    @cached_property
    def newton_cost(self) -> int:
        """Estimate what a Newton step costs, in passes, from the number of matrix cells touched and of parameters."""
        n_other, cells = self.log_posterior.states.n_states - 1, self.log_posterior.n_cells
        n_parameters = float(self.log_posterior.n_parameters)
        # Cells of a matrix that outgrows the cache cost several times as much.
        cells, factor = cells * (2.0 if n_parameters < 500 else 8.0), n_parameters**3 / 80.0
        return int((cells + factor) / (1e4 + 3.0 * n_other * self.log_posterior.n_votes))


class AndersonMixing:
    """Anderson mixing (1965): the combination of the last steps that ends nearest to where a linear map stands still.

    Of EM's steps lengths are measured in standard errors, in which its map is symmetric near the mode; mixing then
    gains as much as conjugate gradients would, for one pass per step.

    Parameters
    ----------
    scale_p
        One over the unit in which each coordinate is measured, of all or of each.

    Examples
    --------
    One coordinate that halves its distance to 1 with every step: two steps tell where it leads.

    >>> mixer = AndersonMixing()
    >>> one = mixer.mixed(np.array([0.0]), np.array([0.5]))
    >>> mixer.mixed(one, (1 + one) / 2)
    array([1.])
    """

    def __init__(self, scale_p: Floats | float = 1.0) -> None:
        self.scale_p = scale_p
        self.last: list[tuple[Floats, Floats]] = []

    def mixed(self, x0: Floats, x1: Floats) -> Floats:
        """Return the mixed step's end, from the start and the end of one step."""
        memory = max(2, min(MEMORY, MEMORY_NUMBERS // (2 * len(x1))))
        self.last = [*self.last[-memory:], ((x1 - x0) * self.scale_p, x1)]
        if len(self.last) == 1:
            return x1
        step_pm, end_pm = (np.stack(several, axis=1) for several in zip(*self.last, strict=True))
        weight_m, *_ = np.linalg.lstsq(np.diff(step_pm), step_pm[:, -1], rcond=1e-12)
        return np.asarray(x1 - np.diff(end_pm) @ weight_m)
