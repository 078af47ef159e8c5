"""The corpora of the study → `Votes`: the authors' files, a table of votes, or a simulated twin."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl

from moral_entropy.corpora.published import CORPORA, foundations
from moral_entropy.corpora.twins import read_data, twin
from moral_entropy.options import Inputs
from moral_entropy.votes.table import Votes, refuse

THEME_COLUMNS = ("themes", "theme", "v2themes", "gdelt_themes", "codes", "code")
BETWEEN_CODES = re.compile(r"[;,|\s]+")


def corpora_in(inputs: Inputs) -> tuple[str, ...]:
    """Return the short names of the given corpora, in the order of `CORPORA`."""
    return tuple(name for name in CORPORA if inputs.twins or name in inputs.files)


def load_votes(name: str, inputs: Inputs, seed: int = 0) -> Votes:
    """Read or simulate one corpus: one yes/no question per foundation.

    A published file is read as the paper counts: a text that occurs in two domains is two items.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    inputs
        Files or twins.
    seed
        Seed of a simulated twin.

    Examples
    --------
    >>> votes = load_votes("mfrc", Inputs(twins=True, scale=0.01))
    >>> votes.questions, votes.n_items
    (('authority', 'care', 'fairness', 'loyalty', 'sanctity'), 180)
    """
    from moral_entropy.votes.formats.exports import detect_format
    from moral_entropy.votes.read import read_votes

    gold = inputs.gold if name == "emfd" else None
    if inputs.twins:
        votes = read_votes(twin(name, seed=seed, scale=inputs.scale), gold="gold")
        votes = replace(votes, reading=replace(votes.reading, source=f"the simulated twin of {CORPORA[name]}"))
    elif name == "emfd" and inputs.themes is not None and detect_format(Path(inputs.files[name])) == name:
        votes = _with_themes(Path(inputs.files[name]), read_themes(inputs.themes), gold)
    else:
        votes = read_votes(inputs.files[name], gold_file=gold)
    return _only_foundations(votes)


def _with_themes(path: Path, domains: pl.DataFrame, gold: str | Path | None) -> Votes:
    """Read the published file of eMFD with domains that follow from themes."""
    from moral_entropy.runs.folder import digest_of
    from moral_entropy.votes.formats.moral_corpora import read_emfd
    from moral_entropy.votes.read import read_votes
    from moral_entropy.votes.table import ReadingLog

    log = ReadingLog()
    votes = read_votes(read_emfd(path, log, domains), gold_file=gold)
    notes = (*log.notes, *votes.reading.notes)
    reading = replace(votes.reading, source=path.name, sha256=digest_of(path), dropped=log.dropped, notes=notes)
    return replace(votes, reading=reading)


def read_themes(path: str | Path) -> pl.DataFrame:
    r"""Read the GDELT themes of documents, and return the domain of each (`data/gdelt_themes.toml` says which).

    Parameters
    ----------
    path
        A table with the columns document_id and themes: codes separated by semicolons, commas, bars or blanks; or a
        row a code. Offsets as in GDELT's V2Themes (`TERROR,120;KILL,300`) are passed over.

    Returns
    -------
    pl.DataFrame
        Columns document and domain, one row per document.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "themes.csv"
    >>> _ = path.write_text("document_id,themes\n7,TAX_FNCACT;KILL\n8,\n")
    >>> read_themes(path).rows()
    [('7', 'Physical Violence'), ('8', 'Untagged')]
    """
    from moral_entropy.votes.formats.moral_corpora import read_columns
    from moral_entropy.votes.source import open_source
    from moral_entropy.votes.table import ReadingLog

    names = [name.strip().casefold() for name in open_source(path).columns]
    column = next((name for name in THEME_COLUMNS if name in names), "themes")
    frame = read_columns(Path(path), {"document": "document_id", "themes": column}, ReadingLog())
    frame = frame.with_columns(pl.col("themes").fill_null("")).drop_nulls("document")
    joined = frame.group_by("document").agg(pl.col("themes").str.join(";")).sort("document")
    domains = [_domain_of(BETWEEN_CODES.split(cell)) for cell in joined["themes"]]
    return joined.select("document", domain=pl.Series(domains, dtype=pl.String))


def _domain_of(codes: Iterable[str]) -> str:
    """Return the first domain of the map that one of the codes belongs to; a code of the map may end in `*`."""
    from moral_entropy.votes.formats.moral_corpora import UNTAGGED

    spelt = {code.strip().upper() for code in codes}
    for domain, listed in read_data("gdelt_themes.toml").items():
        begins = tuple(code.rstrip("*") for code in listed if code.endswith("*"))
        if spelt & set(listed) or any(code.startswith(begins) for code in spelt if begins):
            return str(domain)
    return UNTAGGED


def _only_foundations(votes: Votes) -> Votes:
    ballots = tuple(ballot for ballot in votes.ballots if ballot.question in foundations())
    questions = {ballot.question for ballot in ballots}
    missing = [name for name in foundations() if name not in questions]
    if missing:
        refuse(
            f"{votes.reading.source} has no votes on {len(missing)} of the five foundations. First: {missing[0]!r}. "
            f"Questions found: {', '.join(votes.questions)}. Name the published file, or a table of votes whose "
            "column question holds the foundations."
        )
    too_wide = [ballot for ballot in ballots if ballot.n_labels != 2]
    if too_wide:
        refuse(
            f"{len(too_wide)} of the five foundations in {votes.reading.source} have more than two labels. "
            f"First: {too_wide[0].question!r} has {', '.join(too_wide[0].labels)}. The study needs yes or no for each."
        )
    return replace(votes, ballots=ballots)
