"""What there is too little of, and what votes cannot tell: found where it was planted, and not where it was not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from made_votes import two_teams
from support import random_rows, vote_rows, votes_of

from moral_entropy import fit, simulate_votes
from moral_entropy.checks import votes as module
from moral_entropy.checks.votes import check_identifiability, check_votes, find_groups
from moral_entropy.model.consensus import below_chance, surely_below_chance
from moral_entropy.model.patterns import collapse
from moral_entropy.model.priors import Priors

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def fitted(votes, **options):
    return fit(votes, **{"draws": 50, **options})


def findings(votes, **options):
    return check_votes(fitted(votes, **options))


def test_thin_data_are_thin_and_their_annotators_hardly_known():
    made = simulate_votes(n_items=200, n_annotators=60, votes_per_item=1.2, seed=1)
    found = {f.metric: f for f in findings(made.votes)}
    votes_i = made.votes.ballots[0].votes_i
    assert found["votes_per_item"].level == "bad" and found["votes_per_item"].value == pytest.approx(votes_i.mean())
    assert found["hardly_known"].level == "doubt" and found["hardly_known"].value > 0.8


def test_who_is_hardly_known_is_counted_from_the_posterior():
    rows = random_rows(np.random.default_rng(0), 80, 4, 2, share=1.0)
    rows += [(i, 4, int(i % 2)) for i in range(4)]
    consensus = fitted(votes_of(rows))
    [one] = consensus.fits
    thin = []
    for a in range(5):
        seen = np.zeros(2)
        for i, b, _ in rows:
            seen += one.posterior_ik[i] if a == b else 0.0
        thin.append(bool((seen < 3.0).any()))
    [found] = [f for f in check_votes(consensus) if f.metric == "hardly_known"]
    assert thin == [False] * 4 + [True] and found.n == 1 and found.value == pytest.approx(4 / len(rows))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_plenty_of_votes_raise_no_alarm(n_labels):
    votes = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5, n_labels=n_labels, seed=5).votes
    found = findings(votes)
    assert {f.metric for f in found} == {"votes_per_item", "hardly_known"}
    assert {f.level for f in found} == {"info"}


def test_votes_without_names_have_nobody_hardly_known():
    votes = votes_of(random_rows(np.random.default_rng(3), 50, 4, 2))
    ballot = votes.ballots[0]
    shared = replace(ballot, annotator_a=np.array([0]), code_v=np.sort(ballot.code_v % 2).astype(np.int32))
    anonymous = replace(votes, ballots=(shared,), annotators=pl.Series(["(anyone)"]), anonymous=True)
    assert {f.metric for f in findings(anonymous)} == {"votes_per_item"}


@pytest.mark.parametrize(("busy", "dominates"), [(40, True), (14, False)])
def test_an_annotator_who_dominates_is_named(busy, dominates):
    rows = [(i, a, i % 2) for i in range(12) for a in range(1, 5)] + [(i, 0, i % 2) for i in range(busy)]
    found = [f for f in findings(votes_of(rows, n_items=40)) if f.metric == "dominant_annotator"]
    assert [(f.subject, f.value, f.level) for f in found] == [("0", 40 / 88, "doubt")] * dominates


def test_items_without_votes_are_noted_and_do_not_make_the_others_thin():
    found = {
        f.metric: f for f in findings(votes_of(random_rows(np.random.default_rng(1), 30, 4, 2, share=1.0), n_items=90))
    }
    assert (found["items_without_votes"].value, found["items_without_votes"].level) == (60, "note")
    assert (found["votes_per_item"].value, found["votes_per_item"].level) == (4.0, "info")


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
    rows = [(i, a, 0) for i, a in [(0, 0), (0, 1), (1, 1), (1, 2), (2, 3), (2, 4), (3, 5)]] + [(3, 6, 1)]
    patterns = collapse(votes_of(rows).ballots[0])
    whole = find_groups(patterns)[0].tolist()
    for cut in (1, 2, 3):
        monkeypatch.setattr(module, "VOTES_AT_ONCE", cut)
        assert find_groups(patterns)[0].tolist() == whole
    assert len(set(whole)) == 3


def unclear(votes, **options):
    return check_identifiability(fitted(votes, **{"draws": 200, "seed": 1, **options}))


def alarms(found):
    return {finding.metric: finding for finding in found if finding.is_warning}


def test_an_adversary_is_named_and_nobody_else():
    right_a = np.array([0.85, 0.8, 0.9, 0.85, 0.8, 0.15])
    confusion_akv = np.stack([right_a, 1 - right_a, 1 - right_a, right_a], axis=1).reshape(-1, 2, 2)
    made = simulate_votes(n_items=300, n_annotators=6, votes_per_item=5, confusion_akv=confusion_akv, seed=3)
    found = unclear(made.votes)
    named = alarms(found)["below_chance"]
    assert named.value == 1 and named.subject == "5" and "5; 16." in named.text


def test_reversed_annotators_among_others_are_below_chance_together():
    right_a = np.array([0.85, 0.85, 0.85, 0.85, 0.15, 0.15])
    confusion_akv = np.stack([right_a, 1 - right_a, 1 - right_a, right_a], axis=1).reshape(-1, 2, 2)
    made = simulate_votes(n_items=300, n_annotators=6, votes_per_item=6, confusion_akv=confusion_akv, seed=3)
    found = unclear(made.votes)
    assert set(alarms(found)["below_chance"].subject.split(", ")) == {"4", "5"}
    assert alarms(found)["below_chance"].level == "bad"


def test_groups_without_a_link_are_counted_and_named():
    votes, _ = two_teams(links=0, reversed_team=False, items=(120, 40))
    found = alarms(unclear(votes))
    assert found["groups"].value == 2
    assert "120 items, 5 annotators; 40 items, 5 annotators; 5 is in the second" in found["groups"].text


def test_labels_that_nobody_gave_are_counted_and_explained():
    truth = np.random.default_rng(6).integers(2, size=120)
    rows = [(i, a, int(truth[i])) for i in range(80) for a in (0, 1, 2)]
    # Two who say the opposite, alone on the last forty items.
    rows += [(i, a, int(1 - truth[i])) for i in range(120) for a in (3, 4) if i % 2 or i >= 80]
    # The default model's p is pooled with the votes, and hardly ever leaves them so far.
    consensus = fitted(votes_of(rows), model="paper")
    [one] = consensus.fits
    counts_ik, label_i = one.ballot.counts_ik, one.label_i
    expected = sum(
        max(counts) == sum(counts) and (sum(counts) > 1 or counts[0] == 1) and counts[label] == 0
        for counts, label in zip(counts_ik.tolist(), label_i.tolist(), strict=True)
    )
    [found] = [f for f in check_identifiability(consensus) if f.metric == "unsupported_labels"]
    assert found.value == expected == 40 and found.level == "bad"
    assert f"on {expected} items (33.33%; first: 80)" in found.text


def test_a_prevalence_that_outweighs_votes_is_found():
    rows = [(i, a, int(i < 40)) for i in range(43) for a in (0, 1)]
    found = alarms(unclear(votes_of(rows), model="paper", priors=Priors(prevalence=(1, 20_000))))
    assert found["unsupported_labels"].value == 3


@pytest.mark.parametrize(
    "options", [{"domain_prevalence": "off"}, {"model": "paper"}, {"draws": 0}, {"merge": ("0+1",)}]
)
def test_other_ways_to_fit_are_examined_too(options):
    votes, _ = two_teams(links=40, reversed_team=False)
    found = unclear(votes, **options)
    assert not alarms(found) and "groups" in {f.metric for f in found}


def test_names_are_shown_as_they_are():
    votes, _ = two_teams(links=0, items=(80, 60), size=3, votes=2)
    named = replace(votes, annotators=pl.Series([f"<b>{a}</b>" for a in range(6)]))
    [groups] = [f for f in unclear(named) if f.metric == "groups"]
    assert "<b>3</b> is in the second" in groups.text


@pytest.mark.parametrize("options", [{"draws": 0}, {"n_labels": 3}, {"model": "paper"}])
def test_clean_votes_raise_no_alarm(options):
    n_labels = options.pop("n_labels", 2)
    made = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5, n_labels=n_labels, seed=5)
    found = unclear(made.votes, **options)
    assert not alarms(found)
    assert {f.metric for f in found} == {"below_chance", "unsupported_labels", "groups"}


def test_of_several_labels_one_that_nobody_gave_is_counted_though_votes_are_split():
    """Two votes for one label and one for another, where the consensus is the third."""
    votes = votes_of([(i, a, i % 3) for i in range(60) for a in range(4)] + [(60, 0, 0), (60, 1, 0), (60, 2, 1)], 3)
    consensus = fitted(votes)
    [one] = consensus.fits
    forced = replace(one, p_ik=np.vstack([one.p_ik[:-1], [[0.1, 0.1, 0.8]]]))
    found = check_identifiability(replace(consensus, fits=(forced,)))
    [found] = [f for f in found if f.metric == "unsupported_labels"]
    assert (found.value, found.n) == (1.0, 61) and "first: 60)" in found.text


def test_a_label_with_votes_that_no_item_gets_is_said_with_its_counts():
    rows = [(i, a, 2 if a == 3 and i % 5 == 0 else i % 2) for i in range(400) for a in range(4)]
    consensus = fitted(votes_of(rows, 3))
    [vanished] = [f for f in check_identifiability(consensus) if f.metric == "vanishing_label"]
    by_p = sum(p for *_, p in consensus.fits[0].p_ik)
    assert (vanished.subject, vanished.value, vanished.n, vanished.level) == ("2", 0.0, 400, "note")
    said = "'2' has votes on 80 of 400 items and the most votes on 0; it is the consensus on 0, by p on "
    assert vanished.text == f"{said}{by_p:.0f}."


def test_a_label_of_few_items_is_said_to_be_rare():
    rows = [(i, a, int(i < 9)) for i in range(900) for a in range(3)]
    [rare] = [f for f in check_identifiability(fitted(votes_of(rows))) if f.metric == "rare_label"]
    assert (rare.subject, rare.value, rare.n) == ("1", 9.0, 900)
    assert rare.text == "how many items are '1' is a guess: 9 of 900 by labels, 9 by p; 9 have a vote for it."
    half = check_identifiability(fitted(votes_of([(i, a, i % 2) for i in range(900) for a in range(3)])))
    assert not [f for f in half if f.metric == "rare_label"]


@pytest.mark.parametrize(
    ("prevalence", "items", "accuracy", "is_guess"),
    [
        (0.005, 4000, (0.95, 0.95), True),
        (0.01, 2000, (0.9, 0.95), True),
        (0.03, 2000, (0.97, 0.99), False),
        (0.1, 600, (0.85, 0.95), False),
        (0.5, 400, (0.7, 0.95), False),
    ],
)
def test_how_many_items_have_a_label_is_called_a_guess_where_it_is(prevalence, items, accuracy, is_guess):
    """Twenty seeds with planted truth: where p says more than twice as many as there are, and nowhere else."""
    for seed in range(20):
        made = simulate_votes(
            n_items=items, n_annotators=12, votes_per_item=3, prevalence_k=[1 - prevalence, prevalence],
            accuracy=accuracy, seed=seed,
        )  # fmt: skip
        consensus = fit(made.votes, draws=0)
        doubts = [f.metric for f in check_identifiability(consensus) if f.level == "doubt"]
        assert ("rare_label" in doubts) == is_guess
        too_many = consensus.fits[0].p_ik[:, 1].sum() / max(made.truth_i.sum(), 1)
        assert too_many > 2 if is_guess else too_many < 2


def test_gold_overrules_who_is_worse_than_guessing():
    """Three voters are wrong together on most items: the votes name the other two, gold clears them."""
    rng = np.random.default_rng(0)
    truth_i = rng.integers(2, size=300)
    wrong_i = np.where(rng.random(300) < 0.8, 1 - truth_i, truth_i)
    rows = [
        (i, a, int((wrong_i if a < 3 else truth_i)[i] ^ (rng.random() < 0.1))) for i in range(300) for a in range(5)
    ]
    below = {}
    for gold_i in (None, truth_i):
        [one_fit] = fit(votes_of(rows, gold_i=gold_i), draws=200).fits
        below[gold_i is None] = set(np.flatnonzero(surely_below_chance(below_chance(one_fit), one_fit.ballot.votes_a)))
    assert below[True] & {3, 4} == below[True] and below[False] == {0, 1, 2}
