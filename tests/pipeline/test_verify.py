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
from moral_entropy.pipeline.verify import check_files
from moral_entropy.runs.differences import compare_tables, fact_differences
from moral_entropy.runs.manifest import digest_of, note_files, read_manifest, read_sealed, write_manifest
from moral_entropy.workers import Here


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
    place = page.index('"headlines":')
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), page[place:], count=1)
    (run / "report.html").write_text(page[:place] + changed)


def words_of_the_report(run):
    page = (run / "report.html").read_text()
    (run / "report.html").write_text(page.replace("<body>", "<body><p>All is well.</p>", 1))


def the_version(run):
    text = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(text.replace(f'"version": "{me.__version__}"', '"version": "0.0.9"', 1))


def answers(run):
    change_table(run, "spot_checks", **change_first("answer", pl.lit("yes")))


ADDED = "soft_labels.parquet"
"""A table that this run does not have."""

CHANGES = {
    an_annotator: "annotators.parquet",
    an_added_table: ADDED,
    a_vote: "votes.parquet",
    a_vote_removed: "votes.parquet",
    a_figure: "audit.parquet",
    a_label: "items.parquet",
    a_probability: "items.parquet",
    the_seed: "manifest.json",
    the_settings: "manifest.json",
    the_advice: "manifest.json",
    a_finding: "findings.parquet",
    a_table: "agreement.parquet",
    the_report: "report.html",
    words_of_the_report: "report.html",
    the_version: "manifest.json",
    answers: "spot_checks.parquet",
}

BY_COMPUTING = {
    an_annotator: "annotators.parquet",
    an_added_table: ADDED,
    a_vote: "items.parquet",
    a_vote_removed: "figures",
    a_figure: "audit.parquet",
    a_label: "items.parquet",
    a_probability: "items.parquet",
    the_seed: "items.parquet",
    the_settings: "audit_advice.parquet",
    the_advice: "manifest.json",
    a_finding: "findings.parquet",
    a_table: "agreement.parquet",
    the_report: "report.html",
    words_of_the_report: "report.html",
}
"""What is found without any digest; a version and what people answered cannot be computed."""


def wrong_files(found):
    return {check.file: check.text for check in found.checks if check.state == "differs"}


def make_good(run):
    """Write all digests and the seal anew, as a forger would."""
    facts, _ = read_sealed(run)
    facts["files"] = {name: digest_of(run / name) for name in facts["files"] if (run / name).is_file()}
    write_manifest(run, facts)


def test_an_untouched_run_stands_bit_for_bit(untouched):
    found = me.verify(untouched, votes_file=untouched.parent / "votes.csv")
    assert found.stands and wrong_files(found) == {}
    texts = {check.file: check.text for check in found.checks}
    assert {path.name for path in untouched.iterdir()} - {"spot-check.csv"} == texts.keys() - {"votes.csv"}
    computed = {name: text for name, text in texts.items() if name.endswith(".parquet") and "spot_checks" not in name}
    assert len(computed) > 12 and all(text.endswith("bit for bit") for text in computed.values())
    assert texts["votes.csv"] == "is the file that was audited"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_found_by_its_digest(change, run):
    change(run)
    wrong = {check.file: check.text for check in check_files(run) if check.state == "differs"}
    told = {
        a_table: "is missing",
        an_added_table: "was not written by a command: the manifest has no digest of it",
    }
    assert wrong == {CHANGES[change]: told.get(change, "was changed after it was written")}


@pytest.mark.parametrize("change", BY_COMPUTING, ids=lambda change: change.__name__)
def test_a_change_is_found_by_computing_again(change, run):
    change(run)
    if BY_COMPUTING[change] != "report.html":
        (run / "report.html").unlink()
    make_good(run)
    found = me.verify(run)
    assert not found.stands
    assert BY_COMPUTING[change] in wrong_files(found), wrong_files(found)
    assert "was changed after" not in " ".join(wrong_files(found).values())


