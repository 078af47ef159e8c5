"""Does sampling give the same intervals? Laplace against NUTS: how far the Gaussian's answers are from the posterior's.

Takes a fit and samples of its posterior, returns the agreement of aleatoric and epistemic parts, of label
probabilities, and of intervals, over all items and domain by domain, for each way of placing the Gaussian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logit

from moral_entropy.checks.density import densities_of, names_of_parts
from moral_entropy.checks.nuts_sampler import CHAINS, DRAWS, ENOUGH, MIXED, TUNE, Samples, row_values, sample
from moral_entropy.consensus import laplace
from moral_entropy.consensus.draws import draw, summarise, summarise_mixed
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.options import COORDINATES, Coordinates
from moral_entropy.consensus.result import Consensus, DrawSummary, QuestionFit
from moral_entropy.consensus.tempering import tempered
from moral_entropy.findings import Finding, Level
from moral_entropy.names import ALL
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.ties import highest
from moral_entropy.votes.table import UNKNOWN, Floats, Votes

LAPLACE_DRAWS = 2_000
"""Draws from each Gaussian: enough that Monte-Carlo noise is no part of the difference."""

SIDE = "nuts"

UNSETTLED = {
    "meaning": "Where chains have not settled, what they say of the intervals cannot be relied on.",
    "cure": "Raise --tune and --draws.",
}

CLOSE = (0.8, 1.25)
"""Ratio of epistemic parts within which the Gaussian will do."""


@dataclass(frozen=True)
class Agreement:
    """Laplace and NUTS compared, over the items of one domain.

    Parameters
    ----------
    domain
        Its name, "(all)" for all items.
    coordinates
        Of the Gaussian: "jacobian", "paper", "logit-mode" or "jeffreys".
    n_items
        How many items.
    aleatoric, epistemic
        Mean parts under the Gaussian, in nats: what each draw has, and what draws disagree about.
    nuts_aleatoric, nuts_epistemic
        The same under NUTS.
    correlation
        Of the items' epistemic parts; NaN where they do not vary.
    item_ratio
        Median over items of Laplace's epistemic part to NUTS's, each item weighing as much as NUTS's part does.
    p_mean, p_max
        Mean and largest difference of the label probabilities.
    coverage
        Share of NUTS draws of an item's probability inside its Laplace interval, mean over items.
    """

    domain: str
    coordinates: str
    n_items: int
    aleatoric: float
    epistemic: float
    nuts_aleatoric: float
    nuts_epistemic: float
    correlation: float
    item_ratio: float
    p_mean: float
    p_max: float
    coverage: float

    @property
    def aleatoric_ratio(self) -> float:
        """Laplace's aleatoric part as a multiple of NUTS's."""
        return self.aleatoric / self.nuts_aleatoric if self.nuts_aleatoric else float("nan")

    @property
    def epistemic_ratio(self) -> float:
        """Laplace's epistemic part as a multiple of NUTS's."""
        return self.epistemic / self.nuts_epistemic if self.nuts_epistemic else float("nan")


def compare(
    votes: Votes,
    fit: QuestionFit,
    samples: Samples,
    coordinates: Coordinates = "jeffreys",
    *,
    draws: int = LAPLACE_DRAWS,
    seed: int = 0,
    interval: float = 0.9,
) -> list[Agreement]:
    """Hold a Gaussian at the mode against samples of the posterior, over all items and domain by domain.

    Parameters
    ----------
    votes
        What was fitted; says which items are of which domain.
    fit, samples
        The fit, and samples of its posterior.
    coordinates
        Where to place the Gaussian, as in `fit`.
    draws, seed
        Of the Gaussian.
    interval
        Mass of the intervals whose coverage is counted.
    """
    settings = replace(fit.options, draws=draws, seed=seed, coordinates=coordinates)
    _, gaussian, _ = draw(densities_of(fit), fit.mode, fit.ballot, settings)
    one = _summary(fit, samples, gaussian, interval)
    other = _summary(fit, samples, samples.drawn, interval)
    covered_r = _coverage(fit, samples, one)
    columns = _Columns(one, other, fit.patterns.spread(covered_r), fit.ballot.count_i.astype(float))
    return [
        columns.agreement(domain, coordinates, inside_i) for domain, inside_i in _domains(votes, fit) if inside_i.any()
    ]


def _summary(fit: QuestionFit, samples: Samples, drawn: Parameters, interval: float) -> DrawSummary:
    if fit.mixture is not None:
        draws = (fit.states, drawn.weight_g, drawn.confusion_akv)
        return summarise_mixed(samples.patterns, *draws, positive=fit.ballot.positive, interval=interval)
    drawn = tempered(drawn, fit.exponent.value)
    return summarise(
        samples.patterns, drawn.weight_g, drawn.confusion_akv, positive=fit.ballot.positive, interval=interval
    )


def _coverage(fit: QuestionFit, samples: Samples, told: DrawSummary) -> Floats:
    """Share of the sampled probabilities of every row that lie in its told interval."""
    patterns, positive = samples.patterns, fit.ballot.positive
    # Any item of a row stands for it.
    item_r = np.zeros(patterns.n_rows, dtype=np.int64)
    item_r[patterns.row_i] = np.arange(len(patterns.row_i))
    low_r, high_r = told.low_i[item_r], told.high_i[item_r]
    label_r = highest(told.mean_ik[item_r])
    covered_r = np.empty(patterns.n_rows)
    for rows, value_rks in row_values(fit, patterns, samples.drawn):
        if patterns.n_labels == 2:
            with np.errstate(divide="ignore"):
                ends = logit(low_r[rows]), logit(high_r[rows])
            value_rs = value_rks[:, 0] if positive == 1 else -value_rks[:, 0]
        else:
            ends = low_r[rows], high_r[rows]
            value_rs = np.take_along_axis(value_rks, label_r[rows, None, None], axis=1)[:, 0]
        inside_rs = (value_rs >= ends[0][:, None]) & (value_rs <= ends[1][:, None])
        covered_r[rows] = inside_rs.mean(axis=1)
    covered_r[patterns.clamp_r != UNKNOWN] = np.nan
    return covered_r


def _domains(votes: Votes, fit: QuestionFit) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    domain_i = votes.domain_i[fit.ballot.item_i]
    yield ALL, np.ones(fit.ballot.n_items, dtype=bool)
    for code in np.unique(domain_i[domain_i != UNKNOWN]):
        yield votes.domains[code], domain_i == code


@dataclass(frozen=True, eq=False)
class _Columns:
    """Both sides item by item."""

    one: DrawSummary
    other: DrawSummary
    covered_i: Floats
    weight_i: Floats

    def agreement(self, domain: str, coordinates: str, inside_i: NDArray[np.bool_]) -> Agreement:
        weight_i = self.weight_i[inside_i]
        aleatoric_i, epistemic_i = _parts(self.one, inside_i)
        nuts_aleatoric_i, nuts_epistemic_i = _parts(self.other, inside_i)
        apart_i = np.abs(self.one.mean_ik - self.other.mean_ik).max(axis=1)[inside_i]
        covered_i = self.covered_i[inside_i]
        free_i = ~np.isnan(covered_i)
        return Agreement(
            domain=domain,
            coordinates=coordinates,
            n_items=round(weight_i.sum()),
            aleatoric=float(np.average(aleatoric_i, weights=weight_i)),
            epistemic=float(np.average(epistemic_i, weights=weight_i)),
            nuts_aleatoric=float(np.average(nuts_aleatoric_i, weights=weight_i)),
            nuts_epistemic=float(np.average(nuts_epistemic_i, weights=weight_i)),
            correlation=_correlation(epistemic_i, nuts_epistemic_i, weight_i),
            item_ratio=_median(epistemic_i, nuts_epistemic_i, weight_i),
            p_mean=float(np.average(apart_i, weights=weight_i)),
            p_max=float(apart_i.max()),
            coverage=float(np.average(covered_i[free_i], weights=weight_i[free_i])) if free_i.any() else float("nan"),
        )


def _parts(summary: DrawSummary, inside_i: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    total_i = entr(summary.mean_ik[inside_i]).sum(axis=1)
    aleatoric_i = summary.expected_entropy_i[inside_i]
    return aleatoric_i, np.maximum(total_i - aleatoric_i, 0.0)


def _correlation(one_i: Floats, other_i: Floats, weight_i: Floats) -> float:
    cov = np.cov(one_i, other_i, aweights=weight_i) if len(one_i) > 1 else np.zeros((2, 2))
    spread = np.sqrt(cov[0, 0] * cov[1, 1])
    return float(cov[0, 1] / spread) if spread > 0 else float("nan")


def _median(one_i: Floats, other_i: Floats, weight_i: Floats) -> float:
    """Weighted median of the ratio; items without any epistemic part have none and weigh nothing."""
    some_i = other_i > 0
    ratio_i, weight_i = one_i[some_i] / other_i[some_i], (weight_i * other_i)[some_i]
    if not len(ratio_i):
        return float("nan")
    order_i = np.argsort(ratio_i)
    reached_i = np.cumsum(weight_i[order_i])
    return float(ratio_i[order_i[np.searchsorted(reached_i, reached_i[-1] / 2)]])


def examine_nuts(
    consensus: Consensus,
    *,
    seed: int = 0,
    chains: int = CHAINS,
    tune: int = TUNE,
    draws: int = DRAWS,
    advance: Advance = ignore,
) -> list[Finding]:
    """Sample every fit's posterior, and hold the Laplace approximation against it.

    Parameters
    ----------
    consensus
        What was fitted.
    seed, chains, tune, draws
        As in `sample`.
    advance
        Called with the share done.
    """
    findings: list[Finding] = []
    for n, fit in enumerate(consensus.fits):
        findings += _examine(consensus, fit, seed, chains, tune, draws, share_of(advance, n, len(consensus.fits)))
    return findings


def _examine(
    consensus: Consensus, fit: QuestionFit, seed: int, chains: int, tune: int, draws: int, advance: Advance
) -> list[Finding]:
    skipped = _skipped(fit)
    if skipped:
        return [finding_of(fit, SIDE, "ess", float("nan"), text=skipped)]
    samples = sample(fit, chains=chains, tune=tune, draws=draws, seed=seed, advance=advance)
    findings = mixing_findings(fit, samples)
    # The Gaussian of the mixed model has but one place.
    for coordinates in COORDINATES if fit.mixture is None else ("logit-mode",):
        agreements = compare(consensus.votes, fit, samples, coordinates, seed=seed, interval=consensus.interval)
        for agreement in agreements:
            findings += _agreement_findings(fit, agreement, consensus.interval)
    return findings


def _skipped(fit: QuestionFit) -> str:
    if fit.options.better_than_chance:
        return "not sampled: its annotators were kept at chance or above, where the density ends abruptly."
    n_parameters = densities_of(fit).log_ratio.n_parameters
    if n_parameters > laplace.DENSE:
        return f"not sampled: {n_parameters:,} free parameters, and {laplace.DENSE:,} are as many as can be whitened."
    return ""


def mixing_findings(fit: QuestionFit, samples: Samples) -> list[Finding]:
    """Return what the chains say of themselves: effective draws, R-hat, divergences, seconds."""
    n = samples.x_csp.shape[0] * samples.x_csp.shape[1]
    given = ", given the common rows" if fit.common is not None else ""
    lost = samples.divergences
    lost_text = f"{lost} of {n:,} NUTS steps diverged{given}."
    return [
        *_ess_findings(fit, samples, n, given),
        finding_of(fit, SIDE, "divergences", lost, n=n, level="doubt" if lost else "good", text=lost_text, **UNSETTLED),
        finding_of(fit, SIDE, "seconds", samples.seconds, n=n),
        finding_of(fit, SIDE, "gradients", samples.gradients, n=n),
    ]


def _ess_findings(fit: QuestionFit, samples: Samples, n: int, given: str) -> Iterator[Finding]:
    for subject, mixing in (("parameters", samples.parameters), ("items", samples.rows)):
        ess, rhat = mixing.least_ess, mixing.most_rhat
        worst = f"the worst {'parameter' if subject == 'parameters' else 'item probability'}"
        for figure, value, passed, text in (
            ("ess", ess, ess >= ENOUGH, f"{worst} has {ess:.0f} effective draws of {n:,} from NUTS{given}."),
            ("rhat", rhat, rhat <= MIXED, f"{worst} has an R-hat of {rhat:.3f}; {MIXED:g} is the bar."),
        ):
            level: Level = "good" if passed else "doubt"
            yield finding_of(fit, SIDE, figure, value, subject=subject, n=n, level=level, text=text, **UNSETTLED)


def _agreement_findings(fit: QuestionFit, found: Agreement, interval: float) -> list[Finding]:
    everywhere, (within, across) = found.domain == ALL, names_of_parts(fit)
    figures = {
        f"{across}_ratio": found.epistemic_ratio,
        f"{within}_ratio": found.aleatoric_ratio,
        f"{across}_correlation": found.correlation,
        f"{across}_item_ratio": found.item_ratio,
        "p_mean_difference": found.p_mean,
        "p_max_difference": found.p_max,
        "coverage": found.coverage,
    }
    plain = [
        replace(
            finding_of(fit, SIDE, figure, value, subject=found.coordinates, n=found.n_items),
            domain="" if everywhere else found.domain,
        )
        for figure, value in figures.items()
    ]
    if not everywhere or found.coordinates != fit.curvature.coordinates:
        return plain
    text = (
        f"the Laplace approximation's {across} part is {found.epistemic_ratio:.2f} times that of "
        f"NUTS, its {within.replace('_', ' ')} part {found.aleatoric_ratio:.2f} times; p differs by "
        f"{found.p_mean:.3f} on average, {found.p_max:.3f} at most; its "
        f"{interval:.0%} intervals hold {found.coverage:.0%} of the sampled draws."
    )
    ratio = replace(
        plain[0],
        level="good" if CLOSE[0] <= found.epistemic_ratio <= CLOSE[1] else "doubt",
        text=text,
        meaning="Intervals and the split of the entropy come from a Gaussian around the best fit, which must be close.",
        cure="Report the sampled figures as well, or try other --coordinates.",
    )
    return [ratio, *plain[1:]]
