"""Which targets train the better classifier? The same model, split and seeds on soft and on hard labels.

Every model is scored on the same texts, which none has learnt from, against each hard label and gold. No hard label is
neutral: the model that was trained on it is favoured. Intervals are over resampled test texts, and paired: the
difference of two models is taken in each resampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.names import MEAN
from moral_entropy.options import TFIDF, TrainOptions
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.train.classifier import Classifier, train_classifier
from moral_entropy.train.scores import accuracy, auc, draw_times
from moral_entropy.train.targets import Targets, by_label, columns_of, normal_text, probabilities
from moral_entropy.votes.table import Floats

HARD = ("majority", "any", "strict-majority")
COMPARED = ("soft", *HARD)
SEEDS = 3
"""Trainings per target; the baseline has one optimum and needs one."""

REPLICATES, INTERVAL = 1_000, 0.9
METRICS: dict[str, Callable[[Floats, Floats, Any], Floats]] = {"accuracy": accuracy, "auc": auc}
TABLE = "comparison.csv"


def compare_targets(
    train: Targets, test: Targets, options: TrainOptions, first: Classifier, *, advance: Advance = ignore
) -> pl.DataFrame:
    """Train the same model on every kind of target and score all of them on the same texts.

    Parameters
    ----------
    train, test
        What to learn from and to test on, with targets of all kinds of `COMPARED`, and perhaps gold.
    options
        Which model to train, and how.
    first
        The model that was trained with these options; it is not trained again where it is one of those compared.
    advance
        Called with the share done.

    Returns
    -------
    polars.DataFrame
        One row per question (and their mean), reference, metric and target: value, its interval, the value of soft less
        this one with its interval, and the number of tested items that have the reference's label.
    """
    seeds = [options.seed + n for n in range(1 if options.model == TFIDF else SEEDS)]
    p_by_target: dict[str, list[Floats]] = {}
    for n, (kind, seed) in enumerate((kind, seed) for kind in COMPARED for seed in seeds):
        step = share_of(advance, n, len(COMPARED) * len(seeds))
        if (kind, seed) == (options.labels, options.seed):
            classifier = first
        else:
            classifier = train_classifier(train, kind, replace(options, seed=seed), advance=step)
        p_io = probabilities(test.questions, classifier.logits(test.texts))
        p_by_target.setdefault(kind, []).append(p_io)
    return score_targets(p_by_target, test, seed=options.seed)


def score_targets(p_by_target: Mapping[str, Sequence[Floats]], test: Targets, *, seed: int = 0) -> pl.DataFrame:
    """Score what models say of the tested texts, as `compare_targets` returns it.

    Parameters
    ----------
    p_by_target
        Probabilities by what the model was trained on, one `p_io` per seed; scores are the mean over seeds.
    test
        The tested texts, with the labels to score against.
    seed
        Of the resampling.
    """
    groups = {text: g for g, text in enumerate(dict.fromkeys(map(normal_text, test.texts)))}
    group_i = np.array([groups[normal_text(text)] for text in test.texts], dtype=np.int64)
    times_si = draw_times(group_i, replicates=REPLICATES, seed=seed) * test.count_i
    rows = []
    for reference in (name for name in ("gold", *HARD) if name in test.by_kind):
        for metric, score in METRICS.items():
            drawn: dict[str, dict[str, Floats]] = {}
            sizes = {}
            for question, columns in columns_of(test.questions):
                label_ik = by_label(test.by_kind[reference], columns)
                known_i = np.isfinite(label_ik).all(axis=1)
                weight_si = times_si[:, known_i]
                sizes[question.name] = int(known_i.sum())
                for target, by_seed in p_by_target.items():
                    values = [score(by_label(p_io, columns)[known_i], label_ik[known_i], weight_si) for p_io in by_seed]
                    drawn.setdefault(target, {})[question.name] = np.mean(values, axis=0)
            sizes[MEAN] = max(sizes.values())
            for target, by_question in drawn.items():
                by_question[MEAN] = _mean(list(by_question.values()))
                for name, value_s in by_question.items():
                    difference_s = drawn["soft"][name] - value_s
                    rows.append((name, reference, metric, target, *_with_interval(value_s),
                                 *(_with_interval(difference_s) if target != "soft" else (None,) * 3),
                                 sizes[name]))  # fmt: skip
    names = ("question", "reference", "metric", "target", "value", "low", "high", "difference", "difference_low",
             "difference_high", "n")  # fmt: skip
    kinds = [pl.String] * 4 + [pl.Float64] * 6 + [pl.Int64]
    table = pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")
    return table.sort(pl.col("question") != MEAN, maintain_order=True)


def _mean(values_qs: Sequence[Floats]) -> Floats:
    """Average over the questions that have a figure in every resampling, or at least as the items are."""
    kept = [value_s for value_s in values_qs if not np.isnan(value_s[0])]
    if not kept:
        return np.full(len(values_qs[0]), np.nan)
    # A resampling without a positive item has no AUC; that question then counts as it is.
    return np.asarray(np.mean([np.where(np.isnan(value_s), value_s[0], value_s) for value_s in kept], axis=0))


def _with_interval(value_s: Floats) -> tuple[float | None, float | None, float | None]:
    if np.isnan(value_s[0]):
        return None, None, None
    tail = (1.0 - INTERVAL) / 2.0
    low, high = np.nanquantile(value_s[1:], (tail, 1.0 - tail)) if not np.isnan(value_s[1:]).all() else (np.nan, np.nan)
    return float(value_s[0]), float(low), float(high)


# --- In words -----------------------------------------------------------------------------------------------------


def comparison_cells(table: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the cells of the table on the screen: reference, target, accuracy and AUC, means over questions."""
    rows = _means(table)
    pairs = dict.fromkeys((reference, target) for reference, target, _ in rows)
    return [
        (reference, target, *(_shown(metric, rows[reference, target, metric]) for metric in METRICS))
        for reference, target in pairs
    ]


def comparison_lines(table: pl.DataFrame) -> Iterator[str]:
    """Say by reference how much better soft is than each other target, with intervals."""
    rows = _means(table)
    for reference in dict.fromkeys(name for name, _, _ in rows):
        parts = []
        for target in HARD:
            figures = [_shown(metric, rows[reference, target, metric], difference=True) for metric in METRICS]
            parts.append(f"soft less {target} {', '.join(figures)}")
        yield f"against {reference}: {'; '.join(parts)}"
    yield "Against a rule's own labels the model that learnt from that rule is favoured; gold favours none."


def _means(table: pl.DataFrame) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = table.filter(question=MEAN).iter_rows(named=True)
    return {(row["reference"], row["target"], row["metric"]): row for row in rows}


def _shown(metric: str, row: Mapping[str, Any], *, difference: bool = False) -> str:
    """Write a score, or the difference of soft to it, with its interval; "–" where there is none."""
    names = ("difference", "difference_low", "difference_high") if difference else ("value", "low", "high")
    if row[names[0]] is None:
        return "–"
    scale, digits = (100, 1) if metric == "accuracy" else (1, 3)
    value, low, high = (f"{scale * row[name]:{'+' * difference}z.{digits}f}".replace("-", "−") for name in names)
    unit = {"accuracy": " points of accuracy", "auc": " of AUC"} if difference else {"accuracy": "%", "auc": ""}
    return f"{value}{unit[metric]} ({low} to {high})"
