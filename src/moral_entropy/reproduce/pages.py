"""The comparison → a page in Markdown.

Everything that came from a file is escaped. Touches no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from moral_entropy.markup import NOTHING, markdown_table, markdown_text
from moral_entropy.names import ALL, MEAN
from moral_entropy.reproduce.published import (
    CORPORA,
    COUNTS,
    DIFFERS,
    DIGITS,
    READINGS,
    SAME,
    SECTIONS,
    VERDICTS,
    spell,
    spell_gap,
)

if TYPE_CHECKING:
    import polars as pl


def comparison_page(comparison: pl.DataFrame, basis: Sequence[str]) -> str:
    """Return the comparison as Markdown: sums, readings, and one table for each section.

    Parameters
    ----------
    comparison
        From `compare_figures`.
    basis
        Sentences about the data that ours were computed from.
    """
    sections = [_section(comparison.filter(section=name), title) for name, title in SECTIONS.items()]
    return "\n".join([_sums(comparison, basis), _readings(), *sections])


def sum_up(comparison: pl.DataFrame) -> list[tuple[str, ...]]:
    """Count the verdicts of each section, and the figures within tolerance whatever the verdict."""
    rows = []
    for name, title in SECTIONS.items():
        own = comparison.filter(section=name)
        counts = [str(int((own["verdict"] == verdict).sum())) for verdict in VERDICTS]
        rows.append((title, str(own.height), *counts, str(int(own["within"].sum()))))
    return rows


def found_in_words(comparison: pl.DataFrame, *, twins: bool) -> str:
    """Say how many published figures ours meet, and how many of them can be compared strictly.

    Parameters
    ----------
    comparison
        From `compare_figures`.
    twins
        Whether ours were computed from simulated votes.
    """
    ours = comparison.drop_nulls("ours")
    within = int(ours["within"].sum())
    counts = {verdict: int((comparison["verdict"] == verdict).sum()) for verdict in VERDICTS}
    said = (
        f"Of {comparison.height:,} published figures {ours.height:,} have one of ours beside them, and {within:,} of "
        "these are within the tolerance."
    )
    compared = counts[SAME] + counts[DIFFERS]
    if not compared:
        why = "on simulated votes they show how near a twin comes, not whether the paper is right"
        return f"{said} None was computed from the data of the paper: {why}." if twins else said
    strict = f"{compared:,} can be compared strictly: {counts[SAME]:,} are the same, {counts[DIFFERS]:,} differ"
    return f"{said} {strict}{', the rest being of simulated votes' if twins else ''}."


def _sums(comparison: pl.DataFrame, basis: Sequence[str]) -> str:
    words = (
        *basis,
        "Same: within the tolerance of its row. Not comparable: there is no figure of ours, or it is of something "
        "else, as all but the sizes are on simulated votes. Within: how many of ours are within the tolerance, "
        "comparable or not. pp: percentage points.",
    )
    header = ("section", "figures", *VERDICTS, "within")
    return _with_table("# The paper's figures beside ours", words, header, sum_up(comparison), header[1:])


def _readings() -> str:
    words = (
        "Where the paper does not say what was averaged, its figure is laid beside ours in each reading. In the table "
        "below, and in the columns domain and foundation, (all) pools and (mean) averages.",
    )
    places = {"any foundation": (ALL, "any foundation"), "pooled": (ALL, ALL), "mean": (ALL, MEAN)}
    rows = [(name, *places.get(name, (MEAN, MEAN)), meaning) for name, meaning in READINGS.items()]
    return _with_table("## Readings", words, ("reading", "domain", "foundation", "what it is"), rows)


def _section(own: pl.DataFrame, title: str) -> str:
    columns = [
        "corpus",
        *(name for name in ("domain", "foundation", "rule", "reference", "reading") if _has_values(own[name])),
    ]
    header = (*columns, "metric", "paper", "ours", "interval", "difference", "tolerance", "verdict", "note")
    rows = [_cells(row, columns) for row in own.iter_rows(named=True)]
    return _with_table(f"## {title}", (), header, rows, ("paper", "ours", "interval", "difference", "tolerance"))


def _has_values(column: pl.Series) -> bool:
    """Return whether any value of a column is neither empty nor "(all)"."""
    return bool((~column.is_in(["", ALL])).any())


def _cells(row: dict[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    metric = row["metric"]
    named = [CORPORA.get(row["corpus"], row["corpus"]), *(row[name] for name in columns[1:]), metric.replace("_", " ")]
    ours = NOTHING if row["ours"] is None else spell(metric, row["ours"])
    interval = NOTHING if row["low"] is None else f"{spell(metric, row['low'])} to {spell(metric, row['high'])}"
    difference = NOTHING if row["difference"] is None else spell_gap(metric, row["difference"])
    return (*named, row["printed"], ours, interval, difference, _tolerance(row), row["verdict"], row["note"])


def _tolerance(row: dict[str, Any]) -> str:
    if row["bound"]:
        return str(row["bound"])
    share = row["metric"] not in COUNTS and row["metric"] not in DIGITS
    return f"{100 * row['tolerance']:g} pp" if share else f"{row['tolerance']:g}"


def _with_table(
    heading: str,
    words: Sequence[str],
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[str] = (),
) -> str:
    """Write a heading, paragraphs, and the table below them."""
    paragraphs = [markdown_text(text) for text in words]
    return "\n\n".join([heading, *paragraphs, markdown_table(header, rows, numbers=numbers)]) + "\n"
