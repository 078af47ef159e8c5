"""The votes behind a fit, as far as the cheap examinations ask for them.

Here they are at hand. Where they lie in parts with others, another `Behind` gives the same from sums over parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.temper import Exponent, heldout_exponent
from moral_entropy.validate.density import drawn_of, ground_of, log_posterior_of, log_posteriors, mode_of
from moral_entropy.validate.links import Groups, find_groups, same_voters, shared_items
from moral_entropy.validate.overruled import Overruled, overruled
from moral_entropy.validate.teams import Switchboard, switchboard
from moral_entropy.votes.table import Floats, Ints, Votes


@dataclass(frozen=True, eq=False)
class Behind:
    """The votes behind one fit.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> one = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=9).fits[0]
    >>> rows, count_r = Behind(one).sample(10, seed=0)
    >>> rows.n_rows, len(count_r), len(Behind(one).log_likelihoods(5))
    (10, 10, 5)
    """

    fit: QuestionFit

    @cached_property
    def density(self) -> LogPosterior:
        """The density that was climbed, with a row of its own for every annotator."""
        return log_posterior_of(self.fit)

    @property
    def n_votes(self) -> int:
        """Votes that a pass walks over: those of identical items once."""
        return len(self.fit.patterns.code_v)

    def log_posteriors(self, draws: int, threads: int | None = None) -> Floats:
        """Give the log posterior in log ratios at the first draws: `log_s`."""
        return log_posteriors(ground_of(self.fit, threads).log_ratio, drawn_of(self.fit, draws))

    def log_likelihoods(self, draws: int) -> Floats:
        """Give the log likelihood of the votes at the first draws: `log_s`."""
        fit = self.fit
        n_labels, n_annotators = fit.ballot.n_labels, fit.ballot.n_annotators
        likelihood = LogPosterior(fit.patterns, np.zeros(n_labels), np.zeros((n_annotators, n_labels, n_labels)))
        drawn = zip(fit.prevalence_sk[:draws], fit.confusion_sakv[:draws], strict=True)
        return np.array([likelihood.expect(Parameters(np.log(k), np.log(akv))).log_posterior for k, akv in drawn])

    def sample(self, most: int, seed: int) -> tuple[Patterns, Floats]:
        """Give some rows drawn at random, or all if they are few, and how many items each stands for."""
        patterns = self.fit.patterns
        chosen_r = sampled_rows(patterns.n_rows, most, seed)
        count_r: Floats = np.bincount(patterns.row_i, self.fit.ballot.count_i, patterns.n_rows).astype(np.float64)
        return patterns.take(chosen_r), count_r[chosen_r]

    def heldout_exponent(self) -> Exponent:
        """Learn the exponent from the votes, each left out in turn."""
        return heldout_exponent(ground_of(self.fit).simplex, mode_of(self.fit))

    def overruled(self, votes: Votes) -> Overruled:
        """Count the items whose votes the consensus overrules."""
        return overruled(votes, self.fit)

    def same_voters(self, other: Behind) -> bool:
        """Whether the same people voted on the same items as behind another fit."""
        return same_voters(other.fit.ballot, self.fit.ballot)

    def groups(self) -> Groups:
        """Find the groups of annotators and items that no vote links."""
        return find_groups(self.fit.patterns)

    def shared_items(self) -> csr_array:
        """Count the items every two annotators share."""
        return shared_items(self.fit.patterns)

    def switchboard(self) -> Switchboard:
        """Give the density for trying switches on."""
        return switchboard(self.density)


BehindFit = Callable[[QuestionFit], Behind]
"""Gives the votes behind a fit."""


def sampled_rows(n_rows: int, most: int, seed: int) -> Ints:
    """Choose rows at random, in order; all of them where there are no more."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False))
