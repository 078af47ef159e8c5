"""Random flags of every command, sensible and not, in one process: each ends in a result or in one paragraph.

Left out: `--cluster`, `reproduce` and models other than tfidf, which take minutes; `corpus --fetch`, which needs a
network; and `--debug`, whose purpose is a traceback.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from fuzz_cases import Outcome
from fuzz_checks import differing, run_main, wrong_folder, wrong_words
from fuzz_mutations import CELLS

from moral_entropy.checks.run import CHECKS
from moral_entropy.cli.commands import load_command

COMMANDS = {
    "audit": 0.45, "validate": 0.05, "next": 0.07, "export": 0.07, "report": 0.06, "explain": 0.05, "check": 0.06,
    "compare": 0.04, "spot-check": 0.05, "simulate": 0.05, "train": 0.03, "predict": 0.02,
}  # fmt: skip
NEVER = {"--debug", "--cluster", "--help-all", "--part-rows", "--help", "--figures", "--device", "--solver", "--votes"}
COLUMNS = ("item", "annotator", "label", "text", "domain", "gold", "question", "nowhere")
STRANGE_NUMBERS = ("-1", "0", "1", "nan", "inf", "1e308", "1e-308", "0.5", "99999999999999999999", "x", "", "0x1")
POOLS: dict[str, tuple[str, ...]] = {
    "--format": ("auto", "long", "wide", "respondents", "lewidi", "prodigy", "png", "svg"),
    "--on-repeat": ("error", "first", "last", "count"), "--encoding": ("utf-8", "cp1252", "utf-16", "klingon"),
    "--positive": ("0", "1", "yes", "anger"), "--multilabel": (",", ";", "|", ""), "--questions": ("no,yes", "label"),
    "--counts": ("no,yes", "no"), "--of": ("4", "yes", "0"), "--classes": ("2", "3", "0,1", "0,1,2", "1"),
    "--exclude": ("a", "a,b", "nobody"), "--merge": ("a+b", "a+b,c+d", "a+nobody", "a"), "--missing": ("1", "", "NA"),
    "--keep": ("text", "domain", "item", "nowhere"), "--fit-by": ("domain", "text", "annotator", "nowhere"),
    "--prior-prevalence": ("1,1", "8,2", "1e300", "1e-300", "2", "0", "1,2,3"),
    "--prior-confusion": ("3,1.5", "1,1", "1e300,1", "0.1,0.1", "1"), "--coordinates": ("simplex", "jacobian"),
    "--draws": ("0", "2", "3", "20", "60"), "--interval": ("0.5", "0.9", "0.999999", "0", "1"),
    "--constrain": ("better-than-chance", "none"), "--temper": ("heldout", "gold", "0.5", "0", "1", "none"),
    "--threads": ("1", "2", "0"), "--max-passes": ("1", "5", "4000"), "--fit-tolerance": ("1e-8", "0.1", "0"),
    "--rules": ("any", "majority,any", "quorum-2", "published", "nonsense"), "--bootstrap": ("0", "5", "20"),
    "--cost-fp": ("1", "2", "1e308", "0"), "--cost-fn": ("1", "3", "1e308", "0"), "--smoothing": ("0", "0.5", "1e300"),
    "--gold-file": ("gold.csv", "nowhere.csv"), "--labels": ("map.toml", "soft", "majority", "share", "nowhere.toml"),
    "--prior-annotators": ("known.csv", "nowhere.csv"), "--spot-check": ("answers.csv", "nowhere.csv"),
    "--answers": ("answers.csv", "gold.csv", "nowhere.csv"), "--settings": ("set.toml", "run", "votes.csv"),
    "--checks": (*CHECKS, "identifiability,heldout", "nonsense"), "--to": ("csv", "jsonl", "hf", "lewidi",
    "label-studio", "argilla", "prodigy", "xml"), "--question": ("care", "fairness", "tone", "nowhere"),
    "--annotators": ("a", "a,b", "nobody"), "--max": ("majority.fnr=0.5", "error=0.2", "x=1", "alpha=nan", "any.fdr"),
    "--min": ("alpha=0.1", "effective_votes=1", "x"), "--verdict": ("ship", "no"), "--like": ("mftc", "mfrc", "emfd"),
    "--scale": ("0.001", "0.002", "0", "nan"), "--items": ("5", "30", "0", "-1"), "--votes-per-item": ("1", "9"),
    "--model": ("mixed", "paper", "tfidf", "nonsense"), "--models": ("tfidf",), "--epochs": ("1", "2", "0"),
    "--rows": ("1", "20", "9999", "0"), "--number": ("1", "20", "9999"), "--members": ("2", "3"), "--chains": ("1",),
    "--tune": ("5", "10"), "--folds": ("2", "3"), "--replicates": ("0", "5", "20"), "--top": ("0", "3"),
    "--validation": ("0", "0.2", "1"), "--out": ("out", "out.csv", "out.json", "votes.csv", "no/where/out.csv", "run"),
}  # fmt: skip
COLUMN_FLAGS = {"--item", "--annotator", "--label", "--text", "--domain", "--gold", "--published", "--count"}
ARGUMENTS = {
    "source": ("votes.csv", "votes.csv", "many.csv", "wide.csv", "counts.csv", "nowhere.csv", "run"),
    "run": ("run", "run", "many", "votes.csv", "nowhere"), "run_a": ("run", "many"), "run_b": ("run", "other", "many"),
    "item": ("t000", "t001", "nowhere", ""), "model": ("model", "run"), "texts": ("votes.csv", "gold.csv", "nowhere"),
}  # fmt: skip
NEEDED = {"audit": ("--out",), "export": ("--to", "--out"), "simulate": ("--out",), "train": ("--out", "--model"),
          "predict": ("--out",), "validate": ("--checks",)}  # fmt: skip


def warm_up() -> None:
    """Make votes, runs and a model, before cases are timed."""
    prepared()


def flags_case(number: int, seed: int, folder: Path) -> Outcome:
    """Run a command with random flags in a folder with votes, runs and a model."""
    draw = random.Random(f"flags {seed} {number}")
    shutil.copytree(prepared(), folder, dirs_exist_ok=True)
    [command] = draw.choices(list(COMMANDS), list(COMMANDS.values()))
    words = [command, *_words(command, draw)]
    before = {path.name for path in folder.iterdir()}
    with contextlib.chdir(folder):
        code, out, err = run_main(words)
        wrong = wrong_words(code, out, err) or wrong_folder(folder)
        if not wrong and code and (new := {path.name for path in folder.iterdir()} - before):
            wrong = f"exit code {code}, and yet {new} is there"
        if not wrong and code == 0 and command == "audit" and draw.random() < 0.2 and "out" not in before:
            wrong = _again(words)
    return Outcome(" ".join(map(repr, words)), "done" if code == 0 else f"refused ({code})", wrong)


def _again(words: list[str]) -> str:
    target = Path(words[words.index("--out") + 1])
    if target.name in ("run", "votes.csv"):
        return ""
    target.rename("first")
    run_main(words)
    return differing(Path("first"), target)


def _words(command: str, draw: random.Random) -> list[str]:
    """Draw the arguments of a command, and up to six of its flags."""
    words, flags = list[str](), dict[str, Any]()
    for one in load_command(command).params:
        if not one.opts[0].startswith("-"):
            words.append(draw.choice(ARGUMENTS.get(one.opts[0], CELLS)))
        elif one.opts[0] not in NEVER:
            flags[one.opts[0]] = one
    needed = [flag for flag in NEEDED.get(command, ()) if flag in flags]
    others = [flag for flag in flags if flag not in needed]
    for flag in needed + draw.sample(others, min(len(others), draw.choice((0, 1, 2, 3, 6)))):
        words += [flag] if flags[flag].is_flag else [flag, _value(flag, str(flags[flag].metavar), draw, flag in needed)]
    few = {"validate": {"--draws": "20", "--tune": "10", "--chains": "1", "--members": "2"}, "audit": {"--draws": "20"}}
    # Samplers take minutes when nothing is said.
    words += [word for flag, value in few.get(command, {}).items() if flag not in words for word in (flag, value)]
    return words


def _value(flag: str, metavar: str, draw: random.Random, needed: bool) -> str:
    if draw.random() < (0.02 if needed else 0.08):
        return draw.choice([cell for cell in CELLS if "\0" not in cell and cell.isprintable()])
    if flag in COLUMN_FLAGS:
        return draw.choice(COLUMNS)
    if flag in POOLS:
        return draw.choice(POOLS[flag])
    if "|" in metavar and metavar == metavar.lower():
        return draw.choice(metavar.split("|"))
    return draw.choice(STRANGE_NUMBERS)


@cache
def prepared() -> Path:
    """Return a folder with votes, gold, two runs and a model, made once per process."""
    folder = Path(mkdtemp(prefix="fuzz-flags-"))
    rows = _votes(("care", "fairness"), ("0", "1"), 3)
    (folder / "votes.csv").write_text(rows)
    (folder / "many.csv").write_text(_votes(("tone",), ("anger", "joy", "none"), 4))
    (folder / "wide.csv").write_text("item,a,b,c\n" + "".join(f"t{n},{n % 2},{n % 3 % 2},1\n" for n in range(9)))
    (folder / "counts.csv").write_text("item,no,yes\n" + "".join(f"t{n},{n % 4},{4 - n % 4}\n" for n in range(9)))
    (folder / "gold.csv").write_text("item,gold,question\n" + "".join(f"t{n:03},{n % 2},care\n" for n in range(9)))
    (folder / "known.csv").write_text("annotator,true,voted,pseudo_votes\na,0,0,9\na,1,1,9\n")
    (folder / "map.toml").write_text('anger = "none"\n"0" = "1"\n')
    (folder / "set.toml").write_text("report = false\n[fit]\ndraws = 5\n")
    with contextlib.chdir(folder):
        for words in (
            ["audit", "votes.csv", "--out", "run", "--draws", "30"],
            ["audit", "votes.csv", "--out", "other", "--draws", "30", "--model", "paper", "--no-report"],
            ["audit", "many.csv", "--out", "many", "--draws", "0", "--no-report"],
            ["train", "run", "--model", "tfidf", "--out", "model", "--epochs", "2"],
        ):
            code, out, err = run_main(words)
            assert code == 0, out + err
        sheet = Path("run/spot-check.csv").read_text(encoding="utf-8")
        Path("answers.csv").write_text(sheet, encoding="utf-8")
    return folder


def _votes(questions: tuple[str, ...], labels: tuple[str, ...], seed: int) -> str:
    draw, lines = random.Random(seed), ["item,annotator,question,label,text,domain,gold"]
    for question in questions:
        for item in range(60 if len(labels) > 2 else 24):
            truth = draw.choice(labels)
            for who in "abcd":
                label = truth if draw.random() < 0.8 else draw.choice(labels)
                lines.append(f"t{item:03},{who},{question},{label},text {truth} {item},{'uv'[item % 2]},{truth}")
    return "\n".join(lines) + "\n"
