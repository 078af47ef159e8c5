"""`moral-entropy explain`: why p is what it is, vote by vote, as a waterfall of log-odds.

Whatever came with the data is shown as it reads, never acted upon: characters that move the cursor or turn the writing
round are spelt out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from moral_entropy.cli.flags import Json, Run
from moral_entropy.cli.screen import filled, printable, rows_table, show, window_width

if TYPE_CHECKING:
    from rich.table import Table

    from moral_entropy.explanation import Explanation

Item = Annotated[str, Argument(metavar="ITEM", help="The id of an item.")]
Question = Annotated[str | None, Option("--question", metavar="NAME", help="Only this question.")]

LONGEST_TEXT, LONGEST_NAME, WIDEST = 400, 24, 120
ADDED = "contribution: {contribution:+z.2f} ({low:+z.2f} to {high:+z.2f}) | sum: {total:+z.2f}"
STEPS = f"vote: {{vote:50}} | : {{bar:120}} | {ADDED}"


def explain(run: Run, item: Item, question: Question = None, json: Json = False) -> None:
    """Explain an item's label: what each vote adds to its probability.

    Example: moral-entropy explain run/ t012 --question care
    """
    from moral_entropy.explanation import explain_item

    explanations = explain_item(run, item, question=question)
    record = {"item": item, "questions": [asdict(explanation) for explanation in explanations]}
    parts = [part for n, explanation in enumerate(explanations) for part in ([""] * (n > 0), waterfall(explanation))]
    show("explain", record, (line for part in parts for line in part), as_json=json)


def waterfall(explanation: Explanation) -> Iterator[str | Table]:
    """Yield what explains one item on one question: its steps, and what follows from them."""
    n_votes = len(explanation.steps) - 1
    names = (explanation.question, explanation.part, f"item {explanation.item}", explanation.domain)
    facts = [printable(name, 60) for name in names if name]
    yield " - ".join([*facts, f"{n_votes} vote{'s' * (n_votes != 1)}"])
    if explanation.text:
        yield f'  "{printable(explanation.text, LONGEST_TEXT)}"'
    towards, against = printable(explanation.towards, LONGEST_NAME), printable(explanation.against, LONGEST_NAME)
    yield f"log-odds of {towards} against {against}, in nats: # adds to them, = takes from them"
    if explanation.model == "mixed":
        yield "(in this order: what a vote adds depends on those before it)"
    yield ""
    rows = [asdict(step) for step in explanation.steps]
    for row in rows:
        annotator, voted = (printable(row[name] or "", LONGEST_NAME) for name in ("annotator", "voted"))
        row["vote"] = "prior" if row["annotator"] is None else f"{annotator}: {voted}"
    n_figures = max(len(row["vote"]) for row in rows) + (24 if rows[0]["low"] is None else 32)
    # Every step is drawn from the sum before it to the sum after it, on one scale that holds zero.
    width, sums = max(min(window_width(), WIDEST) - n_figures, 10), [0.0, *(row["total"] for row in rows)]
    low, span = min(sums), (max(sums) - min(sums)) or 1.0
    zero, *columns = (round((value - low) / span * (width - 1)) for value in sums)
    for row, before, after in zip(rows, [zero, *columns], columns, strict=False):
        start, end = min(before, after), max(before, after) + 1
        bar = " " * start + ("#" if row["contribution"] >= 0 else "=") * (end - start) + " " * (width - end)
        row["bar"] = bar[:zero] + "|" + bar[zero + 1 :]
    yield rows_table(rows, STEPS, n_words=2)
    yield ""
    yield from _outcome(explanation, towards, against)


def _outcome(explanation: Explanation, towards: str, against: str) -> Iterator[str]:
    # Late, so that --help answers at once.
    from moral_entropy.model.entropy import ENOUGH_VOTES, REMEDIES, TOO_FEW_TO_TELL, shown_parts

    total, p_map, mixed = explanation.steps[-1].total, explanation.p_map, explanation.model == "mixed"
    if explanation.clamped:
        yield f"the label of this item was given as evidence: p({towards}) = {p_map:.0f} whatever the votes say"
    elif explanation.of_several:
        yield f"at the best fit: p({towards}) = {p_map:.3f}: log-odds {total:+z.2f} against {against}"
    else:
        yield f"at the best fit: p({towards}) = 1 / (1 + exp({-total:z.2f})) = {p_map:.3f}"
    bounds = "" if explanation.p_low is None else f" ({explanation.p_low:.3f} to {explanation.p_high:.3f})"
    pooled = "published, pooled with the share of the votes" + " and its text" * (explanation.p_votes is not None)
    averaged = "averaged over what is unknown of the annotators"
    yield f"{pooled if mixed else averaged}: p({towards}) = {explanation.p:.3f}{bounds}"
    if explanation.p_text is not None:
        without = "texts do not count" if explanation.p_votes is None else f"without it {explanation.p_votes:.3f}"
        yield f"its text alone says p({towards}) = {explanation.p_text:.3f}; {without}"
    if explanation.score is not None and None not in explanation.score:
        score, low, high, plain = explanation.score
        yield f"score: {score:.2f} ({low:.2f} to {high:.2f}), {score - plain:+z.2f} from the plain mean {plain:.2f}"
    n_votes, between = len(explanation.steps) - 1, explanation.between_groups is not None
    parts = shown_parts(explanation.model, n_votes, between=between)
    has_parts = explanation.doubt_votes is not None
    label = printable(explanation.label, LONGEST_NAME)
    yield f"label: {label}; entropy {explanation.entropy:.3f} nats" + ", of which" * has_parts
    if has_parts:
        yield from (f"  {getattr(explanation, part):.3f} {name}: {REMEDIES[part]}" for part, name in parts.items())
        if mixed and n_votes < ENOUGH_VOTES:
            yield filled(TOO_FEW_TO_TELL)
