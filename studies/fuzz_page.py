"""The figures of the fuzz study as a part of docs/evidence/reliability.md."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from fuzz_cases import Outcome
from page import put

TITLES = {
    "inputs": "mutated files, read or audited",
    "flags": "random flags of every command",
    "folders": "damaged run folders and models",
    "kills": "kills at random moments",
}
HEAD = "| what | cases | how they ended | hung or died | wrong | s of processor time | s that passed |"
CAUGHT = ("hung", "too large", "died", "broke")


def written(page: str, found: Mapping[str, Sequence[Outcome]], seed: int) -> str:
    """Return the page with the figures of a study in their place."""
    return put(page, "figures", "studies/fuzz.py", figures(found, seed))


def figures(found: Mapping[str, Sequence[Outcome]], seed: int) -> str:
    """Lay out what was tried, how it ended and what was wrong, as Markdown.

    Examples
    --------
    >>> print(figures({"kills": [Outcome("audit", "old"), Outcome("audit", "hung", "no end")]}, 0).splitlines()[4])
    | kills at random moments | 2 | hung 1, old 1 | 1 | 1 | 0 | 0 |
    """
    rows = [
        f"| {TITLES[kind]} | {len(outcomes):,} | {_ends(outcomes)} | {sum(one.end in CAUGHT for one in outcomes)} "
        f"| {sum(bool(one.wrong) for one in outcomes)} | {sum(one.processor for one in outcomes):,.0f} "
        f"| {sum(one.seconds for one in outcomes):,.0f} |"
        for kind, outcomes in found.items()
    ]
    wrong = [f"- `{one.what[:200]}`: {_line(one.wrong)}" for several in found.values() for one in several if one.wrong]
    when = f"{date.today().isoformat()}, {platform.machine()}, Python {platform.python_version()}, commit {_commit()}"
    head = [f"Measured on {when}; seed {seed}.", "", HEAD]
    body = ["| --- | ---: | --- | ---: | ---: | ---: | ---: |", *rows]
    return "\n".join([*head, *body, *(["", "Wrong:", "", *wrong] if wrong else [])])


def _ends(outcomes: Sequence[Outcome]) -> str:
    counted = Counter(one.end for one in outcomes)
    return ", ".join(f"{end} {n:,}" for end, n in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _line(text: str) -> str:
    return " ".join(text.split())[:300].replace("|", "\\|")


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    ran = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"
