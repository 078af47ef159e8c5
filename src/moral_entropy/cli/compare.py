"""`moral-entropy compare`: two run folders side by side, the groups of one, or one and other models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from moral_entropy.cli.flags import Json
from moral_entropy.compare.options import CompareOptions
from moral_entropy.errors import UsageError

RunA = Annotated[str, Argument(metavar="RUN_A", help="The run folder to start from.")]
RunB = Annotated[
    str | None,
    Argument(
        metavar="RUN_B", help="The run folder to compare with it; none with --by or --models.", show_default=False
    ),
]
Out = Annotated[Path | None, Option("--out", "-o", metavar="DIR", help="Write tables and a page to a new folder.")]
By = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Compare the groups of annotators of one run, by a column that it was audited with."),
]
Models = Annotated[
    str | None,
    Option(
        metavar="NAME[,NAME]",
        help="Hold the consensus of one run beside models that installed packages offer (see the how-to on plugins).",
    ),
]
Top = Annotated[int, Option(min=0, metavar="N", help="Show the N items that moved most.")]


def compare(
    run_a: RunA, options: CompareOptions, run_b: RunB = None, by: By = None, models: Models = None, out: Out = None,
    json: Json = False, top: Top = 10,
) -> None:  # fmt: skip
    """Compare two runs of the same items: labels, p, entropy and the grades of rules, before and after.

    Other annotators, another language, another prior or codebook: items are matched by question and id.

    Example: moral-entropy compare run-a/ run-b/ -o compared/
    """
    if by is not None:
        return _compare_groups(run_a, by, json=json, alone=run_b is None and out is None and models is None)
    if models is not None:
        return _compare_models(run_a, models.split(","), json=json, alone=run_b is None and out is None)
    if run_b is None:
        msg = (
            "compare needs RUN_B, a second run, or --by COLUMN for the groups of annotators of one, or --models NAME "
            "for other models of its votes."
        )
        raise UsageError(msg)
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


def _compare_groups(path: str, column: str, *, json: bool, alone: bool) -> None:
    """Print what one run knows of the groups of a column."""
    if not alone:
        msg = "--by compares the groups of one run: give one run folder, no -o and no --models."
        raise UsageError(msg)
    from moral_entropy.cli.screen import print_json
    from moral_entropy.cli.show_groups import groups_record, print_groups
    from moral_entropy.runs.run import read_run

    run = read_run(path)
    if json:
        print_json("compare", groups_record(run, column))
    else:
        print_groups(run, column)


def _compare_models(path: str, names: list[str], *, json: bool, alone: bool) -> None:
    """Print how models of others differ from the consensus of one run."""
    if not alone:
        msg = "--models compares models of the votes of one run: give one run folder, and no -o."
        raise UsageError(msg)
    from moral_entropy.cli.screen import print_json
    from moral_entropy.cli.show_models import models_record, print_models
    from moral_entropy.compare.models import compare_models

    table = compare_models(path, names)
    if json:
        print_json("compare", models_record(table))
    else:
        print_models(table)
