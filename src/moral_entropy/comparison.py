"""Two runs → what moved between them: labels, p, entropies, and the grades of rules.

Items are the same if question and id are. Run a is the one before, run b the one after; every change is b minus a.
Reads tables and manifests, writes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.batches import changes, compare_batches, counted, share_items
from moral_entropy.errors import RunFolderError
from moral_entropy.names import ALL, NO_DOMAIN
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.ties import DECIMALS

KEY = "item_key"
ENTROPIES = ("entropy", *PARTS, BETWEEN)
FACTS = ("p", "p_low", "p_high", "label", *ENTROPIES, "n_votes", "domain", "count")
SETTINGS = ("version", "input", "priors", "fit_by", "solver", "coordinates", "draws", "seed", "interval", "use_gold",
            "annotators", "votes")  # fmt: skip
METRICS = ("fpr", "fnr", "fdr")
CELL = ("question", "domain", "label", "rule", "reference", "metric")
GRADES = (*CELL, *(f"{name}_{side}" for side in "ab" for name in ("value", "low", "high")), "change", "low", "high",
          "n_a", "n_b")  # fmt: skip

Runs = tuple[Run, Run]
Labels = dict[str, tuple[str, ...]]
"""The labels of every question; of two the negative one first."""


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
        Means over the shared items of p and entropies: question, domain, label, metric, a, b, change, n.
    agreement
        Agreement and kappa of the labels, mean of `moved`: question, metric, value, n.
    grades
        Changes of the rules' grades, see `grade_changes`.
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


def compare(run_a: Run | str | Path, run_b: Run | str | Path) -> Comparison | dict[str, Any]:
    """Compare two runs.

    Items are matched by question and id. Changes of grades are between the audits of all items of either run, see
    `grade_changes`. Of runs that share no item, two batches, `compare` returns a dict: which is worse in a sentence,
    and frames of figures and annotators.

    Parameters
    ----------
    run_a, run_b
        The runs, or their folders.

    Examples
    --------
    >>> from moral_entropy.pipeline import audit
    >>> votes = pl.DataFrame({"item": [1, 1, 2, 2, 3, 3], "annotator": [*"abab", *"ab"], "label": [1, 1, 0, 0, 1, 0]})
    >>> compare(audit(votes, draws=20), audit(votes, draws=20)).items["moved"].to_list()
    [0.0, 0.0, 0.0]
    """
    runs = as_run(run_a), as_run(run_b)
    if not share_items(*runs):
        return compare_batches(*runs)
    labels = _shared_labels(runs)
    a, b = (_read_items(run, labels) for run in runs)
    frame = _join(a, b)
    counts = {name: [side.filter(question=name).height for side in (frame, a, b)] for name in labels}
    rows = [(name, shared, n_a - shared, n_b - shared) for name, (shared, n_a, n_b) in counts.items()]
    overlap = pl.DataFrame(rows, schema=["question", "shared", "only_a", "only_b"], orient="row")
    return Comparison(
        a=runs[0].where,
        b=runs[1].where,
        settings=tuple(differing_settings(runs[0].manifest, runs[1].manifest)),
        notes=tuple(_notes(runs, overlap)),
        overlap=overlap.filter(pl.col("shared") > 0),
        items=_moved_items(frame, [run.items.schema["item"] for run in runs]),
        shifts=_shifts(frame),
        agreement=_agreement(frame),
        grades=grade_changes(runs[0].rules, runs[1].rules),
    )


def _shared_labels(runs: Runs) -> Labels:
    """Return the questions that both runs have, with the labels of the first; refuse those whose labels differ."""
    (a, b), (labels_a, labels_b) = runs, map(_labels_of, runs)
    shared = {question: labels for question, labels in labels_a.items() if question in labels_b}
    # Of two labels the order says which is positive; of more it says nothing.
    alike = {
        question: labels_b[question] if len(names) == 2 else sorted(labels_b[question])
        for question, names in shared.items()
    }
    differing = [name for name, labels in shared.items() if alike[name] not in (labels, sorted(labels))]
    if differing:
        first = differing[0]
        msg = (
            f"{len(differing)} of {len(shared)} shared questions have other labels in {b.where} than in {a.where}. "
            f"First: {first!r} has {', '.join(labels_b[first])} and not {', '.join(shared[first])}"
            f"{' (the last is the positive one)' if len(shared[first]) == 2 else ''}. Audit both with the same "
            "labels: merge them with --labels map.toml, name the positive one with --positive, or labels nobody voted "
            "for with --classes."
        )
        raise RunFolderError(msg)
    return shared


def _labels_of(run: Run) -> Labels:
    return {entry.name: tuple(sorted(entry.labels, key=lambda name: name == entry.positive)) for entry in run.questions}


def _read_items(run: Run, labels: Labels) -> pl.DataFrame:
    """Return items of shared questions; `target` lists the positive one of two labels, all of more, `p_k` their p."""
    targets = {question: [names[1]] if len(names) == 2 else list(names) for question, names in labels.items()}
    labels_shown = pl.DataFrame({"question": list(targets), "target": list(targets.values())})
    items = run.items.with_columns(pl.col("item").cast(pl.String).alias(KEY))
    if BETWEEN not in items.columns:
        # Nothing lies between groups where no truth per group was found; without draws nobody knows.
        items = items.with_columns((0.0 * pl.col("doubt_votes")).alias(BETWEEN))
    # Questions stay in the order of run a.
    items = labels_shown.join(items.sort(KEY), on="question", maintain_order="left_right")
    posterior = run.table("posterior").rename({"class": "label", "item": KEY}).cast({KEY: pl.String})
    order = labels_shown.explode("target").rename({"target": "label"}).with_row_index("k")
    listed = posterior.join(order, on=["question", "label"]).sort("k").group_by("question", KEY).agg(p_k="p")
    items = items.join(listed, on=["question", KEY], how="left", maintain_order="left").with_columns(
        two=pl.col("target").list.len() == 1
    )
    items = items.with_columns(p_k=pl.when("two").then(pl.concat_list("p")).otherwise("p_k"))
    return items.select("question", KEY, "target", "two", *FACTS, "p_k")


def _join(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Return the shared items, the facts of the runs with `_a` and `_b`, and by how much each moved."""
    keys = ["question", KEY, "target", "two"]
    sides = [frame.select(*keys, pl.exclude(keys).name.suffix(suffix)) for frame, suffix in ((a, "_a"), (b, "_b"))]
    frame = sides[0].join(sides[1].drop("target", "two"), on=["question", KEY], maintain_order="left")
    if not any(frame[f"{BETWEEN}_{side}"].sum() for side in "ab"):
        frame = frame.drop(f"{BETWEEN}_a", f"{BETWEEN}_b")
    distance = (pl.col("p_k_b") - pl.col("p_k_a")).list.eval(pl.element().abs()).list.sum()
    return frame.with_columns(moved=pl.when("two").then(distance).otherwise(distance / 2))


