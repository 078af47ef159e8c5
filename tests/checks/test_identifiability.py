"""What votes cannot tell is found where it was planted, and not where it was not."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from made_votes import two_teams
from numpy.testing import assert_allclose
from support import plain_em, plain_log_posterior, random_rows, vote_rows, votes_of

from moral_entropy.checks.density import log_posterior_of
from moral_entropy.checks.identifiability import examine_identifiability
from moral_entropy.checks.label_switching import candidate_teams, cheapest_switches, switched
from moral_entropy.checks.links import find_groups, same_voters, shared_items
from moral_entropy.checks.vote_access import votes_of_fit
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.patterns import collapse
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning


def fitted(votes, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **{"draws": 200, "seed": 1, **options})


def findings(votes, **options):
    return examine_identifiability(fitted(votes, **options))


def alarms(found):
    return {finding.figure: finding for finding in found if finding.alarms}


def plain_groups(rows):
    """Components of annotators and items by walking from each to whatever a vote links it to."""
    links = {}
    for i, a, _ in rows:
        links.setdefault(("i", i), set()).add(("a", a))
        links.setdefault(("a", a), set()).add(("i", i))
    groups, left = [], set(links)
    while left:
        group, todo = set(), [left.pop()]
        while todo:
            node = todo.pop()
            if node not in group:
                group.add(node)
                todo += links[node]
        left -= group
        groups.append((sorted(n for kind, n in group if kind == "a"), sorted(n for kind, n in group if kind == "i")))
    return sorted(groups)


@settings(max_examples=60, deadline=None)
@given(made=vote_rows(max_items=14, max_annotators=7))
def test_groups_are_what_a_walk_finds(made):
    rows, n_labels = made
    votes = votes_of(rows, n_labels)
    group_a, items_g = find_groups(collapse(votes.ballots[0]))
    voted = sorted({a for _, a, _ in rows})
    found = {}
    for a in voted:
        found.setdefault(int(group_a[a]), []).append(a)
    plain = plain_groups(rows)
    assert sorted(found.values()) == [people for people, _ in plain]
    for people, items in plain:
        assert items_g[group_a[people[0]]] == len(items)
    assert (np.diff(items_g) <= 0).all()


def test_links_do_not_depend_on_how_votes_are_cut(monkeypatch):
    from moral_entropy.checks import links

    rows = [(i, a, 0) for i, a in [(0, 0), (0, 1), (1, 1), (1, 2), (2, 3), (2, 4), (3, 5)]] + [(3, 6, 1)]
    patterns = collapse(votes_of(rows).ballots[0])
    whole = find_groups(patterns)[0].tolist()
    for cut in (1, 2, 3):
        monkeypatch.setattr(links, "VOTES_AT_ONCE", cut)
        assert find_groups(patterns)[0].tolist() == whole
    assert len(set(whole)) == 3


def test_shared_items_are_counted():
    rows = random_rows(np.random.default_rng(4), 60, 6, 2, share=0.4)
    on = {a: {i for i, b, _ in rows if b == a} for a in range(6)}
    shared = shared_items(collapse(votes_of(rows).ballots[0])).toarray()
    assert shared.tolist() == [[float(len(on[a] & on[b])) for b in range(6)] for a in range(6)]


def test_same_voters_whatever_they_vote():
    rows = random_rows(np.random.default_rng(1), 20, 4, 2)
    one = votes_of(rows).ballots[0]
    assert same_voters(one, votes_of([(i, a, 1 - k) for i, a, k in rows]).ballots[0])
    assert not same_voters(one, votes_of(rows[:-1], n_items=20).ballots[0])


def test_an_adversary_is_named_and_nobody_else():
    right_a = np.array([0.85, 0.8, 0.9, 0.85, 0.8, 0.15])
    confusion_akv = np.stack([right_a, 1 - right_a, 1 - right_a, right_a], axis=1).reshape(-1, 2, 2)
    made = simulate_votes(n_items=300, n_annotators=6, votes_per_item=5, confusion_akv=confusion_akv, seed=3)
    found = findings(made.votes)
    [named] = [finding for finding in found if finding.figure == "youden"]
    assert named.subject == "5" and named.value == pytest.approx(-0.7, abs=0.1) and named.low < named.value < named.high
    assert alarms(found)["below_chance"].value == 1 and "5; 16." in alarms(found)["below_chance"].text


@pytest.mark.parametrize("n_labels", [2, 3])
def test_clean_votes_raise_no_alarm(n_labels):
    made = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5, n_labels=n_labels, seed=5)
    found = findings(made.votes)
    assert not alarms(found)
    assert {"below_chance", "unsupported_labels", "groups", "switch_cost_all"} <= {f.figure for f in found}


@pytest.mark.parametrize("reversed_team", [True, False])
def test_a_team_on_few_links_can_switch_and_a_linked_one_cannot(reversed_team):
    votes, _ = two_teams(links=1, items=(220, 160), reversed_team=reversed_team)
    teams = {f.subject: f for f in findings(votes) if f.figure == "switch_cost"}
    assert set(teams) == {"0 · 1 · 2 · 3 and 1 more", "5 · 6 · 7 · 8 and 1 more"}
    assert all(f.level == "doubt" for f in teams.values())
    # All items of the team but those in the balance.
    assert 150 <= teams["5 · 6 · 7 · 8 and 1 more"].n <= 160
    linked, _ = two_teams(links=60, items=(220, 160), reversed_team=False)
    [calm] = [f for f in findings(linked) if f.figure == "switch_cost"]
    assert calm.level == "info" and calm.value > 20


def test_a_team_that_takes_everyone_along_is_everyone():
    """Half of twelve who all vote together turn the others when switched: that is no team of its own."""
    for seed in (161, 171, 189):
        votes = simulate_votes(n_items=1_000, n_annotators=12, votes_per_item=5, seed=seed).votes
        assert not alarms(findings(votes))


def test_a_reversed_team_with_links_is_found():
    votes, _ = two_teams(links=80)
    found = alarms(findings(votes))
    # Either the fit reads the team as reversed, and it is below chance, or it does not, and a better mode is named.
    assert "below_chance" in found or (found["switch_cost"].level == "bad" and found["switch_cost"].value < -10)


def test_reversed_annotators_among_others_are_below_chance_together():
    right_a = np.array([0.85, 0.85, 0.85, 0.85, 0.15, 0.15])
    confusion_akv = np.stack([right_a, 1 - right_a, 1 - right_a, right_a], axis=1).reshape(-1, 2, 2)
    made = simulate_votes(n_items=300, n_annotators=6, votes_per_item=6, confusion_akv=confusion_akv, seed=3)
    found = findings(made.votes)
    assert {f.subject for f in found if f.figure == "youden"} == {"4", "5"}
    assert alarms(found)["below_chance"].level == "bad"


def test_the_cost_of_a_switch_is_the_difference_of_two_modes():
    votes, _ = two_teams(links=2, items=(120, 90), size=4, votes=3, seed=3)
    priors, ballot = Priors(), votes.ballots[0]
    one = fitted(votes, model="paper").fits[0]
    home = Parameters(np.log(one.prevalence_k), np.log(one.confusion_akv))
    team_a = np.arange(8) >= 4
    [switch] = cheapest_switches(votes_of_fit(one), home, [team_a])
    there, _ = plain_em(votes, switched(home, team_a, (0, 1)), priors)
    expected = plain_log_posterior(votes, home, priors) - plain_log_posterior(votes, there, priors)
    assert switch.changed is not None
    assert switch.cost == pytest.approx(expected, abs=0.01)
    prior = ((priors.beta_akv(ballot) - 1) * (home.log_confusion_akv - there.log_confusion_akv)).sum()
    assert switch.prior == pytest.approx(prior, abs=0.05) and abs(switch.votes) < 6


def test_switching_everyone_costs_what_the_prior_says():
    made = simulate_votes(n_items=200, n_annotators=3, votes_per_item=3, seed=2)
    consensus, priors = fitted(made.votes, model="paper"), Priors()
    [one] = consensus.fits
    [whole] = [f for f in examine_identifiability(consensus) if f.figure == "switch_cost_all"]
    home = Parameters(np.log(one.prevalence_k), np.log(one.confusion_akv))
    there, _ = plain_em(made.votes, switched(home, np.ones(3, dtype=bool), (0, 1)), priors)
    expected = plain_log_posterior(made.votes, home, priors) - plain_log_posterior(made.votes, there, priors)
    assert whole.value == pytest.approx(expected, abs=0.01) and whole.level == "info"
    flat = fitted(made.votes, priors=Priors(diagonal=1.2, off_diagonal=1.2), model="paper")
    [free] = [f for f in examine_identifiability(flat) if f.figure == "switch_cost_all"]
    assert free.value == pytest.approx(0.0, abs=1e-6)


def test_between_labels_too_switching_everyone_costs_what_the_prior_says():
    """The same mode in a mirror: labels and what lies between them trade places, and only the prior can tell."""
    votes = simulate_votes(n_items=200, n_annotators=4, votes_per_item=4, n_labels=3, seed=2).votes
    votes = replace(votes, domains=("a", "b"), domain_i=np.arange(200, dtype=np.int32) % 2)
    [one] = fitted(votes).fits
    everyone, density = np.ones(4, dtype=bool), log_posterior_of(one)
    for pair in ((0, 1), (0, 2), (1, 2)):
        there = switched(one.at, everyone, pair)
        moved_k = np.arange(3)
        moved_k[list(pair)] = pair[::-1]
        assert_allclose(density.posterior_rk(there), density.posterior_rk(one.at)[:, moved_k], atol=1e-9)
        prior = (density.pseudo_akv * (one.at.log_confusion_akv - there.log_confusion_akv)).sum()
        prior += (density.pseudo_g * (one.at.log_weight_g - there.log_weight_g)).sum()
        fell = density.expect(one.at).log_posterior - density.expect(there).log_posterior
        assert fell == pytest.approx(prior, abs=1e-8)


def test_between_labels_a_flat_prior_leaves_everyone_free():
    votes = simulate_votes(n_items=200, n_annotators=3, votes_per_item=3, seed=2).votes
    flat = fitted(votes, priors=Priors(diagonal=1.2, off_diagonal=1.2))
    [free] = [f for f in examine_identifiability(flat) if f.figure == "switch_cost_all"]
    assert free.value == pytest.approx(0.0, abs=1e-6)


def test_a_fit_on_a_switched_mode_is_bad():
    votes, _ = two_teams(links=12, reversed_team=False, items=(150, 100))
    consensus = fitted(votes, model="paper")
    [one] = consensus.fits
    home = Parameters(np.log(one.prevalence_k), np.log(one.confusion_akv))
    away, posterior_ik = plain_em(votes, switched(home, np.arange(10) >= 5, (0, 1)), Priors())
    there = replace(one, prevalence_k=away.weight_g, confusion_akv=away.confusion_akv, posterior_ik=posterior_ik)
    found = examine_identifiability(replace(consensus, fits=(there,)))
    worst = min((f for f in found if f.figure == "switch_cost"), key=lambda f: f.value)
    assert worst.level == "bad" and worst.value < -1 and "may have been swapped" in worst.text


def test_teams_are_found_along_a_chain():
    strong, weak = 40.0, 2.0
    shared = np.zeros((9, 9))
    for team in (range(0, 3), range(3, 6), range(6, 9)):
        for a in team:
            for b in team:
                shared[a, b] = strong
    shared[2, 3] = shared[3, 2] = weak
    shared[5, 6] = shared[6, 5] = weak
    from scipy.sparse import csr_array

    found = candidate_teams(csr_array(shared), np.zeros(9, int))
    teams = {tuple(np.flatnonzero(team_a).tolist()) for team_a in found}
    assert {(0, 1, 2), (3, 4, 5), (6, 7, 8), tuple(range(9))} <= teams


def test_groups_without_a_link_are_counted_and_named():
    votes, _ = two_teams(links=0, reversed_team=False, items=(120, 40))
    found = alarms(findings(votes))
    assert found["groups"].value == 2
    assert "120 items, 5 annotators; 40 items, 5 annotators; 5 is in the second" in found["groups"].text


def test_labels_that_nobody_gave_are_counted_and_explained():
    truth = np.random.default_rng(6).integers(2, size=120)
    rows = [(i, a, int(truth[i])) for i in range(80) for a in (0, 1, 2)]
    # Two who say the opposite, alone on the last forty items.
    rows += [(i, a, int(1 - truth[i])) for i in range(120) for a in (3, 4) if i % 2 or i >= 80]
    consensus = fitted(votes_of(rows))
    [one] = consensus.fits
    counts_ik, label_i = one.ballot.counts_ik, one.label_i
    expected = sum(
        max(counts) == sum(counts) and (sum(counts) > 1 or counts[0] == 1) and counts[label] == 0
        for counts, label in zip(counts_ik.tolist(), label_i.tolist(), strict=True)
    )
    [found] = [f for f in examine_identifiability(consensus) if f.figure == "unsupported_labels"]
    assert found.value == expected == 40 and found.level == "bad"
    # Their unanimous votes speak for the opposite, whatever the prevalence.
    assert f"on {expected} of them the votes themselves" in found.text


def test_a_prevalence_that_outweighs_votes_is_told_from_reversed_votes():
    rows = [(i, a, int(i < 40)) for i in range(43) for a in (0, 1)]
    found = alarms(findings(votes_of(rows), priors=Priors(prevalence=(1, 20_000))))
    assert found["unsupported_labels"].value == 3 and "on 0 of them" in found["unsupported_labels"].text


def test_without_draws_or_names_it_still_answers():
    votes = votes_of(random_rows(np.random.default_rng(3), 50, 4, 2))
    assert not alarms(findings(votes, draws=0))
    ballot = votes.ballots[0]
    shared = replace(ballot, annotator_a=np.array([0]), code_v=np.sort(ballot.code_v % 2).astype(np.int32))
    anonymous = replace(votes, ballots=(shared,), annotators=pl.Series(["(anyone)"]), anonymous=True)
    found = findings(anonymous)
    assert "switch_cost" not in {f.figure for f in found}


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "full"},
        {"pooling": "partial"},
        {"constrain": "better-than-chance"},
        {"model": "paper", "temper": 0.5},
    ],
)
def test_other_ways_to_fit_are_examined_too(options):
    votes, _ = two_teams(links=40, reversed_team=False)
    found = findings(votes, **options)
    assert not alarms(found) and "groups" in {f.figure for f in found}


def test_names_are_shown_as_they_are():
    votes, _ = two_teams(links=0, items=(80, 60), size=3, votes=2)
    named = replace(votes, annotators=pl.Series([f"<b>{a}</b>" for a in range(6)]))
    [groups] = [f for f in findings(named) if f.figure == "groups"]
    assert "<b>3</b> is in the second" in groups.text


def test_of_several_labels_one_that_nobody_gave_is_counted_though_votes_are_split():
    """Two votes for one label and one for another, where the consensus is the third."""
    votes = votes_of([(i, a, i % 3) for i in range(60) for a in range(4)] + [(60, 0, 0), (60, 1, 0), (60, 2, 1)], 3)
    [one] = fitted(votes).fits
    forced = replace(one.summary, mean_ik=np.vstack([one.summary.mean_ik[:-1], [[0.1, 0.1, 0.8]]]))
    found = votes_of_fit(replace(one, summary=forced)).unsupported()
    assert (found.n, found.n_voted, found.first) == (1.0, 61.0, 60)
