"""List sentences of more than 35 words and private words in what users read: the README and the pages of docs/.

Usage: python tools/prose.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 35
PRIVATE = re.compile(
    r"\b(rooms?|walks?|crowds alike|similar crowds|climbs?|rivals?|pushes|push|cures?|yardstick)\b",
    flags=re.IGNORECASE,
)
"""Words of an earlier dialect: package, call graph, optimiser, second mode, contribution, remedy, check instead."""


def pages() -> list[Path]:
    """Return what users read; decisions and notebooks' outputs are apart."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in paths if "adr" not in path.parts]


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of a page: paragraphs and entries of lists, without code, tables and comments.

    Examples
    --------
    >>> list(sentences("# Title\n\nOne. Two, e.g. three.\n\n| a | b |\n\n- Four"))
    ['One.', 'Two, e.g. three.', 'Four']
    """
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not re.match(r" {4}|\s*(\||#|!\[|<)|.* \| ", line)]
    for block in re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", "\n".join(lines)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"^\s*([-*]|\d+\.) ", "", block))
        plain = " ".join(re.sub(r"`[^`]*`(, `[^`]*`)*", "Code", plain).split())
        yield from (part for part in re.split(r"(?<=[.!?:;])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z*`(\d])", plain) if part)


def problems() -> Iterator[str]:
    """Yield one line per long sentence and per private word."""
    for path in pages():
        for sentence in sentences(path.read_text(encoding="utf-8")):
            name, n_words = path.relative_to(ROOT), len(sentence.split())
            if n_words > LONGEST:
                yield f"{name}: {n_words} words: {sentence}"
            if word := PRIVATE.search(sentence):
                yield f"{name}: {word[0]!r}: {sentence}"


if __name__ == "__main__":
    lines = list(problems())
    sys.exit("\n".join(lines) if lines else 0)
