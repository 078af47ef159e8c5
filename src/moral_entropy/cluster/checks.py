"""The posterior examined from the cheap sides, its votes in parts: the findings of one machine.

Each side asks little of the votes: sums over rows, a few rows by number, or who is linked to whom. `SpreadBehind` gives
it from parts; rows are numbered as on one machine (see `rows`), so that samples of them are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.exponent import learn_from_votes
from moral_entropy.cluster.fit import Found
from moral_entropy.cluster.judged import Judged
from moral_entropy.cluster.parts import Part, pool_part
from moral_entropy.cluster.posterior import SpreadLogPosterior, no_rows, size_of
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.result import Consensus
from moral_entropy.consensus.temper import Exponent
from moral_entropy.validate.behind import Behind, BehindFit, sampled_rows
from moral_entropy.validate.density import drawn_of, log_heights, log_over_label0, mode_of
from moral_entropy.validate.links import (
    PAIRS_OF_VOTES,
    Groups,
    Link,
    by_size,
    join_links,
    neighbours,
    pairs_of_votes,
    same_voters,
    shared_in,
    sizes_of_groups,
    spacing,
)
from moral_entropy.validate.overruled import Overruled, overruled
from moral_entropy.validate.teams import SAMPLE_PAIRS, Switchboard, changed_items, items_of
from moral_entropy.votes.table import Floats, Ints, Votes

if TYPE_CHECKING:
    from distributed import Future


def behind_parts(
    crew: Crew,
    parts: Sequence[Future[Any]],
    judged: Sequence[Future[Any]],
    consensus: Consensus,
    sent: Sequence[Future[Any]],
) -> BehindFit:
    """Give the votes behind each fit of a consensus, for `examine_cheaply`.

    Parameters
    ----------
    crew, parts, judged
        The workers, the parts, and the parts with what the fit says of them.
    consensus
        On an item a kind.
    sent
        By ballot, what was found, as the workers know it.
    """
    spread = {
        id(fit): SpreadBehind(fit, crew=crew, parts=parts, judged=judged, b=b, found=sent[b])
        for b, fit in enumerate(consensus.fits)
    }
    return lambda fit: spread[id(fit)]


@dataclass(frozen=True, eq=False)
class SpreadBehind(Behind):
    """The votes behind one fit, in parts.

    Parameters
    ----------
    crew, parts, judged
        Who holds the parts, the parts, and the same with what the fit says of them.
    b
        Which ballot.
    found
        The parameters and draws, as the workers know them.
    """

    crew: Crew = field(kw_only=True)
    parts: Sequence[Future[Any]] = field(kw_only=True)
    judged: Sequence[Future[Any]] = field(kw_only=True)
    b: int = field(kw_only=True)
    found: Future[Any] = field(kw_only=True)

    @cached_property
    def spread(self) -> SpreadLogPosterior:
        """The density that was climbed, without any bound."""
        fit = self.fit
        sizes = self.crew.fetch_all(self._each(size_of))
        return SpreadLogPosterior(
            no_rows(fit.ballot),
            fit.alpha_k - 1.0,
            fit.beta_akv - 1.0,
            crew=self.crew,
            parts=self.parts,
            b=self.b,
            sizes=sizes,
        )

    @cached_property
    def shared(self) -> SpreadLogPosterior:
        """The same, with one matrix where it was fitted for all."""
        if self.fit.pooling != "full":
            return self.spread
        parts = self.crew.each(pool_part, self.parts)
        pseudo_akv = np.ascontiguousarray(self.spread.pseudo_akv[:1])
        return replace(self.spread, patterns=no_rows(self.fit.ballot, 1), pseudo_akv=pseudo_akv, parts=parts)

    @cached_property
    def density(self) -> LogPosterior:
        """The same; of few votes, fetched: they are passed over again and again."""
        if spacing(self._pairs, SAMPLE_PAIRS) > 1:
            return self.spread
        return self.spread.on(self.spread.fetch_rows().patterns)

    @property
    def n_votes(self) -> int:
        """Votes that a pass walks over: those of identical items once."""
        return self.spread.n_votes

    def log_posteriors(self, draws: int, threads: int | None = None) -> Floats:
        """Give the log posterior in log ratios at the first draws: `log_s`."""
        return self._heights(draws, 1.0)

    def log_likelihoods(self, draws: int) -> Floats:
        """Give the log likelihood of the votes at the first draws: `log_s`."""
        return self._heights(draws, 0.0)

    def _heights(self, draws: int, prior: float) -> Floats:
        """Give the log likelihood and, if it counts, the log prior in log ratios."""
        shared = self.shared
        pseudo_k, pseudo_akv = prior * (shared.pseudo_k + 1.0), prior * (shared.pseudo_akv + 1.0)
        density = replace(shared, pseudo_k=pseudo_k, pseudo_akv=pseudo_akv)
        asked = self.crew.each(over_label0_of_part, shared.parts, self.b, self.found, draws)
        return log_heights(density, drawn_of(self.fit, draws), self.crew.total(asked))

    def sample(self, most: int, seed: int) -> tuple[Patterns, Floats]:
        """Give some rows drawn at random, or all if they are few, and how many items each stands for."""
        rows = self.spread.fetch_rows(sampled_rows(self.spread.n_rows, most, seed))
        return rows.patterns, rows.count_r

    def heldout_exponent(self) -> Exponent:
        """Learn the exponent from the votes, each left out in turn."""
        return learn_from_votes(self.shared, mode_of(self.fit))

    def overruled(self, votes: Votes) -> Overruled:
        """Count the items whose votes the consensus overrules."""
        by_part: list[Overruled] = self.crew.fetch_all(self.crew.each(overruled_of_part, self.judged, self.b))
        first = next((one.first for one in by_part if one.first is not None), None)
        n, n_voted, by_votes = (sum(getattr(one, name) for one in by_part) for name in ("n", "n_voted", "by_votes"))
        return Overruled(n, n_voted, by_votes, first)

    def same_voters(self, other: Behind) -> bool:
        """Whether the same people voted on the same items as behind another fit."""
        return isinstance(other, SpreadBehind) and all(
            self.crew.fetch_all(self._each(same_voters_in_part, other.b)),
        )

    def groups(self) -> Groups:
        """Find the groups of annotators and items that no vote links."""
        link = self.crew.joined(one_link, self._each(link_of_part))
        found_a = join_links(self.fit.ballot.n_annotators, [link])
        items_g, votes_g = self.crew.total(self._each(sizes_in_part, self.crew.send(found_a)))
        return by_size(found_a, items_g, votes_g)

    def shared_items(self) -> csr_array:
        """Count the items every two annotators share, of evenly spaced rows where they have very many votes."""
        step = max(1, spacing(self._pairs, PAIRS_OF_VOTES))
        before_p = np.cumsum([0, *(size.n_rows for size in self.spread.sizes[:-1])]).tolist()
        asked = [
            self.crew.ask(shared_in_part, part, self.b, -before % step, step)
            for part, before in zip(self.parts, before_p, strict=True)
        ]
        return csr_array(self.crew.joined(added, asked))

    def switchboard(self) -> Switchboard:
        """Give the density for trying switches on."""
        step = spacing(self._pairs, SAMPLE_PAIRS)
        if step <= 1:
            return Switchboard(self.density, self.density)
        some = self.spread.fetch_rows(np.arange(0, self.spread.n_rows, step)).patterns
        return SpreadSwitchboard(self.spread, self.spread.on(some))

    @cached_property
    def _pairs(self) -> float:
        return float(self.crew.total(self._each(pairs_in_part)))

    def _each(self, work: Any, *given: Any) -> list[Future[Any]]:
        return self.crew.each(work, self.parts, self.b, *given)


@dataclass(frozen=True, eq=False)
class SpreadSwitchboard(Switchboard):
    """Where switches are tried, `whole` in parts."""

    whole: SpreadLogPosterior

    def changed_items(self, one: Parameters, other: Parameters) -> float:
        """Count the items whose likeliest label differs between two sets of parameters."""
        return float(self.whole.crew.total(self.whole.each(changed_in_part, one, self.whole.crew.send(other))))

    def items_of(self, at: Parameters, pair: tuple[int, int]) -> float:
        """Count the items whose likeliest label is one of two."""
        return float(self.whole.crew.total(self.whole.each(items_in_part, at, pair)))


def over_label0_of_part(part: Part, b: int, found: Found, draws: int) -> Floats:
    """Add up one part's log likelihoods at the first draws, relative to label 0."""
    drawn = Parameters(found.drawn.log_prevalence_k[:draws], found.drawn.log_confusion_akv[:draws])
    return log_over_label0(part.own[b].patterns, drawn, threads=1)


