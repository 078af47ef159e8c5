"""Who errs together? Annotators far more alike than the others, and votes that agree more than the model allows.

**Alike.** Votes that are independent given the label correlate as r_ab = ρ_a ρ_b, ρ being how each annotator correlates
with the label. The ρ are medians over partners, so that a few copies do not move them, and need no fit: a fit believes
copies, and then finds nothing odd about them. Two who differ on far fewer items than ρ_a ρ_b implies are alike; good
annotators, who agree because they are right, agree with everybody. Identical ones are found before the fit
(`model/copies`).

**Excess.** With the item's state z summed out, the residual of two votes is the expected product of their errors,
Σ_z p_z Σ_v (1[a voted v] - T_azv) (1[b voted v] - T_bzv), T_azv being the probability that a votes v on an item in
state z. Its mean over all pairs of votes on an item is the agreement beyond what independence predicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from scipy.sparse import csr_array
from scipy.special import bdtr

from moral_entropy.findings import Finding, level_of, listed
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.copies import LEAST_SHARED, joined
from moral_entropy.model.findings import annotator_name, finding_of
from moral_entropy.model.fit import fit_ballot
from moral_entropy.model.patterns import Patterns
from moral_entropy.model.posterior import state_posterior
from moral_entropy.progress import silent
from moral_entropy.votes.layouts import PLUS
from moral_entropy.votes.table import Floats, Ints

LEAST_PARTNERS, MOST_ANNOTATORS, MOST_PAIRS = 3, 500, 8_000_000
"""Others that an annotator must share items with; the busiest annotators that are compared; and pairs of votes that are
looked at, of more evenly spaced rows."""

ALIKE, CAUTION, LEVEL = 0.5, 0.8, 0.05
"""Alike: at most this part of the differences that were to be expected; and the chance of so few, if only `CAUTION` of
these were, is below the level over all pairs. On simulated honest annotators (eight kinds, 30 seeds each) none were
named."""

MOST_GROUPS = 5
"""Groups that are told: each takes another fit."""

NOTICEABLE, SURELY = 0.02, 3.0
"""Excess agreement from which a dependence matters, and standard errors from which it counts."""


# --- Alike ------------------------------------------------------------------------------------------------------------


def alike_groups(rows: Patterns) -> list[tuple[Ints, float, float]]:
    """Find annotators far more alike than the others.

    Parameters
    ----------
    rows
        Rows of votes; identical annotators count as one.

    Returns
    -------
    list
        Per group its annotators, on which share of the items that two of them share they agree, and on which they were
        to be expected to.
    """
    rows = rows.every(int((np.diff(rows.start_r) ** 2.0).sum() // MOST_PAIRS) + 1)
    votes_a = rows.votes_ak.sum(axis=1)
    busy = np.sort(np.argsort(-votes_a, kind="stable")[:MOST_ANNOTATORS])
    busy = busy[votes_a[busy] >= LEAST_SHARED]
    if len(busy) <= LEAST_PARTNERS:
        return []
    shared_aa, same_aa, chance_aa, scale_aa = _compared(rows, busy)
    counted_aa = (shared_aa >= LEAST_SHARED) & (scale_aa > 1e-9)
    counted_aa &= (counted_aa.sum(axis=1) >= LEAST_PARTNERS)[:, None]
    counted_aa &= counted_aa.T
    if not counted_aa.any():
        return []
    rho_a = _with_the_label((same_aa - chance_aa) / np.maximum(scale_aa, 1e-9), np.where(counted_aa, shared_aa, 0.0))
    expected_aa = np.clip(chance_aa + np.outer(rho_a, rho_a) * scale_aa, 0.0, 1.0)
    differing_aa, n_aa = np.rint(shared_aa * (1.0 - same_aa)), np.rint(shared_aa).astype(np.int64)
    chance_of_few_aa = bdtr(differing_aa, n_aa, CAUTION * (1.0 - expected_aa)) * counted_aa.sum() / 2.0
    alike_aa = counted_aa & (chance_of_few_aa <= LEVEL) & (1.0 - same_aa <= ALIKE * (1.0 - expected_aa))
    one_p, other_p = np.nonzero(alike_aa)
    groups: list[tuple[Ints, float, float]] = []
    for group in joined([(one_p, other_p)], len(busy)):
        at = np.ix_(group, group)
        weight_aa = np.where(counted_aa[at], shared_aa[at], 0.0)
        shares = [float(np.average(share_aa[at], weights=weight_aa)) for share_aa in (same_aa, expected_aa)]
        groups.append((busy[group], shares[0], shares[1]))
    return groups


def _compared(rows: Patterns, busy: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Compare the votes of every two annotators on the items they share.

    Returns
    -------
    tuple
        How many items these are, on which share of them the two agree, on which they would by chance, and by how much
        more if they agreed on all.
    """
    at_a = np.full(rows.n_annotators, -1)
    at_a[busy] = np.arange(len(busy))
    row_v = np.repeat(np.arange(rows.n_rows), np.diff(rows.start_r))
    annotator_v, label_v = np.divmod(rows.code_v.astype(np.int64), rows.n_labels)
    at_v = at_a[annotator_v]
    any_ra, *label_kra = (
        csr_array((np.ones(len(at)), (row_v[at], at_v[at])), shape=(rows.n_rows, len(busy)))
        for at in map(np.flatnonzero, (at_v >= 0, *((at_v >= 0) & (label_v == k) for k in range(rows.n_labels))))
    )
    shared_aa = ((any_ra * rows.weight_r[:, None]).T @ any_ra).toarray()
    same_aa, chance_aa, spread_aa = np.zeros((3, *shared_aa.shape))
    for label_ra in label_kra:
        weighted_ar = (label_ra * rows.weight_r[:, None]).T
        same_aa += (weighted_ar @ label_ra).toarray()
        # The share of a's votes for it, among the items that a shares with b.
        share_aa = (weighted_ar @ any_ra).toarray() / np.maximum(shared_aa, 1.0)
        chance_aa += share_aa * share_aa.T
        spread_aa += share_aa * (1.0 - share_aa)
    np.fill_diagonal(shared_aa, 0.0)
    return shared_aa, same_aa / np.maximum(shared_aa, 1.0), chance_aa, np.sqrt(spread_aa * spread_aa.T)


