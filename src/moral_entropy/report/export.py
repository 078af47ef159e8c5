"""Run → files for others: items with votes, p, entropies and soft labels; a release; tasks for annotators.

`wide` is a sheet with one row per item; `csv`, `xlsx`, `jsonl` and `parquet` have one row per question and item; `hf`
is a folder that Hugging Face `datasets` loads, `release` the same with raw votes, checksums and a key beside it;
`lewidi` is the layout of the shared tasks on learning with disagreements; `label-studio`, `argilla`, `doccano` and
`prodigy` are files that these tools import. Annotators have pseudonyms unless their names are asked for. What is
written can be audited again and has the same votes; `reading_flags` says how.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy import __version__
from moral_entropy.errors import MissingExtraError, UsageError
from moral_entropy.files import check_free, whole_file, without_formulas, write_text
from moral_entropy.model.entropy import MOST_WRONG
from moral_entropy.options import Layout
from moral_entropy.report.card import CROISSANT, About, write_texts
from moral_entropy.report.figures import slug
from moral_entropy.runs.folder import digest_of, whole_folder
from moral_entropy.runs.run import Question, Run, as_run
from moral_entropy.schemas import ALL_PARTS, BETWEEN, SCHEMAS
from moral_entropy.ties import TIE
from moral_entropy.votes.formats.records import ITEM_KEY, QUESTION_KEY
from moral_entropy.votes.labels import no_answers
from moral_entropy.votes.layouts import ANONYMOUS

SUFFIXES: dict[str, tuple[str, ...]] = {
    "wide": (".csv", ".xlsx", ".parquet"), "csv": (".csv",), "xlsx": (".xlsx",), "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet",), "hf": ("",), "release": ("",), "lewidi": (".json", ""), "label-studio": (".json",),
    "argilla": (".json",), "doccano": (".jsonl",), "prodigy": (".jsonl",),
}  # fmt: skip
"""How the name of what is written ends; "" for a folder."""

ITEMS_FILE, VOTES_FILE, CHECKSUMS = "data/train.parquet", "votes/votes.parquet", "SHA256SUMS"
FACTS = ("question", "item", "domain", "n_votes", "n_positive", "p_model", "p", "p_low", "p_high", "p_calibrated",
         "label", "entropy", *ALL_PARTS, "count", "part", "gold")  # fmt: skip

SMALL_CELL = 5
"""Fewest annotators with the same demographics for these to be published."""

MOST_ROWS = 1_048_576
NO_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What a workbook cannot hold: rows from here on, and control characters."""

Names = Mapping[str, str]
"""Pseudonyms by name."""


def export_run(
    run: Run | str | Path, out: str | Path, *, to: Layout, force: bool = False, group: str | None = None,
    names: bool = False, about: About | None = None,
) -> list[Path]:  # fmt: skip
    """Write the items of a run in a layout that other programs read, and return the files' paths.

    Parameters
    ----------
    run
        The run, or its folder.
    out
        A folder for "hf", "release", and for "lewidi" with several questions; else a file.
    to
        The layout.
    force
        Replace what is there.
    group
        Column of annotators' groups whose soft labels are written too: one column per group and label, and in
        "lewidi" the record soft_label_by_group. Annotation tools have no place for them.
    names
        Write annotators' names as they are, and not pseudonyms.
    about
        What a card says of the data: name, licence, language, url.
    """
    run, target = as_run(run), Path(out)
    check_suffix(target, to)
    check_free(target, force=force)
    if group is not None and to in ("wide", *TOOLS):
        msg = f"soft labels per group have columns of their own, for which {to} has no place. Export to csv or hf."
        raise UsageError(msg)
    if to in ("release", "lewidi", *TOOLS) and not run.has("votes"):
        msg = f"{run.where} has no table 'votes', which this layout is made of. Run the audit again."
        raise UsageError(msg)
    aliases = {} if names else pseudonyms(run)
    if to in ("hf", "release"):
        return _write_hub(run, target, aliases, group, about or {}, release=to == "release")
    if to == "lewidi":
        return _write_lewidi(run, target, aliases, group)
    if to == "wide":
        write_frame(wide_rows(run), target)
    elif to in TOOLS:
        rows = export_rows(run, aliases=aliases).collect().with_row_index("at")
        # Rows of an item side by side, in the order of the items.
        ordered = rows.with_columns(first=pl.col("at").min().over("item")).sort("first", "at")
        _write_records(ordered, target, to)
    else:
        write_frame(export_rows(run, aliases=aliases, group=group), target)
    return [target]


