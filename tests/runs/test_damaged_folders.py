"""Run folders are examined before they are used: what is not as an audit writes it ends in one sentence."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

from moral_entropy.cli.main import main
from moral_entropy.errors import RunFolderError
from moral_entropy.runs.folder import changed_files
from moral_entropy.runs.run import read_run


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"questions": []}, "has nothing as 'questions'"),
        ({"questions": [{}]}, "has no 'question'"),
        ({"interval": 90}, "its interval is no share"),
        ({"interval": None}, "is damaged"),
        ({"options": None}, "has nothing as 'options'"),
    ],
)
def test_a_damaged_manifest_is_said_in_a_sentence(copy, change, said):
    facts = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(facts | change))
    with pytest.raises(RunFolderError, match=said) as error:
        read_run(copy)
    assert "Run the audit again" in str(error.value)
    del facts["votes"]
    (copy / "manifest.json").write_text(json.dumps(facts))
    with pytest.raises(RunFolderError, match="it has no 'votes'"):
        read_run(copy)


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
    assert "manifest.json is damaged: " in error and error.count("\n") == 1 and "should not happen" not in error


def test_what_nobody_foresaw_names_the_folder(copy, capsys, monkeypatch):
    def fail(*_given, **_options):
        raise KeyError("surprise")

    monkeypatch.setattr("moral_entropy.planning.next_votes", fail)
    assert main(["next", str(copy)]) == 1
    assert "is not as an audit writes it, or the mistake is ours" in capsys.readouterr().err
    # A file that somebody changed is named: its digest is not the one in the manifest.
    (copy / "contributions.parquet").write_bytes(b"PAR1")
    assert main(["next", str(copy)]) == 1
    why = f"{copy}/contributions.parquet was changed after it was written. Run the audit again."
    assert capsys.readouterr().err == f"error: KeyError: 'surprise'. {why}\n"
    (copy / "audit.parquet").unlink()
    facts = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(facts | {"seed": facts["seed"] + 1}))
    assert changed_files(copy) == ["contributions.parquet", "audit.parquet", "manifest.json"]
