from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data"


@pytest.fixture
def shared():
    """Folder with real votes, beside the project."""
    if not SHARED.is_dir():
        pytest.skip("no real votes at ../shared/data")
    return SHARED


@pytest.fixture
def spelt():
    """A function that spells a ballot out again, vote by vote, with the user's own ids."""

    def spell(votes, question=None):
        ballot = votes.ballot(question) if question else votes.ballots[0]
        listed = []
        for i in range(ballot.n_items):
            item = votes.items[int(ballot.item_i[i])]
            for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
                annotator, label = divmod(int(code), ballot.n_labels)
                listed.append((item, votes.annotators[int(ballot.annotator_a[annotator])], ballot.labels[label]))
        return listed

    return spell


@pytest.fixture
def write(tmp_path):
    """A function that writes text or bytes to a file and gives its path."""

    def write_file(content, name="votes.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
