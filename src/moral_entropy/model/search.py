"""The search for the mode: starts, EM with SQUAREM (Varadhan and Roland 2008), quasi-Newton steps at the end.

Coordinates are log ratios to the first of each simplex: those of the weights, domain by domain, then, for annotator 0,
1, … and true label 0, 1, …, those of that confusion row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from moral_entropy.model.patterns import Patterns
from moral_entropy.model.posterior import FLOOR, Counts, Parameters, Posterior, derivatives, log_prior, score, shares_of
from moral_entropy.model.threads import one_blas_thread
from moral_entropy.ties import highest
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

Watch = Callable[[float], None]

TOLERANCE, ROUGH, FINER = 1e-9, 1e-3, 1e-6
"""Largest derivative left at a mode, in units of the parameter's standard error with all labels known; and in a
search that only chooses among starts; how much less the last steps aim at."""

MANY_TOLERANCE, MANY_NEAR, MANY_PARAMETERS = 1e-5, 8.0, 100_000
"""The same of very many votes, whose parameters have tiny standard errors, or of so many parameters (five annotators
and 150 labels); and, of a sample's mode, which is some standard errors off, the steepness below which quasi-Newton
steps are taken."""

MAX_PASSES = 5_000

SAMPLE_VOTES, SAMPLE_PASSES = 400_000, 100
"""Votes of the sample in which the search begins, where there are more, and passes over them at most."""

MOST_LABELS = 5
"""Starts that favour a single label are tried for at most this many labels."""

FEW_BETWEEN = 0.1
"""Weight of a point between labels at the start, where a label weighs K times its share of votes. With 1, of a label
that .5% of the items have (10,000 items, 5 votes each), 3.4% of the items get it, with 0.1 0.8%."""

FLAT = 1e-3
"""Added to all counts of a start: an annotator without pseudo-votes and without a vote on a label would be 0 / 0."""

NEAR, MOST_POLISHING, MEMORY, STEEPER, LONGEST = 0.3, 30, 10, 100.0, 5.0
"""Steepness below which quasi-Newton steps are taken, at most so many; steps that each is mixed with, how much steeper
one may lead, and how far in any log ratio."""

DAMPING, CALM = (0.0, 0.03, 0.1, 0.5), 0.3
"""Shares of the information with all labels known that are added to the curvature: the first where it is that of a
maximum, and the steepness above which none at all would lead too far in flat directions."""

DENSE, DENSE_CELLS = 4_000, 1e10
"""Most parameters, and updates of the curvature in a pass over the votes, for which these steps use it; with more, they
are EM steps, mixed alike: with the curvature's blocks by annotator, 1,000,000 ratings took 451 passes instead of 63."""

EDGE = 1e-6
"""Least probability from which on no share is looked at as one on the edge of the simplex."""

CLOSE, APART = 5.0, 0.02
"""Nats within which another mode is remembered, and the mean difference of p from which it is another."""


class Optimum(NamedTuple):
    """Where a search ended: parameters, counts there, the objective, the steepness left, passes over the votes."""

    at: Parameters
    counts: Counts
    objective: float
    steepness: float
    passes: int
    converged: bool


class SecondMode(NamedTuple):
    """The highest mode that is not the best one: how many nats lower, the share of labels that differ, prevalence."""

    start: str
    distance: float
    changed: float
    prevalence_k: tuple[float, ...]


def pack(at: Parameters) -> Floats:
    """Return the log-ratio coordinates of some parameters; leading axes (draws) are kept.

    Examples
    --------
    >>> pack(Parameters(np.array([[0.5, 0.5]]), np.array([[[0.8, 0.2], [0.2, 0.8]]]))).round(3)
    array([ 0.   , -1.386,  1.386])
    """
    lead = at.confusion_akv.shape[:-3]
    parts = ((np.log(part[..., 1:]) - np.log(part[..., :1])).reshape(*lead, -1) for part in at)
    return np.concatenate(list(parts), axis=-1)


