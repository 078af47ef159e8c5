"""Near-copies are named, honest annotators are not, and every residual is held against loops."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from support import plain_states, random_rows, votes_of

from moral_entropy import fit, simulate_votes
from moral_entropy.checks import dependence as module
from moral_entropy.checks.dependence import alike_groups, check_dependence, excess_agreement
from moral_entropy.checks.votes import check_votes
from moral_entropy.findings import Finding, merge_alike
from moral_entropy.model.patterns import collapse
from moral_entropy.model.posterior import state_posterior

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

MODELS = pytest.mark.parametrize("model", ["mixed", "paper"])


def fitted(votes, **options):
    return fit(votes, **{"draws": 0, **options})


def excess_in(votes, **options):
    [one] = fitted(votes, **options).fits
    posterior_rz = state_posterior(one.patterns, one.states, one.mode, slice(0, one.patterns.n_rows))
    return excess_agreement(one.patterns, posterior_rz, one.states.votes_azv(one.confusion_akv))


def plain_parameters(votes, one):
    """How annotators vote by state, what states weigh, and their probabilities for each item, from the definitions."""
    if one.options.model == "paper":
        return one.confusion_akv, one.prevalence_k, one.posterior_ik
    mix_zk, group_z = plain_states(one.ballot.n_labels)
    vote_azv = np.einsum("zk,akv->azv", mix_zk, one.confusion_akv)
    weight_z = (one.mode.weight_dg[0] / np.bincount(group_z))[group_z]
    return (
        vote_azv,
        weight_z,
        np.array([plain_states_of(one.ballot, i, weight_z, vote_azv) for i in range(one.ballot.n_items)]),
    )


def plain_states_of(ballot, i, weight_z, vote_azv):
    """Probabilities of one item's states, vote by vote."""
    state_z = weight_z.copy()
    for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
        state_z = state_z * vote_azv[code // ballot.n_labels, :, code % ballot.n_labels]
    return state_z / state_z.sum()


def plain_residual(theta, state_iz, i, a, b, said):
    """The residual of one pair on one item, with loops."""
    total = 0.0
    for z in range(theta.shape[1]):
        for v in range(theta.shape[2]):
            error_a = float(said[i, a] == v) - theta[a, z, v]
            error_b = float(said[i, b] == v) - theta[b, z, v]
            total += state_iz[i, z] * error_a * error_b
    return total


@MODELS
@pytest.mark.parametrize("n_labels", [2, 3])
def test_residuals_agree_with_loops(n_labels, model):
    rows = random_rows(np.random.default_rng(3), 90, 5, n_labels)
    votes = votes_of(rows, n_labels)
    [one] = fitted(votes, model=model).fits
    theta, _, state_iz = plain_parameters(votes, one)
    said = {(i, a): k for i, a, k in rows}
    pairs = [(i, a, b) for i in range(90) for a in range(5) for b in range(a) if (i, a) in said and (i, b) in said]
    residuals = [plain_residual(theta, state_iz, i, a, b, said) for i, a, b in pairs]
    by_item = [sum(r for r, (i, _, _) in zip(residuals, pairs, strict=True) if i == item) for item in range(90)]
    found = excess_in(votes, model=model)
    assert found["items"] == len({i for i, _, _ in pairs})
    assert found["excess"] == pytest.approx(np.mean(residuals), abs=1e-9)
    assert found["error"] == pytest.approx(np.sqrt(np.sum(np.square(by_item))) / len(pairs))
    assert found["agreement"] == pytest.approx(np.mean([said[i, a] == said[i, b] for i, a, b in pairs]))


@MODELS
def test_independent_votes_are_left_alone(model):
    for seed in range(12):
        votes = simulate_votes(n_items=500, n_annotators=10, votes_per_item=5, seed=seed).votes
        assert not [finding for finding in check_dependence(fitted(votes, model=model)) if finding.is_warning]


# --- Alike ------------------------------------------------------------------------------------------------------------


def panel(seed, *, n_items=300, right=(0.7, 0.95), copies=(), equal=0.97, share=1.0, n_labels=2, hard=0.0, n=8):
    """Votes of people of known skill; those of `copies` say what the first of them says on `equal` of the items."""
    rng = np.random.default_rng(seed)
    truth_i, right_a = rng.integers(n_labels, size=n_items), rng.uniform(*right, size=n)
    right_ia = np.where(rng.random(n_items)[:, None] < hard, 0.55, right_a)
    other_ia = rng.integers(1, n_labels, size=(n_items, n))
    vote_ia = (truth_i[:, None] + other_ia * (rng.random((n_items, n)) >= right_ia)) % n_labels
    for a in copies[1:]:
        differs_i = rng.integers(1, n_labels, size=n_items) * (rng.random(n_items) >= equal)
        vote_ia[:, a] = (vote_ia[:, copies[0]] + differs_i) % n_labels
    cast_ia = rng.random((n_items, n)) < share
    return votes_of([(i, a, int(vote_ia[i, a])) for i, a in np.argwhere(cast_ia).tolist()], n_labels)


def groups_in(votes):
    return [sorted(group.tolist()) for group, _, _ in alike_groups(collapse(votes.ballots[0]))]


CLEAN = {
    "plain": {},
    "all of them good, who agree because they are right": {"right": (0.95, 0.99)},
    "two good ones among guessers": {"right": (0.6, 0.99), "n": 7},
    "hard items": {"hard": 0.3},
    "five labels": {"n_labels": 5, "share": 0.7},
    "not everybody on every item": {"share": 0.6},
}


@pytest.mark.parametrize("design", CLEAN)
def test_honest_annotators_are_not_named(design):
    assert sum(bool(groups_in(panel(seed, **CLEAN[design]))) for seed in range(30)) <= 1


NEAR = {
    "two of eight": {"copies": (0, 1)},
    "three of eight": {"copies": (0, 1, 2)},
    "two of five": {"copies": (0, 1), "n": 5},
    "two of eight, hard items": {"copies": (0, 1), "hard": 0.3},
    "two of eight, five labels": {"copies": (0, 1), "n_labels": 5, "share": 0.8},
}


@pytest.mark.parametrize("design", NEAR)
def test_near_copies_are_named_as_a_group(design):
    """Equal votes on 97% of the items, errors shared: more than the fit could tell, which believes them."""
    wanted = sorted(NEAR[design]["copies"])
    assert sum(groups_in(panel(seed, **NEAR[design], right=(0.65, 0.9))) == [wanted] for seed in range(30)) >= 27


def test_what_is_said_of_a_group_and_that_merging_does_it():
    votes = panel(1, copies=(2, 5, 6), right=(0.65, 0.85))
    consensus = fitted(votes)
    [finding] = [finding for finding in check_votes(consensus) if finding.metric == "alike"]
    merged = fitted(votes, merge=("2+5+6",))
    changed = (merged.fits[0].label_i != consensus.fits[0].label_i).mean()
    assert finding.subject == "2, 5, 6" and finding.level == "doubt" and "--merge 2+5+6" in finding.remedy
    assert f"counted as one, {changed:.1%} of the labels would change" in finding.text and changed > 0.01
    assert re.search(r"agree on 9\d% of the items they share, where [67]\d% was to be expected", finding.text)
    # Once they count as one, nothing is left to say.
    assert not [finding for finding in check_votes(merged) if finding.metric == "alike"]


def test_groups_of_people_have_a_line_each():
    groups = [Finding("votes", "alike", 0.2, "q", subject=who, level="doubt", text=f"{who} agree.") for who in "ab"]
    elsewhere = replace(groups[1], question="r")
    assert [(worst.subject, places) for worst, places in merge_alike([*groups, elsewhere])] == [("a", []), ("b", ["r"])]


def test_the_papers_model_and_anonymous_votes_name_nobody():
    votes = panel(1, copies=(2, 5), right=(0.65, 0.85))
    assert not [finding for finding in check_votes(fitted(votes, model="paper")) if finding.metric == "alike"]


# --- Excess -----------------------------------------------------------------------------------------------------------


def test_hard_items_that_all_get_wrong_raise_the_overall_figure():
    rng = np.random.default_rng(1)
    truth, hard = rng.integers(2, size=600), rng.random(600) < 0.4
    rows = []
    for i in range(600):
        for a in rng.choice(8, size=5, replace=False):
            right = rng.random() < (0.5 if hard[i] else 0.97)
            rows.append((i, int(a), int(truth[i] if right else 1 - truth[i])))
    clean = simulate_votes(n_items=600, n_annotators=8, votes_per_item=5, seed=3).votes
    excess = {}
    for model in ("paper", "mixed"):
        found = {f.metric: f for f in check_dependence(fitted(votes_of(rows), model=model))}
        calm = {f.metric: f for f in check_dependence(fitted(clean, model=model))}
        assert calm["excess_agreement"].level == "info"
        excess[model] = abs(found["excess_agreement"].value)
        if model == "paper":
            assert excess[model] > 2 * abs(calm["excess_agreement"].value)
    # To the mixed model such an item lies between the labels, where votes are independent again.
    assert excess["mixed"] < 0.5 * excess["paper"]


def test_many_votes_are_sampled(monkeypatch):
    votes = panel(3, n_items=4_000, copies=(2, 5), share=0.6, right=(0.65, 0.85))
    monkeypatch.setattr(module, "MOST_PAIRS", 10_000)
    [found] = check_dependence(fitted(votes, model="paper"))
    assert found.n < 3_000
    assert groups_in(votes) == [[2, 5]]


def test_one_vote_an_item_cannot_be_compared():
    votes = votes_of([(i, i % 3, int(i % 2)) for i in range(60)])
    [found] = check_dependence(fitted(votes))
    assert found.n == 0 and "cannot be told" in found.text and not found.is_warning


def test_anonymous_votes_have_an_overall_figure_only():
    votes = votes_of(random_rows(np.random.default_rng(3), 80, 4, 2, share=1.0))
    ballot = votes.ballots[0]
    label_iv = np.sort(ballot.code_v.reshape(80, 4) % 2, axis=1)
    shared = replace(ballot, annotator_a=np.array([0]), code_v=label_iv.ravel().astype(np.int32))
    anonymous = replace(votes, ballots=(shared,), annotators=pl.Series(["(anyone)"]), anonymous=True)
    [found] = check_dependence(fitted(anonymous))
    assert found.metric == "excess_agreement" and found.n == 80
