"""`moral-entropy explain`: why p is what it is, vote by vote, as a waterfall of log-odds.

Block characters on a terminal that can show them, plain ASCII elsewhere. Whatever came with the data is shown as it
reads, never acted upon: characters that move the cursor or turn the writing round are spelt out.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Argument, Option

from moral_entropy.cli.flags import Json, Run
from moral_entropy.cli.screen import print_json, print_lines, printable

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

    explanations = explain_item(run, item, question=question)
    if json:
        print_json("explain", {"item": item, "questions": [asdict(explanation) for explanation in explanations]})
        return
    marks = marks_for_output()
    print_lines("\n\n".join("\n".join(waterfall_lines(explanation, marks)) for explanation in explanations))


def marks_for_output() -> Marks:
    """Choose the characters that standard output can show."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return BLOCKS if sys.stdout.isatty() and encoding == "utf8" else ASCII


def waterfall_lines(told: Explanation, marks: Marks, width: int | None = None) -> list[str]:
    """Return the lines that explain one item on one question.

    Parameters
    ----------
    told
        The explanation.
    marks
        What to draw with.
    width
        Width of the window; that of the terminal when not given.
    """
    width = min(max(width or shutil.get_terminal_size().columns, NARROWEST), WIDEST)
    names = [_name(step, marks) for step in told.steps]
    widest = max(map(len, names))
    bounded = any(step.low is not None for step in told.steps)
    heads = [f"{name:<{widest}} {_figures(step, bounded)}" for name, step in zip(names, told.steps, strict=True)]
    bars = _bars(told.steps, max(width - len(heads[0]) - 2, 10), marks)
    between = f"{'interval':^16}  " if bounded else ""
    title = f"{'':<{widest}} {'push':>6}  {between}{'sum':>6}"
    towards, against = printable(told.towards, LONGEST_NAME), printable(told.against, LONGEST_NAME)
    return [
        *_about(told, marks),
        f"log-odds of {towards} against {against}, in nats: {marks.towards} adds to them, {marks.away} takes from them",
        *(["(in this order: what a vote adds depends on those before it)"] if told.model == "mixed" else []),
        "",
        title,
        *(f"{head}  {bar}".rstrip() for head, bar in zip(heads, bars, strict=True)),
        "",
        *_outcome(told, towards, against),
    ]


def _about(told: Explanation, marks: Marks) -> list[str]:
    n_votes = len(told.steps) - 1
    facts = [told.question, *([told.part] if told.part else []), f"item {told.item}", *([told.domain or ""])]
    facts = [printable(fact, 60, marks.cut) for fact in facts if fact]
    line = f" {marks.dot} ".join([*facts, f"{n_votes} vote{'s' * (n_votes != 1)}"])
    return [line, *([f'  "{printable(told.text, LONGEST_TEXT, marks.cut)}"'] if told.text else [])]


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


def _outcome(told: Explanation, towards: str, against: str) -> list[str]:
    total = told.steps[-1].total
    label = printable(told.label, LONGEST_NAME)
    if told.clamped:
        lines = [
            f"the label of this item was given as evidence: p({towards}) = {told.p_map:.0f} whatever the votes say"
        ]
    elif told.of_several:
        lines = [f"at the best fit: p({towards}) = {told.p_map:.3f}: log-odds {total:+z.2f} against {against}"]
    else:
        lines = [f"at the best fit: p({towards}) = 1 / (1 + exp({-total:z.2f})) = {told.p_map:.3f}"]
    bounds = "" if told.p_low is None else f" ({told.p_low:.3f} to {told.p_high:.3f})"
    if told.model == "mixed":
        lines.append(f"published, pooled with the share of the votes: p({towards}) = {told.p:.3f}{bounds}")
    else:
        lines.append(f"averaged over what is unknown of the annotators: p({towards}) = {told.p:.3f}{bounds}")
    if told.p_text is not None:
        counts = "does not count" if told.p_votes is None else f"counts; the votes alone {told.p_votes:.3f}"
        lines.append(f"its text alone says p({towards}) = {told.p_text:.3f}, and {counts}")
    lines.append(f"label: {label}; entropy {told.entropy:.3f} nats" + ", of which" * (told.doubt_votes is not None))
    return [*lines, *_part_lines(told)]


def _part_lines(told: Explanation) -> list[str]:
    """Name the parts of the entropy, each with its remedy; nothing without draws."""
    if told.doubt_votes is None:
        return []
    # Late, so that --help answers at once.
    from moral_entropy.model.entropy import ENOUGH_VOTES, REMEDIES, TOO_FEW_TO_TELL, shown_parts

    parts = shown_parts(told.model, between=told.between_groups is not None).items()
    lines = [f"  {getattr(told, part):.3f} {name}: {REMEDIES[part]}" for part, name in parts]
    too_few = told.model == "mixed" and len(told.steps) - 1 < ENOUGH_VOTES
    return [*lines, *(wrap(TOO_FEW_TO_TELL, NARROWEST + 20) if too_few else [])]
