"""`moral-entropy audit`: votes in, run folder out."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Context, Option

from moral_entropy.cli.flags import Json, Quiet, SettingsFile, command_line
from moral_entropy.files import refuse_missing
from moral_entropy.pipeline.options import AuditOptions

Source = Annotated[
    str, Argument(metavar="VOTES", help="CSV, TSV, Parquet, JSON or JSON Lines; also gzipped. - for a pipe.")
]
Out = Annotated[str, Option("--out", "-o", metavar="RUN", help="The run folder to write.")]
Force = Annotated[bool, Option("--force", help="Replace an earlier run folder.")]


def audit(
    context: Context,
    source: Source,
    out: Out,
    options: AuditOptions,
    settings: SettingsFile = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check votes: which labels are safe, who agrees, which rule is best; write a report and tables.

    Example: moral-entropy audit votes.csv -o run/
    """
    refuse_missing((source, options.read.gold_file, *options.verdict.spot_check))
    # Late, so that --help, misused flags and files that are not there are answered at once.
    from moral_entropy.cli.screen import Bars, print_warnings
    from moral_entropy.cli.show_audit import print_run, print_run_as_json
    from moral_entropy.pipeline.audit import audit as audit_votes

    with Bars(hidden=quiet or json) as progress:
        run = audit_votes(source, out, options, force=force, command=command_line(context), progress=progress)
    if json:
        print_run_as_json(run)
    elif quiet:
        print_warnings(run.manifest["warnings"])
    else:
        print_run(run)