def check_suffix(target: Path, to: str) -> None:
    """Refuse a name that does not end as the layout's files do: a CSV file called .xlsx opens in no program.

    Examples
    --------
    >>> check_suffix(Path("labels.xlsx"), "csv")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: csv is written to a .csv file, and labels.xlsx is none. Name it so, or ... xlsx.
    """
    suffix, fitting = target.suffix.lower(), SUFFIXES[to]
    every = {ending for endings in SUFFIXES.values() for ending in endings if ending}
    if suffix in fitting or ("" in fitting and suffix not in every):
        return
    kinds = " or ".join(f"a {ending} file" if ending else "a folder" for ending in fitting)
    layouts = [layout for layout, endings in SUFFIXES.items() if suffix and suffix in endings and layout != "wide"]
    hint = f", or use --to {layouts[0]}" if layouts else ""
    msg = f"{to} is written to {kinds}, and {target.name} is none. Name it so{hint}."
    raise UsageError(msg)


def pseudonyms(run: Run) -> dict[str, str]:
    """Return a pseudonym for every annotator, in an order that says nothing of their names."""
    names = run.annotators["annotator"].cast(pl.String).unique().drop_nulls().to_list()
    names = [name for name in names if name != ANONYMOUS]
    order = secrets.SystemRandom().sample(names, len(names))
    width = len(str(len(names)))
    return {name: f"annotator-{n:0{width}}" for n, name in enumerate(order, 1)}


def reading_flags(run: Run) -> list[str]:
    """Return the flags with which an audit of an export has the same votes: who voted how often, and spellings."""
    options, labels = run.manifest["options"]["read"], [label for entry in run.questions for label in entry.labels]
    flags = ["--anonymous"] if run.manifest["anonymous"] else []
    flags += ["--on-repeat", "count"] if options["on_repeat"] == "count" and not flags else []
    flags += ["--keep-case"] if options["keep_case"] else []
    spelt = options["missing"] is not None or any(no_answers([label]) for label in labels)
    return flags + (["--missing", ""] if spelt else [])


# --- Rows ------------------------------------------------------------------------------------------------------------


def export_rows(
    run: Run, *, only: str | None = None, aliases: Names | None = None, group: str | None = None
) -> pl.LazyFrame:
    """Return one row per question and item.

    Parameters
    ----------
    run
        The run.
    only
        Name of the one question to write; all if not given.
    aliases
        Pseudonyms of annotators; their names if not given.
    group
        Column of annotators' groups whose soft labels stand beside, one column each.

    Returns
    -------
    pl.LazyFrame
        The columns of `items.parquet`, kept columns that say the same in every vote on an item, text (if the run has
        texts), labels and soft_label (side by side, adding up to 1), annotators and annotations (side by side).
    """
    questions = [question for question in run.questions if only in (None, question.name)]
    rows = pl.concat([_with_soft_labels(run, question) for question in questions])
    if run.has("scores"):
        keys = ["question", "part", "item"]
        scores = run.scan("scores").select(*keys, score="mean", score_low="low", score_high="high")
        rows = rows.join(scores, on=keys, how="left", maintain_order="left")
    for column in ("p_calibrated", "gold"):
        if rows.select(pl.col(column).is_null().all()).collect().item():
            rows = rows.drop(column)
    if run.has("votes"):
        votes = run.scan("votes").filter(pl.col("question").is_in([question.name for question in questions]))
        annotator = pl.col("annotator").cast(pl.String).replace(dict(aliases or {}))
        by_item = votes.group_by("question", "item", maintain_order=True)
        lists = by_item.agg(annotators=annotator, annotations=pl.col("label"))
        rows = rows.join(lists, on=["question", "item"], how="left", maintain_order="left")
        rows = rows.with_columns(pl.col("annotators", "annotations").fill_null([]))
        facts = item_columns(run)
        if facts.width > 1:
            rows = rows.join(facts.lazy(), on="item", how="left", maintain_order="left")
    if run.has("texts"):
        rows = rows.join(run.scan("texts"), on="item", how="left", maintain_order="left")
    if group is not None:
        shares, keys = _group_items(run, group), ["question", "part", "item"]
        several_labels = shares.group_by("question").agg(pl.col("label").n_unique())["label"].max() != 1
        name = pl.format("p {}: {}", "group", "label") if several_labels else pl.format("p {}", "group")
        by_group = shares.with_columns(name=name).pivot("name", index=keys, values="p", aggregate_function="first")
        rows = rows.join(by_group.lazy(), on=keys, how="left", maintain_order="left")
    return rows.with_columns(pl.col("item").cast(pl.String))


