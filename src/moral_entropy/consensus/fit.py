"""Votes → Consensus: find the mode, look at its curvature, draw from it.

The one function most users call. Each ballot is fitted on its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from moral_entropy.consensus import laplace
from moral_entropy.consensus.climb import MAX_PASSES, TOLERANCE, Summit
from moral_entropy.consensus.coordinates import pack, unpack
from moral_entropy.consensus.draws import summarise
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import Mode, find_mode, mode_in_log_ratios
from moral_entropy.consensus.patterns import Patterns, collapse
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Climb, Consensus, Curvature, DrawSummary, QuestionFit
from moral_entropy.consensus.warn import warn_about_fit
from moral_entropy.errors import FitError
from moral_entropy.votes.table import Ballot, Floats, Votes

SOLVERS = ("em", "adam")
COORDINATES = ("jacobian", "paper", "logit-mode")

EDGE = 1e-6
"""Probability below which a mode counts as lying on the edge of the simplex."""

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the share of it done."""


@dataclass(frozen=True)
class Settings:
    """How to fit, apart from the votes and the priors: the options of `fit`."""

    draws: int = 1_000
    seed: int = 0
    solver: str = "em"
    device: str = "cpu"
    coordinates: str = "jacobian"
    interval: float = 0.9
    use_gold: bool = False
    threads: int | None = None
    max_passes: int = MAX_PASSES
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        _one_of("solver", self.solver, SOLVERS)
        _one_of("coordinates", self.coordinates, COORDINATES)
        if self.draws < 0 or self.draws == 1:
            msg = f"draws is {self.draws}; use 0 for the mode alone, or at least 2."
            raise FitError(msg)
        if not 0.0 < self.interval < 1.0:
            msg = f"interval is {self.interval:g}; it is the mass of a central interval, between 0 and 1."
            raise FitError(msg)


