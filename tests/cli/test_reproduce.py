"""`moral-entropy reproduce`: how it ends; tests/golden has what it prints of twins."""

from __future__ import annotations

import pytest
from corpora.layouts import mfrc_csv, plan

from moral_entropy.runs.folder import read_manifest


def test_a_file_flags_and_force(run, folder):
    (folder / "mfrc.csv").write_text(mfrc_csv(plan("mfrc")))
    arguments = ["reproduce", "--mfrc", "mfrc.csv", "--seed", "1", "--draws", "10", "--classifier", "none", "-o", "out"]
    assert run(*arguments, "--quiet")[:2] == (0, "")
    manifest = read_manifest("out")
    assert (manifest["seed"], manifest["draws"]) == (1, 10)
    assert manifest["command"].startswith("moral-entropy reproduce --mfrc")
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
