"""Small files of votes in every layout that is read: what the mutations of the fuzz study begin with.

A file is a name and its bytes; a folder is a name with a slash at its end, and the bytes of the files in it.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

Row = tuple[str, str, str]
"""Item, annotator, label."""

YES_NO, THREE = ("no", "yes"), ("care", "fairness", "none")


@dataclass(frozen=True)
class Made:
    """Files to read, and how.

    Parameters
    ----------
    name
        Of the file, or of the folder with a slash at its end.
    files
        Bytes by name; the one of a file has the empty name.
    options
        Keywords of `read_votes` without which it is a question.
    """

    name: str
    files: dict[str, bytes]
    options: dict[str, Any]

    def write(self, folder: Path) -> Path:
        """Write the file or folder, and return its path."""
        path = folder / self.name.rstrip("/")
        for inner, content in self.files.items():
            file = path / inner if inner else path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return path


def votes(labels: Sequence[str], *, n_items: int = 8, annotators: str = "abcd", seed: int = 1) -> list[Row]:
    """Draw votes of all annotators but a few, right three times in four."""
    draw, rows = random.Random(seed), list[Row]()
    for item in range(n_items):
        truth = labels[item % len(labels)]
        for who in annotators:
            if draw.random() < 0.9:
                rows.append((f"i{item}", f"ann {who}", truth if draw.random() < 0.75 else draw.choice(labels)))
    return rows


def _of(rows: Iterable[Row]) -> dict[str, list[Row]]:
    by_item: dict[str, list[Row]] = {}
    for row in rows:
        by_item.setdefault(row[0], []).append(row)
    return by_item


def _lines(records: Iterable[Any]) -> bytes:
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    return "\n".join(delimiter.join(map(str, row)) for row in [header, *rows]) + "\n"


def _texts() -> dict[str, tuple[bytes, dict[str, Any]]]:
    two, three = votes(YES_NO), votes(THREE)
    long = [(*row, f"text of {row[0]}", "uv"[n % 2]) for n, row in enumerate(three)]
    wide = [(i, *({who: label for _, who, label in group}.get(f"ann {a}", "") for a in "abcd"))
            for i, group in _of(two).items()]  # fmt: skip
    people = [(f"ann {a}", *("" if row[n] is None else row[n] for row in wide)) for n, a in enumerate("abcd", 1)]
    counts = [(i, sum(g[2] == "no" for g in group), sum(g[2] == "yes" for g in group)) for i, group in _of(two).items()]
    head = ("item", "annotator", "label", "text", "domain")
    return {
        "long.csv": (_csv(head, long).encode(), {}),
        "long.tsv": (_csv(head, long, "\t").encode(), {}),
        "semicolons.csv": (_csv(("item", "annotator", "label"), [(*row[:2], f"{n % 3},5") for n, row in enumerate(two)],
                                ";").encode(), {}),
        "utf16.csv": (_csv(head, long).encode("utf-16"), {}),
        "windows.csv": (_csv(("item", "annotator", "label"), [(i, f"René {a}", x) for i, a, x in two]).encode("cp1252"),
                        {}),
        "title.csv": (("# votes of May\n\n" + _csv(head, long)).encode(), {}),
        "long.csv.gz": (gzip.compress(_csv(head, long).encode(), mtime=0), {}),
        "wide.csv": (_csv(("item", *(f"ann {a}" for a in "abcd")), wide).encode(), {"layout": "wide"}),
        "people.csv": (_csv(("annotator", *_of(two)), people).encode(), {"layout": "respondents"}),
        "counts.csv": (_csv(("item", "no", "yes"), counts).encode(), {"anonymous": True, "counts": ("no", "yes")}),
        "several.csv": (_csv(("item", "annotator", "label"), [(*row[:2], "care;none" if n % 3 else row[2])
                             for n, row in enumerate(three)]).encode(), {"multilabel": ";"}),
        "questions.csv": (_csv(("item", "annotator", "question", "label"), [(*row[:2], "pq"[n % 2], row[2])
                               for n, row in enumerate(two * 2)]).encode(), {"on_repeat": "count"}),
        "gold.csv": (_csv(("item", "annotator", "label", "gold"), [(*row, "yes" if row[0] < "i4" else "no")
                          for row in two]).encode(), {}),
        "mturk.csv": (_csv(("HITId", "WorkerId", "AssignmentStatus", "Input.text", "Answer.label"),
                           [(i, who, "Approved", f"text {i}", label) for i, who, label in three]).encode(), {}),
        "crowd.csv": (_csv(("task", "worker", "label"), three).encode(), {}),
    }  # fmt: skip


def _records() -> dict[str, tuple[bytes, dict[str, Any]]]:
    rows = votes(THREE)
    by_item = _of(rows)
    studio = [
        {"id": n, "data": {"text": f"text {i}", "id": i}, "annotations": [
            {"id": m, "completed_by": {"id": m, "email": who}, "was_cancelled": False,
             "result": [{"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]}
            for m, (_, who, label) in enumerate(group)]}
        for n, (i, group) in enumerate(by_item.items())
    ]  # fmt: skip
    flat = [
        {"id": i, "text": f"text {i}", "label.responses": [g[2] for g in group],
         "label.responses.users": [g[1] for g in group], "label.responses.status": ["submitted"] * len(group)}
        for i, group in by_item.items()
    ]  # fmt: skip
    nested = [
        {"id": i, "fields": {"text": f"text {i}"}, "metadata": {"part": 1}, "responses": {
            "label": [{"value": g[2], "user_id": g[1], "status": "submitted"} for g in group]}}
        for i, group in by_item.items()
    ]  # fmt: skip
    options = [{"id": label, "text": label} for label in THREE]
    prodigy = [
        {"text": f"text {i}", "_input_hash": hash_of(i), "_task_hash": hash_of(i + who), "options": options,
         "accept": [label], "answer": "accept", "_annotator_id": who}
        for i, who, label in rows
    ]  # fmt: skip
    lewidi = {
        i: {"text": f"text {i}", "annotations": ",".join(g[2] for g in group), "annotators": ",".join(g[1] for g in
            group), "number of annotations": len(group), "soft_label": {"none": 0.5}, "other_info": {"domain": "u"}}
        for i, group in by_item.items()
    }  # fmt: skip
    third = {i: {"text": f"text {i}", "annotations": {g[1]: g[2] for g in group}, "soft_label": {"none": 0.5}}
             for i, group in by_item.items()}  # fmt: skip
    plain = [dict(zip(("item", "annotator", "label"), row, strict=True)) for row in rows]
    doccano = [{"id": i, "text": f"text {i}", "label": [label], "annotator": who} for i, who, label in rows]
    return {
        "studio.json": (json.dumps(studio, indent=1).encode(), {}),
        "argilla.jsonl": (_lines(flat), {}),
        "argilla.json": (json.dumps(nested).encode(), {}),
        "prodigy.jsonl": (_lines(prodigy), {}),
        "lewidi.json": (json.dumps(lewidi).encode(), {}),
        "lewidi3.json": (json.dumps(third).encode(), {}),
        "plain.jsonl": (_lines(plain), {}),
        "plain.json": (json.dumps(plain).encode(), {}),
        "doccano.jsonl": (_lines(doccano), {"multilabel": ","}),
    }


def _judged() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Lay the same votes out as logs of language models that judge, and as our own export."""
    rows = votes(THREE)
    by_item = _of(rows)
    spec = {"version": 2, "eval": {"task": "qa", "model": "some/model", "created": "2026-01-01T00:00:00+00:00"}}
    samples = [
        {"id": i, "epoch": 1, "input": f"text {i}", "target": "", "scores": {g[1]: {"value": g[2]} for g in group}}
        for i, group in by_item.items()
    ]
    log = io.BytesIO()
    with zipfile.ZipFile(log, "w") as archive:
        for name, content in [("header.json", spec), *((f"samples/{one['id']}.json", one) for one in samples)]:
            archive.writestr(name, json.dumps(content))
    graded = [
        {"testIdx": n, "provider": {"id": "some:model"}, "prompt": {"raw": "{{q}}"}, "vars": {"q": i}, "success": True,
         "testCase": {"description": i}, "response": {"output": f"text {i}"}, "gradingResult": {"pass": True,
         "componentResults": [{"pass": True, "score": 1, "reason": f"[[{label}]]",
                               "assertion": {"type": "llm-rubric", "value": "good?", "provider": who}}
                              for _, who, label in group]}}
        for n, (i, group) in enumerate(by_item.items())
    ]  # fmt: skip
    scores = [
        {"id": f"s{n}", "traceId": i, "name": "tone", "source": "ANNOTATION", "authorUserId": who, "stringValue": label,
         "dataType": "CATEGORICAL", "value": 0, "metadata": {"text": f"text {i}"}}
        for n, (i, who, label) in enumerate(rows)
    ]  # fmt: skip
    judged = [{"id": i, "input": f"text {i}", "scores": {g[1]: g[2] for g in group}} for i, group in by_item.items()]
    ours = [
        {"question": "label", "item": i, "text": f"text {i}", "label": "none", "soft_label": [0.2, 0.2, 0.6],
         "annotators": [g[1] for g in group], "annotations": [g[2] for g in group]}
        for i, group in by_item.items()
    ]  # fmt: skip
    return {
        "log.eval": (log.getvalue(), {}),
        "log.json": (json.dumps({**spec, "status": "success", "samples": samples}).encode(), {}),
        "graded.json": (json.dumps({"evalId": "e", "results": {"version": 3, "results": graded}}).encode(), {}),
        "scores.json": (json.dumps({"data": scores, "meta": {"page": 1, "totalItems": len(scores)}}).encode(), {}),
        "judged.jsonl": (_lines(judged), {}),
        "items.jsonl": (_lines(ours), {}),
    }


