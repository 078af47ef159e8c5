"""The tutorial shows what its commands print, word for word. `make golden` rewrites the page."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from moral_entropy.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-audit.md"
STEP = re.compile(
    r"^```python\n(.*?)^```$|^```console\n\$ (.*?)\n```\n\n```\n(.*?)```$", flags=re.MULTILINE | re.DOTALL
)


def printed_by(command, capsys):
    program, *arguments = shlex.split(command)
    assert program == "moral-entropy"
    capsys.readouterr()
    assert main(arguments) == 0
    captured = capsys.readouterr()
    lines = (captured.out + captured.err).splitlines()
    return re.sub(r"\d+\.\d s\)", "… s)", "\n".join(line.rstrip() for line in lines).strip("\n")) + "\n"


def test_the_tutorial_shows_what_its_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    page = PAGE.read_text(encoding="utf-8")

    def taken(step):
        code, command, _ = step.groups()
        if code is not None:
            exec(compile(code, str(PAGE), "exec"), {})
            return step[0]
        return f"```console\n$ {command}\n```\n\n```\n{printed_by(command, capsys)}```"

    made, steps = STEP.subn(taken, page)
    assert steps == 6
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text(encoding="utf-8"), "the output changed; `make golden` if it should have"
