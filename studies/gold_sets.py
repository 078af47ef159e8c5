"""Sets of real votes with gold labels: read for the studies that hold p against gold, and what these can be asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import moral_entropy
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Votes

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / ".." / "shared" / "data"
SETS = ("bluebird", "rte", "D_Product", "web", "S_Rel", "fact_eval", "ZenCrowd_all", "hate_paradigms")
PANEL = "mfrc_llm_panel"
"""A set whose gold has several labels per item, in a file of its own."""

MORE_SETS = ("labelme", "face_sentiment", "snow_temp", "dices350", "llmbar_natural", "trecrag24_9judges", PANEL)
ALL_SETS = (*SETS, *MORE_SETS)


def gold_votes(data: Path, names: Sequence[str]) -> Iterator[tuple[str, Votes]]:
    """Read the sets that are there, one after the other; say which are, and which are not."""
    for name in names:
        gold = data / name / ("items.csv" if name == PANEL else "gold.csv")
        if not gold.is_file():
            print(f"  {name} is not in {data.name}: left out", file=sys.stderr)
            continue
        print(f"  {name}", file=sys.stderr, flush=True)
        votes = data / name / "votes.csv"
        if name == PANEL:
            yield name, read_votes(votes, gold_file=gold, gold="gold_multilabel", multilabel="|", on_repeat="count")
        else:
            yield name, read_votes(votes, gold_file=gold, on_repeat="count")


def asked_for(description: str | None) -> argparse.Namespace:
    """Read the command line of a study: where the sets are, draws, and whether the page is to be written."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--draws", type=int, default=400, help="posterior draws per fit")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    return parser.parse_args()


def facts(draws: int) -> str:
    """Say how the figures of a study were made."""
    return f"moral-entropy {moral_entropy.__version__}, {draws} draws, seed 0."
