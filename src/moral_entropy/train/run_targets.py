"""Run → `Targets`: its items, posterior, votes and texts, or texts from the file of the votes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import TrainError
from moral_entropy.runs.run import Question, Run, read_run
from moral_entropy.train.answers import Answers, check_kind
from moral_entropy.train.group_targets import ANNOTATORS, is_group_kind, with_rows
from moral_entropy.train.head import Block
from moral_entropy.train.options import Weight
from moral_entropy.train.targets import Targets, anonymous_votes, targets_of, with_groups
from moral_entropy.votes.columns import guess_column, missing_column, named_column
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import UNKNOWN, Ints
from moral_entropy.votes.values import code_ids

NEEDED = {"published": "published labels", "gold": "gold labels"}
"""Kinds of target that come from a column of the data, and what is missing where there is none."""


def targets_from_run(
    run: Run | str | Path,
    kind: str = "soft",
    *,
    votes: str | Path | None = None,
    text: str | None = None,
    weight: Weight | None = None,
) -> Targets:
    """Make targets of one kind for every item of a run that has a text.

    Parameters
    ----------
    run
        The run, or its folder.
    kind, weight
        As `targets_from_consensus` takes them.
    votes
        File with the items' texts, usually that of the votes; by default the texts that the audit read.
    text
        Its column of texts; guessed when not given.

    Examples
    --------
    >>> targets_from_run("nowhere")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.RunFolderError: nowhere is no run folder: there is no such folder. ...
    """
    check_kind(kind, weight)
    run = run if isinstance(run, Run) else read_run(run)
    rows = run.items
    items = rows["item"].unique().sort()
    firsts = rows.unique("item", keep="first", maintain_order=True).sort("item")
    domains = [domain or "" for domain in firsts["domain"].to_list()]
    texts = _texts(run, items, votes, text)
    answers = [_answers(run, question, rows, items) for question in run.questions]
    if kind in NEEDED and all((getattr(one, f"{kind}_i") == UNKNOWN).all() for one in answers):
        msg = f"{_name(run)} has no {NEEDED[kind]}. Audit the votes with --{kind} COLUMN, or choose other targets."
        raise TrainError(msg)
    if kind == ANNOTATORS:
        casts = [_cast(run, one.block, items) for one in answers]
        return targets_of(answers, items, texts, domains, kind, weight=weight, casts=casts)
    groups = groups_of(run) if is_group_kind(kind) else None
    return with_groups(answers, items, texts, domains, kind, weight=weight, groups=groups)


def groups_of(run: Run) -> pl.DataFrame | None:
    """Return what a run says of groups of annotators, item by item; None where it was audited without them."""
    return run.table("group_items") if run.has("group_items") else None


def _cast(run: Run, block: Block, items: pl.Series) -> pl.DataFrame:
    """Return the votes on a question as `voters_of` takes them."""
    if run.manifest["anonymous"]:
        raise anonymous_votes()
    votes = run.table("votes", where=pl.col("question") == block.question)
    code_of = {label: k for k, label in enumerate(block.labels)}
    cast = votes.select(
        "item", voter=pl.col("annotator").cast(pl.String), label=pl.col("label").replace_strict(code_of), n=pl.lit(1.0)
    )
    return with_rows(cast, items)


def _name(run: Run) -> str:
    return "the run" if run.path is None else str(run.path)


def _texts(run: Run, items: pl.Series, votes: str | Path | None, text: str | None) -> list[str | None]:
    columns = run.manifest["columns"]
    if votes is not None:
        return texts_from_file(votes, items, item=columns.get("item"), text=text)
    rows, read_from = run.table("texts"), columns.get("text")
    if rows.is_empty():
        msg = f"{_name(run)} has no texts. Name the file that has them, and its column: --votes FILE --text COLUMN."
        raise TrainError(msg)
    if text is not None and text != read_from:
        msg = (
            f"the texts of {_name(run)} are those of column {read_from!r}, not {text!r}. "
            "Name the file too: --votes FILE."
        )
        raise TrainError(msg)
    return _in_order(items, rows["item"], rows["text"])


def texts_from_file(
    path: str | Path, items: pl.Series, *, item: str | None = None, text: str | None = None
) -> list[str | None]:
    """Look up each item's text in a file, by the item's id; None where the file has none.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or JSON.
    items
        The ids to look up.
    item, text
        Columns of the ids and the texts; guessed when not given.
    """
    source = open_source(path)
    names = list(source.columns)
    id_column = item if item in names else guess_column("item", names)
    if id_column is None:
        raise missing_column(role="item", names=names, source=source.name)
    text_column = named_column(text, names, source.name, "text") if text else guess_column("text", names)
    if text_column is None:
        raise missing_column(role="text", names=names, source=source.name)
    ids = code_ids(source.column(id_column), textual=source.textual)
    known = np.flatnonzero(ids.code_r >= 0)
    spelt = ids.values.gather(ids.code_r[known])
    found = _in_order(items, spelt, source.column(text_column).cast(pl.String).gather(known))
    if all(one is None for one in found):
        msg = (
            f"none of the {len(items):,} items of the run has a text in {source.name}. First: item {items[0]!r}; its "
            f"column {id_column!r} begins with {spelt[0] if len(spelt) else None!r}. Check that both name items alike."
        )
        raise TrainError(msg)
    return found


def _in_order(items: pl.Series, ids: pl.Series, texts: pl.Series) -> list[str | None]:
    """Sort texts as `items` are; of several for one item, take the first in the alphabet, as `read_votes` does."""
    lookup = pl.DataFrame({"item": ids.cast(pl.String), "text": texts}).drop_nulls()
    lookup = lookup.group_by("item").agg(pl.col("text").min())
    wanted = pl.DataFrame({"item": items.cast(pl.String)})
    return wanted.join(lookup, on="item", how="left", maintain_order="left")["text"].to_list()


def _answers(run: Run, question: Question, rows: pl.DataFrame, items: pl.Series) -> Answers:
    asked = rows.filter(pl.col("question") == question.name)
    block = Block(question.name, question.labels, question.positive)
    counts_ik, p_ik, model_ik = _two_labels(block, asked) if block.positive else _more_labels(run, block, asked)
    return Answers(
        block=block,
        item_i=items.search_sorted(asked["item"]).to_numpy(),
        counts_ik=counts_ik,
        p_ik=p_ik,
        model_ik=model_ik,
        epistemic_i=asked["epistemic"].fill_null(np.nan).to_numpy(),
        published_i=_codes(asked, "published", question.labels),
        gold_i=_codes(asked, "gold", question.labels),
        count_i=asked["count"].to_numpy(),
    )


def _codes(asked: pl.DataFrame, column: str, labels: tuple[str, ...]) -> Ints:
    code_of = {label: k for k, label in enumerate(labels)}
    named: list[Any] = asked[column].to_list() if column in asked.columns else [None] * asked.height
    return np.array([code_of.get(label, UNKNOWN) for label in named], dtype=np.int16)


def _two_labels(block: Block, asked: pl.DataFrame) -> tuple[Ints, Any, Any]:
    yes_i = asked["n_positive"].to_numpy()
    no_i = asked["n_votes"].to_numpy() - yes_i
    order = slice(None) if block.labels[1] == block.positive else slice(None, None, -1)
    p_ik, model_ik = (np.column_stack([1.0 - p_i, p_i]) for p_i in asked.select("p", "p_model").to_numpy().T)
    return np.column_stack([no_i, yes_i])[:, order], p_ik[:, order], model_ik[:, order]


def _more_labels(run: Run, block: Block, asked: pl.DataFrame) -> tuple[Ints, Any, Any]:
    about = pl.col("question") == block.question
    posterior = run.table("posterior", where=about)
    counts = run.table("votes", where=about).group_by("item", "label").len().pivot("label", index="item")
    by_item = asked.select("item")
    wide_n = by_item.join(counts, on="item", how="left", maintain_order="left")
    missing = [pl.lit(0).alias(label) for label in block.labels if label not in wide_n.columns]
    counts_ik = wide_n.with_columns(missing).select(pl.col(block.labels).fill_null(0)).to_numpy().astype(np.int64)

    def wide(column: str) -> Any:
        found = posterior.pivot("class", index="item", values=column)
        return by_item.join(found, on="item", how="left", maintain_order="left").select(block.labels).to_numpy()

    return counts_ik, wide("p"), wide("p_model")
