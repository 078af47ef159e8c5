"""Texts and tables as Markdown, HTML and JSON.

Everything from the data is escaped, so that it is shown and never taken for markup. Touches no files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from html import escape

NOTHING = "–"
"""What a cell without a value shows."""


def markdown_text(text: object) -> str:
    r"""Escape a text, so that Markdown shows it as it is; the result is a single line.

    Examples
    --------
    >>> print(markdown_text("a|b <script>"))
    a\|b &lt;script&gt;
    """
    plain = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]#|~])", r"\\\1", plain)


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Collection[str] = (), is_markdown: bool = False
) -> str:
    r"""Write a table in Markdown.

    Parameters
    ----------
    header, rows
        The cells; None is shown as a dash.
    numbers
        Columns that are aligned right.
    is_markdown
        Whether the cells are Markdown already; then only vertical bars are escaped.

    Examples
    --------
    >>> print(markdown_table(("a", "b"), [("x|y", 1)], numbers="b"))
    | a | b |
    | --- | ---: |
    | x\|y | 1 |
    """

    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(_markdown_cell(cell, is_markdown) for cell in cells) + " |"

    rule = "| " + " | ".join("---:" if name in numbers else "---" for name in header) + " |"
    return "\n".join([line(header), rule, *map(line, rows)])


def _markdown_cell(cell: object, is_markdown: bool) -> str:
    if cell is None:
        return NOTHING
    return " ".join(str(cell).split()).replace("|", "\\|") if is_markdown else markdown_text(cell)


def html_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    numbers: Collection[str] = (),
    row_classes: Iterable[str] = (),
) -> str:
    """Write a table in HTML.

    Parameters
    ----------
    header, rows
        The cells.
    caption
        What the table shows; left out when empty.
    numbers
        Columns whose cells are of the class `number`.
    row_classes
        One class per row, empty for none; without them no row has a class.

    Examples
    --------
    >>> print(html_table(["a", "b"], [["<i>", "1"]], numbers="b", row_classes=["same"]))
    <table><thead><tr><th>a</th><th class="number">b</th></tr></thead><tbody>
    <tr class="same"><td>&lt;i&gt;</td><td class="number">1</td></tr>
    </tbody></table>
    """
    rows = list(rows)
    columns = ["number" if name in numbers else "" for name in header]

    def line(tag: str, cells: Sequence[str], row_class: str) -> str:
        elements = (_element(tag, cell, name) for cell, name in zip(cells, columns, strict=True))
        return f"<tr{_class(row_class)}>{''.join(elements)}</tr>"

    lines = [line("td", row, name) for row, name in zip(rows, list(row_classes) or [""] * len(rows), strict=True)]
    above = _element("caption", caption) if caption else ""
    head = line("th", header, "")
    return f"<table>{above}<thead>{head}</thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table>"


def _element(tag: str, text: str, name: str = "") -> str:
    return f"<{tag}{_class(name)}>{escape(text)}</{tag}>"


def _class(name: str) -> str:
    return f' class="{escape(name)}"' if name else ""


def html_page(title: str, body: str, style: str) -> str:
    """Write an HTML page that needs no network and runs no script.

    Parameters
    ----------
    title
        A text.
    body, style
        HTML and CSS, as they are.
    """
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'
