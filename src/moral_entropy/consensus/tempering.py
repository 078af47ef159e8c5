"""Tempering: how much the votes on an item count together.

Votes that are not independent given the label say less than the product of their likelihoods. One exponent on each
item's likelihood, P(z = k | y) ∝ prevalence_k ∏ confusion_k,y ^ exponent, corrects for that: 1 is the model itself, 0
the prevalence alone. The exponent is given, or learnt from left-out votes or from gold, and comes with its uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_softmax, ndtri

from moral_entropy.consensus import tempering_kernels as kernels
from moral_entropy.consensus.components import component_shares
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.parts import Part, Parts, Rows, join_rows
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.threads import over_blocks
from moral_entropy.errors import FitError
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

MOST_VOTES = 1_000_000
"""Most votes that the exponent is learnt from; of more, only those of evenly spaced rows, so that few are fetched."""

SAMPLE_VOTES = 10_000
"""Votes of the sample on which the exponents of `GRID` are compared before the best is refined on all."""

GRID = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0)
UP_TO_ONE = GRID[: GRID.index(1.0) + 1]

INTERVAL = 0.9
"""Mass of the exponent's interval."""

CLEAR = 1.5
"""Standard errors of gain that make a preference clear; `docs/evidence/validation.md` has the rate of false alarms."""

CLOSE = 1e-5
"""Precision of the exponent."""

BLOCK_ROWS = 32_768


@dataclass(frozen=True)
class Exponent:
    """An exponent on the likelihood of each item, and its uncertainty.

    Parameters
    ----------
    value
        The exponent that predicts best; 1 where nothing can be learnt. From held-out votes it is at most 1, since
        sharpening on noise costs more than it brings; from gold at most 2.
    low, high
        90% interval from the spread over items; 0 and infinity where nothing can be learnt.
    gain, gain_se
        Log score gained over exponent 1, in nats per vote (per item, when learnt from gold), and its standard error
        over items.
    surplus
        Gain of an exponent below 1, in standard errors, when confusion rows are at their posterior mean instead of
        the mode; 0 where the best exponent is then 1 or more. Learnt from gold: `gain / gain_se`.
    n
        Votes predicted, or items with gold.
    """

    value: float
    low: float
    high: float
    gain: float
    gain_se: float
    surplus: float
    n: int

    @property
    def below_one(self) -> bool:
        """Whether it is clearly below 1: the posterior is overconfident, and not only because votes are few."""
        return self.value < 1.0 and self.surplus > CLEAR


NOTHING = Exponent(1.0, 0.0, float("inf"), 0.0, 0.0, 0.0, 0)


def tempered(at: Parameters, exponent: float) -> Parameters:
    """Raise the confusion to a power, without normalising it: what a pass over votes needs for a tempered posterior.

    Examples
    --------
    >>> tempered(Parameters(np.log([0.5, 0.5]), np.log([[[0.9, 0.1], [0.2, 0.8]]])), 0.5).confusion_akv[0, 0].round(3)
    array([0.949, 0.316])
    """
    return at if exponent == 1.0 else Parameters(at.log_weight_g, exponent * at.log_confusion_akv)


def choose_exponent(parts: Parts, b: int, log_posterior: LogPosterior, at: Parameters, temper: str | float) -> Exponent:
    """Return the exponent of a fit.

    Parameters
    ----------
    parts, b
        The votes, and which ballot; gold where there is some.
    log_posterior, at
        The log posterior of the ballot, and its mode.
    temper
        "off", "heldout", "gold", or a number.
    """
    if temper == "heldout":
        return learn_from_votes(parts, b, log_posterior, at)
    if temper == "gold":
        return learn_from_gold(parts, b, at)
    if temper == "off":
        return NOTHING
    return Exponent(float(temper), float(temper), float(temper), 0.0, 0.0, 0.0, 0)


