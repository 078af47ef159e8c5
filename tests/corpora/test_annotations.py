"""Cells, however they are spelt."""

from __future__ import annotations

import random

from corpora.layouts import FOUNDATIONS, WORDS, spelt
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.corpora.annotations import read_cell
from moral_entropy.corpora.facts import published_files


@given(
    name=st.sampled_from(["mftc", "mfrc"]),
    means=st.frozensets(st.sampled_from(FOUNDATIONS)),
    seed=st.integers(0, 10**6),
)
def test_spelling_does_not_change_the_meaning(name, means, seed):
    read = read_cell(spelt(random.Random(seed), name, means), published_files(name).foundation_of())
    assert read == (means, not means, ())


@given(labels=st.lists(st.text(st.characters(exclude_characters=",", exclude_categories=["Cs"])), max_size=5))
def test_no_text_is_lost(labels):
    known = published_files("mftc").foundation_of()
    _, _, unknown = read_cell(",".join(labels), known)
    meant = [" ".join(label.split()) for label in labels]
    assert list(unknown) == [label for label in meant if label and label.casefold() not in known]


def test_the_data_file_says_what_the_labels_mean():
    for name, words in WORDS.items():
        means = {word.lower(): foundation or "none" for foundation, listed in words.items() for word in listed}
        assert published_files(name).foundation_of() == means
