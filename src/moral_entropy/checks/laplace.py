"""Are the intervals right? Whether the Laplace draws can stand for the posterior's, by the tail of importance ratios.

Takes a fit with draws. Each draw's ratio is the posterior density over the Gaussian's it came from; the heavier the
upper tail of the ratios, the less the Gaussian resembles the posterior. The tail's shape is Pareto-k (Vehtari et al.
2024): up to 0.5 reweighting the draws is safe, up to 0.7 it works, beyond it a handful of draws decide. Refits and
samples nothing: one pass over the votes for all draws together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from moral_entropy.checks.density import densities_of, draws_to_check
from moral_entropy.checks.vote_access import VoteAccess, VotesOf, each_fit, votes_of_fit
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.errors import FitError
from moral_entropy.findings import Finding
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import Floats

SIDE = "laplace"

USABLE = 0.7
"""Pareto-k up to which reweighted draws can be relied on."""

HOPELESS, BY_ROOT = 1.25, 0.15
"""Pareto-k beyond which a fit is doubted: more than clean corpora reach (1.16 in 200 of 17 parameters, 1.11 in 300
others of 17 to 41), and so much times the root of the number of parameters.

Small mismatches of many parameters add up: log ratios spread as the root of their number, and k with them. Held
against NUTS, k of up to 0.14 per root came with a mean p within 0.012 of the sampled one (the three twins in the
coordinates "jeffreys", simulated crowds with votes to spare), k of 0.18 and more with one 0.04 to 0.1 off (eMFD's twin
in "jacobian", thin simulated crowds)."""

DRAWS = 400
"""Draws looked at, at most."""

FEWEST = 100
"""Draws below which no tail is fitted."""

MOST_VOTES = 5e8
"""Votes times draws beyond which the check is left out: it should cost next to nothing."""


@dataclass(frozen=True, eq=False)
class Reweighted:
    """The Laplace draws as importance draws. Axis: **s** draw.

    Parameters
    ----------
    k
        Pareto-k of the ratios.
    log_weight_s
        Smoothed log weights, summing to 1.
    """

    k: float
    log_weight_s: Floats

    @property
    def ess(self) -> float:
        """How many equally weighted draws the weighted ones are worth."""
        return float(np.exp(-logsumexp(2.0 * self.log_weight_s)))

    def mean(self, value_s: Floats) -> Floats:
        """Reweighted mean over draws, the first axis."""
        return np.asarray(np.tensordot(np.exp(self.log_weight_s), value_s, axes=1))


def reweight(fit: QuestionFit, draws: int = DRAWS, *, access: VoteAccess | None = None) -> Reweighted:
    """Hold the first draws of a fit against the posterior density.

    Parameters
    ----------
    fit
        A fit whose draws are those of a Gaussian: `log_density_s` is there.
    draws
        Look at no more than these.
    access
        The votes, where they are not at hand.
    """
    if fit.log_density_s is None:
        msg = f"{fit.ballot.name}: the draws are not those of a Gaussian alone, so they have no importance ratios."
        raise FitError(msg)
    log_density_s = (access or votes_of_fit(fit)).log_posteriors(draws)
    return smooth(log_density_s - fit.log_density_s[:draws])


def smooth(log_ratio_s: Floats) -> Reweighted:
    """Replace the largest importance ratios by quantiles of the generalised Pareto distribution fitted to them.

    Parameters
    ----------
    log_ratio_s
        Log importance ratios, up to a constant.

    Examples
    --------
    Ratios that hardly vary have no tail to speak of.

    >>> smooth(np.random.default_rng(0).normal(0, 0.01, 400)).k < 0.5
    True
    """
    log_s = log_ratio_s - log_ratio_s.max()
    n_tail = int(np.ceil(min(len(log_s) / 5.0, 3.0 * np.sqrt(len(log_s)))))
    order_s = np.argsort(log_s, kind="stable")
    tail_t = order_s[-n_tail:]
    cut = np.exp(log_s[order_s[-n_tail - 1]]) if n_tail < len(log_s) else 0.0
    excess_t = np.exp(log_s[tail_t]) - cut
    if n_tail < 5 or excess_t[0] <= 0.0:
        # Too few draws, or ratios that tie: nothing to fit a tail to.
        k = float("inf") if n_tail < 5 or np.ptp(log_s) > 0.0 else float("-inf")
        return Reweighted(k, log_s - logsumexp(log_s))
    k, scale = fit_tail(excess_t)
    share_t = (np.arange(n_tail) + 0.5) / n_tail
    log_s[tail_t] = np.minimum(np.log(cut + _quantile(share_t, k, scale)), 0.0)
    return Reweighted(k, log_s - logsumexp(log_s))


def fit_tail(excess_t: Floats) -> tuple[float, float]:
    """Fit a generalised Pareto distribution to excesses over a threshold, smallest first: shape k and scale.

    The quasi-Bayesian estimate of Zhang & Stephens (2009): with b = -k / scale the profile likelihood has k in closed
    form, and b is averaged over a grid weighted by that likelihood. The shape is then drawn to 0.5 as if by ten more
    excesses (Vehtari et al. 2024), since tails are short.
    """
    n = len(excess_t)
    n_grid = 30 + int(np.sqrt(n))
    quartile = excess_t[int(n / 4.0 + 0.5) - 1]
    at_g = np.arange(n_grid) + 0.5
    b_g = 1.0 / excess_t[-1] + (1.0 - np.sqrt(n_grid / at_g)) / (3.0 * quartile)
    k_g = np.log1p(-b_g[:, None] * excess_t).mean(axis=1)
    height_g = n * (np.log(-b_g / k_g) - k_g - 1.0)
    weight_g = np.exp(height_g - logsumexp(height_g))
    b = float(weight_g @ b_g)
    k = float(np.log1p(-b * excess_t).mean())
    return (n * k + 10 * 0.5) / (n + 10), -k / b


def _quantile(share_t: Floats, k: float, scale: float) -> Floats:
    if abs(k) < 1e-12:
        return np.asarray(-scale * np.log1p(-share_t))
    return np.asarray(scale * np.expm1(-k * np.log1p(-share_t)) / k)


def examine_laplace(
    consensus: Consensus,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    votes_of: VotesOf | None = None,
    advance: Advance = ignore,
) -> list[Finding]:
    """Hold every fit's Laplace draws against its posterior.

    Parameters
    ----------
    consensus
        What was fitted, with draws.
    seed
        Unused: the draws are those of the fit.
    draws
        Of each fit, at most these.
    votes_of
        Returns the votes of the n-th fit; those on this machine when not given.
    advance
        Called with the share done.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=2_000, n_annotators=4, votes_per_item=4).votes
    >>> [finding.level for finding in examine_laplace(fit(votes))]
    ['good']
    """
    return [_examine(votes, draws_to_check(votes.fit, draws)) for votes in each_fit(consensus, votes_of, advance)]


def _examine(access: VoteAccess, draws: int) -> Finding:
    fit = access.fit
    skipped = _skipped(access, draws)
    if skipped:
        return finding_of(fit, SIDE, "pareto_k", float("nan"), text=skipped)
    found = reweight(fit, draws, access=access)
    n_parameters = densities_of(fit).log_ratio.n_parameters
    return finding_of(fit, SIDE, "pareto_k", found.k, n=draws, **_words(fit, found, draws, n_parameters))


def _words(fit: QuestionFit, found: Reweighted, draws: int, n_parameters: int) -> dict[str, Any]:
    """Put Pareto-k into words: level, text, and what it means and what to do where it is too high."""
    shown = f"Pareto-k of the posterior draws is {found.k:z.2f}"
    if found.k <= USABLE:
        positive = fit.ballot.positive
        share_s = fit.prevalence_sk[:draws, positive]
        moved = float(found.mean(share_s) - share_s.mean())
        text = (
            f"{shown}: corrected by weights they are worth {found.ess:.0f} of {draws}, and the share of "
            f"{fit.ballot.labels[positive]!r} moves by {100 * moved:+z.2f} points."
        )
        return {"level": "good", "text": text}
    shown = f"{shown}, over {n_parameters:,} parameters"
    if found.k <= max(HOPELESS, BY_ROOT * np.sqrt(n_parameters)):
        return {"text": f"{shown}: too high to correct the draws by weights, but usual for so many parameters."}
    return {
        "level": "doubt",
        "text": f"the intervals are a rough approximation over {n_parameters:,} parameters.",
        "meaning": "The intervals may be too narrow, and the split of the entropy may be off.",
        "cure": "moral-entropy validate --sides nuts checks by sampling (pip install 'moral-entropy[mcmc]').",
    }


def _skipped(access: VoteAccess, draws: int) -> str:
    """Say why a fit is left out, if it is."""
    fit = access.fit
    if draws == 0:
        return "no draws, so nothing to check."
    if draws < FEWEST:
        return f"Pareto-k left out: {draws} draws have too few large ratios to fit a tail to; {FEWEST} are needed."
    if fit.options.better_than_chance or fit.common is not None:
        return "its draws are more than a Gaussian's, so Pareto-k is not computed."
    if access.n_votes * draws > MOST_VOTES:
        return f"Pareto-k left out: {access.n_votes:,} votes × {draws} draws is too much for a cheap check."
    return ""
