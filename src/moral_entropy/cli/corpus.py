"""`moral-entropy corpus`: the published files of a moral corpus → a Parquet file of votes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from moral_entropy.cli.flags import Force, refuse_existing
from moral_entropy.corpora.options import CorpusName, CorpusOptions
from moral_entropy.errors import UsageError, harmless
from moral_entropy.options import StageOptions, option

PANEL = "Where the files are"

Name = Annotated[CorpusName, Argument(metavar="NAME", help="mftc, mfrc or emfd.")]
Files = Annotated[list[Path] | None, Argument(metavar="FILE…", help="The files its authors publish.")]
Out = Annotated[Path | None, Option("--out", "-o", metavar="FILE", help="The file to write.")]


@dataclass(frozen=True)
class FetchOptions(StageOptions):
    """Where the files are, and how to download one."""

    where: bool = option(False, "Say where the corpus is published.", panel=PANEL)
    fetch: str | None = option(None, "Download a file of the corpus to -o.", metavar="URL", panel=PANEL)
    sha256: str | None = option(None, "SHA-256 of the file to download.", metavar="HEX", panel=PANEL)
    max_size: str = option("2GB", "Largest file to download, as 500MB or 5GB.", metavar="SIZE", panel=PANEL)


def corpus(
    name: Name,
    reading: CorpusOptions,
    fetching: FetchOptions,
    files: Files = None,
    out: Out = None,
    force: Force = False,
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


def _check(files: list[Path], out: Path | None, fetching: FetchOptions) -> None:
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


def _fetch(name: str, flags: FetchOptions, out: Path, *, force: bool) -> None:
    from moral_entropy.corpora.fetch import Download, fetch_file, has_hash
    from moral_entropy.progress import bar

    wanted = Download(flags.fetch or "", flags.sha256 or "", max_size=_bytes("--max-size", flags.max_size))
    if has_hash(out, wanted.sha256):
        typer.echo(f"{out}: is there already, with that SHA-256")
        return
    refuse_existing(out, force=force)
    with bar("fetching") as advance:
        n_bytes = fetch_file(wanted, out, advance=advance)
    typer.echo(f"{out}: {n_bytes:,} bytes, SHA-256 as asked; next: moral-entropy corpus {name} {out} -o votes.parquet")


def _convert(name: str, files: list[Path], out: Path, options: CorpusOptions, *, force: bool) -> None:
    refuse_existing(out, force=force)
    from moral_entropy.corpora.corpus import read_corpus, write_corpus
    from moral_entropy.corpora.summary import summary_lines
    from moral_entropy.progress import bar

    with bar("reading") as advance:
        found = read_corpus(name, files, options)
        advance(0.8)
        n_votes = write_corpus(found, out)
    for line in summary_lines(found):
        typer.echo(harmless(line))
    repeats = " --on-repeat count" if options.on_repeat == "count" else ""
    typer.echo(f"\n{out}: {n_votes:,} votes; next: moral-entropy audit {out} -o run/ --preset mft{repeats}")


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
