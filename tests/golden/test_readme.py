"""The README shows what its first command prints: a part of the golden text `readme.txt`. `make golden` rewrites it."""

from __future__ import annotations

import os
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "README.md"
SHOWN = re.compile(
    r"(?<=<!-- what the first audit prints -->\n```\n)(?P<text>.*?)^```$(?=\n\n)", flags=re.DOTALL | re.MULTILINE
)


def first_screen():
    """What `moral-entropy audit` prints of the votes in examples/, as the golden text has it."""
    text = (HERE / "readme.txt").read_text(encoding="utf-8").partition("\n")[2].rpartition("[exit 0]")[0]
    return f"{text.rstrip()}\n"


def test_the_votes_of_the_readme_are_in_the_repository():
    from golden.test_cli_text import votes_csv

    assert (PAGE.parent / "examples" / "votes.csv").read_text(encoding="utf-8") == votes_csv()


def test_the_readme_shows_what_the_first_audit_prints():
    page = PAGE.read_text(encoding="utf-8")
    made, times = SHOWN.subn(lambda _: f"{first_screen()}```", page, count=1)
    assert times == 1
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text(encoding="utf-8"), "the output changed; `make golden` if it should have"


def test_every_block_of_the_readme_is_closed():
    fences = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("```")]
    assert len(fences) % 2 == 0
    assert all(fence == "```" for fence in fences[1::2]), "a block is swallowed by the one before it"
