"""Report data → one HTML file that works offline.

Nothing from the data is markup: it goes into the page as JSON in a script element that does not run, or through
Jinja's escaping. A content security policy lets only the scripts written here run, known by their hashes, and
lets the page load nothing at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from moral_entropy.cache import cache_folder
from moral_entropy.errors import FileError
from moral_entropy.files import check_free, write_text
from moral_entropy.report.chart_specs import chart_specs
from moral_entropy.report.data import ITEMS, report_data, script_json
from moral_entropy.report.tables import palettes
from moral_entropy.runs.folder import note_files
from moral_entropy.runs.run import Run, as_run

REPORT = "report.html"
TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("basics.js", "sortable.js", "charts.js", "rules.js", "entropy.js", "people.js", "judges.js", "items.js",
           "start.js")  # fmt: skip
"""The page's own script, in pieces that are put together in this order."""

SNIPPET = "window.vegaEmbed = vegaEmbed;"


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
    own = run.path is not None and target.resolve() == (run.path / REPORT).resolve()
    if not own:
        check_free(target, force=force)
    write_text(target, render(run, items=items))
    if own:
        note_files(run.folder, [REPORT])
    return target


def render(run: Run, *, items: int = ITEMS) -> str:
    """Return the HTML of a run's report.

    Parameters
    ----------
    run
        The run.
    items
        Rows of the item explorer at most.
    """
    # Late: only reports need Jinja.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    data = report_data(run, cap=items)
    data["charts"] = chart_specs(*palettes(run), domains=bool(data["domains"]))
    bundle, script = vega_bundle(), "".join(asset(name) for name in SCRIPTS)
    # Ours, or escaped by script_json: these four go in as they are.
    raw = {"style": asset("report.css"), "json": script_json(data), "bundle": bundle, "script": script}
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return templates.get_template("report.html").render(
        data=data, policy=content_policy([bundle, script]), **{name: Markup(text) for name, text in raw.items()}
    )


def content_policy(scripts: Sequence[str]) -> str:
    """Return a content security policy that lets these scripts run and nothing be loaded.

    Examples
    --------
    >>> content_policy(["1"]).split("; ")[:2]
    ["default-src 'none'", "script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"]
    """
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


def vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that needs nothing else.

    vl-convert makes it from the copies it carries, without a network, in seconds. It is kept in the user's cache
    folder under vl-convert's version; where nothing can be kept it is made each time.
    """
    with suppress(OSError, UnicodeDecodeError):
        return _kept_bundle().read_text(encoding="utf-8")
    # Late: needed the first time only.
    import vl_convert

    # The snippet that vl-convert would take by default; its type stub wants one named.
    script = vl_convert.javascript_bundle(SNIPPET).replace("</script", "<\\/script")
    with suppress(OSError, FileError):
        _kept_bundle().parent.mkdir(parents=True, exist_ok=True)
        write_text(_kept_bundle(), script)
    return script


def _kept_bundle() -> Path:
    return cache_folder() / f"vega-{version('vl-convert-python')}.js"


@cache
def asset(name: str) -> str:
    """Return a script or style sheet of the templates."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    if "</script" in text.lower() or "</style" in text.lower():
        msg = f"{name} would end its own element"
        raise AssertionError(msg)
    return text