def unpack(x_p: Floats, like: Parameters) -> Parameters:
    """Return the parameters at some log-ratio coordinates, of the shape of others; leading axes (draws) are kept."""
    lead, n_weights = x_p.shape[:-1], like.weight_dg[..., 1:].size
    shares = []
    for ratios, part in zip((x_p[..., :n_weights], x_p[..., n_weights:]), like, strict=True):
        x = np.zeros((*lead, *part.shape))
        x[..., 1:] = ratios.reshape(*lead, *part[..., 1:].shape)
        x -= x.max(axis=-1, keepdims=True)
        # Beyond e^-600 a probability underflows, and its log is lost.
        np.exp(np.maximum(x, -600.0, out=x), out=x)
        x /= x.sum(axis=-1, keepdims=True)
        shares.append(x)
    return Parameters(*shares)


class _Point:
    """Parameters with the counts of a pass there, and what follows from both."""

    def __init__(self, posterior: Posterior, at: Parameters) -> None:
        self.at, self.x_p = at, pack(at)
        self.counts = posterior.expect(at)
        # Computed once: what raters of a scale are drawn to takes a while.
        pseudo = posterior.pseudo_counts(self.counts)
        completed = Parameters(self.counts.items_dg + pseudo.weight_dg, self.counts.votes_akv + pseudo.confusion_akv)
        self.objective = self.counts.log_likelihood + float(log_prior(pseudo, at))
        self.gradient_p, self.known_p = derivatives(completed, at)
        self.next = Parameters(*map(shares_of, completed))
        self.step_p = pack(self.next) - self.x_p
        slope_p = np.abs(self.gradient_p) / np.sqrt(self.known_p)
        if min(share.min(initial=1.0) for share in at) < EDGE:
            # Shares as near to 0 or 1 as they may come, and that stay there, as modes under flat priors may.
            pairs = [np.stack(parts)[..., 1:] for parts in zip(at, self.next, strict=True)]
            edges = [np.minimum(pair, 1.0 - pair).max(axis=0) <= pair.shape[-1] * FLOOR + FLOOR for pair in pairs]
            slope_p[np.concatenate([edge.ravel() for edge in edges])] = 0.0
        self.steepness = float(slope_p.max(initial=0.0))


@one_blas_thread()
def maximise(
    posterior: Posterior,
    at: Parameters,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = MAX_PASSES,
    near: float = NEAR,
    watch: Watch | None = None,
) -> Optimum:
    """Search for the mode from some parameters: SQUAREM, and near the mode quasi-Newton steps."""
    point, passes, farthest = _Point(posterior, at), 1, 4.0
    while point.steepness > tolerance and passes < max_passes:
        if watch is not None:
            watch(point.steepness)
        if point.steepness < near:
            better, n_polish = _polish(posterior, point, tolerance)
            # Where the steps have helped, curvature is computed anew; else SQUAREM goes on first.
            passes += n_polish
            near = near if better.steepness < 0.3 * point.steepness else 0.5 * point.steepness
            point = better
            continue
        middle = _Point(posterior, point.next)
        passes += 1
        bend_p = middle.step_p - point.step_p
        bent = float((point.known_p * bend_p**2).sum())
        stride = np.sqrt(float((point.known_p * point.step_p**2).sum()) / bent) if bent > 0.0 else 1.0
        stride = min(max(stride, 1.0), farthest)
        if stride == 1.0 or middle.steepness <= tolerance:
            point = middle
            continue
        step_p = 2.0 * stride * point.step_p + stride**2 * bend_p
        step_p *= LONGEST / max(LONGEST, np.abs(step_p).max(initial=0.0))
        far = _Point(posterior, unpack(point.x_p + step_p, point.at))
        passes += 1
        # A long step is kept where it is not steeper by much or, where the prior is fixed, not lower.
        if posterior.common or posterior.patterns.n_domains > 1:
            better_there = far.steepness <= 1.2 * middle.steepness
        else:
            better_there = far.objective >= middle.objective - 1e-9 * abs(middle.objective)
        if better_there:
            farthest = 4.0 * farthest if stride == farthest else farthest
            point = far
        else:
            point, farthest = middle, max(2.0, farthest / 4.0)
    return Optimum(point.at, point.counts, point.objective, point.steepness, passes, point.steepness <= tolerance)


