"""Sample the posterior itself, with NUTS, where the fit takes a Gaussian for it.

Takes a fit, returns draws in chains with the figures that tell whether they mix. Class labels are summed out and
identical items are one row, so a gradient is one pass over the collapsed votes. Chains walk in log ratios (with the
Jacobian of that change of variables), whitened by the Laplace factor: x = centre + L^-T z, L L' the curvature there.
What is left to walk in is close to a standard normal distribution. nutpie does the walking.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import blas
from scipy.sparse import csr_array
from scipy.special import softmax

from moral_entropy.checks.density import ROW_DRAWS, densities_of, mixed_label_draws
from moral_entropy.consensus import laplace
from moral_entropy.consensus.coordinates import pack, unpack_like
from moral_entropy.consensus.draws import log_ratios
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import mode_in_log_ratios
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.threads import available_cores
from moral_entropy.errors import FitError, MissingExtraError
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import UNKNOWN, Floats

CHAINS, TUNE, DRAWS = 4, 400, 1_500
"""Enough for 400 effective draws of everything on thin votes by hundreds of annotators, where one in seven counts."""

MOST_ROWS = 500
"""Rows of items whose mixing is looked at; of more, evenly spaced ones."""

ENOUGH, MIXED = 400.0, 1.01
"""Effective draws a quantity needs, and its R-hat at most (Vehtari et al. 2021)."""


@dataclass(frozen=True, eq=False)
class Mixing:
    """How well chains mix. Axis: **q** quantity; NaN where it never moves.

    Parameters
    ----------
    ess_q
        Bulk effective sample size, all chains together.
    rhat_q
        Rank-normalised split R-hat.
    """

    ess_q: Floats
    rhat_q: Floats

    @property
    def least_ess(self) -> float:
        """Effective sample size of the worst quantity; infinite where none moves."""
        return float(np.nanmin(self.ess_q, initial=np.inf))

    @property
    def most_rhat(self) -> float:
        """R-hat of the worst quantity; 1 where none moves."""
        return float(np.nanmax(self.rhat_q, initial=1.0))


@dataclass(frozen=True, eq=False)
class Samples:
    """Draws from the posterior. Axes: **c** chain, **s** draw, **p** parameter, **r** row of items, **k** label.

    Parameters
    ----------
    x_csp
        Log-ratio coordinates by chain.
    drawn
        The same as parameters, chains one after the other.
    patterns
        The votes the rows are of.
    parameters, rows
        How well every log ratio mixes, and the label probability of at most `MOST_ROWS` rows (of more than two labels
        the worst).
    divergences
        Steps, after tuning, at which the walk lost its way.
    gradients
        Passes over the votes, tuning included.
    seconds
        Of the clock, diagnostics included.
    """

    x_csp: Floats
    drawn: Parameters
    patterns: Patterns
    parameters: Mixing
    rows: Mixing
    divergences: int
    gradients: int
    seconds: float

    @property
    def prevalence_sk(self) -> Floats:
        """Draws of the prevalence, chains one after the other; of the mixed model the weights by domain."""
        return self.drawn.weight_g

    @property
    def confusion_sakv(self) -> Floats:
        """Draws of the confusion; one matrix where annotators are fully pooled."""
        return self.drawn.confusion_akv


def sample(
    fit: QuestionFit,
    *,
    chains: int = CHAINS,
    tune: int = TUNE,
    draws: int = DRAWS,
    seed: int = 0,
    cores: int | None = None,
    advance: Advance = ignore,
) -> Samples:
    """Draw from the posterior of a fit with NUTS.

    Parameters
    ----------
    fit
        The fit, whose votes and priors make the density and whose mode says where to begin.
    chains
        Walks from different starts: draws of the Gaussian at the mode in log ratios.
    tune, draws
        Steps of each chain to set its stride, and draws after that.
    seed
        The same seed gives the same bits, on any number of cores.
    cores
        Chains walked at a time; as many as there are cores by default.
    advance
        Called with the share done.
    """
    began = time.perf_counter()
    log_posterior = densities_of(fit, threads=1).log_ratio
    if log_posterior.n_parameters > laplace.DENSE:
        msg = (
            f"{fit.ballot.name} has {log_posterior.n_parameters:,} free parameters; sampling holds their curvature as "
            f"a matrix, so it ends at {laplace.DENSE:,}. Sample a part: --fit-by a column, or pooling='full'."
        )
        raise FitError(msg)
    walk = _Walk.around(log_posterior, fit.mode, chains * (tune + draws), advance)
    z_csp, divergences = _walk(walk, chains=chains, tune=tune, draws=draws, seed=seed, cores=cores)
    x_csp = walk.position(z_csp)
    drawn = unpack_like(x_csp.reshape(-1, x_csp.shape[-1]), fit.at)
    return Samples(
        x_csp=x_csp,
        drawn=drawn,
        patterns=log_posterior.patterns,
        parameters=measure_mixing(x_csp),
        rows=_rows_mixing(fit, log_posterior.patterns, drawn, chains),
        divergences=divergences,
        gradients=walk.gradients,
        seconds=time.perf_counter() - began,
    )


class _Walk:
    """The density as the walker sees it: log posterior and gradient in whitened coordinates."""

    def __init__(
        self,
        log_posterior: LogPosterior,
        centre: Parameters,
        gaussian: laplace.DenseGaussian,
        steps: int,
        tell: Advance,
    ) -> None:
        self.log_posterior, self.centre, self.centre_p, self.gaussian = log_posterior, centre, pack(centre), gaussian
        self.factor_pp = np.asfortranarray(gaussian.lower_pp)
        self.steps, self.tell = steps, tell
        self.done = self.gradients = 0

    @classmethod
    def around(cls, log_posterior: LogPosterior, near: Parameters, steps: int, tell: Advance) -> _Walk:
        """Whiten at the mode in log ratios, which the density falls off from in every direction."""
        centre = mode_in_log_ratios(log_posterior, near)
        return cls(log_posterior, centre, laplace.dense_gaussian(log_posterior, centre), steps, tell)

    def position(self, z_csp: Floats) -> Floats:
        """Return the log ratios at whitened coordinates."""
        step_ps = self.gaussian.step(z_csp.reshape(-1, z_csp.shape[-1]).T)
        return self.centre_p + np.ascontiguousarray(step_ps.T).reshape(z_csp.shape)

    def make_density(self) -> Callable[[Floats], tuple[float, Floats]]:
        """Return one chain's density; each has sums of its own to write to, since chains run at the same time."""
        own = replace(self.log_posterior, threads=1)

        def density(z_p: Floats) -> tuple[float, Floats]:
            self.gradients += 1
            at = unpack_like(self.centre_p + self._from_white(z_p), self.centre)
            expected = own.expect(at)
            return expected.log_posterior, self._to_white(expected.gradient(at))

        return density

    def _from_white(self, z_p: Floats) -> Floats:
        if self.gaussian.positive_definite:
            step_p: Floats = blas.dtrsv(self.factor_pp, z_p, lower=1, trans=1)
            return step_p
        return self.factor_pp @ z_p

    def _to_white(self, gradient_p: Floats) -> Floats:
        if self.gaussian.positive_definite:
            white_p: Floats = blas.dtrsv(self.factor_pp, gradient_p, lower=1)
            return white_p
        return self.factor_pp.T @ gradient_p

    def make_expand(self, _seed: int, _stream: int, _chain: int) -> Callable[[Floats], dict[str, Floats]]:
        """Return what is kept of each step of a chain: its place."""

        def expand(z_p: Floats) -> dict[str, Floats]:
            self.done += 1
            self.tell(min(self.done / self.steps, 1.0))
            return {"z": z_p}

        return expand


