"""Scores of every model, target, seed and resampling → the tables of a study, with intervals and paired differences.

Seeds and items are resampled alike for all targets, so a difference of two targets is a difference on the same items,
with the same seeds. Knows nothing of texts, votes or training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from moral_entropy.names import MEAN
from moral_entropy.report.soft_labels import METRICS
from moral_entropy.schemas import SOFT_LABELS
from moral_entropy.train.scores import better, draw_seeds, over_seeds
from moral_entropy.votes.table import Floats

_NAMES = dict.fromkeys(("split", "model", "target", "reference", "question", "metric"), pl.String())
SCORES = pl.Schema(
    {
        **_NAMES,
        **dict.fromkeys(("value", "low", "high", "seed_sd"), pl.Float64()),
        **dict.fromkeys(("n", "seeds"), pl.Int64()),
    }
)
DIFFERENCES = pl.Schema(
    {
        **_NAMES,
        **dict.fromkeys(("difference", "low", "high"), pl.Float64()),
        "better": pl.String(),
        **dict.fromkeys(("n", "seeds"), pl.Int64()),
    }
)


class Place(NamedTuple):
    """What a score is of."""

    split: str
    model: str
    target: str
    reference: str
    question: str


@dataclass(frozen=True, eq=False)
class Graded:
    """Scores at one place. Axes: **n** seed, **s** resampling of the items, the first as they are.

    Parameters
    ----------
    value_ns
        By metric.
    n
        How many items they are over.
    """

    value_ns: Mapping[str, Floats]
    n: int


Grades = dict[Place, Graded]


def with_means(grades: Grades) -> Grades:
    """Add the mean over questions at every place, then the mean over splits where there are several.

    Examples
    --------
    >>> one, two = (Graded({"auc": np.array([[value]])}, 10) for value in (0.5, 0.7))
    >>> places = [Place("items", "tfidf", "soft", "gold", question) for question in ("care", "fairness")]
    >>> with_means(dict(zip(places, (one, two))))[places[0]._replace(question=MEAN)].value_ns["auc"].round(3)
    array([[0.6]])
    """
    all_questions = {**grades, **_averaged(grades, "question")}
    several = len({place.split for place in grades}) > 1
    return {**all_questions, **_averaged(all_questions, "split")} if several else all_questions


def _averaged(grades: Grades, over: str) -> Grades:
    groups: dict[Place, list[Graded]] = {}
    for place, graded in grades.items():
        groups.setdefault(place._replace(**{over: MEAN}), []).append(graded)
    return {place: _mean(group, add=over == "split") for place, group in groups.items()}


def _mean(group: Sequence[Graded], *, add: bool) -> Graded:
    value_ns = {name: _mean_of_known(np.stack([one.value_ns[name] for one in group])) for name in group[0].value_ns}
    n_items = [one.n for one in group]
    return Graded(value_ns, sum(n_items) if add else max(n_items))


def _mean_of_known(value_gns: Floats) -> Floats:
    """Average over the first axis, leaving out what has no value."""
    known_gns = ~np.isnan(value_gns)
    n_ns = known_gns.sum(axis=0)
    total_ns = np.where(known_gns, value_gns, 0.0).sum(axis=0)
    return np.where(n_ns > 0, total_ns / np.maximum(n_ns, 1), np.nan)


def score_table(grades: Grades, *, seed: int, interval: float) -> pl.DataFrame:
    """Return one row per place and metric, with intervals over seeds and items."""
    rows = []
    for place, graded in grades.items():
        for metric in METRICS:
            value_ns = graded.value_ns[metric]
            value, low, high = over_seeds(value_ns, _shares(value_ns, seed), interval=interval)
            n_seeds = len(value_ns)
            spread = float(value_ns[:, 0].std(ddof=1)) if n_seeds > 1 else float("nan")
            low = max(low, 0.0) if not np.isnan(low) else low
            figures = {"value": value, "low": low, "high": high, "seed_sd": spread}
            rows.append({**place._asdict(), "metric": metric, **figures, "n": graded.n, "seeds": n_seeds})
    return pl.DataFrame(rows, schema=SCORES).with_columns(pl.col(pl.Float64).fill_nan(None))


def difference_table(grades: Grades, *, base: str, seed: int, interval: float) -> pl.DataFrame:
    """Return one row per place, metric and target other than the base: the base's score less the other's."""
    rows = [
        {**place._asdict(), "metric": metric, **found, "n": graded.n}
        for place, graded in grades.items()
        if place.target != base and place._replace(target=base) in grades
        for metric, found in _differences(
            grades[place._replace(target=base)], graded, base, place.target, seed, interval
        )
    ]
    return pl.DataFrame(rows, schema=DIFFERENCES).with_columns(pl.col(pl.Float64).fill_nan(None))


def _differences(
    base: Graded, other: Graded, base_name: str, other_name: str, seed: int, interval: float
) -> Iterator[tuple[str, dict[str, object]]]:
    for metric in METRICS:
        gap_ns = base.value_ns[metric] - other.value_ns[metric]
        value, low, high = over_seeds(gap_ns, _shares(gap_ns, seed), interval=interval)
        side = {1: base_name, -1: other_name, 0: "neither"}[better(metric, low, high)]
        yield metric, {"difference": value, "low": low, "high": high, "better": side, "seeds": len(gap_ns)}


def _shares(value_ns: Floats, seed: int) -> Floats:
    n_seeds, n_columns = value_ns.shape
    return draw_seeds(n_seeds, replicates=n_columns - 1, seed=seed)


def joined_table(scores: pl.DataFrame, differences: pl.DataFrame) -> pl.DataFrame:
    """Join scores and differences into one table: `soft_labels` of a run folder."""
    gaps = differences.drop("n", "seeds").rename({"low": "difference_low", "high": "difference_high"})
    both = scores.join(gaps, on=[*_NAMES], how="left", maintain_order="left")
    return both.select(SOFT_LABELS.names()).match_to_schema(SOFT_LABELS)
