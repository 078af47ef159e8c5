"""A training on a run folder: targets and texts of the run in, a model with its card in a folder of its own out.

`run_training` does what `moral-entropy train` does, and prints nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy import __version__
from moral_entropy.errors import TrainError
from moral_entropy.files import without_formulas
from moral_entropy.markup import markdown_table, markdown_text
from moral_entropy.options import TFIDF, TrainOptions
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.run import Run, read_run
from moral_entropy.train import compare, targets
from moral_entropy.train.classifier import CARD, Classifier, check_out, save_classifier, train_classifier
from moral_entropy.train.targets import Targets, by_label, columns_of, mean_target, output_names, probabilities
from moral_entropy.votes.table import Floats

TEST, TEST_TO_COMPARE = 0.1, 0.2
"""Share of the texts that are not learnt from but tested on."""

FEWEST_GOLD = 40
"""With fewer tested items that have gold, gold is no reference."""

CHANCE = 0.6
"""A mean AUC below is hardly better than chance."""

LEANS = (
    "p leans on the texts (audit --use-text): a classifier of texts that is tested against it is flattered. Test it "
    "against gold, or train on an audit without --use-text."
)
SETTINGS = ("epochs", "batch_size", "learning_rate", "max_length", "seed")
FIGURES = {
    "auc": "AUC", "log_loss": "log loss", "constant_loss": "of a constant", "share_loss": "of the vote share",
    "ece": "calibration error", "threshold": "yes from (best F1)",
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
    kinds = [options.labels, "soft", "hard", "smoothed-share", *(compare.COMPARED if options.compare else ())]
    kinds += ["gold"] if targets.has_labels(run, "gold") else []
    labelled = targets.read_targets(run, list(dict.fromkeys(kinds)))
    train, test = targets.split_targets(labelled, TEST_TO_COMPARE if options.compare else TEST, seed=options.seed)
    targets.check_classes(train, options.labels)
    if options.compare and not test.texts:
        msg = f"none of the {len(train.texts):,} texts is left to test on. Audit more items with a text."
        raise TrainError(msg)
    # Progress: as much for every training, of which the comparison has four kinds.
    share = 1.0 / (1 + len(compare.COMPARED)) if options.compare else 1.0
    classifier = train_classifier(train, options.labels, options, advance=lambda done: advance(share * done))
    facts = {
        "version": __version__,
        "model": options.model,
        "labels": options.labels,
        "max_length": options.max_length,
        "settings": {} if options.model == TFIDF else {name: getattr(options, name) for name in SETTINGS},
        "items": len(train.with_target(options.labels).texts),
        "test_items": len(test.texts),
        "notes": [*labelled.notes, *([LEANS] if run.texts_count and options.labels in ("soft", "hard") else [])],
        "worth": None,
    }
    if test.texts:
        p_io = probabilities(test.questions, classifier.logits(test.texts))
        facts["worth"] = find_worth(p_io, train, test, options.labels)
    files, comparison = {}, {}
    if options.compare:
        table = compare.compare_targets(
            train, test, options, classifier, advance=lambda done: advance(share + (1.0 - share) * done)
        )
        files[compare.TABLE], comparison["comparison"] = without_formulas(table).write_csv(), table
    files[CARD] = "\n".join(_card(run, classifier, facts | comparison)) + "\n"
    save_classifier(classifier, out, facts, files)
    return facts | comparison


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
        answer and of the share of each text's own votes, and the threshold of the best F1; None where there is none.
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
            "auc": compare.mean_auc(p_ik, label_ik, count_i),
            "log_loss": compare.mean_loss(p_ik, share_ik, count_i),
            "constant_loss": compare.mean_loss(np.tile(constant_k, (len(p_ik), 1)), share_ik, count_i),
            "share_loss": compare.mean_loss(votes_ik, share_ik, count_i),
            "ece": compare.mean_gap(p_ik, share_ik, count_i) if len(items) else math.nan,
            "threshold": best_threshold(p_ik[:, 1], share_ik[:, 1], count_i) if p_ik.shape[1] == 2 else math.nan,
        }
        rows.append({"question": question.name, **{k: None if math.isnan(x) else x for k, x in row.items()}})
    return {"n_items": len(test.texts), "reference": "gold" if by_gold else "consensus", "questions": rows}


def best_threshold(p_i: Floats, share_i: Floats, count_i: Floats) -> float:
    """Find the threshold of the highest expected F1: from which p to say yes, in hundredths.

    Examples
    --------
    >>> best_threshold(np.array([0.1, 0.3, 0.4]), np.array([0.0, 1.0, 1.0]), np.ones(3))
    0.3
    """
    threshold_t = np.arange(98, 1, -1) / 100
    yes_ti = p_i >= threshold_t[:, None] - 1e-9
    f1_t = 2.0 * (yes_ti @ (count_i * share_i)) / np.maximum(count_i @ share_i + yes_ti @ count_i, 1e-12)
    best_t = threshold_t[f1_t >= f1_t.max() - 1e-9]
    return float(best_t[np.argmin(np.abs(best_t - 0.5))])


def worth_lines(worth: Mapping[str, Any]) -> Iterator[str]:
    """Say what a classifier is worth: one line of figures, one of what they mean if it is little, one of thresholds."""
    rows = worth["questions"]
    values = {name: [row[name] for row in rows if row[name] is not None] for name in FIGURES}
    mean = {name: sum(column) / len(column) if column else math.nan for name, column in values.items()}
    yield (
        f"worth, on {worth['n_items']:,} texts it has not learnt from, against the {worth['reference']}: AUC "
        f"{mean['auc']:z.2f}, log loss {mean['log_loss']:z.3f} ({mean['constant_loss']:z.3f} for one constant answer, "
        f"{mean['share_loss']:z.3f} for the share of the text's own votes), calibration error {mean['ece']:z.3f}"
    )
    if mean["log_loss"] > mean["constant_loss"] - 5e-4:
        yield "It is worth no more than a constant answer: train on more texts, or with another model."
    elif mean["auc"] < CHANCE:
        yield "It hardly tells texts apart (an AUC of 0.5 is chance): train on more texts, or another model."
    if thresholds := [f"{row['question']} {row['threshold']:.2f}" for row in rows if row["threshold"] is not None]:
        yield (
            f"to find most of what is there (the best F1), say yes from p = {', '.join(thresholds)}; 0.50 makes the "
            "fewest errors"
        )


def _card(run: Run, classifier: Classifier, facts: Mapping[str, Any]) -> Iterator[str]:
    """Write the model's card: Markdown with YAML on top, as model hubs read it; names from the data are escaped."""
    manifest, worth = run.manifest, facts["worth"]
    library = "sklearn" if facts["model"] == TFIDF else "transformers"
    front = {"library_name": library, "pipeline_tag": "text-classification", "tags": ["soft-labels", "moral-entropy"]}
    yield from ("---", *(f"{name}: {json.dumps(value)}" for name, value in front.items()), "---", "")
    yield f"# A classifier of {', '.join(markdown_text(question.name) for question in classifier.questions)}"
    target = TARGETS.get(facts["labels"]) or f"the rule {markdown_text(facts['labels'])} on the votes"
    settings = "".join(f", {name.replace('_', ' ')} {value}" for name, value in facts["settings"].items())
    voters = "anonymous annotators" if manifest["anonymous"] else f"{manifest['annotators']:,} annotators"
    yield (
        f"\nTrained with moral-entropy {__version__} from `{markdown_text(Path(str(facts['model'])).name)}`{settings} "
        f"on {facts['items']:,} texts. Its target is {target}, made from {manifest['votes']:,} votes by {voters} on "
        f"{manifest['items']:,} items (SHA-256 of their file: {manifest['input']['sha256'] or 'none, a dataframe'})."
    )
    if LEANS in facts["notes"]:
        yield f"\n{LEANS}"
    yield "\nOutputs: a question of two labels has one, a sigmoid; those of a question of more share a softmax.\n"
    yield from (f"- {at}: {markdown_text(name)}" for at, name in enumerate(output_names(classifier.questions)))
    if worth:
        cells = [
            (row["question"], *(None if row[name] is None else f"{row[name]:.3f}" for name in FIGURES))
            for row in worth["questions"]
        ]
        yield f"\n## What it is worth\n\nOn {worth['n_items']:,} unseen texts, against the {worth['reference']}.\n"
        yield markdown_table(("question", *FIGURES.values()), cells)
    if (comparison := facts.get("comparison")) is not None:
        header = ("against", "trained on", "accuracy", "AUC")
        yield f"\n## Which targets are better\n\n{markdown_table(header, compare.comparison_cells(comparison))}\n"
        yield from (f"- {line}" for line in compare.comparison_lines(comparison))
    if manifest["warnings"]:
        yield "\n## What the audit of these labels warns of\n"
        yield from (f"- {markdown_text(warning)}" for warning in manifest["warnings"])
