"""A run in memory and the same run on disk: the same tables, the same manifest."""

from __future__ import annotations

import os
from dataclasses import replace

import polars as pl
import pytest
from runs.test_reload import votes_frame

from moral_entropy.errors import RunFolderError, UsageError
from moral_entropy.explanation import explain_item
from moral_entropy.markup import markdown_text
from moral_entropy.options import AuditOptions, FitOptions
from moral_entropy.pipeline import audit
from moral_entropy.planning import next_votes
from moral_entropy.report.page import page_data
from moral_entropy.runs.folder import plain_facts
from moral_entropy.runs.run import OPTIONAL, as_run, read_run
from moral_entropy.schemas import SCHEMAS
from moral_entropy.verdict.summary import Summary

OPTIONS = AuditOptions(fit=FitOptions(draws=40), report=False)


@pytest.fixture(scope="module")
def here():
    return audit(votes_frame(), options=OPTIONS)


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    return audit(votes_frame(), tmp_path_factory.mktemp("runs") / "run", OPTIONS)


def test_tables_are_the_same_in_memory_and_on_disk(here, there):
    # Sheets of labels to check are drawn when a folder is written.
    for name in {*SCHEMAS} - {"spot_checks"}:
        assert here.has(name) == there.has(name), name
        assert here.table(name).equals(there.table(name)), name
    # Digests are those of files, which a run in memory has not.
    assert set(there.manifest["files"]) >= {f"{name}.parquet" for name in SCHEMAS if here.has(name)}
    assert {**plain_facts(here.manifest), "seconds": 0, "files": 0} == {**there.manifest, "seconds": 0, "files": 0}


def test_saving_writes_what_an_audit_writes(here, there, tmp_path):
    saved = here.save(tmp_path / "run")
    assert saved.path == tmp_path / "run" and not saved.tables
    for path in sorted([*there.path.glob("*.parquet"), *there.path.glob("spot-check*.csv")]):
        assert (saved.path / path.name).read_bytes() == path.read_bytes(), path.name
    assert read_run(saved.path).manifest["questions"] == read_run(there.path).manifest["questions"]
    with pytest.raises(RunFolderError, match="--force"):
        here.save(tmp_path / "run")


def test_tables_by_name_have_the_columns_of_the_contract(here):
    named = {"items": here.items, "annotator_summary": here.annotators, "audit": here.rules, "entropy": here.entropy}
    for name, frame in named.items():
        assert frame.columns == list(SCHEMAS[name])
        assert frame.height > 0
    assert here.table("items", where=pl.col("p") > 0.5).height == (here.items["p"] > 0.5).sum()
    assert here.scan("items").select("p").collect().equals(here.items.select("p"))


def test_names_of_0_2_answer_with_a_warning(here, there):
    for run in (here, there):
        with pytest.warns(DeprecationWarning, match="contributions"):
            table = run.table("pushes", where=pl.col("annotator").is_null())
        expected = run.table("contributions").filter(pl.col("annotator").is_null())
        assert table.columns == [{"contribution": "push"}.get(name, name) for name in expected.columns]
        assert table.rows() == expected.rows()


def test_what_a_run_has_not_is_empty_or_an_error(here, there, tmp_path):
    for run in (here, there):
        assert not run.has("groups") and run.table("groups").is_empty()
    run = here.save(tmp_path / "run")
    (run.path / "audit.parquet").unlink()
    with pytest.raises(RunFolderError, match="has no table 'audit'"):
        run.rules  # noqa: B018
    assert "audit" not in OPTIONAL


def test_a_run_in_memory_answers_like_one_on_disk(here, there):
    item = str(here.items["item"][0])
    assert explain_item(here, item) == explain_item(there.path, item)
    assert next_votes(here, 3).equals(next_votes(there, 3))


def test_a_run_in_memory_has_no_folder(here, there):
    with pytest.raises(UsageError, match=r"run\.save"):
        here.folder  # noqa: B018
    assert there.folder == there.path
    assert as_run(here) is here and as_run(str(there.path)).path == there.path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_told_that_it_would_wait_for_ever(here):
    child = os.fork()
    if child == 0:
        try:
            here.items.head()
        except UsageError as error:
            os._exit(3 if "spawn" in str(error) else 4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_a_run_says_what_it_is_and_then_the_last_screen(here, there):
    for run, where in ((here, "in memory"), (there, str(there.path))):
        first, *screen = repr(run).splitlines()
        assert len(first) < 250 and where in first
        assert screen == "\n".join(Summary(run).lines()).splitlines()
        assert len(screen) <= 25 and all(question.name in repr(run) for question in run.questions)


def test_a_run_whose_tables_are_gone_still_has_a_name(there):
    assert repr(replace(there, path=there.path / "gone")).count("\n") == 0


def test_the_verdict_is_that_of_the_report(here, there):
    data = page_data(there)[0]["verdict"]
    assert (here.verdict.status, here.verdict.answer, here.verdict.text) == (
        data["status"],
        data["answer"],
        data["text"],
    )


def test_the_first_screen_as_markdown(there):
    summary = Summary(there)
    assert all(markdown_text(text) in there.markdown() for text in (*summary.sentences, *summary.warnings))
