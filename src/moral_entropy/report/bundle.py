"""The Vega libraries as one script, kept once made: bundling takes seconds, reading a file does not."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from moral_entropy.report.files import replace_text

SNIPPET = "window.vegaEmbed = vegaEmbed;"


def vega_bundle() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script that needs nothing else.

    Made by vl-convert from the copies it carries, so no network is needed; kept in the user's cache folder under
    vl-convert's version. Where nothing can be kept it is made each time.
    """
    import vl_convert

    kept = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    # The snippet that vl-convert would take by default; its type stub wants one named.
    script = vl_convert.javascript_bundle(SNIPPET).replace("</script", "<\\/script")
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_text(kept, script)
    return script


def cache_folder() -> Path:
    """Name the folder for things that can be made again."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".cache") / "moral-entropy"
