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

from moral_entropy.consensus.entropy import CURES, parts_note
from moral_entropy.files import write_text
from moral_entropy.markup import NOTHING, markdown_table, markdown_text
from moral_entropy.names import ALL
from moral_entropy.report.croissant import BLIND_SPOTS, croissant_facts, protocol
from moral_entropy.report.data import shown_title
from moral_entropy.report.words import RATES, label_notes, order_notes
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.manifest import note_files
from moral_entropy.runs.run import Run, as_run
from moral_entropy.verdict.headlines import headlines, with_interval
from moral_entropy.verdict.rates import ends_in_percent

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
        said = f"{markdown_text(one.text)}. {markdown_text(one.meaning)} *What to do:* {markdown_text(one.cure)}"
        yield f"- **{one.severity}**: {said}"
    yield f"- {BLIND_SPOTS}"
    yield from (f"- {markdown_text(note)}" for note in order_notes(run))
    yield ""
    yield "## How uncertain the labels are: mean entropy, nats"
    yield ""
    yield _table(_entropy(run))
    yield ""
    yield from (f"- {name}: {CURES[part]}." for part, name in run.parts.items())
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
