"""Write the reference in docs/reference/python.md: every public name, from its signature and docstring.

Options of a stage are named only: the lists of flags have their meanings. Of classes that nobody constructs there is
the first paragraph; of `Run` also what it offers.

Usage: python tools/python_reference.py
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import moral_entropy as me

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "python.md"
BEGIN, END = "<!-- docstrings -->", "<!-- end of docstrings -->"
SECTION = re.compile(r"^(Parameters|Returns|Raises|Examples)\n-+\n", flags=re.MULTILINE)


def sections_of(docstring: str) -> dict[str, str]:
    r"""Split a docstring into its opening, under the name "", and its sections.

    Examples
    --------
    >>> sections_of("Count.\n\nParameters\n----------\nvotes\n    What was voted.")
    {'': 'Count.', 'Parameters': 'votes\n    What was voted.'}
    """
    opening, *rest = SECTION.split(docstring)
    return {"": opening.strip(), **{name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}}


def entries_of(section: str) -> Iterator[tuple[str, str]]:
    r"""Yield the names of a section and what is said of each, in one line.

    Examples
    --------
    >>> list(entries_of("low, high\n    Central interval\n    of p.\nn\n    Items."))
    [('low, high', 'Central interval of p.'), ('n', 'Items.')]
    """
    for found in re.finditer(r"^(\S.*)\n((?:[ \t]+.*\n?|\n)+)", section + "\n", flags=re.MULTILINE):
        yield found[1], " ".join(found[2].split())


def defaults_of(value: Any) -> dict[str, str]:
    """Return the default of every parameter that has one, as one types it."""
    taken = inspect.signature(value).parameters.values()
    # A factory shows as a placeholder, which says nothing.
    plain = {one.name: repr(one.default) for one in taken if one.default is not inspect.Parameter.empty}
    return {name: text for name, text in plain.items() if not text.startswith("<")}


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    told = [heads, ("---",) * len(heads), *(tuple(cell.replace("|", r"\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in told)


def parameters(value: Any, section: str) -> str:
    """Return the table of a function's own parameters, and the names of the options that it takes as keywords."""
    default, own = defaults_of(value), inspect.unwrap(value).__code__.co_varnames
    rows, options = [], []
    for names, meaning in entries_of(section):
        listed = [name.strip() for name in names.split(",")]
        if listed[0].lstrip("*") not in own:
            options += [f"`{name}`" for name in listed]
            continue
        shown = ", ".join(f"`{text}`" for text in dict.fromkeys(default[name] for name in listed if name in default))
        rows.append((", ".join(f"`{name}`" for name in listed), shown, meaning))
    own_table = table(("name", "default", "meaning"), rows) if rows else ""
    if not options:
        return own_table
    said = f"Options, by keyword as the [flags](commands.md#audit) of the same name: {', '.join(options)}."
    return f"{own_table}\n\n{said}" if rows else said


def members(owner: type) -> str:
    """Return the table of what a class offers beside its parameters, with the first sentence of each."""
    rows = []
    for name, member in vars(owner).items():
        function = callable(member) or isinstance(member, classmethod)
        if name.startswith("_") or not (function or isinstance(member, property | cached_property)):
            continue
        doc = inspect.getdoc(getattr(member, "func", None) or getattr(member, "__func__", None) or member) or ""
        first = " ".join(sections_of(doc)[""].split("\n\n")[0].split())
        rows.append((f"`{name}{'()' if function else ''}`", first))
    return table(("has", "what it is"), rows) if rows else ""


def described(name: str) -> str:
    """Return the section of one public name."""
    value = getattr(me, name)
    value = getattr(value, name) if inspect.ismodule(value) else value
    told = sections_of(inspect.getdoc(value) or "")
    if inspect.isclass(value):
        opening = told[""].split("\n\n")[0]
        return "\n\n".join(part for part in (f"### {name}", opening, members(value) if name == "Run" else "") if part)
    parts = [f"### {name}", told[""]]
    if "Parameters" in told:
        parts.append(parameters(value, told["Parameters"]))
    parts += [f"{head}: {' '.join(told[head].split())}" for head in ("Returns", "Raises") if head in told]
    if "Examples" in told:
        parts += examples(told["Examples"])
    return "\n\n".join(part for part in parts if part)


def examples(section: str) -> Iterator[str]:
    """Yield the examples, code in blocks of its own."""
    for block in re.split(r"\n\n+", section):
        yield f"```pycon\n{block}\n```" if block.startswith(">>>") else block


def with_reference(page: str) -> str:
    """Return the page with the reference in its place."""
    if BEGIN not in page or END not in page:
        sys.exit(f"{PAGE.name} has no place for the reference: write {BEGIN} and {END}.")
    before, _, rest = page.partition(BEGIN)
    text = "\n\n".join(described(name) for name in me.__all__ if name != "__version__")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
