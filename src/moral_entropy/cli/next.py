"""`moral-entropy next` and `plan`: how many more votes, on which items and by whom, and the size of a larger study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from moral_entropy.cli.flags import Force, Json, Run, names, read_flag, refuse_existing
from moral_entropy.cli.screen import plain_table, print_json, print_parts, printable
from moral_entropy.errors import UsageError
from moral_entropy.names import ALL

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

Number = Annotated[int, Option("--number", "-n", min=1, metavar="N", help="How many items.")]
Out = Annotated[Path | None, Option("--out", "-o", metavar="FILE", help="Write a file of tasks instead.")]
Tool = Literal["csv", "xlsx", "label-studio", "argilla", "doccano", "prodigy"]
To = Annotated[Tool, Option("--to", help="What the file is for: a spreadsheet, or an annotation tool.")]
Question = Annotated[str | None, Option("--question", metavar="NAME", help="Only this question.")]
Target = Annotated[
    str | None,
    Option("--target", metavar="SHARE", help="How many votes until so few labels are uncertain: 0.1, or wrong=0.05."),
]
Predictions = Annotated[bool, Option("--predictions", help="Show the label and p to whoever annotates.")]
For = Annotated[
    Literal["votes", "people"],
    Option("--for", help="votes: items that need votes; people: labels to accept, and items to send."),
]
Agreement = Annotated[
    float,
    Option("--agreement", metavar="X", help="With --for people: share of accepted labels that people agree with."),
]
WHO = "Who can be asked; all whose checked votes are not worse than others'."
Annotators = Annotated[str | None, Option("--annotators", metavar="A,B,…", help=WHO)]
Within = Annotated[float, Option("--within", metavar="X", help="Half the width of the intervals.")]
Price = Annotated[str, Option("--price", metavar="X,Y", help="Price of one vote, and of one check.")]

WIDTH, BAR = 80, 30


def next_items(
    run: Run,
    number: Number = 100,
    out: Out = None,
    to: To = "csv",
    question: Question = None,
    target: Target = None,
    annotators: Annotators = None,
    predictions: Predictions = False,
    audience: For = "votes",
    agreement: Agreement = 0.95,
    force: Force = False,
    json: Json = False,
) -> None:
    """Say how many more votes help, and list the items on which they put most labels right.

    Items with gold or a checked answer are never listed. With --for people: which labels can be accepted without a
    look, by the answers that are known, and which items people should label first.

    Example: moral-entropy next run/ --target 0.1 -n 100 -o queue.csv
    """
    voters = names("--annotators", annotators)
    figure, share = _target(target)
    if out is None and to != "csv":
        msg = f"--to {to} writes a file. Name it with -o."
        raise UsageError(msg)
    if out is not None:
        refuse_existing(out, force=force)
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    if audience == "people":
        from moral_entropy.cli.show_people import show_people

        show_people(opened, number, agreement, question=question, out=out, to=to, json=json)
        return
    from moral_entropy.planning import forecast, next_votes, worse_than_the_team

    bad = {} if voters else worse_than_the_team(opened)

    queue = next_votes(opened, number, question=question, annotators=voters)
    curve = forecast(opened, question=question, annotators=voters)
    parts: list[str | Table] = [*_answer(curve, figure, share), *_not_asked(bad)]
    if out is not None:
        from moral_entropy.report.export import write_tasks

        hint = write_tasks(opened, queue, out, to=to, predictions=predictions)
        parts += ["", f"{out}: {queue.height:,} items to annotate", hint]
    else:
        parts += ["", *_queue(queue)]
    if json:
        print_json("next", {"items": queue, "forecast": curve, "not_asked": bad})
    else:
        print_parts(parts)


def _target(text: str | None) -> tuple[str, float | None]:
    """Read a target: a figure, and the share that it shall fall to."""
    if text is None:
        return "uncertain", None
    figure, _, number = text.rpartition("=")
    share = read_flag("--target", number, float)
    if figure not in ("", "uncertain", "wrong") or not 0.0 <= share < 1.0:
        msg = f"--target is {text!r}; write a share of labels such as 0.1, uncertain=0.1 or wrong=0.05."
        raise UsageError(msg)
    return figure or "uncertain", share


def _answer(forecast: pl.DataFrame, figure: str, share: float | None) -> Iterator[str | Table]:
    """Say how many votes help, with a curve of what each round of them does."""
    from moral_entropy.planning import last_useful, votes_to_reach

    curve = forecast.filter(question=ALL)
    items, now, end = round(curve["items"][0]), curve.row(0, named=True), last_useful(curve)
    yield fill(
        f"{now['uncertain'] * items:,.0f} of {items:,} labels are uncertain ({now['uncertain']:.0%}), and about "
        f"{now['wrong']:.0%} are wrong if errors are independent. One more vote per round on every item that is open "
        "and still uncertain:",
        WIDTH,
    )
    curve = curve.unique("votes", keep="first", maintain_order=True)
    n_rounds = max(end, 3) if end < curve.height - 1 else end
    rows = [
        (f"{row['votes']:,.0f}", f"{row['uncertain']:.1%}", f"{row['wrong']:.1%}", "█" * round(BAR * row["uncertain"]))
        for row in curve.head(n_rounds + 1).iter_rows(named=True)
    ]
    yield plain_table(("more votes", "uncertain", "wrong", ""), rows)
    useful = curve.row(end, named=True)
    if curve.height == 1:
        yield "No open item is uncertain: further votes are not needed."
    elif end < curve.height - 1:
        yield fill(
            f"After about {useful['votes']:,.0f} more votes, 100 further ones put less than one label right: "
            f"{useful['uncertain']:.0%} of the labels stay uncertain; ship their probabilities.",
            WIDTH,
        )
    if share is not None:
        votes, last = votes_to_reach(curve, figure, share), curve.row(-1, named=True)
        reach = f": about {votes or 0.0:,.0f} more votes."
        if votes is None:
            reach = f", votes are not enough: after about {last['votes']:,.0f} more, {last[figure]:.1%} still are."
        yield fill(f"To have {share:.1%} of the labels {figure}{reach}", WIDTH)
    single = forecast.filter(round=0).filter(forecast.filter(round=0)["question"] != ALL)
    if single.height > 1:
        shares = [f"{printable(name, 20)} {share:.0%}" for name, share in single.select("question", "uncertain").rows()]
        yield fill(f"Uncertain now, by question: {', '.join(shares)}.", WIDTH)


def _not_asked(bad: dict[str, dict[str, Any]]) -> list[str]:
    """Name the annotators who are not asked, as checked labels have shown them to be worse than the others."""
    from moral_entropy.findings import listed

    if not bad:
        return []
    everyone = next(iter(bad.values()))["all"]
    people = listed([f"{name} ({rate['wrong']:.0%} of {rate['checked']:,})" for name, rate in bad.items()])
    text = (
        f"Not asked, as more of their votes on checked items are wrong than of all annotators' ({everyone:.0%}): "
        f"{people}. --annotators asks whom you name."
    )
    return [fill(text, WIDTH, break_on_hyphens=False)]


def _queue(queue: pl.DataFrame) -> Iterator[str | Table]:
    """Return the items as a table."""
    if queue.is_empty():
        yield "No item is open that further votes would put right."
        return
    rows = [
        (f"{row['rank']}", printable(str(row["item"]), 30), printable(row["annotator"] or "(someone new)", 20),
         f"{row['labels_right']:.3f}", printable(row["reason"], 60))
        for row in queue.iter_rows(named=True)
    ]  # fmt: skip
    yield plain_table(("rank", "item", "ask", "right", "now"), rows)
    yield "right: labels that one more vote is expected to put right"


def plan(run: Run, within: Within = 0.03, price: Price = "1", json: Json = False) -> None:
    """Plan a study from a pilot: items, votes, annotators and checks for intervals of plus or minus X.

    The intervals are those of every label's share (its share among the labels, plus the mean difference on the checked
    ones) and of the share of wrong labels.

    Example: moral-entropy plan pilot/ --within 0.03 --price 0.10,0.50
    """
    prices = read_flag("--price", price, tuple[float, ...])
    if len(prices) not in (1, 2):
        msg = f"--price is {price!r}; write the price of a vote, or those of a vote and of a check: 0.10,0.50."
        raise UsageError(msg)
    from moral_entropy.planning import plan as plan_study
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    sizes = plan_study(opened, within, price=prices[0], check_price=prices[-1])
    if json:
        print_json("plan", {"plans": sizes})
        return
    best = sizes.row(0, named=True)
    rows = [
        (f"{row['votes_per_item']}", f"{row['items']:,}", f"{row['votes']:,}", f"{row['annotators']:,}",
         f"{row['checks']:,}", f"{row['wrong']:.1%}", f"{row['cost']:,.2f}")
        for row in sizes.sort("votes_per_item").iter_rows(named=True)
    ]  # fmt: skip
    answer = (
        f"Label {best['items']:,} items with {best['votes_per_item']} vote{'s' * (best['votes_per_item'] > 1)} each, "
        f"and check {best['checks']:,} of them, drawn at random: {opened.interval:.0%} intervals of ±{within:g} for "
        f"every label's share and for the share of wrong labels, at {best['cost']:,.2f}. Annotators: "
        f"{best['votes_per_item']} to {best['annotators']:,}, so that each gives 50 votes or more."
    )
    heads = ("votes per item", "items", "votes", "annotators", "checks", "wrong", "cost")
    print_parts([fill(answer, WIDTH), "", plain_table(heads, rows, 0), WRONG])


WRONG = "wrong: expected share of wrong labels of the worst question, if errors are independent"
