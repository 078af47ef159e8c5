"""`moral-entropy next` and `plan`: how many more votes, on which items and by whom, and the size of a larger study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from moral_entropy.cli.flags import Force, Json, Run, read_flag
from moral_entropy.cli.screen import filled, printable, rows_table, show
from moral_entropy.errors import UsageError
from moral_entropy.files import check_free
from moral_entropy.names import ALL
from moral_entropy.option_fields import StageOptions, option

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from moral_entropy.runs.run import Run as OpenRun

Within = Annotated[float, Option("--within", metavar="X", help="Half the width of the intervals.")]
Price = Annotated[str, Option("--price", metavar="X,Y", help="Price of one vote, and of one check.")]

BAR, RISK = 30, 0.1
"""Characters of a bar that stands for all labels; how often accepted labels may agree less than was promised."""

SHOWN = 15
"""Items on the screen; a file has all of them."""

QUEUE = "rank: {rank} | item: {item:30} | ask: {annotator:20} | right: {labels_right:.3f} | now: {reason}"
PEOPLE = (
    "rank: {rank} | question: {question:20} | item: {item:40} | label: {label:20} | confidence: {confidence:.3f} | "
    "wrong: {expected_gain:.2f}"
)
PLANS = (
    "votes per item: {votes_per_item} | items: {items:,} | votes: {votes:,} | annotators: {annotators:,} | "
    "checks: {checks:,} | wrong: {wrong:.1%} | cost: {cost:,.2f}"
)


@dataclass(frozen=True)
class NextOptions(StageOptions):
    """Which items are listed, for whom, and where."""

    rare = ("agreement",)

    number: int = option("How many items.", 100, short="-n", least=1)
    out: Path | None = option("Write a file of tasks instead.", metavar="FILE", short="-o")
    to: Literal["csv", "xlsx", "label-studio", "argilla", "doccano", "prodigy"] = option(
        "What the file is for: a spreadsheet, or an annotation tool.", "csv"
    )
    question: str | None = option("Only this question.")
    target: str | None = option("How many votes until so few labels are uncertain: 0.1, wrong=0.05.", metavar="SHARE")
    annotators: tuple[str, ...] = option("Who can be asked; all whose checked votes are not worse than others'.", ())
    predictions: bool = option("Show the label and p to whoever annotates.", False)
    audience: Literal["votes", "people"] = option(
        "votes: items that need votes; people: labels to accept, and items to send.", "votes", flag="--for"
    )
    agreement: float = option("With --for people: share of accepted labels that people agree with.", 0.95)

    def problems(self) -> Iterator[str]:
        """Yield a layout without a file."""
        if self.out is None and self.to != "csv":
            yield f"--to {self.to} writes a file. Name it with -o."


def next_items(run: Run, options: NextOptions, force: Force = False, json: Json = False) -> None:
    """Say how many more votes help, and list the items on which they put most labels right.

    Items with gold or a checked answer are never listed. With --for people: which labels can be accepted without a
    look, by the answers that are known, and which items people should label first.

    Example: moral-entropy next run/ --target 0.1 -n 100 -o queue.csv
    """
    target, out = _target(options.target), None if options.out is None else Path(options.out)
    if out is not None:
        check_free(out, force=force)
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    if options.audience == "people":
        _show_people(opened, options, out, json=json)
        return
    from moral_entropy.findings import listed
    from moral_entropy.planning import forecast, next_votes, worse_than_the_team

    bad = {} if options.annotators else worse_than_the_team(opened)
    queue = next_votes(opened, options.number, question=options.question, annotators=options.annotators)
    curve = forecast(opened, question=options.question, annotators=options.annotators)
    parts: list[str | Table] = [*_answer(curve, *target)]
    if bad:
        # Checked labels have shown them to be worse than the others.
        everyone = next(iter(bad.values()))["all"]
        people = listed([f"{name} ({rate['wrong']:.0%} of {rate['checked']:,})" for name, rate in bad.items()])
        parts.append(filled(
            f"Not asked, as more of their votes on checked items are wrong than of all annotators' ({everyone:.0%}): "
            f"{people}. --annotators asks whom you name."
        ))  # fmt: skip
    parts.append("")
    if out is not None:
        from moral_entropy.report.export import write_tasks

        hint = write_tasks(opened, queue, out, to=options.to, predictions=options.predictions)
        parts += [f"{out}: {queue.height:,} items to annotate", hint]
    elif queue.is_empty():
        parts.append("No item is open that further votes would put right.")
    else:
        rows = queue.with_columns(queue["annotator"].fill_null("(someone new)"))
        parts += [rows_table(rows.head(SHOWN), QUEUE), "right: labels that one more vote is expected to put right"]
        parts += [f"{rows.height - SHOWN:,} more items: -o FILE writes them all"] if rows.height > SHOWN else []
    show("next", {"items": queue, "forecast": curve, "not_asked": bad}, parts, as_json=json)


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
    yield filled(
        f"{now['uncertain'] * items:,.0f} of {items:,} labels are uncertain ({now['uncertain']:.0%}), and about "
        f"{now['wrong']:.0%} are wrong if errors are independent. One more vote per round on every item that is open "
        "and still uncertain:"
    )
    curve = curve.unique("votes", keep="first", maintain_order=True)
    rounds = [row | {"bar": "█" * round(BAR * row["uncertain"])} for row in curve.head(max(end, 3) + 1).to_dicts()]
    yield rows_table(rounds, "more votes: {votes:,.0f} | uncertain: {uncertain:.1%} | wrong: {wrong:.1%} | : {bar}")
    useful = curve.row(end, named=True)
    if curve.height == 1:
        yield "No open item is uncertain: further votes are not needed."
    elif end == curve.height - 1:
        yield "Votes help up to the last of these rounds."
    else:
        yield filled(
            f"After about {useful['votes']:,.0f} more votes, 100 further ones put less than one label right: "
            f"{useful['uncertain']:.0%} of the labels stay uncertain; ship their probabilities."
        )
    if share is not None:
        votes, last = votes_to_reach(curve, figure, share), curve.row(-1, named=True)
        reach = f": about {votes or 0.0:,.0f} more votes."
        if votes is None:
            reach = f", votes are not enough: after about {last['votes']:,.0f} more, {last[figure]:.1%} still are."
        yield filled(f"To have {share:.1%} of the labels {figure}{reach}")
    single = forecast.filter(round=0).filter(forecast.filter(round=0)["question"] != ALL)
    if single.height > 1:
        shares = [f"{printable(name, 20)} {share:.0%}" for name, share in single.select("question", "uncertain").rows()]
        yield filled(f"Uncertain now, by question: {', '.join(shares)}.")


def _show_people(run: OpenRun, options: NextOptions, out: Path | None, *, json: bool) -> None:
    """Print what can be accepted and the items to send to people, or write these to a file."""
    import polars as pl

    from moral_entropy.judges.people import escalate, sentence_of
    from moral_entropy.report.export import write_tasks

    accepted = escalate(run, agreement=options.agreement, risk=RISK, question=options.question)
    queue = pl.concat([part["queue"] for part in accepted]).sort("expected_gain", descending=True, maintain_order=True)
    queue = queue.head(options.number).with_columns(rank=pl.int_range(1, pl.len() + 1))
    sentences = [sentence_of(part, options.agreement, RISK) for part in accepted]
    last = f"the first {queue.height:,} to send hold about {queue['expected_gain'].sum():.0f} wrong labels"
    parts: list[str | Table] = [filled(text, "  ") for text in sentences]
    if out is not None:
        by_item = queue.group_by("item", maintain_order=True)
        tasks = by_item.agg(pl.col("rank").first(), questions=pl.col("question").str.join(", "))
        write_tasks(run, tasks, out, to=options.to)
        parts.append(f"{out}: {last}")
    elif queue.height:
        parts += ["", rows_table(queue, PEOPLE, n_words=4), last]
    show("next", {"sentences": sentences, "queue": queue}, parts, as_json=json)


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
    best = sizes.row(0, named=True)
    answer = (
        f"Label {best['items']:,} items with {best['votes_per_item']} vote{'s' * (best['votes_per_item'] > 1)} each, "
        f"and check {best['checks']:,} of them, drawn at random: {opened.interval:.0%} intervals of ±{within:g} for "
        f"every label's share and for the share of wrong labels, at {best['cost']:,.2f}. "
        f"At most {best['annotators']:,} annotators, so that each gives 50 votes or more."
    )
    table = rows_table(sizes.sort("votes_per_item"), PLANS, n_words=0)
    wrong = "wrong: expected share of wrong labels of the worst question, if errors are independent"
    show("plan", {"plans": sizes}, [filled(answer), "", table, wrong], as_json=json)