def overruled_of_part(judged: Judged, b: int) -> Overruled:
    """Count one part's items whose votes the consensus overrules."""
    return overruled(judged.consensus.votes, judged.consensus.fits[b])


def same_voters_in_part(part: Part, b: int, other: int) -> bool:
    """Whether the same people voted on one part's items in two ballots."""
    return same_voters(part.votes.ballots[other], part.votes.ballots[b])


def link_of_part(part: Part, b: int) -> Link:
    """Link each annotator to one of the group they belong to within a part."""
    patterns = part.own[b].patterns
    return _to_first(join_links(patterns.n_annotators, list(neighbours(patterns))))


def one_link(*links: Link) -> Link:
    """Link each annotator to one of the group that several links make together."""
    return _to_first(join_links(len(links[0][0]), links))


def _to_first(found_a: Ints) -> Link:
    _, one_g = np.unique(found_a, return_index=True)
    return np.arange(len(found_a)), one_g[found_a]


def sizes_in_part(part: Part, b: int, found_a: Ints) -> tuple[Floats, Floats]:
    """Count one part's items and votes by group."""
    return sizes_of_groups(part.own[b].patterns, found_a)


def pairs_in_part(part: Part, b: int) -> float:
    """Count one part's pairs of votes."""
    return pairs_of_votes(part.own[b].patterns)


def shared_in_part(part: Part, b: int, first: int, step: int) -> csr_array:
    """Count the items that annotators share in evenly spaced rows of one part."""
    patterns = part.own[b].patterns
    return shared_in(patterns.take(np.arange(first, patterns.n_rows, step)) if step > 1 else patterns)


def added(*several: csr_array) -> csr_array:
    """Add up sparse counts."""
    total, *others = several
    for other in others:
        total = total + other
    return total


def changed_in_part(part: Part, b: int, one: Parameters, other: Parameters) -> float:
    """Count one part's items whose likeliest label differs."""
    return changed_items(part.likelihoods[b], one, other)


def items_in_part(part: Part, b: int, at: Parameters, pair: tuple[int, int]) -> float:
    """Count one part's items whose likeliest label is one of two."""
    return items_of(part.likelihoods[b], at, pair)
