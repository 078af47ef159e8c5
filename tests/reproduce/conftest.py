"""A small twin of each corpus, fitted once for all tests of the folder."""

from __future__ import annotations

import warnings

import pytest

from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.model.fit import fit
from moral_entropy.options import Inputs
from moral_entropy.reproduce.sources import load_votes

SMALL = Inputs(twins=True, scale=0.02)


@pytest.fixture(scope="session")
def votes():
    return {name: load_votes(name, SMALL) for name in ("mftc", "mfrc", "emfd")}


@pytest.fixture(scope="session")
def fitted(votes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return {name: fit(one, draws=40, model="paper") for name, one in votes.items()}
