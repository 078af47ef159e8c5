"""Agreement against published worked examples, pairs counted one by one, and a plain bootstrap."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import moral_entropy as me
from moral_entropy.errors import UsageError
from moral_entropy.items.agreement import OF_PAIRS, STATISTICS, WEIGHTED, measure_agreement

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: 4 observers, 12 units, 0 = no vote.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]
# 14 raters, 10 subjects, 5 categories: the worked example of Fleiss' kappa in the encyclopaedias.
FLEISS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)


def krippendorff_counts():
    table = np.array(KRIPPENDORFF)
    return np.stack([(table == k).sum(axis=0) for k in range(1, 6)], axis=1)


def values(counts_ik, **options):
    return {statistic: value for statistic, value, *_ in measure_agreement(counts_ik, **options)}


def plain(counts_ik):
    """All by listing votes and pairs, nothing shared with the package."""
    n_labels = counts_ik.shape[1]
    units = [np.repeat(np.arange(n_labels), row).tolist() for row in counts_ik]
    pairable = [unit for unit in units if len(unit) >= 2]
    shares = [np.mean([a == b for a, b in combinations(unit, 2)]) for unit in pairable]
    observed = float(np.mean(shares))
    pi_k = np.mean([[unit.count(k) / len(unit) for k in range(n_labels)] for unit in units if unit], axis=0)
    chance = float((pi_k**2).sum())
    pool = [vote for unit in pairable for vote in unit]
    different = sum(
        sum(a != b for n, a in enumerate(unit) for m, b in enumerate(unit) if n != m) / (len(unit) - 1)
        for unit in pairable
    )
    expected = sum(a != b for n, a in enumerate(pool) for m, b in enumerate(pool) if n != m) / (len(pool) - 1)
    return {
        "krippendorff_alpha": 1 - different / expected if expected else np.nan,
        "fleiss_kappa": (observed - chance) / (1 - chance) if chance < 1 - 1e-12 else np.nan,
        "pabak": (n_labels * observed - 1) / (n_labels - 1),
        "percent_agreement": observed,
        "gwet_ac1": _gwet(observed, pi_k),
    }


def _gwet(observed, pi_k):
    chance = float((pi_k * (1 - pi_k)).sum()) / (len(pi_k) - 1)
    return (observed - chance) / (1 - chance)


def test_krippendorffs_own_example():
    # The other three are those Gwet's irrCAC gives for the same table.
    found = values(krippendorff_counts())
    assert found["krippendorff_alpha"] == pytest.approx(0.743, abs=5e-4)
    assert found["fleiss_kappa"] == pytest.approx(0.76117, abs=5e-6)
    assert found["pabak"] == pytest.approx(0.77273, abs=5e-6)
    assert found["percent_agreement"] == pytest.approx(0.81818, abs=5e-6)


def test_gwets_coefficients_equal_the_published_ones():
    # Printed for the same 12 units by irrCAC (Gwet 2019) and by packages that follow it; weights quadratic.
    found = values(krippendorff_counts(), value_k=np.arange(1.0, 6.0))
    published = {
        "percent_agreement": 0.8181818, "gwet_ac1": 0.7754441, "fleiss_kappa": 0.7611693,
        "krippendorff_alpha": 0.7434211, "weighted_percent_agreement": 0.9753788, "gwet_ac2": 0.9140007,
        "weighted_fleiss_kappa": 0.8649351, "krippendorff_alpha_interval": 0.8491071,
    }  # fmt: skip
    assert {name: round(found[name], 4) for name in published} == {name: round(v, 4) for name, v in published.items()}
    # Krippendorff (2011) prints the ordinal one with three digits.
    assert found["krippendorff_alpha_ordinal"] == pytest.approx(0.815, abs=5e-4)


def test_the_example_of_the_package_krippendorff():
    # Three coders, fifteen units, * for no vote: its documentation prints 0.691 nominal and 0.811 interval.
    coders = ["*****341211" + "33*3", "1*21334" + "3*******", "**21344" + "*21133*4"]
    counts = np.array([[unit.count(label) for label in "1234"] for unit in zip(*coders, strict=True)])
    found = values(counts, value_k=np.arange(1.0, 5.0), resamples=0)
    assert found["krippendorff_alpha"] == pytest.approx(0.691, abs=5e-4)
    assert found["krippendorff_alpha_interval"] == pytest.approx(0.811, abs=5e-4)


def rated(seed, n_items=120, raters="abc", noise=0.7):
    """Ratings from 1 to 5 by everybody on everything."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, n_items)
    said = np.clip(np.rint(truth[:, None] + rng.normal(0, noise, (n_items, len(raters)))), 1, 5).astype(int)
    rows = [(i, name, str(said[i, a])) for i in range(n_items) for a, name in enumerate(raters)]
    return pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row"), said


def test_the_door_measures_every_question_and_pair():
    frame, said = rated(1)
    found = me.agreement(frame)
    assert set(found["statistic"]) == {*STATISTICS, *WEIGHTED, *OF_PAIRS}
    for one, two in combinations(range(3), 2):
        pair = found.filter(annotators=f"{'abc'[one]} · {'abc'[two]}")
        for statistic, weights in (("cohen_kappa", None), ("weighted_kappa", "quadratic")):
            row = pair.filter(statistic=statistic).row(0, named=True)
            assert row["value"] == pytest.approx(plain_kappa(said[:, one], said[:, two], weights))
            assert row["low"] < row["value"] < row["high"] and row["n"] == 120
    assert set(me.agreement(frame, scale="nominal", pairs=False)["statistic"]) == set(STATISTICS)


