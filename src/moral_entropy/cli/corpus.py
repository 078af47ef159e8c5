"""`moral-entropy corpus`: the published files of a moral corpus → a Parquet file of votes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from moral_entropy.cli.flags import spread
from moral_entropy.errors import UsageError

READING, FETCHING = "Reading the files", "Where they are"

Name = Annotated[Literal["mftc", "mfrc", "emfd"], Argument(metavar="NAME", help="mftc, mfrc or emfd.")]
Files = Annotated[list[Path] | None, Argument(metavar="FILE…", help="The files its authors publish.")]
Out = Annotated[Path | None, Option("--out", "-o", metavar="FILE", help="The file to write.")]
Force = Annotated[bool, Option("--force", help="Replace a file that is already there.")]
Debug = Annotated[bool, Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True)
class CorpusFlags:
    """How to read the published files."""

    on_repeat: Annotated[
        Literal["error", "first", "last", "count"] | None,
        Option(help="When someone labelled a text twice.", show_default="first", rich_help_panel=READING),
    ] = None
    by_domain: Annotated[
        bool, Option("--by-domain", help="A text in two domains is two items.", rich_help_panel=READING)
    ] = False
    ignore_unknown: Annotated[
        bool, Option("--ignore-unknown", help="Pass over labels it does not have.", rich_help_panel=READING)
    ] = False
    emfd_votes: Annotated[
        Literal["all", "assigned"], Option(help="eMFD: no to the other four, or no vote.", rich_help_panel=READING)
    ] = "all"
    themes: Annotated[
        Path | None, Option(metavar="FILE", help="eMFD: document_id and GDELT themes.", rich_help_panel=READING)
    ] = None
    theme_map: Annotated[
        Path | None, Option(metavar="TOML", help="eMFD: which themes are of which domain.", rich_help_panel=READING)
    ] = None


@dataclass(frozen=True)
class FetchFlags:
    """Where the files are, and how to get one."""

    where: Annotated[bool, Option("--where", help="Say where the corpus is published.", rich_help_panel=FETCHING)] = (
        False
    )
    fetch: Annotated[
        str | None, Option(metavar="URL", help="Download a file of it to -o.", rich_help_panel=FETCHING)
    ] = None
    sha256: Annotated[
        str | None, Option("--sha256", metavar="HEX", help="Of the file to fetch.", rich_help_panel=FETCHING)
    ] = None
    max_size: Annotated[
        str, Option(metavar="SIZE", help="Largest file to fetch: 500MB, 5GB.", rich_help_panel=FETCHING)
    ] = "2GB"


@spread
def corpus(
    name: Name,
    reading: CorpusFlags,
    fetching: FetchFlags,
    files: Files = None,
    out: Out = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Read the published files of a moral corpus into a table of votes.

    Example: moral-entropy corpus mftc MFTC_V4_text.json -o votes.parquet
    """
    _check(files or [], out, fetching)
    if fetching.where:
        from moral_entropy.corpora.facts import where_published

        typer.echo(where_published(name))
    elif fetching.fetch is not None:
        _fetch(name, fetching, out or Path(), force=force)
    else:
        _convert(name, files or [], out or Path(), reading, force=force)


def _check(files: list[Path], out: Path | None, fetching: FetchFlags) -> None:
    alone = fetching.where or fetching.fetch is not None
    rules = [
        (fetching.where and fetching.fetch is not None, "--where and --fetch exclude each other. Choose one."),
        (alone and bool(files), "--where and --fetch take no files. Name files to read them, without these flags."),
        (fetching.fetch is None and fetching.sha256 is not None, "--sha256 is of a file to fetch. Add --fetch URL."),
        (
            fetching.fetch is not None and fetching.sha256 is None,
            "--fetch needs --sha256, so that what arrives can be checked. The publisher's page may state it.",
        ),
        (
            not alone and not files,
            "name the files of the corpus. --where says where they are published.",
        ),
        (not fetching.where and out is None, "say where to write, with -o FILE."),
    ]
    for wrong, msg in rules:
        if wrong:
            raise UsageError(msg)


def _fetch(name: str, flags: FetchFlags, out: Path, *, force: bool) -> None:
    from moral_entropy.corpora.fetch import Download, fetch_file, has_hash
    from moral_entropy.progress import bar

    wanted = Download(flags.fetch or "", flags.sha256 or "", max_size=_bytes("--max-size", flags.max_size))
    if has_hash(out, wanted.sha256):
        typer.echo(f"{out}: is there already, with that SHA-256")
        return
    _refuse_existing(out, force=force)
    with bar("fetching") as advance:
        n_bytes = fetch_file(wanted, out, advance=advance)
    typer.echo(f"{out}: {n_bytes:,} bytes, SHA-256 as asked; next: moral-entropy corpus {name} {out} -o votes.parquet")


def _convert(name: str, files: list[Path], out: Path, flags: CorpusFlags, *, force: bool) -> None:
    _refuse_existing(out, force=force)
    from moral_entropy.corpora.corpus import read_corpus, write_corpus
    from moral_entropy.corpora.summary import summary_lines
    from moral_entropy.progress import bar

    with bar("reading") as advance:
        found = read_corpus(name, files, **vars(flags))
        advance(0.8)
        n_votes = write_corpus(found, out)
    for line in summary_lines(found):
        typer.echo(line)
    repeats = " --on-repeat count" if flags.on_repeat == "count" else ""
    typer.echo(f"\n{out}: {n_votes:,} votes; next: moral-entropy audit {out} -o run/ --preset mft{repeats}")


def _refuse_existing(out: Path, *, force: bool) -> None:
    if out.exists() and not force:
        msg = f"{out} exists. Choose another file with -o, or replace it with --force."
        raise UsageError(msg)


def _bytes(flag: str, given: str) -> int:
    """Read a size in bytes, with or without a unit.

    Examples
    --------
    >>> _bytes("--max-size", "500MB"), _bytes("--max-size", "1.5 gb"), _bytes("--max-size", "12")
    (500000000, 1500000000, 12)
    """
    units = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
    read = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", given.strip().lower())
    if read is None or read[2] not in units:
        msg = f"{flag} {given!r} is no size. Write it as 500MB or 2GB."
        raise UsageError(msg)
    return int(float(read[1]) * units[read[2]])
