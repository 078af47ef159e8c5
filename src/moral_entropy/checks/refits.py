"""Do other starts and other priors lead to the same answer? The paper's ensemble, and a grid of priors.

The ensemble searches for the mode of `Posterior` again, from random starts. The grid fits the votes again under priors
that all look reasonable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import entr, logit

from moral_entropy.checks.posterior import density, posterior_of
from moral_entropy.findings import Finding, level_of, without_warnings
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.findings import NOTICEABLE, finding_of
from moral_entropy.model.fit import refit
from moral_entropy.model.posterior import Parameters, Posterior, score
from moral_entropy.model.search import CLOSE, pack, unpack
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.votes.table import Floats

MEMBERS = 20

SPREAD = 1.5
"""Standard deviation of random starts around the paper's, in log ratios: of two labels, one annotator in ten begins
worse than chance."""

HIGHER = 0.05
"""Nats by which another mode must be higher to be called the better one."""

ALPHAS: dict[str, float | tuple[float, ...]] = {"80,20": (80.0, 20.0), "500,500": 500.0}
"""Prevalence priors of the grid: the two of the preset mft."""

ROWS = ((1.0, 1.0), (3.0, 2.0), (6.0, 2.0), (4.0, 1.0), (20.0, 5.0))
"""Confusion priors of the grid: of the right answer, and of every wrong one."""

WIDE = 1.0
"""Logits over which a prevalence ranges, under other priors of the annotators, from which the prior decides."""


def check_ensemble(
    consensus: Consensus, *, seed: int = 0, members: int = MEMBERS, advance: Advance = ignore
) -> list[Finding]:
    """Search for the mode of every fit again, from random starts around the paper's, and say what changes.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> consensus = fit(simulate_votes(n_items=400, n_annotators=8, votes_per_item=5).votes)
    >>> [finding.value for finding in check_ensemble(consensus, members=4) if finding.metric == "starts_agreeing"]
    [1.0]
    """
    findings: list[Finding] = []
    for n, fit in enumerate(consensus.fits):
        findings += _ensemble_of(fit, members, seed, share_of(advance, n, len(consensus.fits)))
    return findings


def _ensemble_of(fit: QuestionFit, members: int, seed: int, advance: Advance) -> list[Finding]:
    posterior = posterior_of(fit)
    weight_r = np.bincount(fit.patterns.row_i, fit.ballot.count_i, fit.patterns.n_rows)
    even_dg = np.tile(fit.states.size_g / fit.states.n_states, (len(fit.mode.weight_dg), 1))
    right_kv = 0.6 * np.eye(fit.ballot.n_labels) + 0.4 / fit.ballot.n_labels
    paper_p = pack(Parameters(even_dg, np.broadcast_to(right_kv, fit.confusion_akv.shape)))
    height, p_rk = _mode_from(posterior, pack(fit.mode))
    lower, p_members = [], []
    for member in range(members):
        start_p = paper_p + SPREAD * np.random.default_rng([seed, member]).standard_normal(len(paper_p))
        member_height, other_rk = _mode_from(posterior, start_p)
        lower.append(height - member_height)
        p_members.append(other_rk)
        advance((member + 1) / members)
    p_mrk = np.array(p_members)
    changed_m = np.average(p_mrk.argmax(axis=2) != p_rk.argmax(axis=1), weights=weight_r, axis=1)
    figures = {
        "starts_agreeing": (changed_m < NOTICEABLE).mean(),
        "labels_changed": changed_m.mean(),
        "p_sd_mean": np.average(p_mrk.std(axis=0).max(axis=1), weights=weight_r),
        "entropy_sd": np.average(entr(p_mrk).sum(axis=-1), weights=weight_r, axis=1).std(),
    }
    findings = [finding_of(fit, "ensemble", figure, value, n=members) for figure, value in figures.items()]
    return [*findings, *_other_answer(fit, np.array(lower), changed_m)]


def _mode_from(posterior: Posterior, start_p: Floats) -> tuple[float, Floats]:
    """Return the height of the mode that a start leads to, and the label probabilities of every row there."""
    # Loaded here, as no audit needs an optimiser.
    from scipy.optimize import minimize

    def negative(x_p: Floats) -> tuple[float, Floats]:
        height, gradient_p = density(posterior, x_p)
        return -height, -gradient_p

    optimum = minimize(negative, start_p, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-12})
    assert posterior.held is not None
    return -float(optimum.fun), score(posterior.patterns, posterior.states, unpack(optimum.x, posterior.held))[0]


def _other_answer(fit: QuestionFit, lower_m: Floats, changed_m: Floats) -> Iterator[Finding]:
    """Tell the best of the answers that relabel items, if a start leads to one."""
    other_m = changed_m >= NOTICEABLE
    if not other_m.any():
        return
    best = int(np.where(other_m, lower_m, np.inf).argmin())
    lower, better = float(lower_m[best]), bool(lower_m[best] < -HIGHER)
    yield finding_of(
        fit, "ensemble", "mode_distance", lower, n=len(lower_m), level=level_of(lower < CLOSE, bad=better),
        text=(
            f"another answer fits {abs(lower):,.2f} nats {'better' if lower < 0 else 'worse'} (from {other_m.sum()} of "
            f"{len(lower_m)} random starts); there {changed_m[best]:.1%} of the items have another label."
        ),
        meaning="There is a better answer than the one reported." if better else "The votes hardly tell the two apart.",
        remedy="State priors you can defend (--prior-prevalence, --prior-confusion) and audit again.",
    )  # fmt: skip


def check_priors(consensus: Consensus, *, seed: int = 0, advance: Advance = ignore) -> list[Finding]:
    """Fit again under other priors, and say how far prevalence, entropy and labels range.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> consensus = fit(simulate_votes(n_items=1_000, n_annotators=6, votes_per_item=5).votes, draws=0)
    >>> [finding.level for finding in check_priors(consensus) if finding.metric == "range_prevalence"]
    ['info']
    """
    priors, two = consensus.priors, all(fit.ballot.n_labels == 2 for fit in consensus.fits)
    choices: dict[str, dict[str, Any]] = {
        **{f"{d:g}/{o:g}": {"priors": replace(priors, diagonal=d, off_diagonal=o)} for d, o in ROWS},
        **{name: {"priors": replace(priors, prevalence=alpha, by_question={})} for name, alpha in ALPHAS.items()
           if two or not isinstance(alpha, tuple)},
    }  # fmt: skip
    refits: dict[str, Consensus] = {}
    for n, (name, changes) in enumerate(choices.items()):
        # Thin data and other modes were said of the reported fit already.
        with without_warnings():
            refits[name] = refit(consensus, draws=0, seed=seed, **changes)
        advance((n + 1) / len(choices))
    findings: list[Finding] = []
    for f, fit in enumerate(consensus.fits):
        findings += _ranges(fit, {name: refitted.fits[f] for name, refitted in refits.items()})
    return findings


def _ranges(fit: QuestionFit, refits: dict[str, QuestionFit]) -> Iterator[Finding]:
    ballot, weight_i = fit.ballot, fit.ballot.count_i
    for k in [ballot.positive] if ballot.n_labels == 2 else range(ballot.n_labels):
        # A prior of a thousand pseudo-items must move the prevalence of a few: the doubt looks at annotators' priors.
        shares = {name: float(refitted.share_k[k]) for name, refitted in refits.items() if name not in ALPHAS}
        least, largest = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        low, high = shares[least], shares[largest]
        finding = finding_of(
            fit, "priors", "range_prevalence", high - low, subject=ballot.labels[k], low=low, high=high, n=len(shares),
            text=(
                f"under {len(shares)} other priors of the annotators the share of {ballot.labels[k]!r} is between "
                f"{low:.1%} ({least}) and {high:.1%} ({largest}); reported {fit.share_k[k]:.1%}."
            ),
        )  # fmt: skip
        wide = np.ptp(logit(np.clip([low, high], 1e-9, 1 - 1e-9))) > WIDE
        yield finding if not wide else replace(
            finding, level="doubt", meaning="Too few votes to decide: the default assumption (the prior) decides.",
            remedy="State a prior you can defend (--prior-prevalence, --prior-confusion), and report the range.",
        )  # fmt: skip
    for figure, values in (
        ("entropy", [np.average(entr(again.posterior_ik).sum(axis=1), weights=weight_i) for again in refits.values()]),
        ("labels_changed", [np.average(again.label_i != fit.label_i, weights=weight_i) for again in refits.values()]),
    ):
        low, high = float(min(values)), float(max(values))
        yield finding_of(fit, "priors", f"range_{figure}", high - low, low=low, high=high, n=len(values))