def _with_soft_labels(run: Run, question: Question) -> pl.LazyFrame:
    of_question = pl.col("question") == question.name
    optional = ([BETWEEN] if run.between_groups else []) + (["p_votes"] if run.text_votes else [])
    items = run.scan("items").filter(of_question).select(*FACTS, *optional)
    labels = pl.lit(pl.Series([list(question.labels)])).alias("labels")
    if question.positive is not None:
        p = [pl.col("p") if label == question.positive else 1 - pl.col("p") for label in question.labels]
        return items.with_columns(labels, soft_label=pl.concat_list(p))
    posterior = run.scan("posterior").filter(of_question).group_by("item", maintain_order=True)
    soft = posterior.agg(soft_label=pl.col("p"))
    return items.with_columns(labels).join(soft, on="item", how="left", maintain_order="left")


def item_columns(run: Run) -> pl.DataFrame:
    """Return the kept columns that say the same in every vote on an item, and name no annotator: one row per item."""
    votes = run.table("votes")
    columns = [name for name in votes.columns if name not in SCHEMAS["votes"] and name not in FACTS]
    by_item = votes.group_by("item", maintain_order=True)
    constant = by_item.agg(pl.col(columns).n_unique()).select(pl.col(columns).max() <= 1) if columns else pl.DataFrame()
    people = votes["annotator"].cast(pl.String).unique()
    plain = [name for name in columns if constant[name][0]]
    plain = [name for name in plain if not votes[name].cast(pl.String).is_in(people.implode()).any()]
    return by_item.agg(pl.col(plain).first())


def wide_rows(run: Run) -> pl.LazyFrame:
    """Return one row per item: domain, text, kept columns, then label, p and uncertain of every question."""
    rows = export_rows(run)
    chance = pl.col("soft_label").list.max()
    rows = rows.with_columns(chance=chance, uncertain=chance < 1.0 - MOST_WRONG - TIE)
    domain = ["domain"] if run.manifest["domains"] else []
    lead = [*domain, *(["text"] if run.has("texts") else []), *item_columns(run).columns[1:]]
    sheet = rows.select("item", *lead).unique("item", keep="first", maintain_order=True)
    for question in run.questions:
        name, start = (question.name, f"{question.name} ") if len(run.questions) > 1 else ("label", "")
        columns = {name: "label", f"{start}p": "p" if question.positive else "chance", f"{start}uncertain": "uncertain"}
        of_question = rows.filter(question=question.name).unique("item", keep="first", maintain_order=True)
        sheet = sheet.join(of_question.select("item", **columns), on="item", how="left", maintain_order="left")
    return sheet


def _group_items(run: Run, column: str) -> pl.DataFrame:
    """Return what the groups of a column say of the items; an error where the run does not know."""
    rows = run.table("group_items", where=pl.col("column") == column)
    if rows.is_empty():
        columns = run.table("group_readings")["column"].unique().sort().to_list()
        has = f"It has {', '.join(columns)}" if columns else "It has no groups; audit with --annotator-group"
        msg = f"{run.where} has no soft labels by {column!r}. {has}."
        raise UsageError(msg)
    return rows


# --- Files -----------------------------------------------------------------------------------------------------------


def write_frame(rows: pl.LazyFrame, target: Path) -> None:
    """Write rows as CSV, Excel, JSON Lines or Parquet, by the suffix of the name; lists become JSON in sheets."""
    suffix = target.suffix.lower()
    if suffix in (".csv", ".xlsx"):
        schema = rows.collect_schema()
        pairs = {"soft_label": ("labels", "soft_label"), "votes": ("annotators", "annotations")}
        packed = {name: pl.struct(*pair).struct.json_encode() for name, pair in pairs.items() if {*pair} <= {*schema}}
        plain = [name for name, kind in schema.items() if not isinstance(kind, pl.List)]
        rows = without_formulas(rows.with_columns(**packed).select(*plain, *packed))
    with whole_file(target) as partial:
        if suffix == ".csv":
            rows.sink_csv(partial)
        elif suffix == ".parquet":
            rows.sink_parquet(partial, compression="zstd")
        elif suffix == ".xlsx":
            _write_workbook(rows.collect(), partial)
        else:
            rows.sink_ndjson(partial)


