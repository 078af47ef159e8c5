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
    """Explain an item's p: the prior's log-odds, then what each vote adds to them.

    Example: moral-entropy explain run/ t012 --question care
    """
    from moral_entropy.runs.explain import explain_item

    told = explain_item(run, item, question=question)
    if json:
        from dataclasses import asdict
        from json import dumps

        typer.echo(dumps([asdict(one) for one in told], indent=2))
        return
    from moral_entropy.cli.waterfall import marks_for_output, waterfall_lines

    marks = marks_for_output(plain=ascii)
    typer.echo("\n\n".join("\n".join(waterfall_lines(one, marks)) for one in told))
