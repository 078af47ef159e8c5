"""The comparison → Markdown, and one HTML file that works offline.

Takes tables of text, returns text; everything that came from a file is escaped. Touches no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from moral_entropy.markup import NOTHING, html_page, html_table, markdown_table, markdown_text
from moral_entropy.names import ALL, MEAN
from moral_entropy.reproduce.comparison import DIFFERS, SAME, VERDICTS
from moral_entropy.reproduce.published import CORPORA, COUNTS, DIGITS, READINGS, SECTIONS, spell, spell_gap

if TYPE_CHECKING:
    import polars as pl

STYLE = """\
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 0 0 2rem; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.same td:nth-last-child(2) { color: #1a6b2f; } tr.differs td:nth-last-child(2) { color: #a3261b; }
tr.not-comparable { color: #666; }"""


@dataclass(frozen=True)
class Table:
    """A table of a page.

    Parameters
    ----------
    title, words
        Its heading, and paragraphs above it.
    header, rows
        Its cells.
    numbers
        Columns that are aligned right.
    """

    title: str
    words: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()


def comparison_tables(comparison: pl.DataFrame, basis: Sequence[str]) -> list[Table]:
    """Return the tables of the comparison: sums, readings, and one for each section.

    Parameters
    ----------
    comparison
        From `compare_figures`.
    basis
        Sentences about the data that ours were computed from.
    """
    sections = [_section(comparison.filter(section=name), title) for name, title in SECTIONS.items()]
    return [_sums(comparison, basis), _readings(), *sections]


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
    )
    said += "these are within the tolerance."
    compared = counts[SAME] + counts[DIFFERS]
    if not compared:
        why = "on simulated votes they show how near a twin comes, not whether the paper is right"
        return f"{said} None was computed from the data of the paper: {why}." if twins else said
    strict = f"{compared:,} can be compared strictly: {counts[SAME]:,} are the same, {counts[DIFFERS]:,} differ"
    return f"{said} {strict}{', the rest being of simulated votes' if twins else ''}."


def _sums(comparison: pl.DataFrame, basis: Sequence[str]) -> Table:
    words = (
        *basis,
        "Same: within the tolerance of its row. Not comparable: there is no figure of ours, or it is of something "
        "else, as all but the sizes are on simulated votes. Within: how many of ours are within the tolerance, "
        "comparable or not. pp: percentage points.",
    )
    header = ("section", "figures", *VERDICTS, "within")
    return Table("The paper's figures beside ours", words, header, tuple(sum_up(comparison)), frozenset(header[1:]))


def _readings() -> Table:
    words = (
        "Where the paper does not say what was averaged, its figure is laid beside ours in each reading. In the table "
        "below, and in the columns domain and foundation, (all) pools and (mean) averages.",
    )
    places = {"any foundation": (ALL, "any foundation"), "pooled": (ALL, ALL), "mean": (ALL, MEAN)}
    rows = tuple((name, *places.get(name, (MEAN, MEAN)), meaning) for name, meaning in READINGS.items())
    return Table("Readings", words, ("reading", "domain", "foundation", "what it is"), rows)


def _section(own: pl.DataFrame, title: str) -> Table:
    columns = [
        "corpus",
        *(name for name in ("domain", "foundation", "rule", "reference", "reading") if _has_values(own[name])),
    ]
    header = (*columns, "metric", "paper", "ours", "interval", "difference", "tolerance", "verdict", "note")
    rows = tuple(_cells(row, columns) for row in own.iter_rows(named=True))
    return Table(title, (), header, rows, frozenset({"paper", "ours", "interval", "difference", "tolerance"}))


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


def to_markdown(tables: Sequence[Table]) -> str:
    r"""Write tables as Markdown.

    Examples
    --------
    >>> print(to_markdown([Table("T", (), ("a", "b"), (("x|y", "1"),), frozenset("b"))]))
    # T
    <BLANKLINE>
    | a | b |
    | --- | ---: |
    | x\|y | 1 |
    <BLANKLINE>
    """
    parts = [_markdown(table, level=1 if at == 0 else 2) for at, table in enumerate(tables)]
    return "\n".join(parts)


def _markdown(table: Table, level: int) -> str:
    lines = [f"{'#' * level} {markdown_text(table.title)}", ""]
    for words in table.words:
        lines += [markdown_text(words), ""]
    return "\n".join([*lines, markdown_table(table.header, table.rows, numbers=table.numbers)]) + "\n"


def to_html(tables: Sequence[Table]) -> str:
    """Write tables as one HTML page without scripts, fonts or pictures from elsewhere."""
    parts = [line for at, table in enumerate(tables) for line in _html(table, level=1 if at == 0 else 2)]
    return html_page(tables[0].title, "\n".join(parts), STYLE)


def _html(table: Table, level: int) -> Iterator[str]:
    yield f"<h{level}>{escape(table.title)}</h{level}>"
    yield from (f"<p>{escape(words)}</p>" for words in table.words)
    verdicts = [next((cell for cell in row if cell in VERDICTS), "") for row in table.rows]
    classes = [verdict.replace(" ", "-") for verdict in verdicts]
    yield html_table(table.header, table.rows, numbers=table.numbers, row_classes=classes)