def _with_the_label(r_aa: Floats, weight_aa: Floats) -> Floats:
    """Compute ρ_a such that r_ab is about ρ_a ρ_b: weighted medians over partners, in turn until they stand still."""
    rho_a = np.full(len(r_aa), 0.7)
    for _ in range(40):
        # Whoever hardly correlates with the label says little about others.
        partner_a = np.where(np.abs(rho_a) < 0.05, 0.05, rho_a)
        ratio_aa, load_aa = r_aa / partner_a, weight_aa * np.abs(partner_a)
        order_aa = np.argsort(ratio_aa, axis=1, kind="stable")
        below_aa = np.cumsum(np.take_along_axis(load_aa, order_aa, axis=1), axis=1)
        middle_a1 = (below_aa >= below_aa[:, -1:] / 2.0).argmax(axis=1)[:, None]
        median_a = np.take_along_axis(np.take_along_axis(ratio_aa, order_aa, axis=1), middle_a1, axis=1)[:, 0]
        rho_a = 0.5 * rho_a + 0.5 * np.clip(median_a, -1.0, 1.0)
    return rho_a


def check_alike(consensus: Consensus, fit: QuestionFit) -> Iterator[Finding]:
    """Name annotators far more alike than the others, and say what would change if they counted as one."""
    # Items of a sample stand for many, but only they were seen to be shared.
    rows = replace(fit.patterns, weight_r=fit.patterns.weight_r / fit.ballot.count_i.min(initial=np.inf))
    groups = alike_groups(rows) if fit.options.mixed and not consensus.votes.anonymous else []
    for group, agreed, expected in groups[:MOST_GROUPS]:
        names = [annotator_name(consensus, fit, a) for a in group]
        options = replace(fit.options, draws=0, merge=(*fit.options.merge, PLUS.join(names)))
        as_one = fit_ballot(consensus.votes, fit.ballot, consensus.priors, options, fit.item_prior, silent)
        changed = float(np.average(as_one.label_i != fit.label_i, weights=fit.ballot.count_i))
        yield finding_of(
            fit, "votes", "alike", agreed - expected, subject=listed(names, most=6), n=len(names), level="doubt",
            text=(
                f"{listed(names, most=6)} agree on {agreed:.0%} of the items they share, where {expected:.0%} was to "
                f"be expected from how they agree with the others; counted as one, {changed:.1%} of the labels would "
                "change."
            ),
            meaning="They copy, confer or share a blind spot: p takes their agreement for evidence.",
            remedy=f"Ask them; --merge {PLUS.join(names)} counts them as one.",
        )  # fmt: skip