def _walk(walk: _Walk, *, chains: int, tune: int, draws: int, seed: int, cores: int | None) -> tuple[Floats, int]:
    """Walk all chains; return their places `z_csp`, and how many steps diverged."""
    nutpie, from_pyfunc, _ = import_nutpie()
    n = len(walk.centre_p)
    model = from_pyfunc(
        n,
        walk.make_density,
        walk.make_expand,
        [np.dtype(np.float64)],
        [(n,)],
        ["z"],
        make_initial_point_fn=lambda start: np.random.default_rng(start).standard_normal(n),
    )
    trace = nutpie.sample(
        model,
        chains=chains,
        tune=tune,
        draws=draws,
        seed=seed,
        cores=min(chains, cores or available_cores()),
        progress_bar=False,
        save_warmup=False,
    )
    z_csp = np.asarray(trace.posterior["z"].values)
    if z_csp.shape[1] < draws or np.isnan(z_csp).any():
        # nutpie takes an interrupt to mean "that will do"; whoever pressed the keys meant "stop".
        raise KeyboardInterrupt
    return z_csp, int(trace.sample_stats["diverging"].values.sum())


def measure_mixing(value_csq: Floats) -> Mixing:
    """Measure how well chains of draws mix, with ArviZ.

    Parameters
    ----------
    value_csq
        Draws by chain, draw and quantity.
    """
    *_, arviz = import_nutpie()
    data = arviz.convert_to_dataset({"value": value_csq})
    # What never moves has no variance to divide by.
    with np.errstate(divide="ignore", invalid="ignore"):
        ess_q, rhat_q = (np.array(measure(data)["value"].values) for measure in (arviz.ess, arviz.rhat))
    ess_q[np.ptp(value_csq, axis=(0, 1)) == 0.0] = np.nan
    return Mixing(ess_q, rhat_q)


