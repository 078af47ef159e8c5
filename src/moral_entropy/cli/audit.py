"""`moral-entropy audit`: votes in, run folder out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from moral_entropy.cli.flags import Force, Json, Quiet, SettingsFile
from moral_entropy.errors import UsageError, harmless
from moral_entropy.files import refuse_missing
from moral_entropy.options import AuditOptions

if TYPE_CHECKING:
    from rich.table import Table

    from moral_entropy.runs.run import Run
    from moral_entropy.verdict.summary import Summary

Source = Annotated[
    list[str],
    Argument(
        metavar="VOTES...", help="CSV, TSV, Excel, Parquet, JSON, also gzipped; several are one set; - is a pipe."
    ),
]
Out = Annotated[
    str | None, Option("--out", "-o", metavar="RUN", help="The run folder to write; without it, only the screen.")
]
Cluster = Annotated[
    str | None,
    Option(metavar="local|ADDRESS", help="Audit a folder of Parquet files with Dask: local, or a scheduler's address."),
]
Verbose = Annotated[bool, Option("--verbose", help="Print entropies, rules and every finding in full, too.")]


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
    from moral_entropy.cli.screen import print_json, print_parts, window_width
    from moral_entropy.progress import show_progress

    with show_progress(hidden=quiet or json) as progress:
        keywords: dict[str, Any] = {"force": force, "command": context.obj, "progress": progress}
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
        print_json("audit", run.to_dict())
    elif quiet:
        for sentence in run.manifest["warnings"]:
            print(f"warning: {harmless(sentence)}", file=sys.stderr)
    else:
        from moral_entropy.verdict.summary import Summary

        summary = Summary(run)
        print_parts([*summary.lines(window_width()), *(_details(run, summary) if verbose else ())])


def _details(run: Run, summary: Summary) -> Iterator[str | Table]:
    """Yield what was read, entropies, rules and checked labels as the report has them, and every finding in full."""
    from moral_entropy.cli.screen import WIDTH, plain_table, rows_table
    from moral_entropy.model.entropy import parts_note
    from moral_entropy.names import ALL
    from moral_entropy.report.page import checked_tables, rules_section

    yield from ("", *(line for note in summary.notes for line in wrap(note, WIDTH)), "")
    parts = "".join(f" | {name}: {{{part}:z.3f}}" for part, name in run.parts.items())
    cells = f"question: {{question}} | items: {{n_items:,}} | entropy: {{total:z.3f}}{parts}"
    yield rows_table(run.table("entropy").filter(domain=ALL), cells, n_words=1)
    yield from wrap(parts_note(run.model), WIDTH)
    rules = rules_section(run)
    rates = {f"wrong answers of rules, against {rules['reference']}": rules["table"]}
    checked = {f"checked labels: {table['title'] or 'consensus and rules'}": table for table in checked_tables(run)}
    for title, table in (rates | checked).items():
        yield from ("", title)
        yield plain_table(table["heads"], table["rows"], n_words=1)
    yield from ("", *wrap(f"{rules['caveat']} {rules['advice']}", WIDTH), "" if summary.findings else "No warnings.")
    for finding in summary.findings:
        texts = (f"{finding.code} {finding.text}.", finding.meaning, f"What to do: {finding.remedy}")
        for n, text in enumerate(texts):
            yield from wrap(text, WIDTH, initial_indent="  " * bool(n), subsequent_indent="  ")
