"""Run folder → files for others: items with votes, p, entropies and soft labels.

`hf` is a folder that Hugging Face `datasets` loads, `csv` and `jsonl` are one file, `lewidi` is the layout of the
shared tasks on learning with disagreements, `label-studio`, `argilla` and `prodigy` are files that these tools import.
Each can be audited again and gives the same votes; `reading_flags` says how. Rows of the first three are made lazily,
so that a million of them fit in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import polars as pl

from moral_entropy import __version__
from moral_entropy.errors import UsageError
from moral_entropy.files import check_free, whole_file, without_formulas, write_text
from moral_entropy.report.card import CROISSANT, croissant_facts, dataset_card
from moral_entropy.report.figures import slug
from moral_entropy.runs.folder import whole_folder
from moral_entropy.runs.run import Question, Run, as_run
from moral_entropy.schemas import ALL_PARTS, BETWEEN
from moral_entropy.votes.formats.exported_votes import ITEM_KEY, QUESTION_KEY
from moral_entropy.votes.layouts import ANONYMOUS
from moral_entropy.votes.values import no_answers

Layout = Literal["hf", "csv", "jsonl", "lewidi", "label-studio", "argilla", "prodigy"]

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
        Column of annotators' groups whose soft labels are written too: one column per group and label, and in
        "lewidi" the record soft_label_by_group. Annotation tools have no place for them.
    """
    run, target = as_run(run), Path(out)
    check_free(target, force=force)
    if group is None:
        return _WRITERS[to](run, target)
    if to not in _BY_GROUP:
        names = ", ".join(_BY_GROUP)
        msg = f"soft labels per group have columns of their own, for which {to} has no place. Export to one of {names}."
        raise UsageError(msg)
    return _BY_GROUP[to](run, target, group)


def group_labels(run: Run, column: str) -> pl.LazyFrame:
    """Return the soft labels of each group: one row per question and item, one column per group and label.

    Parameters
    ----------
    run
        The run.
    column
        The column of the groups, as `--annotator-group` named it.
    """
    known = _group_items(run, column)
    several = known.group_by("question").agg(pl.col("label").n_unique())["label"].max() != 1
    name = pl.format("p {}: {}", "group", "label") if several else pl.format("p {}", "group")
    cells = known.with_columns(name=name, item=pl.col("item").cast(pl.String))
    return cells.pivot("name", index=["question", "part", "item"], values="p", aggregate_function="first").lazy()


def _group_items(run: Run, column: str) -> pl.DataFrame:
    """Return what the groups of a column say of the items; an error where the run does not know."""
    known = run.table("group_items", where=pl.col("column") == column)
    if known.is_empty():
        columns = run.table("group_readings")["column"].unique().sort().to_list()
        has = f"It has {', '.join(columns)}" if columns else "It has no groups; audit with --annotator-group"
        msg = f"{run.where} has no soft labels by {column!r}. {has}."
        raise UsageError(msg)
    return known


def export_queue(run: Run, queue: pl.DataFrame, out: str | Path, *, to: Tool) -> None:
    """Write the votes to ask for as a file that an annotation tool imports, with p as predictions.

    Parameters
    ----------
    run
        The run.
    queue
        What `planning.next_votes` returns.
    out
        The file.
    to
        The tool.
    """
    asked = queue.lazy().select("question", pl.col("item").cast(pl.String), "rank", "expected_gain", ask="annotator")
    rows = export_rows(run).drop("annotators", "annotations", strict=False).join(asked, on=["question", "item"])
    # Rows of an item side by side, the most telling item first.
    ranked = rows.collect().with_columns(best=pl.col("rank").min().over("item")).sort("best", "rank")
    _write_records(ranked, Path(out), to)


def reading_flags(run: Run) -> list[str]:
    """Return the flags with which an audit of an export has the same votes: who voted how often, and spellings."""
    asked = run.manifest["options"]["read"]
    flags = ["--anonymous"] if run.manifest["anonymous"] else []
    flags += ["--on-repeat", "count"] if asked["on_repeat"] == "count" and not flags else []
    flags += ["--keep-case"] if asked["keep_case"] else []
    labels = [label for question in run.questions for label in question.labels]
    return flags + (
        ["--missing", ""] if asked["missing"] is not None or any(no_answers([label]) for label in labels) else []
    )


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
    optional = ([BETWEEN] if run.between_groups else []) + (["p_votes"] if run.texts_count else [])
    items = run.scan("items").filter(of_question).select(*FACTS, *optional)
    labels = pl.lit(pl.Series([list(question.labels)])).alias("labels")
    if question.positive is not None:
        p = [pl.col("p") if label == question.positive else 1 - pl.col("p") for label in question.labels]
        return items.with_columns(labels, soft_label=pl.concat_list(p))
    posterior = run.scan("posterior").filter(of_question).group_by("item", maintain_order=True)
    soft = posterior.agg(soft_label=pl.col("p"))
    return items.with_columns(labels).join(soft, on="item", how="left", maintain_order="left")


