"""The README shows what its first command prints. `make golden` rewrites it."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

from moral_entropy.cli.main import main

PAGE = Path(__file__).parents[2] / "README.md"
SHOWN = re.compile(r"(?<=<!-- what the first audit prints -->\n```\n).*?(?=```)", flags=re.DOTALL)


def votes_csv():
    """Five raters of uneven skill on 400 texts from two sources, some of them absent."""
    draw = random.Random(3)
    lines = ["text_id,rater,vote,source"]
    for text in range(400):
        truth, source = draw.random() < 0.3, ("forum", "wiki")[text % 2]
        for rater, skill in (("ann", 0.95), ("bob", 0.9), ("cyd", 0.85), ("dee", 0.8), ("eve", 0.75)):
            if draw.random() < 0.8:
                lines.append(f"{text},{rater},{'yes' if truth == (draw.random() < skill) else 'no'},{source}")
    return "\n".join(lines) + "\n"


def test_the_readme_shows_what_the_first_audit_prints(tmp_path, monkeypatch, capsys):
    (tmp_path / "votes.csv").write_text(votes_csv())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["audit", "votes.csv", "-o", "run/"]) == 0
    said = re.sub(r"\(\d+\.\d s\)", "(… s)", capsys.readouterr().out)
    first, last = said.split("\n\n")[0], said[said.index("Can I ship") :]
    page = PAGE.read_text(encoding="utf-8")
    made = SHOWN.sub(lambda _: f"{first}\n…\n{last.rstrip()}\n", page, count=1)
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text(encoding="utf-8"), "the output changed; `make golden` if it should have"
