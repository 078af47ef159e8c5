"""What every command prints, word for word, 80 columns wide. `make golden` rewrites the files; read the diff.

Audits have a folder each; all other commands share one run, which is made once.
"""

from __future__ import annotations

import csv
import os
import random
import re
import shlex
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from moral_entropy import __version__
from moral_entropy.cli.main import main

HERE = Path(__file__).parent


def judges_csv():
    """Four judges of uneven skill on sixty answers, a yes/no question, some judges absent."""
    draw = random.Random(11)
    lines = ["task,judge,rating,source"]
    for task in range(60):
        truth = draw.random() < 0.4
        for judge, skill in (("ada", 0.95), ("ben", 0.85), ("cyd", 0.75), ("dot", 0.7)):
            rating = ("yes" if truth == (draw.random() < skill) else "no") if draw.random() < 0.9 else ""
            lines.append(f"{task},{judge},{rating},{'forum' if task < 40 else 'wiki'}")
    return "\n".join(lines) + "\n"


def colours_csv():
    """One vote per item on three labels: thin, and said to be."""
    draw = random.Random(4)
    lines = ["item,annotator,label", *(f"i{i},a{i % 5},{draw.choice('rrggb')}" for i in range(40))]
    return "\n".join(lines) + "\n"


def comments_csv():
    """Five raters say of eighty comments whether they are rude; the truth is known, and eli guesses."""
    draw = random.Random(5)
    words = {True: ("idiot", "stupid", "shut up", "clown"), False: ("thanks", "agreed", "good point", "see you")}
    lines = ["comment_id,rater,rude,truth,text"]
    for comment in range(80):
        truth = draw.random() < 0.35
        text = f"{draw.choice(words[truth])} {draw.choice(words[draw.random() < 0.3])} number {comment}"
        for rater, skill in (("ann", 0.95), ("ben", 0.9), ("cem", 0.85), ("dua", 0.8), ("eli", 0.5)):
            if draw.random() < 0.8:
                says = truth == (draw.random() < skill)
                lines.append(f"c{comment},{rater},{'yes' if says else 'no'},{'yes' if truth else 'no'},{text}")
    return "\n".join(lines) + "\n"


def moods_csv():
    """Four readers name one of four moods; the truth of every item is known."""
    draw, moods = random.Random(8), ("anger", "fear", "joy", "none")
    lines = ["poem_id,annotator,mood,truth"]
    for poem in range(60):
        truth = draw.choice(moods)
        lines += [f"{poem},r{r},{truth if draw.random() < 0.75 else draw.choice(moods)},{truth}" for r in range(4)]
    return "\n".join(lines) + "\n"


def foundations_csv():
    """Four coders answer three questions about fifty posts, in columns of 0 and 1."""
    draw = random.Random(9)
    lines = ["post_id,annotator,care,loyalty,purity"]
    for post in range(50):
        truth = [draw.random() < share for share in (0.4, 0.2, 0.1)]
        for coder in "abcd":
            says = [int(one == (draw.random() < 0.88)) for one in truth]
            lines.append(f"{post},{coder},{','.join(map(str, says))}")
    return "\n".join(lines) + "\n"


def votes_csv():
    """Five raters of uneven skill on 400 texts from two sources, some of them absent: the votes of the README."""
    draw = random.Random(3)
    lines = ["text_id,rater,vote,source"]
    for text in range(400):
        truth, source = draw.random() < 0.3, ("forum", "wiki")[text % 2]
        for rater, skill in (("ann", 0.95), ("bob", 0.9), ("cyd", 0.85), ("dee", 0.8), ("eve", 0.75)):
            if draw.random() < 0.8:
                lines.append(f"{text},{rater},{'yes' if truth == (draw.random() < skill) else 'no'},{source}")
    return "\n".join(lines) + "\n"


FILES = {
    "votes.csv": votes_csv,
    "judges.csv": judges_csv,
    "colours.csv": colours_csv,
    "comments.csv": comments_csv,
    "moods.csv": moods_csv,
    "posts.csv": foundations_csv,
}
FEW = ["--draws", "100"]
CHECK = ["check", "shared"]

