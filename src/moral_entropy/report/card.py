"""Run folder → a dataset card: how the labels were made, how sure they are, what rules would have done.

Markdown with YAML on top, as model and data hubs read it, and the same facts as Croissant (JSON-LD for data sets).
Names from the data are escaped, since hubs render Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.consensus.entropy import CURES, parts_note, shown_parts
from moral_entropy.files import write_text
from moral_entropy.markup import NOTHING, markdown_table, markdown_text
from moral_entropy.names import ALL
from moral_entropy.report.data import shown_title
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.notes import model_notes
from moral_entropy.runs.run import Run, as_run

CARD, CROISSANT = "dataset-card.md", "croissant.json"
RATES = ("fpr", "fnr", "fdr")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

FIELDS = {
    "question": ("sc:Text", "the question"),
    "item": ("sc:Text", "id of the item"),
    "domain": ("sc:Text", "where the item comes from"),
    "n_votes": ("sc:Integer", "votes on the item"),
    "n_positive": ("sc:Integer", "votes for the positive label, with more than two labels for the consensus"),
    "p_model": (
        "sc:Float",
        "the model's probability of the positive label, with more than two labels of the consensus",
    ),
    "p": ("sc:Float", "the same as published: under the mixed model pooled with the share of the votes"),
    "p_low": ("sc:Float", "lower bound of its interval"),
    "p_high": ("sc:Float", "upper bound of its interval"),
    "label": ("sc:Text", "the consensus label"),
    "entropy": ("sc:Float", "entropy of the model's label probabilities, in nats: the sum of its three parts"),
    **{part: ("sc:Float", f"part of the entropy, in nats; {cure}") for part, cure in CURES.items()},
    "aleatoric": ("sc:Float", "what cannot be removed: ambiguity; under the paper's model doubt_votes"),
    "epistemic": ("sc:Float", "the rest of the entropy"),
}


def write_card(run: Run | str | Path) -> list[Path]:
    """Write the dataset card and its Croissant into a run folder and return their paths."""
    run = as_run(run)
    card, croissant = run.folder / CARD, run.folder / CROISSANT
    write_text(card, dataset_card(run))
    write_text(croissant, json.dumps(croissant_facts(run), indent=2, ensure_ascii=False) + "\n")
    return [card, croissant]


def dataset_card(run: Run, *, data_file: str | None = None) -> str:
    """Return the card of a run.

    Parameters
    ----------
    run
        The run.
    data_file
        Where the rows lie, relative to the card; named in the YAML for `datasets.load_dataset`.
    """
    return "\n".join([*_front_matter(run, data_file), "", *_body(run)]) + "\n"


def croissant_facts(run: Run) -> dict[str, Any]:
    """Return the card as Croissant: one Parquet file, its columns, and how the labels came about."""
    fields = [
        {"@type": "cr:Field", "@id": f"items/{name}", "name": name, "description": meaning, "dataType": kind,
         "source": {"fileObject": {"@id": "items.parquet"}, "extract": {"column": name}}}
        for name, (kind, meaning) in FIELDS.items()
    ]  # fmt: skip
    file = {"@type": "cr:FileObject", "@id": "items.parquet", "name": "items.parquet",
            "contentUrl": "items.parquet", "encodingFormat": "application/vnd.apache.parquet"}  # fmt: skip
    return {
        "@context": {"@vocab": "https://schema.org/", "sc": "https://schema.org/",
                     "cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/"},
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": shown_title(run),
        "description": f"Consensus labels of {run.manifest['items']:,} items with their entropy and audit.",
        "distribution": [file],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "items", "name": "items", "field": fields}],
        "rai:dataAnnotationProtocol": _protocol(run),
        "rai:dataAnnotationAnalysis": " ".join(_analysis(run)),
        "rai:annotationsPerItem": f"{run.manifest['votes'] / max(_n_rows(run), 1):.2f} on average, per question",
        "rai:machineAnnotationTools": [f"moral-entropy {__version__}"],
    }  # fmt: skip


def _front_matter(run: Run, data_file: str | None) -> list[str]:
    n = int(run.manifest["items"])
    size = next((name for most, name in SIZES if n < most), "n>1M")
    # A JSON text is a YAML text, whatever is in it.
    facts: dict[str, Any] = {
        "pretty_name": f"{shown_title(run)} with consensus labels",
        "task_categories": ["text-classification"],
        "size_categories": [size],
        "tags": ["annotator-disagreement", "soft-labels", "moral-entropy"],
    }
    if data_file:
        facts["configs"] = [{"config_name": "default", "data_files": [{"split": "train", "path": data_file}]}]
    return ["---", *(f"{name}: {json.dumps(value)}" for name, value in facts.items()), "---"]


def _body(run: Run) -> Iterator[str]:
    yield f"# {markdown_text(shown_title(run))}: how the labels were made"
    yield ""
    yield _protocol(run)
    yield ""
    yield " ".join(markdown_text(sentence) for sentence in _analysis(run))
    yield ""
    yield "## Entropy of the labels, nats"
    yield ""
    yield _table(_entropy(run))
    yield ""
    yield from (f"- {name}: {CURES[part]}." for part, name in shown_parts(run.model).items())
    yield ""
    yield parts_note(run.model)
    yield ""
    yield "## What common rules would have done"
    yield ""
    yield f"Rates against the consensus, pooled over questions and domains, with {run.interval:.0%} intervals."
    yield "FPR: of the consensus' no, called yes. FNR: of its yes, missed. FDR: of the rule's yes, consensus no."
    yield ""
    yield _table(_rates(run))
    yield ""
    if "groups" in run.manifest:
        yield from _pool(run.manifest["groups"])
    yield "## Known limits"
    yield ""
    found = cautions(run)
    yield from (f"- **{one.severity}**: {markdown_text(one.title)}. {markdown_text(one.meaning)}" for one in found)
    yield "- Votes are taken to be independent given the label; where annotators share a blind spot, p is too sure."


def _pool(groups: dict[str, Any]) -> Iterator[str]:
    """Say who the annotators are, and what was found about their groups."""
    yield "## Whose consensus this is"
    yield ""
    rows = [(row["column"], row["group"], row["annotators"], f"{row['share']:.1%}",
             None if row["target"] is None else f"{row['target']:.1%}") for row in groups["composition"]]  # fmt: skip
    if rows:
        heads = ("column", "group", "annotators", "share of the pool", "share of the target")
        yield markdown_table(heads, rows, numbers=heads[2:])
        yield ""
    yield from (f"- {markdown_text(text[:1].upper() + text[1:])}" for text in (*groups["notes"], *groups["sentences"]))
    yield ""


def _protocol(run: Run) -> str:
    m = run.manifest
    priors = m["priors"]
    mixed = run.model == "mixed"
    model = (
        "mixed-membership model: items may lie between labels"
        if mixed
        else "Dawid–Skene model: one true label per item"
    )
    wrong = priors["off_diagonal"]
    off = f"{wrong:g} off it" if wrong is not None else "1.2 off it, at most 3 per row" if mixed else "1.2 off it"
    pooled = ", pooled with the share of the item's votes" if mixed else ""
    return (
        f"{m['votes']:,} votes by {m['annotators']:,} annotators on {m['items']:,} items were pooled with a Bayesian "
        f"{model}, a confusion matrix per annotator, Dirichlet priors on both "
        f"(prevalence {json.dumps(priors['prevalence'])}, confusion rows {priors['diagonal']:g} on the diagonal and "
        f"{off}). p is the posterior probability averaged over {m['draws']:,} draws around "
        f"the mode (seed {m['seed']}){pooled}. Made by moral-entropy {m['version']} from an input with SHA-256 "
        f"{m['input']['sha256'] or '(none: a dataframe)'}."
        + "".join(f" {note[0].upper()}{note[1:]}." for note in model_notes(m))
    )


def _analysis(run: Run) -> list[str]:
    verdict = run.verdict
    return ["Can the labels be shipped?", verdict.title, verdict.text]


def _entropy(run: Run) -> pl.DataFrame:
    rows = run.table("entropy").filter(domain=ALL)
    shown = {"total": "total"} | shown_parts(run.model)
    means = {name: pl.col(of).round(4) for of, name in shown.items()}
    return rows.select("question", pl.col("n_items").alias("items"), **means)


def _rates(run: Run) -> pl.DataFrame:
    rows = run.table("audit").filter(
        pl.col("metric").is_in(RATES), domain=ALL, reference="consensus", label=ALL, question=ALL
    )
    shown = {
        (row["rule"], row["metric"]): _percent(row["value"], row["low"], row["high"])
        for row in rows.iter_rows(named=True)
    }
    rules = rows["rule"].unique(maintain_order=True)
    return pl.DataFrame([{"rule": rule, **{m.upper(): shown.get((rule, m), NOTHING) for m in RATES}} for rule in rules])


def _percent(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.1%}" + (f" ({low:.1%} – {high:.1%})" if low is not None and high is not None else "")


def _table(frame: pl.DataFrame) -> str:
    return markdown_table(frame.columns, frame.rows())


def _n_rows(run: Run) -> int:
    return int(run.scan("items").select(pl.len()).collect().item())
