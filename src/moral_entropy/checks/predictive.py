"""Would the fitted model have given votes like these? Posterior predictive checks.

Takes a `Consensus`, draws new states (labels, or places between them) and new votes of the same annotators on the same
items from its posterior draws, and compares: agreement, unanimous items, the number of votes for a label. Findings of
the side "dependence": with error rates fitted, what is left to be off is mostly that votes are not independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moral_entropy.checks.temper import less_sure
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.findings import Finding, level_of
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.intervals import central_interval
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

SIDE = "dependence"

REPLICATES = 200

MOST_VOTES = 100_000_000
"""Votes drawn for one fit at most, all replicates together; of larger data evenly spaced items are looked at."""

UNLIKELY = 0.02
"""Posterior predictive p-value below which a statistic is called off."""

NOTICEABLE = 0.01
"""Difference of a share below which it does not matter, however unlikely; of kappa, twice as much."""

LEAST_EXPECTED = 5.0
"""Items a number of votes must be expected to have to be compared; rarer ones are pooled."""

STATISTICS = {
    "agreement": "two votes on an item agree in {:.1%} of the cases, of votes drawn from the fit in {:.1%} to {:.1%}",
    "unanimous": "{:.1%} of the items with several votes are unanimous, with votes drawn from the fit {:.1%} to {:.1%}",
    "fleiss_kappa": "Fleiss' kappa is {:z.3f}, of votes drawn from the fit {:z.3f} to {:z.3f}",
}
"""What is compared, in words that take the figure and its interval."""


@dataclass(frozen=True, eq=False)
class Voters:
    """Who votes on what, one entry per item that is looked at. Axes: **i** item, **v** vote.

    Parameters
    ----------
    votes_i
        Votes on each item.
    annotator_v, label_v
        Who gave each vote, and what it was.
    known_i
        The item's label where it is known, `UNKNOWN` elsewhere.
    domain_i
        The item's domain, 0 where domains are not told apart.
    n_labels
        Labels a vote can take.
    """

    votes_i: Ints
    annotator_v: Ints
    label_v: Ints
    known_i: Ints
    domain_i: Ints
    n_labels: int

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.votes_i)

    def counts(self, label_v: Ints) -> Ints:
        """Count the votes by item and label: `counts_ik`."""
        key_v = np.repeat(np.arange(self.n_items) * self.n_labels, self.votes_i) + label_v
        flat = np.bincount(key_v, minlength=self.n_items * self.n_labels)
        return flat.reshape(self.n_items, self.n_labels)


@dataclass(frozen=True, eq=False)
class Predicted:
    """One statistic, observed and replicated.

    Parameters
    ----------
    name
        One of `STATISTICS`, or "votes_pattern".
    observed
        In the votes.
    replicated_s
        In every replicate.
    """

    name: str
    observed: float
    replicated_s: Floats

    @property
    def chance(self) -> float:
        """Two-sided posterior predictive p-value; of a distance from the expected pattern, one-sided."""
        n = len(self.replicated_s)
        above = (1 + np.count_nonzero(self.replicated_s >= self.observed)) / (n + 1)
        below = (1 + np.count_nonzero(self.replicated_s <= self.observed)) / (n + 1)
        return float(above if self.name == "votes_pattern" else min(2.0 * min(above, below), 1.0))


def predictive_findings(
    consensus: Consensus, fit: QuestionFit, *, replicates: int = REPLICATES, seed: int = 0, advance: Advance = ignore
) -> list[Finding]:
    """Compare the votes of a fit with votes that it would draw; nothing without draws.

    Parameters
    ----------
    consensus, fit
        The fit to examine.
    replicates
        How often votes are drawn anew.
    seed
        Of what is drawn.
    advance
        Called with the share done.

    Examples
    --------
    >>> import moral_entropy as me
    >>> consensus = me.fit(me.simulate_votes(n_items=300, n_annotators=6, votes_per_item=4, seed=1).votes, draws=100)
    >>> findings = predictive_findings(consensus, consensus.fits[0], replicates=50)
    >>> [(finding.figure, finding.level) for finding in findings][:2]
    [('predicted_agreement', 'info'), ('predicted_unanimous', 'info')]
    """
    checked = check_predictions(fit, replicates=replicates, seed=seed, advance=advance)
    advance(1.0)
    return [_finding(fit, predicted, consensus.interval) for predicted in checked]


def check_predictions(
    fit: QuestionFit, *, replicates: int = REPLICATES, seed: int = 0, advance: Advance = ignore
) -> list[Predicted]:
    """Return every statistic of a fit's votes and its replicates; nothing without draws or two votes on an item.

    Parameters
    ----------
    fit
        The fit of one question.
    replicates, seed, advance
        As in `predictive_findings`.
    """
    voters = voters_of(fit, most=max(1, MOST_VOTES // max(replicates, 1)))
    if not (fit.n_draws and replicates and (voters.votes_i >= 2).any()):
        return []
    observed = voters.counts(voters.label_v)
    rng = np.random.default_rng([seed, 7])
    value_fs, pattern_sc = np.empty((len(STATISTICS), replicates)), []
    for s in range(replicates):
        counts_ik = voters.counts(_replicate(fit, voters, s * fit.n_draws // replicates, rng))
        value_fs[:, s] = statistics(counts_ik)
        pattern_sc.append(vote_pattern(counts_ik, fit.ballot.positive))
        advance((s + 1) / replicates)
    checked = [
        Predicted(name, value, value_s)
        for name, value, value_s in zip(STATISTICS, statistics(observed), value_fs, strict=True)
    ]
    distance, distance_s = _distances(vote_pattern(observed, fit.ballot.positive), np.array(pattern_sc))
    return [*checked, Predicted("votes_pattern", distance, distance_s)]


def voters_of(fit: QuestionFit, *, most: int) -> Voters:
    """Lay out who voted on what, pre-counted rows as often as they count, evenly spaced where there are too many."""
    ballot, patterns = fit.ballot, fit.patterns
    item_i = np.repeat(np.arange(ballot.n_items), np.where(ballot.votes_i > 0, ballot.count_i, 0).astype(np.int64))
    step = -(-int(ballot.votes_i[item_i].sum()) // most)
    item_i = item_i[:: max(step, 1)]
    votes_i = ballot.votes_i[item_i]
    end_i = np.cumsum(votes_i)
    at_v = np.repeat(ballot.start_i[item_i] - (end_i - votes_i), votes_i) + np.arange(end_i[-1] if len(end_i) else 0)
    annotator_v, label_v = np.divmod(ballot.code_v[at_v], ballot.n_labels)
    row_i = patterns.row_i[item_i]
    domain_i = patterns.domain_r[row_i] if patterns.n_domains > 1 else np.zeros(len(item_i), dtype=np.int32)
    return Voters(votes_i, annotator_v, label_v, patterns.clamp_r[row_i], domain_i, ballot.n_labels)


def _replicate(fit: QuestionFit, voters: Voters, draw: int, rng: np.random.Generator) -> Ints:
    """Draw a state for every item, its label or a place between labels, and a vote for every voter: `label_v`."""
    states = fit.states
    state_i = _pick(states.weight_of_states(fit.weight_sdg[draw]), voters.domain_i, rng)
    # The first states are the labels.
    state_i = np.where(voters.known_i == UNKNOWN, state_i, voters.known_i)
    row_v = voters.annotator_v * states.n_states + np.repeat(state_i, voters.votes_i)
    return _pick(states.votes_azv(fit.confusion_sakv[draw]).reshape(-1, voters.n_labels), row_v, rng)


def _pick(chance_rk: Floats, row_v: Ints, rng: np.random.Generator) -> NDArray[np.int64]:
    below_rk = chance_rk.cumsum(axis=1)[:, :-1]
    uniform_v = rng.random(len(row_v))
    picked_v = np.zeros(len(row_v), dtype=np.int64)
    for below_r in np.ascontiguousarray(below_rk.T):
        picked_v += uniform_v >= below_r[row_v]
    return picked_v


def statistics(counts_ik: Ints) -> list[float]:
    """Compute `STATISTICS` of vote counts: agreement of pairs, share of unanimous items, Fleiss' kappa.

    Examples
    --------
    >>> [round(value, 3) for value in statistics(np.array([[3, 0], [0, 3], [2, 1]]))]
    [0.778, 0.667, 0.55]
    """
    votes_i = counts_ik.sum(axis=1)
    paired_i = votes_i >= 2
    several_ik, several_i = counts_ik[paired_i], votes_i[paired_i]
    agreement = float(((several_ik * (several_ik - 1)).sum(axis=1) / (several_i * (several_i - 1))).mean())
    unanimous = float((several_ik.max(axis=1) == several_i).mean())
    share_k = (counts_ik / np.maximum(votes_i, 1)[:, None]).sum(axis=0) / max(np.count_nonzero(votes_i), 1)
    by_chance = float((share_k**2).sum())
    kappa = (agreement - by_chance) / (1.0 - by_chance) if by_chance < 1.0 - 1e-12 else 0.0
    return [agreement, unanimous, kappa]


def vote_pattern(counts_ik: Ints, positive: int, most: int = 40) -> Floats:
    """Count items by number of votes and of positive votes (of more than two labels, votes for the leading one).

    Parameters
    ----------
    counts_ik
        Votes by item and label.
    positive
        The positive label of two.
    most
        Items with more votes are left out.
    """
    votes_i = counts_ik.sum(axis=1)
    said_i = counts_ik[:, positive] if counts_ik.shape[1] == 2 else counts_ik.max(axis=1)
    kept_i = votes_i <= most
    key_i = votes_i[kept_i] * (most + 1) + said_i[kept_i]
    return np.bincount(key_i, minlength=(most + 1) ** 2).astype(np.float64)


def _distances(observed_c: Floats, replicated_sc: Floats) -> tuple[float, Floats]:
    """Compute chi-square distances from the mean pattern, of the votes and of every replicate."""
    expected_c = replicated_sc.mean(axis=0)
    common_c = expected_c >= LEAST_EXPECTED

    def pooled(count_sc: Floats) -> Floats:
        rare_s = count_sc[:, ~common_c].sum(axis=1, keepdims=True)
        return np.concatenate([count_sc[:, common_c], rare_s], axis=1)

    mean_c = pooled(expected_c[None])[0]
    spread_c = np.maximum(mean_c, 1.0)
    distance_s = ((pooled(replicated_sc) - mean_c) ** 2 / spread_c).sum(axis=1)
    return float(((pooled(observed_c[None])[0] - mean_c) ** 2 / spread_c).sum()), distance_s


def _finding(fit: QuestionFit, predicted: Predicted, interval: float) -> Finding:
    low, high = (float(bound[0]) for bound in central_interval(predicted.replicated_s[None], interval))
    mean = float(predicted.replicated_s.mean())
    unlikely = predicted.chance < UNLIKELY
    if predicted.name == "votes_pattern":
        ratio = predicted.observed / max(mean, 1e-300)
        doubted = unlikely and ratio > 2.0
        text = (
            f"the number of votes for a label is {ratio:.1f} times as far from what the fit expects as votes drawn "
            f"from it are (chi-square {predicted.observed:.0f} against {low:.0f} to {high:.0f}, "
            f"p = {predicted.chance:.3f})."
        )
    else:
        least = NOTICEABLE * (2.0 if predicted.name == "fleiss_kappa" else 1.0)
        doubted = unlikely and abs(predicted.observed - mean) >= least
        text = f"{STATISTICS[predicted.name].format(predicted.observed, low, high)} (p = {predicted.chance:.3f})."
    return finding_of(
        fit, SIDE, f"predicted_{predicted.name}", predicted.observed, low=low, high=high,
        n=len(predicted.replicated_s), level=level_of(doubted), text=text,
        meaning="The model does not draw votes like these: annotators err together, or some items are hard for all.",
        cure=less_sure(fit),
    )  # fmt: skip