def _rows_mixing(fit: QuestionFit, patterns: Patterns, drawn: Parameters, chains: int) -> Mixing:
    some = patterns.take(np.arange(0, patterns.n_rows, -(-patterns.n_rows // MOST_ROWS)))
    ess_r, rhat_r = np.empty(some.n_rows), np.empty(some.n_rows)
    for rows, value_rks in row_values(fit, some, drawn):
        n_rows, n_values, _ = value_rks.shape
        mixing = measure_mixing(np.moveaxis(value_rks.reshape(n_rows * n_values, chains, -1), 0, -1))
        ess_r[rows] = mixing.ess_q.reshape(n_rows, n_values).min(axis=1)
        rhat_r[rows] = mixing.rhat_q.reshape(n_rows, n_values).max(axis=1)
    known_r = some.clamp_r != UNKNOWN
    ess_r[known_r] = rhat_r[known_r] = np.nan
    return Mixing(ess_r, rhat_r)


def row_values(fit: QuestionFit, patterns: Patterns, drawn: Parameters) -> Iterator[tuple[slice, Floats]]:
    """Yield every row's label probabilities in every draw, some rows at a time: `value_rks`.

    Of two labels it is the log odds of the second, which rank as its probability does.

    Parameters
    ----------
    fit
        The fit, whose model says how to compute them.
    patterns, drawn
        The rows, and the draws.
    """
    if fit.mixture is not None:
        for rows, p_rks in mixed_label_draws(patterns, fit.states, drawn):
            log_rks = np.log(np.maximum(p_rks, 1e-300)) if patterns.n_labels == 2 else p_rks
            yield rows, log_rks[:, 1:] - log_rks[:, :1] if patterns.n_labels == 2 else p_rks
        return
    push_cks, base_ks = log_ratios(drawn.weight_g, drawn.confusion_akv**fit.exponent.value)
    n_codes, n_other, n_draws = push_cks.shape
    votes_rc = csr_array(
        (np.ones(len(patterns.code_v)), patterns.code_v, patterns.start_r), shape=(patterns.n_rows, n_codes)
    )
    size = max(1, ROW_DRAWS // (n_draws * patterns.n_labels))
    for start in range(0, patterns.n_rows, size):
        rows = slice(start, min(start + size, patterns.n_rows))
        value_rks = (votes_rc[rows] @ push_cks.reshape(n_codes, -1)).reshape(-1, n_other, n_draws) + base_ks
        if n_other > 1:
            value_rks = softmax(np.concatenate([np.zeros_like(value_rks[:, :1]), value_rks], axis=1), axis=1)
        yield rows, value_rks


def import_nutpie() -> tuple[Any, Any, Any]:
    """Return nutpie, its way in for Python functions, and ArviZ; or say how to install them."""
    try:
        with warnings.catch_warnings():
            # ArviZ, which nutpie brings, announces its next version on import.
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
            import nutpie
            from nutpie.compiled_pyfunc import from_pyfunc
    except ImportError as missing:
        what = "sampling with NUTS needs nutpie and ArviZ"
        raise MissingExtraError(what, "mcmc") from missing
    return nutpie, from_pyfunc, arviz
