"""Exports of annotation tools → long tables of votes: Label Studio, Argilla, Prodigy, MTurk, doccano, Potato, LeWiDi.

For every tool there is a `detect_…`, which looks at names and keys only, and a `read_…`. What is no vote (skipped,
rejected, drafts, spans, free text) is left out and counted.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from moral_entropy.votes.delimited import checked_utf8
from moral_entropy.votes.formats.exported_votes import ITEM_KEY, QUESTION_KEY, ExportedVotes
from moral_entropy.votes.formats.records import (
    ZIP_ERRORS,
    Record,
    dicts,
    first_of,
    listed,
    mapping,
    paired,
    parse_records,
    peek,
    read_json,
    read_records,
    read_rows,
    scalars,
    text_of,
)
from moral_entropy.votes.source import MOST_BYTES, json_value, parse_json
from moral_entropy.votes.table import ReadingLog, refuse

Response = tuple[str, Any, Any, Any]
"""Question, user, value and status."""

Answers = Iterable[tuple[str, str, Any]]
"""Schema, label, value."""


# --- Label Studio: a JSON list of tasks; `completed_by` is the annotator, a control tag the question --------------

REGION = frozenset({"start", "end", "x", "y", "points", "format", "startOffset"})
"""What the value of a result has when it is about a part of the item, not the whole."""


def detect_label_studio(path: Path) -> bool:
    """Return whether a file is a Label Studio export."""
    head = peek(path)
    by_somebody = head.has("annotations", "completed_by") or head.has("annotations", "was_cancelled")
    return head.kind == "json" and (by_somebody or (("annotations",) in head.lists and head.has("data")))


def read_label_studio(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read choices and ratings on whole tasks; predictions and drafts are no votes."""
    votes = ExportedVotes(path.name, "Label Studio", log)
    for at, task in enumerate(read_records(path), 1):
        fields = scalars(mapping(task.get("data")))
        item = fields.pop(ITEM_KEY, task.get("id", at))
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


def detect_argilla(path: Path) -> bool:
    """Return whether a file is an Argilla export."""
    head = peek(path)
    if head.kind == "parquet":
        return is_argilla(head.names)
    by_user = head.has("responses", "values") and head.has("responses", "user_id")
    by_question = any(len(key) == 3 and key[0] == "responses" and key[2] == "user_id" for key in head.keys)
    return is_argilla([key[0] for key in head.keys if len(key) == 1]) or by_user or by_question


def is_argilla(names: Iterable[str]) -> bool:
    """Return whether a table has Argilla's columns of responses and their users.

    Examples
    --------
    >>> is_argilla(["id", "tone.responses", "tone.responses.users"]), is_argilla(["id", "responses"])
    (True, False)
    """
    return any(name.endswith(USERS) for name in names)


