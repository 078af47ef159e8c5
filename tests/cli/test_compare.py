"""`moral-entropy compare`: two run folders in, what moved out."""

from __future__ import annotations

import json

import polars as pl
import pytest
from scipy.stats import binomtest


@pytest.fixture
def runs(run, audit_once):
    """Run folders of the same votes: with one prior, and with another."""
    audit_once("flat", "--draws", 60)
    audit_once("firm", "--draws", 60, "--prior-prevalence", "80,20")
    return run


def test_what_differs_and_what_moved_is_printed(runs, folder):
    code, out, err = runs("compare", "flat", "firm")
    assert (code, err) == (0, "")
    assert "priors.prevalence: 1.0 in a, [80.0, 20.0] in b" in out
    assert "in both, 0 only in a, 0 only in b" in out
    for said in (
        "care",
        "fairness",
        "(all)",
        "BLM",
        "Sandy",
        "kappa",
        "entropy",
        "majority",
        "labels changed on",
    ):
        assert said in out
    assert max(len(line) for line in out.splitlines()) < 130
    assert sorted(path.name for path in folder.iterdir()) == ["firm", "flat", "votes.csv"]


def test_a_run_and_itself_do_not_differ(runs):
    code, out, _ = runs("compare", "flat", "flat", "--json")
    facts = json.loads(out)
    assert code == 0 and facts["settings"] == [] and facts["notes"] == []
    for row in facts["shifts"] + facts["grades"]:
        assert row["change"] in (0.0, None) and {row.get("low"), row.get("high")} <= {0.0, None}
    assert {row["moved"] for row in facts["items"]} == {0.0}
    values = {(row["metric"], row["value"]) for row in facts["agreement"]}
    assert values == {("agreement", 1.0), ("kappa", 1.0), ("moved", 0.0)}
    assert "p moved on 0" in runs("compare", "flat", "flat")[1]


def test_figures_are_those_of_the_run_folders(runs):
    code, out, err = runs("compare", "flat", "firm", "--json", "--top", "2")
    facts = json.loads(out)
    assert (code, err) == (0, "") and len(facts["items"]) == 2
    shifts = pl.DataFrame(facts["shifts"])
    for side, name in (("a", "flat"), ("b", "firm")):
        expected = pl.read_parquet(f"{name}/entropy.parquet")
        both = expected.join(shifts.filter(metric="entropy").drop("label"), on=["question", "domain"])
        assert both.height == expected.height == 6
        assert both["total"].to_list() == pytest.approx(both[side].to_list(), abs=1e-12)
        assert both["n_items"].to_list() == both["n"].to_list()
    audit = pl.read_parquet("firm/audit.parquet").filter(pl.col("metric").is_in(["fpr", "fnr", "fdr"]))
    assert [row["value_b"] for row in facts["grades"]] == audit["value"].to_list()


def test_other_annotators_on_some_of_the_items(runs, folder):
    votes = pl.read_csv("votes.csv").filter(pl.col("rater") != "a", pl.col("text_id") > "t009")
    votes.write_csv("fewer.csv")
    runs("audit", "fewer.csv", "-o", "fewer", "--draws", "60", "--quiet")
    code, out, _ = runs("compare", "flat", "fewer")
    assert code == 0
    assert "only in a, 0 only in b" in out and "0 only in a" not in out
    assert "grades are of all items of either run" in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["flat", "nowhere"], 1, "nowhere is no run folder"),
        (["flat", "votes.csv"], 1, "votes.csv is no run folder: it is a file"),
        (["flat"], 2, "RUN_B"),
        (["flat", "firm", "--replicates", "1"], 2, "No such option: --replicates"),
    ],
)
def test_misuse_is_one_paragraph(runs, folder, arguments, code, said):
    before = sorted(path.name for path in folder.iterdir())
    found, out, err = runs("compare", *arguments)
    assert (found, out) == (code, "")
    assert err.startswith("error: ") and said in err and "Traceback" not in err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_help_has_an_example(run):
    code, out, _ = run("compare", "--help")
    assert code == 0 and "Example: moral-entropy compare run-a/ run-b/" in out


def test_two_versions_of_a_judge_on_an_anchor_set(run, folder):
    """The second version turns round every fifth label of the first: shown with the exact interval."""
    for version in (1, 2):
        rows = ["item,annotator,label"]
        for item in range(60):
            turned = version == 2 and item % 5 == 0
            rows += [f"t{item},{name},{(item + (name == 'bob')) % 2}" for name in ("ann", "bob")]
            rows.append(f"t{item},judge,{(item + turned) % 2}")
        (folder / f"v{version}.csv").write_text("\n".join(rows) + "\n")
        assert run("audit", f"v{version}.csv", "-o", f"run{version}", "--draws", 20, "--no-report", "--quiet")[0] == 0
    code, out, _ = run("compare", "run1", "run2")
    exact = binomtest(12, 60).proportion_ci(0.9, method="exact")
    expected = f"judge label 60 20.0 ({100 * exact.low:.1f} to {100 * exact.high:.1f})"
    flipped = [" ".join(line.split()) for line in out.partition("votes that flipped")[2].splitlines()]
    assert code == 0 and expected in flipped and not any(line.startswith(("ann ", "bob ")) for line in flipped)
