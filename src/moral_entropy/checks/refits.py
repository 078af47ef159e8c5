"""Do other starts, other samples and other priors lead to the same answer? The paper's ensemble, and a grid of priors.

The ensemble searches for the mode of `Posterior` again: from random starts, and on items drawn with replacement. The
grid fits the votes again under priors that all look reasonable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import entr, logit

from moral_entropy.checks.posterior import Posterior
from moral_entropy.findings import Finding, level_of, without_warnings
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.findings import NOTICEABLE, finding_of
from moral_entropy.model.fit import refit
from moral_entropy.model.search import CLOSE
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.votes.table import Floats

MEMBERS = 20

SPREAD = 1.5
"""Standard deviation of random starts around the paper's, in log ratios: of two labels, one annotator in ten begins
worse than chance."""

HIGHER = 0.05
"""Nats by which another mode must be higher to be called the better one."""

TOO_NARROW = 2.0
"""Spread of a prevalence over resampled items, in its posterior sd, from which the posterior is doubted."""

ALPHAS: dict[str, float | tuple[float, ...]] = {"80,20": (80.0, 20.0), "500,500": 500.0}
"""Prevalence priors of the grid: the two of the paper."""

ROWS = ((1.0, 1.0), (3.0, 2.0), (6.0, 2.0), (4.0, 1.0), (20.0, 5.0))
"""Confusion priors of the grid: of the right answer, and of every wrong one."""

WIDE = 1.0
"""Logits over which a prevalence ranges, under other priors of the annotators, from which the prior decides."""


def check_ensemble(
    consensus: Consensus, *, seed: int = 0, members: int = MEMBERS, advance: Advance = ignore
) -> list[Finding]:
    """Search again from random starts and on resampled items, and say what changes.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> consensus = fit(simulate_votes(n_items=400, n_annotators=8, votes_per_item=5).votes)
    >>> found = check_ensemble(consensus, members=4)
    >>> [finding.value for finding in found if finding.figure == "starts_agreeing"]
    [1.0]
    """
    findings: list[Finding] = []
    for n, fit in enumerate(consensus.fits):
        findings += _ensemble_of(fit, members, seed, share_of(advance, n, len(consensus.fits)))
    return findings


def _ensemble_of(fit: QuestionFit, members: int, seed: int, advance: Advance) -> list[Finding]:
    posterior = Posterior.of(fit)
    reported_p = posterior.pack(fit.weight_dg, fit.confusion_akv)
    n_labels, total = fit.ballot.n_labels, posterior.patterns.weight_r.sum()
    right_akv = np.broadcast_to(0.6 * np.eye(n_labels) + 0.4 / n_labels, posterior.beta_akv.shape)
    paper_p = posterior.pack(np.tile(fit.states.size_g / fit.states.n_states, (len(fit.weight_dg), 1)), right_akv)
    height, _, p_rk = _mode_from(posterior, reported_p)
    by_starts, by_items = [], []
    for member in range(members):
        rng = np.random.default_rng([seed, member])
        by_starts.append(_mode_from(posterior, paper_p + SPREAD * rng.standard_normal(len(paper_p))))
        weight_r = rng.multinomial(round(total), posterior.patterns.weight_r / total).astype(np.float64)
        other = replace(posterior, patterns=replace(posterior.patterns, weight_r=weight_r))
        by_items.append(_mode_from(other, reported_p))
        advance((member + 1) / members)
    weight_r = np.bincount(fit.patterns.row_i, fit.ballot.count_i, fit.patterns.n_rows)
    findings: list[Finding] = []
    for kind, several in (("starts", by_starts), ("items", by_items)):
        height_m, share_mk, p_mrk = (np.array(values) for values in zip(*several, strict=True))
        changed_m = np.average(p_mrk.argmax(axis=2) != p_rk.argmax(axis=1), weights=weight_r, axis=1)
        if kind == "starts":
            findings += _modes(fit, height - height_m, changed_m)
        findings += _spread(fit, kind, p_rk, p_mrk, share_mk, changed_m, weight_r)
    return findings


def _mode_from(posterior: Posterior, start_p: Floats) -> tuple[float, Floats, Floats]:
    """Return the mode that a start leads to: its height, the share of every label, and every row's probabilities."""
    # Loaded here, as no audit needs an optimiser.
    from scipy.optimize import minimize

    def negative(x_p: Floats) -> tuple[float, Floats]:
        height, gradient_p = posterior.density(x_p)
        return -height, -gradient_p

    optimum = minimize(negative, start_p, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-12})
    weight_dg, confusion_akv = (np.exp(logs) for logs in posterior.unpack(optimum.x))
    patterns, states = posterior.patterns, posterior.states
    domain_r = patterns.domain_r if patterns.n_domains > 1 else np.zeros(patterns.n_rows, dtype=np.int64)
    items_d = np.bincount(domain_r, patterns.weight_r, len(weight_dg))
    share_k = states.prevalence_k(items_d / items_d.sum() @ weight_dg)
    return -float(optimum.fun), share_k, posterior.state_probabilities(weight_dg, confusion_akv) @ states.mix_zk


