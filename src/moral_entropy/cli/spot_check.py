"""`moral-entropy spot-check`: check some labels by hand, and learn how many are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typer import Context

from moral_entropy.cli.flags import Json, Run
from moral_entropy.option_fields import StageOptions, option


@dataclass(frozen=True)
class SheetOptions(StageOptions):
    """Which labels to check, or where the answers are."""

    answers: Sequence[str] = option("A sheet that was filled in; repeatable. Writes no new one.", (), metavar="FILE")
    rows: int = option("How many items to check.", 50, short="-n", least=1)
    repair: bool = option("The least sure items first: to mend labels, not to measure how many are wrong.", False)
    out: str | None = option("Where the sheet goes; with --answers, the new run folder.", metavar="PATH", short="-o")
    tolerance: float | None = option("Share of wrong labels that is tolerated.")


def spot_check(context: Context, run: Run, options: SheetOptions, json: Json = False) -> None:
    """Write a sheet of labels to check by hand, or read the answers and say how many are wrong.

    With --answers and -o a new run is written: checked labels are the answers, and the others learn from them.

    Example: moral-entropy spot-check run/ --answers run/spot-check.csv -o checked/
    """
    from pathlib import Path
    from textwrap import wrap

    from moral_entropy.cli.screen import show, window_width
    from moral_entropy.pipeline import settle
    from moral_entropy.report.html import write_report
    from moral_entropy.runs.run import read_run
    from moral_entropy.verdict.sheet import Purpose, add_sheet, with_answers, with_tolerance
    from moral_entropy.verdict.summary import Summary
    from moral_entropy.verdict.verdict import needed_sentence

    opened = read_run(run)
    out, tolerance = options.out, options.tolerance
    if options.answers:
        opened = with_answers(opened, options.answers)
        opened = opened if tolerance is None else with_tolerance(opened, tolerance)
        if (opened.folder / "report.html").is_file():
            write_report(opened.folder)
        if out is not None:
            opened = settle(opened, out, command=context.obj)
        summary = Summary(opened)
        show("spot-check", summary.record(), summary.lines(window_width()), as_json=json)
        return
    purpose: Purpose = "repair" if options.repair else "measure"
    path = add_sheet(opened, options.rows, purpose=purpose, out=Path(out) if out else None)
    aim = "the least sure first: to mend labels, not to measure how many are wrong"
    aim = aim if options.repair else "chosen at random"
    sheets = opened.table("spot_checks")
    n_rows = sheets.filter(sheet=max(sheets["sheet"].to_list())).height
    command = f"moral-entropy spot-check {run} --answers {path} -o {str(run).rstrip('/')}-checked"
    record = {"sheet": str(path), "rows": n_rows, "purpose": purpose, "next": command}
    lines = [f"{path}: {n_rows:,} items, {aim}; fill in the column answer, then:", f"  {command}"]
    if not options.repair:
        lines += wrap(needed_sentence(opened, tolerance or opened.verdict.tolerance), window_width())
    show("spot-check", record, lines, as_json=json)
