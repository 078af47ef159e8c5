"""The screen: progress bars, warnings, tables, and texts that came with the data.

Plain text where nobody watches: no colour, no bars, and nothing wider than the window but file names and warnings.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from string import Formatter
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moral_entropy.cli.main import silence_stdout
from moral_entropy.errors import harmless
from moral_entropy.markup import NOTHING

if TYPE_CHECKING:
    import polars as pl

WIDTH, LONGEST_CELL = 80, 60


class Screen(Console):
    """Standard output. When its reader has stopped reading, the rest goes nowhere, and the command goes on."""

    def on_broken_pipe(self) -> None:
        """Ignore broken pipes."""
        silence_stdout()


def window_width() -> int:
    """Return how many columns the window has; 80 where nobody watches."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 80


def print_parts(parts: Iterable[str | Table]) -> None:
    """Print lines and tables; a line is never broken, and nothing in it is taken for markup."""
    console = Screen(highlight=False, emoji=False)
    for part in parts:
        console.print(escape(harmless(part)) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))


def print_json(command: str, content: Mapping[str, Any]) -> None:
    """Print one JSON object: the name of the command, then its content; numbers that JSON lacks become null."""
    from json import dumps

    from moral_entropy.runs.folder import plain_facts

    record = {"command": command, **plain_facts(content)}
    try:
        print(harmless(dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=str)), flush=True)
    except BrokenPipeError:
        silence_stdout()


def show(command: str, content: Mapping[str, Any], parts: Iterable[str | Table], *, as_json: bool) -> None:
    """Print what a command found: its content as JSON, or lines and tables."""
    if as_json:
        print_json(command, content)
    else:
        print_parts(parts)


def plain_table(names: Sequence[str], rows: Iterable[Sequence[str]], n_words: int | None = None) -> Table:
    """Return a table without lines: the first columns, of words, to the left, the others, of figures, to the right.

    Parameters
    ----------
    names, rows
        The header, and the cells below it.
    n_words
        How many columns are words; all when not given.
    """
    # One space between columns: with a short question the tables of an audit fit in 80.
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for n, name in enumerate(names):
        table.add_column(name, justify="left" if n_words is None or n < n_words else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(harmless(cell)) for cell in row))
    return table


class Cells(Formatter):
    """Fills the template of a cell: `{share!p:.1f}` in percent, `{text:30}` a text of at most 30 characters."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Return a share in percent where a template says `!p`."""
        return 100.0 * value if conversion == "p" else super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        """Spell a text out, and cut it short where it is too long."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str) or format_spec.isdigit():
            return printable(str(value), int(format_spec or LONGEST_CELL))
        return str(super().format_field(value, format_spec))

    def cell(self, template: str, row: Mapping[str, Any]) -> str:
        """Return the text of a cell; without its interval, or a dash, where figures are missing."""
        for text in (template, template.partition(" (")[0]):
            # Not a number is not equal to itself.
            if all(row[name] is not None and row[name] == row[name] for _, name, _, _ in self.parse(text) if name):
                return self.vformat(text, (), row)
        return NOTHING


def rows_table(rows: pl.DataFrame | Iterable[Mapping[str, Any]], cells: str, n_words: int | None = None) -> Table:
    """Return a table of rows; each column is written as its header, a colon, and the template of its cells.

    Examples
    --------
    >>> table = rows_table([{"name": "any", "value": 0.25, "n": 1200}], "rule: {name} | %: {value!p:.0f} | n: {n:,}")
    >>> [list(column.cells)[0] for column in table.columns]
    ['any', '25', '1,200']
    """
    heads, templates = zip(*(column.split(": ", 1) for column in cells.split(" | ")), strict=True)
    records: Any = rows.to_dicts() if hasattr(rows, "to_dicts") else rows
    fill_in = Cells().cell
    return plain_table(heads, ([fill_in(template, row) for template in templates] for row in records), n_words)


def filled(text: str, indent: str = "") -> str:
    """Break a sentence into lines of 80 characters; words are never broken."""
    return fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def printable(text: str, longest: int) -> str:
    r"""Return a text on one line, with everything that is not printable spelt out.

    Examples
    --------
    >>> printable("red \x1b[31m\nalert", 40)
    'red \\x1b[31m\\nalert'
    """
    short = text if len(text) <= longest else text[:longest] + "..."
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in short)
