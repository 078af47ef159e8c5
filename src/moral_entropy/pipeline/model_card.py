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
from moral_entropy.markup import markdown_text
from moral_entropy.runs.run import Run, read_run
from moral_entropy.train.classifier import TFIDF, Classifier
from moral_entropy.train.targets import Targets

ALL = "(all)"
RATES = ("fpr", "fnr", "fdr")
WHAT = {
    "soft": "the consensus probability p of a Bayesian model of the annotators",
    "hard": "the consensus label, yes where p ≥ ½",
    "share": "the raw share of votes",
    "published": "the labels that came with the data",
}


def model_card(run: str | Path, classifier: Classifier, train: Targets, facts: Mapping[str, Any]) -> str:
    """Give the card of a model.

    Parameters
    ----------
    run
        The run folder it was trained on.
    classifier, train
        The model and what it learnt.
    facts
        As saved beside the model.
    """
    return "\n".join(_lines(read_run(run), classifier, train, facts)) + "\n"


def _lines(run: Run, classifier: Classifier, train: Targets, facts: Mapping[str, Any]) -> Iterator[str]:
    library = "sklearn" if facts["model"] == TFIDF else "transformers"
    front = {"library_name": library, "pipeline_tag": "text-classification", "tags": ["soft-labels", "moral-entropy"]}
    yield from ("---", *(f"{name}: {json.dumps(value)}" for name, value in front.items()), "---", "")
    yield f"# A classifier of {', '.join(markdown_text(block.question) for block in classifier.head.blocks)}"
    yield ""
    what = WHAT.get(train.kind, f"the rule {markdown_text(train.kind)} on the votes")
    yield (
        f"Trained with moral-entropy {__version__} from `{markdown_text(Path(str(facts['model'])).name)}` on "
        f"{train.n_items:,} texts. What it learnt is {what}; its outputs are probabilities, to be read as such."
    )
    yield from ("", *_settings(facts), "", "## Outputs", "", *_outputs(classifier), "")
    yield from ("## Losses", "", *_losses(classifier), "")
    yield from ("## The labels it learnt from", "", *_audit(run))


def _settings(facts: Mapping[str, Any]) -> Iterator[str]:
    shown = {name: value for name, value in facts["settings"].items() if value is not None}
    if shown:
        yield "Settings: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items()) + "."
    if facts.get("weight"):
        yield f"Items were weighed by {facts['weight']}."


def _outputs(classifier: Classifier) -> Iterator[str]:
    for at, name in enumerate(classifier.head.names):
        yield f"- {at}: {markdown_text(name)}"
    yield ""
    yield "A question of two labels has one output, a sigmoid; those of a question of more share a softmax."


def _losses(classifier: Classifier) -> Iterator[str]:
    yield "| step | training | validation |"
    yield "| --- | --- | --- |"
    for point in classifier.curve:
        validation = f"{point.validation_loss:.4f}" if point.validation_loss == point.validation_loss else "–"
        yield f"| {point.step:,} | {point.train_loss:.4f} | {validation} |"
    yield ""
    yield "Cross-entropy against the targets, summed over questions, nats a text."


def _audit(run: Run) -> Iterator[str]:
    m = run.manifest
    ended = "converged" if m["converged"] else "did not converge"
    voters = "anonymous annotators" if m["anonymous"] else f"{m['annotators']:,} annotators"
    yield (
        f"{m['votes']:,} votes by {voters} on {m['items']:,} items; SHA-256 of their file: "
        f"{m['input']['sha256'] or '(none: a dataframe)'}. The fit {ended}."
    )
    yield ""
    yield "| question | items | entropy | aleatoric | epistemic |"
    yield "| --- | --- | --- | --- | --- |"
    for row in run.table("entropy").filter(domain=ALL).iter_rows(named=True):
        figures = [_figure(row[name]) for name in ("total", "aleatoric", "epistemic")]
        yield f"| {markdown_text(row['question'])} | {row['n_items']:,} | {' | '.join(figures)} |"
    yield ""
    yield "Nats an item. What common rules would have made of the same votes, against the consensus:"
    yield ""
    yield from _rates(run)
    for warning in m["warnings"]:
        yield f"- {markdown_text(warning)}"


def _rates(run: Run) -> Iterator[str]:
    rows = run.table("audit").filter(
        pl.col("metric").is_in(RATES), domain=ALL, reference="consensus", label=ALL, question=ALL
    )
    found = {(row["rule"], row["metric"]): row["value"] for row in rows.iter_rows(named=True)}
    yield "| rule | " + " | ".join(name.upper() for name in RATES) + " |"
    yield "| --- | --- | --- | --- |"
    for rule in rows["rule"].unique(maintain_order=True):
        cells = [_percent(found.get((rule, metric))) for metric in RATES]
        yield f"| {markdown_text(rule)} | {' | '.join(cells)} |"
    yield ""


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
