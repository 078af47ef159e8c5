"""Trained classifiers, whichever model they are: train one, save it as a folder, load it again, ask it about texts.

The baseline, `tfidf`, is scikit-learn's logistic regression on TF-IDF of words and pairs of words; cross-entropy
against p is that of every text once per label with weight p. Every other model needs PyTorch and Transformers. A saved
model is whole or not at all: beside its own files, none of them a pickle, lie `moral_entropy.json`, which says what the
outputs are, and `README.md`, the model card. A folder of the
Hugging Face kind loads with `AutoModelForSequenceClassification.from_pretrained` too.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from scipy.special import entr

from moral_entropy.errors import TrainError
from moral_entropy.options import TFIDF, TrainOptions
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.folder import writing
from moral_entropy.runs.run import Question
from moral_entropy.train.targets import Targets, by_label, columns_of, output_names, probabilities
from moral_entropy.votes.columns import guess_column, named_column
from moral_entropy.votes.source import on_disk, open_file
from moral_entropy.votes.table import Floats, one_line, shown

if TYPE_CHECKING:
    from moral_entropy.train.encoder import Encoder

FACTS, CARD = "moral_entropy.json", "README.md"
MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff"
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Marks that belong to the letter before them (accents, vowels of Hebrew, Arabic and the scripts of India), and letters
of scripts without blanks between words: Thai, Lao, Burmese, Khmer, kana, Chinese."""


def spaced(text: str) -> str:
    """Write a text in lower case, accents as one letter, and every letter of scripts without blanks as a word.

    Pairs of words are then pairs of letters, of which most Chinese words have two. HTML entities, escaped twice too,
    become what they mean.

    Examples
    --------
    >>> spaced("Cafe\u0301 &gt;"), spaced("我爱你").split()
    ('café >', ['我', '爱', '你'])
    """
    return UNSPACED.sub(r" \g<0> ", unicodedata.normalize("NFC", html.unescape(html.unescape(text))).lower())


TOKEN = rf"[\w{MARKS}]+|[\u2600-\u27bf\U0001f300-\U0001faff]"
"""A word; an emoji counts as a word, since many posts say with it what they mean."""
WORDS: dict[str, Any] = {"ngram_range": (1, 2), "token_pattern": TOKEN, "sublinear_tf": True, "preprocessor": spaced}
MOST_FEATURES = 50_000
"""At most so many words and pairs of words: the most frequent ones."""

PENALTY = 0.3
"""This many times half the squared norm of the weights is added to the summed loss. On POPQUORN, nine language models
about MFRC and MFTC's twin, 0.3 has a lower log loss on unseen texts than 1, by 0.011, 0.016 and 0.032 nats."""

LEAST = 1e-6
"""Weight of the one row that a label has which is never the target: its probability is then almost 0, not undefined."""

ARRAYS, VOCABULARY = "weights.npz", "vocabulary.json"


Classifier: TypeAlias = "Tfidf | Encoder"
"""A trained model: `questions` say what its outputs mean, `logits` answers texts, `save` writes its files."""


def train_classifier(train: Targets, kind: str, options: TrainOptions, *, advance: Advance = ignore) -> Classifier:
    """Train a model on targets of one kind; items without such a target are left out."""
    usable = train.with_target(kind)
    if options.model == TFIDF:
        return train_tfidf(usable, kind, advance=advance)
    from moral_entropy.train.encoder import train_encoder

    return train_encoder(usable, kind, options, advance=advance)


def check_out(out: str | Path) -> None:
    """Refuse a folder that holds anything, before hours are spent on a model that cannot be put there."""
    path = Path(out)
    names = sorted(entry.name for entry in (path.glob("*") if path.is_dir() else [path]) if entry.exists())
    if names:
        msg = f"{path} exists (first file: {names[0]}). A model replaces nothing; choose another folder with -o."
        raise TrainError(msg)


