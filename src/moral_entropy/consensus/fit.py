"""Votes → Consensus: find the mode, compute its curvature, draw from it.

`fit` is the one function most users call; `fit_parts` is the same for votes in parts. Each ballot is fitted on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from moral_entropy.consensus.counting import count_copies_once
from moral_entropy.consensus.densities import Densities
from moral_entropy.consensus.draws import draw
from moral_entropy.consensus.em import Optimum
from moral_entropy.consensus.fit_findings import warn_about
from moral_entropy.consensus.fitted import FittedParts, fitted_parts
from moral_entropy.consensus.limits import affordable_draws
from moral_entropy.consensus.mixed import find_mixed_mode
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import find_mode
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.parts import Parts, domains_of, local_parts
from moral_entropy.consensus.pooling import choose_pooling, learn_mixed_rows, learn_rows, pooled_prior
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Climb, Consensus, Mixture, ParameterFit
from moral_entropy.consensus.states import between_labels
from moral_entropy.consensus.tempering import choose_exponent
from moral_entropy.options import lists_options
from moral_entropy.progress import Progress, share_of_progress, silent
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Votes


@lists_options(FitOptions)
def fit(
    votes: Votes | Any,
    options: FitOptions | None = None,
    *,
    priors: Priors | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Consensus:
    """Fit the Bayesian consensus to votes: its mode, and draws from the Laplace approximation there.

    Parameters
    ----------
    votes
        What was voted: `Votes`, or a file or dataframe that `read_votes` reads without being told how.
    options
        All options as one object; keywords change some of them.
    priors
        Flat prevalence and the paper's confusion rows (1.8 right, 1.2 wrong) by default.
    progress
        Called with the name of a stage and the share of it done.
    **changes
        Options by name.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=200, n_annotators=8, votes_per_item=5).votes, draws=200)
    >>> consensus.converged
    True
    """
    options = (options or FitOptions()).changed(changes, "fit")
    votes = votes if isinstance(votes, Votes) else read_votes(votes)
    parts = local_parts(votes, use_gold=options.use_gold, by_domain=options.by_domain, threads=options.threads)
    return fit_parts(parts, priors or Priors(), options, progress).consensus


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
    priors, votes = priors or consensus.priors, votes or consensus.votes
    return fit(votes, consensus.options, priors=priors, progress=progress, **changes)


def fit_parts(parts: Parts, priors: Priors, options: FitOptions, progress: Progress | None = None) -> FittedParts:
    """Fit the consensus to votes in parts: the search and the draws here, every pass over the votes with the workers.

    Parameters
    ----------
    parts
        What was voted.
    priors, options
        As in `fit`.
    progress
        Called with the name of a stage and the share of it done.
    """
    counted = count_copies_once(parts, options)
    options = replace(options, pooling=choose_pooling(parts.votes, options))
    found = parameters_of(counted.parts, priors, options, progress)
    found = [counted.complete(b, one) for b, one in enumerate(found)]
    fitted = fitted_parts(counted.parts, found, priors, options, progress or silent)
    warn_about(fitted.consensus.findings)
    return fitted


def parameters_of(
    parts: Parts, priors: Priors, options: FitOptions, progress: Progress | None = None
) -> list[ParameterFit]:
    """Find the mode of every ballot, and draw around it; nobody looks for near-copies."""
    where, n_ballots = parts.pooled() if options.pooling == "full" else parts, len(parts.votes.ballots)
    return [
        find_parameters(where, b, priors, options, share_of_progress(progress, b, n_ballots)) for b in range(n_ballots)
    ]


def find_parameters(parts: Parts, b: int, priors: Priors, options: FitOptions, advance: Progress) -> ParameterFit:
    """Find the mode of one ballot, and draw around it."""
    ballot = parts.votes.ballots[b]
    n_draws = affordable_draws(ballot, options, len(parts.votes.ballots))
    locate = _locate_mixed if options.mixed else _locate
    densities, optimum = locate(parts, b, priors, options, advance)
    at = optimum.at
    curvature, drawn, log_density_s = draw(densities, at, ballot, replace(options, draws=n_draws))
    log_sakv = drawn.log_confusion_akv
    mixture = _mixture_of(densities, at, drawn) if options.mixed else None
    return ParameterFit(
        prevalence_k=mixture.prevalence_k if mixture else at.weight_g,
        confusion_akv=at.confusion_akv,
        climb=_climb_of(optimum, options.solver),
        curvature=curvature,
        rival=optimum.rival,
        prevalence_sk=mixture.prevalence_sk if mixture else drawn.weight_g,
        # In place: logs and probabilities at once can be large.
        confusion_sakv=np.exp(log_sakv, out=log_sakv if log_sakv.flags.writeable else None),
        alpha_g=densities.alpha_g,
        beta_akv=np.broadcast_to(densities.beta_akv, at.confusion_akv.shape),
        exponent=choose_exponent(parts, b, densities.simplex, at, options.temper),
        options=options,
        mixture=mixture,
        common=densities.rows,
        log_density_s=log_density_s,
    )


def _locate_mixed(
    parts: Parts, b: int, priors: Priors, options: FitOptions, advance: Progress
) -> tuple[Densities, Optimum]:
    """Find the mode of the mixed model, annotators pooled as asked."""
    ballot = parts.votes.ballots[b]
    states = between_labels(ballot.n_labels)
    row_kv, beta_akv = priors.row_kv(ballot, mixed=True), priors.beta_akv(ballot, parts.votes, mixed=True)
    if options.pooling == "full":
        beta_akv = pooled_prior(row_kv, beta_akv)
    n_domains = domains_of(parts.votes, ballot).number if options.by_domain else 1
    alpha_g = states.size_g.copy()
    alpha_g[: ballot.n_labels] = priors.alpha_k(ballot)
    density = parts.log_posterior(
        b,
        np.tile(alpha_g, (n_domains, 1)),
        beta_akv,
        threads=options.threads,
        better_than_chance=options.better_than_chance,
        between=states,
    )
    watch = _watching(options, advance)
    rows = None
    if options.pooling == "partial":
        density, rows = learn_mixed_rows(density, beta_akv - row_kv, row_kv)
    densities, optimum = find_mixed_mode(
        density, tolerance=options.fit_tolerance, max_passes=options.max_passes, watch=watch
    )
    return replace(densities, rows=rows), optimum


def _locate(parts: Parts, b: int, priors: Priors, options: FitOptions, advance: Progress) -> tuple[Densities, Optimum]:
    """Find the mode of the paper's model, annotators pooled as asked."""
    ballot = parts.votes.ballots[b]
    alpha_k, beta_akv, row_kv = priors.alpha_k(ballot), priors.beta_akv(ballot, parts.votes), priors.row_kv(ballot)
    if options.pooling == "partial":
        known_akv = beta_akv - row_kv
        return learn_rows(
            parts.log_posterior(b, alpha_k, known_akv, threads=options.threads),
            parts.pooled().log_posterior(b, alpha_k, row_kv[None] + known_akv.sum(axis=0), threads=options.threads),
            row_kv,
            tolerance=options.fit_tolerance,
            max_passes=options.max_passes,
            watch=lambda share: advance("climbing", share),
        )
    if options.pooling == "full":
        beta_akv = pooled_prior(row_kv, beta_akv)
    chance = options.better_than_chance
    simplex = parts.log_posterior(b, alpha_k - 1.0, beta_akv - 1.0, threads=options.threads, better_than_chance=chance)
    log_ratio = replace(simplex, pseudo_g=alpha_k, pseudo_akv=beta_akv)
    return Densities(simplex, log_ratio), _find_best_mode(simplex, options, advance)