def learn_from_votes(parts: Parts, b: int, log_posterior: LogPosterior, at: Parameters) -> Exponent:
    """Learn the exponent by predicting left-out votes: see `heldout_exponent`."""
    counted = parts.fetch_each(count_predictable, b)
    rows_p, votes_p = zip(*counted, strict=True)
    step = spacing(sum(votes_p), _most_votes(log_posterior, MOST_VOTES))
    before_p = np.cumsum([0, *rows_p[:-1]]).tolist()
    asked = [
        parts.workers.ask(rows_to_predict, part, b, -before % step, step)
        for part, before in zip(parts.handles, before_p, strict=True)
    ]
    return heldout_exponent(log_posterior, at, rows=join_rows(parts.workers.fetch_all(asked)).patterns)


def _most_votes(log_posterior: LogPosterior, most_votes: int) -> int:
    """Scale a number of votes down by how many states there are for each label, so that as much memory is needed."""
    states = log_posterior.states
    return max(1, most_votes * states.n_labels // states.n_states)


def learn_from_gold(parts: Parts, b: int, at: Parameters) -> Exponent:
    """Learn the exponent from items of known label; raise a `FitError` if there are none."""
    evidence_ik, gold_i = (
        np.concatenate(column) for column in zip(*parts.fetch_each(gold_evidence, b, at), strict=True)
    )
    if not len(gold_i):
        what = "no item has a gold label, so temper='gold' has nothing to learn from"
        msg = f"{parts.votes.ballots[b].name}: {what}. Use temper='heldout'."
        raise FitError(msg)
    return gold_exponent(evidence_ik, at.log_weight_g, gold_i)


def count_predictable(part: Part, b: int) -> tuple[int, int]:
    """Count the rows of one part whose votes can be predicted, and their votes."""
    patterns = part.rows(b)
    row_r = predictable_rows(patterns)
    return len(row_r), int(np.diff(patterns.start_r)[row_r].sum())


def rows_to_predict(part: Part, b: int, first: int, step: int) -> Rows:
    """Return every `step`-th of these rows, beginning with row `first`."""
    row_r = predictable_rows(part.rows(b))[first::step]
    return Rows(part.rows(b).take(row_r), np.ones(len(row_r)))


def gold_evidence(part: Part, b: int, at: Parameters) -> tuple[Floats, Ints]:
    """Return the log likelihood of the votes on items of known label, relative to label 0, and those labels."""
    ballot, patterns = part.ballot(b), part.patterns[b]
    known_i = np.flatnonzero(ballot.gold_i != UNKNOWN)
    some = patterns.take(patterns.row_i[known_i])
    evidence_ik = np.zeros((some.n_rows, some.n_labels))
    row_v = np.repeat(np.arange(some.n_rows), np.diff(some.start_r))
    np.add.at(evidence_ik[:, 1:], row_v, at.push_cz()[some.code_v])
    return evidence_ik, ballot.gold_i[known_i]


def heldout_exponent(
    log_posterior: LogPosterior, at: Parameters, *, most_votes: int = MOST_VOTES, rows: Patterns | None = None
) -> Exponent:
    """Learn the exponent from the votes alone: predict each vote from the others on its item.

    A vote's probability is the annotator's confusion row averaged over the tempered posterior of the other votes. The
    item's own expected votes are first subtracted from every row, since the fit has seen them. Items of known label are
    left out, and items with a single vote, whose prediction does not depend on the exponent.

    Parameters
    ----------
    log_posterior
        The log posterior of the votes, with the pseudo-counts of the density on the simplex.
    at
        Its mode.
    most_votes
        Learn from about this many votes at most.
    rows
        The rows to learn from, where the log posterior does not hold its own.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.consensus.priors import Priors
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=2_000, n_annotators=8, votes_per_item=5).votes
    >>> (ballot,), (one,) = votes.ballots, fit(votes, model="paper", draws=0).fits
    >>> priors = Priors()
    >>> log_posterior = LogPosterior(collapse(ballot), priors.alpha_k(ballot) - 1, priors.beta_akv(ballot) - 1)
    >>> found = heldout_exponent(log_posterior, one.at)
    >>> found.value > 0.9, found.below_one
    (True, False)
    """
    most_votes = _most_votes(log_posterior, most_votes)
    patterns = _some_rows(log_posterior.patterns, most_votes) if rows is None else rows
    if not patterns.n_rows:
        return NOTHING
    votes_akv, between = log_posterior.expect(at).votes_akv, log_posterior.between
    given = (log_posterior.pseudo_g, log_posterior.pseudo_akv, log_posterior.threads)
    some = LogPosterior(patterns, *given, between=between)
    strict = _learn(_Prediction.without_items(some, at, votes_akv))
    if between is not None:
        # Its rows are near their posterior means already.
        return strict if strict.value < 1.0 else replace(strict, surplus=0.0)
    # Pseudo-counts beta instead of beta - 1: the posterior mean of a row whose labels are known.
    lenient = _learn(_Prediction.without_items(some, at, votes_akv + 1.0))
    return replace(strict, surplus=lenient.surplus if lenient.value < 1.0 else 0.0)


def _some_rows(patterns: Patterns, most_votes: int) -> Patterns:
    """Keep the rows whose votes can be predicted, evenly spaced ones where there are too many votes."""
    row_r = predictable_rows(patterns)
    n_votes = int(np.diff(patterns.start_r)[row_r].sum())
    return patterns.take(row_r[:: spacing(n_votes, most_votes)])


def predictable_rows(patterns: Patterns) -> Ints:
    """Find the rows whose votes can be predicted: those of unknown label with more than one vote."""
    votes_r = np.diff(patterns.start_r)
    return np.flatnonzero((patterns.clamp_r == UNKNOWN) & (patterns.weight_r > 0) & (votes_r > 1))


def spacing(n_votes: int, most_votes: int) -> int:
    """Return n such that every n-th row has about `most_votes` of `n_votes` votes in total."""
    return max(1, -(-n_votes // most_votes))


@dataclass(frozen=True, eq=False)
class _Prediction:
    """Predicts each vote from the others on its item. Axes: **r** row, **v** vote, **z** state (true label)."""

    patterns: Patterns
    log_weight_dz: Floats
    chance_vz: Floats
    threads: int | None

    @classmethod
    def without_items(cls, log_posterior: LogPosterior, at: Parameters, votes_akv: Floats) -> _Prediction:
        """Subtract each item's expected votes from the confusion rows that its votes are predicted with."""
        patterns, states = log_posterior.patterns, log_posterior.states
        if not states.corners_only:
            log_dz = (at.log_weight_g - np.log(states.size_g))[:, states.group_z]
            chance_vz = _chances_between(log_posterior, at, votes_akv)
            return cls(patterns, log_dz, chance_vz, log_posterior.threads)
        votes_ck = np.ascontiguousarray(votes_akv.transpose(0, 2, 1).reshape(-1, patterns.n_labels))
        chance_vk = np.empty((len(patterns.code_v), patterns.n_labels))
        posterior_rk, total_ak = log_posterior.posterior_rk(at), votes_akv.sum(axis=-1)

        def run(lo: int, hi: int) -> None:
            rows = (patterns.start_r, patterns.code_v, posterior_rk)
            kernels.chances_without_item(*rows, votes_ck, total_ak, lo, hi, chance_vk)

        _over_rows(run, patterns.n_rows, log_posterior.threads)
        return cls(patterns, np.atleast_2d(at.log_weight_g), chance_vk, log_posterior.threads)

    @cached_property
    def log_vz(self) -> Floats:
        """Logs of the votes' probabilities by state."""
        return np.asarray(np.log(self.chance_vz))

    def some(self, most_votes: int) -> _Prediction:
        """Keep evenly spaced rows."""
        step = -(-len(self.chance_vz) // most_votes)
        if step == 1:
            return self
        row_r = np.arange(0, self.patterns.n_rows, step)
        row_v = np.repeat(np.arange(self.patterns.n_rows), np.diff(self.patterns.start_r))
        return replace(self, patterns=self.patterns.take(row_r), chance_vz=self.chance_vz[row_v % step == 0])

    def at(self, exponent: float) -> tuple[Floats, Floats]:
        """Compute each row's log score and its slope at an exponent."""
        score_r, slope_r = np.empty((2, self.patterns.n_rows))

        def run(lo: int, hi: int) -> None:
            votes = (self.patterns.start_r, self.patterns.domain_r, self.chance_vz, self.log_vz, self.log_weight_dz)
            kernels.score_rows(*votes, exponent, lo, hi, score_r, slope_r)

        _over_rows(run, self.patterns.n_rows, self.threads)
        return score_r, slope_r


def _chances_between(log_posterior: LogPosterior, at: Parameters, votes_akv: Floats) -> Floats:
    """Compute the probability of every vote by state, its item's own expected votes by label subtracted."""
    patterns, states = log_posterior.patterns, log_posterior.states
    n_labels = patterns.n_labels
    row_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r))
    posterior_rz, share_czk = log_posterior.posterior_rz(at), component_shares(states, at.confusion_akv)
    own_vk = np.zeros((len(row_v), n_labels))
    for z in range(states.n_states):
        own_vk += posterior_rz[row_v, z, None] * share_czk[patterns.code_v, z]
    key_v = row_v * np.int64(patterns.n_annotators) * n_labels + patterns.code_v
    cell_vk = votes_akv.transpose(0, 2, 1).reshape(-1, n_labels)[patterns.code_v] - _added_up(own_vk, key_v)
    total_vk = votes_akv.sum(axis=-1)[patterns.code_v // n_labels] - _added_up(own_vk, key_v // n_labels)
    chance_vk = np.maximum(cell_vk, kernels.LEAST) / np.maximum(total_vk, n_labels * kernels.LEAST)
    return np.asarray(np.minimum(chance_vk, 1.0) @ states.mix_zk.T)


def _added_up(value_vk: Floats, key_v: Ints) -> Floats:
    """Replace every value by the sum of those with the same key; these lie side by side."""
    first_n = np.flatnonzero(np.diff(key_v, prepend=-1))
    return np.repeat(np.add.reduceat(value_vk, first_n, axis=0), np.diff(first_n, append=len(key_v)), axis=0)


def _over_rows(run: Callable[[int, int], None], n_rows: int, threads: int | None) -> None:
    def blocks(first: int, last: int) -> None:
        run(first * BLOCK_ROWS, min(last * BLOCK_ROWS, n_rows))

    over_blocks(blocks, -(-n_rows // BLOCK_ROWS), threads)


def _learn(predict: _Prediction) -> Exponent:
    sample = predict.some(SAMPLE_VOTES)
    start = max(UP_TO_ONE, key=lambda exponent: _total(sample.patterns.weight_r, sample.at(exponent)[0]))
    votes_r = np.diff(predict.patterns.start_r).astype(np.float64)
    return _best(predict.at, predict.patterns.weight_r, votes_r, start, grid=UP_TO_ONE)


def gold_exponent(
    evidence_ik: Floats, log_prevalence_k: Floats, gold_i: Ints, *, weight_i: Floats | None = None
) -> Exponent:
    """Learn the exponent from known labels: the one that minimises the log loss of the tempered posterior.

    Parameters
    ----------
    evidence_ik
        Log likelihood of each item's votes by label, up to a constant per item.
    log_prevalence_k
        Log prevalence, up to a constant.
    gold_i
        Known labels; items of `UNKNOWN` label are left out.
    weight_i
        How many items each stands for; 1 by default.

    Examples
    --------
    Evidence of 9 to 1 that is right three times in four is worth its square root:

    >>> evidence_ik = np.log([[0.9, 0.1]] * 4)
    >>> round(gold_exponent(evidence_ik, np.log([0.5, 0.5]), np.array([0, 0, 0, 1])).value, 3)
    0.5
    """
    known_i = np.flatnonzero(gold_i != UNKNOWN)
    if not len(known_i):
        return NOTHING
    some_ik, right_i, row_i = evidence_ik[known_i], gold_i[known_i], np.arange(len(known_i))
    weight_i = np.ones(len(known_i)) if weight_i is None else weight_i[known_i]

    def at(exponent: float) -> tuple[Floats, Floats]:
        log_p_ik = log_softmax(log_prevalence_k + exponent * some_ik, axis=1)
        slope_i = some_ik[row_i, right_i] - (np.exp(log_p_ik) * some_ik).sum(axis=1)
        return log_p_ik[row_i, right_i], slope_i

    return _best(at, weight_i, np.ones(len(known_i)), 1.0)


Curve = Callable[[float], tuple[Floats, Floats]]
"""Log score of each row at an exponent, and its slope."""


def _best(at: Curve, weight_r: Floats, votes_r: Floats, start: float, *, grid: tuple[float, ...] = GRID) -> Exponent:
    """Refine the exponent from a point of the grid, and measure its gain over exponent 1 per vote."""

    def slope(exponent: float) -> float:
        return _total(weight_r, at(exponent)[1])

    value = _optimum(slope, grid, grid.index(start))
    score_r, slope_r = at(value)
    more_r = score_r - at(1.0)[0]
    n = _total(weight_r, votes_r)
    gain = _total(weight_r, more_r) / n
    gain_se = float(np.sqrt(_total(weight_r, (more_r - gain * votes_r) ** 2))) / n
    reach = float(ndtri((1.0 + INTERVAL) / 2.0)) * _standard_error(slope, value, _total(weight_r, slope_r**2))
    surplus = gain / gain_se if gain_se > 0.0 else 0.0
    return Exponent(value, max(value - reach, 0.0), value + reach, gain, gain_se, surplus, round(n))


def _total(weight_r: Floats, value_r: Floats) -> float:
    # Not a dot product: starting the threads of BLAS would take longer than the pass itself.
    return float((weight_r * value_r).sum())


def _standard_error(slope: Callable[[float], float], value: float, squares: float) -> float:
    """Compute the sandwich estimate: spread of the slopes over the curvature of the log score (Huber 1967)."""
    low, high = max(value - 0.01, 0.0), value + 0.01
    curvature = (slope(low) - slope(high)) / (high - low)
    return float(np.sqrt(squares) / curvature) if curvature > 0.0 else float("inf")


def _optimum(slope: Callable[[float], float], grid: tuple[float, ...], g: int) -> float:
    """Find where the slope becomes negative, searching outwards from a point of the grid; else return its end."""
    low, high = max(g - 1, 0), min(g + 1, len(grid) - 1)
    while (below := slope(grid[low])) <= 0.0 and low > 0:
        low -= 1
    while (above := slope(grid[high])) >= 0.0 and high < len(grid) - 1:
        high += 1
    if below <= 0.0 or above >= 0.0:
        return grid[low] if below <= 0.0 else grid[high]
    return zero_between(slope, (grid[low], below), (grid[high], above))


def zero_between(slope: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> float:
    """Find to 1e-4 where a slope changes from positive to negative, given a point and its slope on either side.

    Ridders' method (1979): each step at least halves the range. SciPy has it too, but importing its optimisers takes
    longer than all the rest that an audit of a few thousand votes does here.

    Examples
    --------
    >>> round(zero_between(lambda x: 2.0 - x * x, (1.0, 1.0), (2.0, -2.0)), 3)
    1.414
    """
    at, before = low[0], high[0]
    while abs(at - before) > CLOSE and high[0] - low[0] > CLOSE:
        middle = 0.5 * (low[0] + high[0])
        if (here := slope(middle)) == 0.0:
            return middle
        before = at
        at = middle + (middle - low[0]) * here / math.sqrt(here * here - low[1] * high[1])
        tried = [low, (middle, here), (at, slope(at)), high]
        # The range shrinks to the last point with a positive slope and the first without.
        low = max(point for point in tried if point[1] > 0.0)
        high = min(point for point in tried if point[1] <= 0.0)
    return at
