"""Run → the items of a question as scores and judges need them: p, votes, and the answers that are known.

Answers are known from gold and from filled-in sheets of spot checks that measure. Gold that was evidence for the fit
cannot grade it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.judges.confidence import sureness
from moral_entropy.names import ALL, NO_DOMAIN
from moral_entropy.options import did_you_mean
from moral_entropy.runs.between_labels import positions
from moral_entropy.runs.run import Question, Run
from moral_entropy.verdict.sheet import KEYS, spot_checks
from moral_entropy.votes.table import UNKNOWN, Floats, Ints


@dataclass(frozen=True, eq=False)
class KnownItems:
    """The items of one question. Axes: **i** item, **k** label.

    Parameters
    ----------
    question
        The question.
    items
        Their ids.
    p_ik
        The published label probabilities, which know no gold, unless `evidence`.
    counts_ik
        Votes by label, as they were cast.
    gold_i
        Known labels, or `UNKNOWN`.
    weight_i
        How many items each stands for; of items that a spot check drew, for how many it drew them.
    evidence
        Whether gold was evidence for the fit.
    """

    question: Question
    items: pl.Series
    p_ik: Floats
    counts_ik: Floats
    gold_i: Ints
    weight_i: Floats
    evidence: bool

    @property
    def n_gold(self) -> int:
        """How many answers are known."""
        return int((self.gold_i != UNKNOWN).sum())

    def take(self, some_i: Ints) -> KnownItems:
        """Keep some items."""
        rows = {name: getattr(self, name)[some_i] for name in ("p_ik", "counts_ik", "gold_i", "weight_i")}
        return replace(self, items=self.items.gather(some_i), **rows)

    @property
    def share_ik(self) -> Floats:
        """Shares of the labels among an item's votes; where nobody voted those of all items."""
        total_i = self.counts_ik.sum(axis=1, keepdims=True)
        overall_k = self.counts_ik.sum(axis=0) / max(self.counts_ik.sum(), 1.0)
        return np.asarray(np.where(total_i > 0, self.counts_ik / np.maximum(total_i, 1.0), overall_k))


def questions_asked(run: Run, name: str | None) -> list[Question]:
    """Return the questions of a run, or the one that is named."""
    if name is None:
        return list(run.questions)
    found = [question for question in run.questions if question.name == name]
    if not found:
        names = [question.name for question in run.questions]
        msg = f"the run has no question {name!r}.{did_you_mean(name, names)} Questions: {', '.join(names)}."
        raise UsageError(msg)
    return found


def known_items(run: Run, question: Question, *, confidence: str | None = None) -> KnownItems:
    """Read the items of a question.

    Parameters
    ----------
    run, question
        The run, and one of its questions.
    confidence
        A column that was kept with the votes: how sure each is. `counts_ik` then has parts of votes.
    """
    here = pl.col("question") == question.name
    items = run.table("items", where=here).select("item", "p", "gold", "count")
    weight_i = items["count"].to_numpy().astype(np.float64)
    gold_i = positions(items["gold"], list(question.labels), default=UNKNOWN).astype(np.int64)
    found = KnownItems(
        question=question,
        items=items["item"],
        p_ik=_probabilities(run, question, items),
        counts_ik=_counts(run, question, items["item"], confidence),
        gold_i=gold_i,
        weight_i=weight_i,
        evidence=bool(run.manifest["use_gold"]),
    )
    return _with_answers(run, found)


def _with_answers(run: Run, found: KnownItems) -> KnownItems:
    """Add the answers of spot checks that measure."""
    asked = spot_checks(run).filter(pl.col("question") == found.question.name, pl.col("purpose") == "measure")
    answered = asked.drop_nulls("answer")
    if answered.is_empty():
        return found
    # Within a sheet rows stand for their blocks; the mean of a sheet's weights is 1.
    answered = answered.with_columns(weight=pl.col("weight") / pl.col("weight").mean().over("sheet"))
    rows = found.items.to_frame("item").join(
        answered.select("item", "answer", "weight"), on="item", how="left", maintain_order="left"
    )
    answer_i = positions(rows["answer"], list(found.question.labels), default=UNKNOWN).astype(np.int64)
    sheet_i = rows["weight"].fill_null(1.0).to_numpy()
    return KnownItems(
        found.question,
        found.items,
        found.p_ik,
        found.counts_ik,
        np.where(answer_i != UNKNOWN, answer_i, found.gold_i),
        found.weight_i * sheet_i,
        found.evidence,
    )


