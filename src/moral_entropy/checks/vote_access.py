"""All that the cheap checks ask of the votes of a fit, in one class; wherever the votes lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from moral_entropy.checks.density import drawn_of, log_heights, log_over_base, pseudo_counts
from moral_entropy.checks.links import (
    PAIRS_OF_VOTES,
    SAMPLE_PAIRS,
    Link,
    by_size,
    items_of_groups,
    join_links,
    neighbours,
    pairs_of_votes,
    same_voters,
    shared_in,
    spacing,
)
from moral_entropy.consensus.fitted import FittedParts, PartFit, local_fit
from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.parts import Part, Parts
from moral_entropy.consensus.patterns import Patterns, pool_fully
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.tempering import Exponent, learn_from_votes
from moral_entropy.progress import Advance
from moral_entropy.votes.table import Floats, Ints, Votes


@dataclass(frozen=True)
class Unsupported:
    """Items whose consensus label nobody voted for.

    Parameters
    ----------
    n, n_voted
        How many there are, of so many with a vote.
    by_votes
        On how many the votes themselves are read the other way round; on the others the prevalence outweighs them.
    first
        The id of the first, None where there is none.
    """

    n: float
    n_voted: float
    by_votes: float
    first: object


@dataclass(frozen=True, eq=False)
class VoteAccess:
    """The votes of one fit.

    Parameters
    ----------
    fitted
        The votes in parts, and their fits.
    b
        Which of them.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> one = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=9).fits[0]
    >>> rows, count_r = votes_of_fit(one).sample(10, seed=0)
    >>> rows.n_rows, len(count_r), len(votes_of_fit(one).log_likelihoods(5))
    (10, 10, 5)
    """

    fitted: FittedParts
    b: int

    @property
    def fit(self) -> QuestionFit:
        """The fit."""
        return self.fitted.consensus.fits[self.b]

    @property
    def parts(self) -> Parts:
        """The parts that hold the votes."""
        return self.fitted.parts

    @cached_property
    def whole(self) -> LogPosterior:
        """The density whose mode was looked for, with a row of its own for every annotator, and without any bound."""
        return self.parts.log_posterior(self.b, *pseudo_counts(self.fit), between=self.fit.between)

    @cached_property
    def shared(self) -> tuple[Parts, LogPosterior]:
        """The same with one matrix where it was fitted for all, and the parts it is of."""
        if self.fit.pooling != "full":
            return self.parts, self.whole
        parts = self.parts.pooled()
        pseudo_akv = np.ascontiguousarray(self.whole.pseudo_akv[:1])
        return parts, parts.log_posterior(self.b, self.whole.pseudo_g, pseudo_akv, between=self.fit.between)

    @cached_property
    def density(self) -> LogPosterior:
        """The same density; where few votes lie in parts, on rows that were fetched, as they are needed often."""
        if self.parts.whole or spacing(self._pairs, SAMPLE_PAIRS) > 1:
            return self.whole
        return self._on(self.parts.fetch_rows(self.b).patterns)

    def _on(self, rows: Patterns) -> LogPosterior:
        return LogPosterior(rows, self.whole.pseudo_g, self.whole.pseudo_akv, between=self.fit.between)

    @property
    def n_votes(self) -> int:
        """Votes that a pass walks over: those of identical items once."""
        return self.whole.n_votes

    def log_posteriors(self, draws: int) -> Floats:
        """Compute the log posterior in log ratios at the first draws: `log_s`."""
        return self._heights(draws, 1.0)

    def log_likelihoods(self, draws: int) -> Floats:
        """Compute the log likelihood of the votes at the first draws: `log_s`."""
        return self._heights(draws, 0.0)

    def _heights(self, draws: int, prior: float) -> Floats:
        """Compute the log likelihood and, if it counts, the log prior in log ratios."""
        if not draws:
            return np.empty(0)
        alpha_g, beta_akv = self.fit.alpha_g, self.fit.beta_akv[: len(self.shared[1].pseudo_akv)]
        density = replace(self.shared[1], pseudo_g=prior * alpha_g, pseudo_akv=prior * beta_akv)
        over_base_s = self.fitted.total(over_base_of_part, self.b, draws)
        return log_heights(density, drawn_of(self.fit, draws), over_base_s)

    def sample(self, most: int, seed: int) -> tuple[Patterns, Floats]:
        """Draw some rows at random, or return all if they are few, and how many items each stands for."""
        rows = self.parts.fetch_rows(self.b, sampled_rows(sum(self.parts.rows_by_part(self.b)), most, seed))
        return rows.patterns, rows.count_r

    def heldout_exponent(self) -> Exponent:
        """Learn the exponent from the votes, each left out in turn."""
        parts, density = self.shared
        return learn_from_votes(parts, self.b, density, self.fit.mode)

    def unsupported(self) -> Unsupported:
        """Count the items whose consensus label nobody voted for."""
        by_part: list[Unsupported] = self.fitted.fetch_each(count_unsupported, self.b)
        first = next((one.first for one in by_part if one.first is not None), None)
        n, n_voted, by_votes = (sum(getattr(one, name) for one in by_part) for name in ("n", "n_voted", "by_votes"))
        return Unsupported(n, n_voted, by_votes, first)

    def same_voters(self, other: VoteAccess) -> bool:
        """Tell whether the same people voted on the same items as in another fit."""
        return all(self.parts.fetch_each(same_voters_in_part, self.b, other.b))

    def groups(self) -> tuple[Ints, Floats]:
        """Find the groups of annotators and items that no vote links: see `find_groups`."""
        workers = self.parts.workers
        link = workers.joined(one_link, self.parts.each(link_of_part, self.b))
        found_a = join_links(self.fit.ballot.n_annotators, [link])
        return by_size(found_a, self.parts.total(items_of_groups_in_part, self.b, workers.send(found_a)))

    def shared_items(self) -> csr_array:
        """Count the items every two annotators share, of evenly spaced rows where they have very many votes."""
        step = max(1, spacing(self._pairs, PAIRS_OF_VOTES))
        before_p = np.cumsum([0, *self.parts.rows_by_part(self.b)[:-1]]).tolist()
        asked = [
            self.parts.workers.ask(shared_in_part, part, self.b, -before % step, step)
            for part, before in zip(self.parts.handles, before_p, strict=True)
        ]
        return csr_array(self.parts.workers.joined(added, asked))

    @cached_property
    def small_density(self) -> LogPosterior:
        """The same on evenly spaced rows where there are very many votes: enough to tell what they object to."""
        step = spacing(self._pairs, SAMPLE_PAIRS)
        if step <= 1:
            return self.density
        some = np.arange(0, sum(self.parts.rows_by_part(self.b)), step)
        return self._on(self.parts.fetch_rows(self.b, some).patterns)

    @cached_property
    def _pairs(self) -> float:
        return float(self.parts.total(pairs_in_part, self.b))


VotesOf = Callable[[int], VoteAccess]
"""Returns the votes of the n-th fit."""


def votes_of_fits(fitted: FittedParts) -> VotesOf:
    """Return access to the votes of each fit, by its number."""
    held = [VoteAccess(fitted, b) for b in range(len(fitted.consensus.fits))]
    return held.__getitem__


def local_votes(consensus: Consensus) -> VotesOf:
    """Return access to the votes of each fit on this machine, by its number."""
    return votes_of_fits(local_fit(consensus))


def each_fit(consensus: Consensus, votes_of: VotesOf | None, advance: Advance) -> Iterator[VoteAccess]:
    """Yield the votes of every fit, those on this machine where `votes_of` is not given; then tell the share done."""
    votes_of, n_fits = votes_of or local_votes(consensus), len(consensus.fits)
    for n in range(n_fits):
        yield votes_of(n)
        advance((n + 1) / n_fits)


def votes_of_fit(fit: QuestionFit) -> VoteAccess:
    """Return access to the votes of a fit on this machine."""
    ballot = replace(fit.ballot, item_i=np.arange(fit.ballot.n_items), annotator_a=np.arange(fit.ballot.n_annotators))
    items, annotators = pl.Series(fit.ballot.item_i), pl.Series(fit.ballot.annotator_a)
    votes = Votes(items, annotators, (ballot,), (), np.full(ballot.n_items, -1, dtype=np.int32))
    return VoteAccess(local_fit(Consensus(votes, (fit,), Priors(), fit.options)), 0)


def sampled_rows(n_rows: int, most: int, seed: int) -> Ints:
    """Choose rows at random, in order; all of them where there are no more."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))