def _polish(posterior: Posterior, point: _Point, tolerance: float) -> tuple[_Point, int]:
    """Take Newton's steps with the curvature of the first point, each mixed with those before (Anderson 1965).

    With very many parameters they are EM steps. Mixing makes up for the curvature having changed, and for what
    annotators and domains share moving along. Ends where steps no longer help; returns the best point, and the passes.
    """
    solve = _curvature_at(posterior, point)
    best, first, passes = point, point.steepness, 0
    history: list[tuple[Floats, Floats]] = []
    # Further than asked, as long as steps help: in flat directions the mode is some thousand times as far off.
    finest, unhelpful = FINER * tolerance, 0
    while best.steepness > finest and passes < MOST_POLISHING and (unhelpful < 6 or best.steepness > tolerance):
        step_p, scale_p = solve(point), np.sqrt(point.known_p)
        history = [*history[-MEMORY:], (point.x_p, step_p)]
        if len(history) > 1:
            # The mixture whose residual, in standard errors, is least.
            moved_hp, changed_hp = (now_p - np.stack(before) for now_p, before in
                                    zip(history[-1], zip(*history[:-1], strict=True), strict=True))  # fmt: skip
            weight_h = np.linalg.lstsq((scale_p * changed_hp).T, scale_p * step_p, rcond=1e-10)[0]
            step_p = step_p - weight_h @ (moved_hp + changed_hp)
        step_p = step_p * (LONGEST / max(LONGEST, np.abs(step_p).max(initial=0.0)))
        point = _Point(posterior, unpack(point.x_p + step_p, point.at))
        passes += 1
        unhelpful = 0 if point.steepness < 0.5 * best.steepness else unhelpful + 1
        if point.steepness < best.steepness:
            best = point
        elif not point.steepness < STEEPER * first:
            break
    return best, passes


def _curvature_at(posterior: Posterior, point: _Point) -> Callable[[_Point], Floats]:
    """Return a function that solves with the curvature; with very many parameters, one that takes an EM step."""
    if posterior.n_parameters <= DENSE and posterior.n_cells <= DENSE_CELLS:
        curvature_pp = posterior.information(point.at, point.counts)
        for damping in DAMPING[point.steepness > CALM :]:
            try:
                damped_pp = curvature_pp + damping * np.diag(point.known_p)
                factor = cho_factor(damped_pp, lower=True, check_finite=False, overwrite_a=True)
            except LinAlgError:
                continue
            return lambda there: cho_solve(factor, there.gradient_p, check_finite=False)
    return lambda there: there.step_p