def _rows_by_group(run: Run, group: str | None) -> pl.LazyFrame:
    """Return the rows of an export, with the soft labels of a column's groups where one is named."""
    if group is None:
        return export_rows(run)
    keys = ["question", "part", "item"]
    return export_rows(run).join(group_labels(run, group), on=keys, how="left", maintain_order="left")


def _write_csv(run: Run, target: Path, group: str | None = None) -> list[Path]:
    rows = _rows_by_group(run, group)
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


def _write_jsonl(run: Run, target: Path, group: str | None = None) -> list[Path]:
    rows = _rows_by_group(run, group)
    with whole_file(target) as partial:
        rows.sink_ndjson(partial)
    return [target]


def _write_hf(run: Run, target: Path, group: str | None = None) -> list[Path]:
    rows = _rows_by_group(run, group)
    of_groups = [] if group is None else group_labels(run, group).collect_schema().names()[3:]
    with whole_folder(target, _check_earlier_export) as partial:
        (partial / DATA_FILE).parent.mkdir()
        rows.sink_parquet(partial / DATA_FILE, compression="zstd")
        write_text(partial / "README.md", dataset_card(run, data_file=DATA_FILE))
        facts = croissant_facts(run, file=DATA_FILE, path=partial / DATA_FILE, of_groups=of_groups)
        write_text(partial / CROISSANT, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
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


def _write_tool(tool: Tool) -> Callable[[Run, Path], list[Path]]:
    def write(run: Run, target: Path) -> list[Path]:
        _need_votes(run)
        rows = export_rows(run).collect().with_row_index("at")
        # Rows of an item side by side, in the order of the items.
        ordered = rows.with_columns(first=pl.col("at").min().over("item")).sort("first", "at")
        _write_records(ordered, target, tool)
        return [target]

    return write


def _write_records(rows: pl.DataFrame, target: Path, tool: Tool) -> None:
    """Write records as JSON Lines for Prodigy, and as one JSON array for the others."""
    texts = (json.dumps(one, ensure_ascii=False, allow_nan=False) for one in LAYOUTS[tool](rows.iter_rows(named=True)))
    begin, between, end = ("", "\n", "\n") if tool == "prodigy" else ("[\n", ",\n", "\n]\n")
    with whole_file(target) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write(begin)
        for n, text in enumerate(texts):
            file.write(between + text if n else text)
        file.write(end)


def _need_votes(run: Run) -> None:
    if not run.has("votes"):
        msg = f"{run.where} has no table 'votes', which this layout is made of. Run the audit again."
        raise UsageError(msg)


def _write_lewidi(run: Run, target: Path, group: str | None = None) -> list[Path]:
    _need_votes(run)
    found = None if group is None else _group_items(run, group)
    if target.suffix == ".json" and len(run.questions) > 1:
        msg = f"{target.name} is one file, and the run has {len(run.questions)} questions. Name a folder with -o."
        raise UsageError(msg)
    if target.suffix == ".json":
        write_text(target, _lewidi_text(run, run.questions[0], found))
        return [target]
    names = _file_names([question.name for question in run.questions])
    with whole_folder(target, lambda there: _check_only(there, names)) as partial:
        for question, name in zip(run.questions, names, strict=True):
            (partial / name).write_text(_lewidi_text(run, question, found), encoding="utf-8")
    return [target / name for name in names]


def _file_names(questions: Sequence[str]) -> list[str]:
    """Name a file for each question, no two alike.

    Examples
    --------
    >>> _file_names(["a b", "a-b"])
    ['a-b.json', 'a-b-2.json']
    """
    names: list[str] = []
    for stem in map(slug, questions):
        taken = sum(name == f"{stem}.json" or name.startswith(f"{stem}-") for name in names)
        names.append(f"{stem}-{taken + 1}.json" if taken else f"{stem}.json")
    return names


def _check_only(target: Path, names: Sequence[str]) -> None:
    """Refuse to replace a folder that holds anything else than an earlier export of the same questions."""
    foreign = sorted(path.name for path in target.iterdir() if path.name not in names) if target.is_dir() else []
    if foreign or target.is_file():
        why = f"it holds {foreign[0]}" if foreign else "it is a file"
        msg = f"{target} is no earlier export: {why}. Choose another folder with -o."
        raise UsageError(msg)


def _lewidi_text(run: Run, question: Question, groups: pl.DataFrame | None) -> str:
    found = export_rows(run, only=question.name).collect()
    entries = {row["item"]: _lewidi_entry(row) for row in found.iter_rows(named=True)}
    if groups is not None:
        by_item = _soft_labels_by_group(groups.filter(question=question.name), question)
        entries = {item: entry | {"soft_label_by_group": by_item.get(item, {})} for item, entry in entries.items()}
    return json.dumps(entries, ensure_ascii=False, indent=1)


def _soft_labels_by_group(groups: pl.DataFrame, question: Question) -> dict[str, dict[str, dict[str, float]]]:
    """Return by item and group the probability of each label that the run knows; of two labels both."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for item, group, label, p in groups.select("item", "group", "label", "p").iter_rows():
        shares = found.setdefault(str(item), {}).setdefault(group, {})
        if question.positive is None:
            shares[label] = p
        else:
            shares |= {one: p if one == label else 1.0 - p for one in question.labels}
    return found


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
        "other_info": {"domain": row["domain"], "entropy": row["entropy"], QUESTION_KEY: row["question"]},
    }


_WRITERS: dict[Layout, Callable[[Run, Path], list[Path]]] = {
    "hf": _write_hf,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "lewidi": _write_lewidi,
    "label-studio": _write_tool("label-studio"),
    "argilla": _write_tool("argilla"),
    "prodigy": _write_tool("prodigy"),
}

_BY_GROUP: dict[str, Callable[[Run, Path, str], list[Path]]] = {
    "hf": _write_hf,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "lewidi": _write_lewidi,
}
"""Layouts with a place for soft labels per group."""


Tool = Literal["label-studio", "argilla", "prodigy"]
Row = Mapping[str, Any]
"""Question, item, text, labels, soft_label, label, annotators, annotations; for a queue also ask and expected_gain."""

AGENT = f"moral-entropy {__version__}"
TEXT = "text"
ASKED = ("ask", "expected_gain")


def label_studio_tasks(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one task per item: what annotators chose, and a prediction per question with its probability as score.

    Rows of one item must lie side by side.
    """
    for at, (item, group) in enumerate(_by_item(rows), 1):
        predictions = [
            {"model_version": AGENT, "score": _chance(row), "result": [_choice(row, row["label"], n)]}
            for n, row in enumerate(group, 1)
            if row["label"] is not None
        ]
        annotations = [
            {"completed_by": _who(who, "email"), "was_cancelled": False, "result": [_choice(row, label, n)]}
            for n, row in enumerate(group, 1)
            for who, label in _votes(row)
        ]
        data = {TEXT: _text(group[0]), ITEM_KEY: item} | {key: group[0][key] for key in ASKED if key in group[0]}
        yield {"id": at, "data": data, "annotations": annotations, "predictions": predictions}


def _choice(row: Row, label: str, at: int) -> dict[str, Any]:
    question, value = row["question"], {"choices": [label]}
    return {"id": f"result{at}", "from_name": question, "to_name": TEXT, "type": "choices", "value": value}


def argilla_records(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one record per item: responses by question, and p as suggestions. Rows of one item lie side by side."""
    for item, group in _by_item(rows):
        responses = {
            row["question"]: [
                {"value": label, "user_id": None if who == ANONYMOUS else who, "status": "submitted"}
                for who, label in _votes(row)
            ]
            for row in group
        }
        suggestions = {
            row["question"]: {"value": row["label"], "score": _chance(row), "agent": AGENT}
            for row in group
            if row["label"] is not None
        }
        yield {
            "id": item,
            "fields": {TEXT: _text(group[0])},
            "metadata": {key: group[0][key] for key in ASKED if group[0].get(key) is not None},
            "suggestions": suggestions,
            "responses": {question: given for question, given in responses.items() if given},
            "vectors": {},
        }


def prodigy_tasks(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one task per vote, as `db-out` has them; of a row without votes one task that waits for an answer."""
    for row in rows:
        task = {
            TEXT: _text(row),
            ITEM_KEY: row["item"],
            QUESTION_KEY: row["question"],
            "_input_hash": _hash(row["item"]),
            "_task_hash": _hash(row["item"], row["question"]),
            "_view_id": "choice",
            "options": [{"id": label, "text": label} for label in row["labels"]],
            "config": {"choice_style": "single"},
            "score": _chance(row),
            "meta": {"suggested": row["label"], "score": _chance(row)} | {k: row[k] for k in ASKED if k in row},
        }
        given = _votes(row)
        if not given and "ask" in row:
            yield task
        for who, label in given:
            by = {} if who == ANONYMOUS else {"_annotator_id": who, "_session_id": who}
            yield task | {"accept": [label], "answer": "accept"} | by


LAYOUTS: dict[Tool, Callable[[Iterable[Row]], Iterator[dict[str, Any]]]] = {
    "label-studio": label_studio_tasks,
    "argilla": argilla_records,
    "prodigy": prodigy_tasks,
}


def _by_item(rows: Iterable[Row]) -> Iterator[tuple[Any, list[Row]]]:
    for item, group in groupby(rows, key=lambda row: row["item"]):
        yield item, list(group)


def _votes(row: Row) -> list[tuple[str, str]]:
    return list(zip(row.get("annotators") or (), row.get("annotations") or (), strict=True))


def _who(annotator: str, key: str) -> dict[str, str] | None:
    return None if annotator == ANONYMOUS else {key: annotator}


def _text(row: Row) -> str:
    return row.get(TEXT) or ""


def _chance(row: Row) -> float | None:
    """Return the probability of the consensus label."""
    if row["label"] is None or row["soft_label"] is None:
        return None
    return float(dict(zip(row["labels"], row["soft_label"], strict=True))[row["label"]])


def _hash(*names: str) -> int:
    """Return a number of 31 bits, as Prodigy's hashes are."""
    digest = hashlib.sha256("\0".join(names).encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1
