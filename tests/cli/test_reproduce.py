"""`moral-entropy reproduce`: what is printed, and how it ends."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from corpora.layouts import mfrc_csv, plan

from moral_entropy.corpora.twins import twin
from moral_entropy.runs.folder import read_manifest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
QUICK = ("--draws", "10", "--classifier", "none")


def test_the_documented_command_and_flags_that_reach_the_study(run, folder):
    [command] = re.findall(r"^\$ moral-entropy (reproduce .*) -o twins/$", PAGE.read_text(), flags=re.MULTILINE)
    code, out, err = run(*command.split(), "--seed", "1", "-o", "out")
    assert (code, err) == (0, "")
    assert "any foundation" in out and "63–65%" in out and "distance" in out and "warnings about the fits" in out
    assert "The page: out/index.html" in out and (folder / "out/index.html").is_file()
    assert max(map(len, out.splitlines())) <= 80
    assert pl.read_parquet("out/comparison.parquet").filter(section="entropy").height == 150
    manifest = read_manifest("out")
    asked = {name: manifest[name] for name in ("seed", "draws")}
    assert asked == {"seed": 1, "draws": 50}
    assert manifest["twins"] == {"scale": 0.02, "seed": 1} and manifest["command"].startswith("moral-entropy reproduce")
    table = twin("mfrc", seed=1, scale=0.02).filter(domain="US Politics", question="care")
    flagged = table.group_by("item").agg(pl.col("label").max())["label"].mean()
    ours = pl.read_parquet("out/figures.parquet").filter(
        corpus="mfrc", domain="US Politics", foundation="care", metric="flagged"
    )
    assert ours["value"].to_list() == [pytest.approx(flagged)]


def test_a_file_and_force(run, folder):
    (folder / "mfrc.csv").write_text(mfrc_csv(plan("mfrc")))
    arguments = ["reproduce", "--mfrc", "mfrc.csv", *QUICK, "-o", "out"]
    assert run(*arguments, "--quiet")[:2] == (0, "")
    code, _, err = run(*arguments)
    assert code == 1 and "--force" in err
    assert run(*arguments, "--force")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-o", "y"],
        ["--twins"],
        ["--twins", "--mftc", "votes.csv", "-o", "y"],
        ["--mftc", "votes.csv", "--gold", "votes.csv", "-o", "y"],
        ["--mftc", "votes.csv", "--scale", "0.1", "-o", "y"],
        ["--twins", "--themes", "votes.csv", "-o", "y"],
        ["--twins", "--scale", "0", "-o", "y"],
        ["--twins", "--draws", "1", "-o", "y"],
        ["--twins", "--soft-labels", "run", "-o", "y"],
    ],
)
def test_misuse_is_exit_2_and_leaves_nothing(run, folder, arguments):
    before = sorted(folder.iterdir())
    code, out, err = run("reproduce", *arguments)
    assert code == 2 and out == "" and err.startswith("error: ") and "Traceback" not in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.json", "votes.csv"])
def test_bad_data_is_exit_1_and_leaves_nothing(run, folder, name):
    before = sorted(folder.iterdir())
    code, out, err = run("reproduce", "--mftc", name, "-o", "y")
    assert (code, out) == (1, "") and err.startswith("error: ") and err.count("\n") == 1 and name in err
    assert sorted(folder.iterdir()) == before
