"""Who belongs to which group: from the votes, from a file, and what is wrong with either."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.groups.members import read_groupings
from moral_entropy.option_fields import naming_flags
from moral_entropy.options import GroupOptions
from moral_entropy.votes.read import read_votes


def votes_with(**columns):
    n = len(next(iter(columns.values())))
    frame = pl.DataFrame(
        {
            "item": [i for i in range(3) for _ in range(n)],
            "annotator": [a for _ in range(3) for a in range(n)],
            "label": [(i + a) % 2 for i in range(3) for a in range(n)],
            **{name: list(values) * 3 for name, values in columns.items()},
        }
    )
    return frame, read_votes(frame, keep=tuple(columns))


def test_a_column_of_the_votes_groups_annotators():
    _, votes = votes_with(gender=["f", "m", "f", "m"])
    [grouping] = read_groupings(votes, GroupOptions(annotator_group=("gender",)))
    assert grouping.names == ("f", "m")
    assert grouping.group_a.tolist() == [0, 1, 0, 1]
    assert grouping.notes() == []


def test_missing_values_are_a_group_that_is_not_compared():
    _, votes = votes_with(gender=["f", None, "N/A", "m", " ", "f"])
    [grouping] = read_groupings(votes, GroupOptions(annotator_group=("gender",)))
    assert grouping.group_a.tolist() == [0, -1, -1, 1, -1, 0]
    assert grouping.notes() == [
        "by gender, 3 annotators of 6 without a value: the group (unknown) is not compared.",
        "by gender, groups of one annotator are shown and not compared: m.",
    ]


def test_one_annotator_in_two_groups_is_an_error():
    frame, _ = votes_with(gender=["f", "m", "f", "m"])
    changed = frame.with_columns(gender=pl.when(item=2, annotator=1).then(pl.lit("f")).otherwise("gender"))
    with pytest.raises(
        VotesError, match=r"1 annotator of 4 in the votes has several values.*annotator 1 has 'f' and 'm'"
    ):
        read_groupings(read_votes(changed, keep=("gender",)), GroupOptions(annotator_group=("gender",)))


def test_fifty_groups_are_too_many_and_one_is_too_few():
    _, votes = votes_with(age=[f"{a:02}" for a in range(50)], land=["x"] * 50)
    with pytest.raises(VotesError, match=r"'age' has 50 groups; at most 20.*00, 01, 02 and 47 more"):
        read_groupings(votes, GroupOptions(annotator_group=("age",)))
    with pytest.raises(VotesError, match="'land' has only 'x'"):
        read_groupings(votes, GroupOptions(annotator_group=("land",)))


def test_intersections_group_by_both_columns():
    _, votes = votes_with(gender=["f", "m", "f", "m"], age=["old", "old", "young", None])
    [grouping] = read_groupings(votes, GroupOptions(annotator_group=("gender+age",)))
    assert grouping.column == "gender+age"
    assert grouping.names == ("f + old", "f + young", "m + old")
    assert grouping.group_a.tolist() == [0, 2, 1, -1]


def test_a_file_describes_annotators(tmp_path):
    _, votes = votes_with(gender=["f", "m", "f", "m"])
    path = tmp_path / "people.csv"
    path.write_text("annotator,party\n0,left\n1,right\n2,left\n99,right\n")
    [grouping] = read_groupings(votes, GroupOptions(annotator_group=("party",), annotators=path))
    assert grouping.group_a.tolist() == [0, 1, 0, -1]
    # A dataframe says the same, whatever the type of its ids.
    frame = pl.DataFrame({"annotator": [0, 1, 2], "party": ["left", "right", "left"]})
    [same] = read_groupings(votes, GroupOptions(annotator_group=("party",), annotators=frame))
    assert np.array_equal(same.group_a, grouping.group_a)


def test_a_file_that_does_not_fit_is_refused_by_flag(tmp_path):
    _, votes = votes_with(gender=["f", "m", "f", "m"])
    path = tmp_path / "people.csv"
    with naming_flags():
        options = GroupOptions(annotator_group=("party",), annotators=path)
        path.write_text("who,party\n0,left\n")
        with pytest.raises(VotesError, match=r"--annotators: .* has no column 'annotator'. Columns: who, party"):
            read_groupings(votes, options)
        path.write_text("annotator,party\nzoe,left\n")
        with pytest.raises(VotesError, match=r"none of the 1 annotators .* voted. First: 'zoe'"):
            read_groupings(votes, options)
        path.write_text("annotator,partei\n0,left\n")
        with pytest.raises(
            VotesError, match=r"--annotator-group: people.csv has no column 'party'. Did you mean 'partei'"
        ):
            read_groupings(votes, options)


def test_options_that_need_a_column_say_so():
    for name in ("annotators", "target"):
        with pytest.raises(UsageError, match=f"{name} .*annotator_group"):
            GroupOptions(**{name: "file.csv"})


def test_anonymous_votes_have_no_groups():
    frame = pl.DataFrame({"item": [1, 1, 2], "label": [0, 1, 1], "gender": ["f", "m", "f"]})
    votes = read_votes(frame, anonymous=True, keep=("gender",))
    with pytest.raises(UsageError, match="anonymous"):
        read_groupings(votes, GroupOptions(annotator_group=("gender",)))
