"""peerannot: its Dawid–Skene, dense and sparse, and its iterated weighted vote, with their defaults."""

from __future__ import annotations

import importlib.metadata
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from child import Answer, Call, Lap, LongVotes, from_labels
from peerannot.models.aggregation.dawid_skene import DawidSkene, DawidSkeneSparse
from peerannot.models.aggregation.iwmv import IWMV

SEED = 0


def version() -> str:
    """Give the installed version."""
    return importlib.metadata.version("peerannot")


def _answers(votes: LongVotes) -> dict[int, dict[int, int]]:
    start_i = np.searchsorted(votes.item_v, np.arange(votes.n_items + 1))
    annotators, labels = votes.annotator_v.tolist(), votes.label_v.tolist()
    return {
        item: dict(zip(annotators[start:end], labels[start:end], strict=True))
        for item, (start, end) in enumerate(pairwise(start_i.tolist()))
    }


def _em(kind: Any) -> Any:
    class Watched(kind):  # type: ignore[misc]
        lap: Lap

        # The height is computed once a pass, as the last thing in it.
        def _log_likelihood(self) -> float:
            height = super()._log_likelihood()
            self.lap()
            return float(height)

    def prepare(votes: LongVotes) -> Call:
        # Building the model fills its array of items × annotators × labels: counted as converting, not as fitting.
        model = Watched(answers=_answers(votes), n_workers=votes.n_annotators, n_classes=votes.n_labels)

        def call(lap: Lap) -> Answer:
            model.lap = lap
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                heights, passes = model.run()
            capped = any(type(warning.message).__name__ == "DidNotConverge" for warning in said)
            own = f"its own rule: the log of the summed likelihoods moved by {abs(heights[-1] - heights[-2]):.1e}"
            p_ik = model.get_probas()
            p_ik = p_ik.todense() if hasattr(p_ik, "todense") else p_ik
            return Answer(p_ik, f"its cap of {passes} passes" if capped else own)

        return call

    return prepare


def _weighted_vote(votes: LongVotes) -> Call:
    answers = _answers(votes)

    def call(_lap: Lap) -> Answer:
        # It draws from NumPy's global generator.
        np.random.seed(SEED)  # noqa: NPY002
        model = IWMV(answers=answers, n_workers=votes.n_annotators, n_classes=votes.n_labels)
        model.run()
        return from_labels(model.get_answers(), votes.n_labels, "10 passes; labels only")

    return call


TOOLS = {
    "dawid-skene": _em(DawidSkene),
    "dawid-skene-sparse": _em(DawidSkeneSparse),
    "weighted-vote": _weighted_vote,
}
