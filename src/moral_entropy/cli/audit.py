"""`moral-entropy audit`: votes in, run folder out."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument, Context, Option

from moral_entropy.cli.flags import Json, Quiet, SettingsFile, command_line
from moral_entropy.errors import UsageError
from moral_entropy.files import refuse_missing
from moral_entropy.options import AuditOptions

Source = Annotated[
    list[str],
    Argument(
        metavar="VOTES...",
        help="CSV, TSV, Excel, Parquet, JSON or JSON Lines; also gzipped. Several files are one set. - for a pipe.",
    ),
]
Out = Annotated[
    str | None, Option("--out", "-o", metavar="RUN", help="The run folder to write; without it, only the screen.")
]
Cluster = Annotated[
    str | None,
    Option(
        metavar="local|ADDRESS",
        help="Audit a folder of Parquet files on a Dask cluster: local, or a scheduler such as tcp://10.0.0.1:8786.",
    ),
]
Verbose = Annotated[bool, Option("--verbose", help="Print entropies, rules and every finding in full, too.")]
Force = Annotated[bool, Option("--force", help="Replace an earlier run folder.")]


def audit(
    context: Context,
    source: Source,
    options: AuditOptions,
    out: Out = None,
    settings: SettingsFile = None,
    cluster: Cluster = None,
    force: Force = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check votes: which labels are safe, who agrees, which rule is best; write a report and tables.

    Example: moral-entropy audit votes.csv -o run/
    """
    refuse_missing((*source, options.read.gold_file, options.verdict.decisions, *options.verdict.spot_check))
    # Late, so that --help, misused flags and files that are not there are answered at once.
    from moral_entropy.cli.screen import print_warnings
    from moral_entropy.cli.show_audit import print_run, print_run_as_json
    from moral_entropy.progress import Bars

    with Bars(hidden=quiet or json) as progress:
        keywords: dict[str, Any] = {"force": force, "command": command_line(context), "progress": progress}
        votes = source[0] if len(source) == 1 else source
        if cluster:
            from moral_entropy.scale import audit_on_cluster

            if len(source) > 1 or out is None:
                msg = "--cluster reads one folder of Parquet files and writes a run folder: --cluster local -o RUN."
                raise UsageError(msg)
            run = audit_on_cluster(source[0], out, options, cluster=cluster, **keywords)
        else:
            from moral_entropy.pipeline import audit as audit_here

            run = audit_here(votes, out, options, **keywords)
    if json:
        print_run_as_json(run)
    elif quiet:
        print_warnings(run.manifest["warnings"])
    else:
        print_run(run, verbose=verbose)
