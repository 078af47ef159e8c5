"""Prediction: a trained model and texts in, a probability and its entropy per question out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import TrainError
from moral_entropy.progress import Advance, ignore
from moral_entropy.train.classifier import Classifier, load_classifier
from moral_entropy.votes.columns import guess_column, named_column
from moral_entropy.votes.source import Source, on_disk, open_files
from moral_entropy.votes.table import shown


def predict(
    model: str | Path | Classifier,
    texts: Sequence[str | None],
    *,
    items: pl.Series | None = None,
    device: str = "auto",
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
    device
        Where to compute.
    advance
        Called with the share done.

    Returns
    -------
    polars.DataFrame
        item, question, label, p, entropy (nats, of the whole answer). A question of two labels has one row per text,
        about its positive label; one of more has one row per label. Both are null where the text is blank.
    """
    classifier = load_classifier(model, device=device) if isinstance(model, (str, Path)) else model
    ids = pl.Series("item", range(len(texts)), dtype=pl.Int64) if items is None else items.alias("item")
    written = [at for at, text in enumerate(texts) if text and text.strip()]
    p_io = np.full((len(texts), classifier.head.n_outputs), np.nan)
    if written:
        p_io[written] = classifier.probabilities([str(texts[at]) for at in written], advance=advance)
    return _frame(classifier, ids, p_io)


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
        return _read_texts(open_files(stored), text, item)


def _read_texts(source: Source, text: str | None, item: str | None) -> tuple[pl.Series, list[str | None]]:
    names = list(source.columns)
    column = named_column(text, names, source.name, "text") if text else _text_column(names)
    if column is None:
        msg = f"{source.name} has no column that looks like texts. Found: {shown(names)}. Name it with --text COLUMN."
        raise TrainError(msg)
    texts = source.column(column).cast(pl.String).to_list()
    others = [name for name in names if name != column]
    id_column = named_column(item, names, source.name, "item") if item else guess_column("item", others)
    ids = pl.Series("item", range(len(texts)), dtype=pl.Int64) if id_column is None else source.column(id_column)
    if not any(one and one.strip() for one in texts):
        msg = f"none of the {len(texts):,} rows of {source.name} has a text in column {column!r}."
        raise TrainError(msg)
    return ids, texts


def _text_column(names: list[str]) -> str | None:
    return names[0] if len(names) == 1 else guess_column("text", names)


def _frame(classifier: Classifier, items: pl.Series, p_io: Any) -> pl.DataFrame:
    entropy_iq = classifier.head.entropies(p_io)
    parts = []
    for q, (block, columns) in enumerate(zip(classifier.head.blocks, classifier.head.columns, strict=True)):
        labels = [block.positive] if block.positive is not None else list(block.labels)
        rows = {
            "item": items.gather(np.repeat(np.arange(len(items)), len(labels))),
            "question": pl.repeat(block.question, len(items) * len(labels), eager=True),
            "label": pl.Series(labels * len(items), dtype=pl.String),
            "p": pl.Series(p_io[:, columns].ravel()).fill_nan(None),
            "entropy": pl.Series(np.repeat(entropy_iq[:, q], len(labels))).fill_nan(None),
        }
        parts.append(pl.DataFrame(rows))
    return pl.concat(parts)
