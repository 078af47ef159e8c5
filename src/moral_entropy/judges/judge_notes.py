"""What a reader must know of judges: those who fail, always say the same, favour a place, or cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from moral_entropy.findings import listed, many
from moral_entropy.judges.cast import MOST_JUDGES
from moral_entropy.judges.judge_findings import (
    FAILS,
    as_note,
    constant,
    failing,
    most_vote_on_all,
    one_judge,
    one_label,
)
from moral_entropy.judges.panel import Panel
from moral_entropy.judges.repeats import counted_as_new, is_biased
from moral_entropy.judges.roles import LLM, Role
from moral_entropy.judges.worth import ENOUGH
from moral_entropy.votes.table import UNKNOWN, Floats


def notes_on_judges(panel: Panel, roles: Sequence[Role], frame: pl.DataFrame, repeats: pl.DataFrame) -> Iterator[str]:
    """Yield what must be known of the judges of one question."""
    name = panel.question.name
    if len(panel.judges) == 1:
        yield as_note(one_judge(panel.judges[0], panel.n_all, question=name))
    if len(panel.judges) > MOST_JUDGES:
        n = len(panel.judges)
        yield f"{name}: {n:,} judges are a crowd; what each adds is not computed for more than {MOST_JUDGES}."
    if panel.n_gold < ENOUGH:
        yield (
            f"{name}: {many(panel.n_gold, 'known answer')}; judges are ranked by how well they agree with the others, "
            f"so that an error that most share counts as right. {ENOUGH} random known answers or more rank them fairly."
        )
    yield from map(as_note, one_label(panel.question.labels, panel.gold_i, question=name))
    yield from _missing(name, roles, frame)
    yield from map(as_note, constant(panel.judges, panel.question.labels, _counts(panel), question=name))
    yield from _worse_than_guessing(name, frame)
    for row in is_biased(repeats).iter_rows(named=True):
        first = "first" if row["bias"] > 0 else "last"
        yield (
            f"{name}: {row['judge']} and {row['other']} favour what is shown {first}: by {abs(row['bias']):.0%} "
            f"({row['bias_low']:z.2f} to {row['bias_high']:z.2f}). Ask in both orders, and count ties."
        )
    by_name = repeats.filter(kind="again")["judge"].to_list()
    if by_name:
        yield (
            f"{name}: {listed(by_name)} voted twice on some items, and each vote counts in full. An answer repeated is "
            "no new evidence: audit with --on-repeat first."
        )
    again = counted_as_new(repeats, panel)
    if again:
        yield (
            f"{name}: {listed([f'{a} and {b}' for a, b in again])}: one judge asked again, counted as two. An answer "
            f"repeated is no new evidence: audit with --merge '{again[0][0]}+{again[0][1]}'."
        )


def _missing(name: str, roles: Sequence[Role], frame: pl.DataFrame) -> Iterator[str]:
    """Say which models fail, and which people left items out."""
    if not most_vote_on_all(frame["missing"].to_numpy()):
        return
    models = {role.judge for role in roles if role.role == LLM}
    yield from map(as_note, failing(frame["judge"].to_list(), models, frame["missing"].to_numpy(), question=name))
    rows = frame.filter(pl.col("missing") >= FAILS, ~pl.col("judge").is_in(models))
    if not rows.is_empty():
        rows = rows.sort("missing", descending=True, maintain_order=True)
        shares = [f"{row['judge']} {row['missing']:.0%}" for row in rows.iter_rows(named=True)]
        yield (
            f"{name}: items without a vote: {listed(shares)}. If these are the hard ones, whoever skipped them looks "
            "better than they are."
        )


def _counts(panel: Panel) -> Floats:
    """Count the votes of every judge by label."""
    n_labels = len(panel.question.labels)
    counts = [np.bincount(vote_i[vote_i != UNKNOWN], minlength=n_labels) for vote_i in panel.vote_ji]
    return np.array(counts, dtype=np.float64).reshape(-1, n_labels)


def _worse_than_guessing(name: str, frame: pl.DataFrame) -> Iterator[str]:
    both = frame.filter(pl.col("sensitivity_high") + pl.col("specificity_high") < 1.0)
    for row in both.iter_rows(named=True):
        yield f"{name}: {row['judge']} is wrong more often than a coin on known answers: are its labels swapped?"
