"""eMFD: one row per highlight, a passage that a coder marked for the foundation assigned to them → annotations.

Layout: an unnamed index, `content, assigned_domain, coder_id, document_id, focus_duration`. What the authors call the
assigned domain is the foundation; the domain here is the article's topic, from GDELT's theme codes of the article.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.corpora.annotations import COLUMNS, pick_columns, plain_id, tidy_annotations
from moral_entropy.errors import VotesError
from moral_entropy.votes.source import open_source
from moral_entropy.votes.table import shown

if TYPE_CHECKING:
    import polars as pl

PUBLISHED = {
    "text": "content",
    "cell": "assigned_domain",
    "annotator": "coder_id",
    "document": "document_id",
}
UNTAGGED = "Untagged"
THEME_COLUMNS = ("themes", "theme", "v2themes", "gdelt_themes", "codes", "code")
BETWEEN_CODES = re.compile(r"[;,|\s]+")

ThemeMap = Mapping[str, Sequence[str]]
"""The codes of each domain; a code may end in `*`."""


def read_emfd(path: str | Path, domains: pl.DataFrame | None = None) -> pl.DataFrame:
    r"""Read the highlights from which the extended Moral Foundations Dictionary was made.

    Parameters
    ----------
    path
        `highlights_raw.csv`, or the same as Parquet; may be gzipped.
    domains
        Columns document and domain, from `read_themes`; without it no highlight has a domain.

    Returns
    -------
    pl.DataFrame
        One row per annotation: text, source_id (always null), domain, annotator, cell (the assigned foundation).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "highlights_raw.csv"
    >>> _ = path.write_text(",content,assigned_domain,coder_id,document_id,focus_duration\n"
    ...                     "0,they helped,care,12,7,2700.0\n")
    >>> read_emfd(path).rows()
    [('they helped', None, None, '12', 'care')]
    """
    import polars as pl

    frame = pick_columns(open_source(path), PUBLISHED, "highlights_raw.csv")
    frame = frame.with_columns(plain_id("annotator"), plain_id("document"), source_id=pl.lit(None, dtype=pl.String))
    if domains is None:
        frame = frame.with_columns(domain=pl.lit(None, dtype=pl.String))
    else:
        frame = frame.join(domains, on="document", how="left", maintain_order="left")
        frame = frame.with_columns(pl.col("domain").fill_null(UNTAGGED))
    return tidy_annotations(frame.select(COLUMNS))


def load_theme_map(path: str | Path | None = None) -> ThemeMap:
    """Read which codes belong to which domain.

    Parameters
    ----------
    path
        A TOML file with one list of codes per domain; the package's own by default.

    Examples
    --------
    >>> list(load_theme_map())
    ['Physical Violence', 'Asymmetric Threats', 'Internal Unrest', 'Civil Liberties']
    """
    if path is None:
        text = (files("moral_entropy.corpora") / "data" / "gdelt_themes.toml").read_text(encoding="utf-8")
        return tomllib.loads(text)
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        msg = f"the theme map {str(path)!r} cannot be read: {error.strerror}."
        raise VotesError(msg) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f'the theme map {path.name} is no TOML: {error}. Its lines read like  "Internal Unrest" = ["PROTEST"].'
        raise VotesError(msg) from error
    for domain, codes in table.items():
        if not isinstance(codes, list) or not all(isinstance(code, str) and code.strip("* ") for code in codes):
            msg = f'{path.name} says {domain} = {codes!r}. Write a list of codes: "{domain}" = ["PROTEST", "UNREST_*"].'
            raise VotesError(msg)
    return table


def domain_of(codes: Sequence[str], theme_map: ThemeMap) -> str:
    """Return the first domain of the map that one of the codes belongs to.

    Parameters
    ----------
    codes
        Theme codes of an article.
    theme_map
        From `load_theme_map`.

    Examples
    --------
    >>> domain_of(["UNREST_CHECKPOINT", "TAX_FNCACT"], {"Violence": ["KILL"], "Unrest": ["PROTEST", "UNREST_*"]})
    'Unrest'
    >>> domain_of(["TAX_FNCACT"], {"Violence": ["KILL"]})
    'Untagged'
    """
    found = [code.strip().upper() for code in codes]
    for domain, listed in theme_map.items():
        wanted = [code.strip().upper() for code in listed]
        exact = {code for code in wanted if not code.endswith("*")}
        begins = tuple(code.rstrip("*") for code in wanted if code.endswith("*"))
        if any(code in exact or code.startswith(begins) for code in found):
            return domain
    return UNTAGGED


def read_themes(path: str | Path, theme_map: ThemeMap) -> pl.DataFrame:
    r"""Read the themes of documents, and return the domain of each.

    Parameters
    ----------
    path
        A table with the columns document_id and themes: codes separated by semicolons, commas, bars or blanks; or a
        row a code. Offsets as in GDELT's V2Themes (`TERROR,120;KILL,300`) are passed over.
    theme_map
        From `load_theme_map`.

    Returns
    -------
    pl.DataFrame
        Columns document and domain, one row per document.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "themes.csv"
    >>> _ = path.write_text("document_id,themes\n7,TAX_FNCACT;KILL\n8,\n")
    >>> read_themes(path, load_theme_map()).rows()
    [('7', 'Physical Violence'), ('8', 'Untagged')]
    """
    import polars as pl

    source = open_source(path)
    names = [name.strip().casefold() for name in source.columns]
    column = next((name for name in THEME_COLUMNS if name in names), None)
    if column is None:
        msg = f"{source.name} has no column 'themes'. Found: {shown(source.columns)}. It needs document_id and themes."
        raise VotesError(msg)
    frame = pick_columns(source, {"document": "document_id", "themes": column}, "a table of document_id and themes")
    frame = frame.with_columns(plain_id("document"), pl.col("themes").fill_null("")).drop_nulls("document")
    joined = frame.group_by("document").agg(pl.col("themes").str.join(";")).sort("document")
    domains = [domain_of(BETWEEN_CODES.split(cell), theme_map) for cell in joined["themes"]]
    return joined.select("document", domain=pl.Series(domains, dtype=pl.String))
