"""What votes alone say: how many labels are likely wrong, and the audit of rules, pooled over questions and domains."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.findings import VERY_THIN
from moral_entropy.model.fit import log_posterior
from moral_entropy.model.posterior import score
from moral_entropy.model.search import maximise, share_start
from moral_entropy.names import ALL
from moral_entropy.rules.advice import accuracy_rows, with_leading_rates, wrong_rows
from moral_entropy.runs.run import Run
from moral_entropy.ties import labels_of, tie_key
from moral_entropy.votes.table import Floats

METRICS: tuple[str, ...] = ("fpr", "fnr", "fdr", "for")
"""The rates of a rule on two labels."""


NORMAL_90 = 1.645
"""Standard errors on either side of a 90% interval."""

MARGIN = 1.25
"""Wider by this factor: without it the range held the truth in 75 to 90% of the questions of MFTC's twin."""

FEWEST_ITEMS = 10
"""Items with votes below which no range of wrong labels is told: it would hold almost every share."""

SAMPLE_VOTES, NEAR_ENOUGH, MAX_PASSES = 2_000_000, 1e-2, 300
"""Votes that the paper's model is fitted to at most, and when its search ends: only a mean is wanted."""


def label_facts(consensus: Consensus) -> list[dict[str, Any]]:
    """Return what the first screen says of the labels of every fit.

    Returns
    -------
    list
        Per fit: majority_differs, the share of items whose label is not among the most voted, of levels not the median;
        labels_nobody_chose, how many items have a label that no vote supports; wrong_low and wrong_high, see
        `wrong_if_independent`.
    """
    facts = []
    for fit in consensus.fits:
        ballot, counts_ik = fit.ballot, fit.ballot.counts_ik
        top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
        if ballot.levels is not None:
            share_ik = counts_ik / np.maximum(ballot.votes_i, 1)[:, None]
            top_ik = np.arange(ballot.n_labels) == labels_of(share_ik, None, ordered=True)[:, None]
        voted_i = (ballot.votes_i > 0) & ~fit.known_i
        weight_i = ballot.count_i * voted_i
        same_i = top_ik[np.arange(ballot.n_items), fit.label_i]
        differs = float(weight_i @ ~same_i) / max(float(weight_i.sum()), 1.0)
        low, high = wrong_if_independent(consensus, fit) or (None, None)
        facts.append({"majority_differs": differs, "labels_nobody_chose": round(float(weight_i @ ~fit.supported_i)),
                      "wrong_low": low, "wrong_high": high})  # fmt: skip
    return facts


def wrong_if_independent(consensus: Consensus, fit: QuestionFit) -> tuple[float, float] | None:
    """Return between which shares of the labels are wrong if annotators err independently of each other.

    The range runs from what the paper's model expects of the same labels, which takes votes at their word, to what the
    published p admits, which does not; it is wider by a quarter either way, and by what chance may add (90%). On
    simulated votes, and on twins of the moral corpora, the true share lay in it in at least nine of ten sets.

    Returns
    -------
    tuple
        The lower and the upper end; None for fewer than `FEWEST_ITEMS`, and below `VERY_THIN` votes per item, where
        nothing tells errors from truth.
    """
    ballot, n_voted = fit.ballot, float(fit.ballot.count_i[fit.ballot.votes_i > 0].sum())
    if n_voted < FEWEST_ITEMS or ballot.n_votes < VERY_THIN * np.count_nonzero(ballot.votes_i):
        return None
    published = np.arange(ballot.n_items), fit.label_i
    paper_i, own_i = 1.0 - _paper_p(consensus, fit)[published], 1.0 - fit.p_ik[published]
    weight_i = ballot.count_i / ballot.count_i.sum()
    ends = float(weight_i @ paper_i), float(weight_i @ own_i)
    chance = NORMAL_90 * math.sqrt(float(weight_i**2 @ (paper_i * (1.0 - paper_i))))
    return max(min(ends) / MARGIN - chance, 0.0), min(max(ends) * MARGIN + chance, 1.0)


def _paper_p(consensus: Consensus, fit: QuestionFit) -> Floats:
    """Compute label probabilities at the mode of the paper's model, which begins at the vote shares."""
    patterns, options = fit.patterns, replace(consensus.options, model="paper")
    posterior = log_posterior(consensus.votes, fit.ballot, patterns, consensus.priors, options)
    sample = posterior.sample(SAMPLE_VOTES)
    mode = maximise(sample, share_start(sample), tolerance=NEAR_ENOUGH, max_passes=MAX_PASSES).at
    return patterns.spread(score(patterns, posterior.states, mode, options.threads)[0])


