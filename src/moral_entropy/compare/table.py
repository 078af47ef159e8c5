"""Two run folders → Comparison: everything that moved between them.

The one function most users call. Reads the folders, writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.compare.grades import grade_changes, rules_of
from moral_entropy.compare.options import CompareOptions
from moral_entropy.compare.pair import KEY, QuestionPair, RunPair, RunTables, differing_settings, read_pair
from moral_entropy.compare.shifts import moved, shifts_and_agreement
from moral_entropy.compare.stand import Stand, stand_of
from moral_entropy.options import lists_options
from moral_entropy.runs.run import Run
from moral_entropy.ties import DECIMALS


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two runs say differently. Every change is b minus a.

    Parameters
    ----------
    a, b
        The run folders as they were named.
    settings
        What the manifests say differently: name, value in a, value in b.
    notes
        What to know before reading the figures.
    overlap
        One row per question: question, shared, only_a, only_b.
    items
        One row per shared item, those that moved most first: question, item, domain, label and p with its interval in
        either run, change (of p; null with more than two labels), moved (total variation), label_changed, apart
        (whether the intervals do not meet), votes and entropy in either run.
    shifts
        Prevalence and entropies: question, domain, label, metric, a, b, change, low, high, n.
    agreement
        Agreement and kappa of the labels, correlation of p, mean of `moved`: question, domain, metric, value, low,
        high, n.
    grades
        Changes of the rules' grades, see `grade_changes`.
    stands
        How either run stands by itself: verdict, headline figures, warnings.
    interval
        Mass of the intervals over resampled items.
    replicates, seed
        Of the resampling.
    """

    a: str
    b: str
    settings: tuple[tuple[str, Any, Any], ...]
    notes: tuple[str, ...]
    overlap: pl.DataFrame
    items: pl.DataFrame
    shifts: pl.DataFrame
    agreement: pl.DataFrame
    grades: pl.DataFrame
    stands: tuple[Stand, Stand]
    interval: float
    replicates: int
    seed: int

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables by name, as they are written."""
        return {name: getattr(self, name) for name in ("overlap", "items", "shifts", "agreement", "grades")}


@lists_options(CompareOptions)
def compare_runs(
    run_a: Run | str | Path, run_b: Run | str | Path, options: CompareOptions | None = None, **changes: Any
) -> Comparison:
    """Compare two runs.

    Items are matched by question and id. Changes of means over items have the interval of a paired bootstrap over the
    shared items; changes of grades are between the audits of all items of either run, see `grade_changes`.

    Parameters
    ----------
    run_a, run_b
        The run folders.
    options
        All options as one object; keywords change some of them.
    **changes
        Options by name.

    Examples
    --------
    >>> import tempfile
    >>> from moral_entropy.pipeline.audit import audit
    >>> votes = pl.DataFrame({"item": [1, 1, 2, 2, 3, 3], "annotator": [*"abab", *"ab"], "label": [1, 1, 0, 0, 1, 0]})
    >>> with tempfile.TemporaryDirectory() as home:
    ...     for name in "ab":
    ...         _ = audit(votes, f"{home}/{name}", draws=20)
    ...     same = compare_runs(f"{home}/a", f"{home}/b")
    >>> same.items["moved"].to_list()
    [0.0, 0.0, 0.0]
    """
    options = (options or CompareOptions()).changed(changes, "compare_runs")
    replicates, seed = options.replicates, options.seed
    pair = read_pair(run_a, run_b)
    mass = float(pair.a.manifest.get("interval", 0.9))
    shifts, agreement = shifts_and_agreement(pair.questions, replicates=replicates, seed=seed, mass=mass)
    grades, more_notes = _grades(pair)
    return Comparison(
        a=pair.a.path,
        b=pair.b.path,
        settings=tuple(differing_settings(pair.a.manifest, pair.b.manifest)),
        notes=(*pair.notes, *more_notes),
        overlap=_overlap(pair),
        items=_items(pair),
        shifts=shifts,
        agreement=agreement,
        grades=grades,
        stands=(stand_of(pair.a.run), stand_of(pair.b.run)),
        interval=mass,
        replicates=replicates,
        seed=seed,
    )


def _grades(pair: RunPair) -> tuple[pl.DataFrame, list[str]]:
    audit_a, audit_b = pair.a.run.rules, pair.b.run.rules
    notes = []
    for run, audit, other in ((pair.a, audit_a, audit_b), (pair.b, audit_b, audit_a)):
        alone = [rule for rule in rules_of(audit) if rule not in rules_of(other)]
        if alone:
            notes.append(f"only {run.path} grades {len(alone)} rule{'s' * (len(alone) > 1)} (first: {alone[0]!r})")
    if any(one.only_a or one.only_b for one in pair.questions):
        notes.append("grades are of all items of either run, not of the shared ones alone")
    hashes = [run.manifest.get("input", {}).get("sha256") for run in (pair.a, pair.b)]
    return grade_changes(audit_a, audit_b, same_input=bool(hashes[0]) and hashes[0] == hashes[1]), notes


def _overlap(pair: RunPair) -> pl.DataFrame:
    rows = [(one.question, one.frame.height, one.only_a, one.only_b) for one in pair.questions]
    return pl.DataFrame(rows, schema=["question", "shared", "only_a", "only_b"], orient="row")


def _items(pair: RunPair) -> pl.DataFrame:
    """Return the shared items, those that moved most first."""
    frame = pl.concat([_items_of(one) for one in pair.questions])
    same_ids = _item_type(pair.a) == _item_type(pair.b)
    kind = _item_type(pair.a) if same_ids else pl.String()
    frame = frame.with_columns(pl.col("item").cast(kind))
    return frame.sort(pl.col("moved").round(DECIMALS), "question", "item", descending=[True, False, False])


def _item_type(run: RunTables) -> pl.DataType:
    return run.items.schema["item"]


def _items_of(one: QuestionPair) -> pl.DataFrame:
    two = len(one.labels) == 2
    change = pl.col("p_b") - pl.col("p_a") if two else pl.lit(None, dtype=pl.Float64)
    # With more than two labels the intervals may be about different ones.
    same = pl.lit(True) if two else pl.col("label_a") == pl.col("label_b")
    apart = (pl.col("p_low_b") > pl.col("p_high_a")) | (pl.col("p_low_a") > pl.col("p_high_b"))
    return one.frame.select(
        pl.lit(one.question).alias("question"),
        pl.col(KEY).alias("item"),
        pl.col("domain_a").alias("domain"),
        *(f"{name}_{side}" for side in "ab" for name in ("label", "p", "p_low", "p_high")),
        change.alias("change"),
        pl.Series("moved", np.asarray(moved(one))),
        (pl.col("label_a") != pl.col("label_b")).alias("label_changed"),
        pl.when(same).then(apart).alias("apart"),
        *(f"{name}_{side}" for name in ("n_votes", "entropy") for side in "ab"),
    )
