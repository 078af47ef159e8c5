"""Run → a card for readers of the data: what it holds, how the labels were made, how sure they are, how to load it.

Markdown with YAML on top, as model and data hubs read it, and the same facts as Croissant (JSON-LD for data sets), with
a field for every column of every file. Names from the data are escaped, since hubs render Markdown; sentences that name
an annotator who is hidden are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy import __version__
from moral_entropy.files import write_text
from moral_entropy.markup import NOTHING
from moral_entropy.model.entropy import REMEDIES, parts_note
from moral_entropy.names import ALL
from moral_entropy.report.paper import interval_of, question_frame, with_ends
from moral_entropy.report.words import TEMPLATES, fill_template, order_notes, protocol, shown_title, votes_in_words
from moral_entropy.runs.folder import digest_of, note_files
from moral_entropy.runs.run import Run, as_run, cautions
from moral_entropy.verdict.figures import pooled_rates

CARD, CROISSANT = "dataset-card.md", "croissant.json"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
LONGEST = 80
"""Letters of an example."""

Files = Mapping[str, Path]
"""Data files by their name relative to the card; the first has the items."""

About = Mapping[str, str]
"""What the publisher says of the data: name, licence, language, url."""


def write_card(run: Run | str | Path) -> list[Path]:
    """Write the dataset card and its Croissant into a run folder and return their paths."""
    run = as_run(run)
    files = write_texts(run.folder, CARD, run)
    note_files(run.folder, [CARD, CROISSANT])
    return files


def write_texts(folder: Path, name: str, run: Run, files: Files | None = None, **facts: Any) -> list[Path]:
    """Write a card of this name, and Croissant, into a folder; the arguments are those of `dataset_card`."""
    write_text(folder / name, dataset_card(run, files, **facts))
    croissant = json.dumps(croissant_facts(run, files, **facts), indent=2, ensure_ascii=False)
    write_text(folder / CROISSANT, croissant + "\n")
    return [folder / name, folder / CROISSANT]


def dataset_card(
    run: Run, files: Files | None = None, *, about: About | None = None, notes: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the card of a data set.

    Parameters
    ----------
    run
        The run.
    files
        The data files; the items of the run folder if not given.
    about
        What the publisher says of the data: name, licence, language, url.
    notes
        Further limits to state.
    hidden
        Names of annotators that the card must not show.
    """
    files, about = files or _own_files(run), about or {}
    means = {name: pl.col(column).round(4) for column, name in ({"total": "total"} | run.parts).items()}
    stated = [(name, about.get(name, "not stated")) for name in ("licence", "language")]
    return fill_template(
        "card.md",
        run=run,
        about=about,
        size=next((size for bound, size in SIZES if run.manifest["items"] < bound), "n>1M"),
        name=_name(run, about),
        votes=votes_in_words(run),
        stated=[*stated, *([("source", about["url"])] if "url" in about else [])],
        is_export=files and run.path is not None and next(iter(files.values())) != run.path / "items.parquet",
        files=[_described(file, path) for file, path in files.items()],
        questions=list(_questions(run)),
        checked=_checked(run),
        protocol=protocol(run),
        entropy=run.table("entropy").filter(domain=ALL).select("question", pl.col("n_items").alias("items"), **means),
        remedies=REMEDIES,
        note=parts_note(run.model),
        limits=[*_limitations(run, hidden), *notes, *order_notes(run)],
        groups=_pool(run.manifest["groups"], hidden) if "groups" in run.manifest else None,
    )


def _described(file: str, path: Path) -> dict[str, Any]:
    """Return the columns of a data file, with what they mean, and the cells of its first row."""
    row = pl.scan_parquet(path).head(1).collect().row(0, named=True)
    columns = [(name, str(kind), meaning(name), _short(row[name])) for name, kind in _schema(path)]
    return {"name": file, "part": _part(file), "columns": columns}


def _short(cell: Any) -> str | None:
    """Return a cell as an example: figures to four digits, a long text or list cut."""
    if isinstance(cell, list):
        return ", ".join(_short(value) or NOTHING for value in cell[:3]) + ", …" * (len(cell) > 3)
    text = f"{cell:.4g}" if isinstance(cell, float) else None if cell is None else str(cell)
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _own_files(run: Run) -> dict[str, Path]:
    return {} if run.path is None else {"items.parquet": run.path / "items.parquet"}


