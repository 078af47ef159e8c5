"""Exports of annotation tools → long tables of votes: Label Studio, Argilla, Prodigy, MTurk, LeWiDi, saved datasets.

For every tool there is a `detect_…`, which looks at names and keys only, and a `read_…`. What is no vote (skipped,
rejected, drafts, spans, free text) is left out and counted. Of datasets of Hugging Face, Arrow streams are read whole,
Parquet one column at a time; classes get their names, and the splits are joined, with a column `split`. What their
columns mean is left to the reader of tables, except for exports of Argilla and our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.columns import plain_name
from moral_entropy.votes.formats.records import (
    FORMATS,
    ITEM_KEY,
    QUESTION_KEY,
    ExportedVotes,
    Peek,
    Record,
    at,
    dicts,
    export_of,
    first_of,
    listed,
    mapping,
    paired,
    peek,
    read_json,
    read_records,
    read_rows,
    scalars,
    text_of,
)
from moral_entropy.votes.source import json_value, parse_json
from moral_entropy.votes.table import ReadingLog, one_line, refuse

# --- Label Studio: a JSON list of tasks; `completed_by` is the annotator, a control tag the question --------------

REGION = frozenset({"start", "end", "x", "y", "points", "format", "startOffset"})
"""What the value of a result has when it is about a part of the item, not the whole."""


@export_of("label-studio", "/annotations/(completedby|wascancelled)", "/annotations/ /data")
def read_label_studio(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read choices and ratings on whole tasks; predictions and drafts are no votes."""
    votes = ExportedVotes(path.name, "Label Studio", log)
    for n, task in enumerate(read_records(path), 1):
        fields = scalars(task.get("data"))
        item = fields.pop(ITEM_KEY, task.get("id", n))
        votes.add_item(item, fields | {"text": text_of(fields)})
        for annotation in dicts(task.get("annotations")):
            if annotation.get("was_cancelled"):
                log.drop("skipped annotation", 1)
                continue
            user = annotation.get("completed_by")
            user = first_of(user, "email", "username", "id") if isinstance(user, dict) else user
            results = dicts(annotation.get("result"))
            log.drop("empty annotation", not results)
            for result in results:
                value = mapping(result.get("value"))
                answer = first_of(value, "choices", "rating")
                if answer is None or REGION & value.keys():
                    log.drop(f"result of type {result.get('type')!s}", 1)
                else:
                    votes.add_vote(item, user, str(result.get("from_name", "label")), answer)
    return votes.to_table("Export the project as JSON (not JSON-MIN), with completed annotations that make a choice.")


# --- Argilla: records with the responses of several users, flat or nested, from JSON or Parquet -------------------

RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
ARGILLA_KEYS = frozenset({"id", "_server_id", "external_id", "status", "score"})