def read_argilla(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read submitted responses."""
    return argilla_votes(read_rows(path, log) if peek(path).kind == "parquet" else read_records(path), path.name, log)


def argilla_votes(rows: Iterable[Record], name: str, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of records that were read already from a file of that name."""
    votes, suggested = ExportedVotes(name, "Argilla", log), set[str]()
    for at, row in enumerate(rows, 1):
        # What a suggestion comes with a probability for is a choice among labels.
        suggestions = mapping(row.get("suggestions")).items()
        suggested |= {question for question, guess in suggestions if mapping(guess).get("score") is not None}
        item = first_of(row, "id", "external_id", "_server_id")
        item = at if item is None else item
        fields = scalars(mapping(row.get("fields")))
        flat = {name: value for name, value in row.items() if ".responses" not in name and ".suggestion" not in name}
        facts = scalars(flat, without=ARGILLA_KEYS) | fields | scalars(mapping(row.get("metadata")))
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


def _responses(row: Record) -> Iterator[Response]:
    """Iterate over responses by question (version 2), by user (version 1), or in flat columns."""
    nested = row.get("responses")
    for question, responses in mapping(nested).items():
        for response in dicts(responses):
            yield question, response.get("user_id"), response.get("value"), response.get("status")
    for response in dicts(nested):
        for question, answer in mapping(response.get("values")).items():
            yield question, response.get("user_id"), mapping(answer).get("value"), response.get("status")
    for question in [name.removesuffix(USERS) for name in row if name.endswith(USERS)]:
        users, values, statuses = (listed(row.get(question + end)) for end in (USERS, RESPONSES, STATUS))
        statuses = statuses or [None] * len(users)
        if not len(users) == len(values) == len(statuses):
            refuse(
                f"a record on {question!r} has {len(values)} responses by {len(users)} users with {len(statuses)} "
                "statuses. There must be one of each; export it anew."
            )
        yield from zip([question] * len(users), users, values, statuses, strict=True)


# --- Prodigy: what `db-out` writes, one annotated task per line ---------------------------------------------------

ACCEPT = {"accept": "1", "reject": "0"}
PARTS = ("spans", "relations", "arcs", "audio_spans")
"""Keys of tasks that are about parts of an item."""


def detect_prodigy(path: Path) -> bool:
    """Return whether a file is a Prodigy export."""
    head = peek(path)
    return (head.has("_input_hash") or head.has("_task_hash")) and head.has("answer")


def read_prodigy(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read accepted and rejected tasks: of one label a yes/no question, with options a choice among them."""
    votes = ExportedVotes(path.name, "Prodigy", log)
    for at, task in enumerate(read_records(path), 1):
        item = first_of(task, ITEM_KEY, "_input_hash", "_task_hash")
        item = at if item is None else item
        text = text_of(scalars({name: task.get(name) for name in ("text", "html")}))
        votes.add_item(item, scalars(mapping(task.get("meta"))) | {"text": text})
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

ANSWER, INPUT = "Answer.", "Input."
TICKED = {"true": True, "on": True, "false": False, "off": False}
CLASSIFIER = ("label", "labels")


def detect_mturk(path: Path) -> bool:
    """Return whether a file holds the results of an MTurk batch."""
    names = peek(path).names
    return {"HITId", "WorkerId"} <= set(names) and any(name.startswith(ANSWER) for name in names)


def read_mturk(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read assignments that were not rejected."""
    rows = read_rows(path, log)
    votes = ExportedVotes(path.name, "MTurk", log)
    boxes = tick_boxes(rows)
    for row in rows:
        inputs = {name: cell for name, cell in row.items() if name.startswith(INPUT)}
        text = text_of({name.removeprefix(INPUT): cell for name, cell in inputs.items()})
        votes.add_item(row.get("HITId"), inputs | {"text": text})
        if str(row.get("AssignmentStatus") or "").casefold() == "rejected":
            log.drop("rejected assignment", 1)
            continue
        for question, label in _mturk_answers(row, boxes):
            votes.add_vote(row.get("HITId"), row.get("WorkerId"), question, label)
    return votes.to_table("Take a batch with assignments that were not rejected, and Answer. columns.", free_text=True)


def tick_boxes(rows: Sequence[Record]) -> dict[str, list[str]]:
    """Find the questions whose options have columns of their own, with those options.

    Examples
    --------
    >>> tick_boxes([{"Answer.tone.sad": "true", "Answer.tone.glad": "false", "Answer.sure.on": "true"}])
    {'tone': ['sad', 'glad']}
    """
    options: dict[str, list[str]] = {}
    for name in rows[0] if rows else ():
        question, dot, option = name.removeprefix(ANSWER).rpartition(".")
        cells = {str(row[name]).strip().casefold() for row in rows if row[name] is not None} - {""}
        if name.startswith(ANSWER) and dot and cells <= TICKED.keys():
            options.setdefault(question, []).append(option)
    return {question: names for question, names in options.items() if len(names) > 1}


def _mturk_answers(row: Record, boxes: dict[str, list[str]]) -> Iterator[tuple[str, Any]]:
    for question, options in boxes.items():
        cells = {option: row.get(f"{ANSWER}{question}.{option}") for option in options}
        if any(cell not in (None, "") for cell in cells.values()):
            yield question, [option for option, cell in cells.items() if TICKED.get(str(cell).casefold())]
    for name, value in row.items():
        cell = str(value or "").strip()
        question, _, option = name.removeprefix(ANSWER).rpartition(".")
        if not name.startswith(ANSWER) or not cell:
            continue
        if name == "Answer.taskAnswers":
            yield from _json_answers(_parsed(cell))
        elif question not in boxes:
            labels = _parsed(cell) if cell.startswith("[") else None
            several = labels if isinstance(labels, list) else [part.strip() for part in cell.split("|")]
            label = several if isinstance(labels, list) or "|" in cell else cell
            yield question if option in CLASSIFIER and question else name.removeprefix(ANSWER), label


def _json_answers(forms: Any) -> Iterator[tuple[str, Any]]:
    for question, answer in (pair for form in dicts(forms) for pair in form.items()):
        if not isinstance(answer, dict):
            yield question, answer
        elif labels := [answer[name] for name in CLASSIFIER if name in answer]:
            yield question, labels[0]
        elif all(isinstance(ticked, bool) for ticked in answer.values()):
            options = [option for option, ticked in answer.items() if ticked]
            # A lone box is a yes/no question; of several, those ticked are the answer.
            yield question, options if len(answer) > 1 else bool(options)


def _parsed(cell: str) -> Any:
    try:
        return parse_json(cell.encode(errors="replace"))
    except (ValueError, RecursionError):
        return None


# --- Doccano: a zip with one `<user>.jsonl` for each annotator, read in memory and never unpacked -----------------

DOCCANO_KEYS = frozenset({"id", "text", "data", "filename", "label", "labels", "cats", "entities", "Comments", "meta"})
LABELS = ("label", "labels", "cats")
SHARED = "all"
"""Name that doccano gives to the annotations of everybody together."""

MOST_MEMBERS = 10_000


def detect_doccano(path: Path) -> bool:
    """Return whether a file is a doccano export, with annotators or without."""
    head = peek(path)
    if head.kind == "zip":
        # An Excel workbook is a zip too.
        return "[Content_Types].xml" not in head.names and (bool(head.names) or path.suffix.lower() == ".zip")
    keys = {key[0] for key in head.keys if len(key) == 1}
    lists = any((name,) in head.lists for name in LABELS)
    return head.kind == "json" and lists and {"id"} < keys <= DOCCANO_KEYS and bool(keys & {"text", "data", "filename"})


def read_doccano(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the labels of every user; a project with shared annotation does not say who annotated, and is refused."""
    if (kind := peek(path).kind) != "zip":
        no_zip = f"{path.name} is not a zip file, as doccano's exports with annotators are."
        refuse(_shared(path.name) if kind == "json" else no_zip)
    votes = ExportedVotes(path.name, "doccano", log)
    for user, record in _doccano_records(path):
        facts = scalars(record, without=DOCCANO_KEYS) | scalars(mapping(record.get("meta")))
        # Our own tasks say which item and question they are about.
        item, question = facts.pop(ITEM_KEY, None), facts.pop(QUESTION_KEY, "label")
        item = first_of(record, "id", "text", "data", "filename") if item is None else item
        votes.add_item(item, facts | {"text": first_of(record, "text", "data")})
        labels = first_of(record, *LABELS) or []
        labels = labels if isinstance(labels, list) else [labels]
        if any(isinstance(label, (list, dict)) for label in labels):
            refuse(
                f"example {record.get('id')!r} of {user} in {path.name} marks parts of the text. Votes are on whole "
                "items: export a classification project."
            )
        if labels:
            votes.add_vote(item, user, question, labels)
        else:
            log.drop("example the user did not label", 1)
    return votes.to_table("Nobody labelled an example.")


def _doccano_records(path: Path) -> Iterator[tuple[str, Record]]:
    """Iterate over the users and their records, user by user."""
    try:
        with zipfile.ZipFile(path) as archive:
            for user, member in _users(archive, path.name).items():
                where = f"{member.filename} in {path.name}"
                # Reads no further than the size that `_users` has seen, whatever was packed.
                for record in parse_records(checked_utf8(archive.read(member), where), where):
                    yield user, record
    except ZIP_ERRORS as error:
        refuse(f"{path.name} is a damaged zip file: {error}. Was it downloaded whole?")


def _users(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    """Find each user's file, and refuse a zip that is not what doccano writes."""
    users: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist()[: MOST_MEMBERS + 1]:
        where = PurePosixPath(member.filename)
        if where.suffix.lower() not in (".jsonl", ".json") or where.parts[0] == "__MACOSX" or where.name[0] == ".":
            continue
        if ".." in where.parts or where.is_absolute() or "\\" in member.filename or where.stem in users:
            refuse(f"{name} holds {member.filename!r}, which doccano would not write. Export it anew.")
        users[where.stem] = member
    size = sum(member.file_size for member in users.values())
    locked = [member.filename for member in users.values() if member.flag_bits & 1]
    if set(users) == {SHARED}:
        refuse(_shared(name))
    if not users:
        refuse(f"{name} holds no <user>.jsonl, so there are no annotators in it. Export from doccano as JSONL.")
    if len(users) > MOST_MEMBERS or size > MOST_BYTES:
        refuse(f"{name} unpacks to {size:,} bytes in {len(users):,} files, more than an export has. Check the file.")
    if locked:
        refuse(f"{len(locked)} files in {name} are locked with a password. First: {locked[0]!r}. Unlock them first.")
    return users


def _shared(name: str) -> str:
    return (
        f"{name} looks like doccano's export of a project with shared annotation: it says what was labelled, not by "
        "whom, so there are no votes in it. Export a project without shared annotation (a zip with a file for each "
        'user), or, if it is something else, read it as a table with format="long" (CLI: --format long).'
    )


# --- Potato: a folder per user with its lines or its state, or one table with columns `schema:::label` ------------

LINES, STATE = "annotated_instances.jsonl", "user_state.json"
IN_STATE = "instance_id_to_label_to_value"
COLUMN = ":::"
NO_CLASS = frozenset({"text_box", "textbox", "slider", "number", "text"})
NOT_CHOSEN = (None, "", False, 0, "0", "false", "False")


def detect_potato(path: Path) -> bool:
    """Return whether a folder or file is Potato's output."""
    head = peek(path)
    if head.kind == "folder":
        return bool(potato_files(path))
    if head.kind == "json":
        return head.has(IN_STATE) or (head.has("label_annotations") and head.has("displayed_text"))
    return any(COLUMN in name for name in head.names)


def read_potato(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of the folder of all users' folders, of one user's file, or of a table."""
    votes = ExportedVotes(path.name, "Potato", log)
    for file in potato_files(path) if path.is_dir() else [path]:
        for user, item, text, answers in _instances(file, log):
            votes.add_item(item, {"text": text})
            choices: dict[str, list[str]] = {}
            for schema, label, value in answers:
                if value not in NOT_CHOSEN and label in NO_CLASS:
                    log.drop("free text or slider", 1)
                elif value not in NOT_CHOSEN:
                    # The one key of a drop-down list; the label is its value.
                    choices.setdefault(schema, []).append(str(value) if label == "select-one" else label)
            for schema, labels in choices.items():
                votes.add_vote(item, user, schema, labels)
    return votes.to_table("Name the folder that holds a folder for each user, or a table with schema:::label columns.")


def potato_files(folder: Path) -> list[Path]:
    """Find one file for each user, one or two folders down; the state where it holds answers, else the lines."""
    file_of: dict[Path, Path] = {}
    for name in (LINES, STATE):
        for path in sorted([*folder.glob(f"*/{name}"), *folder.glob(f"*/*/{name}")]):
            if path.is_file() and (name == LINES or path.parent not in file_of or peek(path).has(IN_STATE)):
                file_of[path.parent] = path
    return [file_of[user] for user in sorted(file_of)]


def _instances(path: Path, log: ReadingLog) -> Iterator[tuple[Any, Any, Any, Answers]]:
    """Iterate over user, item, text and answers of everything annotated in a file."""
    if peek(path).kind == "text":
        rows = read_rows(path, log)
        columns = [(name, *name.split(COLUMN, 1)) for name in rows[0] if COLUMN in name]
        if not columns:
            refuse(f"{path.name} has no column named schema:::label, as Potato's tables have.")
        for row in rows:
            answers = [(schema, label, row[name]) for name, schema, label in columns if schema != "span_annotation"]
            user = first_of(row, "user", "user_id", "annotator")
            yield user, first_of(row, "instance_id", "id"), row.get("displayed_text"), answers
    elif peek(path).has(IN_STATE):
        state = mapping(read_json(path))
        user = first_of(state, "user_id") or path.parent.name
        for item, schemas in mapping(state.get(IN_STATE)).items():
            # Answers are pairs of a record, with schema and name, and a value; or by schema.
            pairs = [pair for pair in listed(schemas) if isinstance(pair, list) and len(pair) == 2]
            labels = [(label, value) for label, value in pairs if isinstance(label, dict)]
            spelt = [(str(label.get("schema")), str(label.get("name")), value) for label, value in labels]
            yield user, item, None, spelt or _of_schemas(schemas)
    else:
        for record in read_records(path):
            user = first_of(record, "user_id", "user") or path.parent.name
            answers = _of_schemas(record.get("label_annotations"))
            yield user, first_of(record, "id", "instance_id"), record.get("displayed_text"), answers


def _of_schemas(schemas: Any) -> list[tuple[str, str, Any]]:
    """List answers that are laid out by schema, then by label."""
    by_schema = mapping(schemas).items()
    return [(schema, label, value) for schema, labels in by_schema for label, value in mapping(labels).items()]


# --- LeWiDi: one JSON object with one key per item; and our own exports, with one row per question and item -------

LEWIDI_KEYS = frozenset({"annotations", "annotators", "text", "number of annotations", "number of annotators"})


def detect_lewidi(path: Path) -> bool:
    """Return whether a file is one of LeWiDi, or an export of ours."""
    head = peek(path)
    items = {key[0] for key in head.keys if len(key) == 2 and key[1] == "annotations"}
    return _is_ours(path) or any(head.has(item, "annotators") or head.has(item, "soft_label") for item in items)


def _is_ours(path: Path) -> bool:
    head = peek(path)
    return are_ours([*head.names, *(key[0] for key in head.keys if len(key) == 1)])


def are_ours(names: Collection[str]) -> bool:
    """Return whether a table has the columns of an export of ours.

    Examples
    --------
    >>> are_ours(["question", "item", "soft_label", "votes"]), are_ours(["item", "annotators", "annotations"])
    (True, False)
    """
    columns = set(names)
    lists = "votes" in columns or columns >= {"annotators", "annotations"}
    return columns >= {"question", "item", "soft_label"} and lists


def read_lewidi(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read annotations; `soft_label` is a summary and ignored, `hard_label` can be named as published."""
    if _is_ours(path):
        return our_votes(read_records(path) if peek(path).kind == "json" else read_rows(path, log), path.name, log)
    entries = read_json(path)
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        refuse(f"{path.name} is not one JSON object with a record for each item, as LeWiDi's files are.")
    votes = ExportedVotes(path.name, "LeWiDi", log)
    for item, entry in entries.items():
        texts = scalars(mapping(entry.get("text")))
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
        # Labels such as `neutral,contradiction` are several.
        split = {who: [part.strip() for part in str(label).split(",")] for who, label in annotations.items()}
        answers = [(who, label) for who, label in annotations.items() if label not in (None, "")]
        return [(who, split[who] if isinstance(label, str) and "," in label else label) for who, label in answers]
    labels, annotators = _cells(annotations), _cells(entry.get("annotators"))
    return paired(labels, annotators if labels else [], item, name, "correct it, or take the item out")


def _cells(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else [] if cell is None else str(cell).split(",")
    texts = [str(part).strip() for part in parts]
    return texts if any(texts) else []
