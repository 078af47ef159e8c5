"""The log posterior of weights and confusion, and what follows from its expected counts.

Takes `Patterns` and pseudo-counts; one pass over the votes at given `Parameters` returns an `Expectation`, from
which the log posterior, its gradient, and EM's next parameters are computed. Class labels are summed out throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.consensus import kernels
from moral_entropy.consensus.components import component_covariance, component_shares, vote_scores, votes_by_component
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.states import States, corners
from moral_entropy.consensus.threads import over_blocks
from moral_entropy.votes.table import Floats

BLOCKS = 16
"""Blocks of rows in a large pass; fixed, so that results do not depend on the number of threads."""

BLOCK_NUMBERS = 1 << 27
"""Most numbers in the sums of all blocks; there are fewer blocks where one has very many."""

SMALL = 400_000
"""Votes below which one block in one thread is faster than several threads."""

OWN_BYTES = 1 << 28
"""Most memory, in bytes, for the sums of annotators' own blocks by several threads."""

ROWS_AT_ONCE = 32_768
"""Rows whose states' probabilities are computed together."""

FLOOR = 1e-12
"""Least probability of a label: under flat priors a mode may lie on the edge of the simplex."""

StatesOf = Callable[[slice], Floats]
"""Computes the probabilities of the states of consecutive rows."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Weights and confusion, as logs. Axes: **g** group of states, **a** annotator, true **k**, **v**oted.

    Groups are the labels first, which are all of them under the paper's model: its weights are the prevalence. Under
    the mixed model weights have one row per domain.
    """

    log_weight_g: Floats
    log_confusion_akv: Floats

    @cached_property
    def weight_g(self) -> Floats:
        """The weights themselves."""
        return np.exp(self.log_weight_g)

    @cached_property
    def confusion_akv(self) -> Floats:
        """The confusion itself."""
        return np.exp(self.log_confusion_akv)

    @property
    def mixed(self) -> bool:
        """Whether these are parameters of the mixed model: one row of weights per domain."""
        return self.log_weight_g.ndim == 2

    @property
    def least(self) -> float:
        """The smallest of all these probabilities."""
        return float(np.exp(min(self.log_weight_g.min(), self.log_confusion_akv.min(initial=0.0))))

    def at_least_chance(self) -> Parameters:
        """Raise every probability of a right answer that is below chance to chance; leading axes are kept."""
        confusion_akv = self.confusion_akv
        n_labels = confusion_akv.shape[-1]
        right_ak = np.diagonal(confusion_akv, axis1=-2, axis2=-1)[..., None]
        short_ak = right_ak < 1.0 / n_labels
        shrink_ak = np.where(short_ak, (1.0 - 1.0 / n_labels) / np.maximum(1.0 - right_ak, 1e-300), 1.0)
        lifted_akv = np.where(np.eye(n_labels, dtype=bool) & short_ak, 1.0 / n_labels, confusion_akv * shrink_ak)
        return Parameters(self.log_weight_g, np.log(lifted_akv))

    def push_cz(self, states: States | None = None) -> Floats:
        """By vote code, the log ratio of each further state's likelihood to state 0's; states are labels by default."""
        log_azv = self.log_confusion_akv
        if states is not None and not states.corners_only:
            log_azv = np.log(states.votes_azv(self.confusion_akv))
        by_code = log_azv.transpose(0, 2, 1).reshape(-1, log_azv.shape[1])
        return np.ascontiguousarray(by_code[:, 1:] - by_code[:, :1])

    def base_dz(self, states: States | None = None) -> Floats:
        """By domain, the log ratio of each further state's weight to state 0's; states are labels by default."""
        log_dz = np.atleast_2d(self.log_weight_g)
        if states is not None and not states.corners_only:
            log_dz = (log_dz - np.log(states.size_g))[:, states.group_z]
        return np.ascontiguousarray(log_dz[:, 1:] - log_dz[:, :1])


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected counts at some parameters, pseudo-counts included, and the log posterior there."""

    items_g: Floats
    votes_akv: Floats
    log_posterior: float

    def maximum(self) -> Parameters:
        """Return the parameters that maximise the likelihood of the counts: EM's next step."""
        return Parameters(_log_shares(self.items_g), _log_shares(self.votes_akv))

    def gradient(self, at: Parameters) -> Floats:
        """Compute the derivative of the log posterior in log-ratio coordinates at the parameters of the pass."""
        weights = self.items_g - self.items_g.sum(axis=-1, keepdims=True) * at.weight_g
        confusion = self.votes_akv - self.votes_akv.sum(axis=-1, keepdims=True) * at.confusion_akv
        return np.concatenate([weights[..., 1:].ravel(), confusion[..., 1:].ravel()])