def _write_workbook(rows: pl.DataFrame, path: Path) -> None:
    try:
        from openpyxl import Workbook
    except ImportError as error:
        problem = "writing Excel files needs openpyxl"
        raise MissingExtraError(problem, "excel") from error
    if rows.height >= MOST_ROWS:
        msg = f"{rows.height:,} rows are more than a sheet of Excel has. Write CSV or Parquet."
        raise UsageError(msg)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("data")
    sheet.append(rows.columns)
    for row in rows.iter_rows():
        sheet.append([NO_CONTROL.sub("", cell) if isinstance(cell, str) else cell for cell in row])
    with path.open("wb") as file:
        book.save(file)


def _write_hub(run: Run, target: Path, aliases: Names, group: str | None, about: About, *, release: bool) -> list[Path]:
    rows = export_rows(run, aliases=aliases, group=group)
    key = target.with_name(f"{target.name}-key.csv")
    members = [ITEMS_FILE, "README.md", CROISSANT] + ([VOTES_FILE, CHECKSUMS] if release else [])
    with whole_folder(target, lambda folder: _check_earlier_export(folder, members)) as partial:
        files = [ITEMS_FILE] + [VOTES_FILE] * release
        for file in files:
            (partial / file).parent.mkdir()
        rows.sink_parquet(partial / ITEMS_FILE, compression="zstd")
        notes: list[str] = []
        if release:
            votes, notes = release_votes(run, aliases)
            votes.write_parquet(partial / VOTES_FILE, compression="zstd")
        paths = {file: partial / file for file in files}
        write_texts(partial, "README.md", run, paths, about=about, notes=notes, hidden=list(aliases))
        if release:
            sums = [f"{digest_of(partial / name)}  {name}" for name in members if name != CHECKSUMS]
            write_text(partial / CHECKSUMS, "\n".join(sums) + "\n")
            if aliases:
                table = pl.DataFrame({"annotator": list(aliases), "pseudonym": list(aliases.values())})
                write_frame(table.sort("pseudonym").lazy(), key)
    return [target / name for name in members] + [key] * (release and bool(aliases))


def release_votes(run: Run, aliases: Names) -> tuple[pl.DataFrame, list[str]]:
    """Return the votes as they are published, and what was withheld from them.

    Of the kept columns, those about items and those about annotators (one value each, in every vote) are published.
    Values and combinations of the latter that fewer than `SMALL_CELL` annotators share are withheld, since they might
    tell who somebody is.
    """
    votes = run.table("votes")
    columns = [name for name in votes.columns if name not in SCHEMAS["votes"]]
    of_items = item_columns(run).columns[1:]
    people = votes.group_by("annotator").agg(pl.col(columns).n_unique()) if columns else votes.select("annotator")
    constant = [name for name in columns if people[name].max() == 1 and votes[name].n_unique() > 1]
    of_people = [name for name in constant if name not in of_items]
    notes = [f"The column {name} is not published: it differs between the votes of one annotator."
             for name in columns if name not in (*of_items, *of_people)]  # fmt: skip
    votes = votes.select("question", "item", "annotator", "label", *of_items, *of_people)
    if of_people:
        person = votes.unique("annotator").select("annotator", *of_people)
        cells = person
        for name in of_people:
            cells = cells.with_columns(pl.when(pl.len().over(name) >= SMALL_CELL).then(name).alias(name))
        # Of a rare combination the most detailed column goes first, until enough annotators share what is left.
        for name in sorted(of_people, key=lambda name: -person[name].n_unique()):
            cells = cells.with_columns(pl.when(pl.len().over(of_people) >= SMALL_CELL).then(name).alias(name))
        hidden = sum(int((person[name].is_not_null() & cells[name].is_null()).sum()) for name in of_people)
        notes.append(
            f"Demographics of annotators ({', '.join(of_people)}): {hidden:,} of {person.height * len(of_people):,} "
            f"values are withheld, as fewer than {SMALL_CELL} annotators share them or their combination."
        )
        votes = votes.drop(of_people).join(cells, on="annotator", how="left", maintain_order="left")
    annotator = pl.col("annotator").cast(pl.String).replace(dict(aliases))
    return votes.with_columns(pl.col("item").cast(pl.String), annotator), notes


