"""`moral-entropy score`: what was judged, with an interval, and whether it can be trusted."""

from __future__ import annotations

from moral_entropy.cli.flags import Json, Run
from moral_entropy.judges.options import ScoreOptions


def score(run: Run, options: ScoreOptions, json: Json = False) -> None:
    """Score systems by their judges and the answers that are known: share, mean or win rate, with an interval.

    Answers are known from gold or a filled-in spot check. Without any, nothing is called trusted.

    Example: moral-entropy score run/ --by system --at-least 0.7
    """
    from moral_entropy.judges.score import score as score_run

    found = score_run(run, options=options)
    if json:
        from moral_entropy.cli.screen import print_json

        print_json("score", found.as_dict())
    else:
        from moral_entropy.cli.screen import print_parts
        from moral_entropy.cli.show_score import score_lines

        print_parts(score_lines(found, run))
