"""`verify`: an untouched run stands, and every planted change is found, also where its digest was made good."""

from __future__ import annotations

import json
import random
import re
import shutil

import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import RunFolderError
from moral_entropy.runs.folder import digest_of, read_manifest, write_manifest
from moral_entropy.verification import fact_differences, table_difference


def votes_frame(labels=("no", "yes")):
    """Four annotators right three times in four on forty texts of two questions, some with gold."""
    draw = random.Random(3)
    rows = []
    for item in range(40):
        truth = labels[draw.randrange(len(labels))]
        for name in "abcd":
            if draw.random() < 0.8 or name == "a":
                rows.append(
                    {
                        "item": f"i{item:02}",
                        "annotator": name,
                        "label": truth if draw.random() < 0.75 else labels[draw.randrange(len(labels))],
                        "question": "care" if item % 2 else "harm",
                        "domain": ("web", "news", None)[item % 3],
                        "text": f"text {item}",
                        "gold": truth if item % 4 else None,
                        "age": 20 + item,
                    }
                )
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    home = tmp_path_factory.mktemp("verify")
    votes_frame().drop("gold", "age").write_csv(home / "votes.csv")
    me.audit(home / "votes.csv", out=home / "run", draws=20)
    return home / "run"


@pytest.fixture
def run(untouched, tmp_path):
    shutil.copytree(untouched, tmp_path / "run")
    return tmp_path / "run"


def change_table(run, name, **columns):
    path = run / f"{name}.parquet"
    pl.read_parquet(path).with_columns(**columns).write_parquet(path)


def change_first(column, value):
    """Replace the first value of a column."""
    first = pl.int_range(pl.len()) == 0
    return {column: pl.when(first).then(value).otherwise(pl.col(column))}


def a_vote(run):
    other = pl.when(pl.col("label") == "yes").then(pl.lit("no")).otherwise(pl.lit("yes"))
    change_table(run, "votes", **change_first("label", other))


def a_vote_removed(run):
    path = run / "votes.parquet"
    pl.read_parquet(path)[1:].write_parquet(path)


def a_figure(run):
    fnr = (pl.col("rule") == "majority") & (pl.col("metric") == "fnr")
    change_table(run, "audit", value=pl.when(fnr).then(pl.col("value") + 1e-6).otherwise(pl.col("value")))


def a_label(run):
    other = pl.when(pl.col("label") == "yes").then(pl.lit("no")).otherwise(pl.lit("yes"))
    change_table(run, "items", **change_first("label", other))


def a_probability(run):
    change_table(run, "items", **change_first("p", pl.col("p") + 2e-9))


def the_seed(run):
    facts = json.loads((run / "manifest.json").read_text())
    facts["seed"] = facts["options"]["fit"]["seed"] = 7
    (run / "manifest.json").write_text(json.dumps(facts, indent=2))


def the_settings(run):
    text = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(re.sub(r'"cost_fn": 1.0', '"cost_fn": 2.0', text))


def the_advice(run):
    facts = json.loads((run / "manifest.json").read_text())
    facts["advice"] = "Take any vote."
    (run / "manifest.json").write_text(json.dumps(facts, indent=2))


def a_finding(run):
    path = run / "findings.parquet"
    pl.read_parquet(path)[1:].write_parquet(path)


def a_table(run):
    (run / "agreement.parquet").unlink()


def an_annotator(run):
    change_table(run, "annotators", **change_first("probability", pl.col("probability") + 1e-6))


def an_added_table(run):
    assert not (run / ADDED).exists()
    shutil.copy(run / "items.parquet", run / ADDED)


def the_report(run):
    page = (run / "report.html").read_text()
    place = page.index("<body")
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), page[place:], count=1)
    (run / "report.html").write_text(page[:place] + changed)


def the_version(run):
    text = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(text.replace(f'"version": "{me.__version__}"', '"version": "0.0.9"', 1))


def answers(run):
    change_table(run, "spot_checks", **change_first("answer", pl.lit("yes")))


ADDED = "groups.parquet"
"""A table that this run does not have."""

CHANGES = {
    an_annotator: "annotators.parquet: ",
    an_added_table: f"{ADDED}: was not written by a command",
    a_vote: "items.parquet: ",
    a_vote_removed: "items.parquet: 1 of 40 values of n_votes differs",
    a_figure: "audit.parquet: ",
    a_label: "items.parquet: 1 of ",
    a_probability: "items.parquet: 1 of ",
    the_seed: "items.parquet: ",
    the_settings: "audit_advice.parquet: ",
    the_advice: "manifest.json: advice: 'Take any vote.' written, ",
    a_finding: "findings.parquet: ",
    a_table: "agreement.parquet: ",
}
"""What is found without any digest."""

BY_DIGEST = {the_report: "report.html", the_version: "manifest.json", answers: "spot_checks.parquet"}
"""What nobody can compute from votes."""


def make_good(run):
    """Write all digests anew, as a forger would."""
    facts = read_manifest(run)
    facts["files"] = {name: digest_of(run / name) for name in facts["files"] if (run / name).is_file()}
    write_manifest(run, facts)


def test_an_untouched_run_stands(untouched):
    assert me.verify(untouched, votes_file=untouched.parent / "votes.csv").differences == ()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_found_by_computing_again(change, run):
    change(run)
    make_good(run)
    outcome = me.verify(run)
    assert not outcome.stands
    assert any(CHANGES[change] in difference for difference in outcome.differences), outcome.differences
    assert "was changed after" not in " ".join(outcome.differences)


