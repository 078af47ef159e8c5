"""The baseline: the optimum of an objective computed here, saved and loaded, and damaged folders."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from scipy.stats import entropy
from train_support import CARE, TONE, targets_of_texts

from moral_entropy.errors import TrainError, VotesError
from moral_entropy.train.classifier import (
    PENALTY,
    WORDS,
    load_classifier,
    predict,
    read_texts,
    save_classifier,
    train_tfidf,
)
from moral_entropy.train.targets import probabilities

text = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is not installed")
FACTS = {"model": "tfidf", "max_length": 128}


def features(texts):
    return text.TfidfVectorizer(**WORDS, min_df=2).fit_transform(texts).toarray()


def optimum(x_if, target_ik, count_i):
    """Minimise the summed cross-entropy against soft targets and the ridge, by a general optimiser; returns p."""
    n_features, width = x_if.shape[1], target_ik.shape[1]

    def parts(theta):
        return theta[:-width].reshape(n_features, width), theta[-width:]

    def objective(theta):
        weight_fk, bias_k = parts(theta)
        logits_ik = x_if @ weight_fk + bias_k
        if width == 1:
            loss_i = (np.logaddexp(0.0, logits_ik) - target_ik * logits_ik)[:, 0]
            gap_ik = expit(logits_ik) - target_ik
        else:
            loss_i = logsumexp(logits_ik, axis=1) - (target_ik * logits_ik).sum(axis=1)
            gap_ik = softmax(logits_ik, axis=1) - target_ik
        gap_ik = gap_ik * count_i[:, None]
        gradient = np.concatenate([(x_if.T @ gap_ik + PENALTY * weight_fk).ravel(), gap_ik.sum(axis=0)])
        return count_i @ loss_i + PENALTY / 2 * (weight_fk**2).sum(), gradient

    start = np.zeros((n_features + 1) * width)
    fitted = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5_000, "ftol": 1e-14})
    weight_fk, bias_k = parts(fitted.x)
    logits_ik = x_if @ weight_fk + bias_k
    return expit(logits_ik) if width == 1 else softmax(logits_ik, axis=1)


def soft_targets(n_items=90):
    """Targets anywhere between 0 and 1, items that count more than once, and some without a target."""
    rng = np.random.default_rng(3)
    targets = targets_of_texts(n_items)
    target_io = np.column_stack([rng.random(n_items), rng.dirichlet(np.ones(3), size=n_items)])
    target_io[:7, 0] = np.nan
    return replace(targets, by_kind={"soft": target_io}, count_i=rng.integers(1, 4, size=n_items).astype(float))


def test_soft_targets_are_fitted_as_the_objective_says():
    targets = soft_targets()
    model = train_tfidf(targets, "soft")
    p_io = probabilities(targets.questions, model.logits(targets.texts))
    x_if, target_io = features(targets.texts), targets.by_kind["soft"]
    care_i = np.arange(7, 90)
    wanted = optimum(x_if[care_i], target_io[care_i, :1], targets.count_i[care_i])
    assert_allclose(p_io[care_i, :1], wanted, atol=2e-4)
    assert_allclose(p_io[:, 1:], optimum(x_if, target_io[:, 1:], targets.count_i), atol=2e-4)


def test_a_label_that_is_never_the_target_has_a_probability_of_almost_zero():
    targets = targets_of_texts(60, questions=(TONE,))
    target_io = np.eye(3)[np.arange(60) % 2]
    model = train_tfidf(replace(targets, by_kind={"hard": target_io}), "hard")
    p_io = probabilities(targets.questions, model.logits(targets.texts))
    assert p_io[:, 2].max() < 1e-4 and p_io[:, :2].min() > 0.01


def test_texts_without_a_common_word_are_refused():
    targets = targets_of_texts(20, questions=(CARE,))
    with pytest.raises(TrainError, match="the 20 texts have no word in common"):
        train_tfidf(replace(targets, texts=tuple(f"word{n}" for n in range(20))), "soft")


@pytest.fixture(scope="module")
def model():
    return train_tfidf(targets_of_texts(120), "soft")


@pytest.fixture
def saved(model, tmp_path):
    return save_classifier(model, tmp_path / "model", FACTS, {"README.md": "# A card\n"})


def test_p_and_entropy_by_question_and_label(model, saved):
    texts = targets_of_texts(9, seed=4).texts
    frame = predict(saved, texts)
    p_io = probabilities(model.questions, model.logits(texts))
    care, tone = frame.filter(question="care"), frame.filter(question="tone")
    assert care["item"].to_list() == list(range(9)) and set(care["label"]) == {"yes"}
    assert_allclose(care["p"], p_io[:, 0], rtol=1e-12)
    assert_allclose(care["entropy"], [entropy([p, 1 - p]) for p in p_io[:, 0]])
    assert tone["label"].to_list() == ["anger", "joy", "none"] * 9
    assert_allclose(tone["entropy"], np.repeat(entropy(p_io[:, 1:], axis=1), 3))


def test_blank_texts_get_no_answer_and_company_does_not_matter(model):
    frame = predict(model, ["protect the river", None, "  "]).filter(question="care")
    assert frame["p"].is_null().to_list() == frame["entropy"].is_null().to_list() == [False, True, True]
    assert_allclose(frame["p"][0], predict(model, ["protect the river"])["p"][0])


ARRAYS = {"idf_f": np.ones(2), "intercept_o": np.full(4, np.nan), "weight_fo": np.array(["x"])}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit_are_refused(saved, name):
    with np.load(saved / "weights.npz") as before:
        arrays = dict(before)
    arrays[name] = ARRAYS[name]
    np.savez(saved / "weights.npz", **arrays)
    with pytest.raises(TrainError, match="damaged tfidf model"):
        load_classifier(saved)


@pytest.mark.parametrize(
    "words", [{}, {"words": [], "letters": []}, [3], ["good", "good"], ["good"], [["good"]], [{}, "good"], [None]]
)
def test_vocabularies_that_are_none_are_refused(saved, words):
    (saved / "vocabulary.json").write_text(json.dumps(words))
    with pytest.raises(TrainError, match="damaged tfidf model"):
        load_classifier(saved)


DAMAGES = {
    "empty": lambda _: b"", "half": lambda content: content[: len(content) // 2],
    "garbage": lambda content: np.random.default_rng(0).bytes(len(content)), "null": lambda _: b"null",
    "number": lambda _: b"3", "word": lambda _: b'"x"', "list": lambda _: b'[["a"], {}]', "keys": lambda _: b'{"a": 1}',
    "deep": lambda _: b"[" * 100_000, "missing": None, "folder": None,
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["moral_entropy.json", "vocabulary.json", "weights.npz"])
def test_a_damaged_folder_is_named_in_one_sentence(saved, tmp_path, name, damage):
    content = (saved / name).read_bytes()
    (saved / name).unlink()
    if DAMAGES[damage]:
        (saved / name).write_bytes(DAMAGES[damage](content))
    elif damage == "folder":
        (saved / name).mkdir()
    with pytest.raises(TrainError) as raised:
        predict(saved, ["protect the river"])
    said = str(raised.value)
    assert name in said and str(saved) in said and "\n" not in said and len(said) < 250 + 2 * len(str(saved))


@pytest.mark.parametrize(
    "head", [[], {}, 3, [{"question": "care"}], [{"question": "care", "labels": 3, "positive": None}],
             [{"question": "care", "labels": ["no", "yes"], "positive": None}],
             [{"question": "care", "labels": [["no"], "yes"], "positive": "yes"}],
             [{"question": "tone", "labels": ["a", "a", "b"], "positive": None}],
             [{"question": "tone", "labels": ["a", "b", "c"], "positive": None, "levels": [1, "x", 3]}]],
)  # fmt: skip
def test_outputs_that_are_none_are_refused(saved, head):
    facts = json.loads((saved / "moral_entropy.json").read_text())
    (saved / "moral_entropy.json").write_text(json.dumps(facts | {"head": head}))
    with pytest.raises(TrainError):
        load_classifier(saved)


@pytest.mark.parametrize(
    ("facts", "said"),
    [(None, "it has no moral_entropy.json"), ("{", "is damaged"), ("{}", "incomplete")],
)  # fmt: skip
def test_what_is_no_trained_model_is_refused(tmp_path, facts, said):
    if facts is not None:
        (tmp_path / "moral_entropy.json").write_text(facts)
    with pytest.raises(TrainError, match=said):
        load_classifier(tmp_path)


def test_a_folder_that_holds_something_is_never_replaced(model, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(TrainError, match=r"exists \(first file: thesis\.tex\)"):
        save_classifier(model, tmp_path, FACTS, {})


class TestFilesOfTexts:
    @pytest.mark.parametrize(
        ("content", "ids"), [("tweet_id,likes,text\n7,3,one\n9,4,two\n", ["7", "9"]), ("whatever\none\ntwo\n", [0, 1])]
    )
    def test_columns_are_guessed(self, tmp_path, content, ids):
        (tmp_path / "texts.csv").write_text(content)
        items, texts = read_texts(tmp_path / "texts.csv")
        assert (items.to_list(), texts) == (ids, ["one", "two"])

    def test_what_cannot_be_read_is_refused(self, tmp_path):
        file = tmp_path / "texts.csv"
        file.write_text("a,b\n1,2\n")
        with pytest.raises(TrainError, match=r"no column that looks like texts\. Found: a, b\. Name it with --text"):
            read_texts(file)
        with pytest.raises(VotesError, match="no column 'c'"):
            read_texts(file, text="c")
        file.write_text("id,text\n1, \n2,\n")
        with pytest.raises(TrainError, match="none of the 2 rows"):
            read_texts(file)
