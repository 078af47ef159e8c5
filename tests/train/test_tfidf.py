"""The baseline: its optimum is scikit-learn's on duplicated rows, it learns, and it survives being saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from train_support import CARE, TONE, targets_of_texts

from moral_entropy.errors import TrainError
from moral_entropy.train import ridge, tfidf
from moral_entropy.train.head import Head
from moral_entropy.train.tfidf import load_tfidf, train_tfidf

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def trained(targets, validation=None, **options):
    return train_tfidf(targets, validation, **options)


def soft_targets(n_items, *, block, seed=0):
    """Targets anywhere between 0 and 1, and weights too."""
    rng = np.random.default_rng(seed)
    made = targets_of_texts(n_items, head=Head((block,)))
    target_io = rng.random((n_items, 1)) if block.positive else rng.dirichlet(np.ones(3), n_items)
    return replace(made, target_io=target_io, weight_iq=rng.random((n_items, 1)) + 0.2)


@pytest.mark.parametrize("block", [CARE, TONE], ids=["two labels", "three labels"])
def test_the_fit_is_scikit_learns_on_duplicated_rows(block, monkeypatch):
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr(ridge, "SLOPE", 1e-8)
    targets = soft_targets(80, block=block)
    model = trained(targets)
    x_if = model.vocabulary.matrix(targets.texts)
    two = block.positive is not None
    target_ik = np.column_stack([1 - targets.target_io, targets.target_io]) if two else targets.target_io
    n_labels = target_ik.shape[1]
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    theirs.fit(
        x_if[np.repeat(np.arange(80), n_labels)],
        np.tile(np.arange(n_labels), 80),
        sample_weight=(target_ik * targets.weight_iq).ravel(),
    )
    expected_ik = theirs.predict_proba(x_if)
    assert_allclose(model.probabilities(targets.texts), expected_ik[:, 1:] if two else expected_ik, atol=2e-4)


def test_it_learns_words_that_carry_the_answer():
    train, test = targets_of_texts(300, seed=1), targets_of_texts(100, seed=2)
    model = trained(train, test)
    p_io = model.probabilities(test.texts)
    assert ((p_io[:, 0] > 0.5) == (test.target_io[:, 0] > 0.5)).mean() > 0.9
    assert (p_io[:, 1:].argmax(axis=1) == test.target_io[:, 1:].argmax(axis=1)).mean() > 0.9
    [point] = model.curve
    assert_allclose(point.validation_loss, test.head.loss(model.logits(test.texts), test.target_io, test.weight_iq))


def test_items_without_a_target_teach_nothing():
    targets = targets_of_texts(80)
    weight_iq = targets.weight_iq.copy()
    weight_iq[:20, 0] = 0.0
    changed_io = targets.target_io.copy()
    changed_io[:20, 0] = 1.0
    first = trained(replace(targets, weight_iq=weight_iq))
    second = trained(replace(targets, weight_iq=weight_iq, target_io=changed_io))
    assert_array_equal(first.weight_fo[:, 0], second.weight_fo[:, 0])


def test_one_class_only_gives_that_class():
    targets = targets_of_texts(40, head=Head((CARE,)))
    model = trained(replace(targets, target_io=np.ones((40, 1))))
    assert (model.probabilities(targets.texts) > 0.97).all()


def test_permuting_questions_permutes_outputs():
    first = trained(targets_of_texts(80, head=Head((CARE, TONE))))
    second = trained(targets_of_texts(80, head=Head((TONE, CARE))))
    texts = targets_of_texts(20, seed=5).texts
    assert_allclose(second.probabilities(texts), first.probabilities(texts)[:, [1, 2, 3, 0]], atol=1e-3)


def test_a_saved_model_predicts_the_same_and_holds_no_pickle(tmp_path):
    targets = targets_of_texts(60)
    model = trained(targets)
    model.save(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["vocabulary.json", "weights.npz"]
    loaded = load_tfidf(tmp_path, targets.head)
    texts = (*targets.texts[:5], "words nobody has seen", "")
    assert_array_equal(loaded.probabilities(texts), model.probabilities(texts))


def test_a_damaged_model_is_refused(tmp_path):
    trained(targets_of_texts(40)).save(tmp_path)
    file = tmp_path / "weights.npz"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(TrainError, match="damaged tfidf model"):
        load_tfidf(tmp_path, Head((CARE, TONE)))


def test_a_fit_does_not_depend_on_what_was_fitted_before():
    targets, other = targets_of_texts(80), targets_of_texts(80, sure=0.6)
    tfidf._LAST.clear()
    first = trained(targets)
    trained(other)
    again = trained(targets)
    assert_array_equal(again.weight_fo, first.weight_fo)
    assert again.features is first.features, "the same texts, whatever is learnt about them"


def test_texts_become_features_once(monkeypatch):
    made = []
    matrix = tfidf.Vocabulary.matrix
    monkeypatch.setattr(tfidf.Vocabulary, "matrix", lambda own, texts: made.extend(texts) or matrix(own, texts))
    train, validation, test = (targets_of_texts(40, seed=seed) for seed in (11, 12, 13))
    for _ in range(3):
        trained(train, validation).probabilities(test.texts)
    # Which of the texts are validated on makes no difference.
    trained(validation, train).probabilities(test.texts)
    assert sorted(made) == sorted({*train.texts, *validation.texts, *test.texts})
    monkeypatch.setattr(tfidf, "MOST_KEPT", 10)
    tfidf._LAST.clear()
    assert trained(train).probabilities(test.texts).shape == (40, 4)
