"""Votes of known truth: labels and rates are found again, and thin or rare votes do no harm."""

import numpy as np
import pytest
from support import votes_of

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.model.fit import fit

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def fitted(simulated, **options):
    """The fit, the accuracy of its labels, and that of the plain vote."""
    [found] = fit(simulated.votes, **({"draws": 0} | options)).fits
    vote_i = found.ballot.counts_ik.argmax(axis=1)
    return found, (found.label_i == simulated.truth_i).mean(), (vote_i == simulated.truth_i).mean()


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_labels_rates_and_prevalence_are_recovered(n_labels, model):
    simulated = simulate_votes(n_items=3_000, n_annotators=12, votes_per_item=6, n_labels=n_labels, seed=1)
    found, right, vote = fitted(simulated, model=model)
    assert right >= vote
    assert np.abs(found.prevalence_k - simulated.prevalence_k).max() < 0.03
    assert np.abs(found.confusion_akv - simulated.confusion_akv).mean() < 0.03


def test_five_thousand_annotators_of_three_votes():
    found, right, vote = fitted(simulate_votes(n_items=3_000, n_annotators=5_000, votes_per_item=5, seed=0))
    assert found.search.converged and found.ballot.n_annotators > 4_500
    assert vote == pytest.approx(0.906, abs=0.002)
    assert right >= 0.89


@pytest.mark.parametrize("share", [0.1, 0.335, 0.6])
def test_one_vote_per_item_keeps_the_share_of_yes(share):
    rng = np.random.default_rng(3)
    votes = votes_of([(i, i % 25, int(rng.random() < share)) for i in range(2_000)])
    [found] = fit(votes, draws=0).fits
    said = votes.ballots[0].counts_ik[:, 1].mean()
    assert (found.label_i == 1).mean() == pytest.approx(said, abs=0.03)
    assert found.p_ik[:, 1].mean() == pytest.approx(said, abs=0.03)


def test_an_item_of_one_vote_has_no_interval():
    """Its p is the share of the votes alone, which no draw moves: that does not make it certain."""
    simulated = simulate_votes(n_items=200, n_annotators=6, votes_per_item=1.5, seed=2)
    found, *_ = fitted(simulated, draws=100)
    single_i = found.ballot.votes_i == 1
    assert 0 < single_i.sum() < 200
    assert np.isnan(found.low_i[single_i]).all() and np.isnan(found.high_i[single_i]).all()
    assert (found.low_i < found.high_i)[~single_i].all()


@pytest.mark.parametrize(("prevalence", "off"), [(0.05, 0.01), (0.005, 0.005)])
def test_rare_labels(prevalence, off):
    simulated = simulate_votes(
        n_items=10_000, n_annotators=20, votes_per_item=5, prevalence_k=[1 - prevalence, prevalence],
        accuracy=(0.7, 0.95), seed=1,
    )  # fmt: skip
    found, right, vote = fitted(simulated)
    assert right > vote + 0.01
    assert (found.label_i == 1).mean() == pytest.approx(simulated.truth_i.mean(), abs=off)


def with_copies(n_honest, n_copies, right, seed=0):
    """Votes of honest annotators, the last of whom has copies, and the same votes without them; the truth."""
    rng = np.random.default_rng(seed)
    truth_i = (rng.random(800) < 0.4).astype(int)
    answer_ia = np.where(rng.random((800, n_honest)) < right, truth_i[:, None], 1 - truth_i[:, None])
    alone = [(i, a, answer_ia[i, a]) for i in range(800) for a in range(n_honest)]
    copies = [(i, n_honest + c, answer_ia[i, -1]) for i in range(800) for c in range(n_copies)]
    return votes_of(alone + copies), votes_of(alone), truth_i


@pytest.mark.parametrize(("n_honest", "n_copies"), [(5, 1), (5, 4)])
def test_identical_copies_change_nothing(n_honest, n_copies):
    copied, alone, truth_i = with_copies(n_honest, n_copies, np.full(n_honest, 0.75))
    right, before = ((fit(votes, draws=0).fits[0].label_i == truth_i).mean() for votes in (copied, alone))
    assert right == pytest.approx(before, abs=0.01)


def test_four_identical_voters_who_are_nearly_always_wrong_are_named():
    copied, _, truth_i = with_copies(6, 3, np.array([0.75] * 5 + [0.03]))
    consensus = fit(copied, draws=0)
    assert (consensus.fits[0].label_i == truth_i).mean() > 0.9
    [named] = [finding for finding in consensus.findings if finding.metric == "near_copies"]
    assert named.subject == "5, 6, 7, 8" and "counted as one annotator" in named.text


def test_ratings_keep_every_level_that_voters_use():
    rng = np.random.default_rng(2)
    level_i, lean_a = rng.integers(6, size=600), rng.normal(0, 0.4, 15)
    rows = [
        (i, int(a), int(np.clip(np.rint(level_i[i] + lean_a[a] + rng.normal(0, 0.7)), 0, 5)))
        for i in range(600)
        for a in rng.choice(15, 5, replace=False)
    ]
    [fitted_one] = fit(votes_of(rows, 6), draws=0).fits
    labels_k, truth_k = (np.bincount(x, minlength=6) for x in (fitted_one.label_i, level_i))
    assert (labels_k > 0.5 * truth_k).all()


def test_an_item_prior_of_no_weight_changes_nothing_and_one_of_some_weight_does():
    simulated = simulate_votes(n_items=300, n_annotators=6, votes_per_item=2, seed=4)
    prior_ik = 0.1 + 0.8 * np.eye(2)[simulated.truth_i]
    plain, none, told = (
        fit(simulated.votes, draws=50, item_priors=given).fits[0]
        for given in (None, {"label": (prior_ik, 0.0)}, {"label": (prior_ik, 4.0)})
    )
    for name in ("p_ik", "model_ik", "low_i", "high_i", "epistemic_i"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(none, name))
    right, before = ((fitted_one.label_i == simulated.truth_i).mean() for fitted_one in (told, plain))
    assert right > before + 0.02


@pytest.mark.parametrize("n_labels", [8, 15])
def test_every_label_that_voters_use_is_kept(n_labels):
    simulated = simulate_votes(n_items=1_000, n_annotators=20, votes_per_item=5, n_labels=n_labels, seed=1)
    found, right, vote = fitted(simulated)
    assert right >= vote
    said_k, labels_k = (np.bincount(x, minlength=n_labels) for x in (simulated.truth_i, found.label_i))
    assert (np.abs(labels_k - said_k) <= 0.25 * said_k + 5).all()


def test_items_between_labels_are_told_apart():
    """Half of the items are yes to every other voter: their share is published, and most of it is ambiguity."""
    rng = np.random.default_rng(5)
    between_i = np.arange(200) % 2 == 0
    p_i = np.where(between_i, 0.5, (np.arange(200) // 2) % 2)
    said_ia = rng.random((200, 30)) < 0.05 + 0.9 * p_i[:, None]
    [found] = fit(votes_of([(i, a, int(said_ia[i, a])) for i in range(200) for a in range(30)]), draws=0).fits
    assert (found.interior_i[between_i] > 0.9).mean() > 0.95
    assert found.interior_i[~between_i].mean() < 0.15
    assert np.abs(found.p_ik[between_i, 1] - said_ia[between_i].mean(axis=1)).mean() < 0.05
