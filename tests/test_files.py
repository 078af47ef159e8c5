"""Files appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import pytest

from moral_entropy.errors import FileError, UsageError
from moral_entropy.files import check_free, whole_file, write_text


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_block_that_fails_leaves_what_was_there(tmp_path, error):
    target = tmp_path / "items.csv"
    target.write_text("old")
    with pytest.raises(FileError if error is OSError else error), whole_file(target) as partial:
        partial.write_text("half of the n")
        raise error
    assert target.read_text() == "old" and names_in(tmp_path) == ["items.csv"]


def test_the_file_appears_at_the_end(tmp_path):
    target = tmp_path / "items.csv"
    with whole_file(target) as partial:
        partial.write_text("new")
        assert not target.exists() and partial.parent == tmp_path and partial.name.startswith(".")
    assert target.read_text() == "new" and names_in(tmp_path) == ["items.csv"]


def test_two_writers_do_not_meet(tmp_path):
    target = tmp_path / "items.csv"
    with whole_file(target) as one, whole_file(target) as other:
        one.write_text("one")
        other.write_text("other")
    assert target.read_text() == "one" and names_in(tmp_path) == ["items.csv"]


def test_places_that_cannot_be_written_to_are_named(tmp_path):
    with pytest.raises(FileError, match=r"no folder .*nowhere\. Make it first"):
        write_text(tmp_path / "nowhere" / "x", "")
    with pytest.raises(FileError, match=r"it is a folder\. Name a file"):
        write_text(tmp_path, "")


def test_a_block_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(FileError, match=r"cannot write .*x: No such file"), whole_file(tmp_path / "x"):
        pass
    assert names_in(tmp_path) == []


def test_line_ends_stay_and_permissions_follow_the_umask(tmp_path):
    write_text(tmp_path / "a", "é\r\n\n")
    assert (tmp_path / "a").read_bytes() == "é\r\n\n".encode()
    (tmp_path / "b").write_text("")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_what_exists_is_replaced_only_when_told_to(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    check_free(tmp_path / "empty", force=False)
    check_free(tmp_path / "new", force=False)
    check_free(tmp_path / "file", force=True)
    for taken in (tmp_path / "file", tmp_path):
        with pytest.raises(UsageError, match=r"exists\. Choose another name"):
            check_free(taken, force=False)
