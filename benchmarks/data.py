"""The votes that are benchmarked: twins of the moral corpora, and plain simulated votes of fixed sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from moral_entropy.consensus.model import LogPosterior
from moral_entropy.consensus.patterns import Patterns, collapse
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.corpora.twins import twin
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import UNKNOWN, Ballot, Votes

FOUNDATION = "care"
PAPER = Priors(prevalence=(80.0, 20.0))
FLAT = Priors()


@dataclass(frozen=True)
class Sizes:
    """How much to measure.

    Parameters
    ----------
    scale
        Of the twins.
    items
        Of the large simulated votes: 5 votes each by 1,000 annotators.
    scale_items
        Of the votes that must fit in bounded memory, likewise.
    repeats
        Of which the median counts.
    adam_steps, adam_steps_large
        Adam's steps that are timed on a twin and on the large votes.
    """

    scale: float = 1.0
    items: int = 1_000_000
    scale_items: int = 20_000_000
    repeats: int = 7
    adam_steps: int = 100
    adam_steps_large: int = 5


FULL = Sizes()
QUICK = Sizes(scale=0.03, items=20_000, scale_items=200_000, repeats=3, adam_steps=20, adam_steps_large=3)

LARGE_ANNOTATORS, LARGE_VOTES_PER_ITEM = 1_000, 5


@cache
def one_foundation(name: str, scale: float) -> Votes:
    """Give the votes of a twin on one foundation."""
    votes = read_votes(twin(name, seed=0, scale=scale))
    return replace(votes, ballots=(votes.ballot(FOUNDATION),))


@cache
def large(n_items: int) -> Votes:
    """Give simulated votes, five an item by 1,000 annotators: no two items alike, so nothing collapses."""
    simulated = simulate_votes(
        n_items=n_items, n_annotators=LARGE_ANNOTATORS, votes_per_item=LARGE_VOTES_PER_ITEM, seed=0
    )
    return simulated.votes


def log_posterior(ballot: Ballot, priors: Priors, *, collapsed: bool, threads: int | None = None) -> LogPosterior:
    """Give the log posterior of a ballot, of its collapsed rows or of its items as they are."""
    patterns = collapse(ballot) if collapsed else as_they_are(ballot)
    return LogPosterior(patterns, priors.alpha_k(ballot) - 1.0, priors.beta_akv(ballot) - 1.0, threads)


def with_half(model: LogPosterior) -> LogPosterior:
    """Give the density whose mode and curvature draws are made from: half a pseudo-vote more of everything."""
    return replace(model, pseudo_g=model.pseudo_g + 0.5, pseudo_akv=model.pseudo_akv + 0.5)


def as_they_are(ballot: Ballot) -> Patterns:
    """Give every item a row of its own, as the paper does."""
    return Patterns(
        n_annotators=ballot.n_annotators,
        n_labels=ballot.n_labels,
        start_r=ballot.start_i,
        code_v=ballot.code_v,
        weight_r=np.ones(ballot.n_items),
        clamp_r=np.full(ballot.n_items, UNKNOWN, dtype=np.int16),
        row_i=np.arange(ballot.n_items),
    )