def over_base_of_part(one: PartFit, b: int, draws: int) -> Floats:
    """Add up one part's relative log likelihoods at the first draws."""
    fit, rows = one.consensus.fits[b], one.part.rows(b)
    rows = pool_fully(rows) if fit.pooling == "full" else rows
    return log_over_base(rows, drawn_of(fit, draws), fit.between, one.part.threads)


def count_unsupported(one: PartFit, b: int) -> Unsupported:
    """Count one part's items whose consensus label nobody voted for.

    An item with a single vote is left out where the prior simply outweighs it; with two labels, a single "no" that
    counts as "yes" is counted.
    """
    fit, votes = one.consensus.fits[b], one.consensus.votes
    ballot, label_i, counts_ik = fit.ballot, fit.label_i, fit.ballot.counts_ik
    enough_i = ballot.votes_i >= 2
    if ballot.n_labels == 2:
        enough_i |= (ballot.votes_i > 0) & (label_i == ballot.positive)
    item_i = np.flatnonzero(enough_i & (np.take_along_axis(counts_ik, label_i[:, None], axis=1)[:, 0] == 0))
    with np.errstate(divide="ignore"):
        likelihood_ik = np.log(fit.posterior_ik[item_i]) - np.log(_prevalence_of(fit, item_i))
    row_i = np.arange(len(item_i))
    reversed_i = likelihood_ik[row_i, label_i[item_i]] > likelihood_ik[row_i, counts_ik[item_i].argmax(axis=1)]
    return Unsupported(
        n=float(ballot.count_i[item_i].sum()),
        n_voted=float(ballot.count_i[ballot.votes_i > 0].sum()),
        by_votes=float(ballot.count_i[item_i[reversed_i]].sum()),
        first=votes.items[int(ballot.item_i[item_i[0]])] if len(item_i) else None,
    )


