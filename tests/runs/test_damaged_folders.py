"""Run folders are examined before they are used: what is not as an audit writes it ends in one sentence."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

from moral_entropy.cli.main import main
from moral_entropy.errors import RunFolderError
from moral_entropy.runs.manifest import changed_files
from moral_entropy.runs.manifest_shape import MANIFEST, QUESTION, first_problem, rows_of
from moral_entropy.runs.run import read_run
from moral_entropy.runs.tables import NEVER_NULL


@pytest.fixture
def facts(plain_run):
    return json.loads((plain_run / "manifest.json").read_text())


def test_what_an_audit_writes_is_whole(facts, many_run):
    assert first_problem(facts) is None
    assert first_problem(json.loads((many_run / "manifest.json").read_text())) is None


@pytest.mark.parametrize("key", MANIFEST)
def test_every_key_must_be_there_and_of_its_type(facts, key):
    lacking = {name: value for name, value in facts.items() if name != key}
    assert first_problem(lacking) == f"has no {key!r}"
    assert f"as {key!r}" in first_problem(facts | {key: {1.5}})


@pytest.mark.parametrize("key", QUESTION)
def test_so_must_those_of_every_question(facts, key):
    first, *others = facts["questions"]
    lacking = {name: value for name, value in first.items() if name != key}
    assert first_problem(facts | {"questions": [lacking, *others]}) == f"has no 'questions[0].{key}'"
    assert "questions[0]" in first_problem(facts | {"questions": [first | {key: {1.5}}, *others]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"questions": []}, "has no questions"),
        ({"interval": 90}, "as 'interval'"),
        ({"files": "none"}, "has 'none' as 'files', not a record"),
        ({"options": {"fit": {}}}, "has no 'options.read'"),
        ({"rows": True}, "has True as 'rows'"),
        ({"labels": ["1"]}, "1 labels of 'care'"),
        ({"labels": ["1", "1"]}, "some alike"),
        ({"positive": "2"}, "has '2' as the positive label"),
        ({"labels": ["0", "x"], "positive": "x"}, "a prevalence of other labels"),
        ({"mixture": None}, "no mixture"),
    ],
)
def test_what_cannot_be_is_said(facts, change, said):
    first, *others = facts["questions"]
    own = {key: value for key, value in change.items() if key in QUESTION and key not in MANIFEST}
    changed = facts | (change if not own else {"questions": [first | own, *others]})
    assert said in first_problem(changed)


@pytest.fixture
def copy(plain_run, tmp_path):
    return shutil.copytree(plain_run, tmp_path / "run")


@pytest.mark.parametrize("table", ["items", "votes", "audit", "annotators", "texts"])
@pytest.mark.parametrize("how", ["drop", "retype", "bytes"])
def test_tables_are_examined_however_they_are_read(copy, table, how):
    file = copy / f"{table}.parquet"
    frame = pl.read_parquet(file)
    name = frame.columns[-1]
    if how == "drop":
        frame.drop(name).write_parquet(file)
    elif how == "retype":
        frame.with_columns(pl.lit(b"x").alias(name)).write_parquet(file)
    else:
        file.write_bytes(file.read_bytes()[:-9])
    run, said = read_run(copy), {"drop": "lacks the column", "retype": "has Binary in", "bytes": "cannot be read"}[how]
    for read in (run.table, run.scan):
        with pytest.raises(RunFolderError, match=said) as error:
            read(table)
        assert "Run the audit again" in str(error.value)


def test_a_table_that_is_changed_later_is_examined_again(copy):
    run, file = read_run(copy), copy / "items.parquet"
    whole = run.table("items")
    whole.head(5).write_parquet(file)
    with pytest.raises(RunFolderError, match="has 5 rows"):
        run.scan("items")
    whole.drop("p").write_parquet(file)
    with pytest.raises(RunFolderError, match="lacks the column 'p'"):
        run.table("items")
    whole.write_parquet(file)
    assert run.table("items").equals(whole)


@pytest.fixture
def copy_of_many(many_run, tmp_path):
    return shutil.copytree(many_run, tmp_path / "run")


def test_an_audit_writes_as_many_rows_as_its_manifest_says(plain_run, many_run):
    for folder in (plain_run, many_run):
        run = read_run(folder)
        written = {
            name: pl.read_parquet(folder / f"{name}.parquet").height for name in ("items", "votes", "annotators")
        }
        assert written == {name: rows_of(run.manifest, name) for name in written}
    assert rows_of(run.manifest, "posterior") == pl.read_parquet(many_run / "posterior.parquet").height > 0


@pytest.mark.parametrize("table", ["items", "votes", "annotators", "posterior"])
def test_a_table_that_lost_rows_is_named(copy_of_many, table, capsys):
    file = copy_of_many / f"{table}.parquet"
    whole = pl.read_parquet(file)
    whole.head(whole.height // 2).write_parquet(file)
    said = f"{file} has {whole.height // 2:,} rows, and the audit wrote {whole.height:,}. Run the audit again."
    for read in (read_run(copy_of_many).table, read_run(copy_of_many).scan):
        with pytest.raises(RunFolderError) as error:
            read(table)
        assert str(error.value) == said
    assert main(["report", str(copy_of_many), "-o", str(copy_of_many.parent / "page.html")]) == 1
    assert capsys.readouterr().err == f"error: {said}\n"


@pytest.mark.parametrize("table", NEVER_NULL)
def test_rows_about_nothing_are_refused(copy_of_many, table):
    file = copy_of_many / f"{table}.parquet"
    whole = pl.read_parquet(file)
    for column in NEVER_NULL[table]:
        whole.with_columns(pl.lit(None, dtype=whole.schema[column]).alias(column)).write_parquet(file)
        with pytest.raises(RunFolderError, match=f"has {whole.height:,} empty cells in the column '{column}'"):
            read_run(copy_of_many).table(table)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_votes_of_no_question_end_without_a_warning_of_numpy(copy_of_many):
    file = copy_of_many / "votes.parquet"
    pl.read_parquet(file).with_columns(question=pl.lit(None, dtype=pl.String)).write_parquet(file)
    assert main(["report", str(copy_of_many), "-o", str(copy_of_many.parent / "page.html")]) in (0, 1)


def test_items_have_one_type_in_all_tables(copy):
    texts = pl.read_parquet(copy / "texts.parquet")
    texts.with_columns(pl.col("item").rank("dense").cast(pl.Int64)).write_parquet(copy / "texts.parquet")
    with pytest.raises(RunFolderError, match=r"has Int64 in the column 'item', and items\.parquet String"):
        read_run(copy).scan("texts")


@pytest.mark.parametrize(
    "command", ["report", "next", "check --max any.fdr=1", "export --to csv -o out.csv", "validate"]
)
def test_commands_say_it_in_one_paragraph(copy, command, capsys, monkeypatch):
    facts = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(facts | {"questions": facts["questions"][0]}))
    monkeypatch.chdir(copy.parent)
    name, *flags = command.split()
    # A gate tells a broken run from a limit that does not hold.
    assert main([name, "run", *flags]) == (4 if name == "check" else 1)
    error = capsys.readouterr().err
    assert "manifest.json is damaged: it has" in error and error.count("\n") == 1 and "should not happen" not in error


def test_what_nobody_foresaw_names_the_folder(copy, capsys, monkeypatch):
    def fail(*_given, **_options):
        raise KeyError("surprise")

    monkeypatch.setattr("moral_entropy.runs.next_items.next_votes", fail)
    assert main(["next", str(copy)]) == 1
    assert "is not as an audit writes it, or the mistake is ours" in capsys.readouterr().err
    # A file that somebody changed is named: its digest is not the one in the manifest.
    (copy / "pushes.parquet").write_bytes(b"PAR1")
    assert main(["next", str(copy)]) == 1
    said = f"error: {copy}/pushes.parquet was changed after it was written and cannot be used (KeyError: 'surprise'). "
    assert capsys.readouterr().err == f"{said}Run the audit again.\n"
    (copy / "audit.parquet").unlink()
    facts = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(facts | {"seed": facts["seed"] + 1}))
    assert changed_files(copy) == ["pushes.parquet", "audit.parquet", "manifest.json"]
    assert main(["next", str(copy)]) == 1
    assert "pushes.parquet and " in (told := capsys.readouterr().err) and "(and 1 more) was changed" in told
