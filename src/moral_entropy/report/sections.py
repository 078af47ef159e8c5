"""Run → sections of its report as plain texts and tables: findings, groups of annotators, judges.

Finds nothing new: everything is in the tables of the run, or told by `judges` of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from moral_entropy.checks.run import CHECKS, is_thorough, title_of, verdict
from moral_entropy.findings import RANK, Finding, worst_level
from moral_entropy.judges.known import MOST_JUDGES
from moral_entropy.judges.roles import LLM, roles_of
from moral_entropy.judges.score import score
from moral_entropy.judges.table import Judges, describe_judges
from moral_entropy.judges.values import is_share
from moral_entropy.markup import NOTHING
from moral_entropy.names import ALL
from moral_entropy.runs.run import Run, read_findings
from moral_entropy.ties import tie_key
from moral_entropy.verdict.checked import checks_of

MOST_FINDINGS, MOST_GROUPS, MOST_JUDGE_ROWS, MOST_ITEMS = 1_000, 200, 100, 20
"""Findings shown of one side, groups, rows of a table on judges, and items on which groups part."""

STATUS = {"bad": "stop", "doubt": "care"}


def findings_section(run: Run) -> dict[str, Any]:
    """Return the texts of the section "Can the consensus be trusted?": every finding, worst first.

    Returns
    -------
    dict
        `verdict` in words, `status` ("ready", "care", "stop" or "none"), `more` (what to run, or nothing), and `sides`:
        each with `title`, `meaning`, `level`, `rows` (level, about, figure, value, text) and `left_out`, a count.
    """
    found = read_findings(run)
    status = STATUS.get(worst_level(found), "ready") if found else "none"
    more = "" if is_thorough(found) else "For the full examination run: moral-entropy validate, with this run's folder."
    order = [*CHECKS, *sorted({finding.check for finding in found} - set(CHECKS))]
    sides = [_side(side, [finding for finding in found if finding.check == side]) for side in order]
    return {
        "verdict": verdict(found),
        "status": status,
        "more": more,
        "sides": [side for side in sides if side["rows"]],
    }


def _side(side: str, found: Sequence[Finding]) -> dict[str, Any]:
    ordered = sorted(found, key=lambda finding: RANK[finding.level])
    return {
        "title": title_of(side),
        "meaning": CHECKS[side].meaning if side in CHECKS else "",
        "level": worst_level(found),
        "rows": [_row(finding) for finding in ordered[:MOST_FINDINGS]],
        "left_out": max(len(ordered) - MOST_FINDINGS, 0),
    }


def _row(finding: Finding) -> dict[str, str]:
    return {
        "level": finding.level,
        "about": finding.about,
        "figure": finding.metric.replace("_", " "),
        "value": _shown(finding),
        "text": finding.text,
    }


def _shown(finding: Finding) -> str:
    interval = ""
    if finding.low is not None and finding.high is not None:
        interval = f" ({_number(finding.low)} – {_number(finding.high)})"
    return _number(finding.value) + interval


def _number(value: float) -> str:
    """Show a figure in three digits.

    Examples
    --------
    >>> _number(0.12345), _number(12_345.0), _number(-1e-17), _number(float("nan"))
    ('0.123', '12,345', '0', '–')
    """
    if not math.isfinite(value):
        return "–"
    value = tie_key(value)
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1_000 else f"{value:.3g}"


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
        "rows": [group_cells(row) for row in rows.head(MOST_GROUPS).iter_rows(named=True)],
        "left_out": max(rows.height - MOST_GROUPS, 0),
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


MOST_VOTES = 1_000_000
"""Votes up to which a report has the section: `moral-entropy judges` describes larger panels."""


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
    return {
        "title": title,
        "header": header,
        "rows": rows[:MOST_JUDGE_ROWS],
        "note": note,
        "words": words,
        "chart": chart,
    }


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
