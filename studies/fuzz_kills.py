"""Kills at random moments over every command that writes: what is there then is the old, or the new, never a half.

Real processes on small data. Each command is first run to its end, which says how long it takes and what it leaves; the
same seed leaves the same bytes. Then a process of it is ended after a random share of that time, without goodbye
(SIGKILL) or politely (SIGINT, SIGTERM), and run once more, which must leave the same again.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from fuzz_cases import Outcome
from fuzz_checks import digest
from fuzz_flags import prepared

LEFT_OVER = (".partial-", ".replaced-", ".training", ".part")
"""What a process that was killed may leave, hidden, until the same command is run again."""

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass(frozen=True)
class Written:
    """A command that writes, and where."""

    words: str
    target: str

    @property
    def adds(self) -> bool:
        """Whether the command adds to a run that is there: then each file is the old one or the new one."""
        return self.target == "run" and not self.words.startswith("audit")


COMMANDS = (
    Written("audit votes.csv -o new --draws 20", "new"),
    Written("audit votes.csv -o run --draws 25 --force --no-report", "run"),
    Written("audit many.csv -o new --draws 0", "new"),
    Written("validate run --checks identifiability,ensemble --quiet", "run"),
    Written("report run -o page.html", "page.html"),
    Written("report run --card", "run"),
    Written("export run --to csv -o out.csv", "out.csv"),
    Written("export run --to jsonl -o out.jsonl", "out.jsonl"),
    Written("export run --to hf -o out", "out"),
    Written("export run --to lewidi -o out", "out"),
    Written("export run --to label-studio -o out.json", "out.json"),
    Written("export run --to argilla -o out.jsonl", "out.jsonl"),
    Written("export run --to prodigy -o out.jsonl", "out.jsonl"),
    Written("next run -n 9 -o queue.csv", "queue.csv"),
    Written("next run -n 9 --to label-studio -o queue.json", "queue.json"),
    Written("spot-check many --rows 9 -o sheet.csv", "sheet.csv"),
    Written("spot-check run --answers filled.csv", "run"),
    Written("compare run other --replicates 5 -o both", "both"),
    Written("simulate --items 3000 -o made.parquet", "made.parquet"),
    Written("simulate --items 3000 --force -o votes.csv", "votes.csv"),
    Written("train run --model tfidf --epochs 3 -o new --quiet", "new"),
    Written("predict model votes.csv -o predicted.parquet", "predicted.parquet"),
    Written("study run --targets soft,majority --models tfidf --seeds 1 --epochs 1 -o studied --quiet", "studied"),
)


TRIES = 4
"""How often a command is started so that the end meets it running."""


def warm_up() -> None:
    """Make votes, runs and a model, before cases are timed."""
    prepared()


def kill_case(number: int, seed: int, folder: Path) -> Outcome:
    """End one command at one random moment, and look at what is there."""
    draw = random.Random(f"kill {seed} {number}")
    command = COMMANDS[number % len(COMMANDS)]
    stop = draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
    seconds, before, after = finished(command)
    moment = draw.uniform(0.0, 1.05) * seconds
    for _ in range(TRIES):
        _furnish(folder)
        code, err = _killed(command, folder, stop, moment)
        if code != 0:
            break
        # It had ended, as the machine has become faster since it was timed: meet it earlier.
        moment *= draw.uniform(0.3, 0.8)
    found, left = digest_of(folder, command), _left(folder)
    wrong = _not_whole(command, found, before, after) or _wrong(stop, code, err, left)
    if not wrong and stop is signal.SIGKILL and draw.random() < 0.5:
        wrong = _run_again(command, folder, after, done=found == after)
    end = "done before" if code == 0 else "old" if found == before else "new" if found == after else "some files new"
    return Outcome(f"{command.words} · {stop.name} after {moment:.2f} of {seconds:.2f} s", end, wrong)


def _not_whole(command: Written, found: dict[str, str], before: dict[str, str], after: dict[str, str]) -> str:
    """Say which files are neither the old nor the new ones; empty if all are as they should be."""
    names = before.keys() | after.keys() | found.keys()
    strange = sorted(name for name in names if found.get(name) not in (before.get(name), after.get(name)))
    if strange or (not command.adds and found not in (before, after)):
        return f"neither the old nor the new is there, but {strange or sorted(found)}"
    return ""


def _wrong(stop: signal.Signals, code: int, err: str, left: list[str]) -> str:
    if stop is signal.SIGKILL:
        return "" if code in (0, -signal.SIGKILL) else f"exit code {code}: {err[-300:]}"
    # When Python itself is about to end it handles signals no more; a shell shows that as the same code.
    if code not in (0, CODES[stop], -stop):
        return f"exit code {code} after {stop.name}: {err[-500:]}"
    said = [line for line in err.splitlines() if not line.startswith("warning: ")]
    if said:
        return f"said {said[-1]!r} after {stop.name}"
    return f"left {left[0]} after {stop.name}" if left else ""


def _run_again(command: Written, folder: Path, after: dict[str, str], *, done: bool) -> str:
    """Run a command that was killed once more: it must do its work, unless it had done it already."""
    ran = subprocess.run(_typed(command), cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode and not done:
        return f"the next run ends with {ran.returncode}: {ran.stderr[-300:]}"
    if digest_of(folder, command) != after:
        return "the next run leaves something else"
    swept = [name for name in _left(folder) if ".training" not in name]
    # Files left beside a file are the killed process's own; a folder's are swept.
    return f"the next run leaves {swept[0]}" if swept and Path(folder / swept[0]).is_dir() else ""


def _killed(command: Written, folder: Path, stop: signal.Signals, moment: float) -> tuple[int, str]:
    process = subprocess.Popen(
        _typed(command), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    while process.poll() is None and not _hears(process.pid):
        time.sleep(0.005)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(stop)
    _, err = process.communicate()
    return process.returncode, err


def _hears(pid: int) -> bool:
    """Whether a process handles SIGTERM by now: so from the first line of `main` on."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return True
    caught = [int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")]
    return not caught or bool(caught[0] >> (signal.SIGTERM - 1) & 1)


def _typed(command: Written) -> list[str]:
    return [sys.executable, "-m", "moral_entropy", *command.words.split()]


def _furnish(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared(), folder, dirs_exist_ok=True)
    lines = (folder / "answers.csv").read_text(encoding="utf-8").splitlines()
    header = lines[0].split(",")
    at = header.index("answer")
    rows = [line.split(",") for line in lines[1:]]
    for row in rows[:9]:
        row[at] = "1"
    (folder / "filled.csv").write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n", encoding="utf-8")


@cache
def finished(command: Written) -> tuple[float, dict[str, str], dict[str, str]]:
    """Run a command to its end; return how long it took from its first line on, what was there before, and after."""
    folder = Path(mkdtemp(prefix="fuzz-kills-"))
    _furnish(folder)
    before = digest_of(folder, command)
    process = subprocess.Popen(
        _typed(command), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not _hears(process.pid):
        time.sleep(0.005)
    begun = time.monotonic()
    _, err = process.communicate()
    if process.returncode:
        msg = f"{command.words} ends with {process.returncode}: {err[-500:]}"
        raise RuntimeError(msg)
    seconds, after = time.monotonic() - begun, digest_of(folder, command)
    shutil.rmtree(folder)
    return seconds, before, after


def digest_of(folder: Path, command: Written) -> dict[str, str]:
    """Hash what a command writes, without what a killed process leaves hidden in it."""
    target = folder / command.target
    found = digest(target) if target.exists() else {}
    return {name: one for name, one in found.items() if not any(word in name for word in LEFT_OVER)}


def _left(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder)) for path in folder.rglob(".*")
        if any(word in path.name for word in LEFT_OVER) and os.path.lexists(path)
    ]  # fmt: skip
