from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.read import read_votes

ROWS = [("q1", "ann", "yes"), ("q1", "bob", "no"), ("q2", "ann", "no"), ("ü 3", "bob", "yes")]
FRAME = pl.DataFrame(ROWS, schema=["item", "annotator", "label"], orient="row")


def text(delimiter=",", end="\n"):
    return "".join(delimiter.join(row) + end for row in [FRAME.columns, *ROWS])


def parquet():
    buffer = io.BytesIO()
    FRAME.write_parquet(buffer)
    return buffer.getvalue()


CONTENT = {
    "votes.csv": text().encode(),
    "semicolons.csv": text(";").encode(),
    "bars.txt": text("|").encode(),
    "votes.tsv": text("\t").encode(),
    "tabs.csv": text("\t").encode(),
    "windows.csv": b"\xef\xbb\xbf" + text(end="\r\n").encode(),
    "no-last-line-end.csv": text().rstrip("\n").encode(),
    "blank-lines.csv": text().replace("q2", "\nq2").encode() + b"\n\n",
    "votes.parquet": parquet(),
    "really-parquet.csv": parquet(),
    "votes.jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in FRAME.to_dicts()),
    "votes.json": json.dumps(FRAME.to_dicts()).encode(),
    "really-lines.json": b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in FRAME.to_dicts()),
    "votes": text().encode(),
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", CONTENT)
def test_every_format_gives_the_same_votes(name, zipped, write, spelt):
    content = gzip.compress(CONTENT[name], mtime=0) if zipped else CONTENT[name]
    votes = read_votes(write(content, name + ".gz" * zipped))
    assert spelt(votes) == sorted(ROWS)
    assert votes.reading.sha256 == hashlib.sha256(content).hexdigest()
    assert votes.reading.rows == 4


def test_gzip_is_known_by_its_bytes(write, spelt):
    assert spelt(read_votes(str(write(gzip.compress(text().encode()), "votes.csv")))) == sorted(ROWS)


def test_parquet_in_parts(tmp_path, spelt):
    FRAME[:2].write_parquet(tmp_path / "part-0.parquet")
    FRAME[2:].write_parquet(tmp_path / "part-1.parquet")
    by_glob = read_votes(str(tmp_path / "part-*.parquet"))
    by_list = read_votes([tmp_path / "part-1.parquet", tmp_path / "part-0.parquet"])
    assert spelt(by_glob) == spelt(by_list) == sorted(ROWS)
    assert by_glob.reading.sha256 == by_list.reading.sha256 != ""


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.lazy(),
        pd.DataFrame(ROWS, columns=FRAME.columns),
        pd.DataFrame(ROWS, columns=FRAME.columns, dtype=object),
        pd.DataFrame(ROWS, columns=FRAME.columns).astype("category"),
        pa.table({name: [row[k] for row in ROWS] for k, name in enumerate(FRAME.columns)}),
    ],
    ids=["polars", "lazy", "pandas", "pandas-object", "pandas-category", "pyarrow"],
)
def test_every_dataframe_gives_the_same_votes(frame, spelt):
    votes = read_votes(frame)
    assert spelt(votes) == sorted(ROWS)
    assert votes.reading.sha256 == ""


def test_pandas_with_holes_and_mixed_types(spelt):
    frame = pd.DataFrame(
        {
            "item": [1.0, 1.0, 2.0, np.nan],
            "annotator": pd.array([7, 8, 7, 7], dtype="Int64"),
            "label": np.array([0, "0", 1.0, 1], dtype=object),
        }
    )
    votes = read_votes(frame)
    assert spelt(votes) == [(1, 7, "0"), (1, 8, "0"), (2, 7, "1")]
    assert votes.reading.dropped == {"no item": 1}


def test_json_lines_of_mixed_types_and_missing_keys(write, spelt):
    lines = '{"item": 1, "annotator": "a", "label": 0}\n{"item": 1, "annotator": "b", "label": "0"}\n'
    lines += '{"item": 2, "annotator": "a", "label": 1.0}\n\n{"item": 2, "annotator": "b"}\n'
    votes = read_votes(write(lines, "votes.jsonl"))
    assert spelt(votes) == [(1, "a", "0"), (1, "b", "0"), (2, "a", "1")]
    assert votes.reading.dropped == {"no label": 1}


def test_json_ids_of_64_bits_are_not_merged_by_one_float_among_them(write, spelt):
    ids = [1234567890123456789, 1234567890123456788, 7.0]
    lines = "\n".join(json.dumps({"item": i, "annotator": "a", "label": at % 2}) for at, i in enumerate(ids))
    assert [item for item, *_ in spelt(read_votes(write(lines, "votes.jsonl")))] == [
        "1234567890123456788",
        "1234567890123456789",
        "7",
    ]


def many_votes():
    """More than the first bytes that are looked at: 40,000 rows, of which none but the first line is a header."""
    rows = [f"{i},a{i % 7},{'yes' if i % 3 else 'no'}" for i in range(40_000)]
    return ("\n".join(["item,annotator,label", *rows]) + "\n").encode()


