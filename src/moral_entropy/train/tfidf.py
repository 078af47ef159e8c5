"""The baseline: TF-IDF of words and pairs of words, and logistic regression on soft targets, both scikit-learn's.

Cross-entropy against p is that of every text once per label with weight p. No PyTorch, no pickle: a saved model is JSON
and plain arrays.
"""

from __future__ import annotations

import json
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.run import Question
from moral_entropy.train.targets import Targets, by_label, columns_of, output_names
from moral_entropy.votes.table import Floats

WORDS: dict[str, Any] = {"ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b", "sublinear_tf": True}
MOST_FEATURES = 50_000
"""At most so many words and pairs of words: the most frequent ones."""

PENALTY = 0.3
"""This many times half the squared norm of the weights is added to the summed loss. On POPQUORN, nine language models
about MFRC and MFTC's twin, 0.3 has a lower log loss on unseen texts than 1, by 0.011, 0.016 and 0.032 nats."""

LEAST = 1e-6
"""Weight of the one row that a label has which is never the target: its probability is then almost 0, not undefined."""

ARRAYS, VOCABULARY = "weights.npz", "vocabulary.json"


@dataclass(frozen=True, eq=False)
class Tfidf:
    """A trained baseline. Axes: **f** feature, **o** output."""

    questions: tuple[Question, ...]
    words: tuple[str, ...]
    idf_f: Floats
    weight_fo: Floats
    intercept_o: Floats

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the logit of every output for every text: `logits_io`."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(**WORDS, vocabulary={word: f for f, word in enumerate(self.words)})
        vectorizer.idf_ = self.idf_f
        logits_io = vectorizer.transform(texts) @ self.weight_fo + self.intercept_o
        advance(1.0)
        return np.asarray(logits_io)

    def save(self, folder: Path) -> None:
        """Write vocabulary and weights into a folder."""
        (folder / VOCABULARY).write_text(json.dumps(self.words, ensure_ascii=False) + "\n", encoding="utf-8")
        arrays = {"idf_f": self.idf_f, "weight_fo": self.weight_fo, "intercept_o": self.intercept_o}
        np.savez_compressed(folder / ARRAYS, allow_pickle=False, **arrays)


def train_tfidf(train: Targets, kind: str, *, advance: Advance = ignore) -> Tfidf:
    """Fit the baseline to targets of a kind; the loss has one optimum, so that no seed is needed."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(**WORDS, min_df=min(2, len(train.texts)), max_features=MOST_FEATURES)
    try:
        x_if = vectorizer.fit_transform(train.texts)
    except ValueError as error:
        msg = f"the {len(train.texts):,} texts have no word in common. Train on more of them."
        raise TrainError(msg) from error
    weight_fo = np.empty((x_if.shape[1], len(output_names(train.questions))))
    intercept_o = np.empty(weight_fo.shape[1])
    for _, columns in columns_of(train.questions):
        target_ik = by_label(train.by_kind[kind], columns)
        rows = np.flatnonzero(np.isfinite(target_ik).all(axis=1))
        regression = fit_logistic(x_if[rows], target_ik[rows] * train.count_i[rows, None], 1.0 / PENALTY)
        weight_fo[:, columns], intercept_o[columns] = regression.coef_.T, regression.intercept_
        advance(columns.stop / len(intercept_o))
    return Tfidf(train.questions, tuple(vectorizer.get_feature_names_out()), vectorizer.idf_, weight_fo, intercept_o)


def fit_logistic(x_if: Any, weight_ik: Floats, c: float, tol: float = 1e-6) -> Any:
    """Fit scikit-learn's logistic regression to rows that count for every label by a weight.

    Parameters
    ----------
    x_if
        Features, dense or sparse.
    weight_ik
        How much each row counts for each label.
    c, tol
        Inverse of the penalty, and the tolerance: `C` and `tol` of `LogisticRegression`.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    weight_ik = weight_ik.copy()
    weight_ik[0] = np.maximum(weight_ik[0], LEAST)
    row_r, label_r = np.nonzero(weight_ik)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=c, tol=tol, max_iter=2_000).fit(
            x_if[row_r], label_r, sample_weight=weight_ik[row_r, label_r]
        )


def load_tfidf(folder: Path, questions: tuple[Question, ...]) -> Tfidf:
    """Load what `Tfidf.save` wrote."""
    try:
        words = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        with np.load(folder / ARRAYS, allow_pickle=False) as arrays:
            model = Tfidf(questions, tuple(words), *(arrays[name] for name in ("idf_f", "weight_fo", "intercept_o")))
        _check(model)
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        msg = f"{folder} holds a damaged tfidf model: {str(error).splitlines()[0]}. Train it again."
        raise TrainError(msg) from error
    return model


def _check(model: Tfidf) -> None:
    if not all(isinstance(word, str) for word in model.words) or len(set(model.words)) < len(model.words):
        msg = f"{VOCABULARY} is no list of different words"
        raise ValueError(msg)
    n_words, n_outputs = len(model.words), len(output_names(model.questions))
    shapes = {"idf_f": (n_words,), "weight_fo": (n_words, n_outputs), "intercept_o": (n_outputs,)}
    for name, shape in shapes.items():
        array = getattr(model, name)
        if array.dtype.kind != "f" or array.shape != shape or not np.isfinite(array).all():
            msg = f"{name} has the shape {array.shape} of {array.dtype}, not {shape} of finite numbers"
            raise ValueError(msg)
