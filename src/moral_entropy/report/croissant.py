"""Run → Croissant: JSON-LD that describes a data set to machines, with its fields on responsible use (RAI).

The vocabulary is that of Croissant 1.0 and its RAI extension (https://docs.mlcommons.org/croissant/). A file is named
with its digest; every sentence about limits and biases is a finding or a figure of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.consensus.entropy import CURES
from moral_entropy.report.data import shown_title
from moral_entropy.report.words import votes_in_words
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.manifest import digest_of
from moral_entropy.runs.notes import model_notes
from moral_entropy.runs.run import Run
from moral_entropy.verdict.rates import pooled_rate

CR_TERMS = ("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet",
            "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
            "transform")  # fmt: skip

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in CR_TERMS},
}

CONFORMS = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]

FIELDS = {
    "question": ("sc:Text", "the question"),
    "item": ("sc:Text", "id of the item"),
    "domain": ("sc:Text", "where the item comes from"),
    "n_votes": ("sc:Integer", "votes on the item"),
    "n_positive": ("sc:Integer", "votes for yes (the positive label), with more than two labels for the consensus"),
    "p_model": (
        "sc:Float",
        "the model's probability of the positive label, with more than two labels of the consensus",
    ),
    "p": ("sc:Float", "the same as published: under the mixed model pooled with the share of the votes"),
    "p_low": ("sc:Float", "lower bound of its interval"),
    "p_high": ("sc:Float", "upper bound of its interval"),
    "label": ("sc:Text", "the consensus label"),
    "entropy": ("sc:Float", "entropy of the model's label probabilities, in nats: the sum of its parts"),
    **{part: ("sc:Float", f"part of the entropy, in nats; {cure}") for part, cure in CURES.items()},
    "aleatoric": (
        "sc:Float",
        "what cannot be removed: ambiguity and between_groups; under the paper's model with doubt_votes",
    ),
    "epistemic": ("sc:Float", "the rest of the entropy"),
}

OF_GROUP = ("sc:Float", "share of a group's members who are expected to vote for the label: the group's soft label")

BLIND_SPOTS = "Votes are taken to be independent given the label; where annotators share a blind spot, p is too sure."


def croissant_facts(
    run: Run, *, file: str = "items.parquet", path: Path | None = None, of_groups: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a data set as Croissant: one Parquet file, its columns, how the labels came about and what they lack.

    Parameters
    ----------
    run
        The run whose items the file holds.
    file
        Where the rows lie, relative to the JSON.
    path
        The file itself, for its digest; the items of the run folder when not given. A run in memory has no digest.
    of_groups
        Columns with soft labels per group of annotators.
    """
    if path is None and run.path is not None:
        path = run.path / "items.parquet"
    digest = {} if path is None else {"sha256": digest_of(path)}
    described = {"@type": "cr:FileObject", "@id": file, "name": file, "contentUrl": file,
                 "encodingFormat": "application/x-parquet", **digest}  # fmt: skip
    schema = run.scan("items").collect_schema() if path is None else pl.read_parquet_schema(path)
    known = FIELDS | dict.fromkeys(of_groups, OF_GROUP)
    fields = [_field(name, known[name], file, schema) for name in known if name in schema]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": shown_title(run),
        "description": f"Consensus labels of {run.manifest['items']:,} items with their entropy and audit.",
        "version": "1.0.0",
        "distribution": [described],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "items", "name": "items", "field": fields}],
        **rai_facts(run),
    }


def protocol(run: Run) -> str:
    """Return how the labels of a run were made, in words."""
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
    matrices = (
        "one confusion matrix for all votes on a question" if m["anonymous"] else "a confusion matrix per annotator"
    )
    return (
        f"{votes_in_words(run)} on {m['items']:,} items were pooled with a Bayesian {model}, {matrices}, Dirichlet "
        "priors on both "
        f"(prevalence {json.dumps(priors['prevalence'])}, confusion rows {priors['diagonal']:g} on the diagonal and "
        f"{off}). p is the posterior probability averaged over {m['draws']:,} draws around "
        f"the mode (seed {m['seed']}){pooled}. Made by moral-entropy {m['version']} from an input with SHA-256 "
        f"{m['input']['sha256'] or '(none: a dataframe)'}."
        + "".join(f" {note[0].upper()}{note[1:]}." for note in model_notes(m))
    )


def rai_facts(run: Run) -> dict[str, Any]:
    """Return the fields on responsible use: annotation, missing data, limits, biases, uses."""
    verdict, facts = run.verdict, run.manifest
    n_rows = int(run.scan("items").select(pl.len()).collect().item())
    return {
        "rai:dataAnnotationProtocol": protocol(run),
        "rai:dataAnnotationAnalysis": ["Can the labels be shipped?", verdict.title, verdict.text],
        "rai:annotationsPerItem": f"{facts['votes'] / max(n_rows, 1):.2f} on average, per question",
        "rai:machineAnnotationTools": [f"moral-entropy {__version__}"],
        "rai:dataCollectionMissingData": list(_missing(run)),
        "rai:dataLimitations": list(_limitations(run)),
        "rai:dataBiases": list(_biases(run)),
        "rai:dataUseCases": list(_uses(run)),
        "rai:personalSensitiveInformation": [
            "The rows described here name no annotator. In the run folder, votes.parquet has the annotators' ids as "
            "they were given, and texts.parquet the items' texts: look at both before publishing them."
        ],
    }


def _field(name: str, told: tuple[str, str], file: str, schema: Mapping[str, pl.DataType]) -> dict[str, Any]:
    kind, meaning = told
    kind = "sc:Integer" if schema[name].is_integer() else kind
    source = {"fileObject": {"@id": file}, "extract": {"column": name}}
    return {"@type": "cr:Field", "@id": f"items/{name}", "name": name, "description": meaning, "dataType": kind,
            "source": source}  # fmt: skip


def _missing(run: Run) -> Iterator[str]:
    facts = run.manifest
    yield f"{facts['items_without_votes']:,} of {facts['items']:,} items have no vote."
    yield from (f"{count:,} rows were left out: {why}." for why, count in facts["dropped"].items() if count)


def _limitations(run: Run) -> Iterator[str]:
    yield from (f"{one.text}. {one.meaning}" for one in cautions(run))
    if run.verdict.error is None:
        yield "No labels were checked by hand: how many of them are wrong is not known."
    yield BLIND_SPOTS


def _biases(run: Run) -> Iterator[str]:
    """Say in which direction common rules err, and how unevenly the labels fall."""
    for rule in ("any", "majority"):
        rates = {metric: pooled_rate(run, rule, metric) for metric in ("fpr", "fnr")}
        found = [f"{name.upper()} {row['value']:.1%}" for name, row in rates.items() if row is not None]
        if found:
            yield f"Against the consensus, labels made by the rule {rule} have {' and '.join(found)}."
    for fit in run.manifest["questions"]:
        shares = ", ".join(f"{label} {share:.1%}" for label, share in fit["prevalence"].items())
        where = f"{fit['question']} ({fit['part']})" if fit["part"] else fit["question"]
        yield f"Labels of {where} by the consensus: {shares}."
    yield "The labels are those that these annotators would agree on; another crowd may judge otherwise."


def _uses(run: Run) -> Iterator[str]:
    yield "Training and evaluating classifiers on soft labels (p) or hard ones (label), with weights by entropy."
    yield "Studying disagreement between annotators, by item, question and domain."
    if run.verdict.answer not in ("ship", "ship soft"):
        yield "Not as ground truth: nobody has shown that few enough of the labels are wrong."
    yield "Not for decisions about the people who wrote or annotated the items."
