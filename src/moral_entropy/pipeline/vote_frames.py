"""Votes, texts and pushes → rows of votes.parquet, texts.parquet and pushes.parquet, in chunks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.outliers.pushes import Pushes, prior_pushes, vote_pushes
from moral_entropy.runs.tables import PUSHES, ROWS_PER_GROUP, TEXTS, VOTES, with_ids
from moral_entropy.votes.table import Votes


def vote_frames(votes: Votes) -> Iterator[pl.DataFrame]:
    """Give a row for every vote, in the order of the ballots."""
    schema = with_ids(VOTES, item=votes.items.dtype, annotator=votes.annotators.dtype)
    for ballot in votes.ballots:
        labels = pl.Series(ballot.labels, dtype=pl.String)
        for start in range(0, ballot.n_votes, ROWS_PER_GROUP):
            at_v = np.arange(start, min(start + ROWS_PER_GROUP, ballot.n_votes))
            code_v = ballot.code_v[at_v]
            item_v = np.searchsorted(ballot.start_i, at_v, side="right") - 1
            columns = {
                "question": pl.repeat(ballot.question, len(at_v), eager=True),
                "item": votes.items.gather(ballot.item_i[item_v]),
                "annotator": votes.annotators.gather(ballot.annotator_a[code_v // ballot.n_labels]),
                "label": labels.gather(code_v % ballot.n_labels),
            }
            yield pl.DataFrame(columns, schema=schema)


def text_frames(votes: Votes) -> Iterator[pl.DataFrame]:
    """Give a row for every item with its text; none where there are no texts."""
    schema = with_ids(TEXTS, item=votes.items.dtype)
    if votes.texts is None:
        return
    for start in range(0, votes.n_items, ROWS_PER_GROUP):
        columns = {"item": votes.items.slice(start, ROWS_PER_GROUP), "text": votes.texts.slice(start, ROWS_PER_GROUP)}
        yield pl.DataFrame(columns, schema=schema)


def push_frames(consensus: Consensus) -> Iterator[pl.DataFrame]:
    """Give the prior's row and a row for every vote an annotator can cast, by label spoken for; fit by fit."""
    annotators = consensus.votes.annotators
    for fit in consensus.fits:
        nobody = pl.Series([None], dtype=annotators.dtype)
        no_vote = pl.Series([None], dtype=pl.String)
        yield _push_frame(fit, nobody, no_vote, prior_pushes(fit, consensus.interval))
        labels = pl.Series(fit.ballot.labels, dtype=pl.String)
        for chunk, pushes in vote_pushes(fit, consensus.interval):
            yield _push_frame(fit, annotators.gather(fit.ballot.annotator_a[chunk]), labels, pushes)


def _push_frame(fit: QuestionFit, annotators: pl.Series, voted: pl.Series, pushes: Pushes) -> pl.DataFrame:
    a, v, c = (index.ravel() for index in np.indices(pushes.push_avc.shape))
    classes = pl.Series([fit.ballot.labels[k] for k in pushes.classes], dtype=pl.String)
    columns = {
        "question": pl.repeat(fit.ballot.question, len(a), eager=True),
        "part": pl.repeat(fit.ballot.part, len(a), eager=True),
        "annotator": annotators.gather(a),
        "voted": voted.gather(v),
        "class": classes.gather(c),
        "push": pushes.push_avc.ravel(),
        "low": pl.Series(pushes.low_avc.ravel()).fill_nan(None),
        "high": pl.Series(pushes.high_avc.ravel()).fill_nan(None),
    }
    return pl.DataFrame(columns, schema=with_ids(PUSHES, annotator=annotators.dtype))
