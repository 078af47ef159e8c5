"""Fitted parts: votes in parts, and the fit's results for their items.

`fit_parts` returns them; grading, outliers, checks and tables are computed from them, on one machine as on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from moral_entropy.consensus.draws import summarise, summarise_mixed
from moral_entropy.consensus.entropy import EntropyParts, decompose_entropy
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.parts import LocalParts, Part, Parts, likelihood_of
from moral_entropy.consensus.patterns import as_rows
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus, DrawSummary, ParameterFit, QuestionFit, nothing_between
from moral_entropy.consensus.tempering import tempered
from moral_entropy.progress import Progress, share_of_progress, silent
from moral_entropy.ties import settle_halves
from moral_entropy.votes.table import UNKNOWN, Floats, Votes


@dataclass(frozen=True, eq=False)
class PartFit:
    """One part, and the fit's results for its items.

    Parameters
    ----------
    part
        The part.
    consensus
        The consensus on its items.
    between
        By ballot, the share of each item's entropy that lies between groups of annotators; None where no truth per
        group was found.
    """

    part: Part
    consensus: Consensus
    between: tuple[Floats, ...] | None = None

    @cached_property
    def entropies(self) -> tuple[EntropyParts, ...]:
        """By ballot, the entropies of its items."""
        shares = self.between or (None,) * len(self.consensus.fits)
        found = map(decompose_entropy, self.consensus.fits)
        return tuple(parts.with_between(share_i) for parts, share_i in zip(found, shares, strict=True))


def fit_of_part(part: Part, b: int, found: ParameterFit, advance: Progress = silent) -> QuestionFit:
    """Compute the results of one ballot for the items of one part."""
    ballot, patterns = part.ballot(b), part.patterns[b]
    found = found.for_annotators(ballot.n_annotators)
    likelihood = likelihood_of(patterns, part.threads, mixed=found.mixture is not None)
    posterior_ik = patterns.spread(settle_halves(likelihood.posterior_rk(tempered(found.at, found.exponent.value))))
    if found.mixture is not None and found.n_draws:
        summary = summarise_mixed(
            patterns,
            found.mixture.states,
            found.mixture.weight_sdg,
            found.confusion_sakv,
            positive=ballot.positive,
            interval=found.options.interval,
            threads=part.threads,
            advance=lambda share: advance("drawing", share),
        )
    elif found.n_draws:
        summary = summarise(
            patterns,
            found.prevalence_sk,
            found.evidence_sakv,
            positive=ballot.positive,
            interval=found.options.interval,
            threads=part.threads,
            advance=lambda share: advance("drawing", share),
        )
    else:
        summary = without_draws(posterior_ik, patterns.spread(likelihood.interior_r(found.at)))
    return found.on_items(ballot, patterns, posterior_ik, summary)


def without_draws(posterior_ik: Floats, interior_i: Floats | None = None) -> DrawSummary:
    """Return the mode in place of the mean, with unknown intervals, expected entropies and ambiguity."""
    unknown_i = np.full(len(posterior_ik), np.nan)
    interior_i = nothing_between(len(posterior_ik)) if interior_i is None else interior_i
    return DrawSummary(posterior_ik, unknown_i, unknown_i, unknown_i, unknown_i, interior_i)


def fit_part(part: Part, priors: Priors, options: FitOptions, progress: Progress, *found: ParameterFit) -> PartFit:
    """Compute the results of all ballots for the items of one part."""
    fits = tuple(fit_of_part(part, b, one, share_of_progress(progress, b, len(found))) for b, one in enumerate(found))
    return PartFit(part, Consensus(part.votes, fits, priors, options))


@dataclass(frozen=True, eq=False)
class FittedParts:
    """Votes in parts, fitted.

    Parameters
    ----------
    parts
        The votes.
    handles
        One `PartFit` per part, as handles of the workers.
    consensus
        The consensus on `parts.votes`: on all items on one machine; on a cluster on item classes, without
        probabilities.
    """

    parts: Parts
    handles: Sequence[Any]
    consensus: Consensus

    @cached_property
    def class_consensus(self) -> Consensus:
        """The consensus on item classes, without their probabilities."""
        consensus = self.consensus
        if not self.parts.whole:
            return consensus
        return on_classes(self.parts.class_votes, consensus.fits, consensus.priors, consensus.options)

    def with_between(self, between: tuple[Floats, ...] | None) -> FittedParts:
        """Return the same fits with the entropy between groups told apart, which is known on one machine alone."""
        if between is None:
            return self
        [one] = self.handles
        return replace(self, handles=[replace(one, between=between)])

    def each(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """Apply `work` to every fitted part; return handles of the results."""
        return self.parts.workers.each(work, self.handles, *given)

    def fetch_each(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """Apply `work` to every fitted part; return the results, in the order of the parts."""
        return self.parts.workers.fetch_all(self.each(work, *given))

    def total(self, work: Callable[..., Any], *given: Any) -> Any:
        """Apply `work` to every fitted part; return the sum of the results."""
        return self.parts.workers.total(self.each(work, *given))

    def stream(self, work: Callable[..., Iterable[Any]], *given: Any) -> Iterator[Any]:
        """Yield the results of `work`, a generator, part by part."""
        return self.parts.workers.stream(work, self.handles, *given)


def fitted_parts(
    parts: Parts, found: Sequence[ParameterFit], priors: Priors, options: FitOptions, progress: Progress = silent
) -> FittedParts:
    """Compute the results for the items of every part, from the fitted parameters."""
    sent = [parts.workers.send(one) for one in found]
    # Only this process can show progress.
    handles = parts.each(fit_part, priors, options, progress if parts.whole else silent, *sent)
    if parts.whole:
        return FittedParts(parts, handles, handles[0].consensus)
    return FittedParts(parts, handles, on_classes(parts.votes, found, priors, options))


def local_fit(consensus: Consensus) -> FittedParts:
    """Return a consensus on this machine as the only fitted part."""
    patterns = tuple(fit.patterns for fit in consensus.fits)
    part = Part(consensus.votes, patterns, threads=consensus.options.threads)
    parts = LocalParts(votes=consensus.votes, handles=[part])
    return FittedParts(parts, [PartFit(part, consensus)], consensus)


def on_classes(
    class_votes: Votes,
    found: Sequence[ParameterFit],
    priors: Priors,
    options: FitOptions,
    summaries: Sequence[DrawSummary] | None = None,
) -> Consensus:
    """Return a consensus on item classes, with parameters found on all items; with probabilities where given."""
    fits = []
    for b, (ballot, one) in enumerate(zip(class_votes.ballots, found, strict=True)):
        unknown_ik = np.full((ballot.n_items, ballot.n_labels), np.nan)
        summary = without_draws(unknown_ik) if summaries is None else summaries[b]
        rows = as_rows(ballot, np.full(ballot.n_items, UNKNOWN, dtype=np.int16))
        fits.append(one.for_annotators(ballot.n_annotators).on_items(ballot, rows, summary.mean_ik, summary))
    return Consensus(class_votes, tuple(fits), priors, options)
