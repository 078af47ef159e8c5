"""A training on a run folder: targets and texts of the run in, a model with its card in a folder of its own out.

`run_training` does what `moral-entropy train` does, and prints nothing. With `compare` it trains the same model on soft
and on hard labels, with the same split and seeds, and scores all of them on the same unseen texts, against each hard
label and gold. No hard label is neutral: the model that was trained on it is favoured. Intervals are over resampled
test texts, and paired: the difference of two models is taken in each resampling. Axis **s**: resamplings, the first of
which has every item once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy import __version__
from moral_entropy.checks.scores import auc, calibration_gap
from moral_entropy.errors import TrainError
from moral_entropy.files import without_formulas
from moral_entropy.markup import markdown_table, markdown_text
from moral_entropy.names import MEAN
from moral_entropy.options import TFIDF, TrainOptions
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.report.words import fill_template
from moral_entropy.rules.intervals import central_interval
from moral_entropy.runs.run import Run, read_run
from moral_entropy.ties import labels_of
from moral_entropy.train import targets
from moral_entropy.train.classifier import CARD, Classifier, check_out, save_classifier, train_classifier
from moral_entropy.train.targets import Targets, by_label, columns_of, mean_target, output_names, probabilities
from moral_entropy.votes.table import Floats

HARD = ("majority", "any", "strict-majority")
COMPARED = ("soft", *HARD)
SEEDS = 3
"""Trainings per target; the baseline has one optimum and needs one."""

REPLICATES, INTERVAL = 400, 0.9
FLOOR = 1e-6
"""A probability of 0 counts as one in a million: a single wrong "never" must not decide a mean."""

TABLE = "comparison.csv"

TEST, TEST_TO_COMPARE = 0.1, 0.2
"""Share of the texts that are not learnt from but tested on."""

FEWEST_GOLD = 40
"""With fewer tested items that have gold, gold is no reference."""

LEANS = (
    "p leans on the texts (audit --use-text): a classifier of texts that is tested against it is flattered. Test it "
    "against gold, or train on an audit without --use-text."
)
SETTINGS = ("epochs", "batch_size", "learning_rate", "max_length", "seed")
FIGURES = {
    "auc": "AUC", "log_loss": "log loss", "constant_loss": "of a constant", "share_loss": "of the vote share",
    "ece": "calibration error",
}  # fmt: skip
TARGETS = {
    "soft": "the consensus probability p of a Bayesian model of the annotators",
    "gold": "the true labels that came with the data",
    "hard": "the consensus label",
    "published": "the labels that came with the data",
}


def run_training(
    run: Run | str | Path, out: str | Path, options: TrainOptions | None = None, *, advance: Advance = ignore
) -> dict[str, Any]:
    """Train a classifier on the labels of a run and save it.

    Parameters
    ----------
    run
        The run, or its folder.
    out
        Folder of the model; it appears when the model is complete, or not at all.
    options
        What to learn, which model to train, and how.
    advance
        Called with the share done.

    Returns
    -------
    dict
        What `moral_entropy.json` holds, and with `compare` the table `comparison`.
    """
    options = options or TrainOptions()
    check_out(out)
    run = run if isinstance(run, Run) else read_run(run)
    kinds = [options.labels, "soft", "hard", "smoothed-share", *(COMPARED if options.compare else ())]
    kinds += ["gold"] if targets.has_labels(run, "gold") else []
    labelled = targets.read_targets(run, list(dict.fromkeys(kinds)))
    train, test = targets.split_targets(labelled, TEST_TO_COMPARE if options.compare else TEST, seed=options.seed)
    targets.check_classes(train, options.labels)
    if options.compare and not test.texts:
        msg = f"none of the {len(train.texts):,} texts is left to test on. Audit more items with a text."
        raise TrainError(msg)
    classifier = train_classifier(train, options.labels, options, advance=share_of(advance, 0, 1 + options.compare))
    facts = {
        "version": __version__,
        "model": options.model,
        "labels": options.labels,
        "max_length": options.max_length,
        "settings": {} if options.model == TFIDF else {name: getattr(options, name) for name in SETTINGS},
        "items": len(train.with_target(options.labels).texts),
        "test_items": len(test.texts),
        "notes": [*labelled.notes, *([LEANS] if run.text_votes and options.labels in ("soft", "hard") else [])],
        "worth": None,
    }
    if test.texts:
        p_io = probabilities(test.questions, classifier.logits(test.texts))
        facts["worth"] = find_worth(p_io, train, test, options.labels)
    files, comparison = {}, {}
    if options.compare:
        table = compare_targets(train, test, options, classifier, advance=share_of(advance, 1, 2))
        files[TABLE], comparison["comparison"] = without_formulas(table).write_csv(), table
    files[CARD] = _card(run, classifier, facts | comparison)
    save_classifier(classifier, out, facts, files)
    return facts | comparison


# --- Scores ---------------------------------------------------------------------------------------------------------


def mean_accuracy(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the share of right answers, yes where p is ½ or more; a label may be spread over several."""
    answer_i = labels_of(p_ik, 1 if p_ik.shape[1] == 2 else None)
    return float(count_i @ share_ik[np.arange(len(p_ik)), answer_i] / max(count_i.sum(), FLOOR))


