"""Figures of a run: what votes alone say of its labels, the audit of rules pooled, and what `check` can put limits on.

In `run_figures` `error` is the share of wrong labels by spot check or gold and `accuracy` the rest; `uncertain` the
share of uncertain labels, `votes_per_item` their mean, `alpha` Krippendorff's (the lowest question's). With `care/`
before `uncertain` and `alpha` they are one question's, with `BLM:` before that one domain's. `annotators.below_chance`
is the share of annotators whose votes are surely worse than guessing.

Of one annotator there is `annotator:ann.accuracy`: the share of the votes that are the consensus label, of all
questions, with `@gold` those that are gold's; with `care/` before it, one question's.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.model.consensus import Consensus, surely_below_chance
from moral_entropy.model.entropy import MOST_WRONG
from moral_entropy.model.findings import VERY_THIN
from moral_entropy.model.fit import log_posterior
from moral_entropy.model.posterior import score
from moral_entropy.model.search import maximise, share_start
from moral_entropy.names import ALL
from moral_entropy.rules.advice import accuracy_rows, with_leading_rates, wrong_labels
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.runs.run import Run
from moral_entropy.schemas import SCHEMAS
from moral_entropy.ties import DECIMALS, TIE, labels_of

KEYS = ["question", "item"]

ORDER = ("unknown", "not yet", "ship soft", "ship")
"""Verdicts, from worst to best."""

ANNOTATOR = "annotator:"

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

    The range of wrong labels holds if annotators err independently of each other. It runs from what the paper's model
    expects of the same labels, which takes votes at their word, to what the published p admits, which does not; it is
    wider by a quarter either way, and by what chance may add (90%). On simulated votes, and on twins of the moral
    corpora, the true share lay in it in at least nine of ten sets.

    Returns
    -------
    list
        Per fit: majority_differs, the share of items whose label is not among the most voted, of levels not the median;
        labels_nobody_chose, how many items have a label that no vote supports; wrong_low and wrong_high, the range of
        wrong labels: None for fewer than `FEWEST_ITEMS`, and below `VERY_THIN` votes per item, where nothing tells
        errors from truth.
    """
    facts = []
    for fit in consensus.fits:
        ballot, counts_ik, published = fit.ballot, fit.ballot.counts_ik, (np.arange(fit.ballot.n_items), fit.label_i)
        top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
        if ballot.levels is not None:
            share_ik = counts_ik / np.maximum(ballot.votes_i, 1)[:, None]
            top_ik = np.arange(ballot.n_labels) == labels_of(share_ik, None, ordered=True)[:, None]
        weight_i, n_voted = ballot.count_i * ((ballot.votes_i > 0) & ~fit.known_i), np.count_nonzero(ballot.votes_i)
        differs = float(weight_i @ ~top_ik[published]) / max(float(weight_i.sum()), 1.0)
        facts.append({"majority_differs": differs, "labels_nobody_chose": round(float(weight_i @ ~fit.supported_i)),
                      "wrong_low": None, "wrong_high": None})  # fmt: skip
        if ballot.count_i[ballot.votes_i > 0].sum() < FEWEST_ITEMS or ballot.n_votes < VERY_THIN * n_voted:
            continue
        # The mode of the paper's model, which begins at the vote shares.
        options = replace(consensus.options, model="paper")
        posterior = log_posterior(consensus.votes, ballot, fit.patterns, consensus.priors, options)
        sample = posterior.sample(SAMPLE_VOTES)
        mode = maximise(sample, share_start(sample), tolerance=NEAR_ENOUGH, max_passes=MAX_PASSES).at
        paper_ik = fit.patterns.spread(score(fit.patterns, posterior.states, mode, options.threads)[0])
        paper_i, weight_i = 1.0 - paper_ik[published], ballot.count_i / ballot.count_i.sum()
        ends = float(weight_i @ paper_i), float(weight_i @ (1.0 - fit.p_ik[published]))
        chance = NORMAL_90 * math.sqrt(float(weight_i**2 @ (paper_i * (1.0 - paper_i))))
        low, high = max(min(ends) / MARGIN - chance, 0.0), min(max(ends) * MARGIN + chance, 1.0)
        facts[-1] |= {"wrong_low": low, "wrong_high": high}
    return facts