def wrong_by(run: Run, column: str) -> pl.Expr:
    """Return how probably an item's label is wrong by one of its probabilities, in the table of items."""
    two = pl.col("question").is_in([question.name for question in run.questions if question.positive is not None])
    p = pl.col(column)
    return pl.when(two).then(pl.min_horizontal(p, 1.0 - p)).otherwise(1.0 - p)


def mean_over_items(run: Run, value: pl.Expr) -> float:
    """Average a value of the table of items over all items."""
    mean = run.scan("items").select((value * pl.col("count")).sum() / pl.col("count").sum())
    return float(mean.collect(engine="streaming").item() or 0.0)


def leading_rates(run: Run) -> pl.DataFrame:
    """Return the audit of rules with the rates that lead by their plain names."""
    return with_leading_rates(run.rules, expected=run.model == "mixed")


def pooled_rates(run: Run, reference: str = "consensus") -> dict[tuple[str, str], dict[str, Any]]:
    """Return figures of rules pooled over questions and domains, by rule and metric.

    With more than two labels `disagreement` is about the label itself: an item labelled wrong differs on two of its
    labels when each is graded against the rest.
    """
    frame = leading_rates(run).filter(reference=reference, domain=ALL)
    pooled = frame.filter(pl.col("metric") != "disagreement", question=ALL, label=ALL).drop_nulls("value").to_dicts()
    wrong = [row for row in wrong_rows(frame) if row["value"] is not None]
    rows = [row for row in (*pooled, *wrong, *accuracy_rows(frame)) if row["question"] == ALL]
    return {(row["rule"], row["metric"]): row for row in rows}


def best_reference(run: Run) -> str:
    """Name what the rules of a run are held against first: gold where there is any, else the consensus."""
    return "gold" if "gold" in run.rules["reference"] else "consensus"


def rule_groups(run: Run) -> list[list[str]]:
    """Group the audited rules: those of a group give every item the same label."""
    groups: dict[tuple[str, ...], list[str]] = {}
    rows = run.table("audit_rules").select("rule", "same_as")
    for (rule,), rows_of_rule in rows.group_by("rule", maintain_order=True):
        like = tuple(equal_to or str(rule) for equal_to in rows_of_rule["same_as"].to_list())
        groups.setdefault(like, []).append(str(rule))
    return list(groups.values())


def pooled_rules(run: Run, reference: str | None = None) -> list[dict[str, Any]]:
    """Return the rules, pooled over questions and domains: names (of rules that label alike), reference, figures.

    With two labels the figures are fpr, fnr, fdr, for, disagreement and accuracy; with more, the last two alone, of
    those rules that name one label. The consensus itself is among them where they are held against gold.
    """
    reference = reference or best_reference(run)
    rates, metrics = pooled_rates(run, reference), METRICS
    if any(question.positive is None for question in run.questions):
        metrics = ()
    elif run.model == "mixed" and reference == "consensus":
        metrics += tuple(f"thresholded_{name}" for name in METRICS)
    matches = []
    for group in [*rule_groups(run), *([["consensus"]] if reference == "gold" else [])]:
        # With more than two labels a rule that names one label stands for those that label alike.
        names = sorted(group, key=lambda name: (name, "accuracy") not in rates)
        if (names[0], "accuracy") in rates:
            rows = {metric: rates.get((names[0], metric)) for metric in (*metrics, "disagreement", "accuracy")}
            figures = {metric: row and {name: row[name] for name in ("value", "low", "high", "n")}
                       for metric, row in rows.items()}  # fmt: skip
            matches.append({"names": names, "reference": reference, "figures": figures})
    return matches


def ends_in_percent(low: float, high: float) -> tuple[str, str]:
    """Show the ends of an interval of a share in per cent, rounded outward.

    Examples
    --------
    >>> ends_in_percent(0.00951, 0.0311), ends_in_percent(0.209, 0.221)
    (('0.9', '3.2'), ('20', '23'))
    """
    digits = 1 if high < 0.0995 else 0
    units = math.floor(tie_key(low * 100 * 10**digits)), math.ceil(tie_key(high * 100 * 10**digits))
    lower, upper = (f"{max(unit, 0) / 10**digits:z.{digits}f}" for unit in units)
    return lower, upper