def _log_shares(counts: Floats) -> Floats:
    # Under flat priors a row can be left without a vote; all its labels are then as good.
    shares = np.maximum(counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1e-300), FLOOR)
    return np.asarray(np.log(shares / shares.sum(axis=-1, keepdims=True)))


def _at_least_chance(votes_akv: Floats) -> Floats:
    """Raise counts of right answers to chance: the shares of the counts are then the best row within the bound."""
    n_labels = votes_akv.shape[-1]
    right_ak = np.diagonal(votes_akv, axis1=1, axis2=2)
    chance_ak = (votes_akv.sum(axis=-1) - right_ak) / (n_labels - 1)
    return np.asarray(np.where(np.eye(n_labels, dtype=bool), np.maximum(right_ak, chance_ak)[..., None], votes_akv))


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """The log posterior of one ballot.

    Parameters
    ----------
    patterns
        The votes.
    pseudo_g, pseudo_akv
        Pseudo-counts of weights and confusion: alpha - 1 and beta - 1 for a density on the simplex, alpha
        and beta for one in log-ratio coordinates.
    threads
        At most this many threads; all cores by default.
    better_than_chance
        Whether right answers are kept at chance or above.
    between
        The states of items, where they may lie between labels; None for the paper's model.
    """

    patterns: Patterns
    pseudo_g: Floats
    pseudo_akv: Floats
    threads: int | None = None
    better_than_chance: bool = False
    between: States | None = None

    @property
    def states(self) -> States:
        """The states an item can be in."""
        return self.between or corners(self.patterns.n_labels)

    @property
    def n_parameters(self) -> int:
        """Free parameters: log ratios of the weights and of every confusion row."""
        n_labels = self.patterns.n_labels
        return self.n_weights + (n_labels - 1) * self.patterns.n_annotators * n_labels

    @property
    def n_weights(self) -> int:
        """Those of them that are log ratios of the weights, in every domain."""
        n_domains = self.pseudo_g.size // self.pseudo_g.shape[-1]
        return self.pseudo_g.size - int(n_domains)

    @cached_property
    def votes_c(self) -> Floats:
        """Votes by code: the labels' expected votes always add up to these."""
        return self.patterns.votes_c

    @property
    def n_items(self) -> float:
        """Items with a vote."""
        return float(self.items_d.sum())

    @cached_property
    def items_d(self) -> Floats:
        """Items with a vote, by domain."""
        patterns = self.patterns
        if patterns.n_domains == 1:
            return np.array([patterns.weight_r.sum()])
        counted_d = np.bincount(patterns.domain_r, weights=patterns.weight_r, minlength=patterns.n_domains)
        return counted_d.astype(np.float64)

    @cached_property
    def bound_b(self) -> NDArray[np.int64]:
        """Rows at which the blocks begin, of about equally many votes each."""
        start_r = self.patterns.start_r
        if start_r[-1] < SMALL:
            return np.array([0, self.patterns.n_rows])
        n_codes, n_labels = self.patterns.n_annotators * self.patterns.n_labels, self.patterns.n_labels
        n_blocks = max(1, min(BLOCKS, BLOCK_NUMBERS // (n_codes * n_labels)))
        edges = np.searchsorted(start_r, np.linspace(0, start_r[-1], n_blocks + 1))
        edges[0], edges[-1] = 0, self.patterns.n_rows
        return edges.astype(np.int64)

    @cached_property
    def _buffers(self) -> tuple[Floats, Floats]:
        n_blocks, n_states = len(self.bound_b) - 1, self.states.n_states
        total_bdt = np.zeros((n_blocks, self.patterns.n_domains, n_states))
        return np.zeros((n_blocks, len(self.votes_c), n_states - 1)), total_bdt

    @property
    def n_votes(self) -> int:
        """Votes that a pass reads; those of identical items count once."""
        return len(self.patterns.code_v)

    @cached_property
    def n_cells(self) -> float:
        """Number of updates of curvature cells in a pass over the votes."""
        n_other, states = self.patterns.n_labels - 1, self.states
        cells = ((np.diff(self.patterns.start_r) * (n_other + 1) * n_other + states.n_groups - 1) ** 2.0).sum()
        return float(cells if states.corners_only else cells * states.n_states / 4.0)

    def sample_rows(self, most_votes: int) -> LogPosterior:
        """Return the log posterior of a sample of the rows, where there are more votes than `most_votes`."""
        patterns = self.patterns
        if self.n_votes <= most_votes:
            return self
        n_rows = max(1, int(patterns.n_rows * most_votes / self.n_votes))
        rows = np.random.default_rng(0).choice(patterns.n_rows, n_rows, replace=False)
        return replace(self, patterns=patterns.take(np.sort(rows)))

    def expect(self, at: Parameters) -> Expectation:
        """Compute expected counts and log posterior at some parameters, in one pass over the votes."""
        return self._expectation(at, *self.pass_over(at))

    def pass_over(self, at: Parameters) -> tuple[Floats, Floats]:
        """Return sums of a pass: expected votes of states after the first; their items by domain, log likelihood."""
        patterns = self.patterns
        count_bcz, total_bdt = self._buffers
        count_bcz[:], total_bdt[:] = 0.0, 0.0
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r, patterns.clamp_r)
        if self.between is not None:
            return self._mixed_pass(rows, at)
        push_cz, base_dz = at.push_cz(), at.base_dz()

        def run(first: int, last: int) -> None:
            blocks = (self.bound_b, first, last)
            if patterns.n_labels == 2:
                parameters, out = (push_cz[:, 0].copy(), base_dz[0, 0]), (count_bcz[:, :, 0], total_bdt[:, 0])
                kernels.binary_pass(*rows, *parameters, *blocks, *out)
            else:
                kernels.general_pass(*rows, push_cz, base_dz[0], *blocks, count_bcz, total_bdt[:, 0])

        over_blocks(run, len(self.bound_b) - 1, self.threads)
        return count_bcz.sum(axis=0), total_bdt.sum(axis=0)

    def _mixed_pass(self, rows: tuple[Any, ...], at: Parameters) -> tuple[Floats, Floats]:
        """Make the same pass where items may lie between labels."""
        from moral_entropy.consensus import state_kernels

        states, (count_bcz, total_bdt) = self.states, self._buffers
        vote_azv = states.votes_azv(at.confusion_akv)
        vote_cz = np.ascontiguousarray(vote_azv.transpose(0, 2, 1)).reshape(-1, states.n_states)
        top_c = vote_cz.max(axis=1, keepdims=True)
        given = (self.patterns.domain_r, vote_cz / top_c, states.weight_of_states(at.weight_g))

        def run(first: int, last: int) -> None:
            state_kernels.mixed_pass(*rows, *given, self.bound_b, first, last, count_bcz, total_bdt)

        over_blocks(run, len(self.bound_b) - 1, self.threads)
        total_dt = total_bdt.sum(axis=0)
        # As in the other passes, the log likelihood is relative to state 0's.
        total_dt[0, -1] += self.votes_c @ np.log(top_c[:, 0]) - self._log_state0(at)
        return count_bcz.sum(axis=0), total_dt

    def _log_state0(self, at: Parameters) -> float:
        """Compute the log likelihood if every item were in state 0, which is label 0."""
        log_0_d, log_0_av = np.atleast_2d(at.log_weight_g)[:, 0], at.log_confusion_akv[:, 0, :]
        return float(self.items_d @ log_0_d + self.votes_c @ log_0_av.ravel())

    def _expectation(self, at: Parameters, count_cz: Floats, total_dt: Floats) -> Expectation:
        states = self.states
        items_dz = np.column_stack([self.items_d - total_dt[:, :-1].sum(axis=1), total_dt[:, :-1]]).clip(min=0.0)
        items_g = states.add_groups(items_dz).reshape(self.pseudo_g.shape)
        votes_cz = self.votes_by_state(count_cz)
        vote_azv = states.votes_azv(at.confusion_akv)
        log_prior = (self.pseudo_g * at.log_weight_g).sum() + (self.pseudo_akv * at.log_confusion_akv).sum()
        counts_akv = votes_by_component(states, at.confusion_akv, vote_azv, votes_cz) + self.pseudo_akv
        return Expectation(
            items_g=items_g + self.pseudo_g,
            votes_akv=_at_least_chance(counts_akv) if self.better_than_chance else counts_akv,
            log_posterior=float(total_dt[:, -1].sum() + self._log_state0(at) + log_prior),
        )

    def votes_by_state(self, count_cz: Floats) -> Floats:
        """Add state 0, which has the remaining votes, to the expected votes of the others."""
        # Rounding can leave about -1e-12.
        return np.column_stack([self.votes_c - count_cz.sum(axis=1), count_cz]).clip(min=0.0)

    def states_of(self, at: Parameters) -> StatesOf:
        """Return a function that computes the probabilities of the states of consecutive rows at some parameters.

        Examples
        --------
        >>> from moral_entropy.consensus.patterns import collapse
        >>> from moral_entropy.votes.table import ballot_from_codes
        >>> votes = {"item_v": [0, 1], "annotator_v": [0, 0], "label_v": [0, 1]}
        >>> patterns = collapse(ballot_from_codes("q", ("0", "1"), **votes))
        >>> at = Parameters(np.log([0.5, 0.5]), np.log([[[0.9, 0.1], [0.1, 0.9]]]))
        >>> LogPosterior(patterns, np.zeros(2), np.zeros((1, 2, 2))).states_of(at)(slice(1, 2)).round(3)
        array([[0.1, 0.9]])
        """
        patterns = self.patterns
        votes = (patterns.start_r, patterns.code_v, patterns.clamp_r, patterns.domain_r)
        parameters = (at.push_cz(self.between), at.base_dz(self.between))

        def states_of(rows: slice) -> Floats:
            posterior_rz = np.empty((rows.stop - rows.start, self.states.n_states))
            kernels.row_posteriors(*votes, *parameters, rows.start, rows.stop, posterior_rz)
            return posterior_rz

        return states_of

    def posterior_rz(self, at: Parameters) -> Floats:
        """Compute the probabilities of the states of every row at some parameters."""
        return self._by_rows(at, lambda posterior_rz: posterior_rz, self.states.n_states)

    def posterior_rk(self, at: Parameters) -> Floats:
        """Compute the label probabilities of every row at some parameters."""
        states = self.states
        if states.corners_only:
            return self.posterior_rz(at)
        return self._by_rows(at, lambda posterior_rz: posterior_rz @ states.mix_zk, states.n_labels)

    def interior_r(self, at: Parameters) -> Floats:
        """Compute how probably every row's items lie between labels."""
        n_labels = self.patterns.n_labels
        return self._by_rows(at, lambda posterior_rz: posterior_rz[:, n_labels:].sum(axis=1, keepdims=True), 1)[:, 0]

    def _by_rows(self, at: Parameters, read: Callable[[Floats], Floats], n_columns: int) -> Floats:
        """Compute what is read from the states' probabilities, some rows at a time."""
        n_rows, states_of = self.patterns.n_rows, self.states_of(at)
        out_rx = np.empty((n_rows, n_columns))

        def run(first: int, last: int) -> None:
            for lo in range(first * ROWS_AT_ONCE, min(last * ROWS_AT_ONCE, n_rows), ROWS_AT_ONCE):
                rows = slice(lo, min(lo + ROWS_AT_ONCE, n_rows))
                out_rx[rows] = read(states_of(rows))

        over_blocks(run, -(-n_rows // ROWS_AT_ONCE), self.threads)
        return out_rx

    def take_missing(self, at: Parameters, curvature_pp: Floats) -> None:
        """Subtract the missing information from the lower triangle of the complete-data information, in place."""
        patterns = self.patterns
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r)
        if self.between is None:
            kernels.add_missing_information(*rows, self.posterior_rk(at), at.confusion_akv, curvature_pp)
            return
        from moral_entropy.consensus import state_kernels

        score_czt = vote_scores(self.states, at.confusion_akv)
        parameters = (at.push_cz(self.between), at.base_dz(self.between), score_czt, self.states.group_z)
        votes = (*rows, patterns.clamp_r, patterns.domain_r)
        state_kernels.take_state_information(*votes, *parameters, 0, patterns.n_rows, curvature_pp)
        n_weights, n_own = self.n_weights, score_czt.shape[-1]
        own_att = self.unknown_component(at, score_czt)
        for a, own_tt in enumerate(own_att):
            own = slice(n_weights + a * n_own, n_weights + (a + 1) * n_own)
            curvature_pp[own, own] -= own_tt

    def unknown_component(self, at: Parameters, score_czt: Floats) -> Floats:
        """Compute, per annotator, the covariance of the score given states: for which label a vote was is unknown."""
        count_cz, _ = self.pass_over(at)
        return component_covariance(self.states, at.confusion_akv, self.votes_by_state(count_cz), score_czt)

    def covariance(self, at: Parameters) -> ScoreCovariance:
        """Return the covariance of the complete-data score at some parameters, as an operator."""
        return ScoreCovariance(self, at)


class ScoreCovariance:
    """The missing information at some parameters: the covariance over states of the score, never held as a matrix."""

    def __init__(self, log_posterior: LogPosterior, at: Parameters) -> None:
        self.log_posterior, self.at = log_posterior, at
        self.posterior_rz = log_posterior.posterior_rz(at)

    def take_own(self, own_app: Floats) -> Floats:
        """Subtract it from each annotator's own block, in place; return the weights' blocks: `items_dzz`."""
        patterns, bound_b = self.log_posterior.patterns, self.log_posterior.bound_b
        n_blocks = min(len(bound_b) - 1, max(1, OWN_BYTES // max(own_app.nbytes, 1)))
        edge_b = bound_b[np.arange(n_blocks + 1) * (len(bound_b) - 1) // n_blocks]
        own_bapp = np.zeros((n_blocks, *own_app.shape))
        n_states = self.posterior_rz.shape[1]
        items_bdzz = np.zeros((n_blocks, patterns.n_domains, n_states, n_states))
        add = self._own_kernel()

        def run(first: int, last: int) -> None:
            for b in range(first, last):
                add(edge_b[b], edge_b[b + 1], own_bapp[b], items_bdzz[b])

        over_blocks(run, n_blocks, self.log_posterior.threads)
        own_app += own_bapp.sum(axis=0)
        return np.asarray(items_bdzz.sum(axis=0))

    def own_rows(self) -> tuple[Floats, Floats]:
        """Return what it takes from each confusion row's own block, and the weights' blocks: `items_dzz`.

        A row's is the sum over its votes of p (1 - p) (e - t) (e - t)', with the vote as a unit vector e and the row's
        shares t; p (1 - p) is added up by vote code and label: `unknown_ck`.
        """
        patterns, bound_b = self.log_posterior.patterns, self.log_posterior.bound_b
        unknown_bck = np.zeros((len(bound_b) - 1, len(self.log_posterior.votes_c), patterns.n_labels))
        given: tuple[Any, ...] = (patterns.start_r, patterns.code_v, patterns.weight_r, self.posterior_rz)
        add: Callable[..., None] = kernels.add_own_rows
        if self.log_posterior.between is not None:
            from moral_entropy.consensus import state_kernels

            share_czk = component_shares(self.log_posterior.states, self.at.confusion_akv)
            add, given = state_kernels.add_own_state_rows, (*given, share_czk)

        def run(first: int, last: int) -> None:
            add(*given, bound_b, first, last, unknown_bck)

        over_blocks(run, len(bound_b) - 1, self.log_posterior.threads)
        return unknown_bck.sum(axis=0), self._items_by_states()

    def _items_by_states(self) -> Floats:
        """Add up by domain the covariance of the indicators of the states: `items_dzz`."""
        patterns, n_states = self.log_posterior.patterns, self.posterior_rz.shape[1]
        items_dzz = np.zeros((patterns.n_domains, n_states, n_states))
        # Some rows in one product, between which an interrupt is heard.
        for lo in range(0, patterns.n_rows, ROWS_AT_ONCE):
            some = slice(lo, lo + ROWS_AT_ONCE)
            p_rz, weight_r = self.posterior_rz[some], patterns.weight_r[some]
            domain_r = patterns.domain_r[some] if patterns.n_domains > 1 else np.zeros(len(weight_r), dtype=np.int32)
            for d in np.unique(domain_r):
                mine_rz, mine_r = p_rz[domain_r == d], weight_r[domain_r == d]
                items_dzz[d] += np.diag(mine_r @ mine_rz) - (mine_r[:, None] * mine_rz).T @ mine_rz
        return items_dzz

    def _own_kernel(self) -> Callable[[int, int, Floats, Floats], None]:
        """Return the function that does some rows."""
        patterns, states = self.log_posterior.patterns, self.log_posterior.states
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r)
        if self.log_posterior.between is None:
            given = (*rows, self.posterior_rz, self.at.confusion_akv)
            return lambda lo, hi, own_app, items_dzz: kernels.add_own_information(*given, lo, hi, own_app, items_dzz[0])
        from moral_entropy.consensus import state_kernels

        score_czt = vote_scores(states, self.at.confusion_akv)
        own = (*rows, patterns.domain_r, self.posterior_rz, score_czt, patterns.n_labels)
        return lambda lo, hi, own_app, items_dzz: state_kernels.take_own_state_information(
            *own, lo, hi, own_app, items_dzz
        )

    def product(self, gain_cz: Floats, base_dz: Floats) -> tuple[Floats, Floats]:
        """Multiply it with a vector, in one pass over the votes; `gain_cz` is what a vote adds to state z's score."""
        patterns, bound_b = self.log_posterior.patterns, self.log_posterior.bound_b
        n_blocks, binary = len(bound_b) - 1, self.log_posterior.between is None and patterns.n_labels == 2
        out_bcz = np.zeros((n_blocks, len(gain_cz), 1 if binary else self.posterior_rz.shape[1]))
        total_bdz = np.zeros((n_blocks, patterns.n_domains, out_bcz.shape[-1]))
        rows = (patterns.start_r, patterns.code_v, patterns.weight_r)
        over_c, base = gain_cz[:, -1] - gain_cz[:, 0], base_dz[0, -1] - base_dz[0, 0]

        def run(first: int, last: int) -> None:
            blocks = (bound_b, first, last)
            if binary:
                p_r, out = self.posterior_rz[:, 1], (out_bcz[:, :, 0], total_bdz[:, 0, 0])
                kernels.binary_covariance_pass(*rows, p_r, over_c, base, *blocks, *out)
            else:
                given = (*rows, patterns.domain_r, self.posterior_rz, gain_cz, base_dz)
                kernels.covariance_pass(*given, *blocks, out_bcz, total_bdz)

        over_blocks(run, n_blocks, self.log_posterior.threads)
        out_cz, total_dz = out_bcz.sum(axis=0), total_bdz.sum(axis=0)
        return (np.hstack([-out_cz, out_cz]), np.hstack([-total_dz, total_dz])) if binary else (out_cz, total_dz)