def wrong_by(run: Run) -> pl.Expr:
    """Return how probably an item's label is wrong by p, in the table of items."""
    two = pl.col("question").is_in([question.name for question in run.questions if question.positive is not None])
    return pl.when(two & (pl.col("p") < 0.5)).then("p").otherwise(1.0 - pl.col("p"))


def mean_over_items(run: Run, value: pl.Expr) -> float:
    """Average a value of the table of items over all items."""
    mean = run.scan("items").select((value * pl.col("count")).sum() / pl.col("count").sum())
    return float(mean.collect(engine="streaming").item() or 0.0)


def pooled_rates(run: Run, reference: str = "consensus") -> dict[tuple[str, str], dict[str, Any]]:
    """Return figures of rules pooled over questions and domains, by rule and metric.

    With more than two labels `disagreement` is about the label itself: an item labelled wrong differs on two of its
    labels when each is graded against the rest.
    """
    frame = with_leading_rates(run.table("audit"), expected=run.model == "mixed").filter(
        reference=reference, domain=ALL
    )
    pooled = frame.filter(pl.col("metric") != "disagreement", question=ALL, label=ALL).drop_nulls("value").to_dicts()
    wrong = wrong_labels(frame).drop_nulls("value").to_dicts()
    rows = [row for row in (*pooled, *wrong, *accuracy_rows(frame)) if row["question"] == ALL]
    return {(row["rule"], row["metric"]): row for row in rows}


def pooled_rules(run: Run, reference: str | None = None) -> list[dict[str, Any]]:
    """Return the rules, pooled over questions and domains: names (of rules that label alike), reference, figures.

    They are held against gold where there is any, else against the consensus, unless a reference is named. With two
    labels the figures are fpr, fnr, fdr, for, disagreement and accuracy; with more, the last two alone, of those rules
    that name one label. The consensus itself is among them where they are held against gold.
    """
    reference = reference or ("gold" if "gold" in run.table("audit")["reference"] else "consensus")
    rates, metrics = pooled_rates(run, reference), METRICS
    if run.model == "mixed" and reference == "consensus":
        metrics += tuple(f"thresholded_{name}" for name in METRICS)
    metrics = () if any(question.positive is None for question in run.questions) else metrics
    like = pl.coalesce(pl.col("same_as").replace("", None), "rule").str.join("\n")
    alike = run.table("audit_rules").group_by("rule", maintain_order=True).agg(like=like)
    groups = alike.group_by("like", maintain_order=True).agg("rule")["rule"].to_list()
    matches = []
    for group in [*groups, *([["consensus"]] if reference == "gold" else [])]:
        # With more than two labels a rule that names one label stands for those that label alike.
        names = sorted(group, key=lambda name: (name, "accuracy") not in rates)
        if (names[0], "accuracy") in rates:
            rows = {metric: rates.get((names[0], metric)) for metric in (*metrics, "disagreement", "accuracy")}
            figures = {metric: row and {name: row[name] for name in ("value", "low", "high", "n")}
                       for metric, row in rows.items()}  # fmt: skip
            matches.append({"names": names, "reference": reference, "figures": figures})
    return matches


# --- What `check` can put limits on -----------------------------------------------------------------------------------


