"""`moral-entropy judges`: how right each judge is, what it adds, and who may replace whom."""

from __future__ import annotations

from moral_entropy.cli.flags import Json, Run
from moral_entropy.judges.options import JudgeOptions


def judges(run: Run, options: JudgeOptions, json: Json = False) -> None:
    """Describe the judges, worst first: how right, whom they copy, what each adds, who may replace people.

    Example: moral-entropy judges run/ --costs costs.csv
    """
    from moral_entropy.judges.table import describe_judges

    found = describe_judges(run, options)
    if json:
        from moral_entropy.cli.screen import print_json

        print_json("judges", found.as_dict())
    else:
        from moral_entropy.cli.screen import print_parts
        from moral_entropy.cli.show_judges import judges_lines

        print_parts(judges_lines(found))
