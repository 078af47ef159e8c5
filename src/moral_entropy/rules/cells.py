"""Cells: groups of items that get the same answer from every rule; and the sums of p over their items.

Items of a cell share question, label taken as positive, domain, pair of vote counts, and the answer of each rule. So p
needs to be added up only by cell, and every grade of every rule is computed from those sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.model.consensus import QuestionFit
from moral_entropy.rules.rules import Rule
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints, Votes

SUMS = ("items", "yes", "p", "p²", "entropy", "doubt")
"""Sums over a cell's items, first axis of `sum_tcs`: their number; those that the reference says yes to (p >= ½, of
more than two labels the likeliest); p, its square, its entropy in nats, and min(p, 1 - p)."""


class Cells(NamedTuple):
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
    def votes_c(self) -> Ints:
        """Number of votes of each item of the cell."""
        return self.rest_c + self.chosen_c


class Membership(NamedTuple):
    """Which cell each item of one fit belongs to. Axes: **i** item, **g** group, **t** label taken as positive.

    Parameters
    ----------
    fit
        The fit.
    group_i
        Group of every item: items of one group share a cell under every target.
    cell_gt
        Cell of every group.
    """

    fit: QuestionFit
    group_i: Ints
    cell_gt: Ints


Answers = tuple[Floats, Floats, NDArray[np.bool_]]
"""What rules answer on groups of items: `score_rg`, `decision_rg`, `tied_rg`."""

Groups = tuple[Ints, Ints, list[Answers]]
"""Group of every item, first item of every group, and the answers for each label taken as positive."""


def targets_of(ballot: Ballot) -> tuple[int, ...]:
    """Return the labels taken as positive: the positive one of two, every one of more."""
    return (ballot.positive,) if ballot.n_labels == 2 else tuple(range(ballot.n_labels))


def sort_into_cells(
    votes: Votes, fits: Iterable[QuestionFit], group: Callable[..., Groups], **settings: Any
) -> tuple[Cells, list[Membership]]:
    """Sort items into cells by the answers that `group` finds for each fit, given the domains of its items.

    Those of rules are found by `group_by_answers`, with the rules as its setting.
    """
    pieces: list[Cells] = []
    members: list[Membership] = []
    n_cells = 0
    for fit in fits:
        ballot, domain_i = fit.ballot, votes.domain_i[fit.ballot.item_i]
        group_i, first_g, answers = group(fit, domain_i, **settings)
        domain_g, counts_gk = domain_i[first_g], ballot.counts_ik[first_g]
        votes_g, cell_gt = counts_gk.sum(axis=1), np.empty((len(first_g), len(answers)), dtype=np.int64)
        for t, target in enumerate(targets_of(ballot)):
            (score_rg, decision_rg, tied_rg), chosen_g = answers[t], counts_gk[:, target]
            numbered = (np.unique(answer_g, return_inverse=True)[1] for answer_g in (*score_rg, *decision_rg))
            cell_g, first_c = number_rows([domain_g - UNKNOWN, votes_g, chosen_g, *numbered, *tied_rg])
            where = [np.full(len(votes_g), code) for code in (votes.questions.index(fit.question), target)]
            columns = (*where, domain_g, votes_g - chosen_g, chosen_g, score_rg, decision_rg, tied_rg)
            pieces.append(Cells._make(column[..., first_c] for column in columns))
            cell_gt[:, t] = cell_g + n_cells
            n_cells += len(first_c)
        members.append(Membership(fit, group_i, cell_gt))
    return Cells._make(np.concatenate(column, axis=-1) for column in zip(*pieces, strict=True)), members


def group_by_answers(fit: QuestionFit, domain_i: Ints, rules: Sequence[Rule]) -> Groups:
    """Group items of equal counts; published labels and rules that look at all items at once part them further."""
    ballot, targets, published_i = fit.ballot, targets_of(fit.ballot), fit.ballot.published_i
    scores = {
        (rule.name, target): rule.scores(ballot.counts_ik, target)
        if rule.sees != "published"
        else np.where(published_i == UNKNOWN, np.nan, published_i == target)
        for rule in rules
        if not rule.pointwise
        for target in targets
    }
    numbered = (np.unique(score_i, return_inverse=True)[1] for score_i in scores.values())
    group_i, first_g = number_rows([domain_i - UNKNOWN, *ballot.counts_ik.T, *numbered])
    counts_gk, answers = ballot.counts_ik[first_g], []
    for target in targets:
        by_rule = [
            rule.scores(counts_gk, target) if rule.pointwise else scores[rule.name, target][first_g] for rule in rules
        ]
        decisions = [rule.decisions(score_g) for rule, score_g in zip(rules, by_rule, strict=True)]
        ties = [rule.ties(counts_gk, target) for rule in rules]
        answers.append((np.array(by_rule), np.array(decisions), np.array(ties)))
    return group_i, first_g, answers


def number_rows(columns: Iterable[Ints]) -> tuple[Ints, Ints]:
    """Number the distinct rows of some columns of small whole numbers; return also each number's first row.

    Examples
    --------
    >>> number_rows([np.array([0, 1, 0]), np.array([2, 2, 2])])
    (array([0, 1, 0]), array([0, 1]))
    """
    key_i: NDArray[np.int64] | None = None
    size = 1
    for column_i in columns:
        n = int(column_i.max(initial=0)) + 1
        if key_i is None:
            key_i, size = column_i.astype(np.int64), n
            continue
        if size > np.iinfo(np.int64).max // n:
            distinct, key_i = np.unique(key_i, return_inverse=True)
            size = len(distinct)
        # In place: there may be very many rows.
        key_i *= n
        key_i += column_i
        size *= n
    if key_i is None or size > max(4 * len(key_i), 1 << 16):
        _, first_g, group_i = np.unique(key_i, return_index=True, return_inverse=True)  # type: ignore[call-overload]
        return group_i, first_g
    # Few possible keys are numbered with a table, without sorting. Of several writes to one place the last one stays:
    # written backwards, that is the first row.
    first_k = np.full(size, -1)
    first_k[key_i[::-1]] = np.arange(len(key_i))[::-1]
    seen_k = first_k >= 0
    return (np.cumsum(seen_k) - 1)[key_i], first_k[seen_k]


class RuleSums(NamedTuple):
    """What rules are graded by: cells, sums over their items, and the cost of deciding every item by its p."""

    cells: Cells
    sum_tcs: Floats
    cost_c: Floats

    def __add__(self, addend: RuleSums) -> RuleSums:  # type: ignore[override]
        """Add the sums over other items of the same questions."""
        cells = [np.concatenate(columns, axis=-1) for columns in zip(self.cells, addend.cells, strict=True)]
        key_cx = np.nan_to_num(np.vstack(cells).T.astype(np.float64), nan=-1.0)
        _, first, cell_c = np.unique(key_cx, axis=0, return_index=True, return_inverse=True)
        sum_tcs = np.zeros((len(SUMS), len(first), self.sum_tcs.shape[2]))
        for total_cs, both_cs in zip(sum_tcs, np.concatenate([self.sum_tcs, addend.sum_tcs], axis=1), strict=True):
            np.add.at(total_cs, cell_c.ravel(), both_cs)
        cost_c = np.bincount(cell_c.ravel(), weights=np.concatenate([self.cost_c, addend.cost_c]))
        return RuleSums(Cells._make(column[..., first] for column in cells), sum_tcs, cost_c.astype(np.float64))


def rule_sums(cells: Cells, members: Sequence[Membership], costs: tuple[float, float]) -> RuleSums:
    """Add up by cell what rules are graded by, by the published p; sums of parts of the items add up.

    `sum_tcs` has a single column. Figures against the consensus have no interval: those over draws of the fit held
    gold's rates in 8% of the cases where 90% were promised. The expected cost of deciding an item by its p is the
    cheaper of yes and no.

    Parameters
    ----------
    cells, members
        The cells, and which items belong to them.
    costs
        Costs of a wrong yes and a wrong no.
    """
    *sum_tc, cost_c = np.zeros((len(SUMS) + 1, len(cells.question_c)))
    for fit, group_i, cell_gt in members:
        for t, target in enumerate(targets_of(fit.ballot)):
            p_i = fit.p_ik[:, target]
            entropy_i, doubt_i = entr(p_i) + entr(1 - p_i), np.minimum(p_i, 1 - p_i)
            cost_i = np.minimum(costs[0] * (1.0 - p_i), costs[1] * p_i)
            values = (np.ones(1), fit.label_i == target, p_i, p_i * p_i, entropy_i, doubt_i, cost_i)
            for total_c, value_i in zip((*sum_tc, cost_c), values, strict=True):
                by_group_g = np.bincount(group_i, weights=fit.ballot.count_i * value_i, minlength=len(cell_gt))
                np.add.at(total_c, cell_gt[:, t], by_group_g)
    return RuleSums(cells, np.stack(sum_tc)[..., None], cost_c)


def gold_sums(n_cells: int, members: Sequence[Membership], *, replicates: int, seed: int = 0) -> Floats:
    """Add up gold labels by cell, as they are and with items resampled: the same sums with p either 0 or 1.

    Parameters
    ----------
    n_cells, members
        How many cells there are, and which items belong to them.
    replicates
        Number of columns in which items are resampled. Numbers of items per group and label are Poisson, so one draw
        resamples a whole group.
    seed
        Seed of the resampling.
    """
    items_cs, yes_cs = np.zeros((2, n_cells, replicates + 1))
    for n, member in enumerate(members):
        rng, ballot = np.random.default_rng([seed, n, 1]), member.fit.ballot
        targets, items_gs = targets_of(ballot), np.zeros((len(member.cell_gt), replicates + 1))
        for label in range(ballot.n_labels):
            # One draw per group and label, shared by all targets: an item is resampled whole.
            weight_i = ballot.count_i * (ballot.gold_i == label)
            label_g = np.bincount(member.group_i, weights=weight_i, minlength=len(member.cell_gt)).astype(float)
            label_gs = np.column_stack([label_g, rng.poisson(label_g[:, None], (len(label_g), replicates))])
            items_gs += label_gs
            if label in targets:
                np.add.at(yes_cs, member.cell_gt[:, targets.index(label)], label_gs)
        for t in range(len(targets)):
            np.add.at(items_cs, member.cell_gt[:, t], items_gs)
    nothing_cs = np.zeros_like(yes_cs)
    return np.stack([items_cs, yes_cs, yes_cs, yes_cs, nothing_cs, nothing_cs])
