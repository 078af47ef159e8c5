"""crowd-kit: its aggregators of labels, with their defaults."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pandas as pd
from child import Answer, Call, Lap, LongVotes, from_labels
from crowdkit.aggregation import GLAD, MACE, MMSR, DawidSkene, MajorityVote, OneCoinDawidSkene, Wawa, ZeroBasedSkill
from crowdkit.aggregation.classification import wawa, zero_based_skill

# Their check that they are fitted fails under scikit-learn 1.6 and later, fitted or not.
for module in (wawa, zero_based_skill):
    module.check_is_fitted = lambda *_, **__: None


def version() -> str:
    """Give the installed version."""
    return importlib.metadata.version("crowd-kit")


def _table(votes: LongVotes) -> Any:
    return pd.DataFrame({"task": votes.item_v, "worker": votes.annotator_v, "label": votes.label_v.astype("int64")})


def _of_labels(probabilities: Any, votes: LongVotes) -> Any:
    # A label that nobody chose has no column, and one that nobody chose for an item may have no number.
    return probabilities.reindex(index=range(votes.n_items), columns=range(votes.n_labels)).fillna(0.0).to_numpy()


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
            p_ik = _of_labels(model.fit_predict_proba(table), votes)
            bound = model.loss_history_
            if len(bound) == model.n_iter:
                return Answer(p_ik, f"its cap of {model.n_iter} passes")
            gain = bound[-1] - bound[-2]
            fell = "fell" if gain < 0 else "rose"
            return Answer(p_ik, f"its own rule: the bound per vote {fell} by {abs(gain):.1e} in the last pass")

        return call

    return prepare


def _one_call(kind: Any, ended: str) -> Any:
    def prepare(votes: LongVotes) -> Call:
        table = _table(votes)

        def call(_lap: Lap) -> Answer:
            return Answer(_of_labels(kind().fit_predict_proba(table), votes), ended)

        return call

    return prepare


def _mmsr(votes: LongVotes) -> Call:
    table = _table(votes)

    def call(_lap: Lap) -> Answer:
        label_i = MMSR().fit_predict(table).reindex(range(votes.n_items)).to_numpy()
        return from_labels(label_i, votes.n_labels, "its own rule; labels only")

    return call


TOOLS = {
    "majority": _one_call(MajorityVote, "counts once; p is the share of votes"),
    "dawid-skene": _em(DawidSkene),
    "one-coin": _em(OneCoinDawidSkene),
    "glad": _one_call(GLAD, "its own rule"),
    "mace": _one_call(MACE, "10 starts of 50 passes"),
    "mmsr": _mmsr,
    "wawa": _one_call(Wawa, "counts twice; p is the weighted share of votes"),
    "zero-based-skill": _one_call(ZeroBasedSkill, "its own rule; p is the weighted share of votes"),
}
WARM_UP = dict.fromkeys(("glad", "mace"), TOOLS["majority"])
