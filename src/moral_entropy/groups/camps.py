"""Camps: groups of annotators that nobody named, found from the votes.

A camp is a group with a truth of its own (`coupled_truths`) whose members are unknown. They are searched for by EM from
several starts, one of them the main directions in which annotators' residuals correlate. A search always finds
something, so camps are only shown if they hold on items they were not found on, and if they are found again without a
fifth of them.
Axes: **a** annotator, **c** camp, **i** item.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import comb

from moral_entropy.groups.coupled_truths import YesVotes, fit_truths, left_out_scores, log_sum
from moral_entropy.groups.one_truth import LEVEL, MATERIAL, mean_above_zero
from moral_entropy.votes.table import Floats, Ints

SHARED = (0.8, 0.5, 0.2)
"""How much camps may share."""

SEARCHED = 0.5
"""How much they share while they are searched for."""

MOST_CAMPS = 4
STARTS = 3
FOLDS = 5
STABLE = 0.75
"""Camps found without a fifth of the items, and from other starts, must be this much the same (adjusted Rand index)."""

FEWEST = 3
"""Annotators that a camp has at least."""

MAX_VOTES = 15_000
ROUNDS = 30
SURE, UNSURE = 0.9, 1e-6
DENSE = 4_000
"""With more annotators than this, the start from correlations would need too much memory; random starts are used."""


@dataclass(frozen=True, eq=False)
class Camps:
    """Camps that were found, and whether they are to be believed.

    Parameters
    ----------
    member_ac
        Probability that an annotator belongs to a camp; the largest camp first.
    gain
        How much better a truth per camp tells a left-out annotator's votes on left-out items than one truth does, in
        nats per annotator.
    gain_p
        How often chance alone would make the gain so large.
    stability
        Adjusted Rand index of the camps with those found without a fifth of the items, on average.
    starts
        The same with those found from other starts that fit about as well, the lowest.
    reason
        Why they are not to be believed; empty if they are.
    """

    member_ac: Floats
    gain: float
    gain_p: float
    stability: float
    starts: float
    reason: str

    @property
    def camp_a(self) -> Ints:
        """The likeliest camp of each annotator."""
        return np.asarray(self.member_ac.argmax(axis=1))


def find_camps(votes: YesVotes, *, seed: int = 0, most: int = MOST_CAMPS) -> Camps | None:
    """Find camps: as many as left-out votes support; two camps that do not hold are returned with a reason.

    Parameters
    ----------
    votes
        Votes on one label.
    seed
        Seed of the starts and of the folds.
    most
        How many camps at most.
    """
    if votes.n_annotators < 2 * FEWEST:
        return None
    found: Camps | None = None
    before_a = np.zeros(votes.n_annotators)
    for n_camps in range(2, most + 1):
        camps, gain_a = _examined(votes, n_camps, before_a, seed)
        if found is None or not camps.reason:
            found = camps
        # Camps that predict but are not stable may be a mixture of more of them.
        if camps.gain_p >= LEVEL:
            break
        before_a = before_a if camps.reason else gain_a
    return found


def _examined(votes: YesVotes, n_camps: int, before_a: Floats, seed: int) -> tuple[Camps, Floats]:
    """Find so many camps in all items and in all but a fifth, and score what the latter say of that fifth."""
    member_ac, others = search_camps(votes, n_camps, seed=seed)
    camp_a = member_ac.argmax(axis=1)
    rng = np.random.default_rng([seed, n_camps])
    fold_i = rng.permutation(np.arange(votes.n_items) % FOLDS)
    gain_a, alike = np.zeros(votes.n_annotators), []
    for fold in range(FOLDS):
        kept, left = (votes.on_items(np.flatnonzero(some_i)) for some_i in (fold_i != fold, fold_i == fold))
        again_ac, _ = search_camps(kept, n_camps, seed=seed + 1 + fold, starts=2)
        alike.append(adjusted_rand(camp_a, again_ac.argmax(axis=1)))
        gain_a += gain_of_camps(left, again_ac)
    gain, gain_p = mean_above_zero(gain_a - before_a)
    stability, starts = float(np.mean(alike)), min((adjusted_rand(camp_a, other_a) for other_a in others), default=1.0)
    sizes = np.bincount(camp_a, minlength=n_camps)
    reason = _reason(int(sizes.min()), gain_p if gain >= MATERIAL else 1.0, stability, starts)
    order = np.argsort(-sizes, kind="stable")
    return Camps(member_ac[:, order], gain, gain_p, stability, starts, reason), gain_a


def _reason(smallest: int, gain_p: float, stability: float, starts: float) -> str:
    if smallest < FEWEST:
        return f"one of them would have fewer than {FEWEST} members"
    if gain_p >= LEVEL:
        return "on items that they were not found on, a truth per camp tells votes no better than one truth"
    if stability < STABLE:
        return "without a fifth of the items, other camps are found"
    return "from another start of the search, other camps are found" if starts < STABLE else ""


def search_camps(votes: YesVotes, n_camps: int, *, seed: int, starts: int = STARTS) -> tuple[Floats, list[Ints]]:
    """Search for camps from several starts.

    Parameters
    ----------
    votes
        Votes on one label.
    n_camps
        How many camps.
    seed
        Seed of the random starts.
    starts
        How many starts.

    Returns
    -------
    tuple
        Probability that an annotator belongs to a camp, from the best start; the camps of the other starts that fit
        about as well.
    """
    rng = np.random.default_rng(seed)
    results = [_climbed(votes, first_ac) for first_ac in _starts(votes, n_camps, starts, rng)]
    heights = np.array([height for _, height in results])
    best = int((heights >= heights.max() - 1e-6).argmax())
    others = [member_ac.argmax(axis=1) for at, (member_ac, height) in enumerate(results)
              if at != best and height > heights[best] - np.log(votes.n_annotators)]  # fmt: skip
    return results[best][0], others


def _starts(votes: YesVotes, n_camps: int, starts: int, rng: np.random.Generator) -> list[Floats]:
    drawn: list[Ints] = [rng.integers(n_camps, size=votes.n_annotators) for _ in range(starts)]
    if votes.n_annotators <= DENSE:
        drawn[0] = _main_directions(votes, n_camps)
    # Nobody is sure of a camp at first.
    rest = (1.0 - SURE) / (n_camps - 1)
    return [np.where(camp_a[:, None] == np.arange(n_camps), SURE, rest) for camp_a in drawn]


def _main_directions(votes: YesVotes, n_camps: int) -> Ints:
    """Sort annotators by the main directions in which their residuals correlate over the items they share."""
    no, yes = votes.by_annotator
    voted_ai = (no + yes).toarray()
    share_i = (yes.sum(axis=0) + 0.5) / (voted_ai.sum(axis=0) + 1.0)
    residual_ai = yes.toarray() - voted_ai * share_i
    mean_a = residual_ai.sum(axis=1) / np.maximum(voted_ai.sum(axis=1), 1.0)
    residual_ai -= voted_ai * mean_a[:, None]
    product_ab = residual_ai @ residual_ai.T
    scale_a = np.sqrt(np.maximum(np.diag(product_ab), 1e-9))
    correlation_ab = product_ab / np.outer(scale_a, scale_a)
    np.fill_diagonal(correlation_ab, 0.0)
    direction_ad = np.linalg.eigh(correlation_ab)[1][:, ::-1][:, : n_camps - 1]
    # The sign of a direction is arbitrary, so it is fixed by its largest entry.
    largest_d = np.abs(direction_ad).round(9).argmax(axis=0)
    direction_ad = direction_ad * np.sign(direction_ad[largest_d, np.arange(n_camps - 1)])
    if n_camps == 2:
        return np.asarray(direction_ad[:, 0] > 0.0, dtype=np.int64)
    # One camp per direction, and one for those who go in none.
    strongest_a = direction_ad.argmax(axis=1)
    far_a = direction_ad.max(axis=1) > 0.5 / np.sqrt(votes.n_annotators)
    return np.asarray(np.where(far_a, strongest_a + 1, 0))


def _climbed(votes: YesVotes, member_ac: Floats) -> tuple[Floats, float]:
    """Fit camps and their members in turn; everyone's camp is told from the votes of the others."""
    fitted = fit_truths(votes, member_ac, SEARCHED, passes=15)
    height = -np.inf
    for _ in range(ROUNDS):
        score_ac = np.log(_sizes(member_ac)) + left_out_scores(votes, fitted)
        height = float(log_sum(score_ac).sum())
        now_ac = np.maximum(np.exp(score_ac - log_sum(score_ac)[:, None]), UNSURE)
        moved, member_ac = float(np.abs(now_ac - member_ac).max()), now_ac
        if moved < 0.02:
            break
        fitted = fit_truths(votes, member_ac, SEARCHED, fitted, passes=2)
    return member_ac, height


