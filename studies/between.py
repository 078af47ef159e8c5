"""Items between labels, simulated: votes drawn anew for items at known places, and p at the true parameters.

An item's place is how much of it is a yes: 0 and 1 are the labels, anything else lies between. Annotators vote on it as
for a yes with that chance, as for a no with the rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moral_entropy.corpora.simulate import SimulatedVotes
from moral_entropy.votes.table import Ballot, Floats


def vote_again(simulated: SimulatedVotes, place_i: Floats, rng: np.random.Generator) -> SimulatedVotes:
    """Let everybody vote again on the same items, which now lie at other places."""
    [ballot] = simulated.votes.ballots
    as_v = (rng.random(ballot.n_votes) < np.repeat(place_i, ballot.votes_i)).astype(int)
    annotator_v = ballot.code_v // 2
    yes_v = rng.random(ballot.n_votes) < simulated.confusion_akv[ballot.annotator_a[annotator_v], as_v, 1]
    code_v = (2 * annotator_v + yes_v).astype(ballot.code_v.dtype)
    return replace(simulated, votes=replace(simulated.votes, ballots=(replace(ballot, code_v=code_v),)))


def posterior_of_places(ballot: Ballot, confusion_akv: Floats, place_z: Floats, prior_z: Floats) -> Floats:
    """Give P(yes | votes) of every item, whose place is one of `place_z` with the chances `prior_z`: `p_i`.

    `confusion_akv` is of the annotators of the ballot.
    """
    annotator_v, label_v = np.divmod(ballot.code_v, 2)
    no_v, yes_v = confusion_akv[annotator_v, :, label_v].T
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    log_iz = np.empty((ballot.n_items, len(place_z)))
    for z, place in enumerate(place_z):
        log_iz[:, z] = np.bincount(item_v, weights=np.log(place * yes_v + (1 - place) * no_v), minlength=ballot.n_items)
    weight_iz = np.exp(log_iz - log_iz.max(axis=1, keepdims=True)) * prior_z
    return np.asarray(weight_iz @ place_z / weight_iz.sum(axis=1))
