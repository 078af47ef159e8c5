"""Every file of `everyday_files` is read right, vote by vote, or refused in one sentence that holds the way out."""

from __future__ import annotations

import json
import warnings

import pytest
from votes.everyday_files import FILES

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import MoralEntropyError


def spelt(votes):
    """Return all votes by question, sorted, as texts."""
    listed = {}
    for ballot in votes.ballots:
        rows = listed.setdefault(ballot.question, [])
        for i in range(ballot.n_items):
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                annotator, label = divmod(int(code), ballot.n_labels)
                who = votes.annotators[int(ballot.annotator_a[annotator])]
                rows.append((str(votes.items[int(ballot.item_i[i])]), str(who), ballot.labels[label]))
    return {question: sorted(rows) for question, rows in listed.items()}


def test_there_are_thirty_and_more():
    assert len(FILES) >= 30


@pytest.mark.parametrize("name", FILES)
def test_an_everyday_file(name, tmp_path):
    file = FILES[name](tmp_path)
    options = file.options or {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if file.error:
            with pytest.raises(MoralEntropyError) as caught:
                me.read_votes(file.source, **options)
            assert file.error in str(caught.value)
            assert "\n" not in str(caught.value)
            options = file.way
        if options is None:
            return
        votes = me.read_votes(file.source, **options)
    assert spelt(votes) == {question: sorted(rows) for question, rows in file.votes.items()}, votes.reading.notes
    for note in file.notes:
        assert any(note in printed for printed in votes.reading.notes), votes.reading.notes


def test_several_files_on_the_command_line(tmp_path, capsys):
    paths = FILES["a file per coder, marks"](tmp_path).source
    assert main(["audit", *paths, "-o", str(tmp_path / "run"), "--draws", "20"]) == 0
    assert "coder_Anna.csv … coder_Cleo.csv" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["annotators"], manifest["votes"]) == (3, 288)


def test_what_was_not_read_is_listed(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,coder,label,mood of the day\n1,a,x,fine\n1,b,y,fine\n2,a,y,bad\n", encoding="utf-8")
    run = me.audit(path, draws=0, report=False)
    assert run.manifest["not_read"] == ["mood of the day"]
