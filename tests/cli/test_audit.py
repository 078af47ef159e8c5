"""`moral-entropy audit`: what it writes, what it prints, what its flags do."""

from __future__ import annotations

import hashlib
import json
import re

import polars as pl
import pytest

from moral_entropy.runs.folder import read_manifest, read_table
from moral_entropy.runs.run import read_run
from moral_entropy.schemas import SCHEMAS

PARTS = ("advice", "any_by_votes", "reliability", "rules")
AUDITS = ["audit.parquet", *(f"audit_{what}.parquet" for what in PARTS)]
OTHERS = (
    "agreement",
    "annotator_summary",
    "annotators",
    "entropy",
    "findings",
    "items",
    "outliers",
    "contributions",
    "spot_checks",
    "votes",
)
TABLES = sorted([*AUDITS, *(f"{what}.parquet" for what in OTHERS)])


def digests(path):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.glob("*.parquet")}


def test_it_writes_the_run_folder_of_the_contract(run, folder):
    code, _, err = run("audit", "votes.csv", "-o", "run", "--draws", 50)
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (folder / "run").iterdir()) == sorted(
        [*TABLES, "spot-check.csv", "manifest.json", "report.html"]
    )
    for name in ("items", "annotators", "entropy"):
        assert read_table("run", name).columns == SCHEMAS[name].names()
    items = read_table("run", "items")
    # t900 has no label in its only row and t901 no annotator; both stay, without a vote.
    assert items.filter(pl.col("n_votes") == 0)["item"].to_list() == ["t900", "t901"]
    assert items["question"].unique().sort().to_list() == ["care", "fairness"]
    assert items.height == 82 + 80


def test_without_a_folder_it_prints_the_screen_and_writes_nothing(run, folder):
    before = sorted(folder.iterdir())
    code, out, _ = run("audit", "votes.csv", "--draws", 50)
    assert code == 0 and sorted(folder.iterdir()) == before
    *_, keep = out.splitlines()
    assert keep.split() == ["keep", "moral-entropy", "audit", "votes.csv", "--draws", "50", "-o", "run/"]
    code, written, _ = run("audit", "votes.csv", "--draws", 50, "-o", "run")
    assert code == 0 and out.splitlines()[:5] == written.splitlines()[:5]


def test_the_manifest_says_what_went_in_and_how_it_went(run, folder):
    run("audit", "votes.csv", "-o", "run", "--draws", 50, "--seed", 4, "--prior-prevalence", "8,2")
    facts = read_manifest("run")
    json.loads((folder / "run" / "manifest.json").read_text(), parse_constant=pytest.fail)
    assert facts["command"] == "moral-entropy audit votes.csv -o run --draws 50 --seed 4 --prior-prevalence 8,2"
    assert facts["input"]["sha256"] == hashlib.sha256((folder / "votes.csv").read_bytes()).hexdigest()
    assert facts["columns"]["item"] == "text_id" and "item" in facts["guessed"]
    assert (facts["rows"], sum(facts["dropped"].values())) == (len((folder / "votes.csv").read_text().split()) - 1, 2)
    assert (facts["items"], facts["items_without_votes"], facts["annotators"]) == (82, 2, 5)
    assert (facts["seed"], facts["draws"], facts["solver"], facts["interval"]) == (4, 50, "em", 0.9)
    assert facts["priors"]["prevalence"] == [8, 2]
    assert facts["converged"] is True and facts["warnings"] == []
    assert list(facts["seconds"]) == ["read", "fit", "entropy", "audit", "outliers", "checks", "write", "report"]
    assert [fit["question"] for fit in facts["questions"]] == ["care", "fairness"]
    for fit in facts["questions"]:
        assert fit["positive"] == "1" and fit["converged"] and fit["passes"] > 0
        assert sum(fit["prevalence"].values()) == pytest.approx(1)
        assert fit["log_posterior"] < 0 and fit["steepness"] < 1e-3
    assert facts["votes"] == sum(fit["votes"] for fit in facts["questions"]) == facts["rows"] - 2