def _check_earlier_export(target: Path, names: Sequence[str]) -> None:
    """Refuse to replace a folder that holds anything else than an earlier export."""
    if target.is_file():
        msg = f"{target} is a file. Choose a folder with -o."
        raise UsageError(msg)
    files = sorted(path for path in target.rglob("*") if not path.is_dir())
    foreign = [path for path in files if str(path.relative_to(target)) not in names]
    lacking = [name for name in names if target / name not in files]
    if not files or not (foreign or lacking):
        return
    why = f"it holds {foreign[0].relative_to(target)}" if foreign else f"it has no {lacking[0]}"
    msg = f"{target} is no earlier export: {why}. Choose another folder with -o."
    raise UsageError(msg)


def _write_records(rows: pl.DataFrame, target: Path, tool: str) -> None:
    """Write records as one JSON array, or as JSON Lines."""
    tasks = TOOLS[tool](map(_task, rows.iter_rows(named=True)))
    begin, between, end = ("", "\n", "\n") if SUFFIXES[tool] == (".jsonl",) else ("[\n", ",\n", "\n]\n")
    with whole_file(target) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.write(begin)
        file.writelines(
            between * (n > 0) + json.dumps(task, ensure_ascii=False, allow_nan=False) for n, task in enumerate(tasks)
        )
        file.write(end)


def _task(row: dict[str, Any]) -> Row:
    """Add to a row its text, votes and facts, and the probability of its consensus label, where it has them."""
    facts = row.get("facts") or {"domain": row["domain"]}
    return row | {
        TEXT: row.get(TEXT) or "",
        "votes": list(zip(row.get("annotators") or (), row.get("annotations") or (), strict=True)),
        "facts": {name: value for name, value in facts.items() if value is not None},
        "score": row["soft_label"] and dict(zip(row["labels"], row["soft_label"], strict=True)).get(row["label"]),
    }


def _write_lewidi(run: Run, target: Path, aliases: Names, group: str | None) -> list[Path]:
    groups = None if group is None else _group_items(run, group)
    texts = {question.name: _lewidi_text(run, question, aliases, groups) for question in run.questions}
    if target.suffix == ".json" and len(texts) > 1:
        msg = f"{target.name} is one file, and the run has {len(texts)} questions. Name a folder with -o."
        raise UsageError(msg)
    if target.suffix == ".json":
        write_text(target, *texts.values())
        return [target]
    names: list[str] = []
    for stem in map(slug, texts):
        alike = sum(name == f"{stem}.json" or name.startswith(f"{stem}-") for name in names)
        names.append(f"{stem}-{alike + 1}.json" if alike else f"{stem}.json")
    with whole_folder(target, lambda folder: _check_earlier_export(folder, names)) as partial:
        for name, text in zip(names, texts.values(), strict=True):
            (partial / name).write_text(text, encoding="utf-8")
    return [target / name for name in names]


def _lewidi_text(run: Run, question: Question, aliases: Names, groups: pl.DataFrame | None) -> str:
    rows = export_rows(run, only=question.name, aliases=aliases).collect()
    entries = {row["item"]: _lewidi_entry(row, question) for row in rows.iter_rows(named=True)}
    if groups is None:
        return json.dumps(entries, ensure_ascii=False, indent=1)
    for entry in entries.values():
        entry["soft_label_by_group"] = {}
    columns = groups.filter(question=question.name).select(pl.col("item").cast(pl.String), "group", "label", "p")
    for item, group, label, p in columns.iter_rows():
        # By group the probability of each label that the run knows; of two labels both.
        two = {name: p if name == label else 1.0 - p for name in question.labels}
        entries[item]["soft_label_by_group"].setdefault(group, {}).update(two if question.positive else {label: p})
    return json.dumps(entries, ensure_ascii=False, indent=1)


