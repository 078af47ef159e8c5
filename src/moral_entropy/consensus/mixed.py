"""The mode of the mixed model: items may lie between labels, and domains may differ.

One search, from vote shares: of several modes the highest is no better against known labels than the one found from
there (`docs/evidence`). The mode is that in log-ratio coordinates, so that rows and weights are near their means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from moral_entropy.consensus.densities import Densities
from moral_entropy.consensus.domain_prior import DomainPrior, learn_domain_prior
from moral_entropy.consensus.em import AndersonMixing, Optimum, maximise
from moral_entropy.consensus.laplace import KeptCurvature
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import ROUGH, SAMPLE_VOTES, leave_saddle
from moral_entropy.consensus.starts import share_start

ROUNDS = 100
"""Largest number of rounds in which weights of domains, and what they have in common, are learnt in turn."""

SETTLED = 1e-7
"""Tolerance of the searches in these rounds, in standard errors. What is learnt from a rougher search keeps its error,
and would so depend on the order in which votes are added up."""


def find_mixed_mode(
    density: LogPosterior, *, tolerance: float, max_passes: int, watch: Callable[[float], None] | None = None
) -> tuple[Densities, Optimum]:
    """Find the mode of the mixed model from vote shares; return also the density it is that of.

    Parameters
    ----------
    density
        The log posterior, with the prior of the common weights for every domain.
    tolerance, max_passes, watch
        As in `maximise`.
    """
    sample = density.sample_rows(SAMPLE_VOTES)
    at, passes, prior, kept = share_start(sample), 0, None, KeptCurvature()
    if density.patterns.n_domains > 1:
        # What domains have in common is told by all items: a sample can lack whole domains.
        density, at, prior, passes = _learn_domains(density, at, max_passes, watch, kept)
    elif sample.n_votes < density.n_votes:
        rough = maximise(sample, at, tolerance=ROUGH, max_passes=max_passes, watch=watch, kept=KeptCurvature())
        at, passes = rough.at, rough.passes
    optimum = maximise(density, at, tolerance=tolerance, max_passes=max_passes, watch=watch, kept=kept)
    optimum = leave_saddle(density, optimum, tolerance=tolerance, max_passes=max_passes)
    optimum = replace(optimum, passes=passes + optimum.passes, starts={"share": optimum.log_posterior})
    return Densities(density, density, domain_prior=prior), optimum


def _learn_domains(
    density: LogPosterior,
    at: Parameters,
    max_passes: int,
    watch: Callable[[float], None] | None,
    kept: KeptCurvature,
) -> tuple[LogPosterior, Parameters, DomainPrior, int]:
    """Learn in turn the weights of domains and what they have in common; return density, parameters, prior, passes.

    At first every domain is on its own: how much mass lies between labels is weakly determined, and a common prior that
    was learnt too early would keep too much of it there. What is in common then moves the same way round after round:
    the rounds are mixed as EM's steps are, which takes a seventh of them.
    """
    pseudo_g, n_domains, passes = density.pseudo_g[0], len(density.pseudo_g), 0
    density, prior = replace(density, pseudo_g=density.pseudo_g / n_domains), None
    mixer, last = AndersonMixing(), np.inf
    for _ in range(ROUNDS):
        rough = maximise(density, at, tolerance=SETTLED, max_passes=max_passes, watch=watch, kept=kept)
        at, passes = rough.at, passes + rough.passes
        found = learn_domain_prior(rough.expected.items_g - density.pseudo_g, pseudo_g, density.states.label_gk)
        if prior is not None:
            if found.is_near(prior):
                break
            moved = float(np.linalg.norm(found.coordinates_x - prior.coordinates_x))
            # Where a round moves farther than the one before, mixing has led astray: it begins anew.
            mixer, last = mixer if moved <= last else AndersonMixing(), moved
            found = found.towards(mixer.mixed(prior.coordinates_x, found.coordinates_x))
        density, prior = replace(density, pseudo_g=found.pseudo_dg(n_domains)), found
    return density, at, prior or found, passes
