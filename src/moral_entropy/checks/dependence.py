"""Who errs together? The errors of every two annotators on items they share, given the consensus, and given gold.

With the item's state z summed out (its label; under the mixed model its place between labels), the residual of two
votes is the expected product of their errors:

    r = Σ_z p_z Σ_v (1[a voted v] - T_azv) (1[b voted v] - T_bzv),

T_azv being the probability that a votes v on an item in state z. Its mean over shared items is the agreement beyond
what independence given the state predicts. Its variance is the one that votes drawn again would have; the part of it
that the fit has absorbed is not taken out, which makes the test cautious. Identical annotators are found before the fit
(`model/copies`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from moral_entropy.checks.gold import items_with_gold
from moral_entropy.findings import Finding, level_of, listed
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.findings import annotator_name, finding_of
from moral_entropy.model.patterns import Patterns, collapse
from moral_entropy.model.posterior import state_posterior
from moral_entropy.votes.table import Floats, Ints

LEAST_ITEMS = 20
"""Items a pair must share to be tested."""

MOST_PAIRS = 4_000_000
"""Pairs of votes that are looked at, over the number of states; of more, evenly spaced items."""

FALSE_SHARE = 0.005
"""Expected share of false ones among the pairs named (Benjamini and Hochberg)."""

NOTICEABLE = 0.02
"""Excess agreement below which a dependence, however sure, changes little."""

SURELY = 3.0
"""Standard errors from which the pooled excess counts."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every pair of annotators who share items. Axis: **p** pair.

    Parameters
    ----------
    one_p, other_p
        The two annotators.
    items_p
        Items they share.
    agreement_p, excess_p
        Share of those on which they agree, and by how much that is more than independence predicts.
    error_p, chance_p
        Standard error of the excess, and its two-sided probability under independence.
    scale_p
        What the excess would be if the errors of the two were one and the same.
    n_items, pooled_error
        Items with two votes or more, and the standard error of the excess of all pairs together.
    """

    one_p: Ints
    other_p: Ints
    items_p: Floats
    agreement_p: Floats
    excess_p: Floats
    error_p: Floats
    chance_p: Floats
    scale_p: Floats
    n_items: float
    pooled_error: float

    def pooled(self, value_p: Floats) -> float:
        """Average a figure over all pairs of votes."""
        return float(np.average(value_p, weights=self.items_p))

    @property
    def correlation(self) -> float:
        """The excess of all pairs as a correlation of errors."""
        return self.pooled(self.excess_p) / max(self.pooled(self.scale_p), 1e-300)


def weigh_pairs(rows: Patterns, posterior_rz: Floats, vote_azv: Floats, *, anonymous: bool = False) -> Pairs | None:
    """Compare the agreement of every two annotators with what independence given the state predicts.

    Parameters
    ----------
    rows
        Rows of votes.
    posterior_rz
        Probabilities of every row's states.
    vote_azv
        How annotators vote on an item in each state.
    anonymous
        Whether all votes share one annotator, so that a pair may be of the same.

    Returns
    -------
    Pairs | None
        None without any two votes on one item.
    """
    n_labels, (n_annotators, n_states, _) = rows.n_labels, vote_azv.shape
    row_e, first_e, second_e = _pairs_of_votes(rows)
    (a_e, u_e), (b_e, v_e) = np.divmod(first_e, n_labels), np.divmod(second_e, n_labels)
    kept_e = (a_e != b_e) | anonymous
    if not kept_e.any():
        return None
    row_e, a_e, u_e, b_e, v_e = (values[kept_e].astype(np.int64) for values in (row_e, a_e, u_e, b_e, v_e))
    residual_e, scale_e = np.zeros(len(row_e)), np.zeros(len(row_e))
    # What the item's other votes say of its state, and so how the two would vote if they voted again.
    others_ez = np.empty((len(row_e), n_states))
    both_ez = np.einsum("ezv,ezv->ez", vote_azv[a_e], vote_azv[b_e])
    spread_az = np.sqrt((1.0 - (vote_azv**2).sum(axis=-1)).clip(min=0.0))
    for z in range(n_states):
        p_e = posterior_rz[row_e, z]
        residual_e += p_e * ((u_e == v_e) - vote_azv[b_e, z, u_e] - vote_azv[a_e, z, v_e] + both_ez[:, z])
        scale_e += p_e * spread_az[a_e, z] * spread_az[b_e, z]
        others_ez[:, z] = p_e / np.maximum(vote_azv[a_e, z, u_e] * vote_azv[b_e, z, v_e], 1e-300)
    others_ez /= others_ez.sum(axis=1, keepdims=True)
    second_moment_e, third_moment_e = np.zeros((2, len(row_e)))
    for u in range(n_labels):
        for v in range(n_labels):
            chance_ez = others_ez * vote_azv[a_e, :, u] * vote_azv[b_e, :, v]
            chance_e = np.maximum(chance_ez.sum(axis=1), 1e-300)
            sum_e = (chance_ez * (float(u == v) - vote_azv[b_e, :, u] - vote_azv[a_e, :, v] + both_ez)).sum(axis=1)
            second_moment_e += sum_e**2 / chance_e
            third_moment_e += sum_e**3 / chance_e**2
    key_p, pair_e = np.unique(a_e * np.int64(n_annotators) + b_e, return_inverse=True)
    weight_e = rows.weight_r[row_e]

    def total(value_e: Floats) -> Floats:
        return np.bincount(pair_e, weights=weight_e * value_e, minlength=len(key_p)).astype(np.float64)

    items_p, error_p = total(np.ones(len(row_e))), np.sqrt(np.maximum(total(second_moment_e), 1e-300))
    # Residuals of one item depend on each other: those of its pairs are added before they are squared.
    sum_r = np.bincount(row_e, weights=residual_e, minlength=rows.n_rows)
    excess_p, skew_p = total(residual_e), (total(third_moment_e) / error_p**3).clip(-2.0, 2.0)
    return Pairs(
        key_p // n_annotators, key_p % n_annotators, items_p,
        agreement_p=total((u_e == v_e).astype(np.float64)) / items_p,
        excess_p=excess_p / items_p,
        error_p=error_p / items_p,
        chance_p=_two_sided(excess_p / error_p, skew_p),
        scale_p=total(scale_e) / items_p,
        n_items=float(rows.weight_r[np.unique(row_e)].sum()),
        pooled_error=float(np.sqrt(rows.weight_r @ sum_r**2) / items_p.sum()),
    )  # fmt: skip


def _pairs_of_votes(rows: Patterns) -> tuple[Ints, Ints, Ints]:
    """Pair up the votes of every row: its row, and the codes of the two votes."""
    votes_r = np.diff(rows.start_r)
    parts = [(np.empty(0, np.int64),) * 3]
    for m in np.unique(votes_r[votes_r >= 2]):
        row_r = np.flatnonzero((votes_r == m) & (rows.weight_r > 0))
        first_at, second_at = np.triu_indices(m, 1)
        firsts, seconds = ((rows.start_r[row_r, None] + at).ravel() for at in (first_at, second_at))
        parts.append((np.repeat(row_r, len(first_at)), rows.code_v[firsts], rows.code_v[seconds]))
    row_e, first_e, second_e = (np.concatenate(values) for values in zip(*parts, strict=True))
    return row_e, first_e, second_e


def _two_sided(z_p: Floats, skew_p: Floats) -> Floats:
    """Compute two-sided chances; rare labels make residuals skewed, and a normal tail would raise false alarms."""
    # Loaded here, as no audit needs it.
    from scipy.stats import pearson3

    above_p = pearson3.sf(z_p, skew_p)
    return np.asarray(np.minimum(2.0 * np.minimum(above_p, 1.0 - above_p), 1.0))


def dependent_pairs(pairs: Pairs) -> Ints:
    """Return the pairs whose votes are surely and noticeably dependent, surest first."""
    from scipy.stats import false_discovery_control

    shared_p = np.flatnonzero(pairs.items_p >= LEAST_ITEMS)
    if not len(shared_p):
        return shared_p
    adjusted_p = false_discovery_control(pairs.chance_p[shared_p], method="bh")
    sure_p = shared_p[(adjusted_p <= FALSE_SHARE) & (np.abs(pairs.excess_p[shared_p]) >= NOTICEABLE)]
    return np.asarray(sure_p[np.argsort(-np.abs(pairs.excess_p / pairs.error_p)[sure_p], kind="stable")])


def check_dependence(consensus: Consensus) -> list[Finding]:
    """Test whether votes are independent given the label, and name the pairs of annotators whose are not.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=400, n_annotators=6, votes_per_item=4, seed=3).votes
    >>> findings = check_dependence(me.fit(votes, draws=0))
    >>> [(finding.metric, finding.n, finding.level) for finding in findings]
    [('excess_agreement', 400, 'info'), ('dependent_pairs', 15, 'info'), ('errors_together', 400, 'info')]
    """
    return [finding for fit in consensus.fits for finding in _examined(consensus, fit)]


def _examined(consensus: Consensus, fit: QuestionFit) -> Iterator[Finding]:
    anonymous, rows = consensus.votes.anonymous, fit.patterns
    posterior_rz = state_posterior(fit.patterns, fit.states, fit.mode, slice(0, fit.patterns.n_rows))
    n_pairs = float((np.diff(rows.start_r).astype(np.float64) ** 2).sum()) / 2 * fit.states.n_states
    if (step := int(n_pairs // MOST_PAIRS) + 1) > 1:
        rows, posterior_rz = rows.take(np.arange(0, rows.n_rows, step)), posterior_rz[::step]
    pairs = weigh_pairs(rows, posterior_rz, fit.states.votes_azv(fit.confusion_akv), anonymous=anonymous)
    if pairs is None:
        text = "no item has votes of two annotators, so whether votes are independent cannot be told."
        yield finding_of(fit, "dependence", "dependent_pairs", 0, n=0, text=text)
        return
    excess, half = pairs.pooled(pairs.excess_p), NormalDist().inv_cdf(0.5 + consensus.interval / 2) * pairs.pooled_error
    yield finding_of(
        fit, "dependence", "excess_agreement", excess, low=excess - half, high=excess + half, n=round(pairs.n_items),
        level=level_of(abs(excess) >= max(NOTICEABLE, SURELY * pairs.pooled_error)),
        text=(
            f"two votes on an item agree in {pairs.pooled(pairs.agreement_p):.1%} of the cases, {abs(excess):.1%} "
            f"{'less' if excess < 0 else 'more'} than independence given the label allows: errors correlate with "
            f"{pairs.correlation:z.2f}."
        ),
        meaning="Agreement counts for more than it proves, and p is too sure.",
        remedy="Check labels by hand or against gold, and ask annotators, or models, of another kind.",
    )  # fmt: skip
    if not anonymous:
        yield from _dependent(consensus, fit, pairs)
        yield from _given_gold(consensus, fit)


def _dependent(consensus: Consensus, fit: QuestionFit, pairs: Pairs) -> Iterator[Finding]:
    pairs_named = dependent_pairs(pairs).tolist()
    names = [_name(consensus, fit, pairs, p) for p in pairs_named]
    n = int((pairs.items_p >= LEAST_ITEMS).sum())
    if not names:
        yield finding_of(fit, "dependence", "dependent_pairs", 0, n=n)
        return
    agreement, excess = (float(value_p[pairs_named[0]]) for value_p in (pairs.agreement_p, pairs.excess_p))
    yield finding_of(
        fit, "dependence", "dependent_pairs", len(names), n=n, level="doubt",
        subject=names[0],
        text=(
            f"{len(names):,} of {n:,} pairs of annotators do not vote independently given the label ({listed(names)}); "
            f"the surest agree on {agreement:.1%} of their items, where {agreement - excess:z.1%} was to be expected."
        ),
        meaning=(
            "They copy, confer or share a blind spot, or their items are of another kind than the rest; p takes their "
            "agreement for evidence."
        ),
        remedy="Ask them; count copies as one (--merge A+B); fit kinds of items apart (--fit-by).",
    )  # fmt: skip


def _given_gold(consensus: Consensus, fit: QuestionFit) -> Iterator[Finding]:
    """Say how far errors go together on items whose label is known; hard items make everybody's do."""
    item_i = items_with_gold(fit)
    pairs = pairs_given_gold(collapse(fit.ballot, whole=True).take(item_i), fit.ballot.gold_i[item_i])
    if pairs is None or not (pairs.items_p >= LEAST_ITEMS).any():
        return
    correlation_p = np.where(pairs.items_p >= LEAST_ITEMS, pairs.excess_p / np.maximum(pairs.scale_p, 1e-300), -np.inf)
    strongest = int(correlation_p.argmax())
    name = _name(consensus, fit, pairs, strongest)
    text = (
        f"given the gold labels, two annotators' errors correlate with {pairs.correlation:z.2f}; most of all "
        f"{correlation_p[strongest]:z.2f} ({name})."
    )
    yield finding_of(fit, "dependence", "errors_together", pairs.correlation, subject=name, n=len(item_i), text=text)


def pairs_given_gold(rows: Patterns, gold_r: Ints) -> Pairs | None:
    """Compare the errors of every two annotators on rows whose labels are known, with the error rates found there."""
    count_akv = np.full((rows.n_annotators, rows.n_labels, rows.n_labels), 0.5)
    annotator_v, label_v = np.divmod(rows.code_v, rows.n_labels)
    row_v = np.repeat(np.arange(rows.n_rows), np.diff(rows.start_r))
    np.add.at(count_akv, (annotator_v, gold_r[row_v], label_v), rows.weight_r[row_v])
    return weigh_pairs(rows, np.eye(rows.n_labels)[gold_r], count_akv / count_akv.sum(axis=-1, keepdims=True))


def _name(consensus: Consensus, fit: QuestionFit, pairs: Pairs, p: int) -> str:
    return " · ".join(annotator_name(consensus, fit, int(a)) for a in (pairs.one_p[p], pairs.other_p[p]))
