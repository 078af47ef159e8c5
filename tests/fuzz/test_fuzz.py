"""Mutated files, random flags, damaged run folders: every command ends in a result or in one paragraph that says why.

Never a traceback, an error that calls itself ours, a half-written folder, a NaN in a table; parts of the entropy sum,
and the same seed gives the same bytes. A case is made again by its kind and number. 60 cases here, 2,000 in
`make slow`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import random
import re
import shutil
import warnings
from pathlib import Path

import polars as pl
import pytest
from fuzz.files import CELLS, all_files, mutate, write_files

from moral_entropy import read_votes
from moral_entropy.cli.commands import SENTENCES, load_command
from moral_entropy.cli.main import main
from moral_entropy.errors import MoralEntropyError, MoralEntropyWarning

LONGEST_ERROR = 4_000
NEVER_PRINTED = re.compile(
    r"Traceback \(most recent|[Tt]his should not happen|or the mistake is ours|\b\w*Warning:|\bpanicked\b"
    r"|\b(?:about|to) nan\b|\bnan%|[\x00-\x08\x1b]"
)
SLOW_COMMANDS = {"reproduce", "serve"}
UNUSED_FLAGS = {
    "--debug",
    "--cluster",
    "--help-all",
    "--help",
    "--figures",
    "--solver",
    "--votes",
    "--compare",
}
READ_OPTIONS = {
    "format": ("auto", "long", "wide", "respondents", "label-studio", "prodigy", "inspect"), "anonymous": (True,),
    "on_repeat": ("first", "last", "count"), "multilabel": (";", ","),
    "missing": ((), ("none",)), "keep_case": (True,), "encoding": ("utf-8", "cp1252", "utf-16"), "classes": (2, 3, 5),
    "exclude": (("ann a",),),
}  # fmt: skip
STRANGE = ("-1", "0", "1", "2", "nan", "inf", "1e308", "1e-308", "0.5", "99999999999999999999", "x", "", "0x1")
COLUMNS = ("item", "annotator", "label", "text", "domain", "gold", "question", "nowhere")
COLUMN_FLAGS = {
    "--item",
    "--annotator",
    "--label",
    "--text",
    "--domain",
    "--gold",
    "--published",
    "--count",
    "--fit-by",
}
FLAG_VALUES = {
    "--on-repeat": ("error", "first", "last", "count"), "--encoding": ("utf-8", "cp1252", "utf-16", "klingon"),
    "--positive": ("0", "1", "anger"), "--multilabel": (",", ";", "|", ""), "--questions": ("no,yes", "label"),
    "--exclude": ("a", "a,b", "nobody"), "--merge": ("a+b", "a+b,c+d", "a+nobody"), "--keep": ("text", "nowhere"),
    "--prior-prevalence": ("1,1", "8,2", "1e300", "0", "1,2,3"), "--prior-confusion": ("3,1.5", "1e300,1", "1"),
    "--draws": ("0", "2", "20"), "--interval": ("0.5", "0.999999", "1"), "--annotator-group": ("domain", "annotator"),
    "--rules": ("any", "majority,any", "quorum-2", "published", "nonsense"), "--cost-fp": ("1", "1e308", "0"),
    "--gold-file": ("gold.csv", "nowhere.csv"), "--labels": ("map.toml", "soft", "majority", "nowhere.toml"),
    "--spot-check": ("answers.csv", "nowhere.csv"), "--answers": ("answers.csv", "gold.csv", "nowhere.csv"),
    "--settings": ("set.toml", "run", "votes.csv"), "--checks": ("heldout", "identifiability", "gold", "nonsense"),
    "--to": ("csv", "jsonl", "hf", "lewidi", "label-studio", "argilla", "prodigy", "xml"), "--question": ("care", "x"),
    "--max": ("majority.fnr=0.5", "error=0.2", "alpha=nan", "any.fdr"), "--min": ("alpha=0.1", "x"),
    "--verdict": ("ship", "no"), "--like": ("mftc", "mfrc", "emfd"), "--scale": ("0.001", "0", "nan"),
    "--items": ("5", "30", "-1"), "--model": ("mixed", "paper", "tfidf", "nonsense"), "--epochs": ("1", "0"),
    "--members": ("2",), "--chains": ("1",), "--tune": ("5",), "--folds": ("2",), "--annotators": ("a", "known.csv"),
    "--out": ("out", "out.csv", "out.json", "votes.csv", "no/where/out.csv", "run"),
}  # fmt: skip
ARGUMENTS = {
    "source": ("votes.csv", "votes.csv", "many.csv", "wide.csv", "nowhere.csv", "run"), "model": ("model", "run"),
    "run": ("run", "run", "many", "votes.csv", "nowhere"), "run_a": ("run", "many"), "run_b": ("run", "other", "many"),
    "item": ("t000", "nowhere", ""), "texts": ("votes.csv", "gold.csv", "nowhere"),
}  # fmt: skip
NEEDED = {"audit": ("--out",), "export": ("--to", "--out"), "simulate": ("--out",), "train": ("--out", "--model"),
          "predict": ("--out",), "validate": ("--checks",)}  # fmt: skip
ON_FOLDERS = (
    "report RUN -o page.html", "report RUN --card", "next RUN -n 5", "next RUN -n 5 --to argilla -o queue.json",
    "explain RUN t003", "check RUN --max majority.fnr=0.5", "export RUN --to csv -o o.csv", "judges RUN",
    "export RUN --to lewidi -o out", "export RUN --to label-studio -o out.json", "compare RUN other", "verify RUN",
    "spot-check RUN --answers answers.csv", "spot-check RUN -n 3 -o sheet.csv", "validate RUN --checks identifiability",
    "train RUN --model tfidf -o new", "audit votes.csv --settings RUN -o new --no-report",
)  # fmt: skip


def run_main(words):
    """Run a command in this process; return its exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def words_problem(code, out, err):
    """Say what is wrong with how a command ended; empty if nothing is."""
    if match := NEVER_PRINTED.search(out + err):
        return f"printed {match[0]!r}: …{(out + err)[max(0, match.start() - 100) : match.end() + 900]}"
    if code not in (0, 1, 2, 3, 4):
        return f"exit code {code}"
    if code and "error:" not in err and not out:
        return f"exit code {code} without a word"
    return "an endless error" if any(len(line) > LONGEST_ERROR for line in err.splitlines()) else ""