def piped(content, how, folder):
    """Read votes from a stream in a process of its own: what a shell would do."""
    print_facts = (
        "from moral_entropy.votes.read import read_votes; import sys, json; r = read_votes(sys.argv[1]).reading;"
        "print(json.dumps([r.source, r.rows, r.sha256, r.columns]))"
    )
    command = [sys.executable, "-c", print_facts, how]
    finished = subprocess.run(command, input=content, capture_output=True, check=True, cwd=folder)
    return json.loads(finished.stdout)


STREAMS = {
    "csv": many_votes(),
    "gzipped": gzip.compress(many_votes(), mtime=0),
    "parquet": parquet(),
    "json lines": CONTENT["votes.jsonl"],
}


@pytest.mark.parametrize(("kind", "how"), [*((kind, "-") for kind in STREAMS), ("csv", "/dev/stdin")])
def test_standard_input_is_read_once_and_whole(kind, how, tmp_path):
    source, rows, sha256, _ = piped(STREAMS[kind], how, tmp_path)
    assert (source, sha256) == ("stdin", hashlib.sha256(STREAMS[kind]).hexdigest())
    assert rows == (4 if kind in ("parquet", "json lines") else 40_000)


def fifo(path, content):
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=[content], daemon=True).start()
    return path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_named_pipes_are_read_once_and_whole(tmp_path):
    votes, gold = (tmp_path / name for name in ("votes.csv", "gold.csv"))
    gold_rows = b"item,gold\n" + b"".join(b"%d,no\n" % i for i in range(0, 30_000, 3))
    read = read_votes(fifo(votes, many_votes()), gold_file=fifo(gold, gold_rows))
    assert (read.reading.source, read.reading.rows, read.reading.columns["item"]) == ("votes.csv", 40_000, "item")
    assert (read.ballots[0].gold_i >= 0).sum() == 10_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_that_would_be_read_twice_are_refused(tmp_path, write):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(VotesError, match="a pipe or a device, which can be read only once"):
        read_votes([tmp_path / "pipe", tmp_path / "pipe"])
    with pytest.raises(VotesError, match=r"label map .* is a pipe"):
        read_votes(write(text()), labels=tmp_path / "pipe")


def test_an_empty_stream_is_an_error():
    with pytest.raises(VotesError, match=r"null is empty \(0 bytes\)"):
        read_votes("/dev/null")


def test_a_note_names_no_column_that_the_file_does_not_have(write):
    cells = ['"care, harm"', "care", "harm", "none"]
    rows = [",".join([f"t{at}", *(cells[(at + rater) % 4] for rater in range(3))]) for at in range(12)]
    votes = read_votes(write("\n".join(["id,rater 1,rater 2,rater 3", *rows, ""])))
    [note] = [note for note in votes.reading.notes if "several labels" in note]
    assert note.startswith("cells such as 'care, harm' name several labels")


def test_double_quotes_inside_a_cell_are_letters(write):
    notes = {7: 'he said "yes" loud', 9: '5" screen'}
    rows = [f"{item},{rater},{('yes', 'no')[item % 2]},{notes.get(item, '')}" for item in range(60) for rater in "abcd"]
    votes = read_votes(write("\n".join(["item,rater,label,note", *rows, ""])), keep=("note",))
    assert votes.n_votes == 240 and votes.kept["note"].to_list()[::4] == [notes.get(item) for item in range(60)]


def test_quoted_cells_keep_commas_and_line_ends(write):
    votes = read_votes(write('item,annotator,label,text\n1,a,x,"one, two\nthree"\n1,b,y,"say ""hi"""\n'))
    assert votes.texts.to_list() == ["one, two\nthree"]


def test_a_text_item_longer_than_a_block_of_the_utf8_check_is_located_exactly(write):
    head = "item,annotator,lab\u00e9l\n".encode() + b"1,a,x\n" * 3_000_000
    with pytest.raises(VotesError, match=rf"byte {len(head) + 2:,} \(line 3,000,002\) is 0xe9"):
        read_votes(write(head + b"2,\xe9,x\n"))


