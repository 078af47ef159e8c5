"""`moral-entropy train`: a text classifier of the labels of a run."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from typer import Option

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.options import TrainOptions
from moral_entropy.progress import show_progress

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The model's folder.")]


def train(run: Run, out: Out, options: TrainOptions, quiet: Quiet = False) -> None:
    """Train a text classifier on the labels of a run.

    Example: moral-entropy train run/ --labels soft --model minilm -o model/
    """
    from moral_entropy.cli.screen import filled, plain_table, print_parts
    from moral_entropy.train.run import TABLE, comparison_cells, comparison_lines, run_training, worth_lines

    with show_progress(hidden=quiet) as progress:
        facts = run_training(run, out, options, advance=partial(progress, "training"))
    if quiet:
        return
    sizes = f"{facts['items']:,} texts to learn from, {facts['test_items']:,} to test on; targets: {facts['labels']}"
    parts: list[Any] = [
        sizes,
        *map(filled, (*facts["notes"], *(worth_lines(facts["worth"]) if facts["worth"] else ()))),
    ]
    if "comparison" in facts:
        parts.append(f"\n{facts['model']} trained on each kind of target, the same texts tested (90% intervals):")
        header = ("against", "trained on", "accuracy", "AUC")
        parts.append(plain_table(header, comparison_cells(facts["comparison"]), 2))
        parts += [filled(line, "  ") for line in comparison_lines(facts["comparison"])]
        parts.append(f"{out}/{TABLE}: all figures, question by question\n")
    print_parts([*parts, f"{out}: the model\nnext: moral-entropy predict {out} texts.csv -o out.parquet"])
