"""Cells: groups of items that get the same answer from every rule.

Items of a cell share question, label taken as positive, domain, pair of vote counts, and the answer of each rule. So
the posterior needs to be added up only by cell (`sums.py`), and every grade of every rule is computed from those sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus.item_classes import number_rows
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.rules.rules import Rule
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints


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
    group_i
        Group of every item: items of one group share a cell under every target.
    cell_gt
        Cell of every group.
    explained
        Gives the label probabilities of some items under each of `EXPLANATIONS`; None where nobody asks.
    """

    fit: QuestionFit
    group_i: Ints
    cell_gt: Ints
    explained: Callable[[slice], tuple[Floats, ...]] | None = None

    @property
    def targets(self) -> tuple[int, ...]:
        """The labels taken as positive."""
        return targets_of(self.fit.ballot)


def targets_of(ballot: Ballot) -> tuple[int, ...]:
    """Return the labels taken as positive: the positive one of two, every one of more."""
    return (ballot.positive,) if ballot.n_labels == 2 else tuple(range(ballot.n_labels))


def sort_into_cells(consensus: Consensus, rules: Sequence[Rule]) -> tuple[Cells, list[Membership]]:
    """Sort the items, or the item classes, of every fit into cells.

    Parameters
    ----------
    consensus
        The fits.
    rules
        The rules, whose answers distinguish cells.
    """
    votes = consensus.votes
    pieces: list[Cells] = []
    members: list[Membership] = []
    n_cells = 0
    for fit in consensus.fits:
        ballot, targets, domain_i = fit.ballot, targets_of(fit.ballot), votes.domain_i[fit.ballot.item_i]
        given = _item_scores(ballot, rules)
        numbered = (_numbered_scores(score_i) for score_i in given.values())
        group_i, first_g = number_rows([domain_i - UNKNOWN, *ballot.counts_ik.T, *numbered])
        given = {key: score_i[first_g] for key, score_i in given.items()}
        question, domain_g = votes.questions.index(fit.question), domain_i[first_g]
        counts_gk = ballot.counts_ik[first_g]
        cell_gt = np.empty((len(first_g), len(targets)), dtype=np.int64)
        for t, target in enumerate(targets):
            cell_g, piece = _sort_groups(question, target, domain_g, counts_gk, given, rules)
            cell_gt[:, t] = cell_g + n_cells
            n_cells += piece.n_cells
            pieces.append(piece)
        members.append(Membership(fit, group_i, cell_gt))
    return join_cells(pieces), members


def _item_scores(ballot: Ballot, rules: Sequence[Rule]) -> dict[tuple[str, int], Floats]:
    """Return the scores of published labels, and of user-defined rules, which may look at all items at once."""
    published_i = ballot.published_i

    def scores(rule: Rule, target: int) -> Floats:
        if rule.sees == "published":
            return np.where(published_i == UNKNOWN, np.nan, published_i == target)
        return rule.scores(ballot.counts_ik, target)

    asked = [rule for rule in rules if not rule.pointwise]
    return {(rule.name, target): scores(rule, target) for rule in asked for target in targets_of(ballot)}


def _sort_groups(
    question: int,
    target: int,
    domain_g: Ints,
    counts_gk: Ints,
    given: Mapping[tuple[str, int], Floats],
    rules: Sequence[Rule],
) -> tuple[Ints, Cells]:
    """Sort groups of items into cells for one label; return the cell of each group, and the cells."""
    score_rg = np.array(
        [rule.scores(counts_gk, target) if rule.pointwise else given[rule.name, target] for rule in rules]
    )
    tied_rg = np.array([rule.ties(counts_gk, target) for rule in rules])
    votes_g, chosen_g = counts_gk.sum(axis=1), counts_gk[:, target]
    answers = (*(_numbered_scores(score_g) for score_g in score_rg), *tied_rg)
    cell_g, first_c = number_rows([domain_g - UNKNOWN, votes_g, chosen_g, *answers])
    score_rc = score_rg[:, first_c]
    return cell_g, Cells(
        question_c=np.full(len(first_c), question),
        label_c=np.full(len(first_c), target),
        domain_c=domain_g[first_c],
        rest_c=(votes_g - chosen_g)[first_c],
        chosen_c=chosen_g[first_c],
        score_rc=score_rc,
        decision_rc=np.array([rule.decisions(row) for rule, row in zip(rules, score_rc, strict=True)]),
        tied_rc=tied_rg[:, first_c],
    )


def join_cells(pieces: Sequence[Cells]) -> Cells:
    """Put cells one after the other."""

    def all_of(name: str) -> Any:
        return np.concatenate([getattr(piece, name) for piece in pieces], axis=-1)

    return Cells(**{name: all_of(name) for name in Cells.__dataclass_fields__})


def _numbered_scores(score_i: Floats) -> Ints:
    return np.unique(score_i, return_inverse=True)[1]
