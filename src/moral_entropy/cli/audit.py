"""`moral-entropy audit`: votes in, run folder out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from moral_entropy.cli.flags import Json, Quiet, SettingsFile, command_line
from moral_entropy.files import refuse_missing
from moral_entropy.pipeline.options import AuditOptions

if TYPE_CHECKING:
    from moral_entropy.workers import Workers

PANEL = "Cluster"

Source = Annotated[
    str, Argument(metavar="VOTES", help="CSV, TSV, Parquet, JSON or JSON Lines; also gzipped. - for a pipe.")
]
Out = Annotated[str, Option("--out", "-o", metavar="RUN", help="The run folder to write.")]
Force = Annotated[bool, Option("--force", help="Replace an earlier run folder.")]
Cluster = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="Dask scheduler, as tcp://host:8786, or local: workers of this machine alone, without a password.",
        rich_help_panel=PANEL,
        hidden=True,
    ),
]
PartRows = Annotated[
    int | None, Option(min=1, metavar="N", help="Rows per part, about.", rich_help_panel=PANEL, hidden=True)
]


def audit(
    context: Context,
    source: Source,
    out: Out,
    options: AuditOptions,
    settings: SettingsFile = None,
    cluster: Cluster = None,
    part_rows: PartRows = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check votes: which labels are safe, who agrees, which rule is best; write a report and tables.

    Example: moral-entropy audit votes.csv -o run/
    """
    if cluster is None:
        refuse_missing((source, options.read.gold_file, *options.verdict.spot_check))
    # Late, so that --help, misused flags and files that are not there are answered at once.
    from moral_entropy.pipeline.ahead import compiling_ahead

    with compiling_ahead(options.fit.model):
        from moral_entropy.cli.screen import Bars, print_warnings
        from moral_entropy.cli.show_audit import print_run, print_run_as_json
        from moral_entropy.pipeline.audit import audit as audit_votes

        with _workers(cluster) as workers, Bars(hidden=quiet or json) as progress:
            run = audit_votes(
                source,
                out,
                options,
                force=force,
                command=command_line(context),
                progress=progress,
                workers=workers,
                part_rows=part_rows,
            )
    if json:
        print_run_as_json(run)
    elif quiet:
        print_warnings(run.manifest["warnings"])
    else:
        print_run(run)


def _workers(address: str | None) -> AbstractContextManager[Workers | None]:
    """Connect to the workers of a cluster, if its address is given."""
    if address is None:
        return nullcontext()
    from moral_entropy.cluster.workers import connected

    return connected(address)
