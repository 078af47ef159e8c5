from __future__ import annotations

import pytest

from moral_entropy import audit
from moral_entropy.corpora.sources import load_votes
from moral_entropy.options import Inputs


@pytest.fixture
def write(tmp_path):
    """A function that writes text or bytes to a file, line ends untouched, and gives its path."""

    def write_file(content, name):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def runs():
    """A small twin of each corpus, audited as the paper does, which takes votes alone."""
    rules = ("any", "majority", "two-vote")
    votes = {name: load_votes(name, Inputs(twins=True, scale=0.02)) for name in ("mftc", "mfrc", "emfd")}
    return {name: audit(own, model="paper", draws=40, rules=rules, use_text="off") for name, own in votes.items()}