def _prevalence_of(fit: QuestionFit, item_i: Ints) -> Floats:
    """Return the labels' shares of all items in the domain of each item: `prevalence_ik`."""
    prevalence_dk, domains = fit.states.prevalence_k(fit.weight_dg), fit.patterns.domains
    return prevalence_dk[domains.domain_i[item_i]] if domains.number > 1 else prevalence_dk


def same_voters_in_part(part: Part, b: int, other: int) -> bool:
    """Tell whether the same people voted on one part's items in two ballots."""
    return same_voters(part.ballot(other), part.ballot(b))


def link_of_part(part: Part, b: int) -> Link:
    """Link each annotator to one of the group they belong to within a part."""
    return _to_first(join_links(part.rows(b).n_annotators, list(neighbours(part.rows(b)))))


def one_link(*links: Link) -> Link:
    """Link each annotator to one of the group that several links make together."""
    return _to_first(join_links(len(links[0][0]), links))


def _to_first(found_a: Ints) -> Link:
    _, one_g = np.unique(found_a, return_index=True)
    return np.arange(len(found_a)), one_g[found_a]


def items_of_groups_in_part(part: Part, b: int, found_a: Ints) -> Floats:
    """Count one part's items by group."""
    return items_of_groups(part.rows(b), found_a)


def pairs_in_part(part: Part, b: int) -> float:
    """Count one part's pairs of votes."""
    return pairs_of_votes(part.rows(b))


def shared_in_part(part: Part, b: int, first: int, step: int) -> csr_array:
    """Count the items that annotators share in evenly spaced rows of one part."""
    rows = part.rows(b)
    return shared_in(rows.take(np.arange(first, rows.n_rows, step)) if step > 1 else rows)


def added(*several: Any) -> Any:
    """Add up sparse counts."""
    total, *others = several
    for other in others:
        total = total + other
    return total
