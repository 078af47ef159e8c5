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

from moral_entropy.errors import MissingExtraError, TrainError
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
        with (folder / ARRAYS).open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


def train_tfidf(train: Targets, kind: str, *, advance: Advance = ignore) -> Tfidf:
    """Fit the baseline; the loss has one optimum, so that no seed is needed.

    Parameters
    ----------
    train
        What to learn.
    kind
        Kind of target.
    advance
        Called with the share done.
    """
    import_sklearn()
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
        known_i = np.isfinite(target_ik).all(axis=1)
        weight_ik = target_ik[known_i] * train.count_i[known_i, None]
        weight_fo[:, columns], intercept_o[columns] = _fit(x_if[known_i], weight_ik)
        advance(columns.stop / len(intercept_o))
    return Tfidf(train.questions, tuple(vectorizer.get_feature_names_out()), vectorizer.idf_, weight_fo, intercept_o)


def _fit(x_if: Any, weight_ik: Floats) -> tuple[Floats, Floats]:
    """Fit weights and intercepts from rows that count for every label by a weight."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    weight_ik[0] = np.maximum(weight_ik[0], LEAST)
    row_r, label_r = np.nonzero(weight_ik)
    regression = LogisticRegression(C=1.0 / PENALTY, tol=1e-6, max_iter=2_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression.fit(x_if[row_r], label_r, sample_weight=weight_ik[row_r, label_r])
    return regression.coef_.T, regression.intercept_


def import_sklearn() -> Any:
    """Import scikit-learn, or say which extra brings it."""
    try:
        import sklearn
    except ImportError as error:
        what = "the tfidf model needs scikit-learn"
        raise MissingExtraError(what, "train") from error
    return sklearn


def load_tfidf(folder: Path, questions: tuple[Question, ...]) -> Tfidf:
    """Load what `Tfidf.save` wrote."""
    import_sklearn()
    n_outputs = len(output_names(questions))
    try:
        words = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        strings = isinstance(words, list) and all(isinstance(word, str) for word in words)
        if not strings or len(set(words)) < len(words):
            msg = f"{VOCABULARY} is no list of different words"
            raise ValueError(msg)
        shapes = {"idf_f": (len(words),), "weight_fo": (len(words), n_outputs), "intercept_o": (n_outputs,)}
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            checked = [_checked(name, arrays[name], shape) for name, shape in shapes.items()]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        msg = f"{folder} holds a damaged tfidf model: {str(error).splitlines()[0]}. Train it again."
        raise TrainError(msg) from error
    return Tfidf(questions, tuple(words), *checked)


def _checked(name: str, array: Any, shape: tuple[int, ...]) -> Floats:
    if array.dtype.kind != "f" or array.shape != shape:
        msg = f"{name} has the shape {array.shape} of {array.dtype}, not {shape} of numbers"
        raise ValueError(msg)
    if not np.isfinite(array).all():
        msg = f"{int((~np.isfinite(array)).sum()):,} numbers of {name} are not finite"
        raise ValueError(msg)
    return np.asarray(array)
