"""Parts: the only way in which a stage touches votes, wherever they lie.

A part is some items with all their votes. On one machine there is one part, `LocalParts`; on a cluster there are many
(`cluster.parts`). Questions, labels, domains and annotators, and how many votes each annotator gave, are those of the
whole, so that what is computed on parts can be added up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from moral_entropy.consensus.item_classes import ItemClasses, add_classes, classify, facts_of, votes_of_classes
from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.patterns import Domains, Patterns, collapse, forget_domains, pool_fully
from moral_entropy.consensus.states import States, between_labels
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes
from moral_entropy.workers import Here, Workers


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of identical items. Axis: **r** row.

    Parameters
    ----------
    patterns
        The votes of each row; `row_i` has no meaning here.
    count_r
        How many items the row stands for, with or without votes.
    """

    patterns: Patterns
    count_r: Floats

    def take(self, wanted: Ints) -> Rows:
        """Keep only some rows."""
        return Rows(self.patterns.take(wanted), self.count_r[wanted])


def join_rows(several: Sequence[Rows]) -> Rows:
    """Put the rows of several parts one below the other."""
    if len(several) == 1:
        return several[0]
    rows = [one.patterns for one in several]
    start_r = np.concatenate([[0], *(np.diff(one.start_r) for one in rows)]).cumsum()
    names = ("code_v", "weight_r", "clamp_r", "domain_r")
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in rows]) for name in names}
    patterns = replace(rows[0], start_r=start_r, **columns, row_i=np.arange(len(start_r) - 1))
    return Rows(patterns, np.concatenate([one.count_r for one in several]))


@dataclass(frozen=True, eq=False)
class Part:
    """Some items with their votes.

    Parameters
    ----------
    votes
        The items, and the votes on them.
    patterns
        By ballot, the same votes with identical items collapsed.
    agreed
        By ballot, the rows this part answers for where several parts have agreed on them: items that parts have in
        common are a row of the first of them. Empty where the part is the only one.
    threads
        Threads that work on this part may use; all cores by default.
    """

    votes: Votes
    patterns: tuple[Patterns, ...]
    agreed: tuple[Rows, ...] = ()
    threads: int | None = None

    def rows(self, b: int) -> Patterns:
        """Return the rows of a ballot that this part answers for."""
        return self.agreed[b].patterns if self.agreed else self.patterns[b]

    def counted_rows(self, b: int) -> Rows:
        """Return the same with how many items each stands for."""
        return self.agreed[b] if self.agreed else Rows(self.patterns[b], items_by_row(self.patterns[b], self.ballot(b)))

    def ballot(self, b: int) -> Ballot:
        """Return one of the ballots."""
        return self.votes.ballots[b]

    @cached_property
    def _likelihoods(self) -> dict[tuple[int, bool], LogPosterior]:
        return {}

    def likelihood(self, b: int, mixed: bool) -> LogPosterior:
        """Return the log posterior of a ballot's rows without a prior, under the mixed model or the paper's."""
        if (b, mixed) not in self._likelihoods:
            self._likelihoods[b, mixed] = likelihood_of(self.rows(b), self.threads, mixed=mixed)
        return self._likelihoods[b, mixed]

    @cached_property
    def classes(self) -> tuple[tuple[ItemClasses, Ints], ...]:
        """By ballot, the classes of its items, and the class of each item."""
        return tuple(classify(facts_of(self.votes, ballot), ballot.count_i) for ballot in self.votes.ballots)


def likelihood_of(patterns: Patterns, threads: int | None = None, *, mixed: bool = False) -> LogPosterior:
    """Return a log posterior without a prior, under the mixed model or the paper's."""
    n_labels = patterns.n_labels
    between = between_labels(n_labels) if mixed else None
    pseudo_g = np.zeros((patterns.n_domains, between.n_groups)) if between else np.zeros(n_labels)
    pseudo_akv = np.zeros((patterns.n_annotators, n_labels, n_labels))
    return LogPosterior(patterns, pseudo_g, pseudo_akv, threads, between=between)


def items_by_row(patterns: Patterns, ballot: Ballot) -> Floats:
    """Count the items of every row, those without votes too: `count_r`."""
    return np.bincount(patterns.row_i, weights=ballot.count_i, minlength=patterns.n_rows).astype(np.float64)


def part_with(part: Part, change: Callable[[Patterns], Patterns]) -> Part:
    """Return a part with its rows changed."""
    agreed = (replace(one, patterns=change(one.patterns)) for one in part.agreed)
    return replace(part, patterns=tuple(map(change, part.patterns)), agreed=tuple(agreed))


def classes_of_part(part: Part) -> list[ItemClasses]:
    """Return the item classes of every ballot of one part."""
    return [classes for classes, _ in part.classes]