def save_classifier(
    classifier: Classifier, out: str | Path, facts: Mapping[str, Any], files: Mapping[str, str]
) -> Path:
    """Write a trained model and return its folder.

    Parameters
    ----------
    classifier
        The model.
    out
        The folder; new or empty.
    facts
        What to remember about the training: `model`, `max_length` and whatever else.
    files
        Further text files by name, such as the model card.
    """
    check_out(out)
    head = [
        {"question" if name == "name" else name: value for name, value in vars(question).items()}
        for question in classifier.questions
    ]
    described = json.dumps({**facts, "head": head}, indent=2, ensure_ascii=False)
    try:
        with writing(out) as folder:
            classifier.save(folder)
            for name, text in {FACTS: described + "\n", **files}.items():
                (folder / name).write_text(text, encoding="utf-8")
            # Weights are written readable for their owner alone; let the umask decide, as for every other file.
            mode = (folder / FACTS).stat().st_mode
            for file in folder.iterdir():
                file.chmod(mode)
    except Exception as error:
        # safetensors has an error of its own for a write that the system refuses.
        reason = getattr(error, "strerror", None) or one_line(error)
        msg = f"cannot write the model to {out}: {reason}. Make room, or write elsewhere with -o."
        raise TrainError(msg) from error
    return Path(out)


def load_classifier(folder: str | Path) -> Classifier:
    """Load a model that `save_classifier` wrote.

    Examples
    --------
    >>> load_classifier("nowhere")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.TrainError: nowhere is no trained model: there is no such folder. ...
    """
    path = Path(folder)
    model, max_length, questions = _read_facts(path)
    if model == TFIDF:
        return load_tfidf(path, questions)
    from moral_entropy.train.encoder import load_encoder

    return load_encoder(path, questions, max_length)


def _read_facts(path: Path) -> tuple[str, int, tuple[Question, ...]]:
    """Read which model a folder holds, how many tokens it takes, and what its outputs mean."""
    problem = f"its {FACTS} is damaged or incomplete"
    with suppress(Exception):
        facts: dict[str, Any] = json.loads((path / FACTS).read_text(encoding="utf-8"))
        questions = tuple(
            Question(str(row["question"]), tuple(row["labels"]), row["positive"],
                     tuple(map(float, row.get("levels", ()))), row.get("scale", "nominal")) for row in facts["head"]
        )  # fmt: skip
        # Two labels, one of them the positive one, or more than two and no positive one; a level for each, or none.
        sound = all((len(set(row.labels)) == 2 if row.positive in row.labels else len(set(row.labels)) > 2)
                    and len(row.levels) in (0, len(row.labels)) for row in questions)  # fmt: skip
        strings = [facts["model"], *(label for row in questions for label in row.labels)]
        if questions and sound and all(isinstance(text, str) for text in strings):
            return facts["model"], int(facts["max_length"]), questions
    if not (path / FACTS).is_file():
        problem = f"it has no {FACTS}" if path.is_dir() else "there is no such folder"
    msg = f"{path} is no trained model: {problem}. Make one with: moral-entropy train run/ -o {path}"
    raise TrainError(msg)


# --- The baseline ---------------------------------------------------------------------------------------------------


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
        # On tf-idf of 5,000 texts 25 times as fast as the default, lbfgs, and nearer to the optimum.
        regression = LogisticRegression(C=c, tol=tol, max_iter=2_000, solver="newton-cg")
        return regression.fit(x_if[row_r], label_r, sample_weight=weight_ik[row_r, label_r])


def load_tfidf(folder: Path, questions: tuple[Question, ...]) -> Tfidf:
    """Load what `Tfidf.save` wrote."""
    problem = f"its {VOCABULARY} cannot be read"
    # A damaged archive ends in whatever error its bytes happen to mean.
    with suppress(Exception):
        words = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        # Fails where something is no string.
        n_words, n_outputs = len(set(map(str.strip, words))), len(output_names(questions))
        problem = f"its {ARRAYS} cannot be read"
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            names = ("idf_f", "weight_fo", "intercept_o")
            idf_f, weight_fo, intercept_o = (np.asarray(arrays[name], dtype=float) for name in names)
        problem = f"its {ARRAYS} is not finite, or not for {n_words:,} words of {VOCABULARY} and {n_outputs} outputs"
        shapes = (idf_f.shape, weight_fo.shape, intercept_o.shape) == ((n_words,), (n_words, n_outputs), (n_outputs,))
        if shapes and np.isfinite(idf_f.sum() + weight_fo.sum() + intercept_o.sum()):
            return Tfidf(questions, tuple(words), idf_f, weight_fo, intercept_o)
    msg = f"{folder} holds a damaged tfidf model: {problem}. Train it again."
    raise TrainError(msg)


