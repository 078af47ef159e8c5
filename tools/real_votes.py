"""Print, as Markdown, what the plain model reaches on real votes with gold labels.

python tools/real_votes.py FOLDER, where FOLDER holds one folder a set with votes.csv and gold.csv.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.read import read_votes

HEAD = ("set", "votes", "items", "labels", "log posterior", "plurality", "mode", "posterior mean", "rival mode")


def main(folder: str) -> None:
    """Print one row a set."""
    print("| " + " | ".join(HEAD) + " |\n|" + " --- |" * len(HEAD))
    for gold in sorted(Path(folder).glob("*/gold.csv"), key=lambda path: path.parent.name.lower()):
        votes = read_votes(gold.parent / "votes.csv", gold_file=gold, on_repeat="count")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MoralEntropyWarning)
            found = fit(votes, model="paper").fits[0]
        rival = any("another mode" in str(warning.message) for warning in caught)
        print("| " + " | ".join(_row(gold.parent.name, found, rival)) + " |")


def _row(name: str, found: QuestionFit, rival: bool) -> list[str]:
    ballot = found.ballot
    plurality = _accuracy(found, ballot.counts_ik)
    sizes = [f"{ballot.n_votes:,}", f"{ballot.n_items:,}", str(ballot.n_labels)]
    right = [f"{_accuracy(found, ik):.4f}" for ik in (found.posterior_ik, found.summary.mean_ik)]
    return [name, *sizes, f"{found.climb.log_posterior:.4f}", f"{plurality:.4f}", *right, "yes" if rival else "no"]


def _accuracy(found: QuestionFit, score_ik: np.ndarray) -> float:
    """Share of the gold labels that are right; a tie of n labels that holds the right one counts 1/n."""
    known = found.ballot.gold_i >= 0
    score_ik, gold_i = score_ik[known], found.ballot.gold_i[known]
    best_ik = score_ik == score_ik.max(axis=1, keepdims=True)
    return float((best_ik[np.arange(len(gold_i)), gold_i] / best_ik.sum(axis=1)).mean())


if __name__ == "__main__":
    main(*sys.argv[1:])