@dataclass(frozen=True, eq=False)
class Parts(ABC):
    """Votes in one or several parts.

    Parameters
    ----------
    workers
        Who does the work on them.
    handles
        The parts, as handles of the workers.
    votes
        What is known of the votes here: all of them on one machine, one item per class on a cluster.
    """

    workers: Workers
    handles: Sequence[Any]
    votes: Votes

    whole: ClassVar[bool] = False
    """Whether `votes` are all votes."""

    def each(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """Apply `work` to every part; return handles of the results."""
        return self.workers.each(work, self.handles, *given)

    def fetch_each(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """Apply `work` to every part; return the results, in the order of the parts."""
        return self.workers.fetch_all(self.each(work, *given))

    def total(self, work: Callable[..., Any], *given: Any) -> Any:
        """Apply `work` to every part; return the sum of the results."""
        return self.workers.total(self.each(work, *given))

    def stream(self, work: Callable[..., Iterable[Any]], *given: Any) -> Iterator[Any]:
        """Yield the results of `work`, a generator, part by part."""
        return self.workers.stream(work, self.handles, *given)

    @cached_property
    def classes(self) -> tuple[ItemClasses, ...]:
        """By ballot, the classes of all items."""
        return tuple(add_classes(several) for several in zip(*self.fetch_each(classes_of_part), strict=True))

    @property
    @abstractmethod
    def class_votes(self) -> Votes:
        """Votes with one item per class: see `votes_of_classes`."""

    def pooled(self) -> Self:
        """Return the same votes as if one annotator had cast them all."""
        return replace(self, handles=self.each(part_with, pool_fully))

    def of_one_domain(self) -> Self:
        """Return the same votes without domains."""
        return replace(self, handles=self.each(part_with, forget_domains))

    @abstractmethod
    def log_posterior(
        self,
        b: int,
        pseudo_g: Floats,
        pseudo_akv: Floats,
        *,
        threads: int | None = None,
        better_than_chance: bool = False,
        between: States | None = None,
    ) -> LogPosterior:
        """Return the log posterior of a ballot: see `LogPosterior`."""

    @abstractmethod
    def fetch_rows(self, b: int, wanted: Ints | None = None) -> Rows:
        """Fetch some rows of a ballot by number, or all; they are numbered as on one machine."""

    @abstractmethod
    def rows_by_part(self, b: int) -> list[int]:
        """Count the rows of a ballot in every part."""


@dataclass(frozen=True, eq=False)
class LocalParts(Parts):
    """Votes on this machine: one part.

    Examples
    --------
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> parts = local_parts(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes)
    >>> parts.rows_by_part(0), parts.classes[0].weight_n.sum()
    ([23], np.float64(50.0))
    """

    workers: Workers = field(default_factory=Here)
    handles: Sequence[Part] = field(kw_only=True)
    votes: Votes = field(kw_only=True)

    whole: ClassVar[bool] = True

    @property
    def part(self) -> Part:
        """The only part."""
        return self.handles[0]

    @cached_property
    def class_votes(self) -> Votes:
        """Votes with one item per class."""
        return votes_of_classes(self.votes, self.classes, [ballot.votes_a for ballot in self.votes.ballots])

    def log_posterior(
        self,
        b: int,
        pseudo_g: Floats,
        pseudo_akv: Floats,
        *,
        threads: int | None = None,
        better_than_chance: bool = False,
        between: States | None = None,
    ) -> LogPosterior:
        """Return the log posterior of a ballot."""
        return LogPosterior(self.part.patterns[b], pseudo_g, pseudo_akv, threads, better_than_chance, between)

    def fetch_rows(self, b: int, wanted: Ints | None = None) -> Rows:
        """Return some rows of a ballot by number, or all."""
        rows = self.part.counted_rows(b)
        return rows if wanted is None else rows.take(wanted)

    def rows_by_part(self, b: int) -> list[int]:
        """Count the rows of a ballot."""
        return [self.part.patterns[b].n_rows]


def local_parts(
    votes: Votes, *, use_gold: bool = False, by_domain: bool = False, threads: int | None = None
) -> LocalParts:
    """Hold votes as the one part of this machine."""
    return LocalParts(votes=votes, handles=[make_part(votes, use_gold, by_domain, threads)])


def make_part(votes: Votes, use_gold: bool, by_domain: bool = False, threads: int | None = None) -> Part:
    """Collapse the identical items of some votes, as if there were no others; by domain, where these are told apart."""
    patterns = tuple(
        collapse(ballot, use_gold=use_gold, domains=domains_of(votes, ballot) if by_domain else None)
        for ballot in votes.ballots
    )
    return Part(votes, patterns, threads=threads)


def domains_of(votes: Votes, ballot: Ballot) -> Domains:
    """Number the domains of a ballot's items; items without one are a domain of their own, the last.

    Where there are not several domains, or the ballot is one part of a question, all its items are in one.
    """
    if len(votes.domains) < 2 or ballot.part:
        return Domains()
    domain_i = votes.domain_i[ballot.item_i]
    n_named = len(votes.domains)
    return Domains(np.where(domain_i == UNKNOWN, n_named, domain_i).astype(np.int32), n_named + 1)
