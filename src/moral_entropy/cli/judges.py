"""`moral-entropy judges`: what was judged, with an interval, then whom to keep, then the best panel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from moral_entropy.cli.flags import Json, Run
from moral_entropy.options import JudgeOptions

if TYPE_CHECKING:
    from moral_entropy.judges.table import Judges

EXIT_CODES = {"": 0, "trusted": 0, "untrusted": 1, "undecided": 3}


def judges(run: Run, options: JudgeOptions, json: Json = False) -> None:
    """Score systems by their judges and known answers, then say which judges to keep, and the best panel.

    Answers are known from gold, a filled-in spot check, or people's votes beside those of language models. Without any,
    nothing is called trusted. With --at-least the exit code is 0 if trusted, 1 if untrusted, 3 if undecided.

    Example: moral-entropy judges run/ --at-least 0.7
    """
    from moral_entropy.judges.known import any_known, default_system
    from moral_entropy.judges.score import score
    from moral_entropy.judges.table import describe_judges
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    by = options.by or default_system(opened)
    described = describe_judges(opened, options)
    scores = None
    if by is not None or options.at_least is not None or any_known(opened) or described.replace.height:
        scores = score(opened, by, question=options.question, at_least=options.at_least, values=options.values,
                       roles=options.roles, cluster_column=options.cluster_column,
                       interval=options.interval)  # fmt: skip
    if options.labels is not None:
        _write_labels(described, Path(options.labels))
    if json:
        from moral_entropy.cli.screen import print_json

        record = ({} if scores is None else scores.as_dict()) | described.as_dict()
        notes = (*scores.notes, *described.notes) if scores else described.notes
        print_json("judges", record | {"notes": list(dict.fromkeys(notes))})
    else:
        from moral_entropy.cli.screen import print_parts
        from moral_entropy.cli.show_judges import judges_lines

        print_parts(judges_lines(scores, described, run))
    raise typer.Exit(EXIT_CODES["" if scores is None else scores.verdict])


def _write_labels(described: Judges, out: Path) -> None:
    from moral_entropy.errors import UsageError
    from moral_entropy.files import whole_file, without_formulas

    if described.labels.is_empty():
        msg = "there are no labels to write: it takes 30 known answers, and items whose answer is not known."
        raise UsageError(msg)
    with whole_file(out) as partial:
        without_formulas(described.labels).write_csv(partial)
