"""Which method is best for which kind of data? Ours and the public aggregators, on every set with gold and on twins.

Usage: league.py [--data ../shared/data] [--seconds 60] [--jobs 2] [--only NAME] [--kept] [--dry]. Writes
docs/evidence/league.md; with --dry only prints. Every method runs on every set in a process of its own, the other tools
in `.venv-other`; answers are kept in .league, so that a run that was stopped goes on where it was. With --kept nothing
is run. Sets that are not there are left out, with a word. No gold is used in a fit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))

from aggregators import OURS, TOOLS, run_tool  # noqa: E402
from gold import DATA, PANEL, TWINS, Scores, gold_votes, score  # noqa: E402
from league_page import page, tables  # noqa: E402

from moral_entropy import Ballot, Votes, read_votes  # noqa: E402
from moral_entropy.corpora.twins import twin  # noqa: E402

PAGE, KEPT = ROOT / "docs" / "evidence" / "league.md", ROOT / ".league"
NOT_RUN = "not run yet"
FEW_VOTES, MANY_LABELS = 8.0, 4
LLM_SETS = ("llmbar_natural", "trecrag24_9judges", PANEL)
FEW, MANY, LLM, LABELS, TWIN = "people, few votes", "people, many votes", "LLM panels", "many labels", "twins"


@dataclass(frozen=True)
class Entry:
    """A set of the league: its kinds and sizes, and by method the scores and `seconds`, or why it `failed`."""

    name: str
    kinds: tuple[str, ...]
    n_gold: int
    lines: dict[str, dict[str, Any]]


def sources(data: Path) -> Iterator[tuple[str, Votes]]:
    """Read the sets that are there, small ones first, then the twins."""
    yield from sorted(gold_votes(data), key=lambda pair: pair[1].n_votes)
    for name in TWINS:
        yield name, read_votes(twin(name, seed=0), gold="gold")


def kinds_of(name: str, ballot: Ballot) -> tuple[str, ...]:
    """Say of which kinds a set is; one with many labels is of two."""
    if name in TWINS:
        return (TWIN,)
    people = FEW if ballot.n_votes / ballot.n_items < FEW_VOTES else MANY
    first = LLM if name in LLM_SETS else people
    return (first, LABELS) if ballot.n_labels >= MANY_LABELS else (first,)


def write_votes(votes: Votes, folder: Path) -> list[Path]:
    """Write every question's votes as integers, for processes of their own."""
    paths = []
    for b, ballot in enumerate(votes.ballots):
        domains = {"domain_i": votes.domain_i[ballot.item_i]} if votes.domains else {}
        annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
        item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
        np.savez(folder / f"{b}.npz", item_v=item_v, annotator_v=annotator_v, label_v=label_v, n_items=ballot.n_items,
                 n_annotators=ballot.n_annotators, n_labels=ballot.n_labels, **domains)  # fmt: skip
        paths.append(folder / f"{b}.npz")
    return paths


