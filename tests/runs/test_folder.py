"""A run folder appears whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap

import pytest

from moral_entropy.errors import RunFolderError
from moral_entropy.runs.folder import MANIFEST_KEYS, changed_files, digest_of, write_manifest, writing


def manifest(seed=0):
    """What makes a manifest ours, and a seed to know it by."""
    return json.dumps({"version": "0.1", "command": "", "seed": seed, "versions": {}, "seconds": {}})


def write_run(path, seed=0, **options):
    with writing(path, **options) as folder:
        (folder / "manifest.json").write_text(manifest(seed))
        (folder / "items.parquet").write_bytes(b"rows")


def seed_of(run):
    return json.loads((run / "manifest.json").read_text())["seed"]


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_a_run_appears_with_all_its_files_and_nothing_beside_it(tmp_path):
    write_run(tmp_path / "run")
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["items.parquet", "manifest.json"]


def test_nothing_is_at_the_target_while_the_run_goes_on(tmp_path):
    with writing(tmp_path / "run") as folder:
        assert folder.parent == tmp_path and folder.name.startswith(".run.partial-")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_when_the_run_stops(tmp_path, error):
    with pytest.raises(error), writing(tmp_path / "run") as folder:
        (folder / "items.parquet").write_bytes(b"half")
        raise error
    assert names(tmp_path) == []


def test_an_earlier_run_survives_a_failed_replacement(tmp_path):
    write_run(tmp_path / "run", seed=1)
    with pytest.raises(RuntimeError), writing(tmp_path / "run", force=True) as folder:
        (folder / "manifest.json").write_text(manifest(2))
        raise RuntimeError
    assert seed_of(tmp_path / "run") == 1
    assert names(tmp_path) == ["run"]


def test_an_existing_run_is_refused_before_any_work(tmp_path):
    write_run(tmp_path / "run")
    refused = pytest.raises(RunFolderError, match=r"holds 2 files\. First: items\.parquet.*--force")
    with refused, writing(tmp_path / "run"):
        pytest.fail("the block must not run")


def test_force_replaces_an_earlier_run_whole(tmp_path):
    write_run(tmp_path / "run", seed=1)
    # Also what a killed command left, and what file managers leave.
    left = [".report.html.partial-12-abc123", ".findings.parquet.12.part", ".soft_labels-abc123.parquet", ".DS_Store"]
    for name in ("posterior.parquet", "report.html", *left):
        (tmp_path / "run" / name).write_bytes(b"old")
    write_run(tmp_path / "run", seed=2, force=True)
    assert names(tmp_path / "run") == ["items.parquet", "manifest.json"]
    assert seed_of(tmp_path / "run") == 2
    assert names(tmp_path) == ["run"]


def test_force_replaces_a_run_of_version_0_2(tmp_path):
    tables = """agreement annotator_summary annotators audit audit_advice audit_any_by_votes audit_one_label camps
    audit_reliability audit_rules entropy findings group_items group_readings groups items outliers posterior pushes
    refined soft_labels spot_checks target_items texts votes"""
    write_run(tmp_path / "run", seed=1)
    for table in tables.split():
        (tmp_path / "run" / f"{table}.parquet").write_bytes(b"rows")
    write_run(tmp_path / "run", seed=2, force=True)
    assert names(tmp_path / "run") == ["items.parquet", "manifest.json"]


def test_force_never_replaces_a_folder_that_is_no_run(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious")
    with pytest.raises(RunFolderError, match=r"no run folder.*chapter\.tex"):
        write_run(tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "precious"


FOREIGN = {
    "another program's manifest": ({"manifest.json": '{"manifest_version": 3, "name": "x", "version": "1"}'}, "no run"),
    "a damaged manifest": ({"manifest.json": '{"version": "0.1", "comm'}, "damaged"),
    "a manifest that is a list": ({"manifest.json": "[1]"}, "no run folder"),
    "a text beside a run": (
        {"manifest.json": manifest(), "thesis.tex": "precious"},
        r"holds thesis\.tex, which",
    ),
    "several": ({"manifest.json": manifest(), "a.tex": "mine", "b.tex": "mine"}, r"holds a\.tex and 1 more"),
    "a table of another name": ({"manifest.json": manifest(), "mine.parquet": "precious"}, r"mine\.parquet"),
    "a hidden file": ({"manifest.json": manifest(), ".items.parquet": "precious"}, r"\.items\.parquet"),
    "a folder named like a table": ({"manifest.json": manifest(), "items.parquet/mine": "precious"}, "which no run"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_force_deletes_nothing_that_no_run_wrote(tmp_path, what):
    files, words = FOREIGN[what]
    for name, text in files.items():
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_text(text)
    with pytest.raises(RunFolderError, match=words):
        write_run(tmp_path / "mine", force=True)
    assert {name: (tmp_path / "mine" / name).read_text() for name in files} == files
    assert names(tmp_path) == ["mine"]


@pytest.mark.parametrize("given", ["votes.parquet", "*.parquet", ["votes.parquet"], "linked.parquet", "."])
def test_force_does_not_delete_what_the_run_reads(tmp_path, monkeypatch, given):
    write_run(tmp_path / "run")
    (tmp_path / "run" / "votes.parquet").write_bytes(b"votes")
    (tmp_path / "linked.parquet").symlink_to(tmp_path / "run" / "votes.parquet")
    monkeypatch.chdir(tmp_path if given == "linked.parquet" else tmp_path / "run")
    refused = pytest.raises(RunFolderError, match="is read by this run")
    with refused, writing(tmp_path / "run", force=True, inputs=[None, object(), given]):
        pytest.fail("the block must not run")
    assert (tmp_path / "run" / "votes.parquet").read_bytes() == b"votes"


def test_what_lies_beside_the_run_may_be_read(tmp_path):
    write_run(tmp_path / "run")
    (tmp_path / "votes.parquet").write_bytes(b"votes")
    write_run(tmp_path / "run", seed=2, force=True, inputs=[tmp_path / "votes.parquet", tmp_path / "*.csv"])
    assert seed_of(tmp_path / "run") == 2


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "run").mkdir()
    write_run(tmp_path / "run")
    assert names(tmp_path / "run") == ["items.parquet", "manifest.json"]


def test_files_that_arrive_during_the_run_are_not_overwritten(tmp_path):
    with pytest.raises(RunFolderError, match="exists"), writing(tmp_path / "run") as folder:
        (folder / "manifest.json").write_text("{}")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "notes.txt").write_text("mine")
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["notes.txt"]


def test_a_file_at_the_target_is_refused(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(RunFolderError, match="is a file"):
        write_run(tmp_path / "run", force=True)


def test_a_place_that_cannot_be_written_to_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot write to"):
        write_run(tmp_path / "file" / "run")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_an_error_of_ours(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(RunFolderError, match="cannot write to"):
            write_run(tmp_path / "run")
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_parents_that_were_made_go_with_a_run_that_fails(tmp_path, error):
    (tmp_path / "here").mkdir()
    with pytest.raises(error), writing(tmp_path / "here" / "no" / "where" / "run"):
        raise error
    assert names(tmp_path) == ["here"] and names(tmp_path / "here") == []


def test_missing_parents_are_made(tmp_path):
    write_run(tmp_path / "2026" / "may" / "run")
    assert names(tmp_path / "2026" / "may") == ["run"]


def test_a_link_to_a_folder_is_followed(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk" / "run")
    write_run(tmp_path / "run")
    assert (tmp_path / "run").is_symlink()
    assert names(tmp_path / "disk") == ["run"]


HOLD = textwrap.dedent(
    """
    import os, sys, time
    from moral_entropy.runs.folder import writing, _put_in_place
    import moral_entropy.runs.folder as folder_module

    target, when = sys.argv[1:]
    if when == "between renames":
        from pathlib import Path
        rename = Path.rename

        def slow(self, target):
            moved = rename(self, target)
            print("ready", flush=True)
            time.sleep(60)
            return moved

        Path.rename = slow
    with writing(target, force=True) as folder:
        (folder / "manifest.json").write_text("{}")
        if when == "writing":
            print("ready", flush=True)
            time.sleep(60)
    """
)


def killed_while(target, when):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(target), when], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_what_a_killed_run_left_is_swept_by_the_next(tmp_path):
    killed_while(tmp_path / "run", "writing")
    assert not (tmp_path / "run").exists()
    assert len(names(tmp_path)) == 1 and names(tmp_path)[0].startswith(".run.partial-")
    write_run(tmp_path / "run")
    assert names(tmp_path) == ["run"]


def test_a_run_killed_in_the_middle_of_a_replacement_is_put_back(tmp_path):
    write_run(tmp_path / "run", seed=1)
    killed_while(tmp_path / "run", "between renames")
    assert not (tmp_path / "run").exists()
    with pytest.raises(RunFolderError, match="exists"):
        write_run(tmp_path / "run")
    assert seed_of(tmp_path / "run") == 1
    assert names(tmp_path) == ["run"]


def test_folders_of_living_processes_and_of_other_runs_are_left_alone(tmp_path):
    with writing(tmp_path / "run") as mine, writing(tmp_path / "run2"):
        (mine / "manifest.json").write_text(manifest())
        write_run(tmp_path / "run3")
        assert mine.exists()
    (tmp_path / ".run.partial-elsewhere-1-abcdef").mkdir()
    write_run(tmp_path / "run", force=True)
    assert ".run.partial-elsewhere-1-abcdef" in names(tmp_path)


def test_a_run_of_version_0_1_can_be_replaced(tmp_path):
    with writing(tmp_path / "run") as folder:
        write_manifest(folder, dict.fromkeys(MANIFEST_KEYS, "0.1.0"))
        (folder / "validation.parquet").write_bytes(b"")
    with writing(tmp_path / "run", force=True) as folder:
        write_manifest(folder, dict.fromkeys(MANIFEST_KEYS, "0.2.0"))
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["manifest.json"]


def test_an_empty_folder_keeps_its_mode_and_a_mount_point_is_refused_at_once(tmp_path):
    private = tmp_path / "run"
    private.mkdir(mode=0o700)
    with writing(private) as folder:
        (folder / "manifest.json").write_text("{}")
    assert private.stat().st_mode & 0o777 == 0o700 and (private / "manifest.json").is_file()
    with pytest.raises(RunFolderError, match="is a mount point"), writing("/"):
        pytest.fail("must be refused before anything is written")


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path):
    target = tmp_path / "run"
    target.mkdir(mode=0o700)
    before = target.stat()
    with writing(target) as folder:
        (folder / "manifest.json").write_text("{}")
        (folder / "items.parquet").write_text("rows")
    after = target.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert sorted(path.name for path in target.iterdir()) == ["items.parquet", "manifest.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_names_outside_of_a_run_folder_are_never_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    write_manifest(folder, {"files": {"../secret": digest_of(secret)}})
    assert changed_files(folder) == ["../secret"]
