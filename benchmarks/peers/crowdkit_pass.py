"""Time crowd-kit's DawidSkene; runs in the peers' own environment and knows nothing of moral-entropy.

Usage: crowdkit_pass.py VOTES.parquet FEWER MORE. Prints JSON: the seconds that a pass takes, and crowd-kit's version.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

import pandas as pd
from crowdkit.aggregation import DawidSkene  # type: ignore[import-not-found]


def seconds(votes: pd.DataFrame, n_iter: int) -> float:
    """Give the seconds of a fit with a fixed number of passes."""
    # No gain is too small to go on, so that the passes are as many as asked for.
    model = DawidSkene(n_iter=n_iter, tol=-float("inf"))
    start = time.perf_counter()
    model.fit(votes)
    took = time.perf_counter() - start
    if len(model.loss_history_) != n_iter:
        raise RuntimeError(f"asked for {n_iter} passes, got {len(model.loss_history_)}")
    return took


def main(path: str, fewer: int, more: int) -> None:
    """Print what one pass takes: the difference of two fits, so that setting up does not count."""
    votes = pd.read_parquet(path)
    seconds(votes.head(1_000), 1)
    passes = (seconds(votes, more) - seconds(votes, fewer)) / (more - fewer)
    print(json.dumps({"seconds_a_pass": passes, "version": version("crowd-kit")}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
