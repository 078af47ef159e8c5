"""The card of a trained model: what it was trained on, how, and what the audit says about these labels.

Markdown with YAML on top, as model hubs read it. Names from the data are escaped, since hubs render Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.markup import markdown_table, markdown_text
from moral_entropy.names import ALL
from moral_entropy.options import TFIDF
from moral_entropy.runs.run import Run
from moral_entropy.train.classifier import Classifier
from moral_entropy.train.compare import comparison_cells, comparison_lines
from moral_entropy.train.targets import output_names

RATES = ("fpr", "fnr", "fdr")
WHAT = {
    "soft": "the consensus probability p of a Bayesian model of the annotators",
    "gold": "the true labels that came with the data",
    "hard": "the consensus label, yes where p ≥ ½",
    "share": "the raw share of votes",
    "published": "the labels that came with the data",
}


def model_card(run: Run, classifier: Classifier, facts: Mapping[str, Any]) -> str:
    """Return the card of a model, as Markdown.

    Parameters
    ----------
    run
        The run it was trained on.
    classifier
        The model.
    facts
        As saved beside the model, and the table `comparison` if that was asked for.
    """
    return "\n".join(_lines(run, classifier, facts)) + "\n"


def _lines(run: Run, classifier: Classifier, facts: Mapping[str, Any]) -> Iterator[str]:
    library = "sklearn" if facts["model"] == TFIDF else "transformers"
    front = {"library_name": library, "pipeline_tag": "text-classification", "tags": ["soft-labels", "moral-entropy"]}
    yield from ("---", *(f"{name}: {json.dumps(value)}" for name, value in front.items()), "---", "")
    yield f"# A classifier of {', '.join(markdown_text(question.name) for question in classifier.questions)}"
    what = WHAT.get(facts["labels"]) or f"the rule {markdown_text(facts['labels'])} on the votes"
    yield ""
    yield (
        f"Trained with moral-entropy {__version__} from `{markdown_text(Path(str(facts['model'])).name)}` on "
        f"{facts['items']:,} texts. What it learnt is {what}; its outputs are probabilities, to be read as such."
    )
    if facts["settings"]:
        yield ""
        yield "Settings: " + ", ".join(f"{name.replace('_', ' ')} {x}" for name, x in facts["settings"].items()) + "."
    yield from ("", "## Outputs", "")
    yield from (f"- {at}: {markdown_text(name)}" for at, name in enumerate(output_names(classifier.questions)))
    yield from (
        "",
        "A question of two labels has one output, a sigmoid; those of a question of more share a softmax.",
        "",
    )
    if facts["worth"]:
        yield from ("## What it is worth", "", *_worth(facts["worth"]), "")
    if (comparison := facts.get("comparison")) is not None:
        header = ("against", "trained on", "accuracy", "AUC")
        yield from ("## Which targets are better", "", markdown_table(header, comparison_cells(comparison)), "")
        yield from (f"- {line}" for line in comparison_lines(comparison))
        yield ""
    yield from ("## The labels it learnt from", "", *_audit(run))


def _worth(worth: Mapping[str, Any]) -> Iterator[str]:
    yield f"On {worth['n_items']:,} texts that it has not learnt from, against the {worth['reference']}."
    names = ("auc", "log_loss", "constant_loss", "share_loss", "ece")
    rows = [
        (row["question"], *(_shown(row[name], ".3f") for name in names), _shown(row["threshold"], ".2f"))
        for row in worth["questions"]
    ]
    header = (
        "question", "AUC", "log loss", "of a constant", "of the vote share", "calibration error", "yes from (best F1)",
    )  # fmt: skip
    yield from ("", markdown_table(header, rows))


def _audit(run: Run) -> Iterator[str]:
    manifest = run.manifest
    ended = "converged" if manifest["converged"] else "did not converge"
    voters = "anonymous annotators" if manifest["anonymous"] else f"{manifest['annotators']:,} annotators"
    yield (
        f"{manifest['votes']:,} votes by {voters} on {manifest['items']:,} items; SHA-256 of their file: "
        f"{manifest['input']['sha256'] or '(none: a dataframe)'}. The fit {ended}."
    )
    parts = {"total": "entropy"} | run.parts
    entropies = [
        (row["question"], f"{row['n_items']:,}", *(_shown(row[name], ".4f") for name in parts))
        for row in run.table("entropy").filter(domain=ALL).iter_rows(named=True)
    ]
    yield from ("", markdown_table(("question", "items", *parts.values()), entropies), "")
    yield "Nats per item. What common rules would have made of the same votes, against the consensus:"
    yield from ("", markdown_table(("rule", *map(str.upper, RATES)), _rates(run)), "")
    for warning in manifest["warnings"]:
        yield f"- {markdown_text(warning)}"


def _rates(run: Run) -> Iterator[tuple[str | None, ...]]:
    rows = run.table("audit").filter(
        pl.col("metric").is_in(RATES), domain=ALL, reference="consensus", label=ALL, question=ALL
    )
    values = {(row["rule"], row["metric"]): row["value"] for row in rows.iter_rows(named=True)}
    for rule in rows["rule"].unique(maintain_order=True):
        yield (rule, *(_shown(values.get((rule, metric)), ".1%") for metric in RATES))


def _shown(value: float | None, style: str) -> str | None:
    return None if value is None else format(value, style)
