"""A run → the `Votes` it was made from, and the `Consensus` that was fitted to them.

Validation and training need them. The file that the user once read is not needed: the run has everything. The fit is
made again with the same priors, seed and options, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.findings import without_warnings
from moral_entropy.model.consensus import Consensus
from moral_entropy.model.fit import ItemPrior, fit
from moral_entropy.model.priors import Priors
from moral_entropy.option_fields import from_plain
from moral_entropy.options import FitOptions
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import SCHEMAS, SCORE
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Reading, Votes, ballot_from_codes


def read_run_votes(run: Run | str | Path) -> Votes:
    """Return the votes of a run: the same as were fitted, ids, texts, domains, gold, kept columns and all.

    Parameters
    ----------
    run
        The run, or its folder.
    """
    run = as_run(run)
    manifest, items, cast = run.manifest, run.items, run.table("votes")
    texts = run.table("texts") if run.has("texts") else None
    item_ids = (items["item"] if texts is None else texts["item"]).unique().sort()
    annotator_ids = cast["annotator"].unique().sort()
    by_item = items.unique("item", keep="first", maintain_order=True).select("item", "domain")
    facts = pl.DataFrame({"item": item_ids}).join(by_item, on="item", how="left", maintain_order="left")
    domains = tuple(facts["domain"].drop_nulls().unique().sort().to_list())
    codes = {"item": _code(cast["item"], item_ids), "annotator": _code(cast["annotator"], annotator_ids)}
    coded = cast.select("question", "label", **codes).with_row_index("row")
    extra = {name: cast[name] for name in cast.columns if name not in SCHEMAS["votes"] and name != SCORE}
    score_r = cast[SCORE].to_numpy() if SCORE in cast.columns else None
    items = items.with_columns(item=_code(items["item"], item_ids))
    votes_of, items_of = (frame.partition_by(keys, as_dict=True)
                          for frame, keys in ((coded, ["question"]), (items, ["question", "part"])))  # fmt: skip
    ballots = []
    for fact in manifest["questions"]:
        own_items = items_of.get((fact["question"], fact["part"]), items.clear())
        own_votes = votes_of.get((fact["question"],), coded.clear())
        ballots.append(_ballot(fact, own_items, own_votes, score_r, rows=bool(extra)))
    return Votes(
        items=item_ids,
        annotators=annotator_ids,
        ballots=tuple(ballots),
        domains=domains,
        domain_i=_label_codes(facts["domain"], domains).astype(np.int32),
        texts=None if texts is None else texts.sort("item")["text"],
        anonymous=bool(manifest["anonymous"]),
        kept=extra,
        reading=Reading(
            source=manifest["input"]["source"],
            sha256=manifest["input"]["sha256"],
            rows=manifest["rows"],
            dropped=manifest["dropped"],
        ),
    )


def reload_consensus(run: Run | str | Path, *, question: str | None = None, **changes: Any) -> Consensus:
    """Fit a run's votes again as the run did.

    Parameters
    ----------
    run
        The run, or its folder.
    question
        Only this question.
    **changes
        Priors, or options of `fit`, that should differ from the run's.
    """
    run = as_run(run)
    votes, manifest = read_run_votes(run), run.manifest
    if question is not None:
        votes = replace(votes, ballots=tuple(ballot for ballot in votes.ballots if ballot.question == question))
    options = from_plain(FitOptions, manifest["options"]["fit"], "manifest.json")
    # The findings of the run hold the warnings already.
    with without_warnings():
        return fit(votes, options, **{"priors": priors_of(manifest), "item_priors": _texts_of(run, votes), **changes})


def _texts_of(run: Run, votes: Votes) -> dict[str, ItemPrior]:
    """Return what the texts said, and how many votes it counted for."""
    return {
        name: (label_table(run, name, run.items.filter(question=name), "p_text"), n_votes)
        for name, n_votes in run.text_votes.items() if name in votes.questions
    }  # fmt: skip


def label_table(run: Run, question: str, items: pl.DataFrame, column: str = "p") -> Floats:
    """Return probabilities by label, `p_ik`, of rows of `items` about one question: column p, p_votes or p_text."""
    [about] = [fit for fit in run.questions if fit.name == question]
    if about.positive:
        p_i = items[column].to_numpy()
        return np.column_stack([1.0 - p_i, p_i])[:, :: 1 if about.positive == about.labels[1] else -1]
    rows = run.table("posterior", where=pl.col("question") == question)
    rows = rows.join(items.select("item"), on="item", how="semi", maintain_order="left")
    return np.asarray(rows[column].to_numpy().reshape(-1, len(about.labels)))


def priors_of(manifest: dict[str, Any]) -> Priors:
    """Return the priors of a run, as its manifest has them."""
    return Priors(**manifest["priors"])


def _ballot(
    fact: dict[str, Any], items: pl.DataFrame, cast: pl.DataFrame, score_r: Floats | None, *, rows: bool
) -> Ballot:
    """Rebuild one ballot from the manifest and the tables; with the rows of its votes where columns were kept."""
    labels, item_i = tuple(fact["labels"]), items["item"].to_numpy()
    cast = cast.filter(pl.col("item").is_in(items["item"].implode()))
    item_v, annotator_v, row_v = (cast[name].to_numpy() for name in ("item", "annotator", "row"))
    annotator_a, at_v = np.unique(annotator_v, return_inverse=True)
    label_v = _label_codes(cast["label"], labels)
    ballot = ballot_from_codes(
        fact["question"],
        labels,
        item_v=np.searchsorted(item_i, item_v),
        annotator_v=at_v,
        label_v=label_v,
        item_i=item_i.astype(np.int32),
        annotator_a=annotator_a.astype(np.int32),
        positive=labels.index(fact["positive"]) if fact["positive"] is not None else None,
        count_i=items["count"].to_numpy(),
        gold_i=_label_codes(items["gold"], labels),
        published_i=_label_codes(items["published"], labels),
    )
    row_v = row_v.astype(np.int64)[np.lexsort((label_v, at_v, item_v))]
    if "levels" in fact:
        score_v = score_r[row_v] if score_r is not None and fact["scale"] == "interval" else None
        ballot = replace(ballot, levels=tuple(fact["levels"]), score_v=score_v)
    if rows:
        ballot = replace(ballot, row_v=row_v)
    return ballot if not fact["part"] else ballot.take(np.arange(ballot.n_items), part=fact["part"])


def _code(ids: pl.Series, sorted_ids: pl.Series) -> pl.Series:
    """Return each id's position among the sorted known ones."""
    return pl.Series(sorted_ids.search_sorted(ids).cast(pl.Int64))


def _label_codes(names: pl.Series, labels: tuple[str, ...]) -> NDArray[np.int16]:
    """Return each name's position among the labels; `UNKNOWN` where there is none."""
    code_of = {label: code for code, label in enumerate(labels)}
    codes = names.cast(pl.String).replace_strict(code_of, default=UNKNOWN, return_dtype=pl.Int16)
    return np.asarray(codes.to_numpy(), dtype=np.int16)
