"""The Vega libraries as one script, kept once made: bundling takes seconds, reading a file does not."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from moral_entropy.cache import cache_folder
from moral_entropy.errors import FileError
from moral_entropy.files import write_text

SNIPPET = "window.vegaEmbed = vegaEmbed;"


def vega_bundle() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script that needs nothing else.

    Made by vl-convert from the copies it carries, so no network is needed; kept in the user's cache folder under
    vl-convert's version. Where nothing can be kept it is made each time.
    """
    with suppress(OSError, UnicodeDecodeError):
        return _kept().read_text(encoding="utf-8")
    # Late, since reading is all there is to do but once.
    import vl_convert

    # The snippet that vl-convert would take by default; its type stub wants one named.
    script = vl_convert.javascript_bundle(SNIPPET).replace("</script", "<\\/script")
    with suppress(OSError, FileError):
        _kept().parent.mkdir(parents=True, exist_ok=True)
        write_text(_kept(), script)
    return script


def _kept() -> Path:
    return cache_folder() / f"vega-{version('vl-convert-python')}.js"
