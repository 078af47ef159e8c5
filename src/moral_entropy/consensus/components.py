"""Votes on items between two labels: for which of the two each was given, and what not knowing it leaves unknown.

An annotator votes on an item in state z as for label k with probability mix_zk. Given the state and the vote, that
label, the vote's component, is known up to its probability, which is what EM and the curvature need.
"""

from __future__ import annotations

import numpy as np

from moral_entropy.consensus.states import States
from moral_entropy.votes.table import Floats


def component_shares(states: States, confusion_akv: Floats) -> Floats:
    """Compute the probability that a vote of code c on an item in state z was given as for label k: `share_czk`.

    Examples
    --------
    >>> confusion_akv = np.array([[[0.9, 0.1], [0.3, 0.7]]])
    >>> component_shares(States(2, points=1), confusion_akv)[0].round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.75, 0.25]]
    """
    vote_azv = states.votes_azv(confusion_akv)
    joint_azvk = states.mix_zk[:, None, :] * confusion_akv.transpose(0, 2, 1)[:, None]
    share_azvk = joint_azvk / vote_azv[..., None]
    return np.ascontiguousarray(share_azvk.transpose(0, 2, 1, 3)).reshape(-1, states.n_states, states.n_labels)


def votes_by_component(states: States, confusion_akv: Floats, vote_azv: Floats, votes_cz: Floats) -> Floats:
    """Compute the expected votes by annotator, component and label voted: `votes_akv`.

    Parameters
    ----------
    states
        The states.
    confusion_akv, vote_azv
        How annotators vote by label, and by state.
    votes_cz
        Expected votes by code and state.
    """
    votes_azv = votes_cz.reshape(len(confusion_akv), -1, states.n_states).transpose(0, 2, 1)
    if states.corners_only:
        return votes_azv
    return np.asarray(confusion_akv * np.matmul(states.mix_zk.T, votes_azv / vote_azv))


def vote_scores(states: States, confusion_akv: Floats) -> Floats:
    """Compute the expected score of a vote given the state, by coordinate of its annotator: `score_czt`.

    Coordinates are the log ratios of the annotator's rows, row 0 first.
    """
    n_annotators, n_labels, _ = confusion_akv.shape
    share_avzk = component_shares(states, confusion_akv).reshape(n_annotators, n_labels, states.n_states, n_labels)
    excess_akvo = np.eye(n_labels)[:, 1:] - confusion_akv[:, :, None, 1:]
    score_avzko = share_avzk[..., None] * excess_akvo.transpose(0, 2, 1, 3)[:, :, None]
    return score_avzko.reshape(n_annotators * n_labels, states.n_states, -1)


def component_covariance(states: States, confusion_akv: Floats, votes_cz: Floats, score_czt: Floats) -> Floats:
    """Compute, per annotator, the covariance of the score given the states: `own_att`."""
    n_annotators, n_labels, _ = confusion_akv.shape
    vote_azv = states.votes_azv(confusion_akv)
    votes_akv = votes_by_component(states, confusion_akv, vote_azv, votes_cz)
    excess_akvo = np.eye(n_labels)[:, 1:] - confusion_akv[:, :, None, 1:]
    blocks_akop = np.einsum("akv,akvo,akvp->akop", votes_akv, excess_akvo, excess_akvo, optimize=True)
    n_own, n_other = score_czt.shape[-1], n_labels - 1
    own_att = np.zeros((n_annotators, n_own, n_own))
    for k in range(n_labels):
        rows = slice(k * n_other, (k + 1) * n_other)
        own_att[:, rows, rows] = blocks_akop[:, k]
    score_axt = score_czt.reshape(n_annotators, -1, n_own)
    weighted_axt = votes_cz.reshape(n_annotators, -1, 1) * score_axt
    return np.asarray(own_att - np.swapaxes(score_axt, 1, 2) @ weighted_axt)