def test_same_input_and_seed_give_the_same_bytes(run, folder):
    run("audit", "votes.csv", "-o", "a", "--draws", 50, "--threads", 1)
    run("audit", "votes.csv", "-o", "b", "--draws", 50, "--threads", 2)
    run("audit", "votes.csv", "-o", "c", "--draws", 50, "--seed", 1)
    assert digests(folder / "a") == digests(folder / "b")
    assert digests(folder / "a")["items.parquet"] != digests(folder / "c")["items.parquet"]
    a, b = read_manifest("a"), read_manifest("b")
    a["options"]["fit"]["threads"] = b["options"]["fit"]["threads"] = None
    # The report shows what was typed.
    assert a["files"].pop("report.html") != b["files"].pop("report.html")
    assert {key for key in a if a[key] != b[key]} <= {"seconds", "command", "threads"}


def test_the_order_of_rows_changes_nothing(run, folder):
    head, *rows = (folder / "votes.csv").read_text().splitlines()
    (folder / "turned.csv").write_text("\n".join([head, *reversed(rows)]))
    run("audit", "votes.csv", "-o", "a", "--draws", 50)
    run("audit", "turned.csv", "-o", "b", "--draws", 50)
    assert digests(folder / "a") == digests(folder / "b")


def test_fit_by_fits_each_part_on_its_own(run, folder):
    run("audit", "votes.csv", "-o", "both", "--draws", 0, "--fit-by", "domain")
    table = pl.read_csv("votes.csv")
    table.filter(pl.col("domain") == "BLM").write_csv("blm.csv")
    run("audit", "blm.csv", "-o", "blm", "--draws", 0)
    items = read_table("both", "items")
    assert items["part"].unique().sort().to_list() == ["BLM", "Sandy"]
    alone = read_table("blm", "items").select("question", "item", "p")
    together = items.filter(pl.col("part") == "BLM").select("question", "item", "p")
    assert alone.equals(together)
    assert {fit["part"] for fit in read_manifest("both")["questions"]} == {"BLM", "Sandy"}
    assert read_table("both", "annotators").filter(pl.col("part") == "Sandy").height == 2 * 5 * 4


def test_the_preset_sets_the_papers_priors(run):
    run("audit", "votes.csv", "-o", "run", "--draws", 0, "--preset", "mft")
    assert read_manifest("run")["priors"]["prevalence"] == [80, 20]


def test_known_annotators_count_as_votes(run, folder):
    (folder / "known.csv").write_text("annotator,true,voted,pseudo_votes\na,0,0,5000\na,1,1,5000\n")
    run("audit", "votes.csv", "-o", "run", "--draws", 0, "--prior-annotators", "known.csv")
    right = pl.col("true") == pl.col("voted")
    probability = read_table("run", "annotators").filter(right & (pl.col("annotator") == "a"))["probability"]
    assert probability.min() > 0.99


def test_more_than_two_labels_add_a_posterior_table(run, folder):
    lines = ["item,annotator,label"]
    lines += [f"{i},{a},{'xyz'[(i + (a == i % 7)) % 3]}" for i in range(60) for a in range(4)]
    (folder / "three.csv").write_text("\n".join(lines))
    assert run("audit", "three.csv", "-o", "run", "--draws", 20)[0] == 0
    assert read_table("run", "posterior").columns == SCHEMAS["posterior"].names()
    assert read_table("run", "posterior").schema["item"] == pl.Int64
    assert read_manifest("run")["questions"][0]["positive"] is None


