"""Why crowd-kit's DawidSkene ends when it does: its own bound, and the log likelihood, after some passes.

Usage: crowdkit_bound.py VOTES.npz, in `.venv-peers`; `bench_peers.write_votes` writes such files. Prints a line for
each number of passes: what crowd-kit's bound says a vote, and the log likelihood of the same parameters.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene  # type: ignore[import-not-found]

PASSES = (2, 5, 10, 20, 50, 100)


def main(path: str) -> None:
    """Make it go on whatever its bound says, and look at both."""
    votes = np.load(path)
    columns = {"task": votes["item_v"], "worker": votes["annotator_v"], "label": votes["label_v"].astype(np.int64)}
    table = pd.DataFrame(columns)
    for n_passes in PASSES:
        model = DawidSkene(n_iter=n_passes, tol=-float("inf")).fit(table)
        bound = np.array(model.loss_history_)
        falls = int((np.diff(bound) < 0).sum())
        print(
            f"{n_passes} passes: bound {bound[-1]:.6f} per vote, fell in {falls} of {len(bound) - 1} steps; "
            f"log likelihood {log_likelihood(table, model):.3f}",
            flush=True,
        )


def log_likelihood(table: pd.DataFrame, model: DawidSkene) -> float:
    """Give the log likelihood of the votes: the class prior once per item, as the model has it."""
    labels = list(model.priors_.index)
    # Rows of errors_ are (worker, vote), columns true labels.
    chance = model.errors_.reindex(columns=labels)
    rows = chance.index.get_indexer(pd.MultiIndex.from_frame(table[["worker", "label"]]))
    log_vk = np.log(np.maximum(chance.to_numpy()[rows], 1e-300))
    log_ik = np.zeros((int(table["task"].max()) + 1, len(labels)))
    np.add.at(log_ik, table["task"].to_numpy(), log_vk)
    log_ik += np.log(model.priors_.to_numpy())
    return float(np.logaddexp.reduce(log_ik, axis=1).sum())


if __name__ == "__main__":
    main(sys.argv[1])
