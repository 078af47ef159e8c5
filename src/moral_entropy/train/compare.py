"""Which targets train the better classifier? The same model, split and seeds on soft and on hard labels.

Every model is scored on the same texts, which none has learnt from, against each hard label and gold. No hard label is
neutral: the model that was trained on it is favoured. Intervals are over resampled test texts, and paired: the
difference of two models is taken in each resampling. Axis **s**: resamplings, the first of which has every item once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.checks.scores import auc, calibration_gap
from moral_entropy.names import MEAN
from moral_entropy.options import TFIDF, TrainOptions
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.ties import labels_of
from moral_entropy.train.classifier import Classifier, train_classifier
from moral_entropy.train.targets import Targets, by_label, columns_of, normal_text, probabilities
from moral_entropy.votes.table import Floats

HARD = ("majority", "any", "strict-majority")
COMPARED = ("soft", *HARD)
SEEDS = 3
"""Trainings per target; the baseline has one optimum and needs one."""

REPLICATES, INTERVAL = 400, 0.9
FLOOR = 1e-6
"""A probability of 0 counts as one in a million: a single wrong "never" must not decide a mean."""

TABLE = "comparison.csv"


def mean_accuracy(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the share of right answers, yes where p is ½ or more; a label may be spread over several."""
    answer_i = labels_of(p_ik, 1 if p_ik.shape[1] == 2 else None)
    return float(count_i @ share_ik[np.arange(len(p_ik)), answer_i] / max(count_i.sum(), FLOOR))


def mean_loss(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the mean of −log p of the label, in nats per item."""
    return float(count_i @ -(share_ik * np.log(p_ik.clip(FLOOR))).sum(axis=1) / max(count_i.sum(), FLOOR))


def by_class(score: Callable[..., float], p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Average `auc` or `calibration_gap` over the labels, each against the rest; of two labels one says it all."""
    classes = [1] if p_ik.shape[1] == 2 else range(p_ik.shape[1])
    return float(np.mean([score(p_ik[:, k], share_ik[:, k], count_i) for k in classes]))


def mean_auc(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the area under the ROC curve; NaN where all labels are the same."""
    return by_class(auc, p_ik, share_ik, count_i)


def mean_gap(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the expected calibration error."""
    return by_class(calibration_gap, p_ik, share_ik, count_i)


METRICS = {"accuracy": mean_accuracy, "auc": mean_auc}


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
        p_by_target.setdefault(kind, []).append(probabilities(test.questions, classifier.logits(test.texts)))
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
    _, group_i = np.unique([normal_text(text) for text in test.texts], return_inverse=True)
    n_groups = int(group_i.max()) + 1
    times_sg = np.random.default_rng([seed, 61]).multinomial(n_groups, np.full(n_groups, 1 / n_groups), REPLICATES)
    times_si = np.vstack([np.ones(len(group_i)), times_sg[:, group_i]]) * test.count_i
    rows = []
    for reference in (name for name in ("gold", *HARD) if name in test.by_kind):
        for metric, score in METRICS.items():
            value_tqs, sizes = [], {}
            for question, columns in columns_of(test.questions):
                label_ik = by_label(test.by_kind[reference], columns)
                items = np.flatnonzero(np.isfinite(label_ik).all(axis=1))
                sizes[question.name] = len(items)
                value_tqs.append([
                    np.mean([[score(by_label(p_io, columns)[items], label_ik[items], times_i[items])
                              for times_i in times_si] for p_io in by_seed], axis=0)
                    for by_seed in p_by_target.values()
                ])  # fmt: skip
            names = {**sizes, MEAN: max(sizes.values())}
            all_qts = np.array([*value_tqs, _mean(np.array(value_tqs))])
            for (name, size), value_ts in zip(names.items(), all_qts, strict=True):
                by_target = dict(zip(p_by_target, value_ts, strict=True))
                for target, value_s in by_target.items():
                    less = _with_interval(by_target["soft"] - value_s) if target != "soft" else (None,) * 3
                    rows.append((name, reference, metric, target, *_with_interval(value_s), *less, size))
    header = ("question", "reference", "metric", "target", "value", "low", "high", "difference", "difference_low",
              "difference_high", "n")  # fmt: skip
    kinds = [pl.String] * 4 + [pl.Float64] * 6 + [pl.Int64]
    table = pl.DataFrame(rows, schema=dict(zip(header, kinds, strict=True)), orient="row")
    return table.sort(pl.col("question") != MEAN, maintain_order=True)


def _mean(value_qts: Floats) -> Floats:
    """Average over the questions that have a figure; a resampling without one counts as the items are."""
    value_qts = np.where(np.isnan(value_qts), value_qts[:, :, :1], value_qts)
    n_questions = (~np.isnan(value_qts)).sum(axis=0)
    return np.asarray(np.nansum(value_qts, axis=0) / np.where(n_questions > 0, n_questions, np.nan))


def _with_interval(value_s: Floats) -> tuple[float | None, float | None, float | None]:
    if np.isnan(value_s[0]):
        return None, None, None
    tail = (1.0 - INTERVAL) / 2.0
    low, high = np.quantile(np.where(np.isnan(value_s), value_s[0], value_s)[1:], (tail, 1.0 - tail))
    return float(value_s[0]), float(low), float(high)


# --- In words -----------------------------------------------------------------------------------------------------


def comparison_cells(table: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the cells of the table on the screen: reference, target, accuracy and AUC, means over questions."""
    groups = table.filter(question=MEAN).group_by("reference", "target", maintain_order=True)
    return [
        (str(reference), str(target), *(_in_words(row) for row in rows.iter_rows(named=True)))
        for (reference, target), rows in groups
    ]


def comparison_lines(table: pl.DataFrame) -> Iterator[str]:
    """Say by reference how much better soft is than each other target, with intervals."""
    others = table.filter(pl.col("target") != "soft", question=MEAN)
    for (reference,), rows in others.group_by("reference", maintain_order=True):
        parts = []
        for (target,), pair in rows.group_by("target", maintain_order=True):
            figures = [_in_words(row, "difference") for row in pair.iter_rows(named=True)]
            parts.append(f"soft less {target} {', '.join(figures)}")
        yield f"against {reference}: {'; '.join(parts)}"
    yield "Against a rule's own labels the model that learnt from that rule is favoured; gold favours none."


def _in_words(row: Mapping[str, Any], column: str = "value") -> str:
    """Write a score, or the difference of soft to it, with its interval; "–" where there is none."""
    difference = column == "difference"
    names = (column, "difference_low", "difference_high") if difference else (column, "low", "high")
    if row[column] is None:
        return "–"
    scale, digits = (100, 1) if row["metric"] == "accuracy" else (1, 3)
    value, low, high = (f"{scale * row[name]:{'+' * difference}z.{digits}f}".replace("-", "−") for name in names)
    unit = {"accuracy": " points of accuracy", "auc": " of AUC"} if difference else {"accuracy": "%", "auc": ""}
    return f"{value}{unit[row['metric']]} ({low} to {high})"
