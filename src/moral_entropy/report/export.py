"""Run folder → files for others: items with votes, p, entropies and soft labels.

`hf` is a folder that Hugging Face `datasets` loads, `csv` and `jsonl` are one file, `lewidi` is the layout of the
shared tasks on learning with disagreements. Rows are made lazily, so that a million of them fit in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.files import check_free, whole_file, without_formulas, write_text
from moral_entropy.report.card import CROISSANT, croissant_facts, dataset_card
from moral_entropy.report.figures import slug
from moral_entropy.runs.folder import whole_folder
from moral_entropy.runs.run import Question, Run, as_run
from moral_entropy.schemas import ALL_PARTS

Layout = Literal["hf", "csv", "jsonl", "lewidi"]

DATA_FILE = "data/train.parquet"
FACTS = ("question", "item", "domain", "n_votes", "n_positive", "p_model", "p", "p_low", "p_high", "label", "entropy",
         *ALL_PARTS, "count", "part")  # fmt: skip


def export_run(
    run: Run | str | Path, out: str | Path, *, to: Layout, force: bool = False, group: str | None = None
) -> list[Path]:
    """Write the items of a run in a layout that other programs read, and return the files' paths.

    Parameters
    ----------
    run
        The run, or its folder.
    out
        A folder for "hf", and for "lewidi" with several questions; else a file.
    to
        The layout.
    force
        Replace what is there.
    group
        Column of annotators' groups whose soft labels are written too, for "csv" and "jsonl".
    """
    run, target = as_run(run), Path(out)
    check_free(target, force=force)
    if group is None:
        return _WRITERS[to](run, target)
    if to not in ("csv", "jsonl"):
        msg = f"soft labels per group have columns of their own, for which {to} has no place. Export to csv or jsonl."
        raise UsageError(msg)
    labels = group_labels(run, group)
    return _write_csv(run, target, labels) if to == "csv" else _write_jsonl(run, target, labels)


def group_labels(run: Run, column: str) -> pl.LazyFrame:
    """Return the soft labels of each group: one row per question and item, one column per group and label.

    Parameters
    ----------
    run
        The run.
    column
        The column of the groups, as `--annotator-group` named it, or `(camps)`.
    """
    known = run.table("group_items", where=pl.col("column") == column)
    if known.is_empty():
        columns = run.table("group_readings")["column"].unique().sort().to_list()
        has = f"It has {', '.join(columns)}" if columns else "It has no groups; audit with --annotator-group"
        msg = f"{run.where} has no soft labels by {column!r}. {has}."
        raise UsageError(msg)
    several = known.group_by("question").agg(pl.col("label").n_unique())["label"].max() != 1
    name = pl.format("p {}: {}", "group", "label") if several else pl.format("p {}", "group")
    cells = known.with_columns(name=name, item=pl.col("item").cast(pl.String))
    return cells.pivot("name", index=["question", "part", "item"], values="p", aggregate_function="first").lazy()


def export_rows(run: Run, *, only: str | None = None) -> pl.LazyFrame:
    """Return one row per question and item.

    Parameters
    ----------
    run
        The run.
    only
        Name of the one question wanted; all if not given.

    Returns
    -------
    pl.LazyFrame
        The columns of `items.parquet`, then text (if the run has texts), labels and soft_label (side by side, adding
        up to 1), annotators and annotations (side by side; if the run has votes).
    """
    questions = [question for question in run.questions if only in (None, question.name)]
    rows = pl.concat([_with_soft_labels(run, question) for question in questions])
    if run.has("votes"):
        wanted = pl.col("question").is_in([question.name for question in questions])
        votes = run.scan("votes").filter(wanted).group_by("question", "item", maintain_order=True)
        lists = votes.agg(annotators=pl.col("annotator").cast(pl.String), annotations=pl.col("label"))
        rows = rows.join(lists, on=["question", "item"], how="left", maintain_order="left")
        rows = rows.with_columns(pl.col("annotators", "annotations").fill_null([]))
    if run.has("texts"):
        rows = rows.join(run.scan("texts"), on="item", how="left", maintain_order="left")
    return rows.with_columns(pl.col("item").cast(pl.String))


def _with_soft_labels(run: Run, question: Question) -> pl.LazyFrame:
    of_question = pl.col("question") == question.name
    items = run.scan("items").filter(of_question).select(FACTS)
    labels = pl.lit(pl.Series([list(question.labels)])).alias("labels")
    if question.positive is not None:
        p = [pl.col("p") if label == question.positive else 1 - pl.col("p") for label in question.labels]
        return items.with_columns(labels, soft_label=pl.concat_list(p))
    posterior = run.scan("posterior").filter(of_question).group_by("item", maintain_order=True)
    soft = posterior.agg(soft_label=pl.col("p"))
    return items.with_columns(labels).join(soft, on="item", how="left", maintain_order="left")


def _with_groups(rows: pl.LazyFrame, groups: pl.LazyFrame | None) -> pl.LazyFrame:
    keys = ["question", "part", "item"]
    return rows if groups is None else rows.join(groups, on=keys, how="left", maintain_order="left")


def _write_csv(run: Run, target: Path, groups: pl.LazyFrame | None = None) -> list[Path]:
    rows = _with_groups(export_rows(run), groups)
    schema = rows.collect_schema()
    pairs = {"soft_label": ("labels", "soft_label"), "votes": ("annotators", "annotations")}
    packed = [
        pl.struct(*names).struct.json_encode().alias(name)
        for name, names in pairs.items()
        if set(names) <= set(schema)
    ]  # fmt: skip
    plain = [name for name, kind in schema.items() if not isinstance(kind, pl.List)]
    cells = rows.with_columns(packed).select(*plain, *(name for name in pairs if set(pairs[name]) <= set(schema)))
    with whole_file(target) as partial:
        without_formulas(cells).sink_csv(partial)
    return [target]


def _write_jsonl(run: Run, target: Path, groups: pl.LazyFrame | None = None) -> list[Path]:
    with whole_file(target) as partial:
        _with_groups(export_rows(run), groups).sink_ndjson(partial)
    return [target]


def _write_hf(run: Run, target: Path) -> list[Path]:
    with whole_folder(target, _check_earlier_export) as partial:
        (partial / DATA_FILE).parent.mkdir()
        export_rows(run).sink_parquet(partial / DATA_FILE, compression="zstd")
        write_text(partial / "README.md", dataset_card(run, data_file=DATA_FILE))
        write_text(partial / CROISSANT, json.dumps(_croissant(run), indent=2, ensure_ascii=False) + "\n")
    return [target / DATA_FILE, target / "README.md", target / CROISSANT]


def _check_earlier_export(target: Path) -> None:
    """Refuse to replace a folder that holds anything else than an earlier export."""
    written = [target / DATA_FILE, target / "README.md", target / CROISSANT]
    found = sorted(path for path in target.rglob("*") if not path.is_dir())
    foreign = [path for path in found if path not in written]
    lacking = [path for path in written if path not in found]
    if not found or not (foreign or lacking):
        return
    why = f"it holds {foreign[0].relative_to(target)}" if foreign else f"it has no {lacking[0].relative_to(target)}"
    msg = f"{target} is no earlier export: {why}. Choose another folder with -o."
    raise UsageError(msg)


def _croissant(run: Run) -> dict[str, Any]:
    facts = croissant_facts(run)
    facts["distribution"][0]["contentUrl"] = DATA_FILE
    return facts


def _write_lewidi(run: Run, target: Path) -> list[Path]:
    if not run.has("votes"):
        msg = f"{run.path} has no table 'votes', which LeWiDi's layout is made of. Run the audit again."
        raise UsageError(msg)
    if target.suffix == ".json" and len(run.questions) > 1:
        msg = f"{target.name} is one file, and the run has {len(run.questions)} questions. Name a folder with -o."
        raise UsageError(msg)
    if target.suffix == ".json":
        files = {run.questions[0].name: target}
    else:
        target.mkdir(parents=True, exist_ok=True)
        files = {question.name: target / f"{slug(question.name)}.json" for question in run.questions}
    for question, file in files.items():
        found = export_rows(run, only=question).collect()
        entries = {row["item"]: _lewidi_entry(row) for row in found.iter_rows(named=True)}
        write_text(file, json.dumps(entries, ensure_ascii=False, indent=1))
    return list(files.values())


def _lewidi_entry(row: dict[str, Any]) -> dict[str, Any]:
    commas = [text for text in (*row["annotations"], *row["annotators"]) if "," in text]
    if commas:
        msg = f"LeWiDi's layout splits names at commas, and {commas[0]!r} has one. Export as jsonl, or rename it."
        raise UsageError(msg)
    return {
        "text": row.get("text"),
        "number of annotations": row["n_votes"],
        "annotations": ",".join(row["annotations"]),
        "number of annotators": len(set(row["annotators"])),
        "annotators": ",".join(row["annotators"]),
        "hard_label": row["label"],
        "soft_label": dict(zip(row["labels"], row["soft_label"], strict=True)),
        "other_info": {"domain": row["domain"], "entropy": row["entropy"]},
    }


_WRITERS: dict[Layout, Callable[[Run, Path], list[Path]]] = {
    "hf": _write_hf,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "lewidi": _write_lewidi,
}