def folder_problem(folder):
    """Say what is wrong with what a command left: a half-written run, NaN, parts of the entropy that do not sum."""
    for path in folder.iterdir():
        if ".partial" in path.name or ".replaced" in path.name:
            return f"left {path.name}"
        if path.is_dir() and (path / "votes.parquet").exists():
            manifest = (path / "manifest.json").read_text(encoding="utf-8")
            frames = {file.name: pl.read_parquet(file) for file in path.glob("*.parquet")}
            for name, frame in frames.items():
                if any(column.dtype.is_float() and column.is_nan().any() for column in frame):
                    return f"{path.name}: NaN in {name}"
            items = frames["items.parquet"]
            parts = pl.col("ambiguity") + pl.col("doubt_votes") + pl.col("doubt_annotators")
            gap = items.select((pl.col("entropy") - parts).abs().max()).item()
            if gap is not None and gap > 1e-9:
                return f"{path.name}: the parts of an entropy miss its sum by {gap:.2g}"
            if not items["p"].is_between(0.0, 1.0).all() or re.search(r"\bNaN\b|\bInfinity\b|\bnan%", manifest):
                return f"{path.name}: p out of range, or NaN in the manifest"
    return ""


def digest(folder):
    """Hash every table of a run folder."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.parquet")}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with votes, gold, three runs and, where scikit-learn is installed, a model."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "votes.csv").write_text(votes_csv(("care", "fairness"), ("0", "1"), 24))
    (folder / "many.csv").write_text(votes_csv(("tone",), ("anger", "joy", "none"), 60))
    (folder / "wide.csv").write_text("item,a,b,c\n" + "".join(f"t{n},{n % 2},{n % 3 % 2},1\n" for n in range(9)))
    (folder / "gold.csv").write_text("item,gold,question\n" + "".join(f"t{n:03},{n % 2},care\n" for n in range(9)))
    (folder / "known.csv").write_text("annotator,group\na,x\nb,x\nc,y\nd,y\n")
    (folder / "map.toml").write_text('anger = "none"\n"0" = "1"\n')
    (folder / "set.toml").write_text("report = false\n[fit]\ndraws = 5\n")
    with contextlib.chdir(folder):
        assert run_main(["audit", "votes.csv", "-o", "run", "--draws", "30"])[0] == 0
        assert (
            run_main(["audit", "votes.csv", "-o", "other", "--draws", "30", "--model", "paper", "--no-report"])[0] == 0
        )
        assert run_main(["audit", "many.csv", "-o", "many", "--draws", "0", "--no-report"])[0] == 0
        run_main(["train", "run", "--model", "tfidf", "-o", "model", "--quiet"])
        shutil.copy("run/spot-check.csv", "answers.csv")
    return folder


def votes_csv(questions, labels, n_items):
    """Four annotators, right four times in five."""
    rng, lines = random.Random(3), ["item,annotator,question,label,text,domain,gold"]
    for question in questions:
        for item in range(n_items):
            truth = rng.choice(labels)
            for who in "abcd":
                label = truth if rng.random() < 0.8 else rng.choice(labels)
                lines.append(f"t{item:03},{who},{question},{label},text {truth} {item},{'uv'[item % 2]},{truth}")
    return "\n".join(lines) + "\n"


def input_case(rng, folder, files):
    """Mutate a file of votes; read it, or now and then audit it. Return what was done and what was wrong."""
    name = rng.choice(sorted(files))
    contents, options = files[name]
    inner, options = rng.choice(sorted(contents)), dict(options)
    changed, done = mutate(contents[inner], rng)
    if rng.random() < 0.3:
        option = rng.choice(sorted(READ_OPTIONS))
        options[option] = rng.choice(READ_OPTIONS[option])
    path = write_files(folder, name, contents | {inner: changed})
    what = f"{name}{inner}: {', '.join(done)}; {options}"
    return what, audit_problem(path, options, rng) if rng.random() < 0.15 else read_problem(path, options)


def read_problem(path, options):
    """Read votes; only our own errors may stop it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", MoralEntropyWarning)
            return "" if read_votes(path, **options).n_votes else "read without a vote"
    except MoralEntropyError as error:
        return "an endless error" if len(str(error)) > LONGEST_ERROR else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def audit_problem(path, options, rng):
    """Audit votes, now and then twice: the same seed gives the same bytes."""
    words = ["audit", path.name, "-o", "run", "--draws", rng.choice(("0", "2", "20")), "--no-report"]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [flag, ",".join(value) if isinstance(value, tuple) else str(value)]
    with contextlib.chdir(path.parent):
        code, out, err = run_main(words)
        problem = words_problem(code, out, err) or folder_problem(Path())
        if code == 0 and not problem and rng.random() < 0.3:
            Path("run").rename("first")
            run_main(words)
            problem = "the same seed gave other bytes" if digest(Path("first")) != digest(Path("run")) else ""
    return problem


