"""Do annotators vote independently, given the label, as the model has it? Pair by pair, overall, and as predicted.

Takes a `Consensus`, returns findings of the side "dependence". Where two annotators copy, or share a blind spot, their
agreement counts twice and p is too sure. Who copies is found before the fit (`consensus/near_copies`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist

from moral_entropy.checks.density import log_posterior_of
from moral_entropy.checks.pairs import (
    NOTICEABLE,
    Pairs,
    Together,
    dependent_pairs,
    pool_pairs,
    weigh_pairs,
)
from moral_entropy.checks.predictive import REPLICATES, predictive_findings
from moral_entropy.checks.residuals import residuals_of
from moral_entropy.checks.temper import less_sure
from moral_entropy.consensus.fit_findings import ALL_BUT, annotator_name, finding_of, worth_in_words
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.findings import Finding, level_of, listed
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.ties import TIE

SIDE = "dependence"

LEAST_ITEMS = 20
"""Items a pair must share to be tested."""

COPIES, ALIKE = 0.05, 0.95
"""Excess from which a pair must be looked into first, if they also agree on nearly all items."""

SURELY = 3.0
"""Standard errors from which the pooled excess counts."""

NAMED = 20
"""Pairs with a finding of their own at most, the surest ones."""


def examine_dependence(
    consensus: Consensus,
    *,
    least_items: float = LEAST_ITEMS,
    replicates: int = REPLICATES,
    seed: int = 0,
    advance: Advance = ignore,
) -> list[Finding]:
    """Test whether votes are independent given the label, and name the pairs of annotators whose are not.

    Parameters
    ----------
    consensus
        The fits to examine.
    least_items
        Items a pair must share.
    replicates
        How often votes are drawn from each fit, to compare them with those that were given; 0 for not at all.
    seed
        Of what is drawn.
    advance
        Called with the share done.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=400, n_annotators=6, votes_per_item=4, seed=3).votes
    >>> findings = examine_dependence(me.fit(votes, draws=0))
    >>> [(finding.figure, finding.n, finding.level) for finding in findings]
    [('excess_agreement', 400, 'info'), ('typical_excess', 15, 'info'), ('dependent_pairs', 15, 'info')]
    """
    found: list[Finding] = []
    for n, fit in enumerate(consensus.fits):
        found += _examine_pairs(consensus, fit, least_items)
        advance((n + 1) / len(consensus.fits) / 2)
    for n, fit in enumerate(consensus.fits):
        of_fit = share_of(share_of(advance, 1, 2), n, len(consensus.fits))
        found += predictive_findings(consensus, fit, replicates=replicates, seed=seed, advance=of_fit)
    return found


def _examine_pairs(consensus: Consensus, fit: QuestionFit, least_items: float) -> Iterator[Finding]:
    anonymous = consensus.votes.anonymous
    density = replace(log_posterior_of(fit), better_than_chance=fit.options.better_than_chance)
    residuals = residuals_of(density, fit.at, anonymous=anonymous)
    # One matrix for all absorbs next to nothing of any pair.
    fitted = fit.pooling != "full"
    together = pool_pairs(residuals, fitted=fitted)
    if together is None:
        text = "no item has votes of two annotators, so whether votes are independent cannot be told."
        yield finding_of(fit, SIDE, "dependent_pairs", 0, n=0, text=text)
        return
    yield _pooled(fit, together, consensus.interval)
    if not anonymous:
        pairs = weigh_pairs(residuals, least_items=least_items, fitted=fitted)
        yield _typical(fit, pairs)
        yield from _dependent(consensus, fit, pairs)


def _pooled(fit: QuestionFit, together: Together, interval: float) -> Finding:
    half = NormalDist().inv_cdf(0.5 + interval / 2) * together.error
    doubted = abs(together.excess) >= max(NOTICEABLE, SURELY * together.error)
    side = "less" if together.excess < -TIE else "more"
    text = (
        f"two votes on an item agree in {together.agreement:.1%} of the cases, {abs(together.excess):.1%} {side} than "
        f"independence given the label allows: errors correlate with {together.correlation:z.2f}."
    )
    return finding_of(
        fit, SIDE, "excess_agreement", together.excess, low=together.excess - half, high=together.excess + half,
        n=round(together.items), level=level_of(doubted), text=text,
        meaning=_too_sure(fit),
        cure=less_sure(fit),
    )  # fmt: skip


def _too_sure(fit: QuestionFit) -> str:
    """Say what dependence means for p, and what the votes are worth where that is less than their number."""
    meaning = "Agreement counts for more than it proves, and p is too sure."
    if fit.worth is None or fit.worth.effective > ALL_BUT * fit.worth.votes:
        return meaning
    return f"{meaning} {worth_in_words(fit.worth)}."


def _typical(fit: QuestionFit, pairs: Pairs) -> Finding:
    n_told, doubted = pairs.n_told, pairs.scattered and pairs.typical >= NOTICEABLE
    text = (
        f"agreement of a pair is typically {pairs.typical:.1%} off what independence given the label predicts (squares "
        f"of z average {pairs.dispersion:.1f} over {n_told:,} pairs, where 1 is chance)."
        if n_told
        else f"no two annotators share enough items ({len(pairs.items_p):,} pairs) for their votes to be compared."
    )
    return finding_of(
        fit, SIDE, "typical_excess", pairs.typical, n=n_told, level=level_of(doubted), text=text,
        meaning="Some annotators make the same mistakes, and p takes their agreement for evidence.",
        cure=less_sure(fit),
    )  # fmt: skip


def _dependent(consensus: Consensus, fit: QuestionFit, pairs: Pairs) -> Iterator[Finding]:
    named, n_told = dependent_pairs(pairs).tolist(), pairs.n_told
    names = [_name(consensus, fit, pairs, p) for p in named]
    if not names:
        yield finding_of(fit, SIDE, "dependent_pairs", 0, n=n_told)
        return
    yield finding_of(
        fit, SIDE, "dependent_pairs", len(names), n=n_told, level="doubt",
        text=(
            f"{len(names):,} of {n_told:,} pairs of annotators do not vote independently given the label "
            f"({listed(names)})."
        ),
        meaning=(
            "They copy, confer or share a blind spot, or their items are of another kind than the rest; p takes their "
            "agreement for evidence."
        ),
        cure=_cure(consensus, fit),
    )  # fmt: skip
    for p, name in zip(named[:NAMED], names, strict=False):
        yield _pair(fit, pairs, p, name)


def _cure(consensus: Consensus, fit: QuestionFit) -> str:
    """Say what to do about pairs; a fit that believes copies takes everyone else for dependent."""
    if fit.copies is None:
        return "Look for copies first (--dependence merge); ask them; fit kinds of items apart (--fit-by)."
    if fit.copies.any and not consensus.options.counts_once:
        return "Count the near-copies that the audit names as one first (--merge A+B): they make others seem dependent."
    return "Ask them; fit kinds of items apart (--fit-by)."


def _pair(fit: QuestionFit, pairs: Pairs, p: int, name: str) -> Finding:
    excess, agreement, z = float(pairs.excess_p[p]), float(pairs.agreement_p[p]), float(pairs.z_p[p])
    half = 1.645 * float(pairs.error_p[p])
    text = (
        f"{name} agree on {agreement:.1%} of {pairs.items_p[p]:,.0f} shared items, where {agreement - excess:z.1%} was "
        f"to be expected (z = {z:z.1f})."
    )
    # Of pairs that do not copy the list of pairs has said all that matters.
    return finding_of(
        fit, SIDE, "pair_excess", excess, subject=name, low=excess - half, high=excess + half,
        n=round(float(pairs.items_p[p])), level=level_of(excess >= COPIES and agreement >= ALIKE, bad=True), text=text,
        meaning="One may copy the other, and the consensus counts them as two.",
        cure="Count them as one: leave one of the two out and audit again.",
    )  # fmt: skip


def _name(consensus: Consensus, fit: QuestionFit, pairs: Pairs, p: int) -> str:
    one, other = (annotator_name(consensus, fit, int(a)) for a in (pairs.one_p[p], pairs.other_p[p]))
    return f"{one} · {other}"
