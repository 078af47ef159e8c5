"""`fit` with the workers of a cluster, for votes on this machine: the same result, up to rounding."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from moral_entropy.cluster.parts import send_votes
from moral_entropy.cluster.read import check_solver
from moral_entropy.consensus.fit import fit_parts
from moral_entropy.consensus.fitted import PartFit
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.parts import domains_of
from moral_entropy.consensus.patterns import collapse
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus, DrawSummary
from moral_entropy.progress import Progress
from moral_entropy.votes.table import Floats, Votes
from moral_entropy.workers import Workers


def fit_on_cluster(
    votes: Votes,
    workers: Workers,
    *,
    priors: Priors | None = None,
    n_parts: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Consensus:
    """Fit the consensus to votes on this machine, with the workers of a Dask cluster.

    Parameters
    ----------
    votes
        What was voted.
    workers
        `DaskWorkers(client)` of a connected Dask client.
    priors, progress
        As in `fit`.
    n_parts
        Parts to cut the items into; by default as many as tasks can run at once, and more for very many votes.
    **options
        Options of `fit`. Adam needs one machine.
    """
    chosen, priors = FitOptions(**options), priors or Priors()
    check_solver(chosen.solver)
    parts = send_votes(votes, workers, use_gold=chosen.use_gold, by_domain=chosen.by_domain, n_parts=n_parts)
    fitted = fit_parts(parts, priors, chosen, progress)
    fits = []
    for b, ballot in enumerate(votes.ballots):
        made = list(workers.in_order(items_of_part, fitted.handles, b))
        posterior_ik, *columns = (np.concatenate(column) for column in zip(*made, strict=True))
        domains = domains_of(votes, ballot) if chosen.by_domain else None
        patterns = collapse(ballot, use_gold=chosen.use_gold, domains=domains)
        fits.append(fitted.consensus.fits[b].on_items(ballot, patterns, posterior_ik, DrawSummary(*columns)))
    return Consensus(votes, tuple(fits), priors, chosen)


def items_of_part(one: PartFit, b: int) -> tuple[Floats, ...]:
    """Return the results of a fit for one part's items, as arrays."""
    fit = one.consensus.fits[b]
    return fit.posterior_ik, *(getattr(fit.summary, column.name) for column in fields(DrawSummary))