def flags_case(rng, folder):
    """Run a command with random flags. Return what was typed and what was wrong."""
    others = [command for command in SENTENCES if command not in SLOW_COMMANDS]
    command = "audit" if rng.random() < 0.4 else rng.choice(others)
    words, flags = [command], {}
    for parameter in load_command(command).params:
        if not parameter.opts[0].startswith("-"):
            words.append(rng.choice(ARGUMENTS.get(parameter.opts[0], ("run", "votes.csv"))))
        elif parameter.opts[0] not in UNUSED_FLAGS:
            flags[parameter.opts[0]] = parameter
    needed = [flag for flag in NEEDED.get(command, ()) if flag in flags]
    free = [flag for flag in flags if flag not in needed]
    for flag in needed + rng.sample(free, min(len(free), rng.choice((0, 1, 2, 3, 6)))):
        words += [flag] if flags[flag].is_flag else [flag, flag_value(flag, str(flags[flag].metavar), rng)]
    few = {"validate": ("--draws", "--tune", "--chains", "--members"), "audit": ("--draws",), "train": ("--epochs",)}
    for flag in few.get(command, ()):
        # Samplers and training take minutes when nothing is said.
        words += [flag, "2"] if flag in flags and flag not in words else []
    before = {path.name for path in folder.iterdir()}
    with contextlib.chdir(folder):
        code, out, err = run_main(words)
    left = {path.name for path in folder.iterdir()} - before
    problem = words_problem(code, out, err) or folder_problem(folder)
    # Code 1 of check, compare and verify is an answer, not a failure.
    return repr(words), problem or (f"exit code {code}, and yet {left} is there" if code == 2 and left else "")


