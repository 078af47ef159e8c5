"""Run → the report's section on groups of annotators: sentences, a table of groups, items on which they part."""

from __future__ import annotations

from typing import Any

import polars as pl

from moral_entropy.markup import NOTHING
from moral_entropy.runs.run import Run

MOST_ROWS = 200
MOST_ITEMS = 20
TEXT = 300


def groups_section(run: Run) -> dict[str, Any]:
    """Return what the report shows of groups, of a run that has them."""
    facts = run.manifest["groups"]
    rows = run.table("groups")
    return {
        "sentences": [f"{text[:1].upper()}{text[1:]}" for text in facts["sentences"]],
        "notes": facts["notes"],
        "composition": [_member_cells(row) for row in facts["composition"]],
        "target": "target" in facts,
        "rows": [group_cells(row) for row in rows.head(MOST_ROWS).iter_rows(named=True)],
        "left_out": max(rows.height - MOST_ROWS, 0),
        "parting": parting_items(run),
    }


def _member_cells(row: dict[str, Any]) -> list[str]:
    target = NOTHING if row["target"] is None else f"{row['target']:.1%}"
    return [row["column"], row["group"], f"{row['annotators']:,}", f"{row['share']:.1%}", target]


def group_cells(row: dict[str, Any]) -> list[str]:
    """Return the row of a group as it is shown: shares in %, differences in points, ratings as they are."""
    scale, unit = (1, "") if row["label"] == "(mean)" else (100, "%")
    digits = 2 if scale == 1 else 1

    def number(name: str, sign: str = "") -> str:
        return NOTHING if row[name] is None else f"{scale * row[name]:{sign}z.{digits}f}"

    interval = NOTHING if row["low"] is None else f"{number('low')} to {number('high')}"
    rate = NOTHING if row["rate"] is None else number("rate") + unit
    figures = [NOTHING if row[name] is None else f"{row[name]:z.2f}" for name in ("within", "across", "ratio")]
    p = NOTHING if row["p_adjusted"] is None else f"{row['p_adjusted']:.3f}"
    question = f"{row['question']} / {row['part']}" if row["part"] else row["question"]
    return [
        question, row["column"], row["label"], row["group"], f"{row['n_annotators']:,}", f"{row['n_votes']:,}", rate,
        number("difference", "+"), interval, p, *figures,
    ]  # fmt: skip


def parting_items(run: Run) -> list[dict[str, Any]]:
    """Return the items on which groups with a truth each part most."""
    own = run.table("group_items", where=pl.col("between").is_not_null())
    if own.is_empty():
        return []
    key = ["column", "question", "part", "label", "item"]
    groups = own.group_by(key, maintain_order=True).agg("group", "n_votes", "n_yes", "p", pl.col("spread").first())
    shown = (
        groups.sort(-pl.col("spread").round(9), maintain_order=True)
        .group_by("column", "question", maintain_order=True)
        .head(MOST_ITEMS)
    )
    if run.has("texts"):
        texts = run.table("texts", where=pl.col("item").is_in(shown["item"].implode()))
        shown = shown.join(texts, on="item", how="left", maintain_order="left")
    return [_item_cells(row) for row in shown.head(3 * MOST_ITEMS).iter_rows(named=True)]


def _item_cells(row: dict[str, Any]) -> dict[str, Any]:
    text = row.get("text") or ""
    counts = zip(row["group"], row["n_yes"], row["n_votes"], row["p"], strict=True)
    said = [f"{group}: {yes} of {votes} yes ({p:.0%} expected)" for group, yes, votes, p in counts]
    text = f"{text[:TEXT]}…" if len(text) > TEXT else text
    return {"column": row["column"], "item": str(row["item"]), "label": row["label"], "said": said, "text": text}
