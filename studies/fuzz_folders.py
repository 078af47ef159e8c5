"""Damaged run folders and models, opened by every command that reads one: each ends in a result or in one paragraph."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path

import polars as pl
from fuzz_cases import Outcome
from fuzz_checks import run_main, wrong_words
from fuzz_flags import prepared
from fuzz_mutations import VALUES, change_bytes, change_json, cut

COMMANDS = (
    "report RUN -o page.html", "report RUN --card", "next RUN -n 5", "next RUN -n 5 --to argilla -o queue.json",
    "explain RUN t003", "check RUN --max majority.fnr=0.5", "check RUN --verdict ship", "export RUN --to csv -o o.csv",
    "export RUN --to hf -o out", "export RUN --to lewidi -o out", "export RUN --to label-studio -o out.json",
    "compare RUN other --replicates 3", "spot-check RUN --answers answers.csv", "spot-check RUN -n 3 -o sheet.csv",
    "validate RUN --checks identifiability", "train RUN --model tfidf --epochs 1 -o new",
    "audit votes.csv --settings RUN -o new --no-report",
)  # fmt: skip
BY_DIGEST = "was changed after it was written and cannot be used"
ON_MODELS = ("predict model votes.csv -o predicted.parquet",)


def warm_up() -> None:
    """Make votes, runs and a model, before cases are timed."""
    prepared()


def folder_case(number: int, seed: int, folder: Path) -> Outcome:
    """Damage a run or a model, and run a command on it."""
    draw = random.Random(f"folder {seed} {number}")
    shutil.copytree(prepared(), folder, dirs_exist_ok=True)
    model = draw.random() < 0.15
    damaged = "model" if model else draw.choice(("run", "run", "many"))
    what = damage(folder / damaged, draw)
    words = draw.choice(ON_MODELS if model else COMMANDS).replace("RUN", damaged).split()
    with contextlib.chdir(folder):
        code, out, err = run_main(words)
    wrong = wrong_words(code, out, err)
    # An error that nobody foresaw, of which the digests tell whose it is: counted on its own.
    end = "done" if code == 0 else "file named by its digest" if BY_DIGEST in err else f"refused ({code})"
    return Outcome(f"{' '.join(words)} · {what}", end, wrong)


def damage(folder: Path, draw: random.Random) -> str:
    """Change one file of a folder, and say how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in (".parquet", ".json"))
    chosen = draw.choice(files)
    if draw.random() < 0.35:
        chosen = next(path for path in files if path.suffix == ".json")
    content, how = chosen.read_bytes(), draw.random()
    if how < 0.1:
        chosen.unlink()
        return f"{chosen.name} removed"
    if how < 0.25:
        chosen.write_bytes(draw.choice((change_bytes, cut))(content, draw))
        return f"{chosen.name}: bytes"
    if chosen.suffix == ".json":
        facts = json.loads(content)
        if draw.random() < 0.5:
            return f"{chosen.name}: {_change_key(facts, chosen, draw)}"
        chosen.write_bytes(change_json(json.dumps(facts).encode(), draw))
        return f"{chosen.name}: a value"
    return f"{chosen.name}: {_change_table(chosen, draw)}"


def _change_key(facts: dict[str, object], file: Path, draw: random.Random) -> str:
    key = draw.choice(sorted(facts))
    if draw.random() < 0.5:
        facts.pop(key)
    else:
        facts[key] = draw.choice(VALUES)
    file.write_text(json.dumps(facts))
    return key


def _change_table(file: Path, draw: random.Random) -> str:
    frame = pl.read_parquet(file)
    name, how = draw.choice(frame.columns), draw.choice(("drop", "retype", "null", "nan", "rows", "none", "swap"))
    column = frame[name]
    if how == "drop":
        frame = frame.drop(name)
    elif how == "retype":
        kind = pl.String if column.dtype.is_numeric() else draw.choice((pl.Int64, pl.Float64, pl.Binary))
        frame = frame.with_columns(column.cast(kind, strict=False))
    elif how == "null":
        frame = frame.with_columns(pl.lit(None, dtype=column.dtype).alias(name))
    elif how == "nan" and column.dtype.is_float():
        frame = frame.with_columns(pl.lit(float("nan")).alias(name))
    elif how == "rows":
        frame = frame.sample(fraction=0.5, seed=1)
    elif how == "none":
        frame = frame.clear()
    else:
        frame = frame.with_columns(column.reverse())
    frame.write_parquet(file)
    return f"{how} {name}"