def _modes(fit: QuestionFit, lower_m: Floats, changed_m: Floats) -> list[Finding]:
    """Say how many starts lead to the reported answer, and what the best of the other answers is."""
    same_m = changed_m < NOTICEABLE
    agreeing = finding_of(fit, "ensemble", "starts_agreeing", same_m.mean(), n=len(same_m))
    if same_m.all():
        return [agreeing]
    best = int(np.where(same_m, np.inf, lower_m).argmin())
    lower, higher = float(lower_m[best]), lower_m[best] < -HIGHER
    other = finding_of(
        fit, "ensemble", "mode_distance", lower, n=len(same_m), level=level_of(lower < CLOSE, bad=bool(higher)),
        text=(
            f"another answer fits {abs(lower):,.2f} nats {'better' if lower < 0 else 'worse'} (from "
            f"{(~same_m).sum()} of {len(same_m)} random starts); there {changed_m[best]:.1%} of the items have another "
            "label."
        ),
        meaning="There is a better answer than the one reported." if higher else "The votes hardly tell the two apart.",
        cure="State priors you can defend (--prior-prevalence, --prior-confusion) and audit again.",
    )  # fmt: skip
    return [agreeing, other]


def _spread(
    fit: QuestionFit, kind: str, p_rk: Floats, p_mrk: Floats, share_mk: Floats, changed_m: Floats, weight_r: Floats
) -> list[Finding]:
    """Say how far p, its entropy and the prevalence spread over the members."""
    label_r = np.full(len(p_rk), fit.ballot.positive) if fit.ballot.n_labels == 2 else p_rk.argmax(axis=1)
    sd_r = p_mrk[:, np.arange(len(p_rk)), label_r].std(axis=0, ddof=1)
    order_r = np.argsort(sd_r)
    below_r = np.cumsum(weight_r[order_r]) / weight_r.sum()
    figures = {
        "p_sd_mean": np.average(sd_r, weights=weight_r),
        "p_sd_95": sd_r[order_r[min(int(np.searchsorted(below_r, 0.95)), len(order_r) - 1)]],
        "entropy_sd": np.average(entr(p_mrk).sum(axis=-1), weights=weight_r, axis=1).std(ddof=1),
        "labels_changed": changed_m.mean(),
    }
    n = len(p_mrk)
    findings = [finding_of(fit, "ensemble", name, value, subject=kind, n=n) for name, value in figures.items()]
    for k in [fit.ballot.positive] if fit.ballot.n_labels == 2 else range(fit.ballot.n_labels):
        label, sd = fit.ballot.labels[k], float(share_mk[:, k].std(ddof=1))
        findings.append(finding_of(fit, "ensemble", "prevalence_sd", sd, subject=f"{kind} · {label}", n=n))
        if kind == "items" and fit.n_draws:
            own = float(fit.prevalence_sk[:, k].std())
            findings.append(finding_of(
                fit, "ensemble", "bootstrap_ratio", sd / max(own, 1e-12), subject=label, n=n,
                level=level_of(sd > TOO_NARROW * own),
                text=(
                    f"over resampled items the share of {label!r} spreads {sd / max(own, 1e-12):.1f} times as far as "
                    f"its posterior says (sd {sd:.2%} and {own:.2%})."
                ),
                meaning="Its interval is too narrow: the model does not fit these votes.",
                cure="Report the wider spread with the share.",
            ))  # fmt: skip
    return findings


