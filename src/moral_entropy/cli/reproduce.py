"""`moral-entropy reproduce`: the paper's figures beside ours, on the corpora or on their simulated twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option

from moral_entropy.cli.flags import Quiet, command_line
from moral_entropy.options import Inputs, ReproduceOptions

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
    """Return what can be compared and was found, the same by section, the figures of the rules, where the files are."""
    from textwrap import wrap

    from moral_entropy.cli.screen import plain_table
    from moral_entropy.reproduce.pages import found_in_words, sum_up

    yield from wrap(found_in_words(study.comparison, twins=bool(study.manifest["twins"])), 80)
    yield ""
    rows_by_section = [(title, figures, within, same, differs)
                       for title, figures, same, differs, _, within in sum_up(study.comparison)]  # fmt: skip
    yield plain_table(("section", "figures", "within", "same", "differs"), rows_by_section, n_words=1)
    yield "within: ours is within the tolerance, whatever it was computed from; same and"
    yield "differs: of the figures that were computed from the paper's own data"
    yield ""
    yield "the rules, ours beside the paper's (fpr: wrong yes; fnr: missed yes;"
    yield "fdr: share of yes labels that are wrong; for: share of no labels that are wrong)"
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
