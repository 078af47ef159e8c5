"""Run → the items of a question as scores and judges need them: p, votes, and the answers that are known.

Answers are known from gold and from filled-in sheets of spot checks that measure. Gold that was evidence for the fit
cannot grade it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.items.states import positions
from moral_entropy.names import ALL, NO_DOMAIN
from moral_entropy.option_fields import did_you_mean
from moral_entropy.runs.run import Question, Run
from moral_entropy.verdict.sheet import KEYS, spot_checks
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

SYSTEM = "system"
"""The column of the votes that says whose answer an item is: scores are by it unless another is named."""


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

    @property
    def share_ik(self) -> Floats:
        """Shares of the labels among an item's votes; where nobody voted those of all items."""
        total_i = self.counts_ik.sum(axis=1, keepdims=True)
        overall_k = self.counts_ik.sum(axis=0) / max(self.counts_ik.sum(), 1.0)
        return np.asarray(np.where(total_i > 0, self.counts_ik / np.maximum(total_i, 1.0), overall_k))


def any_known(run: Run) -> bool:
    """Return whether an answer to any question is known: by gold, or by a spot check that measures."""
    answered = (pl.col("purpose") == "measure") & pl.col("answer").is_not_null()
    gold = run.scan("items").select(pl.col("gold").is_not_null().any()).collect(engine="streaming").item()
    return bool(gold) or not spot_checks(run).filter(answered).is_empty()


def questions_asked(run: Run, name: str | None) -> list[Question]:
    """Return the questions of a run, or the one that is named."""
    if name is None:
        return list(run.questions)
    names = [question.name for question in run.questions]
    if name not in names:
        msg = f"the run has no question {name!r}.{did_you_mean(name, names)} Questions: {', '.join(names)}."
        raise UsageError(msg)
    return [question for question in run.questions if question.name == name]


def known_items(run: Run, question: Question) -> KnownItems:
    """Read the items of a question of a run."""
    here = pl.col("question") == question.name
    items = run.table("items", where=here).select("item", "p", "gold", "count")
    gold_i = positions(items["gold"], list(question.labels), default=UNKNOWN).astype(np.int64)
    answer_i, sheet_i = _answers(run, question, items["item"])
    return KnownItems(
        question=question,
        items=items["item"],
        p_ik=_probabilities(run, question, items),
        counts_ik=_counts(run, question, items["item"]),
        gold_i=np.where(answer_i != UNKNOWN, answer_i, gold_i),
        weight_i=items["count"].to_numpy().astype(np.float64) * sheet_i,
        evidence=bool(run.manifest["use_gold"]),
    )


def _answers(run: Run, question: Question, items: pl.Series) -> tuple[Ints, Floats]:
    """Return the answers of spot checks that measure, or `UNKNOWN`, and for how many items each item was drawn."""
    rows = spot_checks(run).filter(pl.col("question") == question.name, pl.col("purpose") == "measure")
    # Within a sheet rows stand for their blocks; the mean of a sheet's weights is 1.
    weight = pl.col("weight") / pl.col("weight").mean().over("sheet")
    rows = rows.drop_nulls("answer").select("item", "answer", weight=weight)
    joined = items.to_frame("item").join(rows, on="item", how="left", maintain_order="left")
    answer_i = positions(joined["answer"], list(question.labels), default=UNKNOWN).astype(np.int64)
    return answer_i, joined["weight"].fill_null(1.0).to_numpy()


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


def _counts(run: Run, question: Question, items: pl.Series) -> Floats:
    votes = run.table("votes", where=pl.col("question") == question.name).select("item", "label")
    coded = votes.join(pl.DataFrame({"item": items}).with_row_index("at"), on="item", how="inner")
    label_v = positions(coded["label"], list(question.labels), default=UNKNOWN)
    shape = (len(items), len(question.labels))
    flat = np.bincount(coded["at"].to_numpy() * shape[1] + label_v, minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(np.float64)


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
    groups = _column(run, question, by)
    joined = pl.DataFrame({"item": items}).join(groups, on="item", how="left", maintain_order="left")
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
