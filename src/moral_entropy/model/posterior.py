"""The log posterior of weights and confusion: expected counts, priors, and what votes leave unknown.

Takes `Patterns` and `States`. `pass_over` is one pass over the votes at some parameters, `state_posterior` the
probabilities of the states of some rows: sums add up over parts of the votes, rows concatenate. Labels are summed out
throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

from moral_entropy.model import kernels
from moral_entropy.model.graded import prior_votes
from moral_entropy.model.patterns import Patterns
from moral_entropy.model.states import States
from moral_entropy.model.threads import over_blocks
from moral_entropy.votes.table import UNKNOWN, Floats

BLOCKS = 16
"""Blocks of rows in a large pass; fixed, so that results do not depend on the number of threads."""

BLOCK_NUMBERS = 1 << 27
"""Most numbers in the sums of all blocks; there are fewer blocks where one has very many."""

SMALL = 400_000
"""Votes below which one block in one thread is faster than several threads."""

ROWS_AT_ONCE = 32_768
"""Rows whose states' probabilities are computed together."""

FLOOR = 1e-12
"""Least probability of a label: under flat priors a mode may lie on the edge of the simplex."""

DOMAIN_STRENGTH = 30.0
"""Items' worth with which every domain's weights are drawn towards those of all items. Log loss over that of the
smoothed share on the MFTC replica: .801 with 20, .798 with 30, .810 with 100; a learnt strength is no better."""


class Parameters(NamedTuple):
    """Weights of groups of states by domain, and confusion. Axes: **d**omain, **g**roup, true **k**, **v**oted."""

    weight_dg: Floats
    confusion_akv: Floats


class Counts(NamedTuple):
    """Expected items by domain and group, votes by annotator, label and vote, by code and state; the log likelihood."""

    items_dg: Floats
    votes_akv: Floats
    votes_cz: Floats
    log_likelihood: float

    def __add__(self, addend: Counts) -> Counts:  # type: ignore[override]
        """Add the counts of other votes at the same parameters."""
        sums: tuple[Any, ...] = tuple(mine + theirs for mine, theirs in zip(self, addend, strict=True))  # type: ignore[operator]
        return Counts(*sums)


def probabilities(states: States, at: Parameters) -> tuple[Floats, Floats, Floats]:
    """Return how probable votes are by state, relative to the likeliest, and states by domain: `vote_cz`, `weight_dz`.

    Last the log of each vote's probability in its likeliest state, `top_c`.
    """
    vote_cz = np.ascontiguousarray(states.votes_azv(at.confusion_akv).transpose(0, 2, 1)).reshape(-1, states.n_states)
    top_c = vote_cz.max(axis=1)
    weight_dz = np.ascontiguousarray(states.weight_of_states(at.weight_dg))
    return np.maximum(vote_cz / top_c[:, None], 1e-30), weight_dz, np.log(top_c)


