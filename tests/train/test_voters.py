"""One output per annotator: votes counted by hand, rows that differ are found again, and saved models answer alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import moral_entropy as me
from moral_entropy.errors import TrainError
from moral_entropy.pipeline.audit import audit
from moral_entropy.train.averaged import Averaged, average, averaged_from_facts, voter_targets
from moral_entropy.train.classifier import load_classifier, save_classifier, train_classifier
from moral_entropy.train.head import Block, Head
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.run_targets import targets_from_run
from moral_entropy.train.targets import targets_from_consensus
from moral_entropy.train.voters import FEWEST_VOTES, OTHERS, mean_of_voters, voters_of
from tests.train_support import CARE, TONE, small_bert, texts_and_truth

TFIDF = TrainOptions(model="tfidf")


def votes_of_three(n_items=300, *, seed=0):
    """Ann says yes to "hurt" alone, bob to "protect" alone, cat to neither; two of them vote on each text."""
    texts, _, _ = texts_and_truth(n_items, seed=seed)
    rng = np.random.default_rng(seed)
    rows = []
    for item, text in enumerate(texts):
        says = {"ann": "hurt" in text, "bob": "protect" in text, "cat": False}
        for who in rng.choice(["ann", "bob", "cat"], size=2, replace=False, p=[0.4, 0.4, 0.2]):
            wrong = rng.random() < 0.03
            rows.append((f"t{item:03}", who, "yes" if says[who] != wrong else "no", text))
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "text"], orient="row")


@pytest.fixture(scope="module")
def table():
    return votes_of_three()


@pytest.fixture(scope="module")
def targets(table):
    return targets_from_consensus(me.fit(me.read_votes(table, text="text"), draws=0), "annotators")


def test_votes_are_those_of_the_table(table, targets):
    voters = targets.voters
    assert voters.head.questions == ("label by ann", "label by bob", "label by cat")
    for row in table.sample(40, seed=1).iter_rows(named=True):
        i, b = targets.items.to_list().index(row["item"]), ["ann", "bob", "cat"].index(row["annotator"])
        assert voters.votes_ib[i, b] == 1
        assert voters.target_io[i, b] == (row["label"] == "yes")
    assert voters.votes_ib.sum() == table.height
    cast = dict(table.group_by("annotator").len().iter_rows())
    assert_allclose(voters.shares(targets.weight_iq), [cast[who] / table.height for who in ("ann", "bob", "cat")])


def test_a_run_and_its_consensus_have_the_same_voters(table, targets, tmp_path):
    run = audit(table, tmp_path / "run", text="text", draws=20, report=False)
    found = targets_from_run(run, "annotators")
    assert found.voters.head == targets.voters.head
    assert_array_equal(found.voters.target_io, targets.voters.target_io)
    assert_array_equal(found.voters.votes_ib, targets.voters.votes_ib)
    assert_array_equal(found.target_io, targets_from_run(run, "share").target_io)


def test_each_annotator_is_recognised_and_the_answer_is_their_mean(targets):
    model = train_classifier(targets, None, TFIDF)
    asked = ["a train hurt the sky", "a train protect the sky", "the garden and the river"]
    inner_io = model.inner.probabilities(asked)
    says = np.array([[True, False, False], [False, True, False], [False, False, False]])
    assert_array_equal(inner_io > 0.4, says)
    shares = targets.voters.shares(targets.weight_iq)
    assert_allclose(model.probabilities(asked)[:, 0], inner_io @ shares, rtol=1e-6)


def test_the_mean_foretells_what_the_panel_would_say(targets):
    """Against what all three would say to new texts, annotators are no worse than the noisy share of two votes."""
    texts, _, _ = texts_and_truth(400, seed=7)
    pool = np.array([[0.4 * ("hurt" in text) + 0.4 * ("protect" in text)] for text in texts])
    losses = {}
    for name, own in (("annotators", targets), ("share", replace(targets, voters=None))):
        logits_io = train_classifier(own, None, TFIDF).logits(texts)
        losses[name] = targets.head.loss(logits_io, pool, np.ones_like(pool))
    assert losses["annotators"] < losses["share"] + 0.01


def test_one_voter_is_the_share(targets):
    """Where one person casts every vote, an output per annotator is the classifier of the share."""
    one = targets.voters.head.blocks[0]
    voters = replace(
        targets.voters, head=Head((one,)), question_b=np.array([0]), target_io=targets.target_io,
        votes_ib=np.ones((targets.n_items, 1)),
    )  # fmt: skip
    texts = targets.texts[:30]
    alone = train_classifier(replace(targets, voters=voters), None, TFIDF).probabilities(texts)
    assert_allclose(alone, train_classifier(replace(targets, voters=None), None, TFIDF).probabilities(texts), rtol=1e-6)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=30))
@settings(max_examples=40, deadline=None)
def test_shares_and_weights_add_up(votes):
    """Shares add up to 1; with `whole`, the weights of all votes add up to those of the items."""
    cast = pl.DataFrame(
        [(item, who, label, 40.0) for item, who, label in votes], schema=["item", "voter", "label", "n"], orient="row"
    )
    voters = voters_of(Head((TONE,)), [cast], 4)
    weight_iq = np.array([[1.0], [2.0], [0.5], [1.0]])
    assert_allclose(voters.shares(weight_iq).sum(), 1.0)
    assert_allclose(voters.weights(weight_iq, whole=True).sum(), weight_iq.sum())
    assert_allclose(voters.weights(np.ones((4, 1)), whole=False).sum(), 40.0 * len(votes))
    given_ib = [voters.target_io[:, columns].sum(axis=1) for columns in voters.head.columns]
    assert_allclose(np.column_stack(given_ib), voters.votes_ib > 0)


def test_whoever_votes_little_shares_an_output():
    n = FEWEST_VOTES
    cast = pl.DataFrame({"item": [0] * (n + 3), "voter": ["ann"] * n + ["bob", "cat", "cat"], "label": 1, "n": 1.0})
    voters = voters_of(Head((CARE,)), [cast], 1)
    assert voters.head.questions == (f"care by {OTHERS}", "care by ann")
    assert voters.votes_ib.tolist() == [[3, n]]


def test_means_by_hand():
    head, voters = Head((CARE, TONE)), Head((CARE, CARE, TONE))
    p_io = np.array([[0.2, 0.8, 0.1, 0.3, 0.6]])
    mean_io = mean_of_voters(head, voters, np.array([0, 0, 1]), np.array([0.25, 0.75, 1.0]), p_io)
    assert_allclose(mean_io, [[0.65, 0.1, 0.3, 0.6]])


@pytest.mark.parametrize("model", ["tfidf", "bert"])
def test_a_saved_model_answers_alike(model, targets, tmp_path):
    name = "tfidf" if model == "tfidf" else str(small_bert(tmp_path / "bert"))
    how = TrainOptions(model=name, epochs=1, max_length=16, device="cpu")
    trained = train_classifier(targets.take(np.arange(80)), targets.take(np.arange(80, 120)), how).cooled(1.5)
    assert isinstance(trained, Averaged)
    save_classifier(trained, tmp_path / "model", {"model": name if model == "tfidf" else "bert", "max_length": 16})
    texts = list(targets.texts[:9])
    loaded = load_classifier(tmp_path / "model", device="cpu")
    assert loaded.head.questions == ("label",)
    assert_allclose(loaded.probabilities(texts), trained.probabilities(texts), rtol=1e-5)


def test_a_temperature_divides_the_logits(targets):
    trained = train_classifier(targets, None, TFIDF)
    assert_allclose(trained.cooled(2.0).logits(targets.texts[:5]), trained.logits(targets.texts[:5]) / 2.0)


def test_damaged_voters_are_refused(targets):
    trained = train_classifier(targets, None, TFIDF)
    facts = trained.facts() | {"share": [1.0]}
    with pytest.raises(TrainError, match="voters is damaged"):
        averaged_from_facts(facts, trained.head, trained.inner)


def test_nobody_is_known_by_anonymous_votes(table):
    votes = me.read_votes(table.drop("annotator"), text="text", anonymous=True)
    with pytest.raises(TrainError, match="need to know who voted"):
        targets_from_consensus(me.fit(votes, draws=0), "annotators")


def test_targets_without_voters_are_refused(targets):
    for wrong in (lambda one: voter_targets(one, whole=True), lambda one: average(None, one)):
        with pytest.raises(TrainError, match="do not say who voted"):
            wrong(replace(targets, voters=None))


def test_blocks_keep_the_labels_of_their_question():
    cast = pl.DataFrame({"item": [0], "voter": ["ann"], "label": [0], "n": [50.0]})
    [block] = voters_of(Head((Block("care", ("yes", "no"), "yes"),)), [cast], 1).head.blocks
    assert (block.labels, block.positive) == (("yes", "no"), "yes")
    assert voters_of(Head((block,)), [cast], 1).target_io.tolist() == [[1.0]]
