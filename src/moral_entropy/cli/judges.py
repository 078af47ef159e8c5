"""`moral-entropy judges`: what was judged, with an interval, then how right each judge is and who may replace whom."""

from __future__ import annotations

from moral_entropy.cli.flags import Json, Run
from moral_entropy.options import JudgeOptions


def judges(run: Run, options: JudgeOptions, json: Json = False) -> None:
    """Score systems by their judges and known answers, then describe the judges, worst first.

    Answers are known from gold or a filled-in spot check. Without any, nothing is called trusted.

    Example: moral-entropy judges run/ --by system --at-least 0.7
    """
    from moral_entropy.judges.known import SYSTEM, any_known
    from moral_entropy.judges.score import score
    from moral_entropy.judges.table import describe_judges
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    by = options.by or (SYSTEM if SYSTEM in opened.scan("votes").collect_schema() else None)
    scores = None
    if by is not None or options.at_least is not None or any_known(opened):
        scores = score(opened, by, question=options.question, at_least=options.at_least, values=options.values)
    described = describe_judges(opened, options)
    if json:
        from moral_entropy.cli.screen import print_json

        record = ({} if scores is None else scores.as_dict()) | described.as_dict()
        notes = (*scores.notes, *described.notes) if scores else described.notes
        print_json("judges", record | {"notes": list(dict.fromkeys(notes))})
    else:
        from moral_entropy.cli.screen import print_parts
        from moral_entropy.cli.show_judges import judges_lines

        print_parts(judges_lines(scores, described, run))
