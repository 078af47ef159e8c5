"""What must hold for any votes, however their rows are ordered."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import ballot_from_codes

cell = st.sampled_from(["x", "y", "10", "9", None])
row = st.tuples(
    st.integers(0, 5), st.sampled_from("abc"), cell, st.sampled_from(["d", "e", None]), st.sampled_from("pq")
)
rows = st.lists(row, min_size=1, max_size=25)


def table(listed):
    schema = {"item": pl.Int64, "annotator": pl.String, "label": pl.String, "domain": pl.String, "question": pl.String}
    return pl.DataFrame(listed, schema=schema, orient="row")


def read_or_reason(frame, **options):
    try:
        return read_votes(frame, **options)
    except VotesError as error:
        return str(error)


def assert_same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert one.items.to_list() == other.items.to_list()
    assert one.annotators.to_list() == other.annotators.to_list()
    assert one.domains == other.domains
    assert one.reading == other.reading or one.reading.__dict__ == other.reading.__dict__
    assert_array_equal(one.domain_i, other.domain_i)
    assert one.questions == other.questions
    for left, right in zip(one.ballots, other.ballots, strict=True):
        assert (left.labels, left.positive) == (right.labels, right.positive)
        for name in ("item_i", "annotator_a", "start_i", "code_v", "count_i", "gold_i"):
            assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
            assert getattr(left, name).dtype == getattr(right, name).dtype


@settings(max_examples=60, deadline=None)
@given(listed=rows, order=st.randoms(use_true_random=False), options=st.sampled_from(
    [{"question": ""}, {}, {"anonymous": True}, {"multilabel": ","}, {"labels": {"x": "y", "9": ""}}]
))  # fmt: skip
def test_the_order_of_rows_is_irrelevant(listed, order, options):
    shuffled = order.sample(listed, len(listed))
    assert_same(
        read_or_reason(table(listed), on_repeat="count", **options),
        read_or_reason(table(shuffled), on_repeat="count", **options),
    )


@settings(max_examples=60, deadline=None)
@given(listed=rows)
def test_no_vote_is_lost_or_invented(listed):
    votes = read_or_reason(table(listed), on_repeat="count", question="")
    whole = [(item, annotator, label) for item, annotator, label, _, _ in listed if label is not None]
    if len({label for *_, label in whole}) < 2:
        assert isinstance(votes, str)
        return
    ballot = votes.ballots[0]
    found = []
    for i in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            annotator, label = divmod(int(code), ballot.n_labels)
            found.append((votes.items[i], votes.annotators[annotator], ballot.labels[label]))
    assert sorted(found) == sorted(whole)
    assert votes.items.to_list() == sorted({item for item, *_ in listed})
    assert votes.reading.dropped.get("no label", 0) == len(listed) - len(whole)


@settings(max_examples=40, deadline=None)
@given(listed=rows, last=st.booleans())
def test_first_and_last_keep_what_a_dictionary_would(listed, last):
    whole = [(item, annotator, label) for item, annotator, label, _, _ in listed if label is not None]
    kept = {}
    for item, annotator, label in whole if last else reversed(whole):
        kept[item, annotator] = label
    votes = read_or_reason(table(listed), on_repeat="last" if last else "first", question="")
    if len({label for *_, label in whole}) < 2:
        assert isinstance(votes, str)
        return
    ballot = votes.ballots[0]
    found = {}
    for i in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            annotator, label = divmod(int(code), ballot.n_labels)
            found[votes.items[i], votes.annotators[annotator]] = ballot.labels[label]
    assert found == kept


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 1)), max_size=30), st.booleans())
def test_a_ballot_has_every_vote_once_and_in_order(cast, in_order):
    cast = sorted(cast) if in_order else cast
    item_v, annotator_v, label_v = np.array(cast, dtype=np.int16).reshape(-1, 3).T
    ids = {"item_i": np.arange(5), "annotator_a": np.arange(3)}
    ballot = ballot_from_codes("q", ("no", "yes"), item_v=item_v, annotator_v=annotator_v, label_v=label_v, **ids)
    found = [
        (i, *divmod(int(code), 2))
        for i, (start, end) in enumerate(pairwise(ballot.start_i))
        for code in ballot.code_v[start:end]
    ]
    assert found == sorted(cast)
