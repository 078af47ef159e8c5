"""Votes → Consensus: find the mode, look at its curvature, draw from it.

The one function most users call. Each ballot is fitted on its own.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any, cast

import numpy as np

from moral_entropy.consensus.climb import Summit
from moral_entropy.consensus.drawing import draw
from moral_entropy.consensus.draws import summarise
from moral_entropy.consensus.exponent import choose_exponent
from moral_entropy.consensus.ground import Ground
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import Mode, find_mode
from moral_entropy.consensus.options import MAX_PASSES, TOLERANCE, FitOptions
from moral_entropy.consensus.patterns import Patterns, collapse
from moral_entropy.consensus.pooling import learn_rows, pool_fully, pooled_prior
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Climb, Consensus, DrawSummary, QuestionFit
from moral_entropy.consensus.temper import tempered
from moral_entropy.consensus.warn import warn_about_fit
from moral_entropy.progress import Progress
from moral_entropy.ties import settle_halves
from moral_entropy.votes.table import Ballot, Floats, Votes


def fit(
    votes: Votes,
    *,
    priors: Priors | None = None,
    draws: int = 1_000,
    seed: int = 0,
    solver: str = "em",
    device: str = "cpu",
    coordinates: str = "jeffreys",
    interval: float = 0.9,
    use_gold: bool = False,
    pooling: str = "none",
    constrain: str = "none",
    temper: str | float = "off",
    threads: int | None = None,
    max_passes: int = MAX_PASSES,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
    client: Any = None,
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
        Of the Gaussian: "jeffreys" (log ratios, mode and curvature with half of the change of variables, closest to
        NUTS), "paper" (none of it), "jacobian" (all of it, in the curvature alone), "logit-mode" (all of it, in both).
        `docs/adr` says why.
    interval
        Mass of every central interval.
    use_gold
        Clamp items of known truth to it, as evidence.
    pooling
        "none": each annotator's rows on their own; "partial": rows vary around common ones learnt from the votes,
        for thin data; "full": one matrix for all.
    constrain
        "better-than-chance" keeps every annotator's diagonal at chance or above.
    temper
        Power of each item's likelihood: "off" (1, the paper's model), "heldout" (learnt by predicting left-out
        votes), "gold" (learnt from items of known label), or a number. Parameters are fitted without it.
    threads
        At most this many threads; the result does not depend on it.
    max_passes, tolerance
        When to give up, and when to be content: see `climb`.
    progress
        Called with the name of a stage and the share of it done.
    client
        A Dask client, if its workers shall pass over the votes: the same answer, up to rounding.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=200, n_annotators=8, votes_per_item=5).votes, draws=200)
    >>> consensus.converged
    True
    """
    settings = FitOptions(
        draws=draws,
        seed=seed,
        solver=solver,
        device=device,
        coordinates=coordinates,
        interval=interval,
        use_gold=use_gold,
        pooling=pooling,
        constrain=constrain,
        temper=temper,
        threads=threads,
        max_passes=max_passes,
        tolerance=tolerance,
    )
    priors = priors or Priors()
    if client is not None:
        # A layer above: loaded only when asked for, as Dask is an extra.
        on_cluster = import_module("moral_entropy.cluster.fit")
        return cast(
            "Consensus", on_cluster.fit_votes(votes, client, priors=priors, progress=progress, **vars(settings))
        )
    fits = []
    for n, ballot in enumerate(votes.ballots):
        advance = share_of_progress(progress, n, len(votes.ballots))
        fits.append(fit_ballot(votes, ballot, priors, settings, advance))
    return Consensus(votes, tuple(fits), priors, settings)