def test_what_is_printed_is_plain_fits_the_window_and_is_that_of_the_files(run):
    _, out, _ = run("audit", "votes.csv", "-o", "run", "--draws", 50, "--verbose")
    assert "\x1b" not in out
    [head] = [line for line in out.splitlines() if line.startswith("question")]
    tables = re.findall(r"^(?:question|rule) (?:.*\n)+?\n", out, flags=re.MULTILINE)
    assert len(tables) >= 2 and head in tables[0]
    assert all(len(line) <= 80 for table in tables for line in table.splitlines())
    assert "item = text_id" in out and "positive label: '1'" in out and "without a vote: 2 items" in out
    items = read_table("run", "items").filter(pl.col("question") == "care")
    [line] = re.findall(r"^care .*", out, flags=re.MULTILINE)
    parts = read_run("run").parts
    means = [f"{items[column].mean():.3f}" for column in ("entropy", *parts)]
    assert line.split()[1:] == [str(items.height), *means]
    assert ["question", "items", "entropy", *parts.values()] in map(str.split, out.splitlines())


def test_quiet_prints_nothing(run):
    assert run("audit", "votes.csv", "-o", "run", "--draws", 20, "--quiet") == (0, "", "")


def test_warnings_are_printed_and_kept(run, folder):
    (folder / "alone.csv").write_text("item,annotator,label\n1,a,yes\n2,a,no\n3,a,yes\n")
    code, out, err = run("audit", "alone.csv", "-o", "run", "--draws", 0, "--prior-prevalence", 5, "--verbose")
    # On the screen they are findings with their remedy; where only warnings are wanted, they go to standard error.
    assert code == 0 and err == "" and "What to do: " in out
    code, out, err = run("audit", "alone.csv", "-o", "run", "--draws", 0, "--prior-prevalence", 5, "--quiet", "--force")
    assert (code, out) == (0, "")
    lines = err.splitlines()
    assert lines and all(line.startswith("warning: ") for line in lines)
    assert any("one annotator" in line for line in lines)
    assert [f"warning: {text}" for text in read_manifest("run")["warnings"]] == lines


def test_questions_with_markup_in_their_names_are_printed_as_they_are(run, folder):
    text = (folder / "votes.csv").read_text().replace("fairness", "[red]fair")
    (folder / "votes.csv").write_text(text)
    assert "[red]fair" in run("audit", "votes.csv", "-o", "run", "--draws", 0)[1]


def test_a_run_can_be_replaced_with_force_only(run, folder):
    assert run("audit", "votes.csv", "-o", "run", "--draws", 0)[0] == 0
    before = digests(folder / "run")
    code, out, err = run("audit", "votes.csv", "-o", "run", "--draws", 20)
    assert (code, out) == (1, "") and err.startswith("error: ") and "--force" in err
    assert digests(folder / "run") == before
    assert run("audit", "votes.csv", "-o", "run", "--draws", 20, "--force")[0] == 0
    assert read_manifest("run")["draws"] == 20


def test_force_replaces_a_run_with_everything_that_commands_add_to_it(run, folder):
    run("audit", "votes.csv", "-o", "run", "--draws", 20)
    assert run("report", "run", "--card")[0] == 0
    assert run("validate", "run", "--checks", "identifiability")[0] == 0
    assert run("audit", "votes.csv", "-o", "run", "--draws", 20, "--force")[0] == 0
    assert not (folder / "run" / "croissant.json").exists()


def test_force_deletes_neither_its_input_nor_what_is_not_a_runs(run, folder):
    run("audit", "votes.csv", "-o", "run", "--draws", 20)
    before = (folder / "run" / "votes.parquet").read_bytes()
    code, _, err = run("audit", "run/votes.parquet", "-o", "run", "--force")
    assert code == 1 and "votes.parquet is read by this run" in err
    (folder / "run" / "gold.csv").write_text("item,gold\nt001,1\n")
    code, _, err = run("audit", "votes.csv", "--gold-file", "run/gold.csv", "-o", "run", "--force")
    assert code == 1 and "holds gold.csv, which no run wrote" in err
    assert (folder / "run" / "votes.parquet").read_bytes() == before and (folder / "run" / "gold.csv").is_file()