# --- Prediction ---------------------------------------------------------------------------------------------------


def predict(
    model: str | Path | Classifier,
    texts: Sequence[str | None],
    *,
    items: pl.Series | None = None,
    advance: Advance = ignore,
) -> pl.DataFrame:
    """Predict the labels of texts with a trained model.

    Parameters
    ----------
    model
        Folder that `train` wrote, or a classifier.
    texts
        The texts; a blank one gets no answer.
    items
        Their ids; by default 0, 1, 2, …
    advance
        Called with the share done.

    Returns
    -------
    polars.DataFrame
        item, question, label, p, entropy (nats, of the whole answer). A question of two labels has one row per text,
        about its positive label; one of more has one row per label. Both are null where the text is blank. Of a
        question with a scale there is also the expected score.
    """
    classifier = load_classifier(model) if isinstance(model, (str, Path)) else model
    ids = pl.Series("item", range(len(texts)), dtype=pl.Int64) if items is None else items.alias("item")
    rows = [i for i, text in enumerate(texts) if text and text.strip()]
    p_io = np.full((len(texts), len(output_names(classifier.questions))), np.nan)
    if rows:
        logits_io = classifier.logits([str(texts[i]) for i in rows], advance=advance)
        p_io[rows] = probabilities(classifier.questions, logits_io)
    parts = []
    for question, columns in columns_of(classifier.questions):
        labels = list(question.labels) if question.positive is None else [question.positive]
        entropy_i = entr(by_label(p_io, columns)).sum(axis=1)
        cells = {
            "item": ids.gather(np.repeat(np.arange(len(ids)), len(labels))),
            "question": pl.repeat(question.name, len(ids) * len(labels), eager=True),
            "label": pl.Series(labels * len(ids), dtype=pl.String),
            "p": pl.Series(p_io[:, columns].ravel()).fill_nan(None),
            "entropy": pl.Series(np.repeat(entropy_i, len(labels))).fill_nan(None),
        }
        if question.levels:
            score_i = p_io[:, columns] @ np.array(question.levels)
            cells["score"] = pl.Series(np.repeat(score_i, len(labels))).fill_nan(None)
        parts.append(pl.DataFrame(cells))
    return pl.concat(parts, how="diagonal")


def read_texts(
    path: str | Path, *, text: str | None = None, item: str | None = None
) -> tuple[pl.Series, list[str | None]]:
    """Read texts and their ids from a file; without a column of ids, rows are counted from 0.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or JSON.
    text, item
        Columns; guessed by name when not given, a file of one column has only the texts.
    """
    with on_disk(path) as stored:
        source = open_file(Path(stored))
        names = list(source.columns)
        guessed = names[0] if len(names) == 1 else guess_column("text", names)
        column = named_column(text, names, source.name, "text") if text else guessed
        if column is None:
            msg = f"{source.name}: no column that looks like texts. Found: {shown(names)}. Name it with --text COLUMN."
            raise TrainError(msg)
        texts = source.column(column).cast(pl.String).to_list()
        names.remove(column)
        id_column = named_column(item, names, source.name, "item") if item else guess_column("item", names)
        ids = pl.Series("item", range(len(texts)), dtype=pl.Int64) if id_column is None else source.column(id_column)
    if not any(sentence and sentence.strip() for sentence in texts):
        msg = f"none of the {len(texts):,} rows of {source.name} has a text in column {column!r}."
        raise TrainError(msg)
    return ids, texts
