"""The twins of version 0.1: what its variants lose on them, and what the present default does.

Version 0.1 made other twins than this one. They are made by its own code, which also fits its variants, in a process of
its own.

Usage: twins_before.py --before PATH/TO/0.1/src [--draws 200] [--dry], where that path is of the commit c94a997 (git
worktree add ../earlier c94a997). Writes the part `twins of 0.1` of docs/evidence/real-votes.md; with --dry only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from gold_sets import ROOT
from page import write_parts

from moral_entropy.consensus.fit import fit
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Floats, Ints, Votes

PAGE = ROOT / "docs" / "evidence" / "real-votes.md"
TWINS = ("mftc", "mfrc", "emfd")
VARIANTS = ("none", "full")
"""Ways to pool annotators in 0.1; rows of their own were its default. Partial pooling takes it many minutes."""

EARLIER = """
import json, sys, warnings
import numpy as np
from moral_entropy.consensus.fit import fit
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.twins import write_twin
warnings.simplefilter("ignore")
name, path, draws, *variants = sys.argv[1:]
write_twin(name, path, seed=0)
votes, found = read_votes(path), {}
for pooling in variants:
    scores = []
    for one in fit(votes, pooling=pooling, draws=int(draws)).fits:
        known = one.ballot.gold_i >= 0
        p_ik, gold_i = one.summary.mean_ik[known], one.ballot.gold_i[known]
        right_i = p_ik[np.arange(len(gold_i)), gold_i]
        scores.append((float(-np.log(right_i.clip(1e-12)).mean()), float((p_ik.argmax(axis=1) == gold_i).mean())))
    found[pooling] = np.mean(scores, axis=0).tolist()
print(json.dumps(found))
"""


def score(p_ik: Floats, gold_i: Ints) -> tuple[float, float]:
    """Return log loss and accuracy on items with a known label.

    Examples
    --------
    >>> loss, accuracy = score(np.array([[0.5, 0.5], [0.1, 0.9], [0.2, 0.8]]), np.array([0, 1, -1]))
    >>> round(loss, 3), accuracy
    (0.399, 1.0)
    """
    known = gold_i >= 0
    p_ik, gold_i = p_ik[known], gold_i[known]
    right_i = p_ik[np.arange(len(gold_i)), gold_i]
    return float(-np.log(right_i.clip(1e-12)).mean()), float((p_ik.argmax(axis=1) == gold_i).mean())


def before(source: Path, name: str, path: Path, draws: int) -> dict[str, list[float]]:
    """Let 0.1 make a twin and fit its variants; return the mean log loss and accuracy of each over foundations."""
    command = [sys.executable, "-c", EARLIER, name, str(path), str(draws), *VARIANTS]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def seconds(votes: Votes, model: str) -> float:
    """Measure how long the mode takes."""
    start = time.perf_counter()
    fit(votes, model=model, draws=0)
    return time.perf_counter() - start


def lines(source: Path, draws: int) -> Iterator[str]:
    """Yield the table."""
    ways = [f"0.1, pooling {way}" for way in VARIANTS]
    yield f"| twin of 0.1 | {' | '.join(ways)} | published p | the model alone | fit, times the paper's model |"
    yield "| --- |" + " ---: |" * (len(ways) + 3)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        for name in TWINS:
            path = Path(folder) / f"{name}.parquet"
            found = before(source, name, path, draws)
            votes = read_votes(path)
            fits = fit(votes, draws=draws).fits
            now = np.mean([score(one.p_ik, one.ballot.gold_i) for one in fits], axis=0)
            alone = np.mean([score(one.summary.mean_ik, one.ballot.gold_i) for one in fits], axis=0)
            times = seconds(votes, "mixed") / seconds(votes, "paper")
            cells = [f"{loss:.3f} · {right:.1%}" for loss, right in (*(found[way] for way in VARIANTS), now, alone)]
            yield f"| {name} | {' | '.join(cells)} | {times:.1f} |"


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="the folder src of version 0.1")
    parser.add_argument("--draws", type=int, default=200, help="posterior draws per fit")
    parser.add_argument("--dry", action="store_true", help="print the table and leave the page alone")
    asked = parser.parse_args()
    table = "\n".join(lines(asked.before, asked.draws))
    print(table)
    if not asked.dry:
        write_parts(PAGE, "studies/twins_before.py", {"twins of 0.1": f"\n{table}\n"})


if __name__ == "__main__":
    main()
