from __future__ import annotations

import io
import json
import zipfile

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats import annotation_tools
from moral_entropy.votes.read import read_votes


def lines(*records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def example(number, *labels, **more):
    return {"id": number, "text": f"tëxt {number}", "label": [*labels], "Comments": [], **more}


USERS = {
    "ann.jsonl": lines(example(1, "sad", topic="a"), example(2, "glad"), example(3)),
    "bob.jsonl": lines(example(1, "glad"), example(2), example(3)),
    "admin.jsonl": "",
}


def test_every_file_of_the_zip_is_an_annotator(write, spelt):
    votes = read_votes(write(zipped(USERS), "export.zip"))
    assert spelt(votes) == [(1, "ann", "sad"), (1, "bob", "glad"), (2, "ann", "glad")]
    assert votes.items.to_list() == [1, 2, 3]
    assert votes.texts.to_list() == ["tëxt 1", "tëxt 2", "tëxt 3"]
    assert votes.reading.dropped["example the user did not label"] == 3
    assert "format: doccano (detected)." in votes.reading.notes


def test_a_zip_that_was_packed_again_on_a_mac(write, spelt):
    again = {f"export/{name}": content for name, content in USERS.items()} | {"__MACOSX/export/._ann.jsonl": b"\0"}
    assert spelt(read_votes(write(zipped(again), "again.zip"))) == spelt(read_votes(write(zipped(USERS), "export.zip")))


def test_several_labels_make_yes_no_questions(write, spelt):
    users = {"ann.jsonl": lines(example(1, "care", "harm")), "bob.jsonl": lines(example(1, "care"))}
    votes = read_votes(write(zipped(users), "export.zip"))
    assert votes.questions == ("harm",)
    assert spelt(votes) == [(1, "ann", "1"), (1, "bob", "0")]


def test_a_zip_of_blank_lines_is_refused_before_they_are_cut(write, monkeypatch):
    monkeypatch.setattr("moral_entropy.votes.source.MOST_LINES", 1_000)
    with pytest.raises(VotesError, match=r"ann\.jsonl in blank\.zip has 5,000 lines, more than"):
        read_votes(write(zipped({"ann.jsonl": "\n" * 5_000}), "blank.zip"))


BAD = {
    "no users": ({"README.txt": "hello"}, "holds no <user>.jsonl, so there are no annotators"),
    "nobody labelled": ({"ann.jsonl": lines(example(1))}, "doccano, has no votes. Left out: example the user did not"),
    "merged": ({"all.jsonl": lines(example(1, "sad"))}, "not by whom, so there are no votes"),
    "out of the folder": ({"../../ann.jsonl": lines(example(1, "sad"))}, "which doccano would not write"),
    "two of a name": ({"a/ann.jsonl": "", "b/ann.jsonl": ""}, "'b/ann.jsonl', which doccano would not write"),
    "spans": ({"ann.jsonl": lines(example(4, [0, 2, "who"]))}, "example 4 of ann in .* marks parts of the text"),
    "a line cut off": ({"ann.jsonl": lines(example(1, "sad"))[:-9]}, "line 1 of ann.jsonl in export.zip is no JSON"),
    "not UTF-8": ({"ann.jsonl": b'{"id": "\xe9"}'}, "ann.jsonl in export.zip is not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_zips_have_one_clear_error(case, write):
    members, message = BAD[case]
    with pytest.raises(VotesError, match=message) as error:
        read_votes(write(zipped(members), "export.zip"))
    assert "\n" not in str(error.value)


def test_a_zip_whose_lzma_is_damaged(write):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("ann.jsonl", lines(example(1, "sad")) * 500)
    content = bytearray(buffer.getvalue())
    content[60:90] = b"\x55" * 30
    with pytest.raises(VotesError, match=r"export.zip is a damaged zip file: Corrupt input data"):
        read_votes(write(bytes(content), "export.zip"))


def test_a_zip_of_blank_lines(write, monkeypatch):
    monkeypatch.setattr("moral_entropy.votes.source.MOST_LINES", 10)
    with pytest.raises(
        VotesError, match=r"ann.jsonl in export.zip has 11 lines, more than JSON Lines can be read from"
    ):
        read_votes(write(zipped({"ann.jsonl": "\n" * 11}), "export.zip"))


@pytest.mark.parametrize("where", [0.5, 0.9])
def test_half_a_zip(where, write):
    whole = zipped(USERS)
    with pytest.raises(VotesError, match=r"export.zip is a damaged zip file: .* downloaded whole"):
        read_votes(write(whole[: int(len(whole) * where)], "export.zip"))


def test_a_zip_whose_bytes_were_changed(write):
    whole = bytearray(zipped(USERS))
    at = whole.index(b"ann.jsonl") + 30
    whole[at : at + 8] = bytes(8)
    with pytest.raises(VotesError, match=r"export.zip is a damaged zip file"):
        read_votes(write(bytes(whole), "export.zip"))


def test_a_zip_that_unpacks_to_too_much_is_refused_before_it_is_read(write, monkeypatch):
    monkeypatch.setattr(annotation_tools, "MOST_BYTES", 1_000_000)
    bomb = zipped({"ann.jsonl": b" " * 1_000_001})
    assert len(bomb) < 2_000
    with pytest.raises(VotesError, match=r"unpacks to 1,000,001 bytes in 1 files, more than"):
        read_votes(write(bomb, "export.zip"))
    monkeypatch.setattr(annotation_tools, "MOST_MEMBERS", 2)
    with pytest.raises(VotesError, match="in 3 files, more than"):
        read_votes(write(zipped(USERS), "users.zip"))


def test_a_zip_that_lies_about_its_size_is_not_read_beyond_it(write):
    whole = zipped({"ann.jsonl": lines(*(example(n, "sad") for n in range(500)))})
    size = len(lines(*(example(n, "sad") for n in range(500))).encode())
    lying = whole.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert lying != whole
    with pytest.raises(VotesError, match="damaged zip file"):
        read_votes(write(lying, "export.zip"))


def test_nothing_is_unpacked_to_disk(write, tmp_path):
    read_votes(write(zipped(USERS), "export.zip"))
    assert [path.name for path in tmp_path.iterdir()] == ["export.zip"]


def test_the_export_that_lost_its_annotators_is_refused_with_an_explanation(write):
    path = write(lines(example(1, "sad", "glad"), example(2)), "all.jsonl")
    with pytest.raises(VotesError, match=r"shared annotation: it says what was labelled, not by whom.*--format long"):
        read_votes(path)
    # With the annotator beside the labels it is a plain table.
    votes = read_votes(
        write(lines(example(1, "sad", "glad", user="a"), example(2, user="b")), "own.jsonl"), multilabel=","
    )
    assert votes.n_votes == 4