def refit(
    consensus: Consensus,
    *,
    votes: Votes | None = None,
    priors: Priors | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Consensus:
    """Fit again with the votes, priors and options of an earlier fit, except for what is named.

    Parameters
    ----------
    consensus
        The earlier fit.
    votes, priors
        Other votes, other priors; those of the earlier fit when not given.
    progress
        As in `fit`.
    **changes
        Options of `fit` that should differ from the earlier ones.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=200, n_annotators=8, votes_per_item=5).votes
    >>> first = fit(votes, draws=200, constrain="better-than-chance")
    >>> refit(first, draws=0).options.constrain
    'better-than-chance'
    """
    options = {**vars(consensus.options), **changes}
    return fit(votes or consensus.votes, priors=priors or consensus.priors, progress=progress, **options)


def share_of_progress(progress: Progress | None, n: int, of: int) -> Progress:
    """Give the progress of the nth of several fits, as a share of all of them."""

    def advance(stage: str, share: float) -> None:
        if progress is not None:
            progress(stage, (n + share) / of)

    return advance


def fit_ballot(votes: Votes, ballot: Ballot, priors: Priors, settings: FitOptions, advance: Progress) -> QuestionFit:
    """Fit one ballot of some votes."""
    patterns = collapse(ballot, use_gold=settings.use_gold)
    ground, mode = _locate(votes, ballot, patterns, priors, settings, advance)
    at = mode.summit.at
    curvature, drawn, log_density_s = draw(ground, at, ballot, settings)
    exponent = choose_exponent(ground.simplex, at, ballot, settings.temper)
    at, drawn = for_all(at, ballot), for_all(drawn, ballot)
    whole = LogPosterior(patterns, ground.alpha_k, ground.beta_akv, settings.threads)
    posterior_ik = patterns.spread(settle_halves(whole.posterior_rk(tempered(at, exponent.value))))
    # Before the draws are turned from logs into probabilities, as both at once can be large.
    summary = summary_of(patterns, tempered(drawn, exponent.value), posterior_ik, ballot, settings, advance)
    result = QuestionFit(
        ballot=ballot,
        patterns=patterns,
        prevalence_k=at.prevalence_k,
        confusion_akv=at.confusion_akv,
        posterior_ik=posterior_ik,
        climb=as_climb(mode, settings.solver),
        curvature=curvature,
        prevalence_sk=drawn.prevalence_k,
        confusion_sakv=drawn.confusion_akv,
        summary=summary,
        alpha_k=ground.alpha_k,
        beta_akv=np.broadcast_to(ground.beta_akv, at.confusion_akv.shape),
        exponent=exponent,
        common=ground.rows,
        options=settings,
        log_density_s=log_density_s,
    )
    warn_about_fit(result, votes, mode.rival)
    return result


def _locate(
    votes: Votes, ballot: Ballot, patterns: Patterns, priors: Priors, settings: FitOptions, advance: Progress
) -> tuple[Ground, Mode]:
    """Find the mode, annotators pooled as asked."""
    alpha_k, beta_akv = priors.alpha_k(ballot), priors.beta_akv(ballot, votes)
    if settings.pooling == "partial":
        row_kv = priors.row_kv(ballot)
        pooled = learn_rows(
            patterns,
            alpha_k,
            row_kv,
            beta_akv - row_kv,
            threads=settings.threads,
            tolerance=settings.tolerance,
            max_passes=settings.max_passes,
            watch=lambda share: advance("climbing", share),
        )
        return Ground(pooled.density, pooled.density, pooled.rows, pooled.nested), pooled.mode
    if settings.pooling == "full":
        patterns, beta_akv = pool_fully(patterns), pooled_prior(priors.row_kv(ballot), beta_akv)
    chance = settings.better_than_chance
    simplex = LogPosterior(patterns, alpha_k - 1.0, beta_akv - 1.0, settings.threads, better_than_chance=chance)
    log_ratio = replace(simplex, pseudo_k=alpha_k, pseudo_akv=beta_akv)
    return Ground(simplex, log_ratio), find_best_mode(simplex, settings, advance)


def for_all(at: Parameters, ballot: Ballot) -> Parameters:
    """Give every annotator the matrix, where one was fitted for all."""
    *lead, n_fitted, n_true, n_voted = at.log_confusion_akv.shape
    if n_fitted == ballot.n_annotators:
        return at
    shape = (*lead, ballot.n_annotators, n_true, n_voted)
    return Parameters(at.log_prevalence_k, np.broadcast_to(at.log_confusion_akv, shape))


def find_best_mode(simplex: LogPosterior, settings: FitOptions, advance: Progress) -> Mode:
    """Find the mode with the solver asked for."""
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


def as_climb(mode: Mode, solver: str) -> Climb:
    """Say how the search for the mode ended."""
    summit: Summit = mode.summit
    return Climb(
        solver=solver,
        log_posterior=summit.log_posterior,
        gradient_norm=summit.gradient_norm,
        passes=mode.passes,
        converged=summit.converged,
        modes=dict(mode.log_posteriors),
    )


def summary_of(
    patterns: Patterns,
    drawn: Parameters,
    posterior_ik: Floats,
    ballot: Ballot,
    settings: FitOptions,
    advance: Progress,
) -> DrawSummary:
    """Sum up every item over the draws; with none, the mode stands for the mean."""
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