def hash_of(text: str) -> int:
    """Return a number of 31 bits that depends on the text alone."""
    return sum((n + 1) * 7919 * ord(letter) for n, letter in enumerate(text)) % (1 << 31)


def _binaries() -> dict[str, tuple[bytes, dict[str, Any]]]:
    frame = pl.DataFrame(votes(THREE), schema=["item", "annotator", "label"], orient="row")
    parquet, found = io.BytesIO(), dict[str, tuple[bytes, dict[str, Any]]]()
    frame.write_parquet(parquet)
    found["long.parquet"] = (parquet.getvalue(), {})
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for who in frame["annotator"].unique(maintain_order=True):
            mine = frame.filter(annotator=who)
            file.writestr(f"{who}.jsonl", _lines({"id": i, "text": i, "label": [label]} for i, _, label in mine.rows()))
    found["doccano.zip"] = (archive.getvalue(), {})
    if find_spec("openpyxl") and find_spec("fastexcel"):
        from openpyxl import Workbook

        book, saved = Workbook(), io.BytesIO()
        for row in [frame.columns, *frame.rows()]:
            book.active.append(list(row))
        book.save(saved)
        found["long.xlsx"] = (saved.getvalue(), {})
    return found


def _folders() -> dict[str, tuple[dict[str, bytes], dict[str, Any]]]:
    rows = votes(THREE)
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
    parquet, arrow = io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    frame.write_ipc_stream(arrow, compat_level=pl.CompatLevel.oldest())
    potato = {
        f"{who}/annotated_instances.jsonl": _lines(
            {"id": i, "displayed_text": f"text {i}", "label_annotations": {"label": {label: "1"}}}
            for i, name, label in rows
            if name == who
        )
        for who in frame["annotator"].unique(maintain_order=True)
    }
    events = {
        f"{who}.jsonl": _lines([
            {"spec": {"completion_fns": [who], "eval_name": "tone.dev.v0", "run_id": "r"}},
            *({"run_id": "r", "event_id": n, "sample_id": i, "type": "match", "data": {"picked": label}}
              for n, (i, name, label) in enumerate(rows) if name == who),
            {"final_report": {"accuracy": 1.0}},
        ])
        for who in frame["annotator"].unique(maintain_order=True)
    }  # fmt: skip
    saved = {
        "data-00000-of-00001.arrow": arrow.getvalue(),
        "dataset_info.json": json.dumps({"features": {"label": {"dtype": "string", "_type": "Value"}}}).encode(),
        "state.json": json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}).encode(),
    }
    return {
        "potato/": (potato, {}),
        "events/": (events, {}),
        "hf/": ({"data/train-00000-of-00001.parquet": parquet.getvalue()}, {}),
        "saved/": (saved, {}),
    }


def all_files() -> dict[str, Made]:
    """Return every file and folder by its name."""
    single = {**_texts(), **_records(), **_judged(), **_binaries()}
    made = {name: Made(name, {"": content}, options) for name, (content, options) in single.items()}
    return made | {name: Made(name, files, options) for name, (files, options) in _folders().items()}