def pass_over(patterns: Patterns, states: States, at: Parameters, threads: int | None = None) -> Counts:
    """Compute the expected counts of some votes at some parameters: one E-step."""
    n_states, bound_b, start_r = states.n_states, np.array([0, patterns.n_rows]), patterns.start_r
    vote_cz, weight_dz, top_c = probabilities(states, at)
    if start_r[-1] >= SMALL:
        # Blocks of about equally many votes.
        n_blocks = max(1, min(BLOCKS, BLOCK_NUMBERS // vote_cz.size))
        bound_b = np.searchsorted(start_r, np.linspace(0, start_r[-1], n_blocks + 1)).astype(np.int64)
        bound_b[0], bound_b[-1] = 0, patterns.n_rows
    count_bcz = np.zeros((len(bound_b) - 1, len(vote_cz), n_states - 1))
    total_bdt = np.zeros((len(bound_b) - 1, patterns.n_domains, n_states))
    arguments = (patterns.arrays, vote_cz, weight_dz, bound_b, count_bcz, total_bdt)
    over_blocks(partial(kernels.em_pass, *arguments), len(bound_b) - 1, threads)
    total_dt, count_cz = total_bdt.sum(axis=0), count_bcz.sum(axis=0)
    items_dz = np.concatenate([(patterns.items_d - total_dt[:, :-1].sum(axis=1))[:, None], total_dt[:, :-1]], axis=1)
    votes_c = patterns.votes_ak.ravel()
    rest_c = votes_c - count_cz.sum(axis=1)
    votes_cz = np.concatenate([rest_c[:, None], count_cz], axis=1).clip(min=0.0)
    votes_akv = votes_cz.reshape(patterns.n_annotators, -1, n_states).transpose(0, 2, 1)
    if not states.corners_only:
        # The votes of a state are shared out among the labels that it mixes.
        shares_akv = np.matmul(states.mix_zk.T, votes_akv / states.votes_azv(at.confusion_akv))
        votes_akv = at.confusion_akv * shares_akv
    log_likelihood = float(total_dt[:, -1].sum() + votes_c @ top_c)
    return Counts(states.add_groups(items_dz.clip(min=0.0)), votes_akv, votes_cz, log_likelihood)


def count_cells(patterns: Patterns, states: States) -> float:
    """Count the updates of curvature cells in a pass over some votes, at most: as if each were another annotator's."""
    n_own = patterns.n_labels * (patterns.n_labels - 1)
    cells_r = (np.diff(patterns.start_r) * n_own + states.n_groups - 1.0) ** 2
    return float(cells_r.sum()) * states.n_states / 2.0


def missing_information(patterns: Patterns, states: States, at: Parameters) -> Floats:
    """Compute what not knowing states takes from the information, as negative numbers: on the lower triangle."""
    missing_pp = np.zeros((sum(part[..., 1:].size for part in at),) * 2)
    vote_cz, weight_dz, _ = probabilities(states, at)
    kernels.take_missing(patterns.arrays, vote_cz, weight_dz, vote_scores(states, at), states.group_z,
                         patterns.n_labels, 0, patterns.n_rows, missing_pp)  # fmt: skip
    return missing_pp


def own_missing_information(patterns: Patterns, states: States, at: Parameters) -> Floats:
    """Compute the same for the block of each annotator alone."""
    (vote_cz, weight_dz, _), score_czt = probabilities(states, at), vote_scores(states, at)
    missing_app = np.zeros((patterns.n_annotators, score_czt.shape[-1], score_czt.shape[-1]))
    # Compiled when it is first called: few votes have so many annotators.
    take: Any = kernels.take_own_missing
    take(patterns.arrays, vote_cz, weight_dz, score_czt, patterns.n_labels, 0, patterns.n_rows, missing_app)
    return missing_app


def vote_scores(states: States, at: Parameters) -> Floats:
    """Compute the expected score of a vote given the state, by coordinate of its annotator: `score_czt`."""
    confusion_akv, n_labels = at.confusion_akv, states.n_labels
    joint_azvk = states.mix_zk[:, None, :] * confusion_akv.transpose(0, 2, 1)[:, None]
    share_avzk = (joint_azvk / states.votes_azv(confusion_akv)[..., None]).transpose(0, 2, 1, 3)
    excess_akvo = np.eye(n_labels)[:, 1:] - confusion_akv[:, :, None, 1:]
    score_avzko = share_avzk[..., None] * excess_akvo.transpose(0, 2, 1, 3)[:, :, None]
    return np.ascontiguousarray(score_avzko).reshape(len(confusion_akv) * n_labels, states.n_states, -1)


Spread = Callable[..., Any]
"""Applies a function of patterns, states and more to all parts of the votes, wherever they are; adds up the results."""


def state_posterior(patterns: Patterns, states: States, at: Parameters, rows: slice) -> Floats:
    """Compute the probabilities of the states of some rows at some parameters."""
    start_r, clamp_r = patterns.start_r[rows.start : rows.stop + 1], patterns.clamp_r[rows]
    code_v, (vote_cz, weight_dz, _) = patterns.code_v[start_r[0] : start_r[-1]], probabilities(states, at)
    votes_rc = csr_array((np.ones(len(code_v)), code_v, start_r - start_r[0]), shape=(len(clamp_r), len(vote_cz)))
    domain_r = patterns.domain_r[rows] if patterns.n_domains > 1 else 0
    posterior_rz: Floats = softmax(votes_rc @ np.log(vote_cz) + np.log(weight_dz)[domain_r], axis=1)
    posterior_rz[clamp_r != UNKNOWN] = np.eye(states.n_states)[clamp_r[clamp_r != UNKNOWN]]
    return posterior_rz


def score(
    patterns: Patterns, states: States, at: Parameters, threads: int | None = None
) -> tuple[Floats, Floats, Floats]:
    """Compute every row's label probabilities, the mass between labels, and the mean entropy of its place there."""
    p_rk, interior_r, ambiguity_r = np.empty((patterns.n_rows, states.n_labels)), *np.zeros((2, patterns.n_rows))
    chunks = patterns.chunks(ROWS_AT_ONCE)

    def run(first: int, last: int) -> None:
        for rows in chunks[first:last]:
            posterior_rz = state_posterior(patterns, states, at, rows)
            p_rk[rows] = posterior_rz @ states.mix_zk
            interior_r[rows] = posterior_rz[:, states.n_labels :].sum(axis=1)
            ambiguity_r[rows] = posterior_rz @ states.ambiguity_z

    over_blocks(run, len(chunks), threads)
    return p_rk, interior_r, ambiguity_r


@dataclass(frozen=True, eq=False)
class Posterior:
    """The log posterior of one ballot.

    Parameters
    ----------
    patterns, states
        The votes, and the states that an item can be in.
    pseudo_g, pseudo_akv
        Pseudo-items of the weights, and pseudo-votes of every annotator's own confusion rows.
    common, common_kv
        Votes' weight with which every row is drawn to the common row, and the pseudo-votes of that row.
    threads
        At most this many threads; all cores by default.
    spread
        Where the votes are spread over machines: adds up a function over all of them. `patterns` is then a sample.
    held
        Pseudo-counts that do not follow the counts: those at a mode, around which is sampled.
    graded
        Whether labels are levels of a scale: what rows are drawn to then differs by annotator, see `graded`.
    """

    patterns: Patterns
    states: States
    pseudo_g: Floats
    pseudo_akv: Floats
    common: float = 0.0
    common_kv: Floats | float = 0.0
    threads: int | None = None
    spread: Spread | None = None
    held: Parameters | None = None
    graded: bool = False

    def add_up(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Apply a function of patterns and states to all votes: here, or where they are."""
        if self.spread is None:
            return function(self.patterns, self.states, *arguments)
        return self.spread(function, self.states, *arguments)

    def sample(self, most_votes: int) -> Posterior:
        """Return the log posterior of a sample of the votes; itself where they are few, and here."""
        if self.spread is None and len(self.patterns.code_v) <= most_votes:
            return self
        return replace(self, patterns=self.patterns.sample(most_votes), spread=None)

    @property
    def n_parameters(self) -> int:
        """Free parameters: log ratios of the weights and of every confusion row."""
        n_own = self.patterns.n_labels * (self.patterns.n_labels - 1)
        return self.patterns.n_domains * (self.states.n_groups - 1) + self.patterns.n_annotators * n_own

    @cached_property
    def n_cells(self) -> float:
        """Number of updates of curvature cells in a pass over the votes."""
        return float(self.add_up(count_cells))

    def expect(self, at: Parameters) -> Counts:
        """Compute the expected counts at some parameters."""
        counts: Counts = self.add_up(pass_over, at, self.threads)
        return counts

    def pseudo_counts(self, counts: Counts) -> Parameters:
        """Return the pseudo-counts of weights and rows: those given, and towards what domains and annotators share."""
        if self.held is not None:
            return self.held
        pseudo_dg = self.pseudo_g[None]
        if self.patterns.n_domains > 1:
            weight_g = counts.items_dg.sum(axis=0) + self.pseudo_g
            pseudo_dg = np.tile(DOMAIN_STRENGTH * weight_g / weight_g.sum(), (self.patterns.n_domains, 1))
        if not self.common:
            return Parameters(pseudo_dg, self.pseudo_akv)
        common_kv = counts.votes_akv.sum(axis=0) + self.common_kv
        common_kv = common_kv / common_kv.sum(axis=-1, keepdims=True)
        if self.graded:
            return Parameters(pseudo_dg, self.pseudo_akv + prior_votes(counts.votes_akv, common_kv))
        return Parameters(pseudo_dg, self.pseudo_akv + self.common * common_kv)

    def completed(self, counts: Counts) -> Parameters:
        """Return expected counts and pseudo-counts together."""
        pseudo = self.pseudo_counts(counts)
        return Parameters(counts.items_dg + pseudo.weight_dg, counts.votes_akv + pseudo.confusion_akv)

    def objective(self, at: Parameters, counts: Counts) -> float:
        """Return the log posterior, up to a constant, with what is common held as the counts have it."""
        return counts.log_likelihood + float(log_prior(self.pseudo_counts(counts), at))

    def gradient(self, at: Parameters, counts: Counts) -> Floats:
        """Compute its derivative in log-ratio coordinates."""
        return derivatives(self.completed(counts), at)[0]

    def information(self, at: Parameters, counts: Counts) -> Floats:
        """Compute the negative Hessian in log-ratio coordinates, by Louis' identity: valid on the lower triangle.

        It is the information with all labels known, minus the covariance of that score given the votes.
        """
        curvature_pp: Floats = np.require(self.add_up(missing_information, at), requirements="W")
        first, completed = 0, self.completed(counts)
        known_app = self._known_states(at, counts, completed)
        for block in (*labelled_information(completed.weight_dg, at.weight_dg), *known_app):
            last = first + len(block)
            curvature_pp[first:last, first:last] += block
            first = last
        return curvature_pp

    def own_information(self, at: Parameters, counts: Counts) -> Floats:
        """Compute the block of every annotator; what lies between them is left out."""
        known_app = self._known_states(at, counts, self.completed(counts))
        own_app: Floats = known_app + self.add_up(own_missing_information, at)
        return own_app

    def _known_states(self, at: Parameters, counts: Counts, completed: Parameters) -> Floats:
        """Compute the information of every annotator's rows with all states known: `own_app`."""
        (n_annotators, n_labels, _), label_k = at.confusion_akv.shape, np.arange(self.patterns.n_labels)
        n_own = n_labels * (n_labels - 1)
        block_akop = labelled_information(completed.confusion_akv, at.confusion_akv)
        own_akolp = np.zeros((n_annotators, n_labels, n_labels - 1, n_labels, n_labels - 1))
        own_app = own_akolp.reshape(n_annotators, n_own, n_own)
        if not self.states.corners_only:
            # For which label a vote was is unknown: less the covariance of the score given the states.
            excess_akvo = np.eye(n_labels)[:, 1:] - at.confusion_akv[:, :, None, 1:]
            weighted_akvo = counts.votes_akv[..., None] * excess_akvo
            block_akop = block_akop - weighted_akvo.swapaxes(2, 3) @ excess_akvo
            score_axt = vote_scores(self.states, at).reshape(n_annotators, -1, n_own)
            own_app += score_axt.swapaxes(1, 2) @ (counts.votes_cz.reshape(n_annotators, -1, 1) * score_axt)
        own_akolp[:, label_k, :, label_k] += block_akop.swapaxes(0, 1)
        return own_app


def derivatives(completed: Parameters, at: Parameters) -> tuple[Floats, Floats]:
    """Return the derivative in log-ratio coordinates, from expected counts and pseudo-counts together: `slope_p`.

    And the information about every coordinate with all labels known, `known_p`. On the edge of the simplex a
    probability rounds to 0 or 1, and its information to nothing: it is a little.
    """
    slopes, information = [], []
    for total, share in zip(completed, at, strict=True):
        expected = total.sum(axis=-1, keepdims=True) * share
        slopes.append((total - expected)[..., 1:].ravel())
        information.append((expected * (1.0 - share))[..., 1:].ravel())
    return np.concatenate(slopes), np.concatenate(information).clip(min=1e-12)


def log_prior(pseudo: Parameters, at: Parameters) -> Floats:
    """Return the log density of the prior with these pseudo-counts, up to a constant; leading axes (draws) are kept."""
    weights = (pseudo.weight_dg * np.log(at.weight_dg)).sum(axis=(-2, -1))
    return np.asarray(weights + (pseudo.confusion_akv * np.log(at.confusion_akv)).sum(axis=(-3, -2, -1)))


def labelled_information(completed: Floats, shares: Floats) -> Floats:
    """Compute the information about each row of shares with all labels known: that of a multinomial."""
    inner = shares[..., 1:]
    outer = inner[..., :, None] * inner[..., None, :]
    total = completed.sum(axis=-1)[..., None, None]
    return np.asarray(total * (inner[..., :, None] * np.eye(inner.shape[-1]) - outer))


def shares_of(counts: Floats) -> Floats:
    """Turn counts into shares along the last axis, none of them 0; a row without any has all labels alike."""
    shares = np.maximum(counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1e-300), FLOOR)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
