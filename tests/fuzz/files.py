"""Small files of votes in the layouts that are read, and mutations of them: bytes, cells, JSON values, archives, types.

A file is a name and its bytes; a folder is a name with a slash at its end, and the bytes of the files in it.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile

import polars as pl

THREE = ("care", "fairness", "none")

CELLS = (
    "", "NA", "?", "-", "nan", "inf", "-0.0", "1e308", "1e-320", "9" * 30, "9" * 5000, "0x10", "true", "none", "NULL",
    "=1+1", "'", '"', '"""', "\x1b[31m", "\x00", "\ufeff", "\u202e", "\u2028", "é", "e\u0301", "🧑🏽‍🚀", "\udc80",
    "[" * 300, '{"a": ' * 300, "a,b;c|d\te", " spaced ", "x" * 5000, "(all)", "constructor", "__proto__", "../../etc",
    "1,5", "1.5", "2024-01-01", "<script>", "%s{}", "item", "label",
)  # fmt: skip
"""Texts that some program somewhere takes for something else."""

VALUES = (
    None, True, False, 0, -1, 1.5, 2**53 + 1, 2**63, 2**64, 10**400, 1e308, [], {}, [[]], [None], {"": None},
    {"value": 1}, [1, "a", None], [{"choices": ["care"]}], {"a": {"a": {"a": {}}}},
)  # fmt: skip
PIECES = (b",", b";", b"\t", b"\n", b"\r", b'"', b"\0", b"\xff", b"\xef\xbb\xbf", b"# ", b"NA", b"9" * 40, b"[", b"{",
          b"}", b"\\ud800", b"\\u0000", b":null,", b"PAR1", b"\x1f\x8b", b"PK\x03\x04")  # fmt: skip
DTYPES = (pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Boolean)


def draw_votes(labels):
    """Draw (item, annotator, label) of four annotators who are right three times in four."""
    rng, rows = random.Random(1), []
    for item in range(8):
        truth = labels[item % len(labels)]
        for name in "abcd":
            if rng.random() < 0.9:
                rows.append((f"i{item}", f"ann {name}", truth if rng.random() < 0.75 else rng.choice(labels)))
    return rows


def by_item(rows):
    """Group the (annotator, label) of rows by item."""
    items = {}
    for item, annotator, label in rows:
        items.setdefault(item, []).append((annotator, label))
    return items


def delimited(header, rows, mark=","):
    """Return rows under a header as delimited text."""
    return "".join(mark.join(map(str, row)) + "\n" for row in (header, *rows)).encode()


def json_lines(records):
    """Return records as JSON Lines."""
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()


def text_files():
    """Return delimited files: name, bytes and the options without which the file is a question."""
    two, three = draw_votes(("no", "yes")), draw_votes(THREE)
    head = ("item", "annotator", "label")
    long = delimited((*head, "text", "domain"), [(*row, f"text {row[0]}", "uv"[n % 2]) for n, row in enumerate(three)])
    wide = [(i, *(dict(votes).get(f"ann {a}", "") for a in "abcd")) for i, votes in by_item(two).items()]
    counts = [(i, *([x for _, x in votes].count(k) for k in ("no", "yes"))) for i, votes in by_item(two).items()]
    people = [(f"ann {a}", *(row[n] for row in wide)) for n, a in enumerate("abcd", 1)]
    return {
        "long.csv": (long, {}),
        "long.tsv": (long.replace(b",", b"\t"), {}),
        "utf16.csv": (long.decode().encode("utf-16"), {}),
        "title.csv": (b"# votes of May\n\n" + long, {}),
        "long.csv.gz": (gzip.compress(long, mtime=0), {}),
        "windows.csv": (delimited(head, [(i, f"René {a}", x) for i, a, x in two]).decode().encode("cp1252"), {}),
        "semicolons.csv": (delimited(head, [(i, a, f"{n % 3},5") for n, (i, a, _) in enumerate(two)], ";"), {}),
        "wide.csv": (delimited(("item", *(f"ann {a}" for a in "abcd")), wide), {"format": "wide"}),
        "people.csv": (delimited(("annotator", *by_item(two)), people), {"format": "respondents"}),
        "counts.csv": (delimited(("item", "no", "yes"), counts), {"anonymous": True, "counts": ("no", "yes")}),
        "several.csv": (delimited(head, [(i, a, "care;none" if n % 3 else x) for n, (i, a, x) in enumerate(three)]),
                        {"multilabel": ";"}),
        "questions.csv": (delimited((*head, "question"), [(*row, "pq"[n % 2]) for n, row in enumerate(two * 2)]),
                          {"on_repeat": "count"}),
        "gold.csv": (delimited((*head, "gold"), [(*row, "yes" if row[0] < "i4" else "no") for row in two]), {}),
        "mturk.csv": (delimited(("HITId", "WorkerId", "AssignmentStatus", "Input.text", "Answer.label"),
                                [(i, who, "Approved", f"text {i}", label) for i, who, label in three]), {}),
    }  # fmt: skip


