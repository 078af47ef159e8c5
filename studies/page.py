"""Pages of docs/ that studies write into: text goes between two markers, and the prose around them stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def write_parts(file: Path, script: str, parts: Mapping[str, str]) -> None:
    """Put texts between the markers of several parts of a page, by the names of the parts."""
    page = file.read_text(encoding="utf-8")
    for name, text in parts.items():
        page = put(page, name, script, text)
    file.write_text(page, encoding="utf-8")


def put(page: str, part: str, script: str, text: str) -> str:
    """Put text between the markers of one part of a page.

    Parameters
    ----------
    page
        The page as it is.
    part
        Name of the part.
    script
        Who writes it, as the first marker says.
    text
        What to put there.

    Examples
    --------
    >>> put("a <!-- x: written by y.py --> old <!-- end of x --> b", "x", "y.py", "new").split()[-7:]
    ['new', '<!--', 'end', 'of', 'x', '-->', 'b']
    """
    begin, end = f"<!-- {part}: written by {script} -->", f"<!-- end of {part} -->"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not between.search(page):
        msg = f"the page has no place for the tables: {begin} … {end}"
        raise ValueError(msg)
    return between.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)
