"""Judges asked twice, or with the answers in the other order: whether they say the same, and favour a place.

Takes the votes of a panel and who its judges are, returns one row per two judges who differ in nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import polars as pl
from scipy.special import stdtrit

from moral_entropy.judges.estimates import gold_alone
from moral_entropy.judges.panel import Panel
from moral_entropy.judges.roles import LLM, Role
from moral_entropy.judges.values import Quantity
from moral_entropy.runs.run import Run
from moral_entropy.votes.table import UNKNOWN

REPEATS = pl.Schema(
    {
        **dict.fromkeys(("question", "judge", "other", "kind"), pl.String()),
        "n": pl.Int64(),
        **dict.fromkeys(("same", "same_low", "same_high", "bias", "bias_low", "bias_high"), pl.Float64()),
    }
)


def repeats_of(panel: Panel, roles: Sequence[Role], quantity: Quantity, mass: float = 0.9) -> pl.DataFrame:
    """Compare judges who are one judge asked again, or with the answers swapped: `REPEATS`.

    Parameters
    ----------
    panel, roles
        The votes, and who the judges are.
    quantity
        What the labels count. Of a judge whose answers were swapped, `bias` is how much more the first answer gets when
        it is shown first: 0 for a judge who does not mind, 1 for one who always takes what comes first.
    mass
        Mass of the intervals.
    """
    rows = [_compared(panel, a, b, kind, quantity, mass) for a, b, kind in _pairs(roles)]
    return pl.DataFrame([row for row in rows if row is not None], schema=REPEATS, orient="row")


def repeats_by_name(run: Run, question: str, mass: float = 0.9) -> pl.DataFrame:
    """Count how often judges who voted twice on an item, under one name, said the same: `REPEATS`, kind "again"."""
    votes = run.table("votes", where=pl.col("question") == question).drop_nulls("annotator")
    if judge_of := run.manifest.get("unsure"):
        votes = votes.with_columns(pl.col("annotator").replace(judge_of))
    twice = votes.group_by("annotator", "item").agg(
        n=pl.len(), first=pl.col("label").first(), last=pl.col("label").last()
    )
    rows = []
    for (who,), mine in sorted(twice.filter(pl.col("n") > 1).group_by("annotator"), key=lambda pair: str(pair[0][0])):
        same = gold_alone((mine["first"] == mine["last"]).to_numpy().astype(float), mass=mass)
        rows.append((question, str(who), str(who), "again", mine.height, same.value, same.low, same.high, *(None,) * 3))
    return pl.DataFrame(rows, schema=REPEATS, orient="row")


def _pairs(roles: Sequence[Role]) -> Iterator[tuple[int, int, str]]:
    known = [(j, role) for j, role in enumerate(roles) if role.role == LLM and role.model]
    for (a, one), (b, other) in combinations(known, 2):
        if (one.model, one.prompt) != (other.model, other.prompt):
            continue
        if one.order == other.order and (one.repeat or other.repeat):
            yield a, b, "repeat"
        elif one.swapped != other.swapped and one.repeat == other.repeat:
            yield (b, a, "order") if one.swapped else (a, b, "order")


def _compared(panel: Panel, a: int, b: int, kind: str, quantity: Quantity, mass: float) -> tuple[object, ...] | None:
    both = (panel.vote_ji[a] != UNKNOWN) & (panel.vote_ji[b] != UNKNOWN)
    one_i, other_i, weight_i = panel.vote_ji[a][both], panel.vote_ji[b][both], panel.weight_i[both]
    if not len(one_i):
        return None
    same = gold_alone((one_i == other_i).astype(float), weight_i, mass)
    bias: tuple[float | None, ...] = (None, None, None)
    if kind == "order" and len(one_i) > 1:
        apart_i = quantity.value_k[one_i] - quantity.value_k[other_i]
        mean, se = float(apart_i.mean()), float(apart_i.std(ddof=1)) / math.sqrt(len(apart_i))
        half = float(stdtrit(len(apart_i) - 1, (1.0 + mass) / 2)) * se
        bias = (mean, mean - half, mean + half)
    names = panel.judges[a], panel.judges[b]
    return (panel.question.name, *names, kind, len(one_i), same.value, same.low, same.high, *bias)


def is_biased(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows whose interval of the bias does not hold 0."""
    return rows.filter((pl.col("bias_low") > 0) | (pl.col("bias_high") < 0))


def counted_as_new(rows: pl.DataFrame, panel: Panel) -> list[tuple[str, str]]:
    """Return the judges asked again who are counted as two."""
    place = {name: j for j, name in enumerate(panel.judges)}
    group_j = np.asarray(panel.group_j)
    pairs = [(row["judge"], row["other"]) for row in rows.filter(kind="repeat").iter_rows(named=True)]
    return [(a, b) for a, b in pairs if group_j[place[a]] != group_j[place[b]]]
