"""Write the lists of flags in docs/reference/commands.md: one per command, from the flags that the command has.

Usage: python tools/flag_tables.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from typer import Context
from typer.core import TyperCommand

from moral_entropy.cli.commands import SENTENCES, load_command, load_function
from moral_entropy.cli.flags import options_by_stage
from moral_entropy.option_fields import metavar_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"
BEGIN, END = "<!-- flags -->", "<!-- end of flags -->"


def flags_of(command: str) -> list[Any]:
    """Return the flags of a command, those of one panel together, those of none last."""
    flags = [flag for flag in load_command(command).params if flag.param_type_name == "option"]
    panels = list(dict.fromkeys(panel_of(flag) for flag in flags if panel_of(flag)))
    return sorted(flags, key=lambda flag: panels.index(panel_of(flag)) if panel_of(flag) else len(panels))


def panel_of(flag: Any) -> str:
    """Return the heading under which `--help` shows a flag; empty where it has none."""
    return getattr(flag, "rich_help_panel", None) or ""


def table(command: str) -> str:
    """Return the flags of a command as Markdown: one list per panel."""
    parts = []
    for panel, flags in groupby(flags_of(command), key=panel_of):
        title = f"*{panel or 'General'}*\n\n" if panel or parts else ""
        parts.append(title + "".join(rows(list(flags))))
    if rare := "".join(rare_rows(command)):
        parts.append(f"*With `--set`*\n\n{rare}")
    return "\n".join(parts)


def rare_rows(command: str) -> Iterator[str]:
    """Return one line per option of a command that has no flag of its own."""
    options = [option for stage in options_by_stage(load_function(command)).values() for option in stage.values()]
    for option in options:
        if option.rare:
            name = option.flag.removeprefix("--")
            yield f"- `{name}={metavar_of(option) or 'true|false'}`: {option.help_text}\n"


def rows(flags: list[Any]) -> Iterator[str]:
    """Return one line per flag; what `--set` can set follows in a list of its own."""
    for flag in flags:
        names = ", ".join(f"`{name}`" for name in (*flag.opts, *flag.secondary_opts))
        value = "" if flag.is_flag else f" `{value_of(flag)}`"
        meaning = (
            "Any option of the list below; repeatable." if "--set" in flag.opts else f"{flag.help}{default_of(flag)}"
        )
        yield f"- {names}{value}: {meaning}\n"


def value_of(flag: Any) -> str:
    """Return what the value of a flag is called."""
    return str(flag.display_type_rich(ctx=Context(TyperCommand(None)))).strip("<>")


def default_of(flag: Any) -> str:
    """Return a sentence on the default of a flag that is not made from an option."""
    default = flag.show_default if isinstance(flag.show_default, str) else flag.default
    if flag.is_flag or default in (None, "") or default == [] or not flag.show_default:
        return ""
    return f" Default: {default}."


def with_tables(page: str) -> str:
    """Return the page with the lists of every command in its section."""
    for command in SENTENCES:
        section = rf"(^## {command}\n.*?{BEGIN}\n).*?({END})"
        found = re.search(section, page, flags=re.MULTILINE | re.DOTALL)
        if found is None:
            sys.exit(f"{PAGE.name} has no place for the flags of {command}: write {BEGIN} and {END} in its section.")
        page = f"{page[: found.end(1)]}\n{table(command)}\n{page[found.start(2) :]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
