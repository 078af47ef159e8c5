"""`moral-entropy simulate`: files of votes with their truth."""

from __future__ import annotations

import polars as pl
import pytest


def test_a_twin_has_its_corpus_columns(run):
    code, out, err = run("simulate", "--like", "mfrc", "--scale", 0.01, "-o", "twin.parquet")
    assert (code, err) == (0, "") and "twin.parquet" in out
    assert {"item", "annotator", "question", "label", "domain", "text", "gold"} <= set(
        pl.read_parquet("twin.parquet").columns
    )
    assert run("audit", "twin.parquet", "-o", "run", "--preset", "mft", "--draws", 20, "--quiet")[0] == 0


def test_plain_votes_have_the_sizes_asked_for(run):
    flags = ["--items", 50, "--annotators", 7, "--votes-per-item", 2, "--classes", 4, "--seed", 9]
    assert run("simulate", *flags, "-o", "plain.parquet")[0] == 0
    votes = pl.read_parquet("plain.parquet")
    assert votes.height == 100 and votes["item"].n_unique() == 50
    assert votes["annotator"].n_unique() <= 7 and set(votes["gold"].unique()) <= {0, 1, 2, 3}


def test_the_seed_decides_the_file(run, folder):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run("simulate", "--items", 50, "--seed", seed, "-o", f"{name}.parquet")
    a, b, c = ((folder / f"{name}.parquet").read_bytes() for name in "abc")
    assert a == b != c


def test_a_file_is_replaced_with_force_only(run, folder):
    assert run("simulate", "--items", 10, "-o", "x.parquet")[0] == 0
    before = (folder / "x.parquet").read_bytes()
    code, _, err = run("simulate", "--items", 20, "-o", "x.parquet")
    assert code == 2 and "--force" in err and (folder / "x.parquet").read_bytes() == before
    assert run("simulate", "--items", 20, "-o", "x.parquet", "--force")[0] == 0
    assert (folder / "x.parquet").read_bytes() != before


@pytest.mark.parametrize(
    "flags",
    [
        ["--like", "mftc", "--items", "5"],
        ["--like", "mft"],
        ["--like", "mftc", "--scale", "0"],
        ["--scale", "0.5", "--items", "5"],
        [],
        ["--items", "0"],
        ["--items", "5", "--votes-per-item", "9", "--annotators", "3"],
        ["--items", "5", "--classes", "1"],
    ],
)
def test_sizes_that_make_no_sense_are_misuse(run, folder, flags):
    code, out, err = run("simulate", *flags, "-o", "x.parquet")
    assert code == 2 and out == "" and err.startswith("error: ")
    assert not list(folder.glob("*x.parquet*")) and not list(folder.glob(".x*"))


def test_a_folder_that_is_not_there_is_named(run):
    code, _, err = run("simulate", "--items", 5, "-o", "nowhere/x.parquet")
    assert code == 1 and "nowhere" in err


def test_a_file_of_another_kind_is_refused(run, folder):
    code, _, err = run("simulate", "--items", 9, "-o", "made.csv")
    assert code == 2 and "does not end in .parquet. Write -o made.parquet." in err
