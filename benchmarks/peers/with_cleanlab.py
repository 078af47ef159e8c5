"""cleanlab's multiannotator: the majority vote, and CROWDLAB without a classifier."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from child import Answer, Call, Lap, LongVotes, from_labels
from cleanlab import multiannotator


def version() -> str:
    """Give the installed version."""
    return importlib.metadata.version("cleanlab")


def _majority(votes: LongVotes) -> Call:
    # Half the memory of its usual float64, and it takes either.
    label_ia = votes.matrix(np.nan, "float32")

    def call(_lap: Lap) -> Answer:
        label_i = multiannotator.get_majority_vote_label(label_ia, verbose=False)
        return from_labels(label_i, votes.n_labels, "counts once; labels only")

    return call


@contextmanager
def _watched() -> Iterator[list[Any]]:
    # It tells the probability of its consensus label alone; those of all labels are computed on the way.
    name, found = "_get_post_pred_probs_and_weights", []
    original = getattr(multiannotator, name)

    def watched(**asked: Any) -> Any:
        answer = original(**asked)
        found.append(answer[0])
        return answer

    setattr(multiannotator, name, watched)
    try:
        yield found
    finally:
        setattr(multiannotator, name, original)


def _crowdlab(votes: LongVotes) -> Call:
    label_ia = votes.matrix(np.nan, "float32")
    # It wants a classifier's probabilities. There is none: every item gets the share of each label among all votes.
    share_k = np.bincount(votes.label_v, minlength=votes.n_labels) / len(votes.label_v)
    share_ik = np.tile(share_k, (votes.n_items, 1))

    def call(_lap: Lap) -> Answer:
        with _watched() as found:
            multiannotator.get_label_quality_multiannotator(
                label_ia, share_ik, return_detailed_quality=False, return_annotator_stats=False, verbose=False
            )
        return Answer(found[-1], "a closed form, no passes")

    return call


TOOLS = {"majority": _majority, "crowdlab": _crowdlab}
