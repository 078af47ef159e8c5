"""What a classifier is worth: figures as in scikit-learn, a temperature that mends, a threshold by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from train_support import CARE, TONE, small_bert, targets_of_texts, tune, votes_csv

from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.train.classifier import load_classifier, save_classifier
from moral_entropy.train.head import Head
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.reference import Reference
from moral_entropy.train.run import run_training
from moral_entropy.train.scores import Standard
from moral_entropy.train.tfidf import train_tfidf
from moral_entropy.train.worth import THRESHOLDS, best_threshold, find_worth, fit_temperature, worth_lines


class Fixed:
    """A classifier that says what it was told to."""

    def __init__(self, head, logits_io):
        self.head, self.told = head, logits_io

    def logits(self, texts):
        return self.told


def worth_of(logits_i, truth_i, **changed):
    """The worth of fixed answers about care, against the truth."""
    n_items = len(truth_i)
    made = targets_of_texts(n_items, head=Head((CARE,)))
    gold = replace(made, target_io=np.asarray(truth_i, float)[:, None], **changed)
    found = find_worth(Fixed(gold.head, logits_i[:, None]), gold, gold, [Reference("gold", gold, gold)], gold)
    return found, gold


def answers(n_items=400, *, too_sure=1.0, seed=0):
    rng = np.random.default_rng(seed)
    logits_i = rng.normal(-0.5, 1.5, n_items)
    return too_sure * logits_i, rng.random(n_items) < 1 / (1 + np.exp(-logits_i))


def test_figures_are_scikit_learns():
    logits_i, truth_i = answers()
    found, _ = worth_of(logits_i, truth_i)
    [care] = found.questions
    assert care.auc == pytest.approx(roc_auc_score(truth_i, logits_i), abs=0.01), (
        "halves have temperatures of their own"
    )
    assert care.log_loss == pytest.approx(log_loss(truth_i, 1 / (1 + np.exp(-logits_i))), abs=0.01)
    assert care.constant_loss == pytest.approx(log_loss(truth_i, np.full(400, truth_i.mean())), abs=1e-3)
    assert care.log_loss < care.constant_loss and care.share_loss < 1e-3


def test_a_temperature_mends_what_is_too_sure():
    logits_i, truth_i = answers(too_sure=3.0)
    found, gold = worth_of(logits_i, truth_i)
    assert found.temperature == pytest.approx(3.0, rel=0.25)
    before = log_loss(truth_i, 1 / (1 + np.exp(-logits_i)))
    assert found.questions[0].log_loss < before - 0.05 and found.questions[0].ece < 0.08
    # No temperature on a fine grid is better.
    losses = [gold.head.loss(logits_i[:, None] / t, gold.target_io, gold.weight_iq) for t in np.linspace(1, 6, 200)]
    reached = gold.head.loss(logits_i[:, None] / found.temperature, gold.target_io, gold.weight_iq)
    assert reached <= min(losses) + 1e-6


def test_few_texts_have_no_temperature():
    targets = targets_of_texts(12, head=Head((CARE,)))
    assert fit_temperature(targets, np.full((12, 1), 9.0)) == 1.0


def test_the_threshold_is_that_of_the_highest_f1():
    logits_i, truth_i = answers(300, seed=3)
    p_i = 1 / (1 + np.exp(-logits_i))
    truth_ik = np.column_stack([~truth_i, truth_i]).astype(float)
    found = best_threshold(p_i, Standard(truth_ik, truth_ik, np.ones(300)))
    assert f1_score(truth_i, p_i >= found) == pytest.approx(max(f1_score(truth_i, p_i >= t) for t in THRESHOLDS))


def test_it_says_when_a_model_is_worth_nothing():
    rng = np.random.default_rng(0)
    useless, _ = worth_of(rng.normal(0, 1, 200), rng.random(200) < 0.3)
    assert any("no more than a constant" in line or "hardly tells" in line for line in worth_lines(useless))
    good, _ = worth_of(*answers())
    first, *more = worth_lines(good)
    assert "on 400 texts it has not learnt from, against the gold: AUC 0." in first and len(more) == 1
    assert "say yes from p = care 0." in more[0]


@pytest.mark.parametrize("model", ["tfidf", "bert"])
def test_a_cooled_model_divides_its_logits_saved_or_not(model, tmp_path):
    targets = targets_of_texts(40)
    if model == "tfidf":
        trained = train_tfidf(targets, None)
    else:
        pytest.importorskip("torch", reason="PyTorch is not installed")
        options = TrainOptions(epochs=1, max_length=24, device="cpu", layers=1)
        trained = tune(str(small_bert(tmp_path / "bert")), targets, None, options)
    before_io = trained.logits(targets.texts)
    cooled = trained.cooled(2.5)
    assert_allclose(cooled.logits(targets.texts), before_io / 2.5, atol=1e-5)
    save_classifier(cooled, tmp_path / "model", {"model": model, "max_length": 24})
    assert_allclose(load_classifier(tmp_path / "model").logits(targets.texts), before_io / 2.5, atol=2e-3)


def test_questions_of_three_labels_have_no_threshold():
    made = targets_of_texts(120, head=Head((TONE,)), sure=1.0)
    logits_io = np.log(np.where(made.target_io > 0.5, 0.8, 0.1))
    found = find_worth(Fixed(made.head, logits_io), made, made, [Reference("gold", made, made)], made)
    assert found.questions[0].threshold is None and found.questions[0].auc == 1.0
    assert len(worth_lines(found)) == 1


def test_a_training_on_a_run_is_measured_and_cooled(tmp_path):
    audit(votes_csv(tmp_path / "votes.csv", n_items=400), tmp_path / "run", AuditOptions(report=False))
    done = run_training(tmp_path / "run", tmp_path / "model", TrainOptions(model="tfidf", validation=0.3))
    worth = done.worth
    assert worth.n_items == done.validation.n_items > 80 and worth.reference == "consensus"
    assert worth.questions[0].auc > 0.9 and worth.questions[0].log_loss < worth.questions[0].constant_loss
    # What is saved has the temperature in it: fitting again finds none.
    again = load_classifier(tmp_path / "model").logits(done.validation.texts)
    assert fit_temperature(done.validation, again) == pytest.approx(1.0, abs=0.01)
    assert_array_equal(again, done.classifier.logits(done.validation.texts))
    assert "| care | 0." in (tmp_path / "model" / "README.md").read_text()
