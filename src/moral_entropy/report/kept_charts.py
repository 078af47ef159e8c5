"""The charts' specifications, kept once made: Altair takes longer to load than a small audit to compute.

A specification depends on how many names it colours, and on the names only where it lists them. So charts are made
with blanks for names and colours, kept in the user's cache folder, and filled in for each run.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from moral_entropy.cache import cache_folder
from moral_entropy.report.files import replace_text
from moral_entropy.report.foundations import Palette


def kept_chart_specs(targets: Palette, questions: Palette, *, domains: bool) -> dict[str, Any]:
    """Give every chart by name, as `chart_specs` does; made only where no earlier run has left them.

    Parameters
    ----------
    targets, questions
        What marks are coloured by: of rates, and of entropies and annotators.
    domains
        Whether the run has any.
    """
    blanks = _blanks("target", len(targets.names)), _blanks("question", len(questions.names))
    specs = _with_blanks(*blanks, domains)
    filling: dict[str, str] = {}
    for blank, palette in zip(blanks, (targets, questions), strict=True):
        filling |= zip(blank.names, palette.names, strict=True)
        filling |= zip(blank.colours, palette.colours, strict=True)
    filled: dict[str, Any] = _fill(specs, filling)
    return filled


def _blanks(what: str, n: int) -> Palette:
    return Palette([f"[{what} {i}]" for i in range(n)], [f"[colour of {what} {i}]" for i in range(n)])


def _fill(part: Any, filling: dict[str, str]) -> Any:
    if isinstance(part, dict):
        return {key: _fill(value, filling) for key, value in part.items()}
    if isinstance(part, list):
        return [_fill(value, filling) for value in part]
    return filling.get(part, part) if isinstance(part, str) else part


def _with_blanks(targets: Palette, questions: Palette, domains: bool) -> dict[str, Any]:
    made_by = _makers()
    with suppress(OSError):
        file = cache_folder() / f"charts-{len(targets.names)}-{len(questions.names)}-{domains:d}.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(file.read_text(encoding="utf-8"))
            if kept["made_by"] == made_by:
                specs: dict[str, Any] = kept["specs"]
                return specs
        specs = _made(targets, questions, domains)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(file, json.dumps({"made_by": made_by, "specs": specs}))
        return specs
    return _made(targets, questions, domains)


def _makers() -> str:
    """Name what a specification follows from: Altair's version and the file that uses it."""
    source = Path(__file__).with_name("charts.py").read_bytes()
    return f"altair {version('altair')}, charts.py {hashlib.sha256(source).hexdigest()}"


def _made(targets: Palette, questions: Palette, domains: bool) -> dict[str, Any]:
    from moral_entropy.report.charts import chart_specs

    return chart_specs(targets, questions, domains=domains)
