"""`moral-entropy reproduce`: the paper's figures beside ours, on the corpora or on their simulated twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option

from moral_entropy.cli.flags import Quiet, command_line
from moral_entropy.reproduce.options import Inputs, ReproduceOptions

if TYPE_CHECKING:
    from rich.table import Table

    from moral_entropy.reproduce.study import Study

Out = Annotated[str, Option("--out", "-o", metavar="FOLDER", help="The folder to write.")]
Force = Annotated[bool, Option("--force", help="Replace the folder of an earlier run.")]


def reproduce(
    context: Context,
    out: Out,
    inputs: Inputs,
    options: ReproduceOptions,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's study and lay every published figure beside ours.

    Example: moral-entropy reproduce --twins -o out/
    """
    # Late, so that --help and misused flags answer at once.
    from moral_entropy.cli.screen import Bars, print_parts, print_warnings
    from moral_entropy.reproduce.study import run_study

    with Bars(hidden=quiet) as progress:
        study = run_study(inputs, out, options, force=force, command=command_line(context), progress=progress)
    if not quiet:
        print_parts(_parts(study))
    print_warnings(study.manifest["warnings"])


def _parts(study: Study) -> Iterator[str | Table]:
    """Return the verdicts by section, the figures of the rules, and where the files are."""
    from moral_entropy.cli.screen import plain_table
    from moral_entropy.reproduce.comparison import VERDICTS
    from moral_entropy.reproduce.pages import sum_up

    yield plain_table(("section", "figures", *VERDICTS, "within"), sum_up(study.comparison), n_words=1)
    yield "within: ours is within the tolerance, comparable or not\n"
    rows = map(_cells, study.comparison.filter(section="audit").iter_rows(named=True))
    yield plain_table(("corpus", "rule", "metric", "reading", "paper", "ours"), rows, n_words=4)
    files = " ".join(sorted(path.name for path in study.path.iterdir()))
    yield f"\n{study.path}: {files}  ({sum(study.manifest['seconds'].values()):.1f} s)"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    from moral_entropy.markup import NOTHING
    from moral_entropy.reproduce.published import CORPORA, spell

    metric = row["metric"] + (" vs gold" if row["reference"] == "gold" else "")
    ours = NOTHING if row["ours"] is None else spell(row["metric"], row["ours"])
    return (CORPORA.get(row["corpus"], row["corpus"]), row["rule"], metric, row["reading"], row["printed"], ours)