def run_figures(run: Run, *, annotators: bool = True, domains: bool = True) -> dict[str, dict[str, Any]]:
    """Return the figures by name: value, low, high, n.

    Parameters
    ----------
    run
        The run.
    annotators, domains
        Whether to return those of single annotators and of single domains, of which there may be many.
    """
    count, is_uncertain = pl.col("count"), wrong_by(run) > MOST_WRONG + TIE
    cells = run.scan("items").group_by("domain", "question").agg(count.sum(), value=(count * is_uncertain).sum())
    sums, total = cells.sort("domain", "question").collect(engine="streaming"), pl.col("value", "count").sum()
    figures = {}
    for scope in ((), ("question",), *([("domain",), ("domain", "question")] if domains else [])):
        rows = sums.drop_nulls(scope).group_by(scope, maintain_order=True).agg(total) if scope else sums.select(total)
        for row in rows.iter_rows(named=True):
            figures[_name("uncertain", row)] = _row(row["value"] / max(row["count"], 1.0), n=round(row["count"]))
    figures["votes_per_item"] = _row(mean_over_items(run, pl.col("n_votes")), n=figures["uncertain"]["n"])
    alphas = run.table("agreement").filter((pl.col("domain") == ALL) | domains, statistic="krippendorff_alpha")
    lowest_first = pl.col("domain") != ALL, pl.col("value").round(DECIMALS)
    alphas = alphas.sort(*lowest_first, nulls_last=True, maintain_order=True).with_columns(pl.col("n").fill_null(0))
    by_place = {_name("alpha", row): {name: row[name] for name in _row(None)} for row in alphas.to_dicts()}
    figures |= {"alpha": next(iter(by_place.values()), _row(None)), **by_place}
    # Without checked labels there is no value, and no limit holds.
    error, figures["error"], figures["accuracy"] = run.verdict.error, _row(None), _row(None)
    if error is not None:
        figures["error"] = _row(error.value, error.low, error.high, error.checked)
        figures["accuracy"] = _row(1.0 - error.value, 1.0 - error.high, 1.0 - error.low, error.checked)
    people = run.table("annotator_summary").drop_nulls("below_chance")
    surely = pl.Series(surely_below_chance(people["below_chance"].to_numpy(), people["n_votes"].to_numpy()))
    n_people, n_worse = people["annotator"].n_unique(), people.filter(surely)["annotator"].n_unique()
    figures["annotators.below_chance"] = _row(n_worse / n_people if n_people else None, n=n_people)
    consensus = run.scan("items").select(*KEYS, "count", truth="label")
    for suffix, labels in {"": consensus, "@gold": None}.items() if annotators else ():
        for question, annotator, right, n, low, high in annotator_shares(run, labels).iter_rows():
            name = _name(f"{ANNOTATOR}{annotator}.accuracy{suffix}", {"question": question})
            figures[name] = _row(right / n, low, high, n)
    return figures


def _row(value: float | None, low: float | None = None, high: float | None = None, n: int = 0) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": n}


def _name(figure: str, place: dict[str, Any]) -> str:
    """Name a figure of a place: `BLM:care/alpha`, where BLM is a domain and care a question."""
    domain, question = place.get("domain", ALL), place.get("question", "")
    return "".join([f"{domain}:" * (domain != ALL), f"{question}/" * bool(question), figure])


def annotator_shares(run: Run, labels: pl.LazyFrame | None) -> pl.DataFrame:
    """Count every annotator's votes that are right, by question, and over all (question "").

    Parameters
    ----------
    run
        The run.
    labels
        What is right: question, item, truth, and count, for how many items each stands. None for gold, by which the
        table of annotators has counted.

    Returns
    -------
    pl.DataFrame
        question, annotator, right, n, and the exact interval of the share of right ones: low, high.
    """
    annotator = pl.col("annotator").cast(pl.String)
    if labels is None:
        right = pl.col("gold_accuracy") * pl.col("gold_votes")
        counts = run.table("annotator_summary").lazy().select("question", annotator, right=right, n="gold_votes")
    else:
        votes = run.scan("votes") if run.has("votes") else pl.LazyFrame(schema=SCHEMAS["votes"])
        right = pl.col("count") * (pl.col("label") == pl.col("truth"))
        people = votes.join(labels, on=KEYS, how="inner").group_by("question", annotator)
        counts = people.agg(right=right.sum(), n=pl.col("count").sum()).sort("question", "annotator")
    counts = counts.drop_nulls().filter(pl.col("n") > 0).with_columns(pl.col("n").round().cast(pl.Int64))
    by_question = counts.collect(engine="streaming")
    pooled = by_question.group_by("annotator", maintain_order=True).agg(pl.col("right", "n").sum(), question=pl.lit(""))
    frame = pl.concat([by_question, pooled.select(by_question.columns)])
    low, high = exact_interval(frame["right"].to_numpy(), frame["n"].cast(pl.Float64).to_numpy(), run.interval)
    return frame.with_columns(low=low, high=high)