BAD = {
    "empty": (b"", "votes.csv", r"votes.csv is empty \(0 bytes\)"),
    "blank": (b"\n \n", "votes.csv", "nothing but blank space"),
    "header only": (b"item,annotator,label\n", "votes.csv", r"a header \(item, annotator, label\) but no rows"),
    "no header": (b"1,2,0\n2,2,1\n", "votes.csv", "no header: its first line is 1, 2, 0"),
    "one column": (b"item\n1\n2\n", "votes.csv", "only one column, 'item'"),
    "half utf-8": (b"item,annotator,label\n1,Ren\xe9,x\n1,Zo\xc3\xab,x\n", "votes.csv", r"byte 26 \(line 2\) is 0xe9"),
    "undefined": (b"item,annotator,label\n1,Ren\x81,x\n", "votes.csv", r"neither UTF-8 nor Windows-1252: byte 26 "),
    "binary": (b"item,annotator,label\n1,\xff\x01,x\n", "votes.csv", r"byte 23 \(line 2\) is 0xff"),
    "half utf-16": ("item,annotator\n".encode("utf-16")[:-1], "votes.csv", "is not UTF-16 throughout"),
    "ragged": (b"item,annotator,label\n1,a,x\n1,b,x,y\n", "votes.csv", "line 3 of votes.csv has 4 cells"),
    "open quote": (b'item,annotator,label\n1,a,"x\n1,b,y\n', "votes.csv", "line 2 of .* has a double quote that swal"),
    "truncated parquet": (parquet()[:-20], "votes.parquet", "damaged or truncated Parquet"),
    "no parquet": (b"item,annotator,label\n", "votes.parquet", "is not a Parquet file"),
    "no workbook": (b"\xad\x00\x01\x9d", "votes.xlsx", "is not an Excel workbook"),
    "truncated gzip": (gzip.compress(text().encode())[:-12], "votes.csv.gz", "damaged gzip"),
    "zip": (b"PK\x03\x04abc", "votes.xlsx", "is a damaged Excel workbook"),
    "old excel": (b"\xd0\xcf\x11\xe0abc", "votes.xls", r"Excel before 2007. Save it as .xlsx"),
    "endless number": (b'[{"item": ' + b"9" * 5_000 + b"}]", "votes.json", "more than 4,300 digits"),
    "endless number in lines": (b'{"item": ' + b"9" * 5_000 + b"}", "votes.jsonl", "more than 4,300 digits"),
    "json of one record": (b'{"a": 1}', "votes.json", "only one column"),
    "json of a number": (b"17", "votes.json", "not a list of votes"),
    "json cut short": (b'[{"item": 1', "votes.json", "is no JSON"),
    "json lines cut short": (b'{"item": 1}\n{"item":', "votes.jsonl", "line 2 of votes.jsonl is no JSON"),
    "json lines of numbers": (b"1\n2\n", "votes.jsonl", "record 1 of votes.jsonl is no record"),
    "empty json array": (b"[]", "votes.json", "no columns"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_named_with_the_fix(case, write):
    content, name, message = BAD[case]
    with pytest.raises(VotesError, match=message) as error:
        read_votes(write(content, name))
    assert "\n" not in str(error.value)


def test_gzip_and_streams_are_read_up_to_a_limit(write, tmp_path, monkeypatch):
    monkeypatch.setattr("moral_entropy.votes.source.MOST_BYTES", 10_000)
    with pytest.raises(VotesError, match=r"votes.csv.gz unpacks to more than 10,000 bytes. Unpack it first"):
        read_votes(write(gzip.compress(b"\n" * 10_001), "votes.csv.gz"))
    with pytest.raises(VotesError, match=r"'/dev/zero' holds more than 10,000 bytes, or never ends"):
        read_votes("/dev/zero")


@pytest.mark.parametrize("name", ["votes\0.csv", "v" * 5_000, "/" + "v/" * 4_000])
def test_names_that_no_file_can_have(name):
    with pytest.raises(VotesError, match=r"cannot be"):
        read_votes(name)


def test_links_that_lead_nowhere(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    with pytest.raises(VotesError, match="cannot be read: Too many levels of symbolic links"):
        read_votes(tmp_path / "one")


def test_a_name_that_is_not_utf8_can_be_shown(tmp_path):
    path = tmp_path / os.fsdecode(b"votes-\xff.csv")
    path.write_bytes(text().encode())
    assert read_votes(path).reading.source == "votes-?.csv"


def test_truncated_parquet_data_pages(write):
    frame = pl.DataFrame({"item": np.arange(5000), "annotator": np.arange(5000) % 3, "label": np.arange(5000) % 2})
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    whole = bytearray(buffer.getvalue())
    whole[8:400] = b"\xff" * 392
    with pytest.raises(VotesError, match=r"votes.parquet"):
        read_votes(write(bytes(whole), "votes.parquet"))


def test_missing_files(tmp_path):
    with pytest.raises(VotesError, match=r"there is no file .*nowhere.csv"):
        read_votes(tmp_path / "nowhere.csv")
    with pytest.raises(VotesError, match="no file matches"):
        read_votes(str(tmp_path / "*.parquet"))
    with pytest.raises(VotesError, match=r"is a folder. Name a file, or Parquet parts"):
        read_votes(tmp_path)
    with pytest.raises(VotesError, match="list of files is empty"):
        read_votes([])


def test_files_with_other_columns_are_no_parts(write):
    paths = [write(text(), "a.csv"), write("x,y\n1,2\n", "b.csv")]
    with pytest.raises(UsageError, match=r"a has the columns .*, b has x, y: files read together"):
        read_votes(paths)


def test_what_is_no_source():
    with pytest.raises(VotesError, match="a path or a dataframe, not from int"):
        read_votes(3)
    with pytest.raises(VotesError, match="Name the columns by strings"):
        read_votes(pd.DataFrame([[1, 2, 3]]))
