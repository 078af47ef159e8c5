"""Pages whose steps build on each other show what they print, word for word. `make golden` rewrites them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from moral_entropy.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"tutorial/first-audit.md": 6, "how-to/thin-data.md": 7}
"""Pages, and how many steps each has."""

STEP = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?P<printed>\n\n```\n(?:.*?)```$)?"
    r"|^```console\n\$ (?P<command>.*?)\n```\n\n```\n(?:.*?)```$",
    flags=re.MULTILINE | re.DOTALL,
)


def printed_by(command, capsys):
    program, *arguments = shlex.split(command)
    assert program == "moral-entropy"
    capsys.readouterr()
    assert main(arguments) == 0
    captured = capsys.readouterr()
    lines = (captured.out + captured.err).splitlines()
    return re.sub(r"\d+\.\d s\)", "… s)", "\n".join(line.rstrip() for line in lines).strip("\n")) + "\n"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_steps_print(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    path = DOCS / name

    def taken(step):
        if (code := step["code"]) is None:
            return f"```console\n$ {step['command']}\n```\n\n```\n{printed_by(step['command'], capsys)}```"
        capsys.readouterr()
        exec(compile(code, name, "exec"), {})
        shown = f"\n\n```\n{capsys.readouterr().out}```" if step["printed"] else ""
        return f"```python\n{code}```{shown}"

    made, steps = STEP.subn(taken, path.read_text(encoding="utf-8"))
    assert steps == PAGES[name]
    if os.environ.get("REWRITE_GOLDEN"):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8"), "the output changed; `make golden` if it should have"