def test_it_says_by_how_much(run):
    change_table(run, "items", **change_first("p", pl.lit(0.125)))
    was = pl.read_parquet(run.parent / "run" / "items.parquet")
    text = wrong_files(me.verify(run))["items.parquet"]
    assert f"1 of {was.height} values of p differs; question 'care'" in text
    assert "0.125 written, 0." in text


def test_another_votes_file_is_found(untouched, tmp_path):
    (tmp_path / "votes.csv").write_text((untouched.parent / "votes.csv").read_text() + "i99,a,yes,care,web,text\n")
    found = me.verify(untouched, votes_file=tmp_path / "votes.csv")
    assert wrong_files(found) == {"votes.csv": "is not the file that was audited: its digest is another"}


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
    found = me.verify(tmp_path / "run")
    assert found.stands, wrong_files(found)


def test_a_run_in_parts_is_computed_again_on_one_machine(tmp_path):
    votes_frame().drop("age").write_parquet(tmp_path / "votes.parquet")
    me.audit(tmp_path / "votes.parquet", out=tmp_path / "run", gold="gold", draws=20, workers=Here(), part_rows=60)
    assert read_manifest(tmp_path / "run")["cluster"]["parts"] > 1
    found = me.verify(tmp_path / "run")
    assert found.stands, wrong_files(found)


def test_what_commands_write_later_stands_too(run, capsys):
    sheet = pl.read_csv(run / "spot-check.csv").with_columns(answer=pl.lit("yes"))
    sheet.write_csv(run / "spot-check.csv")
    assert main(["spot-check", str(run), "--answers", str(run / "spot-check.csv"), "--tolerance", "0.2"]) == 0
    assert main(["validate", str(run), "--checks", "identifiability", "--quiet"]) == 0
    assert main(["report", str(run), "--card", "--items", "7"]) == 0
    capsys.readouterr()
    found = me.verify(run)
    assert found.stands, wrong_files(found)
    texts = {check.file: check.text for check in found.checks}
    assert "findings of identifiability came later" in texts["findings.parquet"]
    assert texts["dataset-card.md"] == "as written"


def test_no_later_command_makes_a_change_good(run, capsys):
    the_version(run)
    a_figure(run)
    assert main(["report", str(run)]) == 0
    capsys.readouterr()
    note_files(run, ["items.parquet"])
    assert read_manifest(run)["version"] == "0.0.9"
    assert {"manifest.json", "audit.parquet"} <= wrong_files(me.verify(run)).keys()


def test_exit_codes_and_json(untouched, run, capsys):
    assert main(["verify", str(untouched), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stands"] is True
    (run / "votes.parquet").unlink()
    assert main(["verify", str(run), "--quiet"]) == 1
    assert capsys.readouterr().out.startswith("This run does not stand: votes.parquet")


def test_a_run_with_rules_of_ones_own_says_that_it_cannot_be_computed(tmp_path):
    def twice(counts):
        return counts[:, 1] >= 2

    me.audit(votes_frame().drop("gold", "age"), out=tmp_path / "run", draws=0, rules=["any", twice], report=False)
    found = me.verify(tmp_path / "run")
    assert "cannot be computed again" in wrong_files(found)["figures"] and "twice" in wrong_files(found)["figures"]


def test_tables_that_agree_but_for_rounding_agree():
    one = pl.DataFrame({"item": ["a", "b"], "p": [0.5, 1e6], "n": [1, 2]})
    near = one.with_columns(p=pl.Series([0.5 + 3e-10, 1e6 + 1e-5]))
    assert compare_tables(one, near).differences == ()
    assert compare_tables(one, near).words == "up to 1e-05"
    assert compare_tables(one, one.with_columns(n=pl.Series([1, 3]))).words.endswith("item 'b': 2 written, 3 computed")
    assert "first row missing: item 'b'" in compare_tables(one[:1], one).words
    assert "first row too much: item 'b'" in compare_tables(one, one[:1]).words
    assert compare_tables(one, one.with_columns(p=None).cast({"p": pl.Float64})).differences
    assert list(fact_differences({"a": [1, 2.0]}, {"a": [1, 2.0 + 1e-12]})) == []
    assert list(fact_differences({"a": True}, {"a": 1})) == ["a: True written, 1 computed"]
