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
    """What was read, and from the verdict on; the tables between them are left out."""
    said = (HERE / "readme.txt").read_text(encoding="utf-8").partition("\n")[2].rpartition("[exit 0]")[0]
    first, last = said.split("\n\n")[0], said[said.index("Can I ship") :]
    return f"{first}\n…\n{last.rstrip()}\n"


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