def find_mode(
    posterior: Posterior, *, all_starts: bool, watch: Watch | None = None
) -> tuple[Optimum, SecondMode | None, dict[str, float]]:
    """Find the best mode; return also the second best, and the objective reached from each start.

    Parameters
    ----------
    posterior
        The log posterior.
    all_starts
        Whether several starts are tried, as for the paper's model; else the search begins at the vote shares: of
        several modes the highest is no better against known labels than the one found from there.
    watch
        What is told of the steepness.
    """
    patterns = posterior.patterns
    # Log ratios are to the first level, and of several modes a search finds one: it goes the way of the votes, so that
    # a scale turned round has the same mode.
    if posterior.graded and (votes_k := (patterns.weight_r @ patterns.counts_rk).tolist()) < votes_k[::-1]:
        there = find_mode(turned(posterior), all_starts=False, watch=watch)[0]
        optimum = maximise(posterior, mirrored(there.at), max_passes=1)
        optimum = optimum._replace(passes=1 + there.passes, converged=there.converged)
        return optimum, None, {"share": optimum.objective}
    sample = posterior.sample(SAMPLE_VOTES)
    sampled = sample is not posterior
    begin = dict(starts(sample)) if all_starts else {"share": share_start(sample)}
    optima, most_passes = dict[str, Optimum](), MAX_PASSES if all_starts else SAMPLE_PASSES
    if all_starts or sampled:
        for name, start in begin.items():
            optima[name] = maximise(sample, start, tolerance=ROUGH, max_passes=most_passes, watch=watch)
    # Earlier starts win a tie, the paper's first: `max` keeps the first of equals.
    best = max(begin, key=lambda name: round(optima[name].objective, 2) if optima else 0.0)
    at = optima[best].at if optima else begin[best]
    # From where a sample's search ended: quasi-Newton steps at once.
    tolerance = MANY_TOLERANCE if sampled or posterior.n_parameters > MANY_PARAMETERS else TOLERANCE
    near = MANY_NEAR if sampled else NEAR
    optimum = maximise(posterior, at, tolerance=tolerance, near=near, max_passes=MAX_PASSES, watch=watch)
    optimum = optimum._replace(passes=optimum.passes + sum(rough.passes for rough in optima.values()))
    if not all_starts:
        return optimum, None, {best: optimum.objective}
    second = _second_mode(sample, optima, best)
    return optimum, second, {name: rough.objective for name, rough in optima.items()}


def turned(posterior: Posterior) -> Posterior:
    """Return the log posterior of the same votes with the scale turned round."""
    patterns, last = posterior.patterns, posterior.patterns.n_labels - 1
    code_v = patterns.code_v + last - 2 * (patterns.code_v % patterns.n_labels)
    clamp_r = np.where(patterns.clamp_r == UNKNOWN, UNKNOWN, last - patterns.clamp_r).astype(patterns.clamp_r.dtype)
    pseudo = mirrored(Parameters(posterior.pseudo_g[None], posterior.pseudo_akv))
    return replace(
        posterior, patterns=replace(patterns, code_v=code_v, clamp_r=clamp_r), pseudo_g=pseudo.weight_dg[0],
        pseudo_akv=pseudo.confusion_akv, common_kv=np.asarray(posterior.common_kv)[::-1, ::-1],
    )  # fmt: skip


def mirrored(at: Parameters) -> Parameters:
    """Return the parameters of a scale turned round: its levels, and the pairs of neighbours, in the other order."""
    parts = np.split(at.weight_dg, [at.confusion_akv.shape[-1]], axis=1)
    return Parameters(np.concatenate([part[:, ::-1] for part in parts], axis=1), at.confusion_akv[:, ::-1, ::-1])


def _second_mode(sample: Posterior, optima: dict[str, Optimum], best: str) -> SecondMode | None:
    """Return the highest optimum that differs from the best one and is about as high."""
    top, weight_r = optima[best], sample.patterns.weight_r
    p_rk, modes = score(sample.patterns, sample.states, top.at)[0], []
    for name, optimum in optima.items():
        if name == best or optimum.objective < top.objective - 2 * CLOSE:
            continue
        other_rk = score(sample.patterns, sample.states, optimum.at)[0]
        if np.average(np.abs(p_rk - other_rk).max(axis=1), weights=weight_r) > APART:
            changed = float(np.average(highest(p_rk) != highest(other_rk), weights=weight_r))
            distance = round(top.objective - optimum.objective, 2) + 0.0
            shares_k = optimum.at.weight_dg.mean(axis=0) @ sample.states.label_gk
            modes.append(SecondMode(name, distance, changed, tuple(shares_k.tolist())))
    return min(modes, key=lambda mode: mode.distance, default=None)