def _part(file: str) -> str:
    """Name the part of the data that a file holds."""
    return "votes" if "votes" in file else "items"


def _name(run: Run, about: About) -> str:
    return about.get("name") or f"{shown_title(run)} with consensus labels"


def _questions(run: Run) -> Iterator[tuple[str, ...]]:
    rows = question_frame(run).rows_by_key("question", named=True, unique=True, include_key=True)
    for fit in run.manifest["questions"]:
        row = rows[" / ".join(filter(None, (fit["question"], fit["part"])))]
        shares = ", ".join(f"{label}: {share:.1%}" for label, share in fit["prevalence"].items())
        yield row["question"], shares, f"{fit['uncertain']:.1%}", interval_of(row, "alpha", ".2f")


def _checked(run: Run) -> str:
    error = run.verdict.error
    if error is None:
        return "No labels were checked by hand: how many of them are wrong is not known."
    share = with_ends(".1%", error.value, error.low, error.high)
    return f"Of {error.checked:,} labels that were checked, {error.wrong:,.0f} are wrong: {share}."


def _pool(groups: dict[str, Any], hidden: Sequence[str]) -> dict[str, Any]:
    """Return who the annotators are, and what was found about their groups."""
    people = [(row["column"], row["group"], row["annotators"], f"{row['share']:.1%}",
               None if row["target"] is None else f"{row['target']:.1%}") for row in groups["composition"]]  # fmt: skip
    heads = ("column", "group", "annotators", "share of the pool", "share of the target")
    sentences = without_names((*groups["notes"], *groups["sentences"]), hidden)
    return {"heads": heads, "people": people, "sentences": sentences}


def without_names(sentences: Iterable[str], hidden: Sequence[str]) -> list[str]:
    """Leave out sentences in which a hidden name stands as a word.

    Examples
    --------
    >>> without_names(["ann votes as bob does.", "Votes are few; an annotator."], ["ann", "bob"])
    ['Votes are few; an annotator.']
    """
    names = set(hidden)
    plain = [text for text in sentences if not names & set(text.translate(PUNCTUATION).split())]
    return [text for text in plain if not any(name in text for name in names if not name.isalnum() or " " in name)]


def _schema(path: Path) -> list[tuple[str, pl.DataType]]:
    return list(pl.scan_parquet(path).collect_schema().items())


CONFORMS = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]

BLIND_SPOTS = "Votes are taken to be independent given the label; where annotators share a blind spot, p is too sure."
PUNCTUATION = str.maketrans(dict.fromkeys(",;:.()“”'\"!?", " "))


def meaning(column: str) -> str:
    """Say what a column of an export holds.

    Examples
    --------
    >>> meaning("n_votes"), meaning("p women")
    ('votes on the item', "share of a group's members who are expected to vote for the label")
    """
    if column in REMEDIES:
        return f"part of the entropy, in nats; {REMEDIES[column]}"
    of_group = "share of a group's members who are expected to vote for the label"
    other = of_group if column.startswith("p ") else "as it was in the input"
    return str(_template()["columns"].get(column, other))


@cache
def _template() -> dict[str, Any]:
    """Return what every Croissant has: the context of its terms, and what the columns of exports mean."""
    facts: dict[str, Any] = json.loads((TEMPLATES / "croissant.json").read_text(encoding="utf-8"))
    return facts


