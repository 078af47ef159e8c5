"""What a reader must know of judges: those who fail, always say the same, favour a place, or cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from moral_entropy.findings import listed, many
from moral_entropy.judges.panel import MOST_JUDGES, Panel
from moral_entropy.judges.repeats import counted_as_new, is_biased
from moral_entropy.judges.roles import LLM, Role
from moral_entropy.judges.score_notes import one_label
from moral_entropy.judges.worth import ENOUGH

FAILS = 0.10
"""Share of items without a vote from which a judge who should vote on all is said to fail."""

MOST_VOTE_ON_ALL = 0.8
"""Share of the items that most judges must have voted on for gaps to be failures: crowds have gaps by design."""

ALWAYS, FEW_VOTES = 0.99, 20
"""Share of a judge's votes for one label from which it always says so, if it has that many votes."""


def notes_on_judges(panel: Panel, roles: Sequence[Role], frame: pl.DataFrame, repeats: pl.DataFrame) -> Iterator[str]:
    """Yield what must be known of the judges of one question."""
    name = panel.question.name
    if len(panel.judges) == 1:
        yield (
            f"{name}: one judge. There is nobody to compare it with: the consensus is its own votes. Known answers say "
            "how right it is; a second judge says where to look."
        )
    if len(panel.judges) > MOST_JUDGES:
        n = len(panel.judges)
        yield f"{name}: {n:,} judges are a crowd; what each adds is not computed for more than {MOST_JUDGES}."
    if panel.n_gold < ENOUGH:
        yield (
            f"{name}: {many(panel.n_gold, 'known answer')}; judges are ranked by how well they agree with the others, "
            f"so that an error that most share counts as right. {ENOUGH} random known answers or more rank them fairly."
        )
    yield from one_label(name, panel.question.labels, panel.gold_i)
    yield from _failing(name, roles, frame)
    yield from _constant(name, frame)
    yield from _worse_than_chance(name, frame)
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


def _failing(name: str, roles: Sequence[Role], frame: pl.DataFrame) -> Iterator[str]:
    if frame.is_empty() or 1.0 - float(np.median(frame["missing"].to_numpy())) < MOST_VOTE_ON_ALL:
        return
    models = {role.judge for role in roles if role.role == LLM}
    rows = frame.filter(pl.col("missing") >= FAILS).sort("missing", descending=True, maintain_order=True)
    for row in rows.filter(pl.col("judge").is_in(models)).iter_rows(named=True):
        yield (
            f"{name}: {row['judge']} fails on {row['missing']:.0%} of the items. If these are the hard ones, its "
            "figures flatter it: ask again there, or mend its prompt."
        )
    people = rows.filter(~pl.col("judge").is_in(models))
    if not people.is_empty():
        shares = [f"{row['judge']} {row['missing']:.0%}" for row in people.iter_rows(named=True)]
        yield (
            f"{name}: items without a vote: {listed(shares)}. If these are the hard ones, whoever skipped them looks "
            "better than they are."
        )


def _constant(name: str, frame: pl.DataFrame) -> Iterator[str]:
    constant = frame.filter((pl.col("favourite_share") >= ALWAYS) & (pl.col("n_votes") >= FEW_VOTES))
    for row in constant.iter_rows(named=True):
        always = "always" if row["favourite_share"] == 1 else "nearly always"
        yield (
            f"{name}: {row['judge']} {always} says {row['favourite']!r} ({row['favourite_share']:.1%} of "
            f"{row['n_votes']:,} votes): its votes tell nothing. Leave it out (--exclude)."
        )


def _worse_than_chance(name: str, frame: pl.DataFrame) -> Iterator[str]:
    both = frame.filter(pl.col("sensitivity_high") + pl.col("specificity_high") < 1.0)
    for row in both.iter_rows(named=True):
        yield f"{name}: {row['judge']} is wrong more often than a coin on known answers: are its labels swapped?"
