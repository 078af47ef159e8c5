"""Tables go to disk in chunks, always as the same bytes, and come back."""

from __future__ import annotations

import hashlib

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from moral_entropy.errors import RunFolderError
from moral_entropy.runs import folder as tables
from moral_entropy.runs.folder import read_table, write_table
from moral_entropy.schemas import SCHEMAS, with_ids


def rows(n, start=0):
    ids = range(start, start + n)
    columns = {"question": ["care"] * n, "item": [f"i{i}" for i in ids], "class": ["a"] * n}
    columns |= {"p_map": [1 / (i + 1) for i in ids], **dict.fromkeys(("p_model", "p", "p_votes", "p_text"), [None] * n)}
    return pl.DataFrame(columns, schema=SCHEMAS["posterior"])


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_folder(path):
    path.mkdir()
    (path / "manifest.json").write_text("{}")
    return path


def test_chunks_come_back_as_one_table_in_order(tmp_path):
    run = run_folder(tmp_path / "run")
    write_table(run / "posterior.parquet", SCHEMAS["posterior"], (rows(7, start) for start in range(0, 70, 7)))
    assert_frame_equal(read_table(run, "posterior"), rows(70))


def test_a_table_is_read_anew_when_its_file_has_changed_and_nobody_sees_what_another_adds(tmp_path, monkeypatch):
    run = run_folder(tmp_path / "run")
    write_table(run / "posterior.parquet", SCHEMAS["posterior"], [rows(7)])
    first = read_table(run, "posterior")
    first.insert_column(0, pl.Series("mine", [1] * 7))
    with monkeypatch.context() as held:
        held.setattr(tables.pl, "read_parquet", lambda _: pytest.fail("is read twice"))
        assert_frame_equal(read_table(run, "posterior"), rows(7))
    write_table(run / "other.parquet", SCHEMAS["posterior"], [rows(7, 3)])
    (run / "other.parquet").replace(run / "posterior.parquet")
    assert_frame_equal(read_table(run, "posterior"), rows(7, 3))


def test_the_bytes_do_not_depend_on_the_run(tmp_path):
    for name in ("a", "b"):
        write_table(tmp_path / name, SCHEMAS["posterior"], [rows(1_000), rows(1_000, 1_000)])
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_no_more_than_a_few_chunks_are_asked_for_ahead(tmp_path, monkeypatch):
    """The writer pulls chunks as it writes: with row groups of a chunk, early ones are on disk before the last."""
    monkeypatch.setattr(tables, "ROWS_PER_GROUP", 50_000)
    sizes = []

    def chunks():
        for start in range(0, 2_000_000, 50_000):
            sizes.append((tmp_path / "t").stat().st_size if (tmp_path / "t").exists() else 0)
            yield rows(50_000, start)

    write_table(tmp_path / "t", SCHEMAS["posterior"], chunks())
    assert len(sizes) == 40
    assert sizes[-1] > (tmp_path / "t").stat().st_size / 2


def test_no_rows_make_an_empty_table(tmp_path):
    write_table(tmp_path / "t", SCHEMAS["entropy"], [])
    assert pl.read_parquet(tmp_path / "t").schema == SCHEMAS["entropy"]


def test_an_error_while_making_rows_gets_out(tmp_path):
    def chunks():
        yield rows(5)
        msg = "no more rows"
        raise RuntimeError(msg)

    with pytest.raises(Exception, match="no more rows"):
        write_table(tmp_path / "t", SCHEMAS["posterior"], chunks())


def test_rows_of_another_shape_are_refused(tmp_path):
    with pytest.raises(Exception, match="p_map"):
        write_table(tmp_path / "t", SCHEMAS["posterior"], [rows(3).drop("p_map")])


def test_ids_take_the_type_they_were_read_with():
    schema = with_ids(SCHEMAS["items"], item=pl.Int64())
    assert schema["item"] == pl.Int64
    assert schema.names() == SCHEMAS["items"].names()
    assert SCHEMAS["items"]["item"] == pl.String


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"no such folder\. Make one with: moral-entropy audit"):
        read_table(tmp_path / "nowhere", "items")
    with pytest.raises(RunFolderError, match=r"has no manifest\.json"):
        read_table(tmp_path, "items")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="it is a file"):
        read_table(tmp_path / "file", "items")


def test_a_table_that_is_missing_or_broken_is_named(tmp_path):
    run = run_folder(tmp_path / "run")
    write_table(run / "entropy.parquet", SCHEMAS["entropy"], [])
    with pytest.raises(RunFolderError, match=r"no table 'audit'\. Found: entropy"):
        read_table(run, "audit")
    whole = (run / "entropy.parquet").read_bytes()
    (run / "entropy.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunFolderError, match="cannot be read"):
        read_table(run, "entropy")
