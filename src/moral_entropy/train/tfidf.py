"""The baseline: TF-IDF of words and letters with scikit-learn, and logistic regression on soft targets.

The cross-entropy against p is minimised directly, for all questions at once (`ridge`). scikit-learn's own logistic
regression would need every text twice per question, "yes" with weight p and "no" with weight 1 − p; a test compares
the two. Texts are turned into numbers once and kept, for all targets, seeds and questions of a study. No PyTorch, no
pickle: a saved model is JSON and plain arrays.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy.errors import MissingExtraError, TrainError
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.classifier import Point, Watch, ignore_point
from moral_entropy.train.head import Head
from moral_entropy.train.ridge import minimise
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Floats

WORDS: dict[str, Any] = {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"}
LETTERS: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (3, 4)}
MOST_FEATURES = 30_000
"""At most so many n-grams of words, and of letters: the most frequent ones."""

PENALTY = 1.0
"""Of the ridge: this many times half the squared norm of the weights is added to the summed loss."""

MOST_KEPT = 200_000
"""Texts whose features are kept in memory for the next fit, at most."""

TEXTS_AT_ONCE = 4_096
ARRAYS, VOCABULARY = "weights.npz", "vocabulary.json"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The n-grams of words and letters that count, and how rare each is. Axis: **f** feature, words first."""

    words: tuple[str, ...]
    letters: tuple[str, ...]
    idf_f: Floats

    def matrix(self, texts: Sequence[str]) -> Any:
        """Return the texts as sparse rows: `x_if`."""
        from scipy.sparse import hstack

        cut = len(self.words)
        parts = [(WORDS, self.words, self.idf_f[:cut]), (LETTERS, self.letters, self.idf_f[cut:])]
        return hstack([_weighted(kind, names, idf_f, texts) for kind, names, idf_f in parts if names], format="csr")


@dataclass(eq=False)
class TextFeatures:
    """Texts as sparse rows, each made once: a study fits many targets on the same texts, and asks about the same ones.

    Half the bytes are half the time of a step, so they are 32-bit numbers.
    """

    vocabulary: Vocabulary
    row_of: dict[str, int] = field(default_factory=dict)
    rows: Any = None

    def matrix(self, texts: Sequence[str]) -> Any:
        """Return the texts as sparse rows: `x_if`; those that are new are kept."""
        from scipy.sparse import vstack

        fresh = [text for text in dict.fromkeys(texts) if text not in self.row_of]
        if len(self.row_of) + len(fresh) > MOST_KEPT:
            return self.vocabulary.matrix(texts).astype(np.float32)
        if fresh:
            made = self.vocabulary.matrix(fresh).astype(np.float32)
            self.row_of.update(zip(fresh, range(len(self.row_of), len(self.row_of) + len(fresh)), strict=True))
            self.rows = made if self.rows is None else vstack([self.rows, made], format="csr")
        return self.rows[[self.row_of[text] for text in texts]]


