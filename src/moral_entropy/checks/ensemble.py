"""Do other starts and samples agree? Ensembles of modes: other starts, other items, other annotators.

Takes a `Consensus`, searches again from many starts and on resampled items and annotators; returns how far p,
prevalence and entropies spread, every mode that was found, and whose labels trade places there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr

from moral_entropy.checks.density import densities_of
from moral_entropy.checks.heldout import other_fits
from moral_entropy.checks.modes import PROBE, REPORTED, FoundMode, find_modes
from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.fit_findings import NOTICEABLE, annotator_name, finding_of
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import CLOSE, LEVEL
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.tempering import tempered
from moral_entropy.findings import Finding, level_of, listed
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.ties import highest
from moral_entropy.votes.table import Floats

SIDE = "ensemble"

TOO_NARROW = 2.0
"""Spread of a prevalence over resampled items, in its posterior sd, from which the posterior is doubted."""

FEWEST_ANNOTATORS = 3
"""Annotators below which resampling them says nothing."""

MOST_MODES = 5
"""Other modes that are listed."""

HIGHER = 0.05
"""Nats by which another mode must be higher to be called the better one."""


@dataclass(frozen=True, eq=False)
class Spread:
    """How far an ensemble of fits spreads. Axes: **r** row of votes, **k** label.

    Parameters
    ----------
    kind
        "starts", "items" or "annotators".
    members
        How many fits.
    prevalence_k, prevalence_sd_k
        Mean and standard deviation of the prevalence over the fits.
    entropy, entropy_sd
        The same of the mean entropy of p, in nats.
    p_sd_r, weight_r
        Standard deviation of each row's p (of the positive label; of more than two, the label at the reported mode),
        and how many items the row stands for.
    changed
        Share of items whose label is another than at the reported mode, mean over the fits.
    """

    kind: str
    members: int
    prevalence_k: Floats
    prevalence_sd_k: Floats
    entropy: float
    entropy_sd: float
    p_sd_r: Floats
    weight_r: Floats
    changed: float

    @property
    def p_sd(self) -> float:
        """Mean over items of the spread of p."""
        return float(np.average(self.p_sd_r, weights=self.weight_r))

    @property
    def p_sd_95(self) -> float:
        """Spread of p that 95% of the items stay within."""
        order_r = np.argsort(self.p_sd_r)
        below_r = np.cumsum(self.weight_r[order_r]) / self.weight_r.sum()
        return float(self.p_sd_r[order_r[min(int(np.searchsorted(below_r, 0.95)), len(order_r) - 1)]])


def examine_ensemble(
    consensus: Consensus, *, members: int = 20, seed: int = 0, advance: Advance = ignore
) -> list[Finding]:
    """Fit again from other starts, on other items and with other annotators, and say what changes.

    Parameters
    ----------
    consensus
        The fit to examine.
    members
        Random starts, resamplings of the items, and resamplings of the annotators, each.
    seed
        Of all of them.
    advance
        Called with the share done.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=400, n_annotators=8, votes_per_item=5).votes)
    >>> [finding.value for finding in examine_ensemble(consensus, members=4) if finding.figure == "modes_found"]
    [2.0]
    """
    findings: list[Finding] = []
    for n, fit in enumerate(consensus.fits):
        share = share_of(advance, n, len(consensus.fits))
        modes, spreads = ensemble_of(fit, members=members, seed=seed, advance=share)
        findings += _mode_findings(consensus, fit, modes)
        for spread in spreads:
            findings += _spread_findings(fit, spread)
    return findings


def ensemble_of(
    fit: QuestionFit, *, members: int = 20, seed: int = 0, advance: Advance = ignore
) -> tuple[list[FoundMode], list[Spread]]:
    """Gather all ensembles of one fit: its modes, the reported one first, and how far each kind of fit spreads.

    Parameters
    ----------
    fit, members, seed, advance
        As in `examine_ensemble`.
    """
    log_posterior, at = densities_of(fit).simplex, fit.mode
    modes = find_modes(log_posterior, at, seeds=members, seed=seed, advance=share_of(advance, 0, 3))
    spreads = [_spread(fit, "starts", _at_modes(log_posterior, modes))]
    enough = log_posterior.patterns.n_annotators >= FEWEST_ANNOTATORS
    for n, (kind, resample) in enumerate(RESAMPLINGS.items()):
        if members > 1 and (kind == "items" or enough):
            spreads.append(_spread(fit, kind, _refits(log_posterior, at, resample, members, [seed, n])))
        advance((n + 2) / 3)
    return modes, spreads


Member = tuple[LogPosterior, Parameters]
"""A fit of the ensemble: its density, and the mode of that."""

Resample = Callable[[LogPosterior, Parameters, np.random.Generator], Member]


def resample_items(log_posterior: LogPosterior, at: Parameters, rng: np.random.Generator) -> Member:
    """Draw as many items with replacement; the start is the mode."""
    patterns = log_posterior.patterns
    total = patterns.weight_r.sum()
    weight_r = rng.multinomial(round(total), patterns.weight_r / total).astype(np.float64)
    return replace(log_posterior, patterns=replace(patterns, weight_r=weight_r)), at


def resample_annotators(log_posterior: LogPosterior, at: Parameters, rng: np.random.Generator) -> Member:
    """Draw as many annotators with replacement, all their votes with them; the start is the mode.

    Copies of an annotator have the same votes and so the same rows: one annotator whose votes, and whose prior, count
    several times has the same mode.
    """
    patterns = log_posterior.patterns
    n_annotators, n_labels = patterns.n_annotators, patterns.n_labels
    copies_a = rng.multinomial(n_annotators, np.full(n_annotators, 1.0 / n_annotators))
    kept_a = np.flatnonzero(copies_a)
    place_a = np.cumsum(copies_a > 0) - 1
    annotator_v = patterns.code_v // n_labels
    copies_v = copies_a[annotator_v]
    code_v = place_a[annotator_v] * n_labels + patterns.code_v % n_labels
    start_r = np.concatenate([[0], np.cumsum(copies_v)])[patterns.start_r]
    other = replace(
        patterns,
        n_annotators=len(kept_a),
        start_r=start_r.astype(np.int64),
        code_v=np.repeat(code_v, copies_v).astype(patterns.code_v.dtype),
        weight_r=np.where(np.diff(start_r) > 0, patterns.weight_r, 0.0),
    )
    pseudo_akv = log_posterior.pseudo_akv[kept_a] * copies_a[kept_a, None, None]
    start = Parameters(at.log_weight_g, at.log_confusion_akv[kept_a])
    return replace(log_posterior, patterns=other, pseudo_akv=pseudo_akv), start


RESAMPLINGS: dict[str, Resample] = {"items": resample_items, "annotators": resample_annotators}


def _refits(
    log_posterior: LogPosterior, at: Parameters, resample: Resample, members: int, seed: list[int]
) -> Iterator[Member]:
    for member in range(members):
        other, start = resample(log_posterior, at, np.random.default_rng([*seed, member]))
        yield other, maximise(other, start, tolerance=LEVEL).at


def _at_modes(log_posterior: LogPosterior, modes: list[FoundMode]) -> Iterator[Member]:
    for mode in modes:
        for start in mode.starts:
            if _fair(start):
                yield log_posterior, mode.at


def _fair(start: str) -> bool:
    """Whether somebody might have begun there: not at the mode itself, and not looking for a switched one."""
    return start != REPORTED and not start.startswith(PROBE)


def _spread(fit: QuestionFit, kind: str, members: Iterator[Member]) -> Spread:
    """Add up the members one by one, so that no array of members × rows is held."""
    weight_r: Floats = np.bincount(fit.patterns.row_i, fit.ballot.count_i, fit.patterns.n_rows).astype(np.float64)
    reported_rk = densities_of(fit).simplex.posterior_rk(tempered(fit.mode, fit.exponent.value))
    label_r = highest(reported_rk)
    shown_r = np.full_like(label_r, fit.ballot.positive) if fit.ballot.n_labels == 2 else label_r
    rows = np.arange(len(label_r))
    sum_r, square_r, prevalence_mk, entropy_m, changed_m = np.zeros(len(rows)), np.zeros(len(rows)), [], [], []
    for log_posterior, at in members:
        posterior_rk = log_posterior.posterior_rk(tempered(at, fit.exponent.value))
        # From the reported p, so that squares of nearly equal numbers keep their digits.
        step_r = posterior_rk[rows, shown_r] - reported_rk[rows, shown_r]
        sum_r, square_r = sum_r + step_r, square_r + step_r**2
        prevalence_mk.append(shares_of_labels(log_posterior, at))
        entropy_m.append(np.average(entr(posterior_rk).sum(axis=1), weights=weight_r))
        changed_m.append(np.average(highest(posterior_rk) != label_r, weights=weight_r))
    n = len(prevalence_mk)
    return Spread(
        kind=kind,
        members=n,
        prevalence_k=np.mean(prevalence_mk, axis=0),
        prevalence_sd_k=np.std(prevalence_mk, axis=0, ddof=1),
        entropy=float(np.mean(entropy_m)),
        entropy_sd=float(np.std(entropy_m, ddof=1)),
        p_sd_r=np.sqrt(np.maximum(square_r - sum_r**2 / n, 0.0) / (n - 1)),
        weight_r=weight_r,
        changed=float(np.mean(changed_m)),
    )


def shares_of_labels(log_posterior: LogPosterior, at: Parameters) -> Floats:
    """Compute the labels' shares of all items at some parameters, over the domains of a log posterior."""
    items_d = log_posterior.items_d
    weight_g = (items_d / items_d.sum()) @ at.weight_g if at.mixed else at.weight_g
    return log_posterior.states.prevalence_k(weight_g)


