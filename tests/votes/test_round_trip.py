"""Any votes, written in any layout, encoding and dialect, are read back as they were."""

from __future__ import annotations

import csv
import gzip
import io
import json
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from moral_entropy.votes.read import read_votes

NAMES = st.text("abcxyzéüß .,;'\"", min_size=1, max_size=8).map(str.strip).filter(bool)
POOLS = (("no", "yes"), ("0", "1"), ("care", "harm", "loyalty"), ("1", "2", "3", "4", "5"), ("-", "+"), ("3.5", "4"))
TEXT_FILES = ("csv", "csv.gz", "tsv", "txt")
WORKBOOKS = ["xlsx"] if find_spec("fastexcel") and find_spec("openpyxl") else []


@st.composite
def vote_tables(draw):
    """Votes of some annotators on some items: label by item and annotator."""
    items = [f"i{name}" for name in draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))]
    annotators = [f"w{name}" for name in draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))]
    labels = draw(st.sampled_from(POOLS))
    pairs = [(item, annotator) for item in items for annotator in annotators]
    votes = {pair: draw(st.sampled_from([None, *labels])) for pair in pairs}
    # Two labels at least, by two annotators at least, on two items at least: less is no table.
    votes |= {pairs[0]: labels[0], pairs[-1]: labels[1]}
    return items, annotators, votes


def laid_out(table, layout):
    """Rows of cells, the header first; None for no vote."""
    items, annotators, votes = table
    if layout == "long":
        cast = [(*pair, label) for pair, label in votes.items() if label is not None]
        return [("item", "annotator", "label"), *cast]
    if layout == "wide":
        return [("item", *annotators), *[(i, *(votes[i, a] for a in annotators)) for i in items]]
    return [("annotator", *items), *[(a, *(votes[i, a] for i in items)) for a in annotators]]


def as_text(rows, dialect):
    buffer = io.StringIO()
    quoting = csv.QUOTE_ALL if dialect["quoted"] else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=dialect["delimiter"], lineterminator=dialect["end"], quoting=quoting)
    writer.writerows([cell if cell is not None else dialect["nothing"] for cell in row] for row in rows)
    return (dialect["above"] + buffer.getvalue()).encode(dialect["encoding"])


def as_bytes(rows, kind, dialect):
    header, *body = rows
    if kind in TEXT_FILES:
        content = as_text(rows, dialect)
        return gzip.compress(content, mtime=0) if kind == "csv.gz" else content
    if kind == "jsonl":
        return "\n".join(json.dumps(dict(zip(header, row, strict=True))) for row in body).encode()
    if kind == "json":
        return json.dumps([dict(zip(header, row, strict=True)) for row in body]).encode()
    buffer = io.BytesIO()
    if kind == "parquet":
        pl.DataFrame(body, schema=dict.fromkeys(header, pl.String), orient="row").write_parquet(buffer)
        return buffer.getvalue()
    from openpyxl import Workbook

    book = Workbook()
    for row in rows:
        book.active.append(list(row))
    book.save(buffer)
    return buffer.getvalue()


DIALECTS = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from([",", ";", "\t", "|"]),
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
        "end": st.sampled_from(["\n", "\r\n"]),
        "quoted": st.booleans(),
        "nothing": st.sampled_from(["", "NA", "n/a", "?", "no answer"]),
        "above": st.sampled_from(["", "# a comment, with commas\n", "\n\n"]),
    }
)


@settings(max_examples=150, deadline=None)
@given(
    table=vote_tables(),
    layout=st.sampled_from(["long", "wide", "respondents"]),
    kind=st.sampled_from([*TEXT_FILES, "jsonl", "json", "parquet", *WORKBOOKS]),
    dialect=DIALECTS,
)
def test_any_votes_in_any_file_are_read_back(table, layout, kind, dialect):
    content = as_bytes(laid_out(table, layout), kind, dialect)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"votes.{kind}"
        path.write_bytes(content)
        votes = read_votes(path, format=layout)
    ballot = votes.ballots[0]
    found = {}
    for i in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]].tolist():
            annotator, label = divmod(code, ballot.n_labels)
            item = votes.items[int(ballot.item_i[i])]
            found[item, votes.annotators[int(ballot.annotator_a[annotator])]] = ballot.labels[label]
    assert found == {pair: label for pair, label in table[2].items() if label is not None}
    assert ballot.n_votes == len(found)
