"""How fast `serve` is with a million items: first screen, pages and facets (median of 50), memory of the process.

Usage: python benchmarks/serve.py [RUN]. Without a run folder one is made of three million simulated votes with texts (a
minute or two).
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from serve_support import Server  # noqa: E402

import moral_entropy as me  # noqa: E402

N, ANNOTATORS, TIMES = 1_000_000, 40, 50
WORDS = (
    "the",
    "of",
    "moral",
    "care",
    "harm",
    "fair",
    "loyal",
    "city",
    "people",
    "vote",
    "law",
    "street",
    "game",
    "team",
)


def make_run(folder: Path) -> Path:
    """Simulate three votes on each of a million items with texts, and audit them."""
    rng = np.random.default_rng(0)
    truth_i, item_v = rng.random(N) < 0.3, np.repeat(np.arange(N), 3)
    annotator_v = ((rng.integers(0, ANNOTATORS, N)[:, None] + np.array([0, 7, 19])) % ANNOTATORS).ravel()
    right_v = rng.random(3 * N) < rng.uniform(0.7, 0.95, ANNOTATORS)[annotator_v]
    words = np.array(WORDS)[rng.integers(0, len(WORDS), (N, 12))]
    facts = pl.DataFrame(
        {
            "item": [f"item-{i:07}" for i in range(N)],
            "domain": np.array(["news", "reddit", "twitter", "forum"])[rng.integers(0, 4, N)],
            "text": [" ".join(row) for row in words],
        }
    )
    votes = facts[item_v].with_columns(
        annotator=pl.Series([f"ann{a:02}" for a in range(ANNOTATORS)]).gather(annotator_v),
        label=pl.Series(["no", "yes"]).gather((truth_i[item_v] == right_v).astype(int)),
    )
    return me.audit(votes, folder / "run", draws=50, use_text="off", report=False).path


def peak_gigabytes(pid: int) -> float:
    """Return the most memory that a process has held, in GB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1e6


def measure(run: Path) -> list[tuple[str, str]]:
    """Time the requests of every kind, each with another page, facet, word or item."""
    started = time.perf_counter()
    server = Server(run)
    rows = [("start of the program", f"{time.perf_counter() - started:.1f} s")]
    try:

        def timed(path):
            begun = time.perf_counter()
            status, _, text = server.ask(path)
            assert status == 200, text
            return time.perf_counter() - begun

        rows.append(("first screen", f"{1000 * (timed('/start') + timed('/start.json')):.0f} ms"))
        domains, labels, shows = ("news", "reddit", "twitter", "forum"), ("no", "yes"), ("all", "uncertain", "split")
        kinds = {
            "page of items": lambda n: f"/items.json?page={1 + 400 * n}",
            "facets": lambda n: f"/items.json?domain={domains[n % 4]}&label={labels[n % 2]}&show={shows[n % 3]}",
            "search in texts": lambda n: f"/items.json?q={WORDS[n % 14]}%20{WORDS[(3 * n + 5) % 14]}%20{WORDS[n % 5]}",
            "one item with its votes": lambda n: f"/item.json?question=label&item=item-{19_997 * n % N:07}",
            "next item to settle": lambda n: "/settle.json",
        }
        for name, path in kinds.items():
            seconds = [timed(path(n)) for n in range(TIMES)]
            rows.append((name, f"{1000 * median(seconds):.0f} ms"))
            print(rows[-1], f"slowest {1000 * max(seconds):.0f} ms", flush=True)
        rows.append(("annotators, first time", f"{timed('/annotators.json'):.1f} s"))
        rows.append(("memory of the process", f"{peak_gigabytes(server.process.pid):.2f} GB"))
    finally:
        server.kill()
    return rows


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(arguments.run or make_run(Path(folder)))
    table = "| with a million items | |\n| --- | --- |\n" + "".join(f"| {name} | {value} |\n" for name, value in rows)
    print(table)


if __name__ == "__main__":
    main()
