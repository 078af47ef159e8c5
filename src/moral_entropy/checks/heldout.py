"""Does the consensus predict votes? A fold of the votes left out, the rest fitted again, the fold predicted; in turn.

A left-out vote is predicted by the consensus on its item and the annotator's confusion row, by the share of the other
votes on the item, and by the prevalence and the annotator's row alone. No gold is needed, and none can be had from it:
who predicts votes well may still be wrong together with the voters.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from moral_entropy.checks.scores import calibration_error, log_losses, mean_interval, smoothed_share
from moral_entropy.findings import Finding, Level, without_warnings
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.findings import finding_of
from moral_entropy.model.fit import refit
from moral_entropy.model.posterior import state_posterior
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints

SIMPLER = {"vote share": "the share of the other votes on the item", "prevalence": "the annotators' habits alone"}
"""Predictions that the consensus is held against."""

METHODS = ("consensus", *SIMPLER)

MOST_VOTES = 1_000_000
"""At most this many votes are held out and predicted; all others only fitted to."""

VOTES_AT_ONCE = 100_000
"""Votes whose chances are computed together."""


def check_heldout(consensus: Consensus, *, seed: int = 0, folds: int = 5, advance: Advance = ignore) -> list[Finding]:
    """Predict left-out votes of every fit.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> votes = simulate_votes(n_items=300, n_annotators=8, votes_per_item=5).votes
    >>> [finding.level for finding in check_heldout(fit(votes, draws=0)) if finding.metric.startswith("gain")]
    ['good', 'good']
    """
    findings: list[Finding] = []
    for b in range(len(consensus.fits)):
        held_out = hold_out(consensus, b, folds=folds, seed=seed, advance=share_of(advance, b, len(consensus.fits)))
        if held_out is not None:
            findings += _scored(consensus.fits[b], *held_out)
    return findings


def hold_out(
    consensus: Consensus, b: int, *, folds: int = 5, seed: int = 0, advance: Advance = ignore
) -> tuple[Floats, Ints, Ints] | None:
    """Leave the votes of one fit out, a fold at a time, and predict them; None for too few, and for pre-counted rows.

    Returns
    -------
    tuple
        The probabilities that each of `METHODS` gave to every label, `p_mvk`; what was voted; and on which item.
    """
    ballot = consensus.fits[b].ballot
    rng = np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in (ballot.question, ballot.part))])
    open_i = (ballot.gold_i == UNKNOWN) | (not consensus.options.use_gold)
    out_v = rng.permutation(np.flatnonzero(np.repeat(open_i, ballot.votes_i)))[:MOST_VOTES]
    # A vote of a row that stands for several items is not one vote.
    if len(out_v) < folds or (ballot.count_i != 1.0).any():
        return None
    fold_v = np.full(ballot.n_votes, -1)
    fold_v[out_v] = np.arange(len(out_v)) % folds
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    p_mvk = np.empty((len(METHODS), ballot.n_votes, ballot.n_labels))
    for fold in range(folds):
        votes_v = np.flatnonzero(fold_v == fold)
        fitted_to = _without(ballot, votes_v)
        with without_warnings():
            votes = replace(consensus.votes, ballots=(fitted_to,))
            [refitted] = refit(consensus, votes=votes, draws=0).fits
        p_mvk[:, votes_v] = _predict(refitted, fitted_to, item_v[votes_v], ballot.code_v[votes_v] // ballot.n_labels)
        advance((fold + 1) / folds)
    out_v.sort()
    return p_mvk[:, out_v], ballot.code_v[out_v] % ballot.n_labels, item_v[out_v]


def _without(ballot: Ballot, out_v: Ints) -> Ballot:
    """Return the ballot without some votes; items and annotators stay."""
    kept_v = np.ones(ballot.n_votes, dtype=bool)
    kept_v[out_v] = False
    start_i = np.concatenate([[0], np.cumsum(kept_v)])[ballot.start_i].astype(np.int64)
    row_v = None if ballot.row_v is None else ballot.row_v[kept_v]
    return replace(ballot, start_i=start_i, code_v=ballot.code_v[kept_v], row_v=row_v)


def _predict(fit: QuestionFit, ballot: Ballot, item_v: Ints, annotator_v: Ints) -> Floats:
    """Compute every method's probabilities of the labels, for votes on these items by these annotators."""
    patterns, vote_azk = fit.patterns, fit.states.votes_azv(fit.confusion_akv)
    posterior_rz = state_posterior(fit.patterns, fit.states, fit.mode, slice(0, fit.patterns.n_rows))
    weight_dz = fit.states.weight_of_states(fit.mode.weight_dg)
    p_mvk = np.empty((len(METHODS), len(item_v), ballot.n_labels))
    for start in range(0, len(item_v), VOTES_AT_ONCE):
        chunk = slice(start, start + VOTES_AT_ONCE)
        row_v, vote_vzk = patterns.row_i[item_v[chunk]], vote_azk[annotator_v[chunk]]
        domain_v = patterns.domain_r[row_v] if patterns.n_domains > 1 else np.zeros(len(row_v), dtype=np.int64)
        p_mvk[0, chunk] = np.einsum("vz,vzk->vk", posterior_rz[row_v], vote_vzk)
        p_mvk[2, chunk] = np.einsum("vz,vzk->vk", weight_dz[domain_v], vote_vzk)
    p_mvk[1] = smoothed_share(ballot.counts_ik[item_v])
    return p_mvk


def _scored(fit: QuestionFit, p_mvk: Floats, label_v: Ints, item_v: Ints) -> list[Finding]:
    findings = []
    loss = {method: log_losses(p_vk, label_v) for method, p_vk in zip(METHODS, p_mvk, strict=True)}
    for method, p_vk in zip(METHODS, p_mvk, strict=True):
        mean, low, high = mean_interval(loss[method], item_v)
        about: dict[str, Any] = {"subject": method, "n": len(label_v)}
        findings.append(finding_of(fit, "heldout", "log_loss", mean, low=low, high=high, **about))
        findings.append(finding_of(fit, "heldout", "ece", calibration_error(p_vk, label_v), **about))
    for simpler, baseline in SIMPLER.items():
        mean, low, high = mean_interval(loss[simpler] - loss["consensus"], item_v)
        level: Level = "doubt" if high < 0.0 else "good" if low > 0.0 else "info"
        chance, side = ", which may be chance" * (level == "info"), "better" if mean > 0 else "worse"
        figure = f"gain_over_{simpler.replace(' ', '_')}"
        findings.append(finding_of(
            fit, "heldout", figure, mean, low=low, high=high, n=len(label_v), level=level,
            text=(
                f"left-out votes are predicted {abs(mean):.3f} nats per vote {side} by the consensus than by "
                f"{baseline}{chance}."
            ),
            meaning="Where it is worse, its probabilities are not to be read as chances.",
            remedy="Try other priors, and rank by p rather than read it as a frequency.",
        ))  # fmt: skip
    return findings
