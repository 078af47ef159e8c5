"""`fit` with the workers of a cluster, for votes on this machine: the same result, up to rounding."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from moral_entropy.cluster.parts import send_votes
from moral_entropy.cluster.read import check_solver
from moral_entropy.consensus.counting import count_part_once
from moral_entropy.consensus.fit import fit_parts
from moral_entropy.consensus.fitted import PartFit
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.parts import Part, make_part
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
    whole, fits = counted_part(votes, fitted.consensus), []
    for b, ballot in enumerate(votes.ballots):
        made = list(workers.in_order(items_of_part, fitted.handles, b))
        posterior_ik, *columns = (np.concatenate(column) for column in zip(*made, strict=True))
        fits.append(fitted.consensus.fits[b].on_items(ballot, whole.patterns[b], posterior_ik, DrawSummary(*columns)))
    return Consensus(votes, tuple(fits), priors, fitted.consensus.options)


def counted_part(votes: Votes, consensus: Consensus) -> Part:
    """Hold all votes as one part, those of annotators counted as one only once: the rows that were fitted."""
    options = consensus.options
    part = make_part(votes, options.use_gold, options.by_domain, options.threads)
    return count_part_once(part, [fit.copies if fit.counted_groups else None for fit in consensus.fits])


def items_of_part(one: PartFit, b: int) -> tuple[Floats, ...]:
    """Return the results of a fit for one part's items, as arrays."""
    fit = one.consensus.fits[b]
    return fit.posterior_ik, *(getattr(fit.summary, column.name) for column in fields(DrawSummary))
