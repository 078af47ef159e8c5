"""Silence where items may lie between labels, against sums over states and voters listed one by one."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from support import plain_states, random_rows, votes_of

from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.model.fit import fit
from moral_entropy.rules import any_by_votes as module
from moral_entropy.rules.table import audit_rules


def fitted(n_labels, n_domains):
    votes = votes_of(random_rows(np.random.default_rng(4), 70, 5, n_labels, share=0.6), n_labels, n_items=70)
    domain_i = (np.arange(70) % 3 == 0).astype(np.int32) % n_domains
    votes = replace(votes, domains=("a", "b")[:n_domains], domain_i=domain_i)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, draws=15)


def plain_rates(one, domain_i, target, n_votes):
    """By draw, the share that is flagged of what items with so many votes lack of the target label."""
    n_labels, ballot = one.ballot.n_labels, one.ballot
    mix_zk, group_z = plain_states(n_labels)
    rates = []
    for weight_dg, theta in zip(one.drawn.weight_dg, one.confusion_sakv, strict=True):
        flagged, lacking = 0.0, 0.0
        for i in np.flatnonzero(ballot.votes_i == n_votes):
            codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]
            for z, mix_k in enumerate(mix_zk):
                weight = weight_dg[domain_i[i], group_z[z]] / (group_z == group_z[z]).sum() * (1 - mix_k[target])
                silent = np.prod([1 - mix_k @ theta[code // n_labels, :, target] for code in codes])
                flagged, lacking = flagged + weight * (1 - silent), lacking + weight
        rates.append(flagged / lacking)
    return np.array(rates)


@pytest.mark.parametrize(("n_labels", "n_domains"), [(2, 1), (2, 2), (3, 2)])
def test_silence_between_labels_is_that_of_states_listed_one_by_one(n_labels, n_domains, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 5)
    consensus = fitted(n_labels, n_domains)
    [one], target = consensus.fits, 1
    frame = audit_rules(consensus.votes, consensus, rules=["any"]).any_by_votes.filter(label=one.ballot.labels[target])
    for n_votes in (1, 3, 5):
        row = frame.filter(votes=n_votes).row(0, named=True)
        assert row["n"] == np.count_nonzero(one.ballot.votes_i == n_votes) > 0
        expected_s = plain_rates(one, consensus.votes.domain_i, target, n_votes)
        np.testing.assert_allclose(row["predicted"], expected_s.mean(), rtol=1e-10)
        ends = np.quantile(expected_s, [0.05, 0.95])
        np.testing.assert_allclose([row["predicted_low"], row["predicted_high"]], ends, rtol=1e-9)
    assert (frame.sort("votes")["curve"].diff().drop_nulls() > 0).all()
