"""Everyday files through the command line: questions with exit code 2, what was guessed, columns that are kept."""

from __future__ import annotations

import polars as pl
import pytest

from moral_entropy.runs.folder import read_manifest, read_table

FAST = ("-o", "run", "--draws", 20, "--no-report")


def test_a_table_that_can_be_read_in_several_ways_ends_in_a_question(run, folder):
    (folder / "names.csv").write_text("id,zoe,tim\n" + "".join(f"{i},{i % 2},{i % 3 % 2}\n" for i in range(30)))
    code, out, err = run("audit", "names.csv", *FAST)
    assert (code, out) == (2, "")
    assert err == (
        "error: what are the columns zoe, tim of names.csv? They could be: annotators, one row per item (--format wide)"
        "; items, one row per person (--format respondents); yes/no questions, with one answer per row (--anonymous "
        "--questions zoe,tim). Say which.\n"
    )
    assert not (folder / "run").exists()
    for layout, items in (("wide", 30), ("respondents", 2)):
        assert run("audit", "names.csv", *FAST, "--format", layout, "--force")[0] == 0
        assert read_manifest("run")["items"] == items


def test_what_was_guessed_is_printed(run, folder):
    rows = [f"t{i},{who},{['Yes', 'y', 'NO', 'n/a'][(i * k) % 4]}" for i in range(30) for k, who in enumerate("abc", 1)]
    (folder / "mixed.csv").write_bytes("\n".join(["tweet_id;rater;hate", *rows]).replace(",", ";").encode("utf-16"))
    code, out, _ = run("audit", "mixed.csv", *FAST, "--verbose")
    assert code == 0
    assert "guessed: item = tweet_id, annotator = rater, label = hate" in out
    assert "encoding: UTF-16." in out
    assert "taken for no answer: 'n/a' (--missing names others)." in out
    assert "'yes' (also 'Yes', 'y')" in " ".join(out.split())
    assert run("audit", "mixed.csv", *FAST, "--force", "--missing", "", "--keep-case")[0] == 0
    assert sorted(read_table("run", "votes")["label"].unique()) == ["NO", "Yes", "n/a", "y"]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--fit-by", "Items cannot be told apart by it: name a column that describes items (--fit-by)."),
        ("--domain", "It cannot be the items' domain: leave out domain (--domain), or name another column."),
    ],
)
def test_what_annotators_are_cannot_tell_items_apart(run, folder, flag, words):
    votes = pl.read_csv("votes.csv").with_columns(
        gender=pl.when(pl.col("rater") < "c").then(pl.lit("f")).otherwise(pl.lit("m"))
    )
    votes.write_csv("votes.csv")
    code, _, err = run("audit", "votes.csv", *FAST, flag, "gender")
    assert code == 2
    assert "column 'gender' describes annotators, not items: 80 items have several values of it" in err
    assert err.endswith(words + "\n")
    assert run("audit", "votes.csv", *FAST, "--keep", "gender")[0] == 0


def test_kept_columns_are_in_the_table_of_votes(run, folder):
    votes = (
        pl.read_csv("votes.csv")
        .with_row_index("time")
        .with_columns(age=pl.col("rater").replace_strict(dict(zip("abcde", range(5), strict=True)), default=None))
    )
    votes.write_csv("votes.csv")
    assert run("audit", "votes.csv", *FAST, "--keep", "time,age", "--fit-by", "domain")[0] == 0
    written = read_table("run", "votes")
    assert written.columns == ["question", "item", "annotator", "label", "time", "age"]
    given = votes.select(
        question="foundation", item="text_id", annotator="rater", label=pl.col("vote").cast(pl.String),
        time=pl.col("time").cast(pl.String), age=pl.col("age").cast(pl.String),
    ).drop_nulls()  # fmt: skip
    keys = ["question", "item", "annotator"]
    assert written.sort(keys).equals(given.sort(keys))
