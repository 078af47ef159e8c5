"""Every file of `everyday_files` is read right, vote by vote, or refused in one sentence that holds the way out."""

from __future__ import annotations

import warnings

import pytest
from votes.everyday_files import FILES

import moral_entropy as me
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
