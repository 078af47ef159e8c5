"""The Moral Foundations Reddit Corpus: CSV and Parquet, repeats, unknown labels."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest
from corpora.layouts import FOUNDATIONS, Planned, csv_text, expected_votes, item_of, mfrc_csv, plan

from moral_entropy import read_votes
from moral_entropy.corpora.corpus import read_corpus, write_corpus
from moral_entropy.errors import UsageError, VotesError

HEADER = ("text", "subreddit", "bucket", "annotator", "annotation", "confidence")
CARE, LOYALTY = frozenset({"care"}), frozenset({"loyalty"})


def first_twice():
    """Three annotations by one person on one text, the first and the second alike, and one by another."""
    return [
        Planned("Twice", None, "US Politics", "a", "Care", CARE),
        Planned("Twice", None, "US Politics", "b", "Care", CARE),
        Planned("Twice", None, "US Politics", "a", "Care", CARE),
        Planned("Twice", None, "US Politics", "a", "Loyalty", LOYALTY),
    ]


def positives(corpus):
    return sorted(corpus.votes.filter(label=1).select("annotator", "question").rows())


@pytest.mark.parametrize("how", ["plain", "windows", "bom", "parquet", "shuffled", "two files", "other columns first"])
def test_votes_are_exactly_those_planned(write, how):
    planned = plan("mfrc")
    paths = save(write, planned, how)
    corpus = read_corpus("mfrc", paths)
    assert corpus.votes.rows() == expected_votes("mfrc", planned)
    assert corpus.rows == len(planned) and corpus.dropped == {} and corpus.notes == ()


def save(write, planned, how):
    text = mfrc_csv(planned)
    if how == "parquet":
        path = write("", "mfrc.parquet")
        pl.DataFrame([dict(zip(HEADER, row, strict=True)) for row in rows_of(planned)]).write_parquet(path)
        return path
    if how == "two files":
        return [write(mfrc_csv(planned[:50]), "a.csv"), write(mfrc_csv(planned[50:]), "b.csv")]
    if how == "other columns first":
        rows = [("x", *row[::-1]) for row in rows_of(planned)]
        return write(csv_text(("id", *(name.upper() for name in HEADER[::-1])), rows), "mfrc.csv")
    if how == "shuffled":
        text = mfrc_csv(random.Random(2).sample(planned, len(planned)))
    if how == "windows":
        text = mfrc_csv([replace(one, text=one.text.replace("\n", "\r\n")) for one in planned], newline="\r\n")
    return write(("\ufeff" if how == "bom" else "") + text, "final_mfrc_data.csv")


def rows_of(planned):
    return [(p.text, "europe", p.domain, p.annotator, p.cell, "Confident") for p in planned]


def test_buckets_are_spelt_as_in_the_paper(write):
    planned = [replace(one, domain=one.domain.replace("Politics", " politics")) for one in plan("mfrc")]
    corpus = read_corpus("mfrc", write(mfrc_csv(planned), "m.csv"))
    assert set(corpus.votes["domain"]) == {"Everyday Morality", "US Politics", "French Politics"}


def test_by_default_the_first_of_repeats_counts(write):
    corpus = read_corpus("mfrc", write(mfrc_csv(first_twice()), "m.csv"))
    assert positives(corpus) == [("a", "care"), ("b", "care")]
    assert corpus.votes.height == 10 and corpus.dropped == {"repeats, the first kept": 2}


def test_or_the_last_or_all_or_none(write):
    path = write(mfrc_csv(first_twice()), "m.csv")
    assert positives(read_corpus("mfrc", path, on_repeat="last")) == [("a", "loyalty"), ("b", "care")]
    counted = read_corpus("mfrc", path, on_repeat="count")
    assert positives(counted) == [("a", "care"), ("a", "care"), ("a", "loyalty"), ("b", "care")]
    assert counted.dropped == {} and "2 repeats are kept" in counted.notes[0]
    assert read_votes(counted.votes, on_repeat="count", classes=[0, 1]).n_votes == 20
    item = item_of("mfrc", "Twice")
    with pytest.raises(VotesError, match=f"2 of 4 annotations repeat .* First: item '{item}', annotator 'a'"):
        read_corpus("mfrc", path, on_repeat="error")


def test_unknown_labels_are_counted_and_shown(write):
    planned = plan("mfrc", n_items=4)
    planned += [
        Planned("Odd", None, "US Politics", "zoe", "Care, Liberty", CARE),
        Planned("Odd", None, "US Politics", "yan", "Honour", frozenset()),
    ]
    path = write(mfrc_csv(planned), "m.csv")
    with pytest.raises(VotesError) as caught:
        read_corpus("mfrc", path)
    assert f"2 of {len(planned)} annotations" in str(caught.value)
    assert "First: 'Liberty', by zoe on 'Odd'" in str(caught.value) and "--ignore-unknown" in str(caught.value)
    corpus = read_corpus("mfrc", path, ignore_unknown=True)
    assert corpus.votes.rows() == expected_votes("mfrc", planned[:-1])
    assert corpus.dropped == {"no known label": 1}
    assert corpus.notes == (
        "2 annotations name a label that mfrc does not have, such as 'Liberty'; it is passed over.",
    )


def test_rows_without_text_annotator_or_label_are_left_out(write):
    rows = [
        ("", "r", "US Politics", "a", "Care", ""),
        ("t", "r", "US Politics", "", "Care", ""),
        ("t", "r", "US Politics", "a", "", ""),
        ("t", "r", "", "b", "Care", ""),
    ]
    corpus = read_corpus("mfrc", write(csv_text(HEADER, rows), "m.csv"))
    assert corpus.dropped == {"no text": 1, "no annotator": 1, "no label": 1}
    assert corpus.votes.height == 5 and corpus.votes["domain"].null_count() == 5


def test_a_text_in_two_buckets(write):
    planned = [
        Planned("Same", None, "US Politics", "a", "Care", CARE),
        Planned("Same", None, "French Politics", "b", "Care", CARE),
    ]
    path = write(mfrc_csv(planned), "m.csv")
    assert set(read_corpus("mfrc", path).votes["domain"]) == {"French Politics"}
    assert read_corpus("mfrc", path, by_domain=True).votes["item"].n_unique() == 2


WRONG = {
    "no annotation column": ("text,bucket,annotator\nx,y,z\n", "has no column 'annotation'. Found: text, bucket"),
    "only a header": (",".join(HEADER) + "\n", "no rows"),
    "no header": ("1,2,3\n4,5,6\n", "no header"),
    "empty": ("", "is empty"),
    "JSON": ('[{"Corpus": "ALM", "Tweets": []}]', "has no column 'text'"),
    "no label left": (csv_text(HEADER, [("t", "r", "b", "a", "", "")]), "no annotation is left of mfrc: no label 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_gives_one_clear_error(write, what):
    content, words = WRONG[what]
    with pytest.raises(VotesError) as caught:
        read_corpus("mfrc", write(content, "wrong.json" if what == "JSON" else "wrong.csv"))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_truncated_parquet_file(write):
    path = save(write, plan("mfrc"), "parquet")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(VotesError, match="damaged or truncated"):
        read_corpus("mfrc", path)


def test_options_that_make_no_sense(write):
    path = write(mfrc_csv(plan("mfrc", n_items=2)), "m.csv")
    for name, options in (
        ("mrfc", {}),
        ("mfrc", {"emfd_votes": "assigned"}),
        ("mfrc", {"themes": path}),
        ("emfd", {"theme_map": path}),
        ("mfrc", {"on_repeat": "second"}),
    ):
        with pytest.raises(UsageError):
            read_corpus(name, path, **options)
    with pytest.raises(UsageError, match=r"final_mfrc_data\.csv"):
        read_corpus("mfrc", [])


def test_what_is_written_is_what_was_read(write, tmp_path):
    corpus = read_corpus("mfrc", write(mfrc_csv(plan("mfrc")), "m.csv"))
    assert write_corpus(corpus, tmp_path / "votes.parquet") == corpus.votes.height
    assert pl.read_parquet(tmp_path / "votes.parquet").equals(corpus.votes)
    assert read_votes(tmp_path / "votes.parquet").questions == FOUNDATIONS
