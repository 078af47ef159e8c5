"""`moral-entropy next`: what to have annotated next, and by whom."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from moral_entropy.cli.flags import Force, Json, Run, names, refuse_existing
from moral_entropy.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from moral_entropy.runs.run import Run as OpenRun

Number = Annotated[int, Option("--number", "-n", min=1, metavar="N", help="How many items.")]
Out = Annotated[Path | None, Option("--out", "-o", metavar="FILE", help="Write a file instead.")]
To = Annotated[
    Literal["csv", "label-studio", "argilla", "prodigy"],
    Option("--to", help="What the file is for: a spreadsheet, or an annotation tool that imports it."),
]
Question = Annotated[str | None, Option("--question", metavar="NAME", help="Only this question.")]
For = Annotated[
    Literal["votes", "people"],
    Option("--for", help="votes: what one more vote would settle; people: labels to accept, and items to send."),
]
Agreement = Annotated[
    float,
    Option("--agreement", metavar="X", help="With --for people: share of accepted labels that people agree with."),
]
Annotators = Annotated[
    str | None,
    Option(
        "--annotators", metavar="A,B,…", help="Who can be asked; all whose checked votes are not worse than others'."
    ),
]


LEGEND = (
    "gain: what the vote is expected to tell, in nats (0.693 settles a coin toss);",
    "average: the same of an average annotator; entropy, p and votes: as they are now",
)


def next_items(
    run: Run,
    number: Number = 100,
    out: Out = None,
    to: To = "csv",
    question: Question = None,
    annotators: Annotators = None,
    audience: For = "votes",
    agreement: Agreement = 0.95,
    force: Force = False,
    json: Json = False,
) -> None:
    """List the items that one more vote would settle most, and whose vote that would be.

    Items that lie between labels are only counted: votes would hardly help there. With --for people: which labels can
    be accepted without a look, by the answers that are known, and which items people should label first.

    Example: moral-entropy next run/ -n 100 -o queue.csv
    """
    asked = names("--annotators", annotators)
    if out is None and to != "csv":
        msg = f"--to {to} writes a file. Name it with -o."
        raise UsageError(msg)
    if out is not None:
        refuse_existing(out, force=force)
    if audience == "people":
        from moral_entropy.cli.show_people import show_people

        show_people(run, number, agreement, question=question, out=out, json=json)
        return
    from moral_entropy.planning import next_votes
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    queue = next_votes(opened, number, question=question, annotators=asked)
    if out is not None:
        _write(opened, queue, out, to)
    if json:
        from moral_entropy.cli.screen import print_json
        from moral_entropy.planning import count_ambiguous, worse_than_the_team

        found = {"not_asked": worse_than_the_team(opened) if not asked else {}}
        print_json(
            "next", {"votes": queue.to_dicts(), "ambiguous": count_ambiguous(opened, question=question), **found}
        )
    elif out is None:
        typer.echo("\n".join([*queue_lines(queue), *not_asked_lines(opened, asked), *left_out_lines(opened, question)]))
    else:
        told = f"{out}: {queue.height:,} votes to ask for"
        typer.echo("\n".join([told, *not_asked_lines(opened, asked), *left_out_lines(opened, question)]))


def not_asked_lines(run: OpenRun, asked: tuple[str, ...]) -> list[str]:
    """Name the annotators who are not asked, as checked labels have shown them to be worse than the others."""
    from moral_entropy.findings import listed
    from moral_entropy.planning import worse_than_the_team

    bad = {} if asked else worse_than_the_team(run)
    if not bad:
        return []
    everyone = next(iter(bad.values()))["all"]
    who = listed([f"{name} ({one['wrong']:.0%} of {one['checked']:,})" for name, one in bad.items()])
    told = (
        f"not asked, as more of their votes on checked items are wrong than of all annotators' ({everyone:.0%}): "
        f"{who}. --annotators asks whom you name"
    )
    return ["", *wrap(told, 80, break_on_hyphens=False)]


def _write(run: OpenRun, queue: pl.DataFrame, out: Path, to: To) -> None:
    if to != "csv":
        from moral_entropy.report.export import export_queue

        export_queue(run, queue, out, to=to)
        return
    from moral_entropy.files import whole_file, without_formulas

    with whole_file(out) as partial:
        without_formulas(queue).write_csv(partial)


def left_out_lines(run: OpenRun, question: str | None) -> list[str]:
    """Say how many items are left out as ambiguous; nothing under the paper's model, which knows of none."""
    from moral_entropy.model.entropy import TOO_FEW_TO_TELL
    from moral_entropy.planning import count_ambiguous

    if run.model == "paper":
        return []
    n = count_ambiguous(run, question=question)
    if not n:
        return []
    look, what = ("items look", "their probabilities") if n != 1 else ("item looks", "its probability")
    told = f"{n:,} {look} ambiguous, and votes would hardly help: ship {what}"
    return ["", told, *wrap(TOO_FEW_TO_TELL, 80)]


def queue_lines(queue: pl.DataFrame) -> list[str]:
    """Return the queue as lines of text, columns as wide as they need to be."""
    from moral_entropy.cli.screen import printable

    heads = ("rank", "gain", "average", "entropy", "p", "votes", "question", "item", "ask")
    rows = [
        (
            f"{row['rank']}",
            f"{row['expected_gain']:.3f}",
            f"{row['average_gain']:.3f}",
            f"{row['entropy']:.3f}",
            f"{row['p']:.2f}",
            f"{row['n_votes']}",
            printable(row["question"], 20),
            printable(str(row["item"]), 40),
            printable(str(row["annotator"] or "(someone new)"), 30),
        )
        for row in queue.iter_rows(named=True)
    ]
    wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    # Figures to the right, names to the left.
    lines = [
        "  ".join(
            cell.rjust(size) if n < 6 else cell.ljust(size)
            for n, (cell, size) in enumerate(zip(row, wide, strict=True))
        )
        for row in [heads, *rows]
    ]
    return [*(line.rstrip() for line in lines), *LEGEND]
