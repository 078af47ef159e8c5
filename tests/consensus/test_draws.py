"""Where the Gaussian sits: with every label known, rows are Beta and its centre and spread can be written down."""

from __future__ import annotations

import numpy as np
import pytest
from support import random_rows, votes_of

from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors


def known_votes(seed=3, n_items=60, n_annotators=3):
    rows = random_rows(np.random.default_rng(seed), n_items, n_annotators, 2)
    gold_i = np.random.default_rng(seed + 1).integers(2, size=n_items).astype(np.int16)
    return rows, gold_i, votes_of(rows, gold_i=gold_i)


@pytest.mark.parametrize(
    ("coordinates", "centre_less", "spread_less"),
    [("jacobian", 1.0, 0.0), ("paper", 1.0, 1.0), ("logit-mode", 0.0, 0.0), ("jeffreys", 0.5, 0.5)],
)
def test_centre_and_spread_with_every_label_known(coordinates, centre_less, spread_less):
    rows, gold_i, votes = known_votes()
    priors = Priors(prevalence=2.0, diagonal=3.0, off_diagonal=1.7)
    one = fit(votes, priors=priors, draws=40_000, model="paper", use_gold=True, coordinates=coordinates).fits[0]
    assert one.curvature.coordinates == coordinates
    for annotator in range(3):
        for true in range(2):
            count_v = np.where(np.arange(2) == true, 3.0, 1.7)
            for item, who, label in rows:
                count_v[label] += who == annotator and gold_i[item] == true
            share_v = (count_v - centre_less) / (count_v - centre_less).sum()
            information = (count_v - spread_less).sum() * share_v.prod()
            x_s = np.log(one.confusion_sakv[:, annotator, true, 1] / one.confusion_sakv[:, annotator, true, 0])
            assert x_s.mean() == pytest.approx(np.log(share_v[1] / share_v[0]), abs=4 / np.sqrt(40_000 * information))
            assert x_s.std() == pytest.approx(information**-0.5, rel=0.02)


def test_under_flat_priors_jeffreys_needs_no_other_coordinates():
    rows = [(item, annotator, int(item < 20)) for item in range(40) for annotator in range(3)]
    flat = Priors(diagonal=1.0, off_diagonal=1.0)
    edge, inside = (
        fit(votes_of(rows), priors=flat, draws=50, model="paper", coordinates=coordinates).fits[0]
        for coordinates in ("jacobian", "jeffreys")
    )
    # The mode lies on the edge of the simplex, where only some coordinates have a curvature.
    assert edge.curvature.coordinates == "logit-mode"
    assert inside.curvature.coordinates == "jeffreys"
    assert inside.curvature.positive_definite
