"""The density that a fit's draws are held against, with its gradient; and a check of the draws by it.

Coordinates are log ratios to the first weight and the first vote of every row, with the pseudo-counts of the fit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from moral_entropy.findings import Finding
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.draws import log_likelihoods
from moral_entropy.model.findings import finding_of
from moral_entropy.model.posterior import Parameters, Posterior, log_prior
from moral_entropy.model.search import unpack
from moral_entropy.votes.table import Floats

LAPLACE_DRAWS, FEWEST_DRAWS = 400, 100
"""Draws whose density is computed, at most, and below which no tail is fitted."""

MOST_WORK = 300_000_000
"""Votes times states times draws beyond which Pareto-k is left out: it should cost a second at most."""

CHECKED_NUMBERS = 1 << 24
"""Most numbers in the draws that are looked at."""

USABLE = 0.7
"""Pareto-k up to which the Gaussian can stand for the posterior (Vehtari et al. 2024)."""

HOPELESS, BY_ROOT = 1.25, 0.15
"""Pareto-k beyond which a fit is doubted: more than clean corpora reach (1.16 in 200 of 17 parameters, 1.11 in 300
others of 17 to 41), and so much times the root of the number of parameters: small mismatches of many add up."""


def posterior_of(fit: QuestionFit, *, to_sample: bool = False) -> Posterior:
    """Return the posterior of a fit: the height that its mode maximises, or a density to sample from.

    The default's rows have the prior Dirichlet(1 + pseudo-counts), whose density over log ratios has one more in every
    exponent. The paper samples the height itself.
    """
    jacobian = 1.0 if to_sample and fit.options.mixed else 0.0
    pseudo = Parameters(fit.pseudo.weight_dg + jacobian, fit.pseudo.confusion_akv + jacobian)
    return Posterior(fit.patterns, fit.states, pseudo.weight_dg[0], pseudo.confusion_akv, held=pseudo)


def density(posterior: Posterior, x_p: Floats) -> tuple[float, Floats]:
    """Return the log posterior density in log ratios, up to a constant, and its gradient.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> from moral_entropy.model.search import pack
    >>> [fitted] = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=0).fits
    >>> _, gradient = density(posterior_of(fitted), pack(fitted.mode))
    >>> bool(abs(gradient).max() < 1e-3)
    True
    """
    assert posterior.held is not None
    at = unpack(x_p, posterior.held)
    counts = posterior.expect(at)
    return posterior.objective(at, counts), posterior.gradient(at, counts)


def pareto_k(log_ratio_s: Floats) -> float:
    """Return the shape of the upper tail of importance ratios: the higher, the fewer draws decide.

    The estimate of Zhang & Stephens (2009), drawn to 0.5 as if by ten more ratios (Vehtari et al. 2024): with
    b = -k / scale the profile likelihood has k in closed form, and b is averaged over a grid weighted by it.

    Examples
    --------
    >>> pareto_k(np.random.default_rng(0).normal(0, 0.01, 400)) < 0.5
    True
    """
    log_s = np.sort(log_ratio_s - log_ratio_s.max())
    n = int(np.ceil(min(len(log_s) / 5.0, 3.0 * np.sqrt(len(log_s)))))
    excess_t = np.exp(log_s[-n:]) - np.exp(log_s[-n - 1])
    if excess_t[0] <= 0.0:
        # Ratios that tie leave nothing to fit a tail to.
        return float("inf") if np.ptp(log_s) > 0.0 else float("-inf")
    n_grid = 30 + int(np.sqrt(n))
    b_g = 1.0 / excess_t[-1] + (1.0 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))) / (
        3.0 * excess_t[int(n / 4.0 + 0.5) - 1]
    )
    k_g = np.log1p(-b_g[:, None] * excess_t).mean(axis=1)
    height_g = n * (np.log(-b_g / k_g) - k_g - 1.0)
    weight_g = np.exp(height_g - logsumexp(height_g))
    k = float(np.log1p(-float(weight_g @ b_g) * excess_t).mean())
    return (n * k + 10 * 0.5) / (n + 10)


def check_laplace(consensus: Consensus) -> list[Finding]:
    """Hold the draws of every fit against its posterior: each one's ratio of posterior density to the Gaussian's.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> votes = simulate_votes(n_items=2_000, n_annotators=4, votes_per_item=4).votes
    >>> [finding.level for finding in check_laplace(fit(votes))]
    ['good']
    """
    findings = []
    for fit in consensus.fits:
        posterior = posterior_of(fit, to_sample=True)
        assert posterior.held is not None
        n_votes, n_states, n = len(fit.patterns.code_v), fit.states.n_states, posterior.n_parameters
        n_cells = fit.ballot.n_annotators * fit.ballot.n_labels * n_states
        n_most = min(LAPLACE_DRAWS, CHECKED_NUMBERS // n_cells, MOST_WORK // max(n_votes * n_states, 1))
        if min(fit.n_draws, n_most) < FEWEST_DRAWS:
            reason = "too few draws" if fit.n_draws < FEWEST_DRAWS else "too many votes for a cheap check"
            text = f"Pareto-k left out: {reason}."
            findings.append(finding_of(fit, "laplace", "pareto_k", float("nan"), text=text))
            continue
        draws = Parameters(*(part[:n_most] for part in fit.drawn))
        height_s = log_likelihoods(fit.patterns, fit.states, draws) + log_prior(posterior.held, draws)
        # A rough figure: its further digits depend on the last bits of p.
        k = round(pareto_k(height_s - fit.log_density_s[:n_most]), 6)
        finding = finding_of(
            fit, "laplace", "pareto_k", k, n=min(n_most, fit.n_draws), level="good" if k <= USABLE else "info",
            text=f"Pareto-k of the posterior draws is {k:z.2f}, over {n:,} parameters.",
        )  # fmt: skip
        if k > max(HOPELESS, BY_ROOT * np.sqrt(n)):
            finding = replace(
                finding, level="doubt", text=f"the intervals are a rough approximation over {n:,} parameters.",
                meaning="The intervals may be too narrow, and the split of the entropy may be off.",
                remedy="moral-entropy validate --checks nuts checks by sampling (pip install 'moral-entropy[mcmc]').",
            )  # fmt: skip
        findings.append(finding)
    return findings
