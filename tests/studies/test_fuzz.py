"""The fuzz study, small: some cases of every kind, and a supervisor that sees hangs and deaths."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest
from support import ROOT, load_script

sys.path.insert(0, str(ROOT / "studies"))

import fuzz_cases
import fuzz_checks
import fuzz_files
import fuzz_flags
import fuzz_folders
import fuzz_inputs
import fuzz_kills

from moral_entropy.votes.formats.exports import FORMATS, detect_format
from moral_entropy.votes.read import read_votes

SEED = 7


def wrong(outcomes):
    return [outcome for outcome in outcomes if outcome.wrong]


@pytest.mark.parametrize("name", fuzz_files.all_files())
def test_what_mutations_begin_with_is_read(name, tmp_path):
    made = fuzz_files.all_files()[name]
    assert read_votes(made.write(tmp_path), **made.options).n_votes > 20


def test_mutations_begin_with_every_format(tmp_path):
    made = fuzz_files.all_files().values()
    assert {detect_format(one.write(tmp_path)) for one in made} == {None, *FORMATS}


def test_mutated_files_end_in_votes_or_words(tmp_path):
    outcomes = []
    for number in range(120):
        (folder := tmp_path / str(number)).mkdir()
        outcomes.append(fuzz_inputs.input_case(number, SEED, folder))
    assert wrong(outcomes) == [] and {outcome.end for outcome in outcomes} >= {"read", "refused"}


@pytest.mark.parametrize(
    ("case", "n"), [(fuzz_flags.flags_case, 12), (fuzz_folders.folder_case, 25)], ids=["flags", "folders"]
)
@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_random_flags_and_damaged_folders_end_in_words(case, n, tmp_path):
    outcomes = []
    for number in range(n):
        (folder := tmp_path / str(number)).mkdir()
        outcomes.append(case(number, SEED, folder))
    assert wrong(outcomes) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_kill_leaves_the_old_or_the_new(tmp_path):
    number = [command.words.split()[0] for command in fuzz_kills.COMMANDS].index("next")
    assert fuzz_kills.kill_case(number, SEED, tmp_path).wrong == ""


def test_a_half_is_seen():
    command = fuzz_kills.COMMANDS[0]
    old, new = {"a": "1", "b": "1"}, {"a": "2", "b": "2"}
    mixed = {"a": "1", "b": "2"}
    assert fuzz_kills._not_whole(command, old, old, new) == fuzz_kills._not_whole(command, new, old, new) == ""
    assert "neither" in fuzz_kills._not_whole(command, mixed, old, new)
    adding = next(one for one in fuzz_kills.COMMANDS if one.adds)
    assert fuzz_kills._not_whole(adding, mixed, old, new) == ""
    assert "['b']" in fuzz_kills._not_whole(adding, {"a": "1", "b": "3"}, old, new)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ((1, "", "error: no such file.\n"), ""),
        ((0, "done\n", "RuntimeWarning: divide by zero\n"), "RuntimeWarning"),
        ((1, "", "Traceback (most recent call last):"), "Traceback"),
        ((1, "", ""), "without a word"),
        ((0, "label \x1b[31m", ""), "printed"),
        ((1, "", f"error: {'x' * 9_000}"), "9,007 characters"),
        ((134, "", "error: x"), "exit code 134"),
        ((0, "the share goes to nan%", ""), "nan"),
    ],
)
def test_wrong_words_are_seen(printed, said):
    assert said in fuzz_checks.wrong_words(*printed) and bool(said) == bool(fuzz_checks.wrong_words(*printed))


def quick_case(number: int, seed: int, folder: Path) -> fuzz_cases.Outcome:
    """Hang, die or raise, by number."""
    if number == 1:
        time.sleep(60)
    if number == 2:
        os._exit(9)
    if number == 3:
        raise ValueError
    return fuzz_cases.Outcome(f"seed {seed}", "done")


def test_hangs_deaths_and_errors_are_seen_and_the_rest_goes_on(tmp_path):
    plan = fuzz_cases.Plan(5, 1.0, 1, 3, tmp_path / "kept.jsonl")
    found = fuzz_cases.run_cases(quick_case, plan, fuzz_cases.Limits(1.0), say=lambda _: None)
    assert [outcome.end for outcome in found] == ["done", "hung", "died", "broke", "done"]
    assert found[1].seconds > 0.9
    # What is known is not run again.
    again = fuzz_cases.run_cases(quick_case, plan, fuzz_cases.Limits(0.0), say=lambda _: None)
    assert again == found


def test_the_page_has_a_place_for_the_figures():
    study = load_script("studies/fuzz.py")
    page = study.written(study.PAGE.read_text(encoding="utf-8"), {"kills": [fuzz_cases.Outcome("a", "old")]}, 0)
    assert "| kills at random moments | 1 | old 1 | 0 | 0 | 0 | 0 |" in page


def test_every_point_of_the_reviews_has_a_row_and_its_tests_exist():
    page = (ROOT / "docs" / "evidence" / "reliability.md").read_text(encoding="utf-8")
    attacks, hour = page.split("## Attack by attack")[1].split("## The first hour")
    wanted = [f"{level}{n}" for level, most in (("H", 3), ("M", 8), ("L", 11)) for n in range(1, most + 1)]
    assert [point for point in wanted if f"\n| {point} | " not in attacks] == []
    points = re.findall(r"^\| (\d+)(?:–(\d+))? \|", hour, re.MULTILINE)
    assert [n for first, last in points for n in range(int(first), int(last or first) + 1)] == list(range(1, 27))
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 60
    lacking = [name for file, name in named if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")]
    assert lacking == []
