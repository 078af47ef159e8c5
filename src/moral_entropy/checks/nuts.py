"""Does sampling give the same intervals? The posterior sampled with NUTS, and the published draws held against it.

nutpie samples the log ratios of `Posterior`, whitened by the covariance of the fit's own draws; ArviZ says whether the
chains mix. Both come with the extra "mcmc".
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from moral_entropy.checks.posterior import density, posterior_of
from moral_entropy.errors import MissingExtraError
from moral_entropy.findings import Finding, Level
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.draws import posterior_draws
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.model.findings import finding_of
from moral_entropy.model.posterior import Parameters, Posterior
from moral_entropy.model.search import pack, unpack
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.votes.table import UNKNOWN, Floats

CHAINS, TUNE, DRAWS = 4, 400, 1_500

MOST_PARAMETERS = 3_000
"""Free parameters beyond which a fit is not sampled."""

MOST_DRAWS = 2_000
"""Draws behind the sampled probabilities; evenly spaced ones of more."""

ENOUGH, MIXED = 400.0, 1.01
"""Effective draws that a quantity needs, and its R-hat at most (Vehtari et al. 2021)."""

CLOSE = (0.8, 1.25)
"""Ratio of epistemic parts within which the Gaussian will do."""


def import_nutpie() -> tuple[Any, Any, Any]:
    """Return nutpie, its entry for Python functions, and ArviZ; or say how to install them."""
    try:
        with warnings.catch_warnings():
            # ArviZ, which nutpie brings, announces its next version on import.
            warnings.simplefilter("ignore", FutureWarning)
            with contextlib.suppress(FileNotFoundError):  # two programs at once move the same stamp of its announcement
                import arviz
            import arviz
            import nutpie
            from nutpie.compiled_pyfunc import from_pyfunc
    except ImportError as missing:
        purpose = "sampling with NUTS needs nutpie and ArviZ"
        raise MissingExtraError(purpose, "mcmc") from missing
    return nutpie, from_pyfunc, arviz


def check_nuts(
    consensus: Consensus, *, seed: int = 0, chains: int = CHAINS, tune: int = TUNE, draws: int = DRAWS,
    advance: Advance = ignore,
) -> list[Finding]:  # fmt: skip
    """Sample the posterior of every fit, and hold the published probabilities and intervals against the samples."""
    findings: list[Finding] = []
    for n, fit in enumerate(consensus.fits):
        posterior, progress = posterior_of(fit, to_sample=True), share_of(advance, n, len(consensus.fits))
        reasons = {
            f"more than {MOST_PARAMETERS:,} free parameters": posterior.n_parameters > MOST_PARAMETERS,
            "there are no draws to compare with": fit.n_draws < 2,
        }
        if reason := next((why for why, holds in reasons.items() if holds), ""):
            findings.append(finding_of(fit, "nuts", "ess", float("nan"), text=f"not sampled: {reason}."))
            continue
        x_csp, diverged = sample(fit, posterior, chains, tune, draws, seed, progress)
        findings += [*_mixing(fit, x_csp, diverged), *_agreement(consensus, fit, posterior, x_csp)]
    return findings


def sample(
    fit: QuestionFit, posterior: Posterior, chains: int, tune: int, draws: int, seed: int, advance: Advance = ignore
) -> tuple[Floats, int]:
    """Draw log ratios from the posterior of a fit with draws: `x_csp` by chain, and how many steps diverged."""
    nutpie, from_pyfunc, _ = import_nutpie()
    own_sp = pack(fit.drawn)
    n_own, n = own_sp.shape
    # Few draws tell little of many covariances: those of different parameters are shrunk.
    spread_pp = np.atleast_2d(np.cov(own_sp, rowvar=False)) * (n_own / (n_own + n))
    spread_pp[np.diag_indices(n)] = own_sp.var(axis=0) + 1e-9
    lower_pp, centre_p, n_done = np.linalg.cholesky(spread_pp), own_sp.mean(axis=0), [0]

    def whitened(z_p: Floats) -> tuple[float, Floats]:
        height, gradient_p = density(posterior, centre_p + lower_pp @ z_p)
        return height, lower_pp.T @ gradient_p

    def expand(z_p: Floats) -> dict[str, Floats]:
        n_done[0] += 1
        advance(min(n_done[0] / (chains * (tune + draws)), 1.0))
        return {"z": z_p}

    model = from_pyfunc(
        n, lambda: whitened, lambda *_: expand, [np.dtype(np.float64)], [(n,)], ["z"],
        make_initial_point_fn=lambda start: np.random.default_rng(start).standard_normal(n),
    )  # fmt: skip
    trace = nutpie.sample(
        model, chains=chains, tune=tune, draws=draws, seed=seed, progress_bar=False, save_warmup=False
    )
    z_csp = np.asarray(trace.posterior["z"].values)
    if z_csp.shape[1] < draws or np.isnan(z_csp).any():
        # nutpie takes an interrupt to mean "that will do"; whoever pressed the keys meant "stop".
        raise KeyboardInterrupt
    return centre_p + z_csp @ lower_pp.T, int(trace.sample_stats["diverging"].values.sum())


def _mixing(fit: QuestionFit, x_csp: Floats, diverged: int) -> Iterator[Finding]:
    """Yield what the chains say of themselves: effective draws, R-hat, divergences."""
    *_, arviz = import_nutpie()
    data, n = arviz.convert_to_dataset({"x": x_csp}), x_csp.shape[0] * x_csp.shape[1]
    ess, rhat = float(arviz.ess(data)["x"].min()), float(arviz.rhat(data)["x"].max())
    for figure, value, mixed, text in (
        ("ess", ess, ess >= ENOUGH, f"the worst parameter has {ess:.0f} effective draws of {n:,} from NUTS."),
        ("rhat", rhat, rhat <= MIXED, f"the worst parameter has an R-hat of {rhat:.3f}; {MIXED:g} is the bar."),
        ("divergences", diverged, not diverged, f"{diverged} of {n:,} NUTS steps diverged."),
    ):
        level: Level = "good" if mixed else "doubt"
        yield finding_of(
            fit, "nuts", figure, value, n=n, level=level, text=text, remedy="Raise --set tune=… and --set draws=….",
            meaning="Where chains have not settled, what they say of the intervals cannot be relied on.",
        )  # fmt: skip


def _agreement(consensus: Consensus, fit: QuestionFit, posterior: Posterior, x_csp: Floats) -> Iterator[Finding]:
    """Compare mean p, its two entropies and its interval with those of the samples, over all items."""
    x_sp = x_csp.reshape(-1, x_csp.shape[-1])
    x_sp = x_sp[:: -(-len(x_sp) // MOST_DRAWS)]
    gaussian = Parameters(*(part[:MOST_DRAWS] for part in fit.drawn))
    sampled = unpack(x_sp, fit.mode)
    patterns, tail = posterior.patterns, (1.0 - consensus.interval) / 2.0
    weight_r = np.bincount(patterns.row_i, weights=fit.ballot.count_i, minlength=patterns.n_rows)
    label_r = np.full(patterns.n_rows, fit.ballot.positive)
    if fit.ballot.n_labels > 2:
        label_r[patterns.row_i] = fit.label_i
    columns = []
    # Some rows at a time: both sets of draws are held.
    for rows in patterns.chunks(256):
        at_r, at = np.arange(rows.start, rows.stop), label_r[rows][None, :, None]
        both = [posterior_draws(patterns, fit.states, parameters, at_r) for parameters in (gaussian, sampled)]
        parts = [decompose_entropy(p_srk) for p_srk in both]
        own_sr, nuts_sr = (np.take_along_axis(p_srk, at, axis=2)[..., 0] for p_srk in both)
        low_r, high_r = np.quantile(own_sr, [tail, 1.0 - tail], axis=0)
        inside_r = ((nuts_sr >= low_r) & (nuts_sr <= high_r)).mean(axis=0)
        apart_r = np.abs(both[0].mean(axis=0) - both[1].mean(axis=0)).max(axis=1)
        columns.append(np.stack([*(part.aleatoric_i for part in parts), *(part.epistemic_i for part in parts), inside_r,
                                 apart_r]))  # fmt: skip
    column_cr = np.concatenate(columns, axis=1)
    own_within, within, own_across, across, _, p_mean = np.average(column_cr, weights=weight_r, axis=1).tolist()
    ratio, free_r = own_across / max(across, 1e-12), weight_r * (patterns.clamp_r == UNKNOWN)
    covered = column_cr[4] @ free_r / max(free_r.sum(), 1e-12)
    yield finding_of(
        fit, "nuts", "epistemic_ratio", ratio, n=round(float(weight_r.sum())),
        level="good" if CLOSE[0] <= ratio <= CLOSE[1] else "doubt",
        text=(
            f"the Laplace approximation's epistemic part is {ratio:.2f} times that of NUTS, its aleatoric part "
            f"{own_within / max(within, 1e-12):.2f} times; p differs by {p_mean:.3f} on "
            f"average, {column_cr[5].max():.3f} at most; its {consensus.interval:.0%} intervals hold "
            f"{covered:.0%} of the sampled draws."
        ),
        meaning="Intervals and the split of the entropy come from a Gaussian around the best fit, which must be close.",
        remedy="Report the sampled figures as well.",
    )  # fmt: skip
    yield finding_of(fit, "nuts", "p_mean_difference", p_mean)
    yield finding_of(fit, "nuts", "coverage", covered)
