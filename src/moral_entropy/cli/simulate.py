"""`moral-entropy simulate`: votes drawn from a known truth, to a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Force
from moral_entropy.errors import UsageError
from moral_entropy.files import check_free
from moral_entropy.option_fields import StageOptions, option

Out = Annotated[Path, Option("--out", "-o", metavar="FILE", help="The Parquet file to write.")]


@dataclass(frozen=True)
class SimulateOptions(StageOptions):
    """What to simulate: a twin of a moral corpus, or plain votes of some size."""

    like: Literal["mftc", "mfrc", "emfd"] | None = option("Make a twin of this moral corpus.")
    scale: str = option(
        "Size of the twin, 1 being that of the corpus; without --like, ordinal: labels are levels, and raters have a "
        "bias and a spread of their own.",
        "1",
        metavar="SIZE|ordinal",
    )
    items: int | None = option("How many items, without --like.")
    annotators: int = option("How many annotators, without --like.", 20)
    votes_per_item: float = option("Votes per item, without --like.", 3.0)
    classes: int = option("How many labels, without --like.", 2)
    seed: int = option("Same seed, same votes.", 0, least=0)

    def problems(self) -> Iterator[str]:
        """Yield sizes that contradict each other."""
        sizes = ("items", "annotators", "votes_per_item", "classes")
        changed = [name.replace("_", "-") for name in sizes if getattr(self, name) != getattr(type(self), name)]
        if self.like is not None and changed:
            problem = f"--like {self.like} has its corpus' sizes, so --{changed[0]} cannot be given too."
            yield f"{problem} Use --scale, not both."
        if self.like is None and self.scale not in ("1", "ordinal"):
            yield "--scale is the size of a twin. Name the corpus with --like, or give --items."
        if self.like is not None and not self.scale.replace(".", "", 1).isdigit():
            yield f"--scale is the size of a twin, such as 0.1, and not {self.scale!r}."
        if self.scale == "ordinal" and self.classes < 3:
            yield "--scale ordinal needs three levels or more: --classes 5."
        if self.like is None and self.items is None:
            yield "say what to simulate: --like mftc, mfrc or emfd, or --items 1000."


def simulate(out: Out, options: SimulateOptions, force: Force = False) -> None:
    """Draw votes from a known truth, which is in the column gold.

    Example: moral-entropy simulate --like mftc -o votes.parquet
    """
    check_free(out, force=force)
    if out.suffix != ".parquet":
        msg = f"votes are written as Parquet, and {out.name} does not end in .parquet. Write -o {out.stem}.parquet."
        raise UsageError(msg)
    from moral_entropy.progress import show_progress

    with show_progress() as progress:
        if options.like is not None:
            from moral_entropy.corpora.twins import write_twin

            write_twin(options.like, out, seed=options.seed, scale=float(options.scale))
        else:
            from moral_entropy.corpora.simulate import write_simulated

            sizes: dict[str, Any] = {"n_items": options.items, "n_annotators": options.annotators}
            sizes |= {"votes_per_item": options.votes_per_item, "n_labels": options.classes, "seed": options.seed}
            write_simulated(out, **sizes, ordered=options.scale == "ordinal", advance=partial(progress, "simulating"))
    typer.echo(f"{out}: votes with their truth; next: moral-entropy audit {out} --gold gold -o run/")