def _lewidi_entry(row: dict[str, Any], question: Question) -> dict[str, Any]:
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
        "distance_to_votes": _lewidi_distances(row, question.levels)
        if row["annotations"] and question.scale != "interval"
        else {},
        "other_info": {"domain": row["domain"], "entropy": row["entropy"], QUESTION_KEY: row["question"]},
    }


def _lewidi_distances(row: dict[str, Any], levels: Sequence[float]) -> dict[str, float]:
    """Return LeWiDi-2025's distances of soft label and votes, and of label and votes.

    Of names the Manhattan distance and the error rate; of levels the Wasserstein distance in steps of the scale, and
    the absolute distance over the length of the scale.
    """
    share_k = np.array([row["annotations"].count(label) for label in row["labels"]]) / len(row["annotations"])
    gap_k, label = np.array(row["soft_label"]) - share_k, row["labels"].index(row["label"])
    if not levels:
        return {"manhattan": float(np.abs(gap_k).sum()), "error_rate": float(1.0 - share_k[label])}
    off_k = np.abs(np.array(levels) - levels[label]) / (levels[-1] - levels[0])
    return {"wasserstein": float(np.abs(gap_k.cumsum()).sum()), "absolute_distance": float(off_k @ share_k)}


# --- Tasks and records of annotation tools ---------------------------------------------------------------------------

Row = Mapping[str, Any]
"""Question, item, text, labels, label and its score, votes (annotator and label), facts (domain and other columns)."""

AGENT = f"moral-entropy {__version__}"
TEXT = "text"


def write_tasks(run: Run, queue: pl.DataFrame, out: Path, *, to: str, predictions: bool = False) -> str:
    """Write items to annotate as a sheet, or as a file that an annotation tool imports; say how answers are read.

    Ids, domains, texts and the items' own columns go along, so that votes which come back belong to the same items.

    Parameters
    ----------
    run
        The run.
    queue
        What `planning.next_votes` returns: items, and the questions that need them.
    out
        The file.
    to
        "csv", "xlsx", or a tool.
    predictions
        Whether annotators see the consensus label and its probability.
    """
    check_suffix(out, to)
    pairs = queue.select("rank", pl.col("item").cast(pl.String), question=pl.col("questions").str.split(", "))
    pairs = pairs.explode("question")
    rows = export_rows(run).collect().drop("annotators", "annotations", strict=False)
    rows = pairs.join(rows, on=["item", "question"], maintain_order="left")
    if not predictions:
        rows = rows.with_columns(label=pl.lit(None, pl.String), soft_label=pl.lit(None, pl.List(pl.Float64)))
    roles = ("item", "domain", "text", "annotator")
    columns = {role: name for role, name in run.manifest["columns"].items() if role in roles}
    facts = item_columns(run).columns[1:]
    if to in TOOLS:
        _write_records(rows.with_columns(facts=pl.struct("domain", *facts)), out, to)
        return f"audit what {to} exports together with the earlier votes: the items have the same ids"
    names = [question.name for question in run.questions if question.name in set(pairs["question"])]
    lead = [name for name in ("domain", "text") if name in rows.columns and rows[name].null_count() < rows.height]
    sheet = rows.unique("item", keep="first", maintain_order=True).select("item", *lead, *facts)
    if predictions:
        for name in names:
            suggested = rows.filter(question=name).select("item", pl.col("label").alias(f"suggested {name}"))
            sheet = sheet.join(suggested, on="item", how="left", maintain_order="left")
    blank = [pl.lit(None, pl.String).alias(name) for name in ("annotator", *names)]
    write_frame(sheet.with_columns(blank).rename(columns, strict=False).lazy(), out)
    answers = f"--label {names[0]}" if len(names) == 1 else f"--questions {','.join(names)}"
    annotator = columns.get("annotator", "annotator")
    return f"filled in, it is read with: moral-entropy audit {out} --annotator {annotator} {answers}"


def decided_tasks(run: Run, answers: Mapping[tuple[str, str], tuple[str, str]], out: Path, tool: str) -> None:
    """Write decisions as a file that an annotation tool imports: one annotation each, by whoever decided.

    Parameters
    ----------
    run
        The run.
    answers
        Who decided, and the label, by question and item.
    out
        The file; it must end as the tool's files do.
    tool
        One of `TOOLS`.
    """
    check_suffix(out, tool)
    pairs = [(question, item, [who], [label]) for (question, item), (who, label) in answers.items()]
    decisions = pl.DataFrame(pairs, schema=["question", "item", "annotators", "annotations"], orient="row")
    rows = export_rows(run).filter(pl.col("item").is_in(decisions["item"].implode())).collect()
    rows = rows.drop("annotators", "annotations", "label").join(
        decisions, on=["question", "item"], maintain_order="left"
    )
    _write_records(rows.with_columns(label=pl.lit(None, pl.String)).sort("item", maintain_order=True), out, tool)


