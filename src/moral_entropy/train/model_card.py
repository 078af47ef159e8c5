"""The card of a trained model: what it was trained on, how, and what the audit says about these labels.

Markdown with YAML on top, as model hubs read it. Names from the data are escaped, since hubs render Markdown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.markup import markdown_table, markdown_text
from moral_entropy.names import ALL
from moral_entropy.runs.run import Run
from moral_entropy.train.classifier import Classifier
from moral_entropy.train.group_targets import BY_GROUP, GROUP, asks_voters
from moral_entropy.train.options import TFIDF
from moral_entropy.train.targets import Targets

RATES = ("fpr", "fnr", "fdr")
WHAT = {
    "soft": "the consensus probability p of a Bayesian model of the annotators",
    "p_model": "the probability of a Bayesian model of the annotators, before it is pooled with the share of the votes",
    "smoothed": "the majority label, with a tenth of its mass spread over all labels",
    "gold": "the true labels that came with the data",
    "hard": "the consensus label, yes where p ≥ ½",
    "share": "the raw share of votes",
    "published": "the labels that came with the data",
    "annotators": "the votes of each annotator, with an output for each; its answers are their mean",
}


def model_card(run: Run, classifier: Classifier, train: Targets, facts: Mapping[str, Any]) -> str:
    """Return the card of a model, as Markdown.

    Parameters
    ----------
    run
        The run it was trained on.
    classifier, train
        The model and what it learnt.
    facts
        As saved beside the model.
    """
    return "\n".join(_lines(run, classifier, train, facts)) + "\n"


def _lines(run: Run, classifier: Classifier, train: Targets, facts: Mapping[str, Any]) -> Iterator[str]:
    library = "sklearn" if facts["model"] == TFIDF else "transformers"
    front = {"library_name": library, "pipeline_tag": "text-classification", "tags": ["soft-labels", "moral-entropy"]}
    yield from ("---", *(f"{name}: {json.dumps(value)}" for name, value in front.items()), "---", "")
    yield f"# A classifier of {', '.join(markdown_text(block.question) for block in classifier.head.blocks)}"
    yield ""
    what = WHAT.get(train.kind) or _what_else(train.kind)
    yield (
        f"Trained with moral-entropy {__version__} from `{markdown_text(Path(str(facts['model'])).name)}` on "
        f"{train.n_items:,} texts. What it learnt is {what}; its outputs are probabilities, to be read as such."
    )
    yield from ("", *_settings(facts), "", "## Outputs", "", *_outputs(classifier), "")
    if facts.get("worth"):
        yield from ("## What it is worth", "", *_worth(facts["worth"]), "")
    yield from ("## Losses", "", *_losses(classifier), "")
    yield from ("## The labels it learnt from", "", *_audit(run))


def _what_else(kind: str) -> str:
    if kind.startswith(GROUP):
        return f"the consensus probability p of one group of annotators, {markdown_text(kind.removeprefix(GROUP))}"
    if asks_voters(kind):
        column = markdown_text(kind.removeprefix(BY_GROUP))
        return f"the votes of each group of annotators by {column}, with an output for each; its answers are their mean"
    return f"the rule {markdown_text(kind)} on the votes"


def _settings(facts: Mapping[str, Any]) -> Iterator[str]:
    shown = {name: value for name, value in facts["settings"].items() if value is not None}
    if shown:
        yield "Settings: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items()) + "."
    if facts.get("weight"):
        yield f"Items were weighted by {facts['weight']}."


def _outputs(classifier: Classifier) -> Iterator[str]:
    for at, name in enumerate(classifier.head.names):
        yield f"- {at}: {markdown_text(name)}"
    yield ""
    yield "A question of two labels has one output, a sigmoid; those of a question of more share a softmax."


def _worth(worth: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"On {worth['n_items']:,} texts that it has not learnt from, against the {worth['reference']}. Its logits were "
        f"divided by a temperature of {worth['temperature']:.2f}."
    )
    names = ("auc", "log_loss", "constant_loss", "share_loss", "ece")
    rows = [
        (one["question"], *(_shown(one[name], ".3f") for name in names), _shown(one["threshold"], ".2f"))
        for one in worth["questions"]
    ]
    header = (
        "question", "AUC", "log loss", "of a constant", "of the vote share", "calibration error", "yes from (best F1)",
    )  # fmt: skip
    yield from ("", markdown_table(header, rows))


def _losses(classifier: Classifier) -> Iterator[str]:
    rows = [
        (f"{step:,}", *(None if math.isnan(loss) else f"{loss:.4f}" for loss in losses))
        for step, *losses in classifier.curve
    ]
    yield markdown_table(("step", "training", "validation"), rows)
    yield ""
    yield "Cross-entropy against the targets, summed over questions, nats per text."


def _audit(run: Run) -> Iterator[str]:
    m = run.manifest
    ended = "converged" if m["converged"] else "did not converge"
    voters = "anonymous annotators" if m["anonymous"] else f"{m['annotators']:,} annotators"
    yield (
        f"{m['votes']:,} votes by {voters} on {m['items']:,} items; SHA-256 of their file: "
        f"{m['input']['sha256'] or '(none: a dataframe)'}. The fit {ended}."
    )
    parts = {"total": "entropy"} | run.parts
    entropies = [
        (row["question"], f"{row['n_items']:,}", *(_shown(row[name], ".4f") for name in parts))
        for row in run.table("entropy").filter(domain=ALL).iter_rows(named=True)
    ]
    yield from ("", markdown_table(("question", "items", *parts.values()), entropies), "")
    yield "Nats per item. What common rules would have made of the same votes, against the consensus:"
    yield from ("", markdown_table(("rule", *map(str.upper, RATES)), _rates(run)), "")
    for warning in m["warnings"]:
        yield f"- {markdown_text(warning)}"


def _rates(run: Run) -> Iterator[tuple[str | None, ...]]:
    rows = run.table("audit").filter(
        pl.col("metric").is_in(RATES), domain=ALL, reference="consensus", label=ALL, question=ALL
    )
    found = {(row["rule"], row["metric"]): row["value"] for row in rows.iter_rows(named=True)}
    for rule in rows["rule"].unique(maintain_order=True):
        yield (rule, *(_shown(found.get((rule, metric)), ".1%") for metric in RATES))


def _shown(value: float | None, style: str) -> str | None:
    return None if value is None else format(value, style)