@export_of("argilla", "/?[^/]+responsesusers", "/responses/values /responses/userid", "/responses/[^/]+/userid")
def read_argilla(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read submitted responses."""
    return argilla_votes(read_rows(path, log), path.name, log)


def argilla_votes(rows: Iterable[Record], name: str, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of records that were read already from a file of that name."""
    votes, suggested = ExportedVotes(name, "Argilla", log), set[str]()
    for n, row in enumerate(rows, 1):
        # What a suggestion comes with a probability for is a choice among labels.
        suggestions = mapping(row.get("suggestions")).items()
        suggested |= {question for question, guess in suggestions if at(guess, "score") is not None}
        item = first_of(row | {"row": n}, "id", "external_id", "_server_id", "row")
        fields = scalars(row.get("fields"))
        flat = {name: value for name, value in row.items() if ".responses" not in name and ".suggestion" not in name}
        facts = scalars(flat, without=ARGILLA_KEYS) | fields | scalars(row.get("metadata"))
        votes.add_item(item, facts | {"text": text_of(fields or facts)})
        for question, user, value, state in _responses(row):
            status = "" if state is None else str(state).casefold()
            parts = value if isinstance(value, list) else [value]
            if status not in ("submitted", ""):
                log.drop(f"{status} response", 1)
            elif value is None or any(not isinstance(part, (str, int, float)) for part in parts):
                # Spans, rankings and no value.
                log.drop("response that is no label", 1)
            else:
                if not status:
                    log.note("the responses carry no status: drafts, if there are any, count as votes.")
                votes.add_vote(item, user, question, value)
    hint = "Only submitted responses are votes. Export records that somebody has submitted."
    return votes.to_table(hint, free_text=True, surely=suggested)


def _responses(row: Record) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield question, user, value and status: by question (version 2), by user (version 1), or in flat columns."""
    nested = row.get("responses")
    for question, responses in mapping(nested).items():
        for response in dicts(responses):
            yield question, response.get("user_id"), response.get("value"), response.get("status")
    for response in dicts(nested):
        for question, answer in mapping(response.get("values")).items():
            yield question, response.get("user_id"), at(answer, "value"), response.get("status")
    for question in [name.removesuffix(USERS) for name in row if name.endswith(USERS)]:
        users, values, statuses = (listed(row.get(question + end)) for end in (USERS, RESPONSES, STATUS))
        statuses = statuses or [None] * len(users)
        if not len(users) == len(values) == len(statuses):
            n = f"{len(values)} responses by {len(users)} users with {len(statuses)} statuses"
            refuse(f"a record on {question!r} has {n}. There must be one of each; export it anew.")
        yield from zip([question] * len(users), users, values, statuses, strict=True)


# --- Prodigy: what `db-out` writes, one annotated task per line ---------------------------------------------------

ACCEPT = {"accept": "1", "reject": "0"}
PARTS = ("spans", "relations", "arcs", "audio_spans")
"""Keys of tasks that are about parts of an item."""


@export_of("prodigy", "/(input|task)hash /answer")
def read_prodigy(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read accepted and rejected tasks: of one label a yes/no question, with options a choice among them."""
    votes = ExportedVotes(path.name, "Prodigy", log)
    for n, task in enumerate(read_records(path), 1):
        item = first_of(task | {"row": n}, ITEM_KEY, "_input_hash", "_task_hash", "row")
        text = text_of(scalars({name: task.get(name) for name in ("text", "html")}))
        votes.add_item(item, scalars(task.get("meta")) | {"text": text})
        for question, label in _prodigy_answers(task, log):
            votes.add_vote(item, first_of(task, "_annotator_id", "_session_id"), question, label)
    return votes.to_table("Only accepted and rejected tasks are votes; ignored ones are not.")


def _prodigy_answers(task: Record, log: ReadingLog) -> Iterator[tuple[str, Any]]:
    answer, label, question = str(task.get("answer")), task.get("label"), task.get(QUESTION_KEY)
    if answer not in ACCEPT:
        log.drop("ignored task" if answer == "ignore" else "task without an answer", 1)
    elif isinstance(task.get("options"), list) or isinstance(task.get("accept"), list):
        if answer == "accept":
            yield question if isinstance(question, str) else "choice", task.get("accept") or []
        else:
            log.drop("rejected choice", 1)
    elif any(task.get(part) for part in PARTS):
        log.drop("task about parts of an item", 1)
    else:
        yield label if isinstance(label, str) and label.strip() else "answer", ACCEPT[answer]


# --- MTurk: the results of a batch, one row per assignment; what follows `Answer.` is a question ------------------

ANSWER = "Answer."
TICKED = {"true": True, "on": True, "false": False, "off": False}


@export_of("mturk", "hitid workerid answer.+")
def read_mturk(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read assignments that were not rejected; boxes of a question, and answers in JSON, are one answer."""
    votes = ExportedVotes(path.name, "MTurk", log)
    for row in read_rows(path, log):
        inputs = {name: cell for name, cell in row.items() if name.startswith("Input.")}
        text = text_of({name.removeprefix("Input."): cell for name, cell in inputs.items()})
        votes.add_item(row.get("HITId"), inputs | {"text": text})
        if str(row.get("AssignmentStatus") or "").casefold() == "rejected":
            log.drop("rejected assignment", 1)
            continue
        answers = {name.removeprefix(ANSWER): cell for name, cell in row.items() if name.startswith(ANSWER)}
        for form in dicts(_parsed(answers.pop("taskAnswers", None))):
            for question, answer in form.items():
                # A classifier's answer is {label: …}; boxes are {option: ticked, …}.
                options = answer if isinstance(answer, dict) else {"": answer}
                answers |= {f"{question}.{name}".removesuffix("."): value for name, value in options.items()}
        for question, label in _joined_boxes(answers).items():
            if label not in (None, ""):
                votes.add_vote(row.get("HITId"), row.get("WorkerId"), question, label)
    return votes.to_table("Take a batch with assignments that were not rejected, and Answer. columns.", free_text=True)


def _joined_boxes(answers: dict[str, Any]) -> dict[str, Any]:
    """Return answers by question: boxes `tone.sad`, `tone.glad` as a list of those ticked, `a|b` as a list too.

    Examples
    --------
    >>> _joined_boxes({"tone.sad": "true", "tone.glad": "false", "kind.label": "post", "moral": "care|harm"})
    {'kind': 'post', 'moral': ['care', 'harm'], 'tone': ['sad']}
    """
    plain: dict[str, Any] = {}
    boxes: dict[str, dict[str, bool]] = {}
    for name, cell in answers.items():
        question, dot, option = name.rpartition(".")
        if dot and str(cell).casefold() in TICKED:
            boxes.setdefault(question, {})[option] = TICKED[str(cell).casefold()]
        elif isinstance(labels := _parsed(cell), list):
            plain[name] = labels
        else:
            name = question if option in ("label", "labels") and dot else name
            plain[name] = [part.strip() for part in cell.split("|")] if isinstance(cell, str) and "|" in cell else cell
    for question, options in boxes.items():
        # A lone box is a yes/no question; of several, those ticked are the answer.
        ticked = [option for option, is_ticked in options.items() if is_ticked]
        plain[question] = ticked if len(options) > 1 else bool(ticked)
    return plain


def _parsed(cell: Any) -> Any:
    try:
        return parse_json(str(cell or "").encode(errors="replace"))
    except (ValueError, RecursionError):
        return None


# --- LeWiDi: one JSON object with one key per item; and our own exports, with one row per question and item -------

LEWIDI_KEYS = frozenset({"annotations", "annotators", "text", "number of annotations", "number of annotators"})


OURS = ("/?question /?item /?softlabel /?votes", "/?question /?item /?softlabel /?annotators /?annotations")


@export_of("lewidi", "/[^/]+/annotations /[^/]+/(annotators|softlabel)", *OURS)
def read_lewidi(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read annotations; `soft_label` is a summary and ignored, `hard_label` can be named as published."""
    if peek(path).fits(OURS):
        return our_votes(read_rows(path, log), path.name, log)
    entries = read_json(path)
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        refuse(f"{path.name} is not one JSON object with a record for each item, as LeWiDi's files are.")
    votes = ExportedVotes(path.name, "LeWiDi", log)
    for item, entry in entries.items():
        texts = scalars(entry.get("text"))
        text = " / ".join(map(str, texts.values())) if texts else text_of(scalars({"text": entry.get("text")}))
        info = mapping(entry.get("other_info"))
        # Further facts come last, so that a domain among them is the domain.
        facts = scalars(entry, without=LEWIDI_KEYS) | scalars(info, without=[QUESTION_KEY])
        votes.add_item(item, facts | {"text": text})
        question = info.get(QUESTION_KEY)
        for annotator, label in _annotations(entry, item, path.name):
            votes.add_vote(item, annotator, question if isinstance(question, str) else "label", label)
    return votes.to_table("Files of a test split may come without annotations; take train or dev.")


def our_votes(rows: Iterable[Record], name: str, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export of ours; in CSV annotators and annotations are in the cell `votes`, as JSON."""
    votes = ExportedVotes(name, "moral-entropy", log)
    for row in rows:
        cells = {key: row.get(key) for key in ("item", "question", "text", "domain")}
        if "votes" in row:
            # A ' keeps a spreadsheet from reading a cell as a formula; see `files.without_formulas`.
            cells = {
                key: cell[1:] if isinstance(cell, str) and re.match(r"'+[=+\-@\t\r]", cell) else cell
                for key, cell in cells.items()
            }
        item = cells["item"]
        votes.add_item(item, {key: cells[key] for key in ("text", "domain")})
        lists = mapping(json_value(str(row["votes"]).encode(), name)) if row.get("votes") else row
        labels, annotators = (listed(lists.get(column)) for column in ("annotations", "annotators"))
        for annotator, label in paired(labels, annotators, item, name, "export the run again"):
            votes.add_vote(item, annotator, cells["question"], label)
    return votes.to_table("Export the run again: moral-entropy export run/ --to jsonl -o votes.jsonl")


def _annotations(entry: Record, item: str, name: str) -> Iterable[tuple[Any, Any]]:
    """Pair annotators and labels: side by side, separated by commas, or (third edition) labels by annotator."""
    annotations = entry.get("annotations")
    if isinstance(annotations, dict):
        answers = [(annotator, label) for annotator, label in annotations.items() if label not in (None, "")]
        # Labels such as `neutral,contradiction` are several.
        return [(annotator, label.split(",") if "," in str(label) else label) for annotator, label in answers]
    labels, annotators = _cells(annotations), _cells(entry.get("annotators"))
    return paired(labels, annotators if labels else [], item, name, "correct it, or take the item out")


def _cells(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else [] if cell is None else str(cell).split(",")
    texts = [str(part).strip() for part in parts]
    return texts if any(texts) else []


# --- Hugging Face datasets: a folder of `save_to_disk`, or one of Parquet files -------------------------------------

SPLITS, INFO, STATE = "dataset_dict.json", "dataset_info.json", "state.json"
SPLIT = "split"
UNSPLIT = ""


@export_of(
    "hf-datasets", "datasetdictjson", "statejson datasetinfojson", "([^/]+/)?[^/]+parquet",
    files=("**/*.arrow", "**/*.parquet", f"**/{INFO}")
)  # fmt: skip
def read_hf_datasets(path: Path, log: ReadingLog) -> pl.DataFrame | pl.LazyFrame:
    """Read the table in a folder."""
    try:
        parts = _saved_splits(path) if _is_saved(path) or (path / SPLITS).is_file() else _parquet_splits(path)
        frame = _joined(parts)
        columns = frame.collect_schema().names()
    except (OSError, pl.exceptions.PolarsError) as error:
        refuse(f"{path.name} cannot be read as a dataset: {one_line(error)}. Save it anew.")
    head = Peek("table", marks=frozenset(map(plain_name, columns)))
    for read, signatures in ((argilla_votes, FORMATS["argilla"].signatures), (our_votes, OURS)):
        if head.fits(signatures):
            return read(frame.collect().to_dicts(), path.name, log)
    return frame


def _is_saved(path: Path) -> bool:
    return (path / STATE).is_file() and (path / INFO).is_file()


def _joined(parts: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    if list(parts) == [UNSPLIT]:
        return parts[UNSPLIT]
    with_split = []
    for split, frame in parts.items():
        has_split = SPLIT in frame.collect_schema().names()
        with_split.append(frame if has_split else frame.with_columns(pl.lit(split).alias(SPLIT)))
    return pl.concat(with_split, how="diagonal_relaxed")


def _saved_splits(path: Path) -> dict[str, pl.LazyFrame]:
    if not (path / SPLITS).is_file():
        return {UNSPLIT: _read_saved(path)}
    names = [name for name in listed(at(read_json(path / SPLITS), "splits")) if isinstance(name, str)]
    if not names:
        refuse(f"{path.name}/{SPLITS} lists no splits. Save the dataset anew.")
    return {name: _read_saved(_inside(path, name)) for name in names}


def _read_saved(folder: Path) -> pl.LazyFrame:
    """Read the shards that a saved dataset lists."""
    entries = listed(at(read_json(folder / STATE), "_data_files"))
    shards = [_inside(folder, str(at(entry, "filename"))) for entry in entries]
    missing = [shard.name for shard in shards if not shard.is_file()]
    if missing or not shards:
        first = f" First: {missing[0]}." if missing else ""
        refuse(f"{folder.name} lacks {len(missing)} of the {len(shards)} data files it lists.{first} Copy it whole.")
    frame = pl.concat([pl.read_ipc_stream(shard) for shard in shards], how="vertical_relaxed")
    return _with_class_names(frame.lazy(), at(read_json(folder / INFO), "features"))


def _inside(folder: Path, name: str) -> Path:
    """Return a file or folder directly inside another, and refuse a name that leads elsewhere."""
    if Path(name).name != name or name in ("", ".", ".."):
        refuse(f"{folder.name} names {name!r} as one of its files, which lies elsewhere. Save the dataset anew.")
    return folder / name


def _parquet_files(path: Path) -> list[Path]:
    return sorted([*path.glob("*.parquet"), *path.glob("*/*.parquet")])


def _parquet_splits(path: Path) -> dict[str, pl.LazyFrame]:
    """Group Parquet files by the split in their names, such as train-00000-of-00002.parquet."""
    files: dict[str, list[Path]] = {}
    for file in _parquet_files(path):
        files.setdefault(_split_of(file, path), []).append(file)
    if not files:
        refuse(f"{path.name} holds neither a dataset saved by Hugging Face datasets nor Parquet files.")
    _check_alike([file for shards in files.values() for file in shards], path.name)
    splits = {}
    for split, shards in files.items():
        # The library writes its features into the metadata of Parquet files.
        features = at(_parsed(pl.read_parquet_metadata(shards[0]).get("huggingface")), "info", "features")
        splits[split] = _with_class_names(pl.scan_parquet(shards, glob=False), features)
    return splits


def _check_alike(files: Sequence[Path], name: str) -> None:
    schemas = [pl.scan_parquet(file, glob=False).collect_schema() for file in files]
    for file, schema in zip(files, schemas, strict=True):
        if schema != schemas[0]:
            problem = f"the {len(files)} Parquet files in {name} are not parts of one table"
            refuse(f"{problem}: {file.name} has other columns than {files[0].name}. Name the file with the votes.")


def _split_of(file: Path, root: Path) -> str:
    before, _, after = file.stem.partition("-")
    if "-of-" in after and after.replace("-of-", "").isdigit():
        return before
    return UNSPLIT if file.parent in (root, root / "data") else file.parent.name


def _with_class_names(frame: pl.LazyFrame, features: Any) -> pl.LazyFrame:
    """Replace class numbers by class names; -1, which stands for no label, becomes null."""
    schema = frame.collect_schema()
    for column, feature in mapping(features).items():
        names = at(feature, "names") if at(feature, "_type") == "ClassLabel" else None
        if isinstance(names, list) and column in schema and schema[column].is_integer():
            name_of = {at: str(name) for at, name in enumerate(names)}
            frame = frame.with_columns(pl.col(column).replace_strict(name_of, default=None, return_dtype=pl.String))
    return frame