def croissant_facts(
    run: Run, files: Files | None = None, *, about: About | None = None, notes: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return a data set as Croissant: its files, all their columns, how the labels came about and what they lack.

    Parameters
    ----------
    run, files, about, notes, hidden
        As in `dataset_card`; a run in memory without files has no columns.
    """
    files, about = files or _own_files(run), about or {}
    return {
        "@context": _template()["@context"],
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": _name(run, about),
        "description": f"Consensus labels of {run.manifest['items']:,} items with their entropy and audit.",
        "version": "1.0.0",
        **{key: about[name] for name, key in (("licence", "license"), ("language", "inLanguage"), ("url", "url"))
           if name in about},
        "distribution": [
            {"@type": "cr:FileObject", "@id": file, "name": file, "contentUrl": file,
             "encodingFormat": "application/x-parquet", "sha256": digest_of(path)}
            for file, path in files.items()
        ],
        "recordSet": [
            {"@type": "cr:RecordSet", "@id": _part(file), "name": _part(file),
             "field": [_field(_part(file), file, name, kind) for name, kind in _schema(path)]}
            for file, path in files.items()
        ],
        **rai_facts(run, notes, hidden),
    }  # fmt: skip


def _field(part: str, file: str, name: str, kind: pl.DataType) -> dict[str, Any]:
    inner = kind.inner if isinstance(kind, pl.List) else kind
    types = ((inner.is_integer(), "sc:Integer"), (inner.is_float(), "sc:Float"), (inner == pl.Boolean, "sc:Boolean"))
    source = {"fileObject": {"@id": file}, "extract": {"column": name}}
    field = {"@type": "cr:Field", "@id": f"{part}/{name}", "name": name, "description": meaning(name)}
    field["dataType"] = next((title for holds, title in types if holds), "sc:Text")
    return field | ({} if inner is kind else {"repeated": True}) | {"source": source}


def rai_facts(run: Run, notes: Sequence[str] = (), hidden: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields on responsible use: annotation, missing data, limits, biases, uses."""
    facts = run.manifest
    n_rows = int(run.scan("items").select(pl.len()).collect().item())
    ids = "Annotators' ids are those that were given: look at them before publishing."
    private = "Annotators have pseudonyms; the key is not part of the data." if hidden else ids
    missing = [f"{facts['items_without_votes']:,} of {facts['items']:,} items have no vote."]
    missing += [f"{count:,} rows were left out: {why}." for why, count in facts["dropped"].items() if count]
    return {
        "rai:dataAnnotationProtocol": protocol(run),
        "rai:dataAnnotationAnalysis": [_checked(run), *(f"{name}: {shares}; uncertain {uncertain}; alpha {alpha}"
                                                        for name, shares, uncertain, alpha in _questions(run))],
        "rai:annotationsPerItem": f"{facts['votes'] / max(n_rows, 1):.2f} on average, per question",
        "rai:machineAnnotationTools": [f"moral-entropy {__version__}"],
        "rai:dataCollectionMissingData": " ".join(missing),
        "rai:dataLimitations": [*_limitations(run, hidden), *notes],
        "rai:dataBiases": list(_biases(run)),
        "rai:dataUseCases": list(_uses(run)),
        "rai:personalSensitiveInformation": [f"{private} Texts are as they were given."],
    }  # fmt: skip


def _limitations(run: Run, hidden: Sequence[str]) -> list[str]:
    names = set(hidden)
    findings = [finding for finding in cautions(run) if not names & set(re.split(" · |, | and ", finding.subject))]
    sentences = [f"{finding.text}. {finding.meaning}" for finding in findings]
    # A name that is a number would be found in every figure; where one is named, it is the finding's subject.
    words = [name for name in hidden if not name.isdigit()]
    return [*without_names(sentences, words), _checked(run), BLIND_SPOTS]


def _biases(run: Run) -> Iterator[str]:
    """Say in which direction common rules err, and how unevenly the labels fall."""
    rates = pooled_rates(run)
    for rule in ("any", "majority"):
        rows = {metric: rates.get((rule, metric)) for metric in ("fpr", "fnr")}
        figures = [f"{name.upper()} {row['value']:.1%}" for name, row in rows.items() if row is not None]
        if figures:
            yield f"Against the consensus, labels made by the rule {rule} have {' and '.join(figures)}."
    yield "The labels are those that these annotators would agree on; others may judge otherwise."


def _uses(run: Run) -> Iterator[str]:
    yield "Training and evaluating classifiers on soft labels (p) or hard ones (label), with weights by entropy."
    yield "Studying disagreement between annotators, by item, question and domain."
    if run.verdict.answer not in ("ship", "ship soft"):
        yield "Not as ground truth: nobody has shown that few enough of the labels are wrong."
    yield "Not for decisions about the people who wrote or annotated the items."
