"""The consensus against gold: it is the published p."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.model.fit import fit
from moral_entropy.rules.table import audit_rules
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import UNKNOWN


def copied_votes(n_gold):
    """Six annotators and a copy of one of them, which counts once; the first items have gold."""
    simulated = simulate_votes(n_items=300, n_annotators=6, votes_per_item=4, seed=2).votes
    [ballot] = simulated.ballots
    annotator_v, label_v = np.divmod(ballot.code_v, 2)
    item_v, copied = np.repeat(np.arange(300), ballot.votes_i), annotator_v == 0
    rows = {"item": item_v, "annotator": annotator_v, "label": label_v}
    twice = {name: np.concatenate([column, column[copied]]) for name, column in rows.items()}
    twice["annotator"][len(item_v) :] = 6
    gold = pl.DataFrame({"item": np.arange(n_gold), "gold": ballot.gold_i[:n_gold]})
    return read_votes(pl.DataFrame(twice), gold_file=gold)


@pytest.mark.parametrize("n_gold", [300, 40], ids=["all", "few"])
def test_against_gold_it_is_the_published_p_that_is_graded(n_gold):
    votes = copied_votes(n_gold)
    consensus = fit(votes, draws=20)
    [one] = consensus.fits
    assert one.counted_groups
    known_i = one.ballot.gold_i != UNKNOWN
    assert known_i.sum() == n_gold
    frame = audit_rules(votes, consensus, rules=["any"], reference="gold").frame
    whole = frame.filter(metric="log_loss", question="(all)", label="(all)", domain="(all)")
    losses = dict(zip(whole["rule"], whole["value"], strict=True))
    for rule, p_ik in (("consensus", one.p_ik), ("model", one.model_ik)):
        by_hand = -np.log(p_ik[known_i, one.ballot.gold_i[known_i]]).mean()
        assert_allclose(losses[rule], by_hand, rtol=1e-9)
