"""`moral-entropy explain`: why p is what it is, vote by vote."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from moral_entropy.cli.flags import Json, Run

Item = Annotated[str, Argument(metavar="ITEM", help="The id of an item.")]
Question = Annotated[str | None, Option("--question", metavar="NAME", help="Only this question.")]
Ascii = Annotated[bool, Option("--ascii", help="Draw with plain characters.")]


def explain(run: Run, item: Item, question: Question = None, json: Json = False, ascii: Ascii = False) -> None:
    """Explain an item's label: what each vote adds to its probability.

    Example: moral-entropy explain run/ t012 --question care
    """
    from moral_entropy.runs.explain import explain_item

    told = explain_item(run, item, question=question)
    if json:
        from dataclasses import asdict

        from moral_entropy.cli.screen import print_json

        print_json("explain", {"item": item, "questions": [asdict(one) for one in told]})
        return
    from moral_entropy.cli.waterfall import marks_for_output, waterfall_lines

    marks = marks_for_output(plain=ascii)
    typer.echo("\n\n".join("\n".join(waterfall_lines(one, marks)) for one in told))