def _spread_findings(fit: QuestionFit, spread: Spread) -> list[Finding]:
    figures = {
        "p_sd_mean": spread.p_sd,
        "p_sd_95": spread.p_sd_95,
        "entropy_sd": spread.entropy_sd,
        "labels_changed": spread.changed,
    }
    found = [finding_of(fit, SIDE, figure, value, subject=spread.kind, n=spread.members)
             for figure, value in figures.items()]  # fmt: skip
    labels = [fit.ballot.positive] if fit.ballot.n_labels == 2 else range(fit.ballot.n_labels)
    for k in labels:
        subject = f"{spread.kind} · {fit.ballot.labels[k]}"
        value = float(spread.prevalence_sd_k[k])
        found.append(finding_of(fit, SIDE, "prevalence_sd", value, subject=subject, n=spread.members))
        if spread.kind == "items" and fit.n_draws:
            found.append(_bootstrap_ratio(fit, spread, k))
    return found


def _bootstrap_ratio(fit: QuestionFit, spread: Spread, k: int) -> Finding:
    """Compare the spread over items with the posterior's own: they should agree, for one model and many items."""
    label, own = fit.ballot.labels[k], float(fit.prevalence_sk[:, k].std())
    ratio = float(spread.prevalence_sd_k[k]) / max(own, 1e-12)
    text = (
        f"over resampled items the share of {label!r} spreads {ratio:.1f} times as far as its posterior says "
        f"(sd {spread.prevalence_sd_k[k]:.2%} and {own:.2%})."
    )
    return finding_of(
        fit, SIDE, "bootstrap_ratio", ratio, subject=label, n=spread.members, level=level_of(ratio > TOO_NARROW),
        text=text,
        meaning="Its interval is too narrow: the model does not fit these votes.",
        cure=f"Report the wider spread with the share; {other_fits(fit)}.",
    )  # fmt: skip