def mean_loss(p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Compute the mean of −log p of the label, in nats per item."""
    return float(count_i @ -(share_ik * np.log(p_ik.clip(FLOOR))).sum(axis=1) / max(count_i.sum(), FLOOR))


def by_class(score: Callable[..., float], p_ik: Floats, share_ik: Floats, count_i: Floats) -> float:
    """Average `auc` or `calibration_gap` over the labels that can be scored, each against the rest; of two over one."""
    scores = np.array([score(p_ik[:, k], share_ik[:, k], count_i) for k in range(p_ik.shape[1] == 2, p_ik.shape[1])])
    return float(scores[~np.isnan(scores)].mean()) if not np.isnan(scores).all() else math.nan


mean_auc, mean_gap = partial(by_class, auc), partial(by_class, calibration_gap)
METRICS: dict[str, Callable[[Floats, Floats, Floats], float]] = {"accuracy": mean_accuracy, "auc": mean_auc}


# --- What a model is worth ----------------------------------------------------------------------------------------


def find_worth(p_io: Floats, train: Targets, test: Targets, kind: str) -> dict[str, Any]:
    """Measure a classifier on the tested texts, against gold where there is enough of it, else against the consensus.

    Parameters
    ----------
    p_io
        What it says of the tested texts.
    train, test
        Its targets, with those of kind "soft", "hard", "smoothed-share" and perhaps "gold" beside them.
    kind
        What it learnt.

    Returns
    -------
    dict
        `n_items`, `reference`, and `questions` with AUC, log loss, calibration error, the log loss of one constant
        answer and of the share of each text's own votes; None where there is none.
    """
    gold_io = test.by_kind.get("gold")
    by_gold = gold_io is not None and np.isfinite(gold_io).sum(axis=0).min() >= FEWEST_GOLD
    references = ("gold", "gold") if by_gold else ("soft", "hard")
    rows = []
    for question, columns in columns_of(test.questions):
        tables = [by_label(test.by_kind[name], columns) for name in (*references, "smoothed-share")]
        items = np.flatnonzero(np.isfinite(np.hstack(tables)).all(axis=1))
        share_ik, label_ik, votes_ik = (table[items] for table in tables)
        p_ik, count_i = by_label(p_io, columns)[items], test.count_i[items]
        constant_k = mean_target(by_label(train.by_kind[kind], columns), train.count_i)
        row = {
            "auc": mean_auc(p_ik, label_ik, count_i),
            "log_loss": mean_loss(p_ik, share_ik, count_i),
            "constant_loss": mean_loss(np.tile(constant_k, (len(p_ik), 1)), share_ik, count_i),
            "share_loss": mean_loss(votes_ik, share_ik, count_i),
            "ece": mean_gap(p_ik, share_ik, count_i) if len(items) else math.nan,
        }
        rows.append({"question": question.name, **{k: None if math.isnan(x) else x for k, x in row.items()}})
    return {"n_items": len(test.texts), "reference": "gold" if by_gold else "consensus", "questions": rows}


def worth_lines(worth: Mapping[str, Any]) -> Iterator[str]:
    """Say what a classifier is worth: one line of figures, and one of what they mean if it is little."""
    values = ((name, [row[name] for row in worth["questions"] if row[name] is not None]) for name in FIGURES)
    mean = {name: sum(column) / len(column) if column else math.nan for name, column in values}
    ranking = "" if math.isnan(mean["auc"]) else f"AUC {mean['auc']:z.2f}, "
    yield (
        f"worth, on {worth['n_items']:,} texts it has not learnt from, against the {worth['reference']}: {ranking}log "
        f"loss {mean['log_loss']:z.3f} ({mean['constant_loss']:z.3f} for one constant answer, "
        f"{mean['share_loss']:z.3f} for the share of the text's own votes), calibration error {mean['ece']:z.3f}"
    )
    if mean["log_loss"] > mean["constant_loss"] - 5e-4:
        yield "It is worth no more than a constant answer: train on more texts, or with another model."


def _card(run: Run, classifier: Classifier, facts: Mapping[str, Any]) -> str:
    """Write the model's card: Markdown with YAML on top, as model hubs read it; names from the data are escaped."""
    manifest, worth, comparison = run.manifest, facts["worth"] or {"questions": ()}, facts.get("comparison")
    library = "sklearn" if facts["model"] == TFIDF else "transformers"
    front = {"library_name": library, "pipeline_tag": "text-classification", "tags": ["soft-labels", "moral-entropy"]}
    figures = [[row["question"], *(row[name] and f"{row[name]:.3f}" for name in FIGURES)] for row in worth["questions"]]
    header = ("against", "trained on", "accuracy", "AUC")
    return fill_template(
        "model.md",
        front=front,
        facts=facts,
        manifest=manifest,
        questions=[question.name for question in classifier.questions],
        model=Path(str(facts["model"])).name,
        target=TARGETS.get(facts["labels"]) or f"the rule {markdown_text(facts['labels'])} on the votes",
        leans=LEANS,
        outputs=output_names(classifier.questions),
        worth=markdown_table(("question", *FIGURES.values()), figures),
        comparison="" if comparison is None else markdown_table(header, comparison_cells(comparison)),
        lines=[] if comparison is None else list(comparison_lines(comparison)),
    )


# --- Which targets are better ---------------------------------------------------------------------------------------


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
    _, group_i = np.unique([targets.normal_text(text) for text in test.texts], return_inverse=True)
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
    low_m, high_m = central_interval(value_s[None, 1:], INTERVAL)
    value, low, high = (None if np.isnan(figure) else float(figure) for figure in (value_s[0], low_m[0], high_m[0]))
    return value, low, high


def comparison_cells(table: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the cells of the table on the screen: reference, target, accuracy and AUC, means over questions."""
    groups = table.filter(question=MEAN).group_by("reference", "target", maintain_order=True)
    return [
        (str(reference), str(target), *(_in_words(row) for row in rows.iter_rows(named=True)))
        for (reference, target), rows in groups
    ]


def comparison_lines(table: pl.DataFrame) -> Iterator[str]:
    """Say by reference how much better soft is than each other target, with intervals."""
    compared = table.filter(pl.col("target") != "soft", question=MEAN)
    for (reference,), rows in compared.group_by("reference", maintain_order=True):
        parts = [
            f"soft less {target} " + ", ".join(_in_words(row, "difference") for row in pair.iter_rows(named=True))
            for (target,), pair in rows.group_by("target", maintain_order=True)
        ]
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
