"""cleanlab's multiannotator: the majority vote, and CROWDLAB without a classifier."""

from __future__ import annotations

import importlib.metadata

import numpy as np
from child import Answer, Call, Lap, LongVotes
from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label


def version() -> str:
    """Give the installed version."""
    return importlib.metadata.version("cleanlab")


def _majority(votes: LongVotes) -> Call:
    # Half the memory of its usual float64, and it takes either.
    label_ia = votes.matrix(np.nan, "float32")

    def call(_lap: Lap) -> Answer:
        return Answer(get_majority_vote_label(label_ia, verbose=False), "counts once; labels only")

    return call


def _crowdlab(votes: LongVotes) -> Call:
    label_ia = votes.matrix(np.nan, "float32")
    # It wants a classifier's probabilities. There is none: every item gets the share of each label among all votes.
    positive = float(votes.label_v.mean())
    share_ik = np.tile([1.0 - positive, positive], (votes.n_items, 1))

    def call(_lap: Lap) -> Answer:
        quality = get_label_quality_multiannotator(
            label_ia, share_ik, return_detailed_quality=False, return_annotator_stats=False, verbose=False
        )["label_quality"]
        score_i = quality["consensus_quality_score"].to_numpy()
        p_i = np.where(quality["consensus_label"].to_numpy() == 1, score_i, 1.0 - score_i)
        return Answer(p_i, "a closed form, no passes")

    return call


TOOLS = {"majority": _majority, "crowdlab": _crowdlab}
