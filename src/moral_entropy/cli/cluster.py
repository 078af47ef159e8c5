"""`moral-entropy audit --cluster`: the same run, with the workers of a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moral_entropy.pipeline.options import AuditOptions


def audit_on_cluster(
    address: str,
    source: str,
    out: str,
    options: AuditOptions,
    *,
    force: bool = False,
    command: str = "",
    quiet: bool = False,
    part_rows: int | None = None,
) -> None:
    """Audit votes on a cluster, and print what `audit` prints.

    Parameters
    ----------
    address
        Of the scheduler, or "local" for the cores of this machine.
    source, out, options
        What to read, where to write, and what was asked for.
    force, command, quiet
        As in `audit`.
    part_rows
        Rows a part, about.
    """
    from moral_entropy.cli.show import Bars, print_finished, print_warnings
    from moral_entropy.cluster.audit import run_cluster_audit
    from moral_entropy.cluster.crew import connected
    from moral_entropy.cluster.files import ROWS_AT_ONCE

    with connected(address) as crew, Bars(hidden=quiet) as progress:
        run = run_cluster_audit(
            source,
            out,
            crew,
            options,
            force=force,
            command=command,
            progress=progress,
            part_rows=part_rows or ROWS_AT_ONCE,
        )
    if not quiet:
        print_finished(run.path, run.manifest, run.lines, run.audit)
    print_warnings(run.manifest["warnings"])
