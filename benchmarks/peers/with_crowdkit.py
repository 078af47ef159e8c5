"""crowd-kit: its aggregators of labels, with their defaults."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pandas as pd
from child import Answer, Call, Lap, LongVotes
from crowdkit.aggregation import DawidSkene, MajorityVote, OneCoinDawidSkene


def version() -> str:
    """Give the installed version."""
    return importlib.metadata.version("crowd-kit")


def _table(votes: LongVotes) -> Any:
    return pd.DataFrame({"task": votes.item_v, "worker": votes.annotator_v, "label": votes.label_v.astype("int64")})


def _with_laps(kind: Any, lap: Lap) -> Any:
    class Watched(kind):  # type: ignore[misc]
        # The bound is computed once a pass, as the last thing in it.
        def _evidence_lower_bound(self, *parts: Any) -> float:
            bound = super()._evidence_lower_bound(*parts)
            lap()
            return float(bound)

    return Watched()


def _em(kind: Any) -> Any:
    def prepare(votes: LongVotes) -> Call:
        table = _table(votes)

        def call(lap: Lap) -> Answer:
            model = _with_laps(kind, lap)
            p_i = model.fit_predict_proba(table).sort_index()[1].to_numpy()
            bound = model.loss_history_
            if len(bound) == model.n_iter:
                return Answer(p_i, f"its cap of {model.n_iter} passes")
            gain = bound[-1] - bound[-2]
            fell = "fell" if gain < 0 else "rose"
            return Answer(p_i, f"its own rule: the bound per vote {fell} by {abs(gain):.1e} in the last pass")

        return call

    return prepare


def _majority(votes: LongVotes) -> Call:
    table = _table(votes)

    def call(_lap: Lap) -> Answer:
        share = MajorityVote().fit_predict_proba(table).sort_index()
        return Answer(share[1].fillna(0.0).to_numpy(), "counts once; p is the share of votes")

    return call


TOOLS = {"majority": _majority, "dawid-skene": _em(DawidSkene), "one-coin": _em(OneCoinDawidSkene)}