# --- Excess -----------------------------------------------------------------------------------------------------------


def excess_agreement(rows: Patterns, posterior_rz: Floats, vote_azv: Floats) -> dict[str, float] | None:
    """Compare the agreement of two votes on an item with what independence given the state predicts.

    Parameters
    ----------
    rows
        Rows of votes.
    posterior_rz
        Probabilities of every row's states.
    vote_azv
        How annotators vote on an item in each state.

    Returns
    -------
    dict | None
        Over all pairs of votes on an item: agreement, its excess, the standard error of that, the correlation of errors
        (the excess over what it would be if the errors of the two were one and the same), and items. None without any
        two votes on one item.
    """
    votes_r, n_votes = np.diff(rows.start_r), len(rows.code_v)
    annotator_v, label_v = np.divmod(rows.code_v.astype(np.int64), rows.n_labels)
    of_row_rv = csr_array((np.ones(n_votes), np.arange(n_votes), rows.start_r), shape=(rows.n_rows, n_votes))
    pairs = float(rows.weight_r @ (votes_r * (votes_r - 1.0))) / 2.0
    if not pairs:
        return None

    def together(value_vx: Floats) -> Floats:
        """Add up the products of all pairs of votes on a row."""
        return np.asarray(((of_row_rv @ value_vx) ** 2 - of_row_rv @ value_vx**2).sum(axis=1) / 2.0)

    said_vk, excess_r, scale_r = np.eye(rows.n_labels)[label_v], np.zeros(rows.n_rows), np.zeros(rows.n_rows)
    for z, vote_av in enumerate(vote_azv.swapaxes(0, 1)):
        spread_a = np.sqrt((1.0 - (vote_av**2).sum(axis=1)).clip(min=0.0))
        excess_r += posterior_rz[:, z] * together(said_vk - vote_av[annotator_v])
        scale_r += posterior_rz[:, z] * together(spread_a[annotator_v, None])
    return {
        "agreement": float(rows.weight_r @ together(said_vk)) / pairs,
        "excess": float(rows.weight_r @ excess_r) / pairs,
        # Residuals of one item depend on each other: those of its pairs are added before they are squared.
        "error": float(np.sqrt(rows.weight_r @ excess_r**2)) / pairs,
        "correlation": float(rows.weight_r @ excess_r) / max(float(rows.weight_r @ scale_r), 1e-300),
        "items": float(rows.weight_r[votes_r > 1].sum()),
    }


def check_dependence(consensus: Consensus) -> list[Finding]:
    """Test whether votes are independent given the label; `judges` says how far errors go together given gold.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=400, n_annotators=6, votes_per_item=4, seed=3).votes
    >>> findings = check_dependence(me.fit(votes, draws=0))
    >>> [(finding.metric, finding.n, finding.level) for finding in findings]
    [('excess_agreement', 400, 'info')]
    """
    return [_excess(consensus, fit) for fit in consensus.fits]


def _excess(consensus: Consensus, fit: QuestionFit) -> Finding:
    rows = fit.patterns.every(len(fit.patterns.code_v) * fit.states.n_states // MOST_PAIRS + 1)
    posterior_rz = state_posterior(rows, fit.states, fit.mode, slice(0, rows.n_rows))
    figures = excess_agreement(rows, posterior_rz, fit.states.votes_azv(fit.confusion_akv))
    if figures is None:
        text = "no item has votes of two annotators, so whether votes are independent cannot be told."
        return finding_of(fit, "dependence", "excess_agreement", 0, n=0, text=text)
    excess, half = figures["excess"], NormalDist().inv_cdf(0.5 + consensus.interval / 2) * figures["error"]
    return finding_of(
        fit, "dependence", "excess_agreement", excess, low=excess - half, high=excess + half, n=round(figures["items"]),
        level=level_of(abs(excess) >= max(NOTICEABLE, SURELY * figures["error"])),
        text=(
            f"two votes on an item agree in {figures['agreement']:.1%} of the cases, {abs(excess):.1%} "
            f"{'less' if excess < 0 else 'more'} than independence given the label allows: errors correlate with "
            f"{figures['correlation']:z.2f}."
        ),
        meaning="Agreement counts for more than it proves, and p is too sure.",
        remedy="Check labels by hand or against gold, and ask annotators, or models, of another kind.",
    )  # fmt: skip