def _find_best_mode(simplex: LogPosterior, options: FitOptions, advance: Progress) -> Optimum:
    """Find the mode with the solver asked for."""
    if options.solver == "adam":
        from moral_entropy.consensus.adam import maximise_with_adam

        optimum = maximise_with_adam(
            simplex,
            device=options.device,
            seed=options.seed,
            watch=lambda share: advance("climbing", share),
        )
        return replace(optimum, starts={"adam": optimum.log_posterior})
    watch = _watching(options, advance)
    return find_mode(simplex, tolerance=options.fit_tolerance, max_passes=options.max_passes, watch=watch)


def _watching(options: FitOptions, advance: Progress) -> Callable[[float], None]:
    """Return what tells the progress of a search from its steepness."""
    # From a gradient of about a thousand standard errors down to the tolerance is the whole way, in logs.
    decades = np.log10(1e3 / options.fit_tolerance)

    def watch(steepness: float) -> None:
        advance("climbing", float(np.clip(np.log10(1e3 / max(steepness, 1e-300)) / decades, 0.0, 1.0)))

    return watch


def _mixture_of(densities: Densities, at: Parameters, drawn: Parameters) -> Mixture:
    """Collect the weights of the states, at the mode and in every draw."""
    density, prior = densities.log_ratio, densities.domain_prior
    strength = prior.strength if prior else float("inf")
    votes_k = density.votes_c.reshape(-1, density.states.n_labels).sum(axis=0)
    return Mixture(density.states, at.weight_g, drawn.weight_g, density.items_d, votes_k, strength)


def _climb_of(optimum: Optimum, solver: str) -> Climb:
    """Describe how the search for the mode ended."""
    return Climb(
        solver=solver,
        log_posterior=optimum.log_posterior,
        gradient_norm=optimum.gradient_norm,
        passes=optimum.passes,
        converged=optimum.converged,
        modes=dict(optimum.starts),
        flat=optimum.flat,
    )