def _notes(runs: Runs, overlap: pl.DataFrame) -> Iterator[str]:
    for run, against in (runs, runs[::-1]):
        if alone := [name for name in _labels_of(run) if name not in _labels_of(against)]:
            yield f"only {run.where} has {counted(alone)}: not compared"
        if not run.manifest.get("converged", True):
            yield f"{run.where} did not converge: its figures may move"
    if empty := overlap.filter(shared=0)["question"].to_list():
        yield f"no shared item in {counted(empty)}: not compared"
    if overlap.filter(pl.col("shared") > 0).select(pl.sum_horizontal("only_a", "only_b").sum()).item():
        yield "grades are of all items of either run, not of the shared ones alone"


def _moved_items(frame: pl.DataFrame, types: Sequence[pl.DataType]) -> pl.DataFrame:
    """Return the shared items, those that moved most first."""
    # With more than two labels the intervals may be about different ones.
    comparable = pl.col("two") | (pl.col("label_a") == pl.col("label_b"))
    apart = (pl.col("p_low_b") > pl.col("p_high_a")) | (pl.col("p_low_a") > pl.col("p_high_b"))
    items = frame.select(
        "question",
        pl.col(KEY).cast(types[0] if types[0] == types[1] else pl.String()).alias("item"),
        pl.col("domain_a").alias("domain"),
        *(f"{name}_{side}" for side in "ab" for name in ("label", "p", "p_low", "p_high")),
        pl.when("two").then(pl.col("p_b") - pl.col("p_a")).alias("change"),
        "moved",
        (pl.col("label_a") != pl.col("label_b")).alias("label_changed"),
        pl.when(comparable).then(apart).alias("apart"),
        *(f"{name}_{side}" for name in ("n_votes", "entropy") for side in "ab"),
    )
    return items.sort(pl.col("moved").round(DECIMALS), "question", "item", descending=[True, False, False])


