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
    from moral_entropy.cli.show import Bars, print_run, print_warnings
    from moral_entropy.cluster.workers import connected
    from moral_entropy.pipeline.audit import run_audit

    with connected(address) as workers, Bars(hidden=quiet) as progress:
        run = run_audit(
            source,
            out,
            options,
            force=force,
            command=command,
            progress=progress,
            workers=workers,
            part_rows=part_rows,
        )
    if not quiet:
        print_run(run)
    print_warnings(run.manifest["warnings"])