def flag_value(flag, metavar, rng):
    """Draw a value for a flag: mostly one that it knows, at times nonsense."""
    if rng.random() < 0.05:
        return rng.choice([cell for cell in CELLS if cell.isprintable()])
    if flag in COLUMN_FLAGS:
        return rng.choice(COLUMNS)
    choices = metavar.split("|") if "|" in metavar and metavar == metavar.lower() else STRANGE
    return rng.choice(FLAG_VALUES.get(flag, choices))


def folder_case(rng, folder):
    """Damage one file of a run or a model and run a command on it. Return what was done and what was wrong."""
    damaged = rng.choice(("run", "run", "many", *(["model"] if (folder / "model").exists() else [])))
    files = sorted(path for path in (folder / damaged).rglob("*") if path.suffix in (".parquet", ".json"))
    chosen = rng.choice([*files, *([folder / damaged / "manifest.json"] * 5 if damaged != "model" else [])])
    if rng.random() < 0.1:
        chosen.unlink()
        done = ["removed"]
    else:
        content, done = mutate(chosen.read_bytes(), rng)
        chosen.write_bytes(content)
    typed = "predict model votes.csv -o out.parquet" if damaged == "model" else rng.choice(ON_FOLDERS)
    words = typed.replace("RUN", damaged).split()
    with contextlib.chdir(folder):
        return f"{words} {chosen.name}: {done}", words_problem(*run_main(words))


@pytest.mark.parametrize("name", all_files())
def test_what_mutations_begin_with_is_read(name, tmp_path):
    contents, options = all_files()[name]
    assert read_votes(write_files(tmp_path, name, contents), **options).n_votes > 20


SAMPLE = {"input": 40, "flags": 10, "folder": 10}
MANY = {"input": 1_300, "flags": 400, "folder": 300}


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [(kind, 0, count) for kind, count in SAMPLE.items()]
    + [pytest.param(kind, n, 100, marks=pytest.mark.slow) for kind in MANY for n in range(0, MANY[kind], 100)],
)
def test_every_case_ends_in_a_result_or_in_words(kind, first, count, prepared, tmp_path):
    files, problems = all_files(), []
    for number in range(first, first + count):
        rng, folder = random.Random(f"{kind} {number}"), tmp_path / "case"
        if kind == "input":
            folder.mkdir()
            what, problem = input_case(rng, folder, files)
        else:
            shutil.copytree(prepared, folder)
            what, problem = (flags_case if kind == "flags" else folder_case)(rng, folder)
        shutil.rmtree(folder)
        if problem:
            problems.append(f"{kind} {number}, {what}: {problem}")
    assert not problems, f"{len(problems)} of {count} cases\n" + "\n".join(problems)
