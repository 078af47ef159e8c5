"""Do the probabilities agree with gold labels? The log loss of the published p beside that of vote shares.

Items whose gold was evidence in the fit are left out. The audit of rules has the other scores.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from moral_entropy.checks.scores import log_losses, mean_interval, smoothed_share
from moral_entropy.findings import Finding, Level, level_of
from moral_entropy.model.consensus import Consensus
from moral_entropy.model.findings import finding_of
from moral_entropy.names import ALL
from moral_entropy.rules.advice import wrong_labels
from moral_entropy.votes.table import UNKNOWN

FEWEST = 5
"""Items with gold below which nothing is scored."""

POORLY_CALIBRATED, BADLY_CALIBRATED = 0.1, 0.2
"""Expected calibration error of p against gold: worth a doubt, and too much."""

BEHIND = 0.02
"""Share of gold labels that the consensus may miss beyond what the plain vote misses."""


def check_gold(consensus: Consensus) -> list[Finding]:
    """Score the published p of every fit against gold, beside the vote share; nothing without gold.

    Examples
    --------
    >>> from moral_entropy import fit, simulate_votes
    >>> votes = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5).votes
    >>> check_gold(fit(votes, draws=0))[-1].level
    'good'
    """
    findings = []
    for fit in consensus.fits:
        # Not those whose gold the fit has seen.
        unseen_i = fit.patterns.clamp_r[fit.patterns.row_i] == UNKNOWN
        item_i = np.flatnonzero(unseen_i & (fit.ballot.gold_i != UNKNOWN))
        if len(item_i) < FEWEST:
            continue
        gold_i, counts_ik = fit.ballot.gold_i[item_i], fit.ballot.counts_ik[item_i]
        # A label that rounding made impossible is not called so.
        own_i, share_i = (
            log_losses(fit.p_ik[item_i].clip(min=1e-16), gold_i),
            log_losses(smoothed_share(counts_ik), gold_i),
        )
        mean, low, high = mean_interval(share_i - own_i, np.arange(len(own_i)))
        level: Level = "doubt" if high < 0.0 else "good" if low > 0.0 else "info"
        findings.append(finding_of(
            fit, "gold", "gain_over_vote_share", mean, low=low, high=high, n=len(own_i), level=level,
            text=(
                f"against gold the published p loses {own_i.mean():.2f} nats per item, the smoothed vote share "
                f"{share_i.mean():.2f}."
            ),
            meaning="Where it loses more, the consensus is surer than it is right.",
            remedy="Do not read p as a frequency: rank by it, or publish vote shares instead.",
        ))  # fmt: skip
    return findings


def gold_findings(audit: pl.DataFrame) -> list[Finding]:
    """Hold the consensus of a run against gold, as its audit has graded it; nothing without gold.

    Parameters
    ----------
    audit
        Rows of audit.parquet.
    """
    pooled = audit.filter(reference="gold", question=ALL, domain=ALL).drop_nulls("value")
    findings = [
        Finding(
            "gold", "p_off", ece, level=level_of(ece > POORLY_CALIBRATED, bad=ece > BADLY_CALIBRATED),
            text=(
                f"the probability p is off by {ece:.2f} on average against the gold labels (expected calibration "
                "error)."
            ),
            meaning=(
                "Where p is too sure, annotators share mistakes that votes cannot show; where it is too careful, votes "
                "say more than p does."
            ),
            remedy=(
                "Do not read p as a frequency: rank by it, or take p_calibrated of items.parquet, which has learnt "
                "from the gold of other items how sure to be."
            ),
        )
        for ece in pooled.filter(rule="consensus", metric="ece")["value"].to_list()[:1]
    ]  # fmt: skip
    rows = {row["rule"]: row for row in wrong_labels(audit.filter(reference="gold", domain=ALL)).to_dicts()
            if row["question"] == ALL and row["value"] is not None}  # fmt: skip
    consensus, plain = rows.get("consensus"), rows.get("plurality", rows.get("majority"))
    if consensus is None or plain is None:
        return findings
    gap, surely = consensus["value"] - plain["value"], consensus["low"] is None or consensus["low"] > plain["value"]
    missed = Finding(
        "gold", "missed_more_than_plain_vote", gap, level=level_of(gap > BEHIND, bad=surely),
        text=f"the consensus misses {consensus['value']:.1%} of the gold labels, the plain vote {plain['value']:.1%}.",
        meaning=(
            "Where it misses more, annotators err together or under another guideline than the gold labels, and the "
            "model takes their agreement for accuracy."
        ),
        remedy="Trust gold where you have it; audit groups of annotators on their own, or publish vote shares instead.",
    )  # fmt: skip
    return [*findings, missed]