@dataclass(frozen=True, eq=False)
class Tfidf:
    """A trained baseline. Axes: **f** feature, **o** output."""

    head: Head
    vocabulary: Vocabulary
    weight_fo: Floats
    intercept_o: Floats
    curve: tuple[Point, ...] = field(default=())
    features: TextFeatures | None = None

    def logits(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the logit of every output for every text: `logits_io`."""
        logits_io = np.empty((len(texts), self.head.n_outputs))
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            some = slice(start, start + TEXTS_AT_ONCE)
            logits_io[some] = self._matrix(texts[some]) @ self.weight_fo + self.intercept_o
            advance(min(start + TEXTS_AT_ONCE, len(texts)) / len(texts))
        return logits_io

    def _matrix(self, texts: Sequence[str]) -> Any:
        if self.features is not None:
            return self.features.matrix(texts)
        # As they were trained on, so that a saved model gives the same answers.
        return self.vocabulary.matrix(texts).astype(np.float32)

    def probabilities(self, texts: Sequence[str], *, advance: Advance = ignore) -> Floats:
        """Return the probability of every output for every text: `p_io`."""
        return self.head.probabilities(self.logits(texts, advance=advance))

    def cooled(self, temperature: float) -> Tfidf:
        """Return the model whose logits are divided by a temperature."""
        return replace(self, weight_fo=self.weight_fo / temperature, intercept_o=self.intercept_o / temperature)

    def save(self, folder: Path) -> None:
        """Write vocabulary and weights into a folder."""
        names = {"words": self.vocabulary.words, "letters": self.vocabulary.letters}
        (folder / VOCABULARY).write_text(json.dumps(names, ensure_ascii=False) + "\n", encoding="utf-8")
        arrays = {"idf_f": self.vocabulary.idf_f, "weight_fo": self.weight_fo, "intercept_o": self.intercept_o}
        with (folder / ARRAYS).open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


def load_tfidf(folder: Path, head: Head) -> Tfidf:
    """Load what `Tfidf.save` wrote."""
    import_sklearn()
    try:
        names = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            idf_f, weight_fo, intercept_o = (arrays[name] for name in ("idf_f", "weight_fo", "intercept_o"))
        words, letters = _texts(names, "words"), _texts(names, "letters")
        n_features = len(words) + len(letters)
        for name, array, shape in (
            ("idf_f", idf_f, (n_features,)),
            ("weight_fo", weight_fo, (n_features, head.n_outputs)),
            ("intercept_o", intercept_o, (head.n_outputs,)),
        ):
            _check_array(name, array, shape)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        msg = f"{folder} holds a damaged tfidf model: {str(error).splitlines()[0]}. Train it again."
        raise TrainError(msg) from error
    return Tfidf(head, Vocabulary(words, letters, idf_f), weight_fo, intercept_o)


def _texts(names: Any, kind: str) -> tuple[str, ...]:
    listed = names.get(kind) if isinstance(names, dict) else None
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        msg = f"{VOCABULARY} has no list of {kind}"
        raise ValueError(msg)
    if len(set(listed)) < len(listed):
        msg = f"{VOCABULARY} has some {kind} twice"
        raise ValueError(msg)
    return tuple(listed)


def _check_array(name: str, array: Any, shape: tuple[int, ...]) -> None:
    if array.dtype.kind != "f" or array.shape != shape:
        msg = f"{name} has the shape {array.shape} of {array.dtype}, not {shape} of numbers"
        raise ValueError(msg)
    if not np.isfinite(array).all():
        msg = f"{int((~np.isfinite(array)).sum()):,} numbers of {name} are not finite"
        raise ValueError(msg)


def train_tfidf(
    train: Targets,
    validation: Targets | None,
    *,
    penalty: float = PENALTY,
    advance: Advance = ignore,
    watch: Watch = ignore_point,
) -> Tfidf:
    """Fit the baseline; the loss has one optimum, so that no seed is needed.

    Parameters
    ----------
    train, validation
        What to learn, and what the last point of the curve is measured on.
    penalty
        Strength of the ridge penalty on the weights.
    advance, watch
        Called with the share done, and with the losses at the end.
    """
    import_sklearn()
    features = _features(train.texts if validation is None else (*train.texts, *validation.texts))
    advance(0.2)
    fitted = minimise(features.matrix(train.texts), train, penalty, lambda share: advance(0.2 + 0.8 * share))
    model = Tfidf(train.head, features.vocabulary, fitted.weight_fo, fitted.intercept_o, features=features)
    after = _loss(model, validation) if validation is not None else float("nan")
    point = Point(fitted.steps, _loss(model, train), after)
    watch(point)
    advance(1.0)
    return replace(model, curve=(point,))


def import_sklearn() -> Any:
    """Import scikit-learn, or say which extra brings it."""
    try:
        import sklearn
    except ImportError as error:
        what = "the tfidf model needs scikit-learn"
        raise MissingExtraError(what, "train") from error
    return sklearn


def _loss(model: Tfidf, targets: Targets) -> float:
    return targets.head.loss(model.logits(targets.texts), targets.target_io, targets.weight_iq)


_LAST: dict[str, TextFeatures] = {}


def _features(texts: Sequence[str]) -> TextFeatures:
    """Return the features of texts: those of the last training if it had the same texts, in whatever order and parts.

    n-grams and their frequencies come from all texts that were given, validation included, so that trainings which
    differ in what they validate on share them. Labels have no part in it.
    """
    known = sorted(set(texts))
    key = hashlib.sha256("\0".join(known).encode("utf-8", "surrogatepass")).hexdigest()
    if key not in _LAST:
        _LAST.clear()
        words, letters = _counted(WORDS, known), _counted(LETTERS, known)
        vocabulary = Vocabulary(words[0], letters[0], np.concatenate([words[1], letters[1]]))
        if not len(vocabulary.idf_f):
            msg = f"the {len(texts):,} texts have no word or letters in common. Train on more of them."
            raise TrainError(msg)
        _LAST[key] = TextFeatures(vocabulary)
    return _LAST[key]


def _counted(kind: dict[str, Any], texts: Sequence[str]) -> tuple[tuple[str, ...], Floats]:
    """Find the n-grams that are in two texts or more, and their inverse document frequencies."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counter = TfidfVectorizer(**kind, sublinear_tf=True, min_df=min(2, len(texts)), max_features=MOST_FEATURES)
    try:
        counter.fit(texts)
    except ValueError:  # No n-gram is left.
        return (), np.zeros(0)
    return tuple(counter.get_feature_names_out().tolist()), np.asarray(counter.idf_, dtype=np.float64)


def _weighted(kind: dict[str, Any], names: tuple[str, ...], idf_f: Floats, texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    counter = TfidfVectorizer(**kind, sublinear_tf=True, vocabulary={name: f for f, name in enumerate(names)})
    counter.idf_ = idf_f
    return counter.transform(texts)