CASES = {
    "help": [],
    "readme": ["audit", "votes.csv", "-o", "run/"],
    "audit": ["audit", "judges.csv", "-o", "run", "--prior-prevalence", "3", "--draws", "200"],
    "audit_paper": ["audit", "judges.csv", "-o", "run", "--prior-prevalence", "3", *FEW, "--model", "paper"],
    "audit_parts": ["audit", "judges.csv", "-o", "run", "--fit-by", "source", "--draws", "0"],
    "audit_thin": ["audit", "colours.csv", "-o", "run", "--prior-prevalence", "5", "--draws", "0"],
    "audit_gold": ["audit", "comments.csv", "-o", "run", "--label", "rude", "--gold", "truth", *FEW],
    "audit_many_labels": ["audit", "moods.csv", "-o", "run", "--label", "mood", "--gold", "truth", *FEW],
    "audit_questions": ["audit", "posts.csv", "-o", "run", "--questions", "care,loyalty,purity", *FEW],
    "check_holds": [*CHECK, "--max", "error=0.2", "--min", "annotator:ann.accuracy@gold=0.8", "--verdict", "ship-soft"],
    "check_failed": [*CHECK, "--max", "any.fdr=0.1", "--min", "majority.accuracy@gold=0.5", "--min", "alpha=0.8"],
    "check_undecided": [*CHECK, "--max", "majority.fnr@gold=0.05", "--strict"],
    "check_unknown": [*CHECK, "--min", "majority.accurate=0.8"],
    "check_broken": ["check", "nowhere", "--max", "any.fdr=0.1"],
    "explain": ["explain", "shared", "c7"],
    "next": ["next", "shared", "-n", "3"],
    "compare": ["compare", "shared", "other", "--top", "3"],
    "report": ["report", "shared", "--force"],
    "export": ["export", "shared", "--to", "csv", "-o", "items.csv"],
    "validate": ["validate", "shared", "--checks", "heldout"],
    "train": ["train", "shared", "--model", "tfidf", "--labels", "soft", "-o", "model"],
    "predict": ["predict", "model", "texts.csv", "-o", "predicted.csv"],
    "reproduce": shlex.split("reproduce --twins --scale 0.01 --set draws=10 --classifier none -o twins/"),
    "simulate": ["simulate", "-o", "made.parquet", "--items", "50", "--annotators", "4"],
    "spot_check": ["spot-check", "shared", "-n", "5"],
    "spot_check_answers": ["spot-check", "checked", "--answers", "checked/spot-check.csv"],
    "verify": ["verify", "verified"],
    "judges": ["judges", "shared", "--at-least", "0.3"],
    "next_people": ["next", "shared", "--for", "people", "-n", "3"],
    "error_column": ["audit", "judges.csv", "-o", "new", "--annotator", "juge"],
    "error_prior": ["audit", "judges.csv", "-o", "new", "--prior-confusion", "1.8,0"],
    "error_file": ["audit", "nowhere.csv", "-o", "new"],
    "error_flag": ["audit", "judges.csv", "-o", "new", "--drawz", "7"],
    "error_folder": ["audit", "judges.csv", "-o", "other"],
    "error_question": ["audit", "counts.csv", "-o", "new"],
    "error_gold": ["audit", "judges.csv", "-o", "new", "--gold", "judges.csv"],
}

ROUGH = ("train", "reproduce", "validate")
"""Texts whose figures depend on what libraries add up in which order: they are masked."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with files of votes, the shared run, and the same votes without gold, some of them checked by hand."""
    folder, before = tmp_path_factory.mktemp("golden"), Path.cwd()
    os.chdir(folder)
    for name, made in FILES.items():
        Path(name).write_text(made(), encoding="utf-8")
    Path("texts.csv").write_text("id,text\na,stupid clown\nb,thanks and see you\n", encoding="utf-8")
    counts = ["id,Care,Purity", *(f"{n},{n % 4},{n % 3}" for n in range(12))]
    Path("counts.csv").write_text("\n".join(counts) + "\n", encoding="utf-8")
    Path("blind.csv").write_text(comments_csv().replace(",truth,", ",kept,"), encoding="utf-8")
    quiet = ["--label", "rude", "--quiet", *FEW]
    assert main(["audit", "comments.csv", "-o", "shared", "--gold", "truth", *quiet]) == 0
    assert main(["audit", "blind.csv", "-o", "other", "--no-report", "--exclude", "eli", *quiet]) == 0
    assert main(["audit", "blind.csv", "-o", "checked", "--no-report", *quiet]) == 0
    # What other tests add to a run is not to be seen in it.
    shutil.copytree("checked", "verified")
    _fill("checked/spot-check.csv")
    yield folder
    os.chdir(before)


def _fill(sheet):
    truth = {row["comment_id"]: row["truth"] for row in csv.DictReader(comments_csv().splitlines())}
    rows = list(csv.DictReader(Path(sheet).read_text(encoding="utf-8-sig").splitlines()))
    with Path(sheet).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "answer": truth[row["item"]]} for row in rows)


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_as_it_was(name, place, monkeypatch, capsys):
    if name in ("train", "predict"):
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    if name == "help" and version("rich").startswith("13."):
        pytest.skip("rich 13 lays out columns otherwise")
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    arguments = [
        *CASES[name],
        *(["--force"] if CASES[name][3:4] in (["run"], ["run/"]) and "error" not in name else []),
    ]
    if name == "predict" and not Path("model").exists():
        assert main([*CASES["train"], "--quiet"]) == 0
    capsys.readouterr()
    code = main(arguments)
    printed = capsys.readouterr()
    shown = " ".join(["moral-entropy", *CASES[name]])
    text = f"$ {shown}\n{printed.out}{printed.err}[exit {code}]\n"
    text = re.sub(r"\d+(\.\d)? s\)", "… s)", text.replace(f"{place}/", ""))
    if name in ROUGH:
        text = re.sub(r"[-+−]?\d*\.\d+", "#.#", text)
    text = text.replace(f"moral-entropy {__version__}\n", "moral-entropy …\n")
    golden = HERE / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), "the text changed; `make golden` if it should have"


@pytest.mark.parametrize("name", CASES)
def test_the_text_fits_80_columns_but_for_names_of_files_and_errors(name):
    lines = (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    free = ("$ ", "error: ", "warning: ", "holds: ", "FAILED: ", "UNDECIDED: ", "  columns guessed: ")
    wide = [line for line in lines if len(line) > 80 and not line.startswith(free)]
    assert (
        name == "study"
        or [line for line in wide if not re.search(r"\w+/\w+|next: moral-entropy|comparison.md", line)] == []
    )
