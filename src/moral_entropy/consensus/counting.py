"""Annotators who are counted as one: near-copies found in the votes, and those whom the user names.

Runs around the fit: before it every group gets one vote per item, after it the members who no longer vote get confusion
rows estimated from the posterior. Rules are graded on all votes as they were cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from moral_entropy.consensus.counted_once import count_once, rows_from_votes, votes_by_state
from moral_entropy.consensus.dependence import correlation, effective_votes, residual_pairs
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.near_copies import NearCopies, find_near_copies
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.parts import Part, Parts, likelihood_of
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.result import ParameterFit, SilentRows
from moral_entropy.votes.annotators import merged_annotators
from moral_entropy.votes.table import Ballot, Floats, Ints

MOST_VOTES = 2_000_000
"""Most votes that near-copies are looked for in; of more, only those of a sample of rows, drawn with a fixed seed."""


@dataclass(frozen=True, eq=False)
class CountedParts:
    """Votes in parts with every group of annotators as one.

    Parameters
    ----------
    parts
        The votes that are fitted.
    cast
        The votes as they were cast.
    copies
        By ballot, who was found to copy whom, or was named; None where nobody was looked for.
    looked_at
        By ballot, the rows that were looked at: a sample where there are very many.
    """

    parts: Parts
    cast: Parts
    copies: tuple[NearCopies | None, ...]
    looked_at: tuple[Patterns | None, ...]

    def complete(self, b: int, found: ParameterFit) -> ParameterFit:
        """Add to a fit what it says of annotators together: rows of copies, and the effective number of votes."""
        found = self._add_rows(b, found)
        copies, rows = self.copies[b], self.looked_at[b]
        if copies is None or rows is None or rows.n_annotators == 1:
            return found
        counted = count_once(rows, copies.group_a, copies.strength_a) if self.parts is not self.cast else rows
        posterior_rz = likelihood_of(counted, found.options.threads, mixed=found.at.mixed).posterior_rz(found.at)
        vote_azv = found.states.votes_azv(found.rows_akv)
        pairs = correlation(residual_pairs(rows, posterior_rz, vote_azv))
        worth = effective_votes(rows, pairs, mass=found.options.interval, seed=found.options.seed)
        return replace(found, worth=worth)

    def _add_rows(self, b: int, found: ParameterFit) -> ParameterFit:
        """Add the confusion rows of the members who were not counted."""
        copies, found = self.copies[b], found.for_annotators(self.cast.votes.ballots[b].n_annotators)
        if copies is None or self.parts is self.cast or not copies.any:
            return replace(found, copies=copies)
        silent = np.concatenate([group[1:] for group in copies.groups])
        asked = [
            self.cast.workers.ask(silent_votes, cast, counted, b, found.at, silent)
            for cast, counted in zip(self.cast.handles, self.parts.handles, strict=True)
        ]
        seen_avz: Floats = sum(self.cast.workers.fetch_all(asked))
        mean_akv, draw_sakv = rows_from_votes(
            seen_avz, found.states.mix_zk, found.beta_akv[silent], draws=found.n_draws, rng=found.options.seed
        )
        return replace(found, copies=copies, silent=SilentRows(silent, mean_akv, draw_sakv))


def count_copies_once(parts: Parts, options: FitOptions) -> CountedParts:
    """Look for near-copies, and count those found and those named as one, as far as the options say so."""
    ballots = range(len(parts.votes.ballots))
    if options.dependence == "off" and not options.merge:
        return CountedParts(parts, parts, *(tuple(None for _ in ballots),) * 2)
    rows = tuple(
        parts.log_posterior(b, *_nothing(parts.votes.ballots[b])).sample_rows(MOST_VOTES).patterns for b in ballots
    )
    copies = tuple(_find(parts, b, rows[b], options) for b in ballots)
    once = tuple(one if one.any else None for one in copies)
    if not any(once) or not options.counts_once:
        return CountedParts(parts, parts, copies, rows)
    return CountedParts(replace(parts, handles=parts.each(count_part_once, once)), parts, copies, rows)


def _find(parts: Parts, b: int, rows: Patterns, options: FitOptions) -> NearCopies:
    """Find the near-copies among the annotators of a ballot; those named are together from the beginning."""
    named_a = None
    if options.merge:
        named_a = merged_annotators(options.merge, parts.votes.annotators)[parts.votes.ballots[b].annotator_a]
    looked_for = {} if options.dependence == "merge" or not options.merge else {"bar": np.inf}
    return find_near_copies(rows, together_a=named_a, **looked_for)


def _nothing(ballot: Ballot) -> tuple[Floats, Floats]:
    return np.zeros(ballot.n_labels), np.zeros((ballot.n_annotators, ballot.n_labels, ballot.n_labels))


def count_part_once(part: Part, copies: Sequence[NearCopies | None]) -> Part:
    """Let every group of annotators vote as one in one part."""
    patterns = list(part.patterns)
    agreed = list(part.agreed)
    for b, one in enumerate(copies):
        if one is not None:
            patterns[b] = count_once(patterns[b], one.group_a, one.strength_a)
            if agreed:
                agreed[b] = replace(agreed[b], patterns=count_once(agreed[b].patterns, one.group_a, one.strength_a))
    return Part(part.votes, tuple(patterns), tuple(agreed), part.threads)


def silent_votes(cast: Part, counted: Part, b: int, at: Parameters, annotators: Ints) -> Floats:
    """Add up, in one part, the votes of annotators who were not counted, by the states of their items."""
    likelihood = likelihood_of(counted.rows(b), counted.threads, mixed=at.mixed)
    return votes_by_state(cast.rows(b), likelihood.posterior_rz(at), annotators)
