"""Measure speed and memory, this version and 0.2 side by side, and print one table in Markdown.

Usage: run.py [--before COMMIT] [--scale] [--quick] [--write]. Both versions run with the same Python and libraries, as
users type the commands, and take turns; the earlier one is checked out into a temporary folder. Seconds are those on
the wall, and in brackets those that cores worked, which say more on a machine that others use. --scale adds 100 million
votes (ten minutes, 8 GB), --quick makes everything small, --write puts the table into docs/evidence/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence" / "benchmarks.md"
BEFORE = "55cf8ebd9eb1"
"""The last commit of 0.2."""

VOTES_PER_ITEM = 5
PEERS = ("**moral-entropy**, published p", "moral-entropy, the paper's model", "crowd-kit DawidSkene",
         "crowd-kit OneCoinDawidSkene", "crowd-kit MACE")  # fmt: skip


class Taken(NamedTuple):
    """What a process took: seconds, seconds of all its cores, and gigabytes at its peak."""

    seconds: float
    processor: float
    peak_gb: float


def run_child(source: Path, arguments: Sequence[str], **environment: str) -> Taken:
    """Run `python ARGUMENTS` with the package of a source folder to its end; complain where it fails."""
    env = os.environ | {"PYTHONPATH": str(source)} | environment
    with tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        command = [sys.executable, *arguments]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=env)
        # The system's own account of this one child.
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"{' '.join(arguments)} ended with {child.returncode}: {errors.read().strip()[-2_000:]}")
    return Taken(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6)


def audit(source: Path, votes: Path, *flags: str, **environment: str) -> Taken:
    """Audit votes with one version."""
    out = votes.with_name(f"run-{source.parent.name}")
    return run_child(source, ["-m", "moral_entropy", "audit", str(votes), "-o", str(out), "--force", "-q", *flags],
                     **environment)  # fmt: skip


def first_audit(source: Path, votes: Path) -> Taken:
    """Audit votes with nothing compiled."""
    with tempfile.TemporaryDirectory() as cache:
        return audit(source, votes, MORAL_ENTROPY_CACHE=cache, NUMBA_CACHE_DIR=cache)


def simulate(folder: Path, n_votes: int) -> Path:
    """Simulate so many votes, five per item, 10,000 per annotator but at least ten annotators."""
    path, n_items = folder / f"{n_votes}.parquet", n_votes // VOTES_PER_ITEM
    shape = {"--items": n_items, "--annotators": max(10, n_votes // 10_000), "--votes-per-item": VOTES_PER_ITEM}
    flags = [str(part) for pair in shape.items() for part in pair]
    run_child(ROOT / "src", ["-m", "moral_entropy", "simulate", *flags, "-o", str(path)])
    return path


def command_rows(sources: Sequence[Path], folder: Path, sizes: Sequence[int], repeats: int) -> Iterator[str]:
    """Measure commands with every version, turn by turn, and yield a row each."""
    small, mftc = simulate(folder, 10_000), folder / "mftc.parquet"
    run_child(ROOT / "src", ["-m", "moral_entropy", "simulate", "--like", "mftc", "-o", str(mftc)])
    yield row("`import moral_entropy`", sources, lambda s: run_child(s, ["-c", "import moral_entropy"]), repeats)
    yield row("`--help`", sources, lambda s: run_child(s, ["-m", "moral_entropy", "--help"]), repeats)
    yield row("audit of 10,000 votes", sources, lambda s: audit(s, small), repeats)
    yield row("the same, the first time", sources, lambda s: first_audit(s, small), 0)
    yield row("audit of the MFTC twin, `--preset mft`", sources, lambda s: audit(s, mftc, "--preset", "mft"), repeats)
    for n_votes in sizes:
        votes = simulate(folder, n_votes)
        name = f"audit of {n_votes / 1e6:g}M votes, 100 draws"
        yield row(name, sources, lambda s, v=votes: audit(s, v, "--draws", "100"), 0, memory=True)
        votes.unlink()


def row(
    what: str, sources: Sequence[Path], work: Callable[[Path], Taken], repeats: int, *, memory: bool = False
) -> str:
    """Have the versions take turns, once for nothing if it is repeated, and return a row: medians and their ratio."""
    runs: dict[Path, list[Taken]] = {source: [] for source in sources}
    for n in range(repeats + 1):
        for source in sources:
            taken = work(source)
            if n or not repeats:
                runs[source].append(taken)
    medians = [Taken(*np.median(runs[source], axis=0).tolist()) for source in sources]
    cells = [f"{m.seconds:.2f} s ({m.processor:.2f}){f', {m.peak_gb:.2f} GB' if memory else ''}" for m in medians]
    ratio = f"{medians[-1].seconds / medians[0].seconds:.2f}" if len(sources) > 1 else ""
    return f"| {what} | {' | '.join(cells)} | {ratio} |"


def fit_row(scale: float, repeats: int) -> str:
    """Compare a fit of the paper's model to convergence with 2,000 steps of the paper's Adam, on the MFTC twin."""
    from adam_listing import seconds_per_step

    from moral_entropy import Priors, fit, read_votes
    from moral_entropy.corpora.twins import twin

    frame = twin("mftc", seed=0, scale=scale)
    votes = read_votes(frame.filter(question="care") if "question" in frame.columns else frame)
    priors, took = Priors(prevalence=(80.0, 20.0)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(repeats + 1):
            start = time.perf_counter()
            fit(votes, model="paper", priors=priors, draws=0)
            took.append(time.perf_counter() - start)
    ours, adam = statistics.median(took[1:]) / len(votes.ballots), 2_000 * seconds_per_step(votes.ballots[0])
    return (
        f"Fit to convergence (paper's model, one question of the MFTC twin): {1e3 * ours:.1f} ms; the paper's Adam, "
        f"2,000 steps: {adam:.1f} s, {adam / ours:.0f} times as long ({adam / ours / 10:.0f} times with the listing's "
        "200 steps, which stop short of the mode)."
    )


def peer_rows(folder: Path, n_votes: int) -> Iterator[str]:
    """Run other people's aggregators and ours on the same simulated votes; yield a row each."""
    from aggregators import run_tool

    from moral_entropy import simulate_votes

    simulated = simulate_votes(
        n_items=n_votes // VOTES_PER_ITEM, n_annotators=100, votes_per_item=VOTES_PER_ITEM, seed=0
    )
    [ballot] = simulated.votes.ballots
    np.savez(folder / "votes.npz", item_v=np.repeat(np.arange(ballot.n_items), ballot.votes_i),
             annotator_v=ballot.code_v // ballot.n_labels, label_v=(ballot.code_v % ballot.n_labels).astype(np.int8),
             n_items=ballot.n_items, n_annotators=ballot.n_annotators, n_labels=ballot.n_labels)  # fmt: skip
    for tool in PEERS:
        [report] = run_tool(tool, [(folder / "votes.npz", folder / "answer")], 300.0)
        if "failed" in report:
            yield f"| {tool} | {report['failed']} | | |"
            continue
        right = np.load(folder / "answer.npy").argmax(axis=1) == simulated.truth_i
        yield f"| {tool} | {report['seconds']:.2f} | {report['peak_gb']:.2f} | {right.mean():.4f} |"


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder, and return the source folder in it."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            yield tree / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def facts() -> str:
    """Describe the machine and what was measured, in a line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "polars"))
    return (
        f"Commit {commit.stdout.strip()}; {names[0] if names else platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, {packages}."
    )


def main() -> None:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE, help="commit of the earlier version; empty for none")
    parser.add_argument("--scale", action="store_true", help="also 100 million votes")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that the benchmarks work")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    asked = parser.parse_args()
    sizes = [100_000] if asked.quick else [1_000_000, 5_000_000, 20_000_000, *([100_000_000] * asked.scale)]
    text = [facts(), ""]

    def say(*lines: str) -> None:
        text.extend(lines)
        print("\n".join(lines), flush=True)

    print(text[0])
    with tempfile.TemporaryDirectory() as folder:
        if asked.before:
            with checked_out(asked.before) as earlier:
                say(f"| | {asked.before} | now | ratio |", "| --- | ---: | ---: | ---: |")
                for line in command_rows((earlier, ROOT / "src"), Path(folder), sizes, 1 if asked.quick else 5):
                    say(line)
        else:
            say("| | now | |", "| --- | ---: | --- |")
            for line in command_rows((ROOT / "src",), Path(folder), sizes, 1 if asked.quick else 5):
                say(line)
        say("", fit_row(0.05 if asked.quick else 1.0, 3 if asked.quick else 7), "")
        say("| tool, on 100,000 votes | CPU s | peak GB | accuracy |", "| --- | ---: | ---: | ---: |")
        for line in peer_rows(Path(folder), 5_000 if asked.quick else 100_000):
            say(line)
    if asked.write:
        begin, end = "<!-- speed: written by benchmarks/run.py -->", "<!-- end of speed -->"
        body = "\n".join(text)
        page = re.sub(
            f"{begin}.*?{end}", lambda _: f"{begin}\n\n{body}\n\n{end}", PAGE.read_text(encoding="utf-8"), flags=re.S
        )
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