def run_all(name: str, votes: Votes, seconds: float, jobs: int, kept: Path = KEPT) -> dict[str, list[dict[str, Any]]]:
    """Run every method on a set, or read what it said before: a report per question, with its `out` if it answered."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_votes(votes, Path(folder))
        digest = hashlib.sha256(f"{seconds:g}".encode())
        for path in paths:
            digest.update(path.read_bytes())

        def run(tool: str) -> list[dict[str, Any]]:
            key = hashlib.sha256(f"{tool} {digest.hexdigest()} {version_of(tool)}".encode()).hexdigest()[:16]
            outs = [kept / name / f"{key}-{b}" for b in range(len(paths))]
            report = kept / name / f"{key}.json"
            if not report.exists():
                if not jobs:
                    return [{"failed": NOT_RUN}] * len(paths)
                report.parent.mkdir(parents=True, exist_ok=True)
                reports = run_tool(tool, list(zip(paths, outs, strict=True)), seconds)
                if reports[0].get("failed", "").startswith("not installed"):
                    return reports
                report.write_text(json.dumps(reports), encoding="utf-8")
                print(f"  {name}: {tool} {reports[-1].get('failed', 'done')}", file=sys.stderr, flush=True)
            reports = json.loads(report.read_text(encoding="utf-8"))
            return [{**facts, "out": f"{out}.npy"} for facts, out in zip(reports, outs, strict=True)]

        with ThreadPoolExecutor(max(jobs, 1)) as pool:
            return dict(zip(TOOLS, pool.map(run, TOOLS), strict=True))


def version_of(tool: str) -> str:
    """Return what an answer depends on, votes apart: our code, or the pinned versions of the other tools."""
    if TOOLS[tool][0] != "moral-entropy":
        return (ROOT / "benchmarks" / "peers.txt").read_text(encoding="utf-8")
    files = sorted((ROOT / "src" / "moral_entropy" / "model").rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def line_of(ballot: Ballot, report: dict[str, Any]) -> dict[str, Any]:
    """Score one report against the gold of its question; labels alone have an accuracy and nothing else."""
    if "failed" in report:
        return {"failed": report["failed"]}
    rows = np.flatnonzero(ballot.gold_i >= 0)
    scores: Scores = score(np.load(report["out"])[rows], ballot.gold_i[rows].astype(int))
    if report["labels_only"]:
        scores = {"accuracy": scores["accuracy"]}
    return {**scores, "seconds": report["seconds"]}


def entries_of(name: str, votes: Votes, reports: dict[str, list[dict[str, Any]]]) -> list[Entry]:
    """Score what was reported on a set: one entry per question; of a twin one for all, with means and seconds added."""
    lines = {
        tool: [line_of(ballot, report) for ballot, report in zip(votes.ballots, some, strict=True)]
        for tool, some in reports.items()
    }
    golds = [int((ballot.gold_i >= 0).sum()) for ballot in votes.ballots]
    if name in TWINS:
        means = {tool: mean_line(some) for tool, some in lines.items()}
        return [Entry(f"{name} twin", kinds_of(name, votes.ballots[0]), golds[0], means)]
    several = len(votes.ballots) > 1
    return [
        Entry(f"{name}: {ballot.question}" if several else name, kinds_of(name, ballot), golds[b],
              {tool: some[b] for tool, some in lines.items()})
        for b, ballot in enumerate(votes.ballots)
    ]  # fmt: skip


def mean_line(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Average over the questions of a twin, seconds added; one that failed leaves nothing to average."""
    failures = [line for line in lines if "failed" in line]
    if failures:
        return failures[0]
    means = {figure: float(np.mean([line[figure] for line in lines])) for figure in lines[0]}
    return {**means, "seconds": sum(line["seconds"] for line in lines)}


def main() -> None:
    """Run the league and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds that a method has per set")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", default="", help="only sets with this in their name; the page is left alone")
    parser.add_argument("--kept", action="store_true", help="run nothing; write the page from answers kept before")
    parser.add_argument("--dry", action="store_true", help="print the page and leave the file alone")
    asked = parser.parse_args()
    entries: list[Entry] = []
    versions: set[str] = set()
    for name, votes in sources(asked.data):
        if asked.only in name:
            reports = run_all(name, votes, asked.seconds, 0 if asked.kept else asked.jobs)
            # Without ours there is nothing to compare with.
            entries += [e for e in entries_of(name, votes, reports) if e.lines[OURS].get("failed") != NOT_RUN]
            versions |= {report["version"] for some in reports.values() for report in some if "version" in report}
    machine = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    text = page(entries, f"{', '.join(sorted(versions))}; {machine}; {asked.seconds:g} CPU seconds per method and set.")
    if asked.dry or asked.only:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        for name, table in tables(entries).items():
            (ROOT / "docs" / "data" / name).write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
