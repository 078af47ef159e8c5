"""`moral-entropy explain`: why p is what it is, vote by vote, as a waterfall of log-odds.

Block characters on a terminal that can show them, plain ASCII elsewhere. Whatever came with the data is shown as it
reads, never acted upon: characters that move the cursor or turn the writing round are spelt out.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Argument, Option

from moral_entropy.cli.flags import Json, Run
from moral_entropy.cli.screen import printable, show

if TYPE_CHECKING:
    from moral_entropy.explanation import Explanation, Step

Item = Annotated[str, Argument(metavar="ITEM", help="The id of an item.")]
Question = Annotated[str | None, Option("--question", metavar="NAME", help="Only this question.")]

LONGEST_TEXT, LONGEST_NAME = 400, 24
NARROWEST, WIDEST = 60, 120


class Marks(NamedTuple):
    """What bars are drawn with: towards the label, away from it, zero, and what cuts a text short."""

    towards: str
    away: str
    zero: str
    cut: str
    dot: str


BLOCKS, ASCII = Marks("█", "░", "│", "…", "·"), Marks("#", "=", "|", "...", "-")


def explain(run: Run, item: Item, question: Question = None, json: Json = False) -> None:
    """Explain an item's label: what each vote adds to its probability.

    Example: moral-entropy explain run/ t012 --question care
    """
    from moral_entropy.explanation import explain_item

    explanations, marks = explain_item(run, item, question=question), marks_for_output()
    record = {"item": item, "questions": [asdict(explanation) for explanation in explanations]}
    texts = ["\n".join(waterfall_lines(explanation, marks)) for explanation in explanations]
    show("explain", record, ["\n\n".join(texts)], as_json=json)


def marks_for_output() -> Marks:
    """Choose the characters that standard output can show."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return BLOCKS if sys.stdout.isatty() and encoding == "utf8" else ASCII


def waterfall_lines(explanation: Explanation, marks: Marks, width: int | None = None) -> list[str]:
    """Return the lines that explain one item on one question.

    Parameters
    ----------
    explanation
        The explanation.
    marks
        What to draw with.
    width
        Width of the window; that of the terminal when not given.
    """
    width = min(max(width or shutil.get_terminal_size().columns, NARROWEST), WIDEST)
    names = [_name(step, marks) for step in explanation.steps]
    widest = max(map(len, names))
    bounded = any(step.low is not None for step in explanation.steps)
    heads = [f"{name:<{widest}} {_figures(step, bounded)}" for name, step in zip(names, explanation.steps, strict=True)]
    bars = _bars(explanation.steps, max(width - len(heads[0]) - 2, 10), marks)
    between = f"{'interval':^16}  " if bounded else ""
    title = f"{'':<{widest}} {'push':>6}  {between}{'sum':>6}"
    towards, against = printable(explanation.towards, LONGEST_NAME), printable(explanation.against, LONGEST_NAME)
    return [
        *_about(explanation, marks),
        f"log-odds of {towards} against {against}, in nats: {marks.towards} adds to them, {marks.away} takes from them",
        *(["(in this order: what a vote adds depends on those before it)"] if explanation.model == "mixed" else []),
        "",
        title,
        *(f"{head}  {bar}".rstrip() for head, bar in zip(heads, bars, strict=True)),
        "",
        *_outcome(explanation, towards, against),
    ]


def _about(explanation: Explanation, marks: Marks) -> list[str]:
    n_votes = len(explanation.steps) - 1
    names = (explanation.question, explanation.part, f"item {explanation.item}", explanation.domain)
    facts = [printable(name, 60, marks.cut) for name in names if name]
    line = f" {marks.dot} ".join([*facts, f"{n_votes} vote{'s' * (n_votes != 1)}"])
    return [line, *([f'  "{printable(explanation.text, LONGEST_TEXT, marks.cut)}"'] if explanation.text else [])]


def _name(step: Step, marks: Marks) -> str:
    if step.annotator is None:
        return "prior"
    annotator = printable(step.annotator, LONGEST_NAME, marks.cut)
    return f"{annotator}: {printable(step.voted or '', LONGEST_NAME, marks.cut)}"


def _figures(step: Step, bounded: bool) -> str:
    bounds = "" if step.low is None or step.high is None else f"[{step.low:+z.2f}, {step.high:+z.2f}]"
    between = f"{bounds:^16}  " if bounded else ""
    return f"{step.push:>+z6.2f}  {between}{step.total:>+z6.2f}"


def _bars(steps: tuple[Step, ...], width: int, marks: Marks) -> list[str]:
    """Draw every step from the sum before it to the sum after it, on one scale that holds zero."""
    sums = [0.0, *(step.total for step in steps)]
    low, high = min(sums), max(sums)

    def column(value: float) -> int:
        return round((value - low) / ((high - low) or 1.0) * (width - 1))

    bars = []
    for before, after in pairwise(sums):
        cells = [" "] * width
        first, last = sorted((column(before), column(after)))
        cells[first : last + 1] = [marks.towards if after >= before else marks.away] * (last + 1 - first)
        cells[column(0.0)] = marks.zero
        bars.append("".join(cells))
    return bars


def _outcome(explanation: Explanation, towards: str, against: str) -> Iterator[str]:
    total, p_map, mixed = explanation.steps[-1].total, explanation.p_map, explanation.model == "mixed"
    if explanation.clamped:
        yield f"the label of this item was given as evidence: p({towards}) = {p_map:.0f} whatever the votes say"
    elif explanation.of_several:
        yield f"at the best fit: p({towards}) = {p_map:.3f}: log-odds {total:+z.2f} against {against}"
    else:
        yield f"at the best fit: p({towards}) = 1 / (1 + exp({-total:z.2f})) = {p_map:.3f}"
    bounds = "" if explanation.p_low is None else f" ({explanation.p_low:.3f} to {explanation.p_high:.3f})"
    pooled = "published, pooled with the share of the votes"
    averaged = "averaged over what is unknown of the annotators"
    yield f"{pooled if mixed else averaged}: p({towards}) = {explanation.p:.3f}{bounds}"
    if explanation.p_text is not None:
        votes = explanation.p_votes
        counts = "does not count" if votes is None else f"counts; the votes alone {votes:.3f}"
        yield f"its text alone says p({towards}) = {explanation.p_text:.3f}, and {counts}"
    if explanation.score is not None and None not in explanation.score:
        score, low, high, plain = explanation.score
        yield f"score: {score:.2f} ({low:.2f} to {high:.2f}), {score - plain:+z.2f} from the plain mean {plain:.2f}"
    parts = explanation.doubt_votes is not None
    label = printable(explanation.label, LONGEST_NAME)
    yield f"label: {label}; entropy {explanation.entropy:.3f} nats" + ", of which" * parts
    if parts:
        yield from _part_lines(explanation)


def _part_lines(explanation: Explanation) -> Iterator[str]:
    """Name the parts of the entropy, each with its remedy."""
    # Late, so that --help answers at once.
    from moral_entropy.model.entropy import ENOUGH_VOTES, REMEDIES, TOO_FEW_TO_TELL, shown_parts

    n_votes = len(explanation.steps) - 1
    for part, name in shown_parts(explanation.model, n_votes, between=explanation.between_groups is not None).items():
        yield f"  {getattr(explanation, part):.3f} {name}: {REMEDIES[part]}"
    if explanation.model == "mixed" and n_votes < ENOUGH_VOTES:
        yield from wrap(TOO_FEW_TO_TELL, NARROWEST + 20)
