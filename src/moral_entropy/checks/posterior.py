"""The posterior density of a fit in NumPy and SciPy, its gradient and expected counts; and a check of the draws by it.

An item in state z has a vote v of annotator a with probability Σ_k φ_zk θ_akv, so a row of identical items has the
likelihood Σ_z w_z Π Σ_k φ_zk θ_akv. The paper's model has the labels alone as states. Coordinates are log ratios to the
first weight and the first vote of every row, with the pseudo-counts of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax

from moral_entropy.findings import Finding
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.findings import finding_of
from moral_entropy.model.patterns import Patterns
from moral_entropy.model.states import States
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

LAPLACE_DRAWS, FEWEST_DRAWS = 400, 100
"""Draws whose density is computed, at most, and below which no tail is fitted."""

MOST_WORK = 1_000_000_000
"""Votes times states times draws beyond which Pareto-k is left out: it should cost a few seconds at most."""

CELLS = 500_000
"""Rows times states times draws that are held at a time."""

CHECKED_NUMBERS = 1 << 24
"""Most numbers in the draws that are looked at."""

LEAST = 1e-300
"""Probabilities below this are taken to be this, so that every log is finite."""

USABLE = 0.7
"""Pareto-k up to which the Gaussian can stand for the posterior (Vehtari et al. 2024)."""

HOPELESS, BY_ROOT = 1.25, 0.15
"""Pareto-k beyond which a fit is doubted: more than clean corpora reach (1.16 in 200 of 17 parameters, 1.11 in 300
others of 17 to 41), and so much times the root of the number of parameters: small mismatches of many add up."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The density of one fit. Axes: **r** row, **d** domain, **g** group of states, **z** state, **a**, **k**, **v**.

    Parameters
    ----------
    patterns
        Rows of identical items.
    states
        The states an item can be in.
    alpha_dg, beta_akv
        Pseudo-counts of the weights and of the confusion rows.
    """

    patterns: Patterns
    states: States
    alpha_dg: Floats
    beta_akv: Floats

    @classmethod
    def of(cls, fit: QuestionFit, *, to_sample: bool = False) -> Posterior:
        """Return the posterior of a fit: the height that its mode maximises, or a density to sample from.

        The default's rows have the prior Dirichlet(1 + pseudo-counts), whose density over log ratios has one more in
        every exponent. The paper samples the height itself.

        Examples
        --------
        >>> from moral_entropy import fit, simulate_votes
        >>> one = fit(simulate_votes(n_items=50, n_annotators=4, votes_per_item=3).votes, draws=0).fits[0]
        >>> _, gradient = Posterior.of(one).density(Posterior.of(one).pack(one.weight_dg, one.confusion_akv))
        >>> bool(abs(gradient).max() < 1e-3)
        True
        """
        more = 1.0 if to_sample and fit.options.mixed else 0.0
        return cls(fit.patterns, fit.states, fit.pseudo.weight_dg + more, fit.pseudo.confusion_akv + more)

    @property
    def n_parameters(self) -> int:
        """How many log ratios there are."""
        return self.alpha_dg.size - len(self.alpha_dg) + self.beta_akv.size - self.beta_akv[..., 0].size

    @cached_property
    def votes_rc(self) -> csr_array:
        """Votes by row and code: annotator and label."""
        rows, n_codes = self.patterns, self.patterns.n_annotators * self.patterns.n_labels
        return csr_array((np.ones(len(rows.code_v)), rows.code_v, rows.start_r), shape=(rows.n_rows, n_codes))

    @cached_property
    def domain_r(self) -> Ints:
        """The domain of every row."""
        rows = self.patterns
        return np.asarray(rows.domain_r if rows.n_domains > 1 else np.zeros(rows.n_rows, dtype=np.int32))

    @cached_property
    def _known_rz(self) -> tuple[Ints, Floats]:
        """Return rows whose label is known, and what excludes all of their states but that label."""
        row_r = np.flatnonzero(self.patterns.clamp_r != UNKNOWN)
        excluded_rz = np.full((len(row_r), self.states.n_states), -np.inf)
        excluded_rz[np.arange(len(row_r)), self.patterns.clamp_r[row_r]] = 0.0
        return row_r, excluded_rz

    def pack(self, weight_dg: Floats, confusion_akv: Floats) -> Floats:
        """Return parameters as log ratios; leading axes, such as draws, are kept."""
        log_dg, log_akv = _log(weight_dg), _log(confusion_akv)
        lead = log_akv.shape[:-3]
        parts = (log_dg[..., 1:] - log_dg[..., :1], log_akv[..., 1:] - log_akv[..., :1])
        return np.concatenate([part.reshape(*lead, -1) for part in parts], axis=-1)

    def unpack(self, x_p: Floats) -> tuple[Floats, Floats]:
        """Return log weights and log confusion at log ratios; leading axes are kept."""
        lead, (n_domains, n_groups) = x_p.shape[:-1], self.alpha_dg.shape
        n_weights = n_domains * (n_groups - 1)
        *several, n_voted = self.beta_akv.shape
        ratio_dg = x_p[..., :n_weights].reshape(*lead, n_domains, n_groups - 1)
        ratio_akv = x_p[..., n_weights:].reshape(*lead, *several, n_voted - 1)
        log_dg, log_akv = (
            log_softmax(np.concatenate([np.zeros_like(ratio[..., :1]), ratio], axis=-1), axis=-1)
            for ratio in (ratio_dg, ratio_akv)
        )
        return log_dg, log_akv

    def state_logs(self, weight_dg: Floats, vote_azv: Floats) -> Floats:
        """Return log probabilities of every row's votes together with every state: `log_rz`."""
        n_states = self.states.n_states
        log_cz = _log(vote_azv).swapaxes(-1, -2).reshape(-1, n_states)
        log_dz = _log(self.states.weight_of_states(weight_dg))
        log_rz = self.votes_rc @ log_cz + log_dz[self.domain_r]
        row_r, excluded_rz = self._known_rz
        log_rz[row_r] += excluded_rz
        return np.asarray(log_rz)

    def state_probabilities(self, weight_dg: Floats, confusion_akv: Floats) -> Floats:
        """Return the probabilities of every row's states at some parameters: `posterior_rz`."""
        log_rz = self.state_logs(weight_dg, self.states.votes_azv(confusion_akv))
        return np.asarray(np.exp(log_softmax(log_rz, axis=1)))

    def expect(self, weight_dg: Floats, confusion_akv: Floats) -> tuple[float, Floats, Floats]:
        """Return the log likelihood, and the expected counts of groups and of votes by true label."""
        vote_azv, weight_r = self.states.votes_azv(confusion_akv), self.patterns.weight_r
        log_rz = self.state_logs(weight_dg, vote_azv)
        total_r = _log_sum(log_rz.T)
        expected_rz = np.exp(log_rz - total_r[:, None]) * weight_r[:, None]
        items_zd = np.stack([np.bincount(self.domain_r, items_r, len(self.alpha_dg)) for items_r in expected_rz.T])
        shape = (len(confusion_akv), self.patterns.n_labels, self.states.n_states)
        count_azv = (self.votes_rc.T @ expected_rz).reshape(shape).swapaxes(1, 2) / np.maximum(vote_azv, LEAST)
        votes_akv = confusion_akv * np.einsum("zk,azv->akv", self.states.mix_zk, count_azv, optimize=True)
        return float(weight_r @ total_r), self.states.add_groups(items_zd.T.astype(np.float64)), votes_akv

    def density(self, x_p: Floats) -> tuple[float, Floats]:
        """Return the log posterior density in log ratios, up to a constant, and its gradient."""
        log_dg, log_akv = self.unpack(x_p)
        weight_dg, confusion_akv = np.exp(log_dg), np.exp(log_akv)
        log_likelihood, items_dg, votes_akv = self.expect(weight_dg, confusion_akv)
        slopes = []
        for share, counts in ((weight_dg, items_dg + self.alpha_dg), (confusion_akv, votes_akv + self.beta_akv)):
            slopes.append((counts - share * counts.sum(axis=-1, keepdims=True))[..., 1:].ravel())
        prior = (self.alpha_dg * log_dg).sum() + (self.beta_akv * log_akv).sum()
        return log_likelihood + float(prior), np.concatenate(slopes)

    def state_draws(self, weight_sdg: Floats, confusion_sakv: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield the logs of `state_logs` in every draw, some rows at a time: `log_zrs`."""
        n_draws, n_states = len(weight_sdg), self.states.n_states
        vote_sazv = self.states.votes_azv(confusion_sakv)
        log_zcs = _log(vote_sazv.transpose(2, 1, 3, 0)).reshape(n_states, -1, n_draws)
        log_zds = _log(self.states.weight_of_states(weight_sdg)).transpose(2, 1, 0)
        known_r, excluded_rz = self._known_rz
        size = max(1, CELLS // (n_draws * n_states))
        for start in range(0, self.patterns.n_rows, size):
            rows = slice(start, min(start + size, self.patterns.n_rows))
            votes_rc = self.votes_rc[rows]
            log_zrs = np.stack([votes_rc @ log_cs for log_cs in log_zcs]) + log_zds[:, self.domain_r[rows]]
            inside = slice(*np.searchsorted(known_r, (rows.start, rows.stop)))
            log_zrs[:, known_r[inside] - start] += excluded_rz[inside].T[..., None]
            yield rows, log_zrs

    def log_densities(self, weight_sdg: Floats, confusion_sakv: Floats) -> Floats:
        """Return the log posterior density in log ratios at many draws, up to a constant: `log_s`."""
        log_s = np.tensordot(_log(weight_sdg), self.alpha_dg, 2)
        log_s = log_s + np.tensordot(_log(confusion_sakv), self.beta_akv, 3)
        for rows, log_zrs in self.state_draws(weight_sdg, confusion_sakv):
            log_s += self.patterns.weight_r[rows] @ _log_sum(log_zrs)
        return np.asarray(log_s)


def _log(share: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(share, LEAST)))


def _log_sum(log_z: Floats) -> Floats:
    """Add up the numbers behind logs along the first axis; several times as fast as SciPy's."""
    top = log_z.max(axis=0)
    log_z = log_z - top
    return np.asarray(np.log(np.exp(log_z, out=log_z).sum(axis=0)) + top)


def pareto_k(log_ratio_s: Floats) -> float:
    """Return the shape of the upper tail of importance ratios: the higher, the fewer draws decide.

    The estimate of Zhang & Stephens (2009), drawn to 0.5 as if by ten more ratios (Vehtari et al. 2024): with
    b = -k / scale the profile likelihood has k in closed form, and b is averaged over a grid weighted by it.

    Examples
    --------
    >>> pareto_k(np.random.default_rng(0).normal(0, 0.01, 400)) < 0.5
    True
    """
    log_s = np.sort(log_ratio_s - log_ratio_s.max())
    n = int(np.ceil(min(len(log_s) / 5.0, 3.0 * np.sqrt(len(log_s)))))
    excess_t = np.exp(log_s[-n:]) - np.exp(log_s[-n - 1])
    if excess_t[0] <= 0.0:
        # Ratios that tie leave nothing to fit a tail to.
        return float("inf") if np.ptp(log_s) > 0.0 else float("-inf")
    n_grid = 30 + int(np.sqrt(n))
    b_g = 1.0 / excess_t[-1] + (1.0 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))) / (
        3.0 * excess_t[int(n / 4.0 + 0.5) - 1]
    )
    k_g = np.log1p(-b_g[:, None] * excess_t).mean(axis=1)
    height_g = n * (np.log(-b_g / k_g) - k_g - 1.0)
    weight_g = np.exp(height_g - _log_sum(height_g))
    k = float(np.log1p(-float(weight_g @ b_g) * excess_t).mean())
    return (n * k + 10 * 0.5) / (n + 10)


