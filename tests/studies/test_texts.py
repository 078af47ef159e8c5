"""The study of texts: votes are cut without loss, and scores are those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from support import load_script
from train_support import texts_and_truth

study = load_script("studies/texts.py")


def test_known_and_left_out_votes_are_all_votes():
    rng = np.random.default_rng(0)
    vote_ia = rng.integers(-1, 2, size=(50, 7))
    known_ia, left_ia = study.cut(vote_ia, 2)
    assert (np.maximum(known_ia, left_ia) == vote_ia).all() and ((known_ia == -1) | (left_ia == -1)).all()
    assert (known_ia != -1).sum(axis=1).tolist() == np.minimum((vote_ia != -1).sum(axis=1), 2).tolist()


def test_scores_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    p_i, yes_i = rng.random(200), rng.integers(0, 4, size=200).astype(float)
    n_i = np.full(200, 3.0)
    truth, weight = np.repeat([1, 0], 200), np.concatenate([yes_i, n_i - yes_i])
    loss, area, _ = study.score(p_i, yes_i, n_i)
    assert loss == pytest.approx(metrics.log_loss(truth, np.tile(p_i, 2), sample_weight=weight))
    assert area == pytest.approx(metrics.roc_auc_score(truth, np.tile(p_i, 2), sample_weight=weight))


def test_texts_that_carry_the_answer_win():
    texts, care_i, _ = texts_and_truth(600)
    rng = np.random.default_rng(9)
    vote_ia = np.where(rng.random((600, 4)) < 0.75, care_i[:, None], ~care_i[:, None]).astype(int)
    known_ia, left_ia = study.cut(vote_ia, 2)
    words = study.read_texts(texts)
    both = words._replace(embedded=np.asarray(words.x_if.todense()))
    p = study.probabilities(study.Question("care", vote_ia, (2,)), known_ia, both)
    yes_i, n_i = (left_ia == 1).sum(axis=1).astype(float), (left_ia != -1).sum(axis=1).astype(float)
    assert study.score(p["tf-idf"], yes_i, n_i)[0] < study.score(p["p without texts"], yes_i, n_i)[0]
    shares = study.label_errors(p, known_ia, yes_i, n_i)
    assert shares[-1] > 2 * shares[0]
