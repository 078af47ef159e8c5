"""Every way to get it wrong ends in one paragraph, the right exit code, and no run folder."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moral_entropy.errors import FitError
from moral_entropy.options import FitOptions

HEAD = "item,annotator,label\n"
GOOD = HEAD + "1,a,yes\n1,b,yes\n2,a,no\n2,b,no\n3,a,yes\n3,b,no\n"

BAD_FILES = {
    "empty": b"",
    "only a header": HEAD.encode(),
    "no header": b"1,2,3\n4,5,6\n7,8,9\n",
    "wrong columns": b"x,y,z\n1,2,3\n4,5,6\n",
    "one column": b"label\nyes\nno\n",
    "no votes left": (HEAD + "1,a,\n2,b,NaN\n").encode(),
    "one class": (HEAD + "1,a,yes\n2,a,yes\n1,b,yes\n").encode(),
    "not UTF-8": HEAD.encode() + b"1,a,caf\xe9\n2,b,n\xc3\xa9\n",
    "repeats": (GOOD + "1,a,no\n").encode(),
}

MISUSE = {
    "unknown flag": ["--drawz", "5"],
    "negative draws": ["--draws", "-1"],
    "draws that are no number": ["--draws", "many"],
    "unknown solver": ["--solver", "newton"],
    "unknown preset": ["--preset", "mtf"],
    "preset and prior": ["--preset", "mft", "--prior-prevalence", "80,20"],
    "zero prior": ["--prior-prevalence", "0,1"],
    "negative prior": ["--prior-confusion", "1.8,-1"],
    "prior that is no number": ["--prior-prevalence", "80,x"],
    "too many confusion priors": ["--prior-confusion", "1,2,3"],
    "prior of the wrong length": ["--prior-prevalence", "1,2,3"],
    "interval": ["--interval", "90"],
    "no threads": ["--threads", "0"],
    "of without questions": ["--of", "3"],
    "empty name": ["--questions", "care,,harm"],
    "two layouts": ["--multilabel", ",", "--questions", "care,harm"],
}


IN_FLAGS = [
    (["--draws", "-1"], "--draws is -1; use 0"),
    (["--interval", "90"], "--set interval is 90; it is"),
    (["--threads", "0"], "--set threads is 0; it is at least 1."),
    (["--solver", "adam"], "--solver adam is the paper's solver. Add --model paper, or use --solver em."),
    (["--counts", "yes,no"], "Add --anonymous."),
    (["--of", "3"], "--set of says"),
    (["--multilabel", ",", "--questions", "care,harm"], "--multilabel and --questions are two ways"),
]


def assert_one_paragraph(out, err):
    assert out == ""
    assert err.startswith("error: ") and err.endswith("\n")
    assert "\n\n" not in err.strip() and "Traceback" not in err
    assert len(err) > 30


def left_in(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith((".run", "run"))]


@pytest.mark.parametrize(("flags", "said"), IN_FLAGS)
def test_options_go_by_their_flags(run, folder, flags, said):
    (folder / "votes.csv").write_text(GOOD)
    code, _, err = run("audit", "votes.csv", "-o", "run", *flags)
    assert code == 2
    assert said in err
    assert "='" not in err and "=True" not in err and "_" not in err


def test_in_python_and_in_settings_files_options_go_by_their_names(run, folder):
    with pytest.raises(FitError, match=r"^threads is 0;"):
        FitOptions(threads=0)
    with pytest.raises(FitError, match=r"^solver='adam' is the paper's solver\. Add model='paper', or use solver='em'"):
        FitOptions(solver="adam")
    (folder / "votes.csv").write_text(GOOD)
    (folder / "s.toml").write_text("[fit]\nthreads = 0\n")
    assert "threads is 0;" in run("audit", "votes.csv", "-o", "run", "--settings", "s.toml")[2]
    said = run("audit", "votes.csv", "-o", "run", "--settings", "s.toml", "--threads", "-1")[2]
    assert "--set threads is -1;" in said


@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_data_is_exit_1(run, folder, what):
    (folder / "bad.csv").write_bytes(BAD_FILES[what])
    code, out, err = run("audit", "bad.csv", "-o", "run")
    assert code == 1
    assert_one_paragraph(out, err)
    assert left_in(folder) == []


def test_a_missing_file_is_exit_1(run, folder):
    code, out, err = run("audit", "nowhere.csv", "-o", "run")
    assert code == 1 and "nowhere.csv" in err
    assert_one_paragraph(out, err)
    assert left_in(folder) == []


def test_a_truncated_parquet_file_is_exit_1(run, folder):
    run("simulate", "--items", 200, "-o", "whole.parquet")
    whole = (folder / "whole.parquet").read_bytes()
    (folder / "half.parquet").write_bytes(whole[: len(whole) // 2])
    code, out, err = run("audit", "half.parquet", "-o", "run")
    assert code == 1 and "half.parquet" in err
    assert_one_paragraph(out, err)


def test_too_few_classes_and_unknown_columns_are_exit_1(run, folder):
    (folder / "good.csv").write_text(GOOD.replace("3,b,no", "3,b,maybe"))
    for flags in (["--classes", "2"], ["--annotator", "anotator"], ["--fit-by", "nowhere"]):
        code, out, err = run("audit", "good.csv", "-o", "run", *flags)
        assert code == 1, flags
        assert_one_paragraph(out, err)
        assert left_in(folder) == []


@pytest.mark.parametrize("what", MISUSE)
def test_misuse_is_exit_2(run, folder, what):
    (folder / "good.csv").write_text(GOOD)
    code, out, err = run("audit", "good.csv", "-o", "run", *MISUSE[what])
    assert code == 2, err
    assert_one_paragraph(out, err)
    assert left_in(folder) == []


@pytest.mark.parametrize("arguments", [["audit"], ["adit"], ["--bogus"], ["simulate"]])
def test_commands_that_make_no_sense_are_exit_2(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert_one_paragraph(out, err)


def test_a_place_that_cannot_be_written_to_is_exit_1(run, folder):
    code, out, err = run("audit", "votes.csv", "-o", "votes.csv/run")
    assert code == 1 and "cannot write" in err
    assert_one_paragraph(out, err)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "run/items.parquet"), "run/items.parquet: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "out of memory"),
        (KeyError("surprise"), "This should not happen"),
    ],
)
def test_errors_of_the_system_and_our_own_are_told_in_a_sentence(run, folder, monkeypatch, error, words):
    def fail(*_arguments):
        raise error

    monkeypatch.setattr("moral_entropy.pipeline.small_tables", fail)
    code, out, err = run("audit", "votes.csv", "-o", "run", "--draws", 0)
    assert code == 1 and words in err
    assert_one_paragraph(out, err)
    assert left_in(folder) == []


def test_debug_shows_where_it_came_from(run, folder):
    with pytest.raises(ValueError, match=r"nowhere\.csv"):
        run("audit", "nowhere.csv", "-o", "run", "--debug")


def test_ctrl_c_is_exit_130(run, folder, monkeypatch):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("moral_entropy.pipeline.small_tables", interrupted)
    assert run("audit", "votes.csv", "-o", "run", "--draws", 0)[0] == 130
    assert left_in(folder) == []


def test_as_a_process_too(folder):
    for arguments, code in (
        (["audit", "nowhere.csv", "-o", "run"], 1),
        (["audit", "x.csv", "-o", "run", "--draws", "x"], 2),
    ):
        command = [sys.executable, "-m", "moral_entropy", *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        assert finished.returncode == code
        assert_one_paragraph(finished.stdout, finished.stderr)
