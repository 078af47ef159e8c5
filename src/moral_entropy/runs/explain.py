"""Why p is what it is: the prior's log-odds, and what each vote adds to them.

Takes a run folder and the id of an item, returns one `Explanation` per question about it: the waterfall of the paper's
first figure. With two labels the log-odds are those of the positive label; with more, those of the consensus
label against the runner-up. Where items may lie between labels, what a vote adds depends on the votes before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.between_labels import FittedStates, confusion_by_annotator, counted_votes
from moral_entropy.runs.lookup import check_question, find_item
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.ties import DECIMALS


@dataclass(frozen=True)
class Step:
    """What one vote adds to the log-odds, in nats.

    Parameters
    ----------
    annotator, voted
        Whose vote, and for which label; None for the prior's step, the first.
    push, low, high
        What it adds at the mode: under the paper's model the log-likelihood ratio, with its interval over the draws
        (None without draws); under the mixed model the change of the log-odds, without one.
    total
        The log-odds after this step.
    """

    annotator: str | None
    voted: str | None
    push: float
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
    ambiguity, doubt_votes, doubt_annotators
        The parts of the entropy: see `EntropyParts`. None without draws.
    model
        "mixed" or "paper".
    clamped
        Whether the item's label was given as evidence: then its votes do not matter.
    of_several
        Whether there are more than two labels: then the log-odds alone do not determine `p_map`.
    between_groups
        The fourth part of the entropy, of a run that found a truth per group; else None.
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
    model: str
    clamped: bool
    of_several: bool
    between_groups: float | None = None


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
    rows, votes = run.table("items", where=where), run.table("votes", where=where)
    texts = run.table("texts", where=pl.col("item") == rows["item"][0])
    text = texts["text"][0] if texts.height else None
    return [_explain(run, row, votes.filter(question=row["question"]), text) for row in rows.iter_rows(named=True)]


def _explain(run: Run, row: dict[str, Any], votes: pl.DataFrame, text: str | None) -> Explanation:
    question, part = row["question"], row["part"]
    fitted = [fit for fit in run.manifest["questions"] if (fit["question"], fit["part"]) == (question, part)]
    if len(fitted) != 1:
        msg = f"{run.where} has {len(fitted)} fits of {question!r} in its manifest. Run the audit again."
        raise RunFolderError(msg)
    labels = fitted[0]["labels"]
    here = pl.col("question") == question
    pushes = run.table("pushes", where=here & (pl.col("part") == part))
    if len(labels) == 2:
        towards = fitted[0]["positive"]
        against = labels[1 - labels.index(towards)]
    else:
        shares = run.table("posterior", where=here & (pl.col("item") == row["item"])).sort(
            pl.col("p").round(DECIMALS), descending=True, maintain_order=True
        )
        towards = row["label"]
        against = shares.filter(pl.col("class") != towards)["class"][0]
    annotators = run.table("annotators", where=here & (pl.col("part") == part))
    votes = _counted(votes, fitted[0]["counted_as_one"])
    if fitted[0]["mixture"] is not None:
        steps = _mixed_steps(fitted[0], annotators, votes, row["domain"], (towards, against))
    elif len(labels) == 2:
        steps = _binary_steps(pushes, votes)
    else:
        steps = _general_steps(pushes, annotators, votes, towards, against)
    named = ("domain", "p_map", "p_model", "p", "p_low", "p_high", "label", "entropy", *PARTS)
    facts = {name: row[name] for name in named} | {BETWEEN: row.get(BETWEEN)}
    clamped = bool(run.manifest["use_gold"]) and row["p_map"] in (0.0, 1.0)
    return Explanation(
        question=question,
        part=part,
        item=str(row["item"]),
        text=text,
        towards=towards,
        against=against,
        steps=tuple(_summed(steps)),
        model=run.model,
        clamped=clamped,
        of_several=len(labels) > 2,
        **facts,
    )


def _counted(votes: pl.DataFrame, groups: list[list[Any]]) -> pl.DataFrame:
    """Return the votes as they were counted: annotator, label, and shown, the names of all whose vote it is."""
    cast = votes.select("annotator", "label").rows()
    found = counted_votes(cast, groups)
    rows = [(one.annotator, one.label, "+".join(str(cast[at][0]) for at in one.at)) for one in found]
    schema = {"annotator": votes.schema["annotator"], "label": pl.String(), "shown": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row")


Push = tuple[str | None, str | None, float, float | None, float | None]
"""Annotator, vote, push, low and high."""


def _binary_steps(pushes: pl.DataFrame, votes: pl.DataFrame) -> list[Push]:
    prior = pushes.filter(pl.col("annotator").is_null()).row(0, named=True)
    cast = votes.join(pushes, left_on=["annotator", "label"], right_on=["annotator", "voted"], maintain_order="left")
    bounds = cast.select("shown", "label", "push", "low", "high").rows()
    return [(None, None, prior["push"], prior["low"], prior["high"]), *bounds]


def _mixed_steps(
    fit: dict[str, Any], annotators: pl.DataFrame, votes: pl.DataFrame, domain: str | None, pair: tuple[str, str]
) -> list[Push]:
    """Compute what the prior and each vote in turn add to the log-odds where items may lie between labels."""
    cells = annotators.filter(pl.col("annotator").is_in(votes["annotator"].to_list()))
    between, labels = FittedStates.of(fit), fit["labels"]
    matrices = confusion_by_annotator(cells, len(labels))
    cast = votes.select("annotator", "label").iter_rows()
    chance_nk = np.array([matrices[who][:, labels.index(label)] for who, label in cast]).reshape(-1, len(labels))
    [odds_t] = between.odds_after([domain], between.log_votes(chance_nk)[None], [pair])
    push_t = np.diff(odds_t, prepend=0.0).tolist()
    shown = [(None, None), *votes.select("shown", "label").rows()]
    return [(who, voted, push, None, None) for (who, voted), push in zip(shown, push_t, strict=True)]


def _general_steps(
    pushes: pl.DataFrame, annotators: pl.DataFrame, votes: pl.DataFrame, towards: str, against: str
) -> list[Push]:
    """Compute the pushes towards one label against another, for more than two labels.

    The rows of a confusion matrix are almost independent in the posterior, so the interval of a ratio follows from
    those of its two probabilities. Of the prior only ratios to the first label are kept: its interval is too wide
    unless that label is one of the two.
    """
    nothing = (0.0, 0.0, 0.0)
    of = {row[4]: row[5:8] for row in pushes.filter(pl.col("annotator").is_null()).rows()}
    steps: list[Push] = [(None, None, *_difference(of.get(towards, nothing), of.get(against, nothing)))]
    chance = {
        (row["annotator"], row["true"], row["voted"]): tuple(
            None if row[name] is None else math.log(max(row[name], 1e-300)) for name in ("probability", "low", "high")
        )
        for row in annotators.filter(pl.col("annotator").is_in(votes["annotator"].to_list())).iter_rows(named=True)
    }
    for annotator, voted, shown in votes.rows():
        pair = chance[annotator, towards, voted], chance[annotator, against, voted]
        steps.append((shown, voted, *_difference(*pair)))
    return steps


def _difference(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[float, float | None, float | None]:
    """Subtract two figures with intervals, as if they were independent."""
    (value, low, high), (value2, low2, high2) = one, other
    push = value - value2
    if low is None or low2 is None:
        return push, None, None
    below, above = math.hypot(value - low, high2 - value2), math.hypot(high - value, value2 - low2)
    return push, push - below, push + above


def _summed(steps: list[Push]) -> Iterator[Step]:
    total = 0.0
    for annotator, voted, push, low, high in steps:
        total += push
        yield Step(annotator, voted, push, low, high, total)
