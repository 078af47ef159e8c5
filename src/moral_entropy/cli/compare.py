"""`moral-entropy compare`: two run folders side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from moral_entropy.cli.flags import Json
from moral_entropy.compare.options import CompareOptions

RunA = Annotated[str, Argument(metavar="RUN_A", help="The run folder to start from.")]
RunB = Annotated[str, Argument(metavar="RUN_B", help="The run folder to compare with it.")]
Out = Annotated[Path | None, Option("--out", "-o", metavar="DIR", help="Write tables and a page to a new folder.")]
Top = Annotated[int, Option(min=0, metavar="N", help="Show the N items that moved most.")]


def compare(
    run_a: RunA, run_b: RunB, options: CompareOptions, out: Out = None, json: Json = False, top: Top = 10
) -> None:
    """Compare two runs of the same items: labels, p, entropy and the grades of rules, before and after.

    Other annotators, another language, another prior or codebook: items are matched by question and id.

    Example: moral-entropy compare run-a/ run-b/ -o compared/
    """
    from moral_entropy.compare.table import compare_runs
    from moral_entropy.compare.write import as_record, check_out, write_comparison

    if out is not None:
        check_out(out)
    comparison = compare_runs(run_a, run_b, options)
    folder = None if out is None else write_comparison(comparison, out)
    if json:
        from moral_entropy.cli.screen import print_json

        print_json("compare", {**as_record(comparison, top=top), "path": folder and str(folder)})
        return
    from moral_entropy.cli.show_compare import print_comparison

    print_comparison(comparison, top=top)
    if folder is not None:
        files = " ".join(sorted(path.name for path in folder.iterdir()))
        typer.echo(f"{folder}: {files}")
