"""What the commands print, word for word. `make golden` rewrites the files; read the diff before committing it."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from moral_entropy import __version__
from moral_entropy.cli.main import main

HERE = Path(__file__).parent


def judges_csv():
    """Four judges of uneven skill on sixty answers, a yes/no question, some judges absent."""
    draw = random.Random(11)
    lines = ["task,judge,rating,source"]
    for task in range(60):
        truth = draw.random() < 0.4
        for judge, skill in (("ada", 0.95), ("ben", 0.85), ("cyd", 0.75), ("dot", 0.7)):
            rating = ("yes" if truth == (draw.random() < skill) else "no") if draw.random() < 0.9 else ""
            lines.append(f"{task},{judge},{rating},{'forum' if task < 40 else 'wiki'}")
    return "\n".join(lines) + "\n"


def colours_csv():
    """One vote an item on three labels: thin, and said to be."""
    draw = random.Random(4)
    lines = ["item,annotator,label", *(f"i{i},a{i % 5},{draw.choice('rrggb')}" for i in range(40))]
    return "\n".join(lines) + "\n"


CASES = {
    "audit": (judges_csv, ["audit", "votes.csv", "-o", "run", "--prior-prevalence", "3", "--draws", "200"]),
    "audit_paper": (
        judges_csv,
        ["audit", "votes.csv", "-o", "run", "--prior-prevalence", "3", "--draws", "200", "--model", "paper"],
    ),
    "audit_parts": (judges_csv, ["audit", "votes.csv", "-o", "run", "--fit-by", "source", "--draws", "0"]),
    "audit_thin": (colours_csv, ["audit", "votes.csv", "-o", "run", "--prior-prevalence", "5", "--draws", "0"]),
    "verify": (judges_csv, ["audit", "votes.csv", "-o", "run", "--draws", "20", "--quiet"], ["verify", "run"]),
    "error_column": (judges_csv, ["audit", "votes.csv", "-o", "run", "--annotator", "juge"]),
    "error_prior": (judges_csv, ["audit", "votes.csv", "-o", "run", "--prior-confusion", "1.8,0"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_as_it_was(name, tmp_path, monkeypatch, capsys):
    make_votes, *before, arguments = CASES[name]
    (tmp_path / "votes.csv").write_text(make_votes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for earlier in before:
        main(earlier)
    capsys.readouterr()
    code = main(arguments)
    printed = capsys.readouterr()
    text = f"$ moral-entropy {' '.join(arguments)}\n{printed.out}{printed.err}[exit {code}]\n"
    text = re.sub(r"\(\d+\.\d s\)", "(… s)", text)
    text = text.replace(f"moral-entropy {__version__}\n", "moral-entropy …\n")
    golden = HERE / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), "the text changed; `make golden` if it should have"