def plain_kappa(one, two, weights):
    """Cohen's kappa as a ratio of mean distances: of the pairs as they are, and of all pairs."""

    def far(a, b):
        return float(a != b) if weights is None else (a - b) ** 2

    observed = np.mean([far(a, b) for a, b in zip(one, two, strict=True)])
    return 1 - observed / np.mean([far(a, b) for a in one for b in two])


def test_the_difference_of_two_sets_has_an_interval_that_holds_it():
    (sharp, _), (dull, _) = rated(2, noise=0.4), rated(2, noise=1.2)
    found = me.agreement(sharp, dull).filter(statistic="krippendorff_alpha_ordinal").row(0, named=True)
    single = [me.agreement(frame, pairs=False).filter(statistic="krippendorff_alpha_ordinal")["value"].item()
              for frame in (sharp, dull)]  # fmt: skip
    assert found["value"] == pytest.approx(single[0] - single[1]) and 0 < found["low"] < found["value"] < found["high"]
    same = me.agreement(sharp, sharp)
    assert same["value"].to_list() == pytest.approx([0.0] * same.height) and same["high"].max() == pytest.approx(0.0)
    with pytest.raises(UsageError, match="no question in common"):
        me.agreement(sharp, dull.with_columns(question=pl.lit("other")))


def test_the_interval_of_a_difference_holds_the_truth():
    whole = {noise: me.agreement(rated(9, 6_000, noise=noise)[0], pairs=False) for noise in (0.5, 0.8)}
    true = [frame.filter(statistic="krippendorff_alpha")["value"].item() for frame in whole.values()]
    held = 0
    for seed in range(20):
        pair = me.agreement(rated(seed, 60, noise=0.5)[0], rated(seed + 50, 60, noise=0.8)[0])
        row = pair.filter(statistic="krippendorff_alpha").row(0, named=True)
        held += row["low"] <= true[0] - true[1] <= row["high"]
    assert held >= 15


def test_the_worked_example_of_fleiss_kappa():
    found = values(FLEISS)
    assert found["fleiss_kappa"] == pytest.approx(0.210, abs=5e-4)
    assert found["percent_agreement"] == pytest.approx(0.378, abs=5e-4)


@settings(max_examples=150, deadline=None)
@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(2, 4)), elements=st.integers(0, 4)))
def test_every_statistic_is_that_of_pairs_counted_one_by_one(counts_ik):
    if (counts_ik.sum(axis=1) >= 2).sum() == 0:
        assert np.isnan(list(values(counts_ik, resamples=0).values())).all()
        return
    found = values(counts_ik, resamples=0)
    for name, value in plain(counts_ik).items():
        np.testing.assert_allclose(found[name], value, atol=1e-9, err_msg=name)


def test_a_weight_is_so_many_items():
    weight_i = np.array([3.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 4.0, 1.0, 1.0])
    repeated = np.repeat(FLEISS, weight_i.astype(int), axis=0)
    assert measure_agreement(FLEISS, weight_i, seed=5) == measure_agreement(repeated, seed=5)


def test_one_label_alone_has_no_alpha_but_full_agreement():
    found = values(np.array([[3, 0], [2, 0]]))
    assert np.isnan(found["krippendorff_alpha"]) and np.isnan(found["fleiss_kappa"])
    assert found["percent_agreement"] == found["pabak"] == 1.0


def test_the_interval_is_that_of_a_plain_bootstrap():
    rng = np.random.default_rng(3)
    share_i = rng.beta(0.6, 1.2, size=400)
    yes_i = rng.binomial(3, share_i)
    counts_ik = np.stack([3 - yes_i, yes_i], axis=1)
    resampled = [list(values(counts_ik[rng.integers(400, size=400)], resamples=0).values()) for _ in range(600)]
    low_f, high_f = np.quantile(resampled, [0.05, 0.95], axis=0)
    found = measure_agreement(counts_ik, seed=1)
    assert tuple(statistic for statistic, *_ in found) == STATISTICS
    for n, (_, value, low, high, _) in enumerate(found):
        assert low <= value <= high
        spread = high_f[n] - low_f[n]
        assert abs(low - low_f[n]) < 0.12 * spread and abs(high - high_f[n]) < 0.12 * spread


def test_the_seed_decides_the_interval_and_the_order_of_items_does_not():
    one, again, other = (measure_agreement(FLEISS, seed=seed) for seed in (1, 1, 2))
    assert one == again == measure_agreement(FLEISS[::-1], seed=1) != other


def test_many_labels_and_many_votes_do_not_overflow():
    rng = np.random.default_rng(0)
    counts_ik = rng.integers(0, 3_000, size=(40, 12))
    found = values(counts_ik, resamples=20)
    pairs_i = (counts_ik * (counts_ik - 1)).sum(axis=1) / (counts_ik.sum(axis=1) * (counts_ik.sum(axis=1) - 1))
    assert found["percent_agreement"] == pytest.approx(pairs_i.mean(), rel=1e-12)