@pytest.mark.parametrize("change", BY_DIGEST, ids=lambda change: change.__name__)
def test_what_cannot_be_computed_is_compared_with_its_digest(change, run):
    change(run)
    assert me.verify(run).differences == (f"{BY_DIGEST[change]}: was changed after it was written",)


def test_it_names_the_first_cell(run):
    p = pl.read_parquet(run / "items.parquet").row(0, named=True)
    change_table(run, "items", **change_first("p", pl.lit(0.125)))
    n = pl.read_parquet(run / "items.parquet").height
    cell = f"question 'care', domain '{p['domain']}', item '{p['item']}', label '{p['label']}'"
    text = f"items.parquet: 1 of {n} values of p differs; {cell}: 0.125 written, {p['p']} computed"
    assert me.verify(run).differences == (text,)


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", "link.txt", "sub/../../secret.txt"])
def test_names_outside_the_folder_are_not_followed(run, name, monkeypatch):
    (run.parent / "secret.txt").write_text("secret")
    (run / "link.txt").symlink_to(run.parent / "secret.txt")
    facts = read_manifest(run)
    write_manifest(run, facts | {"files": {**facts["files"], name: "0" * 64}})
    opened = []
    monkeypatch.setattr("moral_entropy.verification.changed_files", opened.append)
    assert me.verify(run).differences == (f"manifest.json names {name!r}, which is not in the folder",)
    assert opened == []


@pytest.mark.parametrize(("stage", "name"), [("groups", "annotators"), ("groups", "target"), ("judges", "roles")])
def test_options_that_name_other_files_are_not_followed(run, stage, name):
    facts = read_manifest(run)
    facts["options"][stage][name] = "/somewhere/people.csv"
    write_manifest(run, facts)
    with pytest.raises(RunFolderError, match=r"was made with '/somewhere/people.csv', which it does not hold"):
        me.verify(run)


def test_another_votes_file_is_found(untouched, tmp_path):
    (tmp_path / "votes.csv").write_text((untouched.parent / "votes.csv").read_text() + "i99,a,yes,care,web,text\n")
    outcome = me.verify(untouched, votes_file=tmp_path / "votes.csv")
    assert outcome.differences == ("votes.csv: is not the file that was audited: its digest is another",)


KINDS = {
    "three labels with gold": (votes_frame(("a", "b", "c")).drop("age"), {"gold": "gold"}),
    "fitted by part, paper's model": (votes_frame().drop("gold", "age"), {"fit_by": "domain", "model": "paper"}),
    "anonymous": (votes_frame().drop("annotator", "gold", "age"), {"anonymous": True}),
    "kept columns, known labels, priors": (
        votes_frame(),
        {"gold": "gold", "keep": ("age",), "gold_as_evidence": True, "preset": "mft", "rules": ("any", "majority")},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_every_kind_stand(kind, tmp_path):
    frame, options = KINDS[kind]
    me.audit(frame, out=tmp_path / "run", draws=20, **options)
    assert me.verify(tmp_path / "run").differences == ()


def test_what_commands_write_later_stands_too(run, capsys):
    sheet = pl.read_csv(run / "spot-check.csv").with_columns(answer=pl.lit("yes"))
    sheet.write_csv(run / "spot-check.csv")
    assert main(["spot-check", str(run), "--answers", str(run / "spot-check.csv"), "--tolerance", "0.2"]) == 0
    assert main(["validate", str(run), "--checks", "identifiability", "--quiet"]) == 0
    assert main(["report", str(run), "--card", "--items", "7"]) == 0
    capsys.readouterr()
    assert me.verify(run).differences == ()


def test_exit_codes_and_json(untouched, run, capsys):
    assert main(["verify", str(untouched), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stands"] is True
    assert main(["verify", str(untouched)]) == 0
    assert capsys.readouterr().out.startswith("This run stands: ")
    (run / "votes.parquet").unlink()
    assert main(["verify", str(run), "--quiet"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("This run does not stand: figures cannot be computed again") and "votes" in told


def test_a_run_with_rules_of_ones_own_says_that_it_cannot_be_computed(tmp_path):
    def twice(counts):
        return counts[:, 1] >= 2

    me.audit(votes_frame().drop("gold", "age"), out=tmp_path / "run", draws=0, rules=["any", twice], report=False)
    [difference] = me.verify(tmp_path / "run").differences
    assert "cannot be computed again" in difference and "twice" in difference


def test_tables_that_agree_but_for_rounding_agree():
    table = pl.DataFrame({"item": ["a", "b"], "p": [0.5, 1e6], "n": [1, 2]})
    assert table_difference(table, table.with_columns(p=pl.Series([0.5 + 3e-10, 1e6 + 1e-5]))) == ""
    assert table_difference(table, table.with_columns(n=pl.Series([1, 3]))).endswith("item 'b': 2 written, 3 computed")
    assert table_difference(table[:1], table) == "1 rows written, 2 computed"
    assert table_difference(table.drop("n"), table) == "column n is missing"
    assert table_difference(table, table.with_columns(p=None).cast({"p": pl.Float64}))
    assert list(fact_differences({"a": [1, 2.0]}, {"a": [1, 2.0 + 1e-12]})) == []
    assert list(fact_differences({"a": True}, {"a": 1})) == ["a: True written, 1 computed"]
