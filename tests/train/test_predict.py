"""Prediction: a row a text and question, p and entropy as the model has them, blank texts without an answer."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import entropy
from train_support import targets_of_texts

from moral_entropy.errors import TrainError, VotesError
from moral_entropy.train.classifier import save_classifier
from moral_entropy.train.predict import predict, read_texts
from moral_entropy.train.tfidf import train_tfidf

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


@pytest.fixture(scope="module")
def model():
    return train_tfidf(targets_of_texts(120), None)


def test_p_and_entropy_by_question_and_label(model):
    texts = targets_of_texts(9, seed=4).texts
    frame = predict(model, texts, items=pl.Series([f"x{n}" for n in range(9)]))
    p_io = model.probabilities(texts)
    care, tone = frame.filter(question="care"), frame.filter(question="tone")
    assert care["item"].to_list() == [f"x{n}" for n in range(9)] and set(care["label"]) == {"yes"}
    assert_allclose(care["p"], p_io[:, 0])
    assert_allclose(care["entropy"], [entropy([p, 1 - p]) for p in p_io[:, 0]])
    assert tone["label"].to_list() == ["anger", "joy", "none"] * 9
    assert_allclose(tone["p"], p_io[:, 1:].ravel())
    assert_allclose(tone["entropy"], np.repeat(entropy(p_io[:, 1:], axis=1), 3))


def test_blank_texts_get_no_answer(model):
    frame = predict(model, ["protect the river", None, "  "]).filter(question="care")
    assert frame["item"].to_list() == [0, 1, 2]
    assert frame["p"].is_null().to_list() == frame["entropy"].is_null().to_list() == [False, True, True]


def test_a_text_is_judged_alike_in_any_company(model):
    texts = targets_of_texts(30, seed=5).texts
    assert_allclose(predict(model, texts[:1])["p"], predict(model, texts).filter(item=0)["p"])


def test_a_folder_predicts_as_the_model_does(model, tmp_path):
    save_classifier(model, tmp_path / "model", {"model": "tfidf", "max_length": 128})
    texts = targets_of_texts(5, seed=6).texts
    assert predict(tmp_path / "model", texts).equals(predict(model, texts))


class TestFilesOfTexts:
    def test_columns_are_guessed(self, tmp_path):
        (tmp_path / "texts.csv").write_text("tweet_id,likes,text\n7,3,one\n9,4,two\n")
        ids, texts = read_texts(tmp_path / "texts.csv")
        assert (ids.to_list(), texts) == (["7", "9"], ["one", "two"])

    def test_one_column_is_the_texts(self, tmp_path):
        (tmp_path / "texts.csv").write_text("whatever\none\ntwo\n")
        ids, texts = read_texts(tmp_path / "texts.csv")
        assert (ids.to_list(), texts) == ([0, 1], ["one", "two"])

    def test_no_text_column(self, tmp_path):
        (tmp_path / "texts.csv").write_text("a,b\n1,2\n")
        with pytest.raises(TrainError, match=r"no column that looks like texts\. Found: a, b\. Name it with --text"):
            read_texts(tmp_path / "texts.csv")

    def test_a_column_that_is_not_there(self, tmp_path):
        (tmp_path / "texts.csv").write_text("a,b\n1,2\n")
        with pytest.raises(VotesError, match="no column 'c'"):
            read_texts(tmp_path / "texts.csv", text="c")

    def test_nothing_but_blanks(self, tmp_path):
        (tmp_path / "texts.csv").write_text("id,text\n1, \n2,\n")
        with pytest.raises(TrainError, match="none of the 2 rows"):
            read_texts(tmp_path / "texts.csv")
