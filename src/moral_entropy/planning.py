"""What to have annotated next: items of a run folder by expected information gain, and by whom.

Takes a run folder, returns a table. Items that are ambiguous are left out, since votes do not help there;
`count_ambiguous` counts them. Nobody is asked who counts together with another, or whose votes gold or a spot check
has shown to be wrong more often than those of all annotators together; `worse_than_the_team` names these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array

from moral_entropy.errors import RunFolderError
from moral_entropy.explanation import check_question, suggestion
from moral_entropy.items.next_votes import NOBODY, choose_votes
from moral_entropy.items.rank import first
from moral_entropy.items.states import FittedStates, counted_votes, positions
from moral_entropy.model.entropy import is_ambiguous
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import BETWEEN
from moral_entropy.ties import DECIMALS, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

QUEUE = pl.Schema(
    {
        "rank": pl.Int64(),
        "question": pl.String(),
        "item": pl.String(),
        "domain": pl.String(),
        "annotator": pl.String(),
        "expected_gain": pl.Float64(),
        "average_gain": pl.Float64(),
        "entropy": pl.Float64(),
        "doubt_votes": pl.Float64(),
        "p": pl.Float64(),
        "n_votes": pl.Int64(),
        "reason": pl.String(),
    }
)


def next_votes(
    run: Run | str | Path, n: int = 100, *, question: str | None = None, annotators: Sequence[str] = ()
) -> pl.DataFrame:
    """Return the items with the highest expected gain by one more vote, highest first, and whose vote that is.

    Items that are ambiguous are left out: their labels are uncertain, and more votes would not change that.

    Parameters
    ----------
    run
        The run, or its folder.
    n
        How many items, over all questions.
    question
        Only this question.
    annotators
        Who can be asked; by default all but those whom checked labels have shown to be worse than the others.

    Returns
    -------
    polars.DataFrame
        Columns of `QUEUE`, and text where the run has texts; annotator is null where all have voted, and the gain is
        then that of an average annotator.
    """
    run = as_run(run)
    check_question(run, question)
    _check_annotators(run, annotators)
    bad = () if annotators else tuple(worse_than_the_team(run))
    asked = [fit for fit in run.manifest["questions"] if question in (None, fit["question"])]
    queue = pl.concat([_queue(run, fit, n, annotators, bad) for fit in asked])
    queue = queue[first(queue["expected_gain"].to_numpy(), n)]
    queue = queue.with_columns(rank=pl.int_range(1, pl.len() + 1)).select(QUEUE.names())
    if run.has("texts"):
        texts = run.table("texts", where=pl.col("item").is_in(queue["item"].to_list()))
        queue = queue.join(texts, on="item", how="left", maintain_order="left")
    return queue


def count_ambiguous(run: Run | str | Path, *, question: str | None = None) -> int:
    """Count the items that are ambiguous, so that `next_votes` leaves them out; an item counts once per question."""
    run = as_run(run)
    check_question(run, question)
    asked = [fit for fit in run.manifest["questions"] if question in (None, fit["question"])]
    counted: float = sum(fit["ambiguous"] * fit["items_counted"] for fit in asked)
    return round(counted)


def worse_than_the_team(run: Run) -> dict[str, dict[str, Any]]:
    """Return the annotators whose checked votes are surely wrong more often than those of all together, worst first.

    Returns
    -------
    dict
        By name: `checked` votes, the share of `wrong` ones, its `low` and `high` bound, and that of `all`.
    """
    found = run.checked.filter(kind="annotator")
    if found.height < 2:
        return {}
    everyone = tie_key(float(found["wrong"].sum()) / float(found["checked"].sum()))
    worse = found.filter(pl.col("low").round(DECIMALS) > everyone)
    figures = worse.select("name", "checked", "value", "low", "high").iter_rows()
    return {name: {"checked": n, "wrong": value, "low": low, "high": high, "all": everyone}
            for name, n, value, low, high in figures}  # fmt: skip


def _check_annotators(run: Run, wanted: Sequence[str]) -> None:
    known = set(run.annotators["annotator"].cast(pl.String).to_list())
    unknown = [name for name in wanted if name not in known]
    if unknown:
        msg = (
            f"{len(unknown)} of {len(wanted)} annotators never voted here. First: {unknown[0]!r}."
            f"{suggestion(unknown[0], sorted(known))} Nothing is known of how they vote."
        )
        raise RunFolderError(msg)


def _queue(run: Run, fit: dict[str, Any], n: int, annotators: Sequence[str], bad: Sequence[str]) -> pl.DataFrame:
    """Return the best items of one fit, as its tables have them."""
    labels, n_cells = fit["labels"], len(fit["labels"]) ** 2
    question = pl.col("question") == fit["question"]
    here = question & (pl.col("part") == fit["part"])
    items, cells = run.table("items", where=here), run.table("annotators", where=here)
    names = cells["annotator"].gather_every(n_cells)
    votes = run.table("votes", where=question).join(items.select("item"), on="item", how="semi", maintain_order="left")
    at_v, cell_v = _coded(votes, items["item"], names, labels)
    order_v = np.argsort(at_v, kind="stable")
    confusion_akv = cells["probability"].to_numpy().reshape(-1, len(labels), len(labels))
    if fit["mixture"] is None:
        p_iz, vote_azv, mix_zk = _shares(run, items, fit), confusion_akv, None
    else:
        p_iz, vote_azv, mix_zk = _states(run, fit, items, votes, names, confusion_akv)
    named = names.cast(pl.String)
    # Merged annotators add no information beyond their representative.
    merged_a = _among(named, [str(name) for group in fit["counted_as_one"] for name in group[1:]])
    chosen = choose_votes(
        p_iz,
        np.searchsorted(at_v[order_v], np.arange(items.height + 1)),
        cell_v[order_v],
        vote_azv,
        cells["n_votes"].gather_every(n_cells).to_numpy(),
        mix_zk=mix_zk,
        repeats=bool(run.manifest["anonymous"]),
        allowed_a=(_among(named, annotators) if annotators else ~_among(named, bad)) & ~merged_a,
    )
    gain_i = np.where(chosen.annotator_i == NOBODY, np.nan, chosen.gain_i) if annotators else chosen.gain_i
    at_n = first(np.where(_ambiguous(items, len(labels)), np.nan, gain_i), n)
    who = named.extend_constant(None, 1).gather(chosen.annotator_i[at_n] % (len(named) + 1))
    columns = ("question", "item", "domain", "entropy", "doubt_votes", "p", "p_text", "n_votes")
    rows = items[at_n].select(*columns).with_columns(
        pl.col("n_votes").cast(pl.Int64), annotator=who, expected_gain=chosen.gain_i[at_n],
        average_gain=chosen.average_i[at_n], rank=pl.lit(0, dtype=pl.Int64),
    )  # fmt: skip
    return rows.with_columns(reason=pl.Series(_reasons(rows), dtype=pl.String)).drop("p_text")


def _coded(votes: pl.DataFrame, items: pl.Series, names: pl.Series, labels: Sequence[str]) -> tuple[Ints, Ints]:
    """Return each vote's item, and its cell (annotator and label), as numbers."""
    at_v, by_v = (
        votes.select(pl.col(name)).join(known.to_frame(name).with_row_index("at"), on=name, maintain_order="left")["at"]
        for name, known in (("item", items), ("annotator", names))
    )
    label_v = positions(votes["label"], labels, default=UNKNOWN)
    return at_v.to_numpy().astype(np.int64), by_v.to_numpy().astype(np.int64) * len(labels) + label_v