def _one_of(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        msg = f"{what} is {value!r}; choose one of {', '.join(choices)}."
        raise FitError(msg)


def fit(
    votes: Votes,
    *,
    priors: Priors | None = None,
    draws: int = 1_000,
    seed: int = 0,
    solver: str = "em",
    device: str = "cpu",
    coordinates: str = "jacobian",
    interval: float = 0.9,
    use_gold: bool = False,
    threads: int | None = None,
    max_passes: int = MAX_PASSES,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> Consensus:
    """Fit the Bayesian consensus to votes: its mode, and draws from the Laplace approximation there.

    Parameters
    ----------
    votes
        What was voted.
    priors
        Flat prevalence and the paper's confusion rows (1.8 right, 1.2 wrong) by default.
    draws
        Posterior draws; 0 for the mode alone.
    seed
        Of the draws. The same votes and seed give the same bits.
    solver
        "em", or "adam" for the paper's climber, which needs PyTorch.
    device
        Where "adam" runs: "cpu", "cuda", …
    coordinates
        Of the Gaussian: "jacobian" (log ratios, with the change of variables in the curvature), "paper" (without),
        "logit-mode" (with, and centred at the mode in log ratios). `docs/adr` says why.
    interval
        Mass of every central interval.
    use_gold
        Clamp items of known truth to it, as evidence.
    threads
        At most this many threads; the result does not depend on it.
    max_passes, tolerance
        When to give up, and when to be content: see `climb`.
    progress
        Called with the name of a stage and the share of it done.

    Examples
    --------
    >>> from moral_entropy.votes.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=200, n_annotators=8, votes_per_item=5).votes, draws=200)
    >>> consensus.converged
    True
    """
    settings = Settings(draws, seed, solver, device, coordinates, interval, use_gold, threads, max_passes, tolerance)
    priors = priors or Priors()
    fits = []
    for n, ballot in enumerate(votes.ballots):
        advance = _share_of(progress, n, len(votes.ballots))
        fits.append(fit_ballot(votes, ballot, priors, settings, advance))
    return Consensus(votes, tuple(fits), priors, seed, interval)


def _share_of(progress: Progress | None, n: int, of: int) -> Progress:
    def advance(stage: str, share: float) -> None:
        if progress is not None:
            progress(stage, (n + share) / of)

    return advance


def fit_ballot(votes: Votes, ballot: Ballot, priors: Priors, settings: Settings, advance: Progress) -> QuestionFit:
    """Fit one ballot of some votes."""
    patterns = collapse(ballot, use_gold=settings.use_gold)
    alpha_k, beta_akv = priors.alpha_k(ballot), priors.beta_akv(ballot, votes)
    simplex = LogPosterior(patterns, alpha_k - 1.0, beta_akv - 1.0, settings.threads)
    mode = _find_mode(simplex, settings, advance)
    at = mode.summit.at
    curvature, drawn = _draw(simplex, LogPosterior(patterns, alpha_k, beta_akv, settings.threads), at, ballot, settings)
    posterior_ik = patterns.spread(simplex.posterior_rk(at))
    result = QuestionFit(
        ballot=ballot,
        patterns=patterns,
        prevalence_k=at.prevalence_k,
        confusion_akv=at.confusion_akv,
        posterior_ik=posterior_ik,
        climb=_climb(mode, settings.solver),
        curvature=curvature,
        prevalence_sk=drawn.prevalence_k,
        confusion_sakv=drawn.confusion_akv,
        summary=_summary(patterns, drawn, posterior_ik, ballot, settings, advance),
    )
    warn_about_fit(result, votes, mode.rival)
    return result


def _find_mode(simplex: LogPosterior, settings: Settings, advance: Progress) -> Mode:
    if settings.solver == "adam":
        from moral_entropy.consensus.adam import climb_with_adam

        summit = climb_with_adam(
            simplex,
            device=settings.device,
            seed=settings.seed,
            watch=lambda share: advance("climbing", share),
        )
        return Mode(summit, summit.passes, {"adam": summit.log_posterior}, None)
    # From a gradient of about a thousand standard errors down to the tolerance is the whole way, in logs.
    decades = np.log10(1e3 / settings.tolerance)

    def watch(steepness: float) -> None:
        advance("climbing", float(np.clip(np.log10(1e3 / max(steepness, 1e-300)) / decades, 0.0, 1.0)))

    return find_mode(simplex, tolerance=settings.tolerance, max_passes=settings.max_passes, watch=watch)


def _climb(mode: Mode, solver: str) -> Climb:
    summit: Summit = mode.summit
    return Climb(
        solver=solver,
        log_posterior=summit.log_posterior,
        gradient_norm=summit.gradient_norm,
        passes=mode.passes,
        converged=summit.converged,
        modes=dict(mode.log_posteriors),
    )


def _draw(
    simplex: LogPosterior, log_ratio: LogPosterior, at: Parameters, ballot: Ballot, settings: Settings
) -> tuple[Curvature, Parameters]:
    """Draw parameters from the Gaussian at the mode."""
    n_labels = ballot.n_labels
    if settings.draws == 0:
        nothing = unpack(np.empty((0, simplex.n_parameters)), n_labels)
        return Curvature("none", settings.coordinates, True, float("nan")), nothing
    # On the edge of the simplex, where flat priors let a mode lie, only the mode in log ratios has a curvature.
    coordinates = "logit-mode" if at.least < EDGE else settings.coordinates
    target = simplex if coordinates == "paper" else log_ratio
    centre = mode_in_log_ratios(log_ratio, at) if coordinates == "logit-mode" else at
    dense = simplex.n_parameters <= laplace.DENSE
    gaussian: laplace.Gaussian
    gaussian = laplace.dense_gaussian(target, centre) if dense else laplace.krylov_gaussian(target, centre)
    # Questions have streams of their own: one more question changes no draw of the others.
    names = (ballot.question.encode(), ballot.part.encode())
    rng = np.random.default_rng([settings.seed, *map(zlib.crc32, names)])
    normal_sp = rng.standard_normal((settings.draws, simplex.n_parameters))
    # Beyond e^600 a probability underflows, and its log is lost.
    x_sp = (pack(centre) + gaussian.step(normal_sp.T).T).clip(-600.0, 600.0)
    found = Curvature(gaussian.method, coordinates, gaussian.positive_definite, gaussian.smallest)
    return found, unpack(x_sp, n_labels)


def _summary(
    patterns: Patterns,
    drawn: Parameters,
    posterior_ik: Floats,
    ballot: Ballot,
    settings: Settings,
    advance: Progress,
) -> DrawSummary:
    if settings.draws == 0:
        unknown_i = np.full(ballot.n_items, np.nan)
        return DrawSummary(posterior_ik, unknown_i, unknown_i, unknown_i)
    return summarise(
        patterns,
        drawn.prevalence_k,
        drawn.confusion_akv,
        positive=ballot.positive,
        interval=settings.interval,
        threads=settings.threads,
        advance=lambda share: advance("drawing", share),
    )
