"""Cells: groups of items that get the same answer from every rule.

Items of a cell share question, label taken as positive, domain, pair of vote counts, and the answer of each rule. So
the posterior needs to be added up only by cell (`sums.py`), and every grade of every rule is computed from those sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus.item_classes import number_rows
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.grading.rules import Rule
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells, of one label of one question or of all of them. Axes: **c** cell, **r** rule.

    Parameters
    ----------
    question_c, label_c, domain_c
        Index of the question among the consensus', of the label in its ballot, of the domain in `Votes.domains`.
    rest_c, chosen_c
        Votes for other labels, and for the one taken as positive.
    score_rc, decision_rc
        What each rule answers, and the yes or no that rates grade; NaN where it abstains.
    tied_rc
        Where the votes are a tie for the rule.
    """

    question_c: Ints
    label_c: Ints
    domain_c: Ints
    rest_c: Ints
    chosen_c: Ints
    score_rc: Floats
    decision_rc: Floats
    tied_rc: NDArray[np.bool_]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.question_c)

    @property
    def votes_c(self) -> Ints:
        """Number of votes of each item of the cell."""
        return self.rest_c + self.chosen_c


@dataclass(frozen=True, eq=False)
class Membership:
    """Which cell each item of one fit belongs to. Axes: **i** item, **g** group, **t** label taken as positive.

    Parameters
    ----------
    fit
        The fit.
    targets
        The labels taken as positive.
    group_i
        Group of every item: items of one group share a cell under every target.
    cell_gt
        Cell of every group.
    explained
        Gives the label probabilities of some items under each of `EXPLANATIONS`; None where nobody asks.
    """

    fit: QuestionFit
    targets: tuple[int, ...]
    group_i: Ints
    cell_gt: Ints
    explained: Callable[[slice], tuple[Floats, ...]] | None = None


def targets_of(ballot: Ballot) -> tuple[int, ...]:
    """Return the labels taken as positive: the positive one of two, every one of more."""
    return (ballot.positive,) if ballot.n_labels == 2 else tuple(range(ballot.n_labels))


def questions_of(consensus: Consensus) -> tuple[str, ...]:
    """Return the questions of a consensus, each once."""
    return tuple(dict.fromkeys(fit.question for fit in consensus.fits))


def sort_into_cells(consensus: Consensus, rules: Sequence[Rule]) -> tuple[Cells, list[Membership]]:
    """Sort the items, or the item classes, of every fit into cells.

    Parameters
    ----------
    consensus
        The fits.
    rules
        The rules, whose answers distinguish cells.
    """
    questions = questions_of(consensus)
    pieces: list[Cells] = []
    members: list[Membership] = []
    n_cells = 0
    for fit in consensus.fits:
        answers = _RuleAnswers(consensus.votes, fit.ballot, tuple(rules), questions.index(fit.question))
        group_i, first_g = answers.groups()
        cell_gt = np.empty((len(first_g), len(answers.targets)), dtype=np.int64)
        for t, target in enumerate(answers.targets):
            cell_g, piece = answers.cells(first_g, target)
            cell_gt[:, t] = cell_g + n_cells
            n_cells += piece.n_cells
            pieces.append(piece)
        members.append(Membership(fit, answers.targets, group_i, cell_gt))
    return join_cells(pieces), members


@dataclass(frozen=True, eq=False)
class _RuleAnswers:
    """One ballot, and the answers of all rules to it."""

    votes: Votes
    ballot: Ballot
    rules: tuple[Rule, ...]
    question: int

    @property
    def targets(self) -> tuple[int, ...]:
        return targets_of(self.ballot)

    @cached_property
    def domain_i(self) -> Ints:
        return self.votes.domain_i[self.ballot.item_i]

    @cached_property
    def given(self) -> dict[tuple[str, int], Floats]:
        """Scores of user-defined rules, which may look at all items at once, and of published labels."""
        asked = [rule for rule in self.rules if not rule.pointwise]
        return {(rule.name, target): self._item_scores(rule, target) for rule in asked for target in self.targets}

    def _item_scores(self, rule: Rule, target: int) -> Floats:
        if rule.sees == "published":
            published_i = self.ballot.published_i
            return np.where(published_i == UNKNOWN, np.nan, published_i == target)
        return rule.scores(self.ballot.counts_ik, target)

    def groups(self) -> tuple[Ints, Ints]:
        """Group the items by domain, counts of all labels, and scores in `given`."""
        scores = (_numbered_scores(score_i) for score_i in self.given.values())
        return number_rows([self.domain_i - UNKNOWN, *self.ballot.counts_ik.T, *scores])

    def cells(self, first_g: Ints, target: int) -> tuple[Ints, Cells]:
        """Sort the groups into cells for one label; return the cell of each group, and the cells."""
        counts_gk = self.ballot.counts_ik[first_g]
        score_rg = np.array([self._group_scores(rule, first_g, counts_gk, target) for rule in self.rules])
        tied_rg = np.array([rule.ties(counts_gk, target) for rule in self.rules])
        domain_g, votes_g, chosen_g = self.domain_i[first_g], counts_gk.sum(axis=1), counts_gk[:, target]
        answers = (*(_numbered_scores(score_g) for score_g in score_rg), *tied_rg)
        cell_g, first_c = number_rows([domain_g - UNKNOWN, votes_g, chosen_g, *answers])
        score_rc = score_rg[:, first_c]
        return cell_g, Cells(
            question_c=np.full(len(first_c), self.question),
            label_c=np.full(len(first_c), target),
            domain_c=domain_g[first_c],
            rest_c=(votes_g - chosen_g)[first_c],
            chosen_c=chosen_g[first_c],
            score_rc=score_rc,
            decision_rc=np.array([rule.decisions(row) for rule, row in zip(self.rules, score_rc, strict=True)]),
            tied_rc=tied_rg[:, first_c],
        )

    def _group_scores(self, rule: Rule, first_g: Ints, counts_gk: Ints, target: int) -> Floats:
        if rule.pointwise:
            return rule.scores(counts_gk, target)
        return self.given[rule.name, target][first_g]


def join_cells(pieces: Sequence[Cells]) -> Cells:
    """Put cells one after the other."""

    def all_of(name: str) -> Any:
        return np.concatenate([getattr(piece, name) for piece in pieces], axis=-1)

    return Cells(**{name: all_of(name) for name in Cells.__dataclass_fields__})


def _numbered_scores(score_i: Floats) -> Ints:
    return np.unique(score_i, return_inverse=True)[1]
