"""Report data → one HTML file that works offline.

Nothing from the data is markup: it goes into the page as JSON in a script element that does not run, or through
Jinja's escaping. A content security policy lets only the script written here run, known by its hash, and lets the page
load nothing at all. Charts are plain HTML: the page needs no chart library.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from moral_entropy.files import check_free, write_text
from moral_entropy.report.page import ITEMS, page_data
from moral_entropy.report.words import TEMPLATES, fill_template
from moral_entropy.runs.folder import note_files
from moral_entropy.runs.run import Run, as_run

REPORT = "report.html"

MAX_BYTES = 1_500_000
"""A page that is larger is made again with fewer items."""

_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def write_report(
    run: Run | str | Path, out: str | Path | None = None, *, items: int = ITEMS, force: bool = False
) -> Path:
    """Write the report of a run folder and return its path.

    Parameters
    ----------
    run
        The run, or its folder.
    out
        The HTML file; `report.html` in the run folder if not given.
    items
        Rows of the item explorer at most.
    force
        Replace a file that is already at `out`. The `report.html` of the run itself is always replaced.
    """
    run = as_run(run)
    target = run.folder / REPORT if out is None else Path(out)
    is_of_run = run.path is not None and target.resolve() == (run.path / REPORT).resolve()
    if not is_of_run:
        check_free(target, force=force)
    write_text(target, render(run, items=items))
    if is_of_run:
        note_files(run.folder, [REPORT])
    return target


def render(run: Run, *, items: int = ITEMS) -> str:
    """Return the HTML of a run's report, at most `MAX_BYTES` long unless a page without items is longer.

    Parameters
    ----------
    run
        The run.
    items
        Rows of the item explorer at most.
    """
    # Late: only documents need Jinja.
    from markupsafe import Markup

    texts, interactive = page_data(run, max_items=items)
    # Ours, or escaped by script_json: these go in as they are.
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    raw = {"style": style, "script": script, "json": script_json(interactive)}
    escaped = {name: Markup(text) for name, text in raw.items()}
    page = fill_template("report.html", data=texts, policy=content_policy(script), **escaped)
    if len(page.encode()) > MAX_BYTES and items > 1:
        return render(run, items=items // 2)
    return page


def content_policy(script: str) -> str:
    """Return a content security policy that lets this script run and nothing be loaded.

    Examples
    --------
    >>> content_policy("1").split("; ")[:2]
    ["default-src 'none'", "script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"]
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    blocked = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src 'sha256-{digest}'; {blocked}"


def script_json(value: Any) -> str:
    r"""Write JSON that is safe inside a script element: no character of it can end the element or begin another.

    Examples
    --------
    >>> print(script_json({"text": "</script>"}))
    {"text":"\u003c/script\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_UNSAFE)
