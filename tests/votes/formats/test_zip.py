"""A zip of tables, such as doccano's export with a file per user: read in memory, or refused in one sentence."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes import source
from moral_entropy.votes.read import read_votes


def lines(*labels):
    records = [
        {"id": n, "text": f"text {n}", "label": list(names), "Comments": []} for n, names in enumerate(labels, 1)
    ]
    return "\n".join(json.dumps(record) for record in records).encode()


def zipped(files, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


USERS = {"ann.jsonl": lines(["sad"], ["glad"]), "bob.jsonl": lines(["glad"], ["glad"]), "admin.jsonl": b""}


def test_every_file_of_the_zip_is_an_annotator(write, spelt):
    votes = read_votes(write(zipped(USERS | {"__MACOSX/._ann.jsonl": b"\0"}), "export.zip"))
    assert spelt(votes) == [(1, "ann", "sad"), (1, "bob", "glad"), (2, "ann", "glad"), (2, "bob", "glad")]
    assert votes.texts.to_list() == ["text 1", "text 2"]
    assert "2 files, each an annotator: ann, bob." in votes.reading.notes


def test_several_labels_make_yes_no_questions(write, spelt):
    files = {"ann.jsonl": lines(["care", "harm"], []), "bob.jsonl": lines(["care"], ["harm"])}
    votes = read_votes(write(zipped(files), "export.zip"))
    assert votes.questions == ("care", "harm")
    assert spelt(votes, "harm") == [(1, "ann", "1"), (1, "bob", "0"), (2, "ann", "0"), (2, "bob", "1")]


@pytest.mark.parametrize("where", [0.3, 0.9])
def test_half_a_zip(write, where):
    content = zipped(USERS)
    with pytest.raises(VotesError, match=r"export.zip is a damaged or locked zip file: .* copied whole"):
        read_votes(write(content[: int(len(content) * where)], "export.zip"))


def test_a_zip_whose_bytes_were_changed(write):
    content = bytearray(zipped(USERS))
    at = content.index(b"ann.jsonl") + 30
    content[at : at + 8] = bytes(8)
    with pytest.raises(VotesError, match=r"export.zip is a damaged or locked zip file"):
        read_votes(write(bytes(content), "export.zip"))


def test_a_zip_that_unpacks_to_too_much_is_refused_before_it_is_read(write, monkeypatch):
    monkeypatch.setattr(source, "MOST_BYTES", 1_000_000)
    bomb = zipped({"ann.jsonl": b" " * 1_000_001})
    assert len(bomb) < 2_000
    with pytest.raises(VotesError, match=r"a zip file with 1 tables of 1,000,001 bytes in it. Unpack it"):
        read_votes(write(bomb, "export.zip"))


def test_a_zip_without_a_table(write):
    with pytest.raises(VotesError, match="a zip file with no table in it"):
        read_votes(write(zipped({"readme.md": b"hello"}), "export.zip"))
