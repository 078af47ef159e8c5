"""Do 100 items settled in the order of `serve` mend more wrong labels than 100 at random? On public sets with gold.

Usage: python studies/settle.py [SET ...]

Each set is audited without its gold. The first 100 items of the queue get their gold label, and so do 100 drawn at
random, `SEEDS` times; both make a new run. Counted are wrong labels among the items that have gold: those that are put
right directly, and those that are left in the new run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from moral_entropy.decisions import with_decisions
from moral_entropy.pipeline import audit, settle
from moral_entropy.runs.run import Run
from moral_entropy.serve.desk import Desk

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = ("rte", "snow_temp", "labelme", "face_sentiment", "D_Product", "web")
N, SEEDS = 100, 3


def read_gold(folder: Path) -> pl.DataFrame:
    """Return the known labels of a set: item and gold, both as text."""
    gold = pl.read_csv(folder / "gold.csv", infer_schema=False)
    return gold.select(item=gold.columns[0], gold=gold.columns[1])


def wrong_items(run: Run, gold: pl.DataFrame) -> set[str]:
    """Return the items whose label is not the known one."""
    labels = run.items.select(pl.col("item").cast(pl.String), "label")
    return set(labels.join(gold, on="item").filter(pl.col("label") != pl.col("gold"))["item"])


def left_after(run: Run, gold: pl.DataFrame, items: list[str]) -> int:
    """Settle some items as gold has them, make a new run, and count the wrong labels in it."""
    known = dict(gold.iter_rows())
    question = run.questions[0].name
    entries = [
        {"id": item, "kind": "settle", "who": "gold", "question": question, "item": item, "label": known[item]}
        for item in items
    ]
    return len(wrong_items(settle(with_decisions(run, entries)), gold))


def study(name: str) -> dict[str, object]:
    """Return the figures of one set."""
    gold = read_gold(DATA / name)
    with tempfile.TemporaryDirectory() as folder:
        votes = DATA / name / "votes.csv"
        run = audit(votes, Path(folder) / "run", draws=100, report=False, use_text="off")
        labels = set(run.questions[0].labels)
        gold = gold.filter(pl.col("gold").is_in(labels))
        wrong, known = wrong_items(run, gold), set(gold["item"])
        queue = [item for _, item in Desk(run, ["gold"]).queue("gain") if item in known][:N]
        rng, names = np.random.default_rng(0), sorted(known)
        drawn = [rng.choice(names, N, replace=False).tolist() for _ in range(SEEDS)]
        return {
            "set": name,
            "items with gold": len(known),
            "wrong": len(wrong),
            "put right, in order": len(wrong & set(queue)),
            "put right, at random": round(N * len(wrong) / len(known), 1),
            "left, in order": left_after(run, gold, queue),
            "left, at random": round(float(np.mean([left_after(run, gold, items) for items in drawn])), 1),
        }


def main() -> None:
    """Print one row per set, as a Markdown table."""
    rows = [study(name) for name in sys.argv[1:] or SETS]
    print("| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0]))
    for row in rows:
        print(
            "| " + " | ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()) + " |"
        )


if __name__ == "__main__":
    main()
