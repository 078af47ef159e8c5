"""`moral-entropy spot-check`: check some labels by hand, and learn how many are wrong."""

from __future__ import annotations

from typing import Annotated

from typer import Context, Option

from moral_entropy.cli.flags import Json, Run, command_line

Answers = Annotated[
    list[str],
    Option("--answers", metavar="FILE", help="A sheet that was filled in; repeatable. Writes no new one."),
]
Rows = Annotated[int, Option("--rows", "-n", min=1, metavar="N", help="How many items to check.")]
Domain = Annotated[str | None, Option(metavar="NAME", help="Only items of this domain.")]
Repair = Annotated[
    bool,
    Option("--repair", help="The least sure items first: to mend labels, not to measure how many are wrong."),
]
Out = Annotated[
    str | None,
    Option("--out", "-o", metavar="PATH", help="Where to write the sheet; with --answers, the new run folder."),
]
Tolerance = Annotated[float | None, Option(metavar="X", help="Share of wrong labels that is tolerated.")]


def spot_check(
    context: Context,
    run: Run,
    answers: Answers = [],  # noqa: B006
    rows: Rows = 50,
    domain: Domain = None,
    repair: Repair = False,
    out: Out = None,
    tolerance: Tolerance = None,
    json: Json = False,
) -> None:
    """Write a sheet of labels to check by hand, or read the answers and say how many are wrong.

    With --answers and -o a new run is written: checked labels are the answers, and the others learn from them.

    Example: moral-entropy spot-check run/ --answers run/spot-check.csv -o checked/
    """
    from pathlib import Path
    from textwrap import wrap

    from moral_entropy.cli.screen import print_json, print_lines, window_width
    from moral_entropy.pipeline import settle
    from moral_entropy.report.html import write_report
    from moral_entropy.runs.run import read_run
    from moral_entropy.verdict.sheet import Purpose, add_sheet, with_answers, with_tolerance
    from moral_entropy.verdict.summary import summarise
    from moral_entropy.verdict.verdict import needed_sentence

    opened = read_run(run)
    if answers:
        opened = with_answers(opened, answers)
        opened = opened if tolerance is None else with_tolerance(opened, tolerance)
        if (opened.folder / "report.html").is_file():
            write_report(opened.folder)
        if out is not None:
            opened = settle(opened, out, command=command_line(context))
        summary = summarise(opened)
        if json:
            print_json("spot-check", summary.record())
        else:
            print_lines(*summary.lines(window_width()))
        return
    purpose: Purpose = "repair" if repair else "measure"
    path = add_sheet(opened, rows, domain=domain, purpose=purpose, out=Path(out) if out else None)
    aim = "the least sure first: to mend labels, not to measure how many are wrong" if repair else "chosen at random"
    sheets = opened.table("spot_checks")
    n_rows = sheets.filter(sheet=max(sheets["sheet"].to_list())).height
    command = f"moral-entropy spot-check {run} --answers {path} -o {str(run).rstrip('/')}-checked"
    if json:
        print_json("spot-check", {"sheet": str(path), "rows": n_rows, "purpose": purpose, "next": command})
    else:
        needed_lines = [] if repair else [needed_sentence(opened, tolerance)]
        print_lines(f"{path}: {n_rows:,} items, {aim}; fill in the column answer, then:", f"  {command}",
                    *(line for text in needed_lines for line in wrap(text, window_width())))  # fmt: skip
