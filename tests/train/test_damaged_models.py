"""Models are examined when they are loaded: a damaged one is refused, and never predicts nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from moral_entropy.errors import TrainError
from moral_entropy.train.classifier import load_classifier, save_classifier
from moral_entropy.train.head import Block, Head
from moral_entropy.train.tfidf import Tfidf, Vocabulary

pytest.importorskip("sklearn", reason="the train extra is not installed")


@pytest.fixture
def model(tmp_path):
    head = Head((Block("care", ("no", "yes"), "yes"),))
    words = Vocabulary(("good", "bad"), ("goo",), np.ones(3))
    saved = Tfidf(head, words, np.array([[1.0], [-1.0], [0.5]]), np.zeros(1))
    return save_classifier(saved, tmp_path / "model", {"model": "tfidf", "max_length": 9})


def test_a_whole_model_is_loaded(model):
    p_io = load_classifier(model).probabilities(["good", "bad"])
    assert p_io[0, 0] > 0.5 > p_io[1, 0]


ARRAYS = {
    "idf_f": (np.ones(2), r"idf_f has the shape \(2,\)"),
    "weight_fo": (np.full((3, 1), np.nan), "3 numbers of weight_fo are not finite"),
    "intercept_o": (np.array(["x"]), "intercept_o has the shape"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit_are_refused(model, name):
    with np.load(model / "weights.npz") as before:
        arrays = dict(before)
    arrays[name], said = ARRAYS[name]
    np.savez(model / "weights.npz", **arrays)
    with pytest.raises(TrainError, match=said):
        load_classifier(model)


@pytest.mark.parametrize(
    "names", [[], {"words": ["good", "bad"]}, {"words": 3, "letters": []}, {"words": [[]], "letters": ["goo"]},
              {"words": ["good", "good"], "letters": ["goo"]}, {"words": ["good"], "letters": ["goo"]}],
)  # fmt: skip
def test_vocabularies_that_are_none_are_refused(model, names):
    (model / "vocabulary.json").write_text(json.dumps(names))
    with pytest.raises(TrainError, match="damaged tfidf model"):
        load_classifier(model)


@pytest.mark.parametrize(
    "head", [[], {}, 3, [{"question": "care"}], [{"question": "care", "labels": 3, "positive": None}]]
)
def test_outputs_that_are_none_are_refused(model, head):
    facts = json.loads((model / "moral_entropy.json").read_text())
    (model / "moral_entropy.json").write_text(json.dumps(facts | {"head": head}))
    with pytest.raises(TrainError):
        load_classifier(model)
