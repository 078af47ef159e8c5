"""Real votes: counts as their README states them, and every vote against a plain reading of the file."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.read import read_votes

# folder: votes, items, annotators, labels, items with gold, repeats
STATED = {
    "bluebird": (4_212, 108, 39, 2, 108, 0),
    "rte": (8_000, 800, 164, 2, 800, 0),
    "D_Product": (24_945, 8_315, 176, 2, 8_315, 0),
    "web": (15_567, 2_665, 177, 5, 2_653, 0),
    "S_Rel": (98_453, 20_232, 766, 4, 4_460, 1_570),
    "fact_eval": (216_725, 42_624, 57, 3, 576, 1_810),
    "ZenCrowd_all": (21_855, 2_040, 78, 2, 2_040, 1_730),
    "hate_paradigms": (12_000, 200, 60, 2, 200, 0),
}


@pytest.mark.parametrize("name", STATED)
def test_counts_are_as_stated(name, shared):
    n_votes, n_items, n_annotators, n_labels, n_gold, n_repeats = STATED[name]
    path, gold = shared / name / "votes.csv", shared / name / "gold.csv"
    votes = read_votes(path, gold_file=gold, on_repeat="count")
    ballot = votes.ballots[0]
    assert (votes.n_votes, votes.n_items, len(votes.annotators)) == (n_votes, n_items, n_annotators)
    assert (ballot.n_labels, int((ballot.gold_i >= 0).sum())) == (n_labels, n_gold)
    if n_repeats:
        identical, contradictory = count_repeats(path)
        assert identical + contradictory == n_repeats
        with pytest.raises(VotesError, match=rf"^{contradictory:,} of {n_votes - identical:,} votes"):
            read_votes(path)


def count_repeats(path):
    """Votes that say again what the same annotator said on the same item, and those that contradict it."""
    with path.open(newline="", encoding="utf-8") as file:
        votes = [(row["item"], row["annotator"], row["label"]) for row in csv.DictReader(file)]
    said, asked = len(set(votes)), len({vote[:2] for vote in votes})
    return len(votes) - said, said - asked


@pytest.mark.parametrize("name", ["bluebird", "web", "hate_paradigms"])
def test_every_vote_arrives(name, shared, spelt):
    with (shared / name / "votes.csv").open(newline="") as file:
        plain = Counter((int(row["item"]), row["annotator"], row["label"]) for row in csv.DictReader(file))
    votes = read_votes(shared / name / "votes.csv")
    assert Counter((item, str(annotator), label) for item, annotator, label in spelt(votes)) == plain


def test_gold_that_differs_in_case(shared):
    votes = read_votes(shared / "hate_paradigms" / "votes.csv", gold_file=shared / "hate_paradigms" / "gold.csv")
    with (shared / "hate_paradigms" / "gold.csv").open(newline="") as file:
        plain = {int(row["item"]): row["gold"] for row in csv.DictReader(file)}
    found = {votes.items[i]: votes.ballots[0].labels[code] for i, code in enumerate(votes.ballots[0].gold_i)}
    assert {item: label.lower() for item, label in found.items()} == plain
    assert votes.domains == ()


def test_anaesthesia_counts_real_repeats(shared):
    votes = read_votes(shared / "anaesthesia" / "votes.csv", on_repeat="count")
    ballot = votes.ballots[0]
    assert (votes.n_votes, votes.n_items, ballot.labels) == (315, 45, ("1", "2", "3", "4"))
    assert ballot.votes_a.tolist() == [135, 45, 45, 45, 45]
    assert votes.items.to_list() == list(range(1, 46))
    assert ballot.counts_ik.sum(axis=0).tolist() == [128, 124, 48, 15]


def test_caries_is_counted(shared):
    votes = read_votes(shared / "caries" / "grouped.csv")
    ballot = votes.ballots[0]
    assert (ballot.n_items, ballot.n_annotators, ballot.labels) == (32, 5, ("1", "2"))
    assert ballot.count_i.sum() == 3_859
    assert ballot.votes_a.tolist() == [3_859] * 5
    assert dict(zip(votes.items.to_list(), ballot.count_i, strict=True))["1 1 1 1 2"] == 789


def test_mfrc_comes_as_counts(shared):
    path = shared / "mfrc_counts" / "counts_with_text.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ["Equality", "Care", "Non-Moral", "Authority", "Thin Morality", "Loyalty", "Proportionality", "Purity"]
    votes = read_votes(path, anonymous=True, questions=names, of=3)
    assert votes.n_items == 17_457
    assert votes.questions == tuple(sorted(names))
    most = [max(3, *(int(row[name]) for name in names)) for row in rows]
    for name in names:
        plain = {int(row["ID"]): [n - int(row[name]), int(row[name])] for row, n in zip(rows, most, strict=True)}
        assert dict(zip(votes.items.to_list(), votes.ballot(name).counts_ik.tolist(), strict=True)) == plain
    assert any(note.startswith("2 items have a count above") for note in votes.reading.notes)


def test_convabuse_repeats(shared):
    path = shared / "convabuse" / "votes.csv"
    assert count_repeats(path) == (329, 28)
    with pytest.raises(VotesError, match=r"^28 of 12,439 votes"):
        read_votes(path)
    votes = read_votes(path, on_repeat="last", facts=["bot"])
    assert (votes.n_votes, votes.n_items, len(votes.annotators)) == (12_768 - 357, 4_185, 8)
    assert set(votes.extra["bot"].to_list()) == {"E.L.I.Z.A.", "CarbonBot"}
