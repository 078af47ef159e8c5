"""Run → the section on judges: scores, who is how right, the best panels, and who may replace people.

There where language models voted, or answers are known; else None. Plain tables, made here; the page draws the chart of
the best panels.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from moral_entropy.judges.panel import MOST_JUDGES
from moral_entropy.judges.roles import LLM, roles_of
from moral_entropy.judges.score import score
from moral_entropy.judges.table import Judges, describe_judges
from moral_entropy.judges.values import is_share
from moral_entropy.names import ALL
from moral_entropy.runs.run import Run
from moral_entropy.verdict.checked import checks_of

MOST_VOTES = 1_000_000
"""Votes up to which a report has the section: `moral-entropy judges` describes larger panels."""

MOST_ROWS = 100
NOTHING = "–"

SEEN = {"on the items it was chosen on": "wrong", "on other items": "wrong_unseen"}
"""Where a panel is graded, as the chart says it, and the column that has it."""


def judges_section(run: Run) -> dict[str, Any] | None:
    """Return the section as tables and notes; None where there are neither models nor known answers."""
    if run.manifest["anonymous"] or run.manifest["votes"] > MOST_VOTES or run.manifest["annotators"] > MOST_JUDGES:
        return None
    known = checks_of(run) is not None
    if not known and not _has_models(run):
        return None
    found = describe_judges(run)
    scores = score(run) if known else None
    tables = [_scores(scores.frame)] if scores is not None else []
    tables += [_judges(found.frame), *_more(found)]
    notes = [*(scores.notes if scores is not None else ()), *found.notes]
    return {
        "tables": tables,
        "panels": panel_rows(found.panels),
        "notes": list(dict.fromkeys(notes)),
        "replace": found.replace["text"].to_list(),
    }


def panel_rows(panels: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the best panels as a chart shows them, two dots each; none of a question with a single panel."""
    several = panels.filter(pl.len().over("question") > 1)
    return [
        {"question": row["question"], "judges": row["judges"], "cost": row["cost"], "on": on, "value": row[column]}
        for row in several.iter_rows(named=True)
        for on, column in SEEN.items()
    ]


def _has_models(run: Run) -> bool:
    names = run.scan("annotator_summary").select(pl.col("annotator").cast(pl.String)).unique().collect()["annotator"]
    return any(role.role == LLM for role in roles_of(run, names.drop_nulls().to_list())[0])


def _table(
    title: str, header: list[str], rows: list[list[str]], note: str = "", words: int = 1, chart: str = ""
) -> dict[str, Any]:
    return {"title": title, "header": header, "rows": rows[:MOST_ROWS], "note": note, "words": words, "chart": chart}


def _scores(frame: pl.DataFrame) -> dict[str, Any]:
    rows = [
        [row["question"], row["quantity"], f"{row['n_gold']:,} of {row['n_items']:,}",
         *(_figure(row, name) for name in ("", "ppi_", "gold_", "votes_"))]
        for row in frame.filter(group=ALL).iter_rows(named=True)
    ]  # fmt: skip
    note = "The score corrects judges by known answers; PPI++ is a second method. By system: judges RUN --by COLUMN."
    heads = ["question", "score of", "answers known", "score", "PPI++", "known alone", "plain votes"]
    return _table("Scores", heads, rows, note, words=2)


def _figure(row: dict[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{bound}"] for bound in ("value", "low", "high"))
    if value is None:
        return NOTHING
    if is_share(row["quantity"]):
        return f"{100 * value:z.1f}% ({100 * low:z.1f}–{100 * high:z.1f})"
    return f"{value:z.2f} ({low:z.2f}–{high:z.2f})"


def _judges(frame: pl.DataFrame) -> dict[str, Any]:
    rows = [
        [row["question"], row["judge"], row["role"], row["counted_with"] or NOTHING, f"{row['n_votes']:,}",
         f"{row['missing']:.0%}", _share(row, "right_all"), _share(row, "agrees"),
         NOTHING if row["nats"] is None else f"{row['nats']:z.3f}",
         NOTHING if row["saved"] is None else f"{100 * row['saved']:z.1f}"]
        for row in frame.iter_rows(named=True)
    ]  # fmt: skip
    by = "known answers" if "known answers" in frame["graded_by"].to_list() else "the consensus"
    order = ", by the share of right votes" if by == "known answers" else ""
    note = (
        f"Worst first{order}. Right: share of all votes, from known answers and, on other items, what the others let "
        "one expect, corrected. As the others: what those who are not counted with the judge let one expect. Nats and "
        "saved: what the judge adds to the others, per item and in labels put right per 100 items, by "
        f"{by}."
    )
    heads = ["question", "judge", "role", "counted with", "votes", "no vote", "right", "as the others", "nats", "saved"]
    return _table("Judges", heads, rows, note, words=4)


def _share(row: dict[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}{bound}"] for bound in ("", "_low", "_high"))
    return NOTHING if value is None else f"{100 * value:.1f}% ({100 * low:.0f}–{100 * high:.0f})"


def _more(found: Judges) -> list[dict[str, Any]]:
    panels = [
        [row["question"], row["judges"], f"{row['cost']:g}", f"{row['wrong']:.1%}", f"{row['wrong_unseen']:.1%}"]
        for row in found.panels.iter_rows(named=True)
    ]  # fmt: skip
    again = [
        [row["question"], row["judge"], row["other"], row["kind"], _share(row, "same"),
         NOTHING if row["bias"] is None else f"{row['bias']:z.0%} ({row['bias_low']:z.0%} to {row['bias_high']:z.0%})"]
        for row in found.repeats.iter_rows(named=True)
    ]  # fmt: skip
    heads = ["question", "judges", "cost per item", "wrong", "wrong on unseen items"]
    drawn = "panels" if panel_rows(found.panels) else ""
    made = [_table("Best panel for its price", heads, panels, words=2, chart=drawn)] if panels else []
    if again:
        heads = ["question", "judge", "and", "kind", "same", "for the first shown"]
        made.append(_table("Asked again, or with the answers swapped", heads, again, words=4))
    return made
