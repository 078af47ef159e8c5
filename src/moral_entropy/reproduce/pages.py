"""The comparison → Markdown, and one HTML file that works offline.

Takes tables of text, returns text; everything that came from a file is escaped. Touches no files.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moral_entropy.reproduce.beside import VERDICTS
from moral_entropy.reproduce.published import CORPORA, COUNTS, DIGITS, READINGS, SECTIONS, spell, spell_gap

if TYPE_CHECKING:
    import polars as pl

NOTHING = "–"

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
        What stands above it.
    header, rows
        Its cells.
    numbers
        Columns that are set flush right.
    """

    title: str
    words: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()


def comparison_tables(beside: pl.DataFrame, basis: Sequence[str]) -> list[Table]:
    """Give the tables of the comparison: sums, readings, and one for each section.

    Parameters
    ----------
    beside
        From `lay_beside`.
    basis
        What ours was computed from, a sentence each.
    """
    sections = [_section(beside.filter(section=name), title) for name, title in SECTIONS.items()]
    return [_sums(beside, basis), _readings(), *sections]


def sum_up(beside: pl.DataFrame) -> list[tuple[str, ...]]:
    """Count the verdicts of each section, and the figures within tolerance whatever the verdict."""
    rows = []
    for name, title in SECTIONS.items():
        own = beside.filter(section=name)
        counts = [str(int((own["verdict"] == verdict).sum())) for verdict in VERDICTS]
        rows.append((title, str(own.height), *counts, str(int(own["within"].sum()))))
    return rows


def _sums(beside: pl.DataFrame, basis: Sequence[str]) -> Table:
    words = (
        *basis,
        "Same: within the tolerance of its row. Not comparable: there is no figure of ours, or it is of something "
        "else, as all but the sizes are on simulated votes. Within: how many of ours are within the tolerance, "
        "comparable or not. pp: percentage points.",
    )
    header = ("section", "figures", *VERDICTS, "within")
    return Table("The paper's figures beside ours", words, header, tuple(sum_up(beside)), frozenset(header[1:]))


def _readings() -> Table:
    words = (
        "Where the paper does not say what was averaged, its figure is laid beside ours in each reading. In the table "
        "below, and in the columns domain and foundation, (all) pools and (mean) averages.",
    )
    places = {"any foundation": ("(all)", "any foundation"), "pooled": ("(all)", "(all)"), "mean": ("(all)", "(mean)")}
    rows = tuple((name, *places.get(name, ("(mean)", "(mean)")), meaning) for name, meaning in READINGS.items())
    return Table("Readings", words, ("reading", "domain", "foundation", "what it is"), rows)


def _section(own: pl.DataFrame, title: str) -> Table:
    columns = [
        "corpus",
        *(name for name in ("domain", "foundation", "rule", "reference", "reading") if _told(own[name])),
    ]
    header = (*columns, "metric", "paper", "ours", "interval", "difference", "tolerance", "verdict", "note")
    rows = tuple(_cells(row, columns) for row in own.iter_rows(named=True))
    return Table(title, (), header, rows, frozenset({"paper", "ours", "interval", "difference", "tolerance"}))


def _told(column: pl.Series) -> bool:
    """Tell whether a column says anything at all."""
    return bool((~column.is_in(["", "(all)"])).any())


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
    lines = [f"{'#' * level} {_plain(table.title)}", ""]
    for words in table.words:
        lines += [_plain(words), ""]
    lines.append(markdown_rows(table.header, table.rows, table.numbers))
    return "\n".join(lines)


def markdown_rows(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[str] = frozenset()) -> str:
    """Write a header and rows as a Markdown table."""
    rule = ["---:" if name in numbers else "---" for name in header]
    lines = ["| " + " | ".join(line) + " |" for line in ([*map(_plain, header)], rule)]
    lines += ["| " + " | ".join(map(_plain, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Keep a text from being taken for Markdown or HTML."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
    for mark in "*_`[":
        text = text.replace(mark, "\\" + mark)
    return text.replace("&", "&amp;").replace("<", "&lt;")


def to_html(tables: Sequence[Table]) -> str:
    """Write tables as one HTML page without scripts, fonts or pictures from elsewhere."""
    title = html.escape(tables[0].title)
    head = f'<meta charset="utf-8">\n<title>{title}</title>\n<style>\n{STYLE}\n</style>'
    body = "\n".join(line for at, table in enumerate(tables) for line in _html(table, level=1 if at == 0 else 2))
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def _html(table: Table, level: int) -> Iterator[str]:
    yield f"<h{level}>{html.escape(table.title)}</h{level}>"
    for words in table.words:
        yield f"<p>{html.escape(words)}</p>"
    kinds = [' class="number"' if name in table.numbers else "" for name in table.header]
    yield "<table>"
    cells = (f"<th{kind}>{html.escape(name)}</th>" for kind, name in zip(kinds, table.header, strict=True))
    yield f"<thead><tr>{''.join(cells)}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        verdict = next((cell for cell in row if cell in VERDICTS), "")
        cells = (f"<td{kind}>{html.escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        yield f"<tr{_class(verdict)}>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def _class(verdict: str) -> str:
    return f' class="{verdict.replace(" ", "-")}"' if verdict else ""
