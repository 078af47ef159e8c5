"""Our figures: everything the paper reports, computed from the runs of the corpora.

Takes runs, tables of graded rules and the comparison of targets; returns one table in the columns of `SCHEMA`, and the
tables about annotators and items. Also makes of the five questions a sixth: does a text carry any foundation at all?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.corpora.published import ANY_FOUNDATION, LARGEST, PLACE
from moral_entropy.names import ALL, MEAN
from moral_entropy.rules.grade import RATES
from moral_entropy.runs.run import Run
from moral_entropy.votes.table import UNKNOWN, Votes, ballot_from_codes

RULES = ("any", "majority", "two-vote")
"""The rules the paper grades."""

EQUAL = 0.005
"""Two rates that differ by less than this look the same in the paper's figures."""

LEAST_SHARE = 0.01
"""Annotators who voted on fewer texts of a domain have no rate of dissent worth comparing."""

HIGHEST = 100
"""Items of highest entropy that are listed for each foundation and domain."""

SCHEMA = pl.Schema(
    {**dict.fromkeys(PLACE, pl.String()), **dict.fromkeys(("value", "low", "high"), pl.Float64()), "n": pl.Int64()}
)


def our_figures(runs: Mapping[str, Run], any_audits: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Compute all figures but those of classifiers.

    Parameters
    ----------
    runs
        By corpus, the audit of its foundations.
    any_audits
        By corpus, the graded rules of the question of any foundation, where there is one.
    """
    rules = rule_figures({name: run.rules for name, run in runs.items()})
    frames = [rules, _counted(rules)]
    if any_audits:
        frames.append(rule_figures(any_audits).filter(foundation=ANY_FOUNDATION))
    for name, run in runs.items():
        frames += [_corpus_figures(name, run), _entropy_figures(name, run), _dissent_ends(name, dissent_rates(run))]
    totals = pl.concat(frames).filter(pl.col("metric").is_in(["texts", "annotations"]), domain=ALL)
    totals = totals.group_by("metric", maintain_order=True).agg(pl.col("value").sum())
    return pl.concat([*frames, placed(totals, corpus=ALL, domain=ALL, foundation=ALL)])


def placed(frame: pl.DataFrame, **place: str) -> pl.DataFrame:
    """Fill in the place of some figures, and what they do not have."""
    frame = frame.with_columns(**{name: pl.lit(text) for name, text in place.items()})
    missing = [pl.lit("" if SCHEMA[name] == pl.String() else None, dtype=SCHEMA[name]).alias(name)
               for name in SCHEMA if name not in frame.columns]  # fmt: skip
    return frame.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


# --- rules ------------------------------------------------------------------------------------------------------------


def rule_figures(audits: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return all grades of the rules, of every corpus and of all together, in every reading of "mean".

    Domain and foundation "(all)" pool, "(mean)" averages: over foundations, or with both "(mean)" over the cells
    domain × foundation. Corpus "(all)" is all of them together.

    Parameters
    ----------
    audits
        By corpus, the table audit of its run.
    """
    graded = pl.concat([
        placed(audit.filter(pl.col("rule").is_in(RULES)).rename({"question": "foundation"}), corpus=name)
        for name, audit in audits.items()
    ]).drop_nulls("value").unique(PLACE, maintain_order=True)  # fmt: skip
    at, pools = ["rule", "reference", "metric"], [ALL, MEAN]
    cells = graded.filter(pl.col("domain") != ALL, ~pl.col("foundation").is_in(pools))
    rates = pl.col("metric").is_in([*RATES, *(f"expected_{rate}" for rate in RATES)])
    # A rate's n is its denominator, so that rates of pools corpora can be pooled.
    pooled = graded.filter(rates, pl.col("domain") == ALL, pl.col("foundation") != MEAN)
    pooled = pooled.group_by("foundation", *at, maintain_order=True).agg(
        (pl.col("value") * pl.col("n")).sum() / pl.col("n").sum(), pl.col("n").sum()
    )

    def mean(frame: pl.DataFrame, *by: str) -> pl.DataFrame:
        return frame.group_by(*by, *at, maintain_order=True).agg(pl.col("value").mean(), n=pl.len())

    return pl.concat([
        graded,
        placed(mean(cells, "corpus"), domain=MEAN, foundation=MEAN),
        placed(pooled, corpus=ALL, domain=ALL),
        placed(mean(pooled.filter(pl.col("foundation") != ALL)), corpus=ALL, domain=ALL, foundation=MEAN),
        placed(mean(cells.filter(rates)), corpus=ALL, domain=MEAN, foundation=MEAN),
    ])  # fmt: skip


def _counted(rules: pl.DataFrame) -> pl.DataFrame:
    """Count what the paper counts: domains where the any rule's fpr exceeds its fnr, and equal fnr of strict rules."""
    graded = rules.filter(~pl.col("domain").is_in([ALL, MEAN]), reference="consensus")
    frames = [SCHEMA.to_frame()]
    for (corpus,), part in graded.group_by("corpus", maintain_order=True):
        rates = part.filter(foundation=MEAN, rule="any").select("domain", "metric", "value")
        means = rates.filter(metric="fpr").join(rates.filter(metric="fnr"), on="domain")
        cells = part.filter(~pl.col("foundation").is_in([ALL, MEAN]), metric="fnr")
        pairs = cells.filter(rule="majority").join(cells.filter(rule="two-vote"), on=["domain", "foundation"])
        counts = pl.DataFrame({
            "metric": ["domains_fpr_above_fnr", "equal_fnr_cells"],
            "foundation": [MEAN, ALL], "rule": ["any", "majority and two-vote"],
            "value": [float((means["value"] > means["value_right"]).sum()),
                      float(((pairs["value"] - pairs["value_right"]).abs() < EQUAL).sum())],
            "n": [means.height, pairs.height],
        })  # fmt: skip
        frames.append(placed(counts, corpus=str(corpus), domain=ALL, reference="consensus"))
    return pl.concat(frames)


# --- corpora, entropies, annotators, items --------------------------------------------------------------------------


def _with_all(frame: pl.DataFrame) -> pl.DataFrame:
    """Repeat all rows with the domain "(all)"; rows without a domain are in that alone."""
    return pl.concat([frame.with_columns(domain=pl.lit(ALL)), frame.drop_nulls("domain")])


def _corpus_figures(name: str, run: Run) -> pl.DataFrame:
    """Count texts, annotations, annotators and flagged texts: the paper's table "Corpora"."""
    items = run.table("items").select("question", "item", "domain", "n_positive")
    annotations = run.table("votes").select("item", "annotator").unique()
    texts = items.select("item", "domain").unique("item", maintain_order=True)
    n_texts = _with_all(texts).group_by("domain", maintain_order=True).agg(texts=pl.len())
    marks = _with_all(texts.join(annotations, on="item")).group_by("domain").agg(annotations=pl.len())
    sizes = n_texts.join(marks, on="domain", maintain_order="left").with_columns(
        annotations_per_text=pl.col("annotations") / pl.col("texts")
    )
    by_domain = sizes.cast({"texts": pl.Float64, "annotations": pl.Float64}).unpivot(
        index="domain", variable_name="metric", value_name="value"
    )
    flagged = _with_all(items).group_by("domain", foundation="question", maintain_order=True).agg(
        value=(pl.col("n_positive") > 0).mean(), n=pl.len()
    )  # fmt: skip
    people = pl.DataFrame({"metric": ["annotators"], "value": [float(annotations["annotator"].n_unique())]})
    return pl.concat([
        placed(by_domain, corpus=name, foundation=ALL),
        placed(flagged, corpus=name, metric="flagged", rule="any"),
        placed(people, corpus=name, domain=ALL, foundation=ALL),
    ])  # fmt: skip


def _entropy_figures(name: str, run: Run) -> pl.DataFrame:
    """Return mean entropies by domain and foundation, and the epistemic share of the cells."""
    entropy = run.entropy.rename({"question": "foundation", "n_items": "n"})
    parts = entropy.unpivot(
        ["total", "aleatoric", "epistemic"], index=["foundation", "domain", "n"], variable_name="metric"
    )
    cells = entropy.filter(pl.col("domain") != ALL).select(share=pl.col("epistemic") / pl.col("total"))["share"]
    frames = [placed(parts, corpus=name)]
    if len(cells):
        ends = pl.DataFrame({"domain": [MEAN, LARGEST], "foundation": [MEAN, LARGEST],
                             "value": [cells.mean(), cells.max()], "n": len(cells)})  # fmt: skip
        frames.append(placed(ends, corpus=name, metric="epistemic_share"))
    return pl.concat(frames)


def dissent_rates(run: Run) -> pl.DataFrame:
    """Compute how often each annotator voted against the majority (a tie is a yes), by domain and foundation.

    Returns
    -------
    pl.DataFrame
        foundation, domain, annotator, votes, share (of the texts of the domain that the annotator voted on), dissent.
    """
    majority = run.table("items").with_columns(majority=2 * pl.col("n_positive") >= pl.col("n_votes"))
    majority = majority.select("question", "item", "domain", "majority")
    positive = {question.name: question.positive for question in run.questions}
    yes = pl.col("label") == pl.col("question").replace_strict(positive)
    votes = run.table("votes").join(majority, on=["question", "item"]).with_columns(against=yes != pl.col("majority"))
    rates = _with_all(votes).group_by("question", "domain", "annotator").agg(
        votes=pl.len(), dissent=pl.col("against").mean(), texts=pl.col("item").n_unique()
    )  # fmt: skip
    sizes = _with_all(majority).group_by("question", "domain").agg(size=pl.len())
    rates = rates.join(sizes, on=["question", "domain"]).sort("question", "domain", "annotator")
    share, annotator = pl.col("texts") / pl.col("size"), pl.col("annotator").cast(pl.String)
    return rates.select("domain", annotator, "votes", "dissent", foundation="question", share=share)


def _dissent_ends(name: str, rates: pl.DataFrame) -> pl.DataFrame:
    """Return the lowest and highest rate of dissent of any annotator, by domain and foundation."""
    busy = rates.filter(pl.col("share") >= LEAST_SHARE, pl.col("domain") != ALL)
    ends = busy.group_by("domain", "foundation", maintain_order=True).agg(
        lowest_dissent=pl.col("dissent").min(), highest_dissent=pl.col("dissent").max(), n=pl.len()
    )
    ends = ends.unpivot(
        ["lowest_dissent", "highest_dissent"], index=["domain", "foundation", "n"], variable_name="metric"
    )
    return placed(ends, corpus=name, rule="majority")


def uncertain_items(run: Run) -> pl.DataFrame:
    """List the items of highest entropy of every foundation and domain, with their texts."""
    columns = ["question", "domain", "item", "n_votes", "n_positive", "p", "entropy", "aleatoric", "epistemic"]
    items = run.table("items").select(columns).sort("entropy", "item", descending=[True, False])
    items = items.group_by("question", "domain", maintain_order=True).head(HIGHEST)
    if run.has("texts"):
        items = items.join(run.table("texts").select("item", "text"), on="item", how="left", maintain_order="left")
    return items.with_columns(pl.col("item").cast(pl.String)).sort("question", "domain", maintain_order=True)


# --- any foundation ---------------------------------------------------------------------------------------------------


def any_foundation(votes: Votes) -> Votes | None:
    """Return votes on whether a text carries any foundation; None if all of them agree.

    An annotator who flags at least one foundation says yes. In eMFD every highlight is a yes, so there is no such
    question to fit.

    Parameters
    ----------
    votes
        Votes on the foundations, yes or no.

    Examples
    --------
    >>> from moral_entropy.votes.read import read_votes
    >>> columns = {"question": ["care", "loyalty"] * 2, "label": [1, 0, 0, 0]}
    >>> table = pl.DataFrame({"item": [1, 1, 2, 2], "annotator": ["ann"] * 4, **columns})
    >>> together = any_foundation(read_votes(table, classes=["0", "1"]))
    >>> together.questions, together.ballots[0].counts_ik.tolist()
    (('any foundation',), [[0, 1], [1, 0]])
    """
    item_v = np.concatenate([np.repeat(ballot.item_i, ballot.votes_i) for ballot in votes.ballots])
    annotator_v = np.concatenate([ballot.annotator_a[ballot.code_v // 2] for ballot in votes.ballots])
    yes_v = np.concatenate([ballot.code_v % 2 == ballot.positive for ballot in votes.ballots])
    # Axis u: one annotator on one item, over all questions.
    n_annotators = max(len(votes.annotators), 1)
    key_u, at_v = np.unique(item_v.astype(np.int64) * n_annotators + annotator_v, return_inverse=True)
    yes_u = np.bincount(at_v, weights=yes_v, minlength=len(key_u)) > 0
    if yes_u.all() or not yes_u.any():
        return None
    ballot = ballot_from_codes(
        ANY_FOUNDATION, ("no", "yes"), item_v=key_u // n_annotators, annotator_v=key_u % n_annotators, label_v=yes_u,
        item_i=np.arange(votes.n_items, dtype=np.int32), gold_i=_any_gold(votes),
        annotator_a=np.arange(len(votes.annotators), dtype=np.int32),
    )  # fmt: skip
    return replace(votes, ballots=(ballot,))


def _any_gold(votes: Votes) -> NDArray[np.int16]:
    """Return yes where gold has any foundation, no where it has none of them, else unknown."""
    yes_i, no_i = np.zeros(votes.n_items, dtype=bool), np.zeros(votes.n_items, dtype=np.int64)
    for ballot in votes.ballots:
        yes_i[ballot.item_i] |= ballot.gold_i == ballot.positive
        no_i[ballot.item_i] += ballot.gold_i == 1 - ballot.positive
    return np.where(yes_i, 1, np.where(no_i == len(votes.ballots), 0, UNKNOWN)).astype(np.int16)
