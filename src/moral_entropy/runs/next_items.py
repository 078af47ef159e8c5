"""What to have annotated next: items of a run folder by expected information gain, and by whom.

Takes a run folder, returns a table. Items that are ambiguous are left out, since votes do not help there;
`count_ambiguous` counts them. Nobody is asked who counts together with another, or whose votes gold or a spot check
has shown to be wrong more often than those of all annotators together; `worse_than_the_team` names these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.consensus.counted_once import count_once
from moral_entropy.consensus.entropy import is_ambiguous
from moral_entropy.consensus.model import Parameters, StatesOf
from moral_entropy.consensus.parts import likelihood_of
from moral_entropy.consensus.patterns import Patterns, no_domains
from moral_entropy.consensus.tempering import tempered
from moral_entropy.errors import RunFolderError
from moral_entropy.items.next_votes import NOBODY, choose_votes
from moral_entropy.items.rank import first
from moral_entropy.runs.between_labels import FittedStates, positions
from moral_entropy.runs.lookup import check_question, suggestion
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


@dataclass(frozen=True, eq=False)
class _Fitted:
    """One fit, as read from a run folder. Axes: **i** item, **a** annotator, **z** state, **k** label, **v**ote.

    Probabilities are the model's own, which say what a vote would tell.
    """

    items: pl.DataFrame
    annotators: pl.Series
    ambiguous_i: NDArray[np.bool_]
    start_i: Ints
    code_v: Ints
    votes_a: Ints
    silent_a: NDArray[np.bool_]
    p_iz: Floats | StatesOf
    vote_azv: Floats
    mix_zk: Floats | None = None


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
    fits = [_read_fit(run, fit) for fit in run.manifest["questions"] if question in (None, fit["question"])]
    _check_annotators(fits, annotators)
    bad = () if annotators else tuple(worse_than_the_team(run))
    pieces = [_queue(fitted, n, annotators, bad, repeats=bool(run.manifest["anonymous"])) for fitted in fits]
    queue = pl.concat(pieces)
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


def _check_annotators(fits: Sequence[_Fitted], wanted: Sequence[str]) -> None:
    known = {name for fitted in fits for name in fitted.annotators.cast(pl.String).to_list()}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        msg = (
            f"{len(unknown)} of {len(wanted)} annotators never voted here. First: {unknown[0]!r}."
            f"{suggestion(unknown[0], sorted(known))} Nothing is known of how they vote."
        )
        raise RunFolderError(msg)


def _queue(fitted: _Fitted, n: int, annotators: Sequence[str], bad: Sequence[str], *, repeats: bool) -> pl.DataFrame:
    named = fitted.annotators.cast(pl.String)
    wanted_a = _among(named, annotators) if annotators else None
    asked_a = ~_among(named, bad) if wanted_a is None else wanted_a
    chosen = choose_votes(
        fitted.p_iz,
        fitted.start_i,
        fitted.code_v,
        fitted.vote_azv,
        fitted.votes_a,
        mix_zk=fitted.mix_zk,
        repeats=repeats,
        # Whoever counts together with another tells no more than the other.
        allowed_a=asked_a & ~fitted.silent_a,
    )
    gain_i = chosen.gain_i if wanted_a is None else np.where(chosen.annotator_i == NOBODY, np.nan, chosen.gain_i)
    at_n = first(np.where(fitted.ambiguous_i, np.nan, gain_i), n)
    names = fitted.annotators.cast(pl.String).extend_constant(None, 1)
    who = names.gather(np.where(chosen.annotator_i[at_n] == NOBODY, len(names) - 1, chosen.annotator_i[at_n]))
    rows = fitted.items[at_n].with_columns(
        annotator=who, expected_gain=chosen.gain_i[at_n], average_gain=chosen.average_i[at_n]
    )
    return rows.with_columns(reason=pl.Series(_reasons(rows), dtype=pl.String), rank=pl.lit(0, dtype=pl.Int64))


def _among(names: pl.Series, some: Sequence[Any]) -> NDArray[np.bool_]:
    return names.is_in(pl.Series(list(some), dtype=names.dtype).implode()).to_numpy()


def _reasons(rows: pl.DataFrame) -> list[str]:
    columns = rows.select("annotator", "expected_gain", "entropy", "p", "n_votes").rows()
    return [
        f"a vote by {who or 'someone new'} is expected to take {gain:.3f} of its {entropy:.3f} nats; p = {p:.2f} "
        f"after {n_votes} vote{'s' * (n_votes != 1)}"
        for who, gain, entropy, p, n_votes in columns
    ]


def _read_fit(run: Run, fit: dict[str, Any]) -> _Fitted:
    """Read one fit back from the tables of its run folder."""
    labels: list[str] = fit["labels"]
    question = pl.col("question") == fit["question"]
    here = question & (pl.col("part") == fit["part"])
    columns = ("question", "item", "domain", "entropy", "ambiguity", "doubt_votes", "p_model", "p", "n_votes", "gold")
    items = run.table("items", where=here)
    lasting = pl.sum_horizontal("ambiguity", *([BETWEEN] if BETWEEN in items.columns else []))
    items = items.with_columns(ambiguity=lasting).select(columns)
    cells = run.table("annotators", where=here)
    votes = run.table("votes", where=question)
    n_cells = len(labels) ** 2
    who = cells["annotator"].gather_every(n_cells)
    places = items.select("item").with_row_index("at")
    coded = votes.join(places, on="item", how="inner", maintain_order="left").join(
        who.to_frame().with_row_index("by"), on="annotator", how="inner", maintain_order="left"
    )
    at_v, by_v = coded["at"].to_numpy(), coded["by"].to_numpy().astype(np.int64)
    order_v = np.argsort(at_v, kind="stable")
    label_v = coded["label"].replace_strict(labels, range(len(labels)), return_dtype=pl.Int64).to_numpy()
    fitted = _Fitted(
        items=items.drop("ambiguity", "p_model", "gold").with_columns(pl.col("n_votes").cast(pl.Int64)),
        annotators=who,
        ambiguous_i=_ambiguous(items, len(labels)),
        start_i=np.searchsorted(at_v[order_v], np.arange(items.height + 1)),
        code_v=(by_v * len(labels) + label_v)[order_v],
        votes_a=cells["n_votes"].gather_every(n_cells).to_numpy(),
        silent_a=_among(who, [name for group in fit["counted_as_one"] for name in group[1:]]),
        p_iz=np.empty(0),
        vote_azv=cells["probability"].to_numpy().reshape(-1, len(labels), len(labels)),
    )
    if fit["mixture"] is None:
        return replace(fitted, p_iz=_shares(run, items, labels, fit, question))
    known = items["gold"] if run.manifest["use_gold"] else pl.repeat(None, items.height, dtype=pl.String, eager=True)
    return _between_labels(fitted, fit, known)


def _between_labels(fitted: _Fitted, fit: dict[str, Any], known: pl.Series) -> _Fitted:
    """Add the states between labels, and how probable they are given the votes, at the mode."""
    between, labels = FittedStates.of(fit), fit["labels"]
    states, several = between.states, bool(between.domains)
    rows = Patterns(
        n_annotators=len(fitted.vote_azv),
        n_labels=len(labels),
        start_r=np.asarray(fitted.start_i, dtype=np.int64),
        code_v=np.asarray(fitted.code_v, dtype=np.int32),
        weight_r=np.ones(fitted.items.height),
        clamp_r=positions(known, labels, default=UNKNOWN).astype(np.int16),
        row_i=np.arange(fitted.items.height),
        domain_r=between.domain_i(fitted.items["domain"]).astype(np.int32) if several else no_domains(),
        n_domains=len(between.weight_dg),
    )
    rows = _with_groups(rows, fitted.annotators, fit["counted_as_one"])
    at = Parameters(np.log(between.weight_dg), np.log(fitted.vote_azv))
    p_of = replace(likelihood_of(rows, mixed=True), between=states).states_of(tempered(at, between.power))
    return replace(fitted, p_iz=p_of, vote_azv=states.votes_azv(fitted.vote_azv), mix_zk=states.mix_zk)


def _ambiguous(items: pl.DataFrame, n_labels: int) -> NDArray[np.bool_]:
    # Without draws the parts are unknown, and no item is called ambiguous.
    total_i, ambiguity_i = items["entropy"].to_numpy(), items["ambiguity"].fill_null(0.0).to_numpy()
    return is_ambiguous(total_i, ambiguity_i, n_labels)


def _with_groups(rows: Patterns, annotators: pl.Series, groups: Sequence[Sequence[Any]]) -> Patterns:
    """Let every group of annotators vote as one, as the fit did."""
    place = {name: a for a, name in enumerate(annotators.to_list())}
    group_a, rank_a = np.arange(len(place)), np.zeros(len(place))
    for group in groups:
        members = [place[name] for name in group]
        group_a[members], rank_a[members] = members[0], -np.arange(len(members))
    return count_once(rows, group_a, rank_a)


def _shares(run: Run, items: pl.DataFrame, labels: list[str], fit: dict[str, Any], question: pl.Expr) -> Floats:
    if len(labels) == 2:
        p_i = items["p_model"].to_numpy()
        share_ik = np.stack([1.0 - p_i, p_i], axis=1)
        return share_ik if fit["positive"] == labels[1] else share_ik[:, ::-1]
    posterior = run.table("posterior", where=question)
    kept = posterior.join(items.select("item"), on="item", how="semi", maintain_order="left")
    if kept.height != items.height * len(labels):
        wanted = items.height * len(labels)
        msg = f"{run.where} has {kept.height:,} rows of {fit['question']!r} in posterior, not {wanted:,}."
        raise RunFolderError(msg)
    return kept["p_model"].to_numpy().reshape(-1, len(labels))