def _probabilities(run: Run, question: Question, items: pl.DataFrame) -> Floats:
    n_labels = len(question.labels)
    if question.positive is not None:
        p_i = items["p"].to_numpy()
        at = question.labels.index(question.positive)
        return np.stack([p_i if k == at else 1.0 - p_i for k in range(2)], axis=1)
    rows = run.table("posterior", where=pl.col("question") == question.name)
    joined = items.select("item").join(
        rows.group_by("item", maintain_order=True).agg("p"), on="item", how="left", maintain_order="left"
    )
    return np.asarray(joined["p"].list.to_array(n_labels).to_numpy(), dtype=np.float64)


def _counts(run: Run, question: Question, items: pl.Series, confidence: str | None) -> Floats:
    votes = run.table("votes", where=pl.col("question") == question.name)
    sure = pl.lit(1.0) if confidence is None else sureness(confidence_column(votes, confidence, run.where))
    votes = votes.select("item", "label").with_columns(sure=sure)
    places = pl.DataFrame({"item": items}).with_row_index("at")
    coded = votes.join(places, on="item", how="inner")
    n_labels = len(question.labels)
    at_v, label_v = coded["at"].to_numpy(), positions(coded["label"], list(question.labels), default=UNKNOWN)
    rest_v = (1.0 - coded["sure"].to_numpy()) / (n_labels - 1)
    flat = np.bincount(at_v * n_labels + label_v, weights=1.0 - n_labels * rest_v, minlength=len(items) * n_labels)
    # What a vote is not sure of is spread evenly over all labels, so that every vote counts one.
    spread_i = np.bincount(at_v, weights=rest_v, minlength=len(items))
    return np.asarray(flat.reshape(len(items), n_labels) + spread_i[:, None])


def confidence_column(votes: pl.DataFrame, column: str, where: str) -> pl.Series:
    """Return the column of how sure votes are, or say that the run has none."""
    if column not in votes.columns:
        kept = [name for name in votes.columns if name not in (*KEYS, "annotator", "label")]
        msg = (
            f"{where} has no column {column!r} of how sure votes are.{did_you_mean(column, kept)} Kept: "
            f"{', '.join(kept) or 'none'}. Audit with --confidence {column}."
        )
        raise UsageError(msg)
    return votes[column]


def groups_of(run: Run, question: Question, items: pl.Series, by: str | None) -> tuple[list[str], Ints]:
    """Return the groups that items are scored in, and which one each item is in.

    Parameters
    ----------
    run, question, items
        The run, and the items of one question.
    by
        A column: domain, or one that was kept with the votes. None for all items together.
    """
    if by is None:
        return [ALL], np.zeros(len(items), dtype=np.int64)
    found = _column(run, question, by)
    joined = pl.DataFrame({"item": items}).join(found, on="item", how="left", maintain_order="left")
    values = joined["group"].fill_null(NO_DOMAIN)
    names = values.unique().sort().to_list()
    return names, positions(values, names, default=0).astype(np.int64)


def _column(run: Run, question: Question, by: str) -> pl.DataFrame:
    here = pl.col("question") == question.name
    if by == "domain":
        return run.table("items", where=here).select("item", group=pl.col("domain").cast(pl.String))
    votes = run.table("votes", where=here)
    if by not in votes.columns or by in (*KEYS, "annotator", "label"):
        kept = ["domain", *(name for name in votes.columns if name not in (*KEYS, "annotator", "label"))]
        msg = (
            f"{run.where} has no column {by!r} to score by.{did_you_mean(by, kept)} Found: {', '.join(kept)}. A column "
            f"of the votes is there if the audit is told to keep it: --keep {by}."
        )
        raise UsageError(msg)
    groups = votes.drop_nulls(by).group_by("item", maintain_order=True).agg(
        group=pl.col(by).first().cast(pl.String), several=pl.col(by).n_unique(), other=pl.col(by).last().cast(pl.String)
    )  # fmt: skip
    mixed = groups.filter(pl.col("several") > 1)
    if mixed.height:
        first = mixed.row(0, named=True)
        msg = (
            f"{mixed.height:,} items have more than one {by!r}. First: item {first['item']!r} has {first['group']!r} "
            f"and {first['other']!r}. An item is one answer of one system: give each its own id."
        )
        raise UsageError(msg)
    return groups.select("item", "group")