def check_priors(consensus: Consensus, *, seed: int = 0, advance: Advance = ignore) -> list[Finding]:
    """Fit again under other priors, and say how far prevalence, entropy and labels range.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> consensus = fit(simulate_votes(n_items=1_000, n_annotators=6, votes_per_item=5).votes, draws=0)
    >>> [finding.level for finding in check_priors(consensus) if finding.figure == "range_prevalence"]
    ['info']
    """
    priors, two = consensus.priors, all(fit.ballot.n_labels == 2 for fit in consensus.fits)
    choices: dict[str, dict[str, Any]] = {}
    for right, wrong in ROWS:
        choices[f"{right:g}/{wrong:g}"] = {"priors": replace(priors, diagonal=right, off_diagonal=wrong)}
    for alpha, values in ALPHAS.items():
        if two or not isinstance(values, tuple):
            choices[alpha] = {"priors": replace(priors, prevalence=values, by_question={})}
    others: dict[str, Consensus] = {}
    for n, (name, changes) in enumerate(choices.items()):
        # Thin data and other modes were said of the reported fit already.
        with without_warnings():
            others[name] = refit(consensus, draws=0, seed=seed, **changes)
        advance((n + 1) / len(choices))
    findings: list[Finding] = []
    for f, fit in enumerate(consensus.fits):
        findings += _ranges(fit, {name: other.fits[f] for name, other in others.items()})
    return findings


def _ranges(fit: QuestionFit, others: dict[str, QuestionFit]) -> list[Finding]:
    weight_i, findings = fit.ballot.count_i, []
    for k in [fit.ballot.positive] if fit.ballot.n_labels == 2 else range(fit.ballot.n_labels):
        share_of_prior = {name: float(other.share_k[k]) for name, other in others.items()}
        # A prior of a thousand pseudo-items must move the prevalence of a few: the doubt looks at confusion priors.
        by_rows = {name: share for name, share in share_of_prior.items() if name not in ALPHAS}
        findings.append(_range(
            fit, "prevalence", list(share_of_prior.values()), fit.ballot.labels[k],
            **_range_words(fit.ballot.labels[k], float(fit.share_k[k]), by_rows),
        ))  # fmt: skip
    entropies = [float(np.average(entr(other.posterior_ik).sum(axis=1), weights=weight_i)) for other in others.values()]
    changed = [float(np.average(other.label_i != fit.label_i, weights=weight_i)) for other in others.values()]
    return [*findings, _range(fit, "entropy", entropies), _range(fit, "labels_changed", changed)]


def _range(fit: QuestionFit, figure: str, values: list[float], subject: str = "", **words: Any) -> Finding:
    low, high = min(values), max(values)
    about = {"subject": subject, "low": low, "high": high, "n": len(values), **words}
    return finding_of(fit, "priors", f"range_{figure}", high - low, **about)


def _range_words(label: str, reported: float, by_rows: dict[str, float]) -> dict[str, Any]:
    """Say between which priors a prevalence ranges, and what that means where it is too far."""
    least, most = min(by_rows, key=by_rows.__getitem__), max(by_rows, key=by_rows.__getitem__)
    low, high = by_rows[least], by_rows[most]
    text = (
        f"under {len(by_rows)} other priors of the annotators the share of {label!r} is between {low:.1%} ({least}) "
        f"and {high:.1%} ({most}); reported {reported:.1%}."
    )
    if np.ptp(logit(np.clip([low, high], 1e-9, 1 - 1e-9))) <= WIDE:
        return {"text": text}
    return {
        "level": "doubt",
        "text": text,
        "meaning": "Too few votes to decide: the default assumption (the prior) decides.",
        "cure": "State a prior you can defend (--prior-prevalence, --prior-confusion), and report the range.",
    }