def label_studio_tasks(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one task per item: what annotators chose, and a prediction per question with its probability as score.

    Rows of one item must lie side by side.
    """
    for at, (item, rows_of_item) in enumerate(groupby(rows, key=itemgetter("item")), 1):
        group = list(rows_of_item)
        predictions = [
            {"model_version": AGENT, "score": row["score"], "result": [_choice(row, row["label"], n)]}
            for n, row in enumerate(group, 1) if row["label"] is not None
        ]  # fmt: skip
        annotations = [
            {"completed_by": None if annotator == ANONYMOUS else {"email": annotator}, "was_cancelled": False,
             "result": [_choice(row, label, n)]}
            for n, row in enumerate(group, 1) for annotator, label in row["votes"]
        ]  # fmt: skip
        data = {TEXT: group[0][TEXT], ITEM_KEY: item, **group[0]["facts"]}
        yield {"id": at, "data": data, "annotations": annotations, "predictions": predictions}


def _choice(row: Row, label: str, at: int) -> dict[str, Any]:
    question, value = row["question"], {"choices": [label]}
    return {"id": f"result{at}", "from_name": question, "to_name": TEXT, "type": "choices", "value": value}


def argilla_records(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one record per item: responses by question, and p as suggestions. Rows of one item lie side by side."""
    for item, rows_of_item in groupby(rows, key=itemgetter("item")):
        group = list(rows_of_item)
        responses = {
            row["question"]: [
                {"value": label, "user_id": None if annotator == ANONYMOUS else annotator, "status": "submitted"}
                for annotator, label in row["votes"]
            ]
            for row in group if row["votes"]
        }  # fmt: skip
        suggestions = {
            row["question"]: {"value": row["label"], "score": row["score"], "agent": AGENT}
            for row in group if row["label"] is not None
        }  # fmt: skip
        yield {"id": item, "fields": {TEXT: group[0][TEXT]}, "metadata": group[0]["facts"], "suggestions": suggestions,
               "responses": responses, "vectors": {}}  # fmt: skip


def doccano_examples(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one example per row, as a classification project imports it; labels of annotators, without their names."""
    for row in rows:
        labels = [label for _, label in row["votes"]] or ([row["label"]] if row["label"] is not None else [])
        keys = {ITEM_KEY: row["item"], QUESTION_KEY: row["question"]}
        yield {TEXT: row[TEXT], "label": list(dict.fromkeys(labels)), **keys, **row["facts"]}


def prodigy_tasks(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Return one task per vote, as `db-out` has them; of a row without votes one task that waits for an answer."""
    for row in rows:
        score, suggested = ({}, {}) if row["label"] is None else ({"score": row["score"]}, {"suggested": row["label"]})
        task = {TEXT: row[TEXT], ITEM_KEY: row["item"], QUESTION_KEY: row["question"]}
        task |= {"_input_hash": _hash(row["item"]), "_task_hash": _hash(row["item"], row["question"])}
        task |= {"_view_id": "choice", "options": [{"id": label, "text": label} for label in row["labels"]]}
        task |= {"config": {"choice_style": "single"}, **score, "meta": row["facts"] | suggested | score}
        if not row["votes"] and "annotations" not in row:
            yield task
        for annotator, label in row["votes"]:
            by = {} if annotator == ANONYMOUS else {"_annotator_id": annotator, "_session_id": annotator}
            yield task | {"accept": [label], "answer": "accept"} | by


TOOLS: dict[str, Callable[[Iterable[Row]], Iterator[dict[str, Any]]]] = {
    "label-studio": label_studio_tasks,
    "argilla": argilla_records,
    "doccano": doccano_examples,
    "prodigy": prodigy_tasks,
}


def _hash(*names: str) -> int:
    """Return a number of 31 bits, as Prodigy's hashes are."""
    digest = hashlib.sha256("\0".join(names).encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1
