"""Run folder → a dataset card: how the labels were made, how sure they are, what rules would have done.

Markdown with YAML on top, as model and data hubs read it, and the same facts as Croissant (JSON-LD for data sets).
Names from the data are escaped, since hubs render Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.files import write_text
from moral_entropy.markup import NOTHING, markdown_table, markdown_text
from moral_entropy.model.entropy import REMEDIES, parts_note
from moral_entropy.names import ALL
from moral_entropy.report.words import RATES, label_notes, order_notes, shown_title, votes_in_words
from moral_entropy.runs.folder import digest_of, note_files
from moral_entropy.runs.run import Run, as_run, cautions, model_notes
from moral_entropy.verdict.headlines import headlines, with_interval
from moral_entropy.verdict.rates import ends_in_percent, pooled_rate

CARD, CROISSANT = "dataset-card.md", "croissant.json"
SHOWN_RATES = ("fpr", "fnr", "fdr")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def write_card(run: Run | str | Path) -> list[Path]:
    """Write the dataset card and its Croissant into a run folder and return their paths."""
    run = as_run(run)
    card, croissant = run.folder / CARD, run.folder / CROISSANT
    write_text(card, dataset_card(run))
    write_text(croissant, json.dumps(croissant_facts(run), indent=2, ensure_ascii=False) + "\n")
    note_files(run.folder, [CARD, CROISSANT])
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
    verdict, found = run.verdict, cautions(run)
    yield f"# {markdown_text(shown_title(run))}: how the labels were made"
    yield ""
    yield protocol(run)
    yield ""
    yield "## Can these labels be shipped?"
    yield ""
    yield f"**{markdown_text(verdict.title)}** {markdown_text(verdict.text)}"
    yield ""
    yield _table(_headlines(run))
    yield ""
    yield f"Ranges, here and below, are {run.interval:.0%} intervals."
    yield ""
    yield "## Known limits"
    yield ""
    for one in found:
        said = f"{markdown_text(one.text)}. {markdown_text(one.meaning)} *What to do:* {markdown_text(one.remedy)}"
        yield f"- **{one.severity}**: {said}"
    yield f"- {BLIND_SPOTS}"
    yield from (f"- {markdown_text(note)}" for note in order_notes(run))
    yield ""
    yield "## How uncertain the labels are: mean entropy, nats"
    yield ""
    yield _table(_entropy(run))
    yield ""
    yield from (f"- {name}: {REMEDIES[part]}." for part, name in run.parts.items())
    yield ""
    yield parts_note(run.model)
    yield ""
    yield "## What common rules would have done"
    yield ""
    yield " ".join(
        ["Shares against the consensus, over all questions and domains.", *map(markdown_text, label_notes(run))]
    )
    yield ""
    yield from (f"- {RATES[name].title}: {RATES[name].meaning}." for name in SHOWN_RATES)
    yield ""
    yield _table(_rates(run))
    if "groups" in run.manifest:
        yield ""
        yield from _pool(run.manifest["groups"])


def _headlines(run: Run) -> pl.DataFrame:
    shown = [(one.name, with_interval(one), one.note) for one in headlines(run, run.verdict)]
    return pl.DataFrame(shown, schema=["figure", "value", "meaning"], orient="row")


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


def _entropy(run: Run) -> pl.DataFrame:
    rows = run.table("entropy").filter(domain=ALL)
    shown = {"total": "total"} | run.parts
    means = {name: pl.col(of).round(4) for of, name in shown.items()}
    return rows.select("question", pl.col("n_items").alias("items"), **means)


def _rates(run: Run) -> pl.DataFrame:
    rows = run.table("audit").filter(
        pl.col("metric").is_in(SHOWN_RATES), domain=ALL, reference="consensus", label=ALL, question=ALL
    )
    shown = {
        (row["rule"], row["metric"]): _percent(row["value"], row["low"], row["high"])
        for row in rows.iter_rows(named=True)
    }
    rules = rows["rule"].unique(maintain_order=True)
    cells = [tuple(shown.get((rule, name), NOTHING) for name in SHOWN_RATES) for rule in rules]
    # Rules that do the same share a row.
    alike = {found: ", ".join(rule for rule, own in zip(rules, cells, strict=True) if own == found) for found in cells}
    names = ["rule", *(RATES[name].name for name in SHOWN_RATES)]
    return pl.DataFrame([(rule, *found) for found, rule in alike.items()], schema=names, orient="row")


def _percent(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return NOTHING
    ends = "" if low is None or high is None else " ({}% – {}%)".format(*ends_in_percent(low, high))
    return f"{value:.1%}{ends}"


def _table(frame: pl.DataFrame) -> str:
    return markdown_table(frame.columns, frame.rows())


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
    **{part: ("sc:Float", f"part of the entropy, in nats; {remedy}") for part, remedy in REMEDIES.items()},
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
    own = run.path is not None and path == run.path / "items.parquet"
    schema = run.scan("items").collect_schema() if own or path is None else pl.read_parquet_schema(path)
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