def _mode_findings(consensus: Consensus, fit: QuestionFit, modes: list[FoundMode]) -> list[Finding]:
    fair_m = [sum(map(_fair, mode.starts)) for mode in modes]
    n_starts = sum(fair_m)
    there = fair_m[0] / n_starts
    found = [
        finding_of(fit, SIDE, "modes_found", len(modes), n=n_starts),
        finding_of(fit, SIDE, "starts_agreeing", there, n=n_starts),
    ]
    for mode in modes[1 : MOST_MODES + 1]:
        found.append(_other_mode(consensus, fit, mode))
        found.append(finding_of(fit, SIDE, "mode_changed", mode.changed, subject=mode.starts[0]))
    return found


def _other_mode(consensus: Consensus, fit: QuestionFit, mode: FoundMode) -> Finding:
    higher = mode.distance < -HIGHER
    return finding_of(
        fit, SIDE, "mode_distance", mode.distance, subject=mode.starts[0],
        level=level_of(mode.distance < CLOSE and mode.changed >= NOTICEABLE, bad=higher),
        text=_mode_text(consensus, fit, mode),
        meaning="There is a better answer than the one reported." if higher else "The votes hardly tell the two apart.",
        cure="State priors you can defend (--prior-prevalence, --prior-confusion) and audit again.",
    )  # fmt: skip


def _mode_text(consensus: Consensus, fit: QuestionFit, mode: FoundMode) -> str:
    where = "better" if mode.distance < 0 else "worse"
    starts = f"from start {mode.starts[0]!r}" + (f" and {len(mode.starts) - 1} more" if len(mode.starts) > 1 else "")
    return (
        f"another answer fits {abs(mode.distance):,.2f} nats {where} ({starts}); there {mode.changed:.1%} of the items "
        f"have another label, {switched_words(consensus, fit, mode)}."
    )


def switched_words(consensus: Consensus, fit: QuestionFit, mode: FoundMode) -> str:
    """Say what trades places at a mode: labels, everybody, or which annotators.

    Parameters
    ----------
    consensus, fit
        Whose mode it is.
    mode
        The mode.
    """
    labels = fit.ballot.labels
    traded = listed([f"{labels[one]!r} and {labels[other]!r} trade places" for one, other in mode.traded], " and ")
    team = np.flatnonzero(mode.switched_a)
    if fit.pooling == "full" or consensus.votes.anonymous or not len(team):
        return traded or "and no label trades places"
    if len(team) == len(mode.switched_a):
        return (traded + ": " if traded else "") + "all annotators are switched"
    names = listed([annotator_name(consensus, fit, int(a)) for a in team])
    who = f"{len(team)} of {len(mode.switched_a)} annotators are switched: {names}"
    return f"{traded}, and {who}" if traded else who