def check_laplace(consensus: Consensus) -> list[Finding]:
    """Hold the draws of every fit against its posterior: each one's ratio of posterior density to the Gaussian's.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> votes = simulate_votes(n_items=2_000, n_annotators=4, votes_per_item=4).votes
    >>> [finding.level for finding in check_laplace(fit(votes))]
    ['good']
    """
    return [_tail_of(fit) for fit in consensus.fits]


def _tail_of(fit: QuestionFit) -> Finding:
    posterior, log_density_s = Posterior.of(fit, to_sample=True), fit.log_density_s
    n_votes, n_states, n = len(fit.patterns.code_v), fit.states.n_states, posterior.n_parameters
    n_cells = len(posterior.beta_akv) * fit.ballot.n_labels * n_states
    most = min(LAPLACE_DRAWS, CHECKED_NUMBERS // n_cells, MOST_WORK // max(n_votes * n_states, 1))
    if min(fit.n_draws, most) < FEWEST_DRAWS:
        reason = "too few draws" if fit.n_draws < FEWEST_DRAWS else "too many votes for a cheap check"
        return finding_of(fit, "laplace", "pareto_k", float("nan"), text=f"Pareto-k left out: {reason}.")
    drawn = (fit.weight_sdg[:most], fit.confusion_sakv[:most])
    # A rough figure: its further digits depend on the last bits of p.
    k = round(pareto_k(posterior.log_densities(*drawn) - log_density_s[:most]), 6)
    finding = finding_of(
        fit, "laplace", "pareto_k", k, n=min(most, fit.n_draws), level="good" if k <= USABLE else "info",
        text=f"Pareto-k of the posterior draws is {k:z.2f}, over {n:,} parameters.",
    )  # fmt: skip
    if k <= max(HOPELESS, BY_ROOT * np.sqrt(n)):
        return finding
    return replace(
        finding, level="doubt", text=f"the intervals are a rough approximation over {n:,} parameters.",
        meaning="The intervals may be too narrow, and the split of the entropy may be off.",
        remedy="moral-entropy validate --checks nuts checks by sampling (pip install 'moral-entropy[mcmc]').",
    )  # fmt: skip