def _states(
    run: Run, fit: dict[str, Any], items: pl.DataFrame, votes: pl.DataFrame, names: pl.Series, confusion_akv: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of states between labels at the mode, how annotators vote in them, and their labels."""
    between = FittedStates.of(fit)
    counted = counted_votes(votes, fit["counted_as_one"]) if fit["counted_as_one"] else votes
    at_v, cell_v = _coded(counted, items["item"], names, fit["labels"])
    log_azv = np.log(between.states.votes_azv(confusion_akv))
    log_cz = log_azv.transpose(0, 2, 1).reshape(-1, between.states.n_states)
    times_ic = csr_array((np.ones(len(at_v)), (at_v, cell_v)), shape=(items.height, len(log_cz)))
    known_i: Ints = np.full(items.height, UNKNOWN, dtype=np.int64)
    if run.manifest["use_gold"]:
        known_i = positions(items["gold"], fit["labels"], default=UNKNOWN)
    p_iz = between.probabilities(items["domain"], times_ic @ log_cz, known_i)
    return p_iz, between.states.votes_azv(confusion_akv), between.states.mix_zk


def _among(names: pl.Series, some: Sequence[Any]) -> NDArray[np.bool_]:
    return names.is_in(pl.Series(list(some), dtype=names.dtype).implode()).to_numpy()


def _reasons(rows: pl.DataFrame) -> list[str]:
    columns = rows.select("annotator", "expected_gain", "entropy", "p", "n_votes", "p_text").rows()
    return [
        f"a vote by {who or 'someone new'} is expected to take {gain:.3f} of its {entropy:.3f} nats; p = {p:.2f} "
        f"after {n_votes} vote{'s' * (n_votes != 1)}" + ("" if p_text is None else f"; its text says {p_text:.2f}")
        for who, gain, entropy, p, n_votes, p_text in columns
    ]


def _ambiguous(items: pl.DataFrame, n_labels: int) -> NDArray[np.bool_]:
    # Without draws the parts are unknown, and no item is called ambiguous.
    lasting = pl.sum_horizontal("ambiguity", *([BETWEEN] if BETWEEN in items.columns else [])).fill_null(0.0)
    lasting_i = items.select(lasting).to_series().to_numpy()
    p_i = items["p"].to_numpy()
    top_i = np.maximum(p_i, 1.0 - p_i) if n_labels == 2 else p_i
    return is_ambiguous(top_i, items["entropy"].to_numpy(), lasting_i)


def _shares(run: Run, items: pl.DataFrame, fit: dict[str, Any]) -> Floats:
    """Return the label probabilities over the draws, of a fit whose items have one label each."""
    labels = fit["labels"]
    if len(labels) == 2:
        p_i = items["p_model"].to_numpy()
        share_ik = np.stack([1.0 - p_i, p_i], axis=1)
        return share_ik if fit["positive"] == labels[1] else share_ik[:, ::-1]
    posterior = run.table("posterior", where=pl.col("question") == fit["question"])
    kept = posterior.join(items.select("item"), on="item", how="semi", maintain_order="left")
    return np.asarray(kept["p_model"].to_numpy().reshape(-1, len(labels)))
