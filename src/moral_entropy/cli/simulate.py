"""`moral-entropy simulate`: votes drawn from a known truth, to a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Force, refuse_existing
from moral_entropy.errors import UsageError

Like = Annotated[Literal["mftc", "mfrc", "emfd"] | None, Option(help="Make a twin of this moral corpus.")]
Scale = Annotated[
    float | None, Option(metavar="X", help="Size of the twin; 1 is that of the corpus.", show_default="1")
]
Items = Annotated[int | None, Option(metavar="N", help="How many items, without --like.")]
Annotators = Annotated[int | None, Option(metavar="N", help="How many annotators, without --like.", show_default="20")]
VotesPerItem = Annotated[float | None, Option(metavar="X", help="Votes per item, without --like.", show_default="3")]
Classes = Annotated[int | None, Option(metavar="N", help="How many labels, without --like.", show_default="2")]
Seed = Annotated[int, Option(min=0, metavar="N", help="Same seed, same votes.")]
Out = Annotated[Path, Option("--out", "-o", metavar="FILE", help="The Parquet file to write.")]


def simulate(
    out: Out,
    like: Like = None,
    scale: Scale = None,
    items: Items = None,
    annotators: Annotators = None,
    votes_per_item: VotesPerItem = None,
    classes: Classes = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Draw votes from a known truth, which is in the column gold.

    Example: moral-entropy simulate --like mftc -o votes.parquet
    """
    sizes = {"--items": items, "--annotators": annotators, "--votes-per-item": votes_per_item, "--classes": classes}
    _check(like, scale, sizes)
    refuse_existing(out, force=force)
    from moral_entropy.progress import bar

    with bar("simulating") as advance:
        if like is not None:
            from moral_entropy.corpora.twins import write_twin

            write_twin(like, out, seed=seed, scale=1.0 if scale is None else scale)
        else:
            from moral_entropy.corpora.simulate import write_simulated

            write_simulated(
                out,
                n_items=items or 0,
                n_annotators=20 if annotators is None else annotators,
                votes_per_item=3 if votes_per_item is None else votes_per_item,
                n_labels=2 if classes is None else classes,
                seed=seed,
                advance=advance,
            )
    typer.echo(f"{out}: votes with their truth; next: moral-entropy audit {out} -o run/")


def _check(like: str | None, scale: float | None, sizes: dict[str, float | None]) -> None:
    given = [flag for flag, size in sizes.items() if size is not None]
    if like is not None and given:
        msg = f"--like {like} has its corpus' sizes, so {given[0]} cannot be given too. Use --scale, or drop --like."
        raise UsageError(msg)
    if like is None and scale is not None:
        msg = "--scale is the size of a twin. Name the corpus with --like, or give --items."
        raise UsageError(msg)
    if like is None and sizes["--items"] is None:
        msg = "say what to simulate: --like mftc, mfrc or emfd, or --items 1000."
        raise UsageError(msg)
