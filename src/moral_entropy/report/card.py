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

from moral_entropy.consensus.entropy import CURES, parts_note, shown_parts
from moral_entropy.files import write_text
from moral_entropy.markup import NOTHING, markdown_table, markdown_text
from moral_entropy.names import ALL
from moral_entropy.report.croissant import BLIND_SPOTS, croissant_facts, protocol
from moral_entropy.report.data import shown_title
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.manifest import note_files
from moral_entropy.runs.run import Run, as_run

CARD, CROISSANT = "dataset-card.md", "croissant.json"
RATES = ("fpr", "fnr", "fdr")
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
    yield f"# {markdown_text(shown_title(run))}: how the labels were made"
    yield ""
    yield protocol(run)
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
    yield "## Known limits"
    yield ""
    found = cautions(run)
    yield from (f"- **{one.severity}**: {markdown_text(one.title)}. {markdown_text(one.meaning)}" for one in found)
    yield f"- {BLIND_SPOTS}"


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
