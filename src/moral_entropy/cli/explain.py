"""`moral-entropy explain`: why p is what it is, vote by vote."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

Run = Annotated[str, Argument(metavar="RUN", help="A run folder, as audit wrote it.")]
Item = Annotated[str, Argument(metavar="ITEM", help="The id of an item.")]
Question = Annotated[str | None, Option("--question", help="Only this question.")]
Json = Annotated[bool, Option("--json", help="Print a JSON list instead of a waterfall.")]
Ascii = Annotated[bool, Option("--ascii", help="Draw with plain characters.")]
Debug = Annotated[bool, Option("--debug", help="Show the traceback of an error.")]


def explain(
    run: Run, item: Item, question: Question = None, json: Json = False, ascii: Ascii = False, debug: Debug = False
) -> None:
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
