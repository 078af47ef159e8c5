"""Parts read one by one against the same table read whole: whatever the cells hold, and wherever rows fall."""

from __future__ import annotations

import numpy as np
import polars as pl
from cluster.here import Here
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from moral_entropy.cluster.exchange import exchange
from moral_entropy.cluster.files import Table
from moral_entropy.cluster.vocabulary import (
    add_notes,
    add_readings,
    finish_part,
    gather_vocabulary,
    read_part,
    read_template,
    reader_for,
    tally_part,
)
from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import find_columns
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.read import read_source
from moral_entropy.votes.source import from_polars
from moral_entropy.workers import added

COLUMNS = ("item", "annotator", "label", "question", "domain", "gold")


@st.composite
def tables(draw):
    """Votes with empty cells, labels that look like numbers or truths, and items of several domains."""
    labels = draw(
        st.sampled_from([
            ("1", "0", "NA"), ("True", "false", ""), ("10", "9", "x", None), ("a", "b", "c"),
            ("Yes", "y", "no", "none"), ("Care", "care", "-", "harm"),
        ])
    )  # fmt: skip
    rows = draw(
        st.lists(
            st.tuples(
                st.one_of(st.integers(0, 12), st.none()),
                st.sampled_from(["ann", "bob", "cy", None]),
                st.sampled_from(labels),
                st.sampled_from(["care", "harm"]),
                st.sampled_from(["north", "south", None]),
            ),
            min_size=6,
            max_size=60,
            unique_by=lambda row: row[:2] + row[3:4],
        )
    )
    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS[:5], pl.String) | {"item": pl.Int64}, orient="row")
    return frame.with_columns(gold=pl.when(pl.col("item") == 3).then(pl.lit(labels[0])))


def read_in_parts(frame, options, n_parts):
    """Read a table as workers would; give template, how all was read, and parts."""
    workers = Here()
    table = Table("a table", (), (), find_columns(frame.columns, options, "a table"), tuple(frame.columns))
    reader = reader_for(table, options, None)
    slices = [frame[n::3] for n in range(3)]
    vocabulary = gather_vocabulary(workers, slices, reader)
    template = read_template(vocabulary, reader)
    rows = exchange(workers, table, slices, n_parts)
    read = [read_part(part, vocabulary, reader) for part in rows]
    readings, votes_pba = zip(*map(tally_part, read), strict=True)
    reading, votes_ba = add_readings(readings, template.reading, ""), added(*votes_pba)
    return (
        template,
        reading,
        [finish_part(votes, votes_ba, use_gold=False, by_domain=False, threads=1) for votes in read],
    )


@given(
    frame=tables(),
    n_parts=st.integers(1, 5),
    exclude=st.sampled_from([(), ("bob",), ("ann", "cy")]),
    again=st.integers(0, 3),
)
def test_parts_together_are_the_whole(frame, n_parts, exclude, again):
    frame = pl.concat([frame, frame.head(again)])
    options = ReadOptions(exclude=exclude)
    try:
        whole = read_source(from_polars(frame, "a table"), options)
    except VotesError:
        return
    if any("not taken for the domain" in note for note in whole.reading.notes):
        # A cluster asks the user instead: see below.
        options = ReadOptions(exclude=exclude, domain="")
        whole = read_source(from_polars(frame, "a table"), options)
    template, reading, parts = read_in_parts(frame, options, n_parts)
    assert template.annotators.to_list() == whole.annotators.to_list()
    assert template.domains == whole.domains
    assert [item for part in parts for item in part.votes.items] == whole.items.to_list()
    assert reading.rows == frame.height
    assert reading.dropped == whole.reading.dropped
    assert sorted(reading.notes) == sorted(whole.reading.notes)
    assert_array_equal(np.concatenate([part.votes.domain_i for part in parts]), whole.domain_i)
    for b, ballot in enumerate(whole.ballots):
        shares = [part.votes.ballots[b] for part in parts]
        for share in shares:
            assert (share.question, share.labels, share.positive) == (ballot.question, ballot.labels, ballot.positive)
            assert_array_equal(share.annotator_a, ballot.annotator_a)
            assert_array_equal(share.votes_a, ballot.votes_a)
        for name in ("code_v", "gold_i", "counts_ik", "votes_i"):
            assert_array_equal(np.concatenate([getattr(share, name) for share in shares]), getattr(ballot, name))


def test_counts_in_remarks_are_added_up():
    parts = [["1,200 items have more than one domain.", "a."], ["300 items have more than one domain.", "a."], ["a."]]
    assert add_notes(parts, ["z."]) == ("z.", "1,500 items have more than one domain.", "a.")