def record_files():
    """Return exports of annotation tools and logs of judges, as JSON, with their options."""
    rows = draw_votes(THREE)
    items = by_item(rows)
    studio = [{"id": n, "data": {"text": f"text {i}", "id": i}, "annotations": [
        {"id": m, "completed_by": {"id": m, "email": who}, "was_cancelled": False, "result": [
            {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]}
        for m, (who, label) in enumerate(votes)]} for n, (i, votes) in enumerate(items.items())]  # fmt: skip
    argilla = [{"id": i, "fields": {"text": f"text {i}"}, "responses": {"label": [
        {"value": label, "user_id": who, "status": "submitted"} for who, label in votes]}}
        for i, votes in items.items()]  # fmt: skip
    prodigy = [{"text": f"text {i}", "_input_hash": int(i[1:]), "_task_hash": n, "accept": [label], "answer": "accept",
                "options": [{"id": k, "text": k} for k in THREE], "_annotator_id": who}
               for n, (i, who, label) in enumerate(rows)]  # fmt: skip
    lewidi = {i: {"text": i, "annotations": ",".join(x for _, x in votes), "number of annotations": len(votes),
                  "annotators": ",".join(a for a, _ in votes), "soft_label": {"none": 0.5}}
              for i, votes in items.items()}  # fmt: skip
    samples = [{"id": i, "epoch": 1, "input": f"text {i}", "target": "", "scores": {a: {"value": x} for a, x in votes}}
               for i, votes in items.items()]  # fmt: skip
    spec = {"version": 2, "eval": {"task": "qa", "model": "some/model", "created": "2026-01-01T00:00:00+00:00"}}
    graded = [{"testIdx": n, "provider": {"id": "some:model"}, "prompt": {"raw": "{{q}}"}, "vars": {"q": i},
               "testCase": {"description": i}, "response": {"output": f"text {i}"}, "gradingResult": {"pass": True,
               "componentResults": [{"pass": True, "score": 1, "reason": f"[[{x}]]", "assertion":
                                     {"type": "llm-rubric", "value": "good?", "provider": a}} for a, x in votes]}}
              for n, (i, votes) in enumerate(items.items())]  # fmt: skip
    scores = [{"id": f"s{n}", "traceId": i, "name": "tone", "source": "ANNOTATION", "authorUserId": who, "value": 0,
               "stringValue": label, "dataType": "CATEGORICAL"} for n, (i, who, label) in enumerate(rows)]  # fmt: skip
    inspect = io.BytesIO()
    with zipfile.ZipFile(inspect, "w") as archive:
        for name, content in [("header.json", spec), *((f"samples/{sample['id']}.json", sample) for sample in samples)]:
            archive.writestr(name, json.dumps(content))
    return {
        "studio.json": (json.dumps(studio, indent=1).encode(), {}),
        "argilla.json": (json.dumps(argilla).encode(), {}),
        "prodigy.jsonl": (json_lines(prodigy), {}),
        "lewidi.json": (json.dumps(lewidi).encode(), {}),
        "plain.jsonl": (json_lines({"item": i, "annotator": a, "label": x} for i, a, x in rows), {}),
        "doccano.jsonl": (json_lines({"id": i, "text": i, "label": [x], "annotator": a} for i, a, x in rows),
                          {"multilabel": ","}),
        "log.eval": (inspect.getvalue(), {}),
        "log.json": (json.dumps({**spec, "status": "success", "samples": samples}).encode(), {}),
        "graded.json": (json.dumps({"evalId": "e", "results": {"version": 3, "results": graded}}).encode(), {}),
        "scores.json": (json.dumps({"data": scores, "meta": {"page": 1, "totalItems": len(scores)}}).encode(), {}),
        "judged.jsonl": (json_lines({"id": i, "input": i, "scores": dict(votes)} for i, votes in items.items()), {}),
    }  # fmt: skip


def binary_files():
    """Return a Parquet file, an Excel workbook and a folder of Potato, with their options."""
    from openpyxl import Workbook

    frame = pl.DataFrame(draw_votes(THREE), schema=["item", "annotator", "label"], orient="row")
    parquet, saved, book = io.BytesIO(), io.BytesIO(), Workbook()
    frame.write_parquet(parquet)
    for row in [frame.columns, *frame.rows()]:
        book.active.append(list(row))
    book.save(saved)
    coders = {
        f"{who}.csv": mine.drop("annotator").write_csv().encode()
        for (who,), mine in frame.group_by("annotator", maintain_order=True)
    }
    return {"long.parquet": (parquet.getvalue(), {}), "long.xlsx": (saved.getvalue(), {}), "coders/": (coders, {})}


def all_files():
    """Return (files by inner name, options) of every file and folder, by its name."""
    made = text_files() | record_files() | binary_files()
    return {name: (content if isinstance(content, dict) else {"": content}, options)
            for name, (content, options) in made.items()}  # fmt: skip


def write_files(folder, name, contents):
    """Write a file, or the files of a folder, and return its path."""
    path = folder / name.rstrip("/")
    for part, content in contents.items():
        file = path / part if part else path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return path


def change_bytes(content, rng):
    """Change, remove, insert or repeat some bytes."""
    changed = bytearray(content)
    at, what = rng.randrange(len(changed) + 1), rng.random()
    if what < 0.3:
        changed[at : at + 1] = bytes([rng.randrange(256)])
    elif what < 0.5:
        del changed[at : at + rng.choice((1, 3, 20, 200))]
    elif what < 0.8:
        changed[at:at] = rng.choice(PIECES)
    else:
        changed[at:at] = changed[at : at + rng.choice((1, 10, 100))] * rng.choice((1, 2, 50))
    return bytes(changed)


def cut(content, rng):
    """Cut the end off."""
    return content[: rng.randrange(len(content) + 1)]


def change_lines(content, rng):
    """Repeat, remove or swap lines."""
    lines = content.split(b"\n")
    first, second, what = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.random()
    if what < 0.35:
        lines.insert(first, lines[second])
    elif what < 0.6:
        del lines[first]
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def change_cells(content, rng):
    """Put something else into one cell, or into most cells of a column, of a delimited file."""
    rows = [line.split(",") for line in content.decode().split("\n")]
    column, cell = rng.randrange(len(rows[0])), rng.choice(CELLS)
    chosen = rng.sample(range(len(rows)), 1) if rng.random() < 0.6 else range(1, len(rows))
    for n in chosen:
        if len(rows[n]) > column:
            rows[n][column] = cell
    return "\n".join(",".join(row) for row in rows).encode(errors="surrogateescape")


def change_json(content, rng):
    """Put something else in the place of one value of a JSON file, or rename one key."""
    text = content.decode()
    lines = text.split("\n") if "\n{" in text else [text]
    at = rng.randrange(len(lines))
    lines[at] = json.dumps(_changed(json.loads(lines[at]), rng))
    return "\n".join(lines).encode()


def _changed(value, rng):
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return rng.choice((*VALUES, *CELLS))
    changed = value.copy()
    key = rng.randrange(len(value)) if isinstance(value, list) else rng.choice(sorted(value))
    if isinstance(value, dict) and rng.random() < 0.2:
        changed[rng.choice((*CELLS, *value))] = changed.pop(key)
    else:
        changed[key] = _changed(value[key], rng)
    return changed


def change_inside(content, rng):
    """Mutate what is inside a gzipped file or a zip archive, and pack it again."""
    way = rng.choice((change_bytes, cut, change_lines, change_cells, change_json))
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(way(gzip.decompress(content), rng), mtime=0)
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(packed, "w") as after:
        chosen = rng.choice(before.namelist())
        for name in before.namelist():
            after.writestr(name, way(before.read(name), rng) if name == chosen else before.read(name))
    return packed.getvalue()


def change_table(content, rng):
    """Give a column of a Parquet file another type, name or values, or drop it, or drop rows."""
    frame, written = pl.read_parquet(content), io.BytesIO()
    name = rng.choice(frame.columns)
    column = pl.col(name)
    changes = (
        lambda: frame.with_columns(column.rank("dense").cast(rng.choice(DTYPES), strict=False)),
        lambda: frame.with_columns(column.cast(pl.String).cast(pl.Binary)),
        lambda: frame.with_columns(rng.choice((pl.concat_list(name), pl.struct(name), pl.lit(None))).alias(name)),
        lambda: frame.with_columns(pl.lit(rng.choice([cell for cell in CELLS if cell.isprintable()])).alias(name)),
        lambda: frame.with_columns(pl.lit(float("nan")).alias(name)),
        lambda: frame.with_columns(column.reverse()),
        lambda: frame.rename({name: rng.choice(("x", "gold", "text", "count", "é", "constructor"))}),
        lambda: frame.drop(name),
        lambda: frame.head(rng.choice((0, frame.height // 2))),
    )
    rng.choice(changes)().write_parquet(written)
    return written.getvalue()


WAYS = (
    change_bytes,
    cut,
    change_lines,
    change_cells,
    change_cells,
    change_json,
    change_json,
    change_inside,
    change_table,
)


def mutate(content, rng):
    """Mutate bytes once or a few times; return them with the names of what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        way = rng.choice(WAYS)
        try:
            content = way(content, rng)
        except (Exception, pl.exceptions.PanicException):
            # What the way does not fit, or what is damaged already, is damaged byte by byte.
            way = change_bytes
            content = way(content, rng)
        done.append(way.__name__)
    return content, done