def _shifts(frame: pl.DataFrame) -> pl.DataFrame:
    """Average p and entropies over items, each as often as it counts in run a, by question and domain."""
    names = {"target": "label", "p_k_a": "prevalence_a", "p_k_b": "prevalence_b"}
    columns = {"prevalence": frame.explode(*names).rename(names)}
    columns |= {name: frame.with_columns(label=pl.lit(ALL)) for name in ENTROPIES if f"{name}_a" in frame.columns}
    parts = [
        part.select("question", "label", domain="domain_a", metric=pl.lit(name), weight="count_a", a=f"{name}_a",
                    b=f"{name}_b")
        for name, part in columns.items()
    ]  # fmt: skip
    rows = pl.concat([part.with_columns(domain=pl.lit(ALL)) for part in parts])
    if frame["domain_a"].null_count() < frame.height:
        by_domain = pl.concat(parts).sort("domain", nulls_last=True, maintain_order=True)
        rows = pl.concat([rows, by_domain.with_columns(pl.col("domain").fill_null(NO_DOMAIN))])
    # The difference is taken item by item, so that equal runs differ by exactly 0.
    values, weight = {"a": pl.col("a"), "b": pl.col("b"), "change": pl.col("b") - pl.col("a")}, pl.col("weight")
    means = {name: pl.when(value.null_count() == 0).then((value * weight).sum() / weight.sum())
             for name, value in values.items()}  # fmt: skip
    place = ("question", "domain", "label", "metric")
    return rows.group_by(place, maintain_order=True).agg(**means, n=weight.sum().round().cast(pl.Int64))


def _agreement(frame: pl.DataFrame) -> pl.DataFrame:
    """Compute how often labels are equal, Cohen's kappa and the mean move, by question."""
    rows = []
    for (question,), part in frame.group_by("question", maintain_order=True):
        weight_i, sides = part["count_a"].to_numpy(), (part["label_a"], part["label_b"])
        equal = np.average(sides[0] == sides[1], weights=weight_i)
        chance = sum(math.prod(np.average(side == name, weights=weight_i) for side in sides)
                     for name in sides[0].unique())  # fmt: skip
        kappa = float((equal - chance) / (1 - chance)) if chance < 1 else None
        moved = float(np.average(part["moved"], weights=weight_i))
        figures = {"agreement": float(equal), "kappa": kappa, "moved": moved}
        rows += [(question, metric, value, round(weight_i.sum())) for metric, value in figures.items()]
    return pl.DataFrame(rows, schema=["question", "metric", "value", "n"], orient="row", infer_schema_length=None)


def grade_changes(audit_a: pl.DataFrame, audit_b: pl.DataFrame) -> pl.DataFrame:
    """Compute the change of every grade that both audits have.

    The tables hold no draws, so an interval of a difference is put together from the two intervals as if the audits
    were independent (the square-and-add rule of Zou and Donner, 2008). Where the runs share items or votes, their
    errors are alike and the interval is wider than need be, not narrower.

    Parameters
    ----------
    audit_a, audit_b
        As in `audit.parquet`.

    Examples
    --------
    >>> row = dict.fromkeys(CELL, "(all)")
    >>> row |= {"metric": "fpr", "rule": "any", "value": 0.3, "low": 0.26, "high": 0.33}
    >>> a, b = pl.DataFrame([row | {"n": 90}]), pl.DataFrame([row | {"n": 80, "value": 0.2, "low": 0.17, "high": 0.23}])
    >>> grade_changes(a, b).select(pl.col("change", "low", "high").round(3)).row(0)
    (-0.1, -0.142, -0.05)
    """
    a, b = (audit.filter(pl.col("metric").is_in(METRICS)) for audit in (audit_a, audit_b))
    return changes(a.join(b, on=CELL, suffix="_b", maintain_order="left")).select(GRADES)


def differing_settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """List what two manifests say differently about input, priors and fit: name, value in a, value in b.

    Examples
    --------
    >>> differing_settings({"seed": 0, "priors": {"diagonal": 1.8}}, {"seed": 0, "priors": {"diagonal": 2.5}})
    [('priors.diagonal', 1.8, 2.5)]
    """
    flat_a, flat_b = (
        {name: value for key in SETTINGS if key in facts for name, value in _flat(key, facts[key])} for facts in (a, b)
    )
    names = dict.fromkeys([*flat_a, *flat_b])
    return [(name, flat_a.get(name), flat_b.get(name)) for name in names if flat_a.get(name) != flat_b.get(name)]


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        return [(name, value)]
    return [pair for key, inner in value.items() for pair in _flat(f"{name}.{key}", inner)]
