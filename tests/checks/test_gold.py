"""Against gold: what is scored is what the package publishes, known gold is left out, verdicts are right."""

from __future__ import annotations

import numpy as np
import pytest
from support import random_rows, votes_of

from moral_entropy import fit, simulate_votes
from moral_entropy.checks.gold import check_gold

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def copied_votes(seed=0, copies=9):
    """Three independent voters, one better than the others, each heard `copies` times."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(2, size=300)
    said_ia = np.where(rng.random((300, 3)) < (0.9, 0.7, 0.65), truth_i[:, None], 1 - truth_i[:, None])
    rows = [(item, 3 * copy + a, said_ia[item, a]) for item in range(300) for a in range(3) for copy in range(copies)]
    return votes_of(rows, gold_i=truth_i)


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_published_p_is_scored(n_labels, model):
    votes = simulate_votes(n_items=150, n_annotators=8, votes_per_item=4, n_labels=n_labels).votes
    consensus = fit(votes, draws=60, model=model)
    [one] = consensus.fits
    [found] = check_gold(consensus)
    chosen_i = one.p_ik[np.arange(150), one.ballot.gold_i]
    counts_ik = one.ballot.counts_ik
    share_i = (counts_ik[np.arange(150), one.ballot.gold_i] + 0.5) / (counts_ik.sum(axis=1) + 0.5 * n_labels)
    assert found.metric == "gain_over_vote_share" and found.n == 150
    assert found.value == pytest.approx(np.log(chosen_i).mean() - np.log(share_i).mean())
    assert f"loses {-np.log(chosen_i).mean():.2f} nats" in found.text


def test_votes_heard_again_and_again_are_found_out():
    verdict = check_gold(fit(copied_votes(), draws=100, model="paper"))[-1]
    assert verdict.metric == "gain_over_vote_share" and verdict.level == "doubt" and verdict.high < 0


@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_a_sound_consensus_is_not_doubted(model):
    for seed in range(3):
        simulated = simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, seed=seed)
        verdict = check_gold(fit(simulated.votes, draws=100, model=model))[-1]
        assert verdict.level == "good" and verdict.low > 0


def test_gold_that_was_evidence_is_left_out():
    rng = np.random.default_rng(1)
    votes = votes_of(random_rows(rng, 40, 5, 2), gold_i=rng.integers(2, size=40))
    assert check_gold(fit(votes, draws=0))
    assert check_gold(fit(votes, draws=0, use_gold=True)) == []
    assert check_gold(fit(votes_of(random_rows(rng, 40, 5, 2)), draws=0)) == []
