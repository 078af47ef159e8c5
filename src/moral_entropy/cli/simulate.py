"""`moral-entropy simulate`: votes drawn from a known truth, to a Parquet file."""

from __future__ import annotations

from dataclasses import dataclass
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
    scale: float | None = option("Size of the twin; 1, that of the corpus, when not given.")
    items: int | None = option("How many items, without --like.")
    annotators: int | None = option("How many annotators, without --like; 20 when not given.")
    votes_per_item: float | None = option("Votes per item, without --like; 3 when not given.")
    classes: int | None = option("How many labels, without --like; 2 when not given.")
    seed: int = option("Same seed, same votes.", 0, least=0)

    def __post_init__(self) -> None:
        """Refuse sizes that contradict each other."""
        super().__post_init__()
        sizes = ("items", "annotators", "votes_per_item", "classes")
        arguments = [name for name in sizes if getattr(self, name) is not None]
        msg = ""
        if self.like is not None and arguments:
            flag = f"--{arguments[0].replace('_', '-')}"
            msg = f"--like {self.like} has its corpus' sizes, so {flag} cannot be given too. Use --scale, not both."
        elif self.like is None and self.scale is not None:
            msg = "--scale is the size of a twin. Name the corpus with --like, or give --items."
        elif self.like is None and self.items is None:
            msg = "say what to simulate: --like mftc, mfrc or emfd, or --items 1000."
        if msg:
            raise UsageError(msg)

    @property
    def sizes(self) -> dict[str, Any]:
        """The keywords of `write_simulated`."""
        return {
            "n_items": self.items,
            "n_annotators": 20 if self.annotators is None else self.annotators,
            "votes_per_item": 3 if self.votes_per_item is None else self.votes_per_item,
            "n_labels": 2 if self.classes is None else self.classes,
            "seed": self.seed,
        }


def simulate(out: Out, options: SimulateOptions, force: Force = False) -> None:
    """Draw votes from a known truth, which is in the column gold.

    Example: moral-entropy simulate --like mftc -o votes.parquet
    """
    check_free(out, force=force)
    if out.suffix != ".parquet":
        msg = f"votes are written as Parquet, and {out.name} does not end in .parquet. Write -o {out.stem}.parquet."
        raise UsageError(msg)
    from moral_entropy.progress import bar

    with bar("simulating") as advance:
        if options.like is not None:
            from moral_entropy.corpora.twins import write_twin

            write_twin(options.like, out, seed=options.seed, scale=1.0 if options.scale is None else options.scale)
        else:
            from moral_entropy.corpora.simulate import write_simulated

            write_simulated(out, **options.sizes, advance=advance)
    typer.echo(f"{out}: votes with their truth; next: moral-entropy audit {out} --gold gold -o run/")
