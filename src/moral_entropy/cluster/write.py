"""Parts → the tables of a run folder, in the order of one machine and never held whole.

Workers make the rows, this machine writes them as they come: nothing is left behind elsewhere, and rows that a lost
worker had made are made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.judged import items_frame, posterior_frame, texts_frame, votes_frame
from moral_entropy.consensus.result import Consensus
from moral_entropy.names import ALL
from moral_entropy.pipeline.annotators import annotator_frames
from moral_entropy.pipeline.frames import has_posterior_table
from moral_entropy.pipeline.vote_frames import push_frames
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.tables import ENTROPY, ROWS_PER_GROUP, SCHEMAS, with_ids, write_table
from moral_entropy.votes.table import Floats

if TYPE_CHECKING:
    from distributed import Future


def write_items(
    folder: Path,
    crew: Crew,
    judged: Sequence[Future[Any]],
    consensus: Consensus,
    item: pl.DataType,
    *,
    texts: bool,
    advance: Advance = ignore,
) -> None:
    """Write what there is to say of items and votes, part by part.

    Parameters
    ----------
    folder
        Where to.
    crew, judged
        The workers, and the parts with what the fit says of them.
    consensus
        On an item a kind.
    item
        Type of the items' ids.
    texts
        Whether items have texts.
    advance
        Told the share done.
    """
    ids = {"item": item, "annotator": consensus.votes.annotators.dtype}
    ballots = range(len(consensus.fits))
    many = [b for b in ballots if consensus.fits[b].ballot.n_labels > 2]
    of_fits = {"items": (items_frame, ballots), "votes": (votes_frame, ballots), "posterior": (posterior_frame, many)}
    for n, (name, (work, some)) in enumerate(of_fits.items()):
        if name != "posterior" or has_posterior_table(consensus):
            schema = with_ids(SCHEMAS[name], **ids)
            frames = (frame for b in some for frame in crew.in_order(work, judged, b))
            write_frames(folder / f"{name}.parquet", schema, frames)
        advance((n + 1) / len(of_fits))
    if texts:
        write_frames(folder / "texts.parquet", with_ids(SCHEMAS["texts"], **ids), crew.in_order(texts_frame, judged))


def write_frames(path: Path, schema: pl.Schema, frames: Iterator[pl.DataFrame]) -> None:
    """Write frames one below the other, in row groups as on one machine; the error of a frame is raised as it is."""
    failed: list[BaseException] = []

    def chunks() -> Iterator[pl.DataFrame]:
        try:
            yield from regrouped(frames, schema)
        except BaseException as error:
            failed.append(error)
            raise

    try:
        write_table(path, schema, chunks)
    except pl.exceptions.PolarsError as error:
        # Polars wraps what its source raised.
        raise (failed[0] if failed else error) from None


def regrouped(frames: Iterator[pl.DataFrame], schema: pl.Schema) -> Iterator[pl.DataFrame]:
    """Cut frames anew, so that where parts begin leaves no trace in the file."""
    held = pl.DataFrame(schema=schema)
    for frame in frames:
        if frame.height:
            held = pl.concat([held, frame])
        while held.height >= ROWS_PER_GROUP:
            yield held.head(ROWS_PER_GROUP).rechunk()
            held = held.slice(ROWS_PER_GROUP)
    if held.height:
        yield held.rechunk()


def write_annotators(folder: Path, consensus: Consensus, disagreement_b: Sequence[Floats]) -> None:
    """Write how annotators vote, and what every vote is worth.

    Parameters
    ----------
    folder
        Where to.
    consensus
        On an item a kind.
    disagreement_b
        By ballot, each annotator's share of votes against the majority.
    """
    ids = {"annotator": consensus.votes.annotators.dtype}
    cells = [fit.ballot.n_labels**2 for fit in consensus.fits]
    right = pl.Series(np.concatenate([np.repeat(share, n) for share, n in zip(disagreement_b, cells, strict=True)]))

    def frames() -> Iterator[pl.DataFrame]:
        done = 0
        for frame in annotator_frames(consensus):
            yield frame.with_columns(right.slice(done, frame.height).alias("disagreement"))
            done += frame.height

    write_table(folder / "annotators.parquet", with_ids(SCHEMAS["annotators"], **ids), frames)
    write_table(folder / "pushes.parquet", with_ids(SCHEMAS["pushes"], **ids), lambda: push_frames(consensus))


def write_entropy(folder: Path, consensus: Consensus, sums: Sequence[Floats]) -> None:
    """Write mean entropies by question and domain, from sums over parts: see `entropy_sums`."""
    rows = []
    for question in consensus.votes.questions:
        of_fits = [sum_df for fit, sum_df in zip(consensus.fits, sums, strict=True) if fit.question == question]
        sum_df = np.sum(of_fits, axis=0)
        rows.append(_means(question, ALL, sum_df.sum(axis=0)))
        for domain, sum_f in zip(consensus.votes.domains, sum_df[:-1], strict=True):
            if sum_f[0]:
                rows.append(_means(question, domain, sum_f))
    frame = pl.DataFrame(rows, schema=ENTROPY).with_columns(pl.col(pl.Float64).fill_nan(None))
    write_table(folder / "entropy.parquet", ENTROPY, lambda: [frame])


def _means(question: str, domain: str, sum_f: Floats) -> Mapping[str, object]:
    _, weight, total, aleatoric, epistemic, _ = sum_f.tolist()
    means = {"total": total / weight, "aleatoric": aleatoric / weight, "epistemic": epistemic / weight}
    return {"question": question, "domain": domain, "n_items": round(weight), **means}