def _sizes(member_ac: Floats) -> Floats:
    return np.asarray((member_ac.sum(axis=0) + 1.0) / (len(member_ac) + member_ac.shape[1]))


def gain_of_camps(votes: YesVotes, member_ac: Floats) -> Floats:
    """Return how much better a truth per camp tells each annotator's votes than one truth for the same camps.

    Parameters
    ----------
    votes
        Votes on items that the camps were not found on.
    member_ac
        Probability that an annotator belongs to a camp.
    """
    fitted, score = None, []
    for shared in (1.0, *SHARED):
        fitted = fit_truths(votes, member_ac, shared, fitted, passes=20)
        score.append(log_sum(np.log(member_ac) + left_out_scores(votes, fitted)))
    gain_as = np.stack(score[1:], axis=1) - score[0][:, None]
    # How much they share is chosen for each annotator by the votes of the others.
    chosen_a = (gain_as.sum(axis=0) - gain_as).round(6).argmax(axis=1)
    return np.asarray(gain_as[np.arange(len(gain_as)), chosen_a])


def adjusted_rand(one_a: Ints, other_a: Ints) -> float:
    """Return how much two ways to sort annotators are the same: 1 the same, 0 as by chance (Hubert and Arabie 1985).

    Examples
    --------
    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    >>> round(adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])), 2)
    -0.5
    """
    rows, row_a = np.unique(one_a, return_inverse=True)
    columns, column_a = np.unique(other_a, return_inverse=True)
    table = np.zeros((len(rows), len(columns)))
    np.add.at(table, (row_a, column_a), 1.0)
    both, one, other = (comb(sums, 2).sum() for sums in (table, table.sum(axis=1), table.sum(axis=0)))
    expected = one * other / max(float(comb(len(one_a), 2)), 1.0)
    most = (one + other) / 2.0
    return 1.0 if abs(most - expected) < 1e-12 else float((both - expected) / (most - expected))
