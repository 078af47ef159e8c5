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
    coded = cast.select(
        "question", "label", item=_code(cast["item"], item_ids), annotator=_code(cast["annotator"], annotator_ids)
    ).with_row_index("row").partition_by("question", as_dict=True)  # fmt: skip
    extra = {name: cast[name] for name in cast.columns if name not in SCHEMAS["votes"] and name != SCORE}
    score_r = cast[SCORE].to_numpy() if SCORE in cast.columns else None
    items_by_fit = items.with_columns(item=_code(items["item"], item_ids)).partition_by(
        ["question", "part"], as_dict=True
    )
    return Votes(
        items=item_ids,
        annotators=annotator_ids,
        ballots=tuple(_ballot(fact, items_by_fit, coded, score_r, rows=bool(extra)) for fact in manifest["questions"]),
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
    priors: dict[str, ItemPrior] = {}
    for row in (run.manifest.get("text_worth") or {}).get("questions", ()):
        for ballot in (ballot for ballot in votes.ballots if ballot.question == row["question"] and row["counted"]):
            about = pl.col("question") == ballot.question
            if ballot.n_labels == 2:
                yes_i = run.items.filter(about)["p_text"].to_numpy()
                t_ik = np.column_stack([1.0 - yes_i, yes_i])[:, :: 2 * ballot.positive - 1]
            else:
                t_ik = run.table("posterior", where=about)["p_text"].to_numpy().reshape(-1, ballot.n_labels)
            priors[ballot.question] = (np.array(t_ik, dtype=np.float64), row["counted"])
    return priors


def priors_of(manifest: dict[str, Any]) -> Priors:
    """Return the priors of a run, as its manifest has them."""
    facts = manifest["priors"]
    prevalence = facts["prevalence"]
    return Priors(
        prevalence=tuple(prevalence) if isinstance(prevalence, list) else prevalence,
        diagonal=facts["diagonal"],
        off_diagonal=facts["off_diagonal"],
        annotators=facts["annotators"],
        by_question={name: tuple(alpha) for name, alpha in facts["by_question"].items()},
    )


def _ballot(
    fact: dict[str, Any],
    items_by_fit: dict[Any, pl.DataFrame],
    coded: dict[Any, pl.DataFrame],
    score_r: Floats | None,
    *,
    rows: bool,
) -> Ballot:
    """Rebuild one ballot from the manifest and the tables; with the rows of its votes where columns were kept."""
    question, part, labels = fact["question"], fact["part"], tuple(fact["labels"])
    of_items = items_by_fit.get((question, part), pl.DataFrame(schema={"item": pl.Int64()}))
    item_i = of_items["item"].to_numpy()
    cast = coded.get((question,))
    if cast is None:
        item_v = annotator_v = np.empty(0, dtype=np.int64)
        label, row_v = pl.Series([], dtype=pl.String), np.empty(0, dtype=np.int64)
    else:
        here = cast.filter(pl.col("item").is_in(of_items["item"].implode()))
        item_v, annotator_v, label = here["item"].to_numpy(), here["annotator"].to_numpy(), here["label"]
        row_v = here["row"].to_numpy().astype(np.int64)
    annotator_a, at_v = np.unique(annotator_v, return_inverse=True)
    label_v = _label_codes(label, labels)
    ballot = ballot_from_codes(
        question,
        labels,
        item_v=np.searchsorted(item_i, item_v),
        annotator_v=at_v,
        label_v=label_v,
        item_i=item_i.astype(np.int32),
        annotator_a=annotator_a.astype(np.int32),
        positive=labels.index(fact["positive"]) if fact["positive"] is not None else None,
        count_i=of_items["count"].to_numpy(),
        gold_i=_label_codes(of_items["gold"], labels),
        published_i=_label_codes(of_items["published"], labels),
    )
    row_v = row_v[np.lexsort((label_v, at_v, item_v))]
    if "levels" in fact:
        score_v = score_r[row_v] if score_r is not None and fact["scale"] == "interval" else None
        ballot = replace(ballot, levels=tuple(fact["levels"]), score_v=score_v)
    if rows:
        ballot = replace(ballot, row_v=row_v)
    return ballot if not part else ballot.take(np.arange(ballot.n_items), part=part)


def _code(ids: pl.Series, sorted_ids: pl.Series) -> pl.Series:
    """Return each id's position among the sorted known ones."""
    return pl.Series(sorted_ids.search_sorted(ids).cast(pl.Int64))


def _label_codes(names: pl.Series, labels: tuple[str, ...]) -> NDArray[np.int16]:
    """Return each name's position among the labels; `UNKNOWN` where there is none."""
    code_of = {label: code for code, label in enumerate(labels)}
    codes = names.replace_strict(code_of, default=UNKNOWN, return_dtype=pl.Int16) if len(names) else names
    return np.asarray(codes.to_numpy(), dtype=np.int16) if len(names) else np.empty(0, dtype=np.int16)
