"""Why p is what it is: the prior's log-odds, and what each vote adds to them.

Takes a run folder and the id of an item, returns one `Explanation` per question about it: the waterfall of the paper's
first figure. With two labels the log-odds are those of the positive label; with more, those of the consensus
label against the runner-up. Where items may lie between labels, what a vote adds depends on the votes before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.items.states import FittedStates, confusion_by_annotator, counted_votes
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.ties import DECIMALS

Bounds = tuple[float | None, float | None]

COMPARED = 20_000
"""Largest number of ids that an unknown one is compared with; those with the same first letters come first."""


@dataclass(frozen=True)
class Step:
    """What one vote adds to the log-odds, in nats.

    Parameters
    ----------
    annotator, voted
        Whose vote, and for which label; None for the prior's step, the first.
    contribution, low, high
        What it adds at the mode: under the paper's model the log-likelihood ratio, with its interval over the draws
        (None without draws); under the mixed model the change of the log-odds, without one.
    total
        The log-odds after this step.
    """

    annotator: str | None
    voted: str | None
    contribution: float
    low: float | None
    high: float | None
    total: float


@dataclass(frozen=True)
class Explanation:
    """Why the consensus on one item is what it is.

    Parameters
    ----------
    question, part, item, domain, text
        The question and the item; `text` is None where there is none.
    towards, against
        The labels whose log-odds are explained.
    steps
        The prior, then every vote.
    p_map, p_model, p, p_low, p_high
        Probability of `towards` at the mode, over the draws, and as published with its interval.
    label, entropy
        The consensus, and the model's entropy in nats.
    ambiguity, doubt_votes, doubt_annotators, aleatoric
        The parts of the entropy, and the sum of the first two: see `EntropyParts`. None without draws.
    model
        "mixed" or "paper".
    clamped
        Whether the item's label was given as evidence: then its votes do not matter.
    of_several
        Whether there are more than two labels: then the log-odds alone do not determine `p_map`.
    between_groups
        The fourth part of the entropy, of a run that found a truth per group; else None.
    p_text, p_votes
        What the item's text says of `towards`, and p without it where it counts; else None.
    score
        Of a question with a scale: the item's score with its interval, and the plain mean of its votes.
    """

    question: str
    part: str
    item: str
    domain: str | None
    text: str | None
    towards: str
    against: str
    steps: tuple[Step, ...]
    p_map: float
    p_model: float
    p: float
    p_low: float | None
    p_high: float | None
    label: str
    entropy: float
    ambiguity: float | None
    doubt_votes: float | None
    doubt_annotators: float | None
    aleatoric: float | None
    model: str
    clamped: bool
    of_several: bool
    between_groups: float | None = None
    p_text: float | None = None
    p_votes: float | None = None
    score: tuple[float, ...] | None = None


def explain_item(run: Run | str | Path, item: str, *, question: str | None = None) -> list[Explanation]:
    """Explain the consensus on one item, question by question.

    Parameters
    ----------
    run
        The run, or its folder.
    item
        The item's id.
    question
        Explain only this question.
    """
    run = as_run(run)
    where = find_item(run, item, check_question(run, question))
    rows, votes = with_alternatives(run, run.table("items", where=where)), run.table("votes", where=where)
    texts = run.table("texts", where=pl.col("item") == rows["item"][0])
    text = texts["text"][0] if texts.height else None
    return [_explain(run, row, votes.filter(question=row["question"]), text) for row in rows.iter_rows(named=True)]


def _explain(run: Run, row: dict[str, Any], votes: pl.DataFrame, text: str | None) -> Explanation:
    question, part = row["question"], row["part"]
    [fit] = [fit for fit in run.manifest["questions"] if (fit["question"], fit["part"]) == (question, part)]
    pair = row["favoured"], row["alternative"]
    here = (pl.col("question") == question) & (pl.col("part") == part)
    ballots = counted_votes(votes, fit["counted_as_one"])
    cells = run.table("annotators", where=here & pl.col("annotator").is_in(ballots["annotator"].implode()))
    contributions = run.table("contributions", where=here)
    prior = contributions.filter(pl.col("annotator").is_null())
    fitted = FittedStates.of(fit, dict(prior.select("class", "contribution").iter_rows()))
    matrices = confusion_by_annotator(cells, len(fitted.labels))
    log_vote_nz = fitted.log_votes(matrices, ballots.select("annotator", "label").rows())
    [odds_t] = fitted.odds_after([row["domain"]], log_vote_nz[None], [pair])
    nats_t = np.diff(odds_t, prepend=0.0).tolist()
    bounds: list[Bounds] = [(None, None)] * len(nats_t)
    if fit["mixture"] is None:
        bounds = _bounds(contributions, cells, ballots, pair, binary=len(fit["labels"]) == 2)
    cast = votes["annotator"].to_list()
    names = ["+".join(str(cast[at]) for at in together) for together in ballots["at"]]
    steps = zip([None, *names], [None, *ballots["label"]], nats_t, bounds, np.cumsum(nats_t), strict=True)
    columns = ("domain", "p_map", "p_model", "p", "p_low", "p_high", "label", "entropy", "p_text", "p_votes", *PARTS,
               "aleatoric")  # fmt: skip
    return Explanation(
        question=question,
        part=part,
        item=str(row["item"]),
        text=text,
        towards=pair[0],
        against=pair[1],
        steps=tuple(Step(annotator, voted, nats, *ends, float(total)) for annotator, voted, nats, ends, total in steps),
        model=run.model,
        clamped=bool(run.manifest["use_gold"]) and row["p_map"] in (0.0, 1.0),
        of_several=len(fit["labels"]) > 2,
        between_groups=row.get(BETWEEN),
        score=next(
            run.table("scores", where=here & (pl.col("item") == row["item"]))
            .select("mean", "low", "high", "mean_votes")
            .iter_rows(),
            None,
        ),
        **{name: row[name] for name in columns},
    )


def with_alternatives(run: Run, items: pl.DataFrame) -> pl.DataFrame:
    """Add what log-odds are about: `favoured` (the positive label, or that of the consensus) and its `alternative`."""
    labels = {question.name: question.labels for question in run.questions}
    positive = {question.name: question.positive for question in run.questions}
    # The likeliest label after the consensus label, of items with more than two labels.
    second = {}
    if run.has("posterior"):
        keys = ["question", "item"]
        labels_of = items.lazy().select(*keys, first="label")
        rows = run.scan("posterior").join(labels_of, on=keys, maintain_order="left")
        ordered = rows.filter(pl.col("class") != pl.col("first")).sort(
            pl.col("p").round(DECIMALS), descending=True, maintain_order=True
        )
        runners_up = ordered.unique(keys, keep="first", maintain_order=True).select(*keys, "class").collect()
        second = {(name, item): label for name, item, label in runners_up.iter_rows()}
    favoured = [positive[name] or label for name, label in items.select("question", "label").iter_rows()]
    alternatives = [
        second.get((name, item)) or next(label for label in labels[name] if label != favourite)
        for (name, item), favourite in zip(items.select("question", "item").iter_rows(), favoured, strict=True)
    ]
    columns = {"favoured": favoured, "alternative": alternatives}
    return items.with_columns(**{name: pl.Series(labels, dtype=pl.String) for name, labels in columns.items()})


def _bounds(
    contributions: pl.DataFrame, cells: pl.DataFrame, ballots: pl.DataFrame, pair: tuple[str, str], *, binary: bool
) -> list[Bounds]:
    """Return the intervals over the draws of what the prior and each vote add, where each adds by itself.

    With more than two labels the rows of a confusion matrix are almost independent in the posterior, so the interval
    of a ratio follows from those of its two probabilities. Of the prior only ratios to the first label are kept: its
    interval is too wide unless that label is one of the two.
    """
    prior = {row["class"]: row for row in contributions.filter(pl.col("annotator").is_null()).iter_rows(named=True)}
    if binary:
        of_vote = {(annotator, voted): (low, high) for annotator, voted, low, high
                   in contributions.select("annotator", "voted", "low", "high").iter_rows()}  # fmt: skip
        return [of_vote[None, None], *(of_vote[key] for key in ballots.select("annotator", "label").iter_rows())]
    nothing = {"contribution": 0.0, "low": 0.0, "high": 0.0}
    ends = [_difference(*(tuple(prior.get(label, nothing)[name] for name in nothing) for label in pair))]
    chance = {
        (row["annotator"], row["true"], row["voted"]): tuple(
            None if row[name] is None else math.log(max(row[name], 1e-300)) for name in ("probability", "low", "high")
        )
        for row in cells.iter_rows(named=True)
    }
    for annotator, voted in ballots.select("annotator", "label").iter_rows():
        ends.append(_difference(*(chance[annotator, label, voted] for label in pair)))
    return ends


def _difference(first: tuple[Any, ...], second: tuple[Any, ...]) -> Bounds:
    """Return the interval of the difference of two figures with intervals, as if they were independent."""
    (value, low, high), (value2, low2, high2) = first, second
    if low is None or low2 is None:
        return None, None
    below, above = math.hypot(value - low, high2 - value2), math.hypot(high - value, value2 - low2)
    return value - value2 - below, value - value2 + above


# --- Questions and items by what the user typed --------------------------------------------------------------------


def check_question(run: Run, question: str | None) -> str | None:
    """Return the question if the run has it; otherwise raise a `RunFolderError`."""
    questions = [entry.name for entry in run.questions]
    if question is None or question in questions:
        return question
    msg = f"the run has no question {question!r}.{did_you_mean(question, questions)} Questions: {', '.join(questions)}."
    raise RunFolderError(msg)


def find_item(run: Run, item: str, question: str | None) -> pl.Expr:
    """Return the condition that selects one item, on one question or on all, in a table with both columns.

    Parameters
    ----------
    run
        The run.
    item
        The id, as typed.
    question
        One question, or None for all.
    """
    rows = run.scan("items") if question is None else run.scan("items").filter(pl.col("question") == question)
    is_number = rows.collect_schema()["item"].is_integer()
    typed = (int(item) if item.lstrip("-").isdigit() else None) if is_number else item
    condition = pl.col("item") == typed
    # All ids are read only where this one is not among them: there may be very many.
    if rows.filter(condition).select("item").head(1).collect().is_empty():
        names = rows.select(pl.col("item").cast(pl.String)).collect()["item"].unique()
        alike = (names.filter(names.str.starts_with(item[:n])).sort().head(COMPARED).to_list() for n in (4, 1))
        hints = (
            *(did_you_mean(item, near) for near in alike),
            *(f" First: {name!r}." for name in names.sort()[:1]),
            "",
        )
        hint = next(filter(None, hints), "")
        scope = "" if question is None else f" on {question!r}"
        msg = f"there is no item {item!r}{scope} among {len(names):,} in {run.where}.{hint}"
        raise RunFolderError(msg)
    return condition if question is None else condition & (pl.col("question") == question)