def starts(posterior: Posterior) -> Iterator[tuple[str, Parameters]]:
    """Yield starting parameters with their names, the paper's first; annotators and labels are all treated alike."""
    patterns = posterior.patterns
    equal_g = posterior.states.size_g / posterior.states.n_states
    yield "paper", Parameters(np.tile(equal_g, (patterns.n_domains, 1)), share_start(posterior).confusion_akv)
    share_rk = vote_shares(patterns, 0.01)
    yield "share", start_from(posterior, share_rk)
    for k in range(min(patterns.n_labels, MOST_LABELS)):
        has_r = share_rk[:, k] > 0.02
        any_rk = share_rk.copy()
        any_rk[has_r] = 0.02 / patterns.n_labels
        any_rk[has_r, k] += 0.98
        yield f"any {k}", start_from(posterior, any_rk)


def share_start(posterior: Posterior) -> Parameters:
    """Return the start of the mixed model: the paper's rows, labels weighted by their share of votes.

    Rows from the vote shares would take a label that is never the most frequent one for an item between two others.
    """
    patterns, weight_g = posterior.patterns, FEW_BETWEEN * posterior.states.size_g
    share_k = patterns.weight_r @ vote_shares(patterns, 0.5)
    weight_g[: patterns.n_labels] = patterns.n_labels * shares_of(share_k)
    confusion_akv = np.tile(0.6 * np.eye(patterns.n_labels) + 0.4 / patterns.n_labels, (patterns.n_annotators, 1, 1))
    return Parameters(np.tile(shares_of(weight_g), (patterns.n_domains, 1)), confusion_akv)


def answers_start(posterior: Posterior, annotators: Ints) -> Parameters:
    """Return a start at which these annotators are right wherever they voted, and all others where most are."""
    patterns, p_rk = posterior.patterns, vote_shares(posterior.patterns, 0.5)
    voter_v, label_v = np.divmod(patterns.code_v, patterns.n_labels)
    row_v, named_v = np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r)), np.isin(voter_v, annotators)
    answers_rk = np.zeros_like(p_rk)
    np.add.at(answers_rk, (row_v[named_v], label_v[named_v]), 1.0)
    answered_r = answers_rk.any(axis=1)
    p_rk[answered_r] = shares_of(answers_rk[answered_r])
    return Parameters(share_start(posterior).weight_dg, shares_of(_votes_given(patterns, p_rk) + FLAT))


def vote_shares(patterns: Patterns, pseudo_votes: float) -> Floats:
    """Compute each row's share of votes by label, after adding some of a vote to every label."""
    counts_rk: Floats = patterns.counts_rk + np.float64(pseudo_votes)
    clamped = patterns.clamp_r != UNKNOWN
    counts_rk[clamped] = np.eye(patterns.n_labels)[patterns.clamp_r[clamped]]
    counts_rk /= counts_rk.sum(axis=1, keepdims=True)
    return counts_rk


def start_from(posterior: Posterior, p_rk: Floats) -> Parameters:
    """Take one M-step from label probabilities, the only states being labels."""
    patterns = posterior.patterns
    weight_k = patterns.weight_r @ p_rk + posterior.pseudo_g + FLAT
    rows_akv = posterior.pseudo_akv + _votes_given(patterns, p_rk) + FLAT
    return Parameters(np.tile(shares_of(weight_k), (patterns.n_domains, 1)), shares_of(rows_akv))


def _votes_given(patterns: Patterns, p_rk: Floats) -> Floats:
    """Count votes by annotator, label and vote, given label probabilities: `votes_akv`."""
    n_labels = patterns.n_labels
    votes_ck = np.zeros((patterns.n_annotators * n_labels, n_labels))
    for rows in patterns.chunks(65_536):
        start_r = patterns.start_r[rows.start : rows.stop + 1]
        code_v, votes_r = patterns.code_v[start_r[0] : start_r[-1]], np.diff(start_r)
        for k in range(n_labels):
            weight_v = np.repeat(patterns.weight_r[rows] * p_rk[rows, k], votes_r)
            votes_ck[:, k] += np.bincount(code_v, weights=weight_v, minlength=len(votes_ck))
    return votes_ck.reshape(-1, n_labels, n_labels).transpose(0, 2, 1)
