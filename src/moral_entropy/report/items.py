"""The items shown one by one: which, with what text, which votes, and what each vote adds to the log-odds.

A page cannot hold a million items. It holds those a reader would look for: outliers, the most uncertain, those on which
votes and consensus differ, and every n-th of the rest, so that there are ordinary items to compare with.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.explanation import with_alternatives
from moral_entropy.items.states import FittedStates, confusion_by_annotator, counted_votes
from moral_entropy.names import ALL
from moral_entropy.runs.run import Run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.ties import DECIMALS

MAX_VOTES = 25_000
"""Votes in the page at most; items beyond them are left out."""

TEXT_CUT = 2_000
"""Characters of a text shown."""

TEXT_BUDGET = 400_000
"""Characters of all texts together; where they are longer, each is cut shorter."""

SHARE_OUTLIERS, SHARE_UNCERTAIN, SHARE_CONFLICTS = 0.3, 0.35, 0.2
"""Of the rows of a question; what is left goes to ordinary items."""

HELD = 200_000
"""Items of all questions together up to which they are read once; of more, column by column."""

REASONS = 25
"""Outliers of each ranking that are sure to be shown, by question."""

FIT = ("question", "part")
COLUMNS = (
    "question", "item", "domain", "n_votes", "n_positive", "p_map", "p_model", "p", "p_low", "p_high", "p_votes",
    "p_text", "label", "entropy", *PARTS, "aleatoric", "part",
)  # fmt: skip


def shown_items(run: Run, max_items: int) -> dict[str, pl.DataFrame]:
    """Choose items for the page, and gather what is known of each.

    Parameters
    ----------
    run
        The run.
    max_items
        Rows at most; a row is an item and question.

    Returns
    -------
    dict
        - items: one row per item and question, ids as texts, with `alternative`, the label that the log-odds are
          against, and `prior`, the log-odds before any vote;
        - item_votes: row (of items), annotator, label, and contribution: what the vote adds to the log-odds after those
          before;
        - texts: item, text (cut, see `text_cut`), length (before the cut);
        - reasons: row (of items), ranking, rank, reason.
    """
    item_rows = pl.col("kind") == "item", pl.col("domain") == ALL, pl.col("rank") <= REASONS
    ranked = run.scan("outliers").filter(*item_rows)
    outliers = ranked.select("question", "ranking", "rank", "reason", item="name").collect()
    quota = max(max_items // max(len(run.questions), 1), 1)
    columns = [*COLUMNS, *([BETWEEN] if run.between_groups else [])]
    rows, parts = run.scan("items"), dict[tuple[Any, ...], pl.DataFrame]()
    if rows.select(pl.len()).collect().item() <= HELD:
        parts = rows.collect().partition_by("question", as_dict=True)
    pieces = [rows.select(columns).head(0).collect()]
    for question in run.questions:
        part = parts.get((question.name,), rows.filter(pl.col("question") == question.name)).lazy()
        pieces.append(_choose(part, question.name, quota, outliers, columns))
    items = pl.concat(pieces).head(max_items)
    items = items.filter(pl.col("n_votes").cum_sum() <= MAX_VOTES) if items.height else items
    keyed = items.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    votes = _votes(run, keyed)
    no_texts = pl.DataFrame(schema={"item": pl.String, "text": pl.String, "length": pl.UInt32})
    texts = _texts(run, items) if run.has("texts") else no_texts
    items = with_alternatives(run, items)
    items, votes = with_steps(run, items, votes)
    items = items.with_columns(pl.col("item").cast(pl.String))
    reasons = outliers.join(keyed.select("row", "question", pl.col("item").cast(pl.String)), on=["question", "item"])
    reasons = reasons.select("row", "ranking", "rank", "reason").sort("row", "rank", "ranking")
    return {"items": items, "item_votes": votes, "texts": texts, "reasons": reasons}


def _choose(rows: pl.LazyFrame, question: str, quota: int, outliers: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    n_items = rows.select(pl.len()).collect().item()
    if n_items > quota:
        # How far the share of positive votes is from p: what any rule on votes must get wrong.
        gap = (pl.col("n_positive") / pl.col("n_votes") - pl.col("p")).abs().fill_nan(0)
        ranked = outliers.filter(pl.col("question") == question).sort("rank", "item", maintain_order=True)
        names = ranked["item"].unique(maintain_order=True).head(int(quota * SHARE_OUTLIERS)).implode()
        numbered = rows.with_row_index("at")
        first = numbered.filter(pl.col("item").cast(pl.String).is_in(names)).select("at").collect(engine="streaming")
        uncertain = _top(rows, pl.col("entropy"), int(quota * SHARE_UNCERTAIN))
        conflicts = _top(rows, gap, int(quota * SHARE_CONFLICTS))
        ordinary = pl.arange(0, n_items, max(n_items // quota, 1), dtype=pl.UInt32, eager=True)
        at = pl.concat([first["at"].sort(), uncertain, conflicts, ordinary]).unique(maintain_order=True).head(quota)
        rows = numbered.filter(pl.col("at").is_in(at.implode())).sort("at").drop("at")
    # In pieces: a question may have more items than fit in memory at once.
    frame = rows.select(columns).collect(engine="streaming")
    return frame.sort(pl.col("entropy").round(DECIMALS), descending=True, maintain_order=True)


def _top(rows: pl.LazyFrame, by: pl.Expr, n: int) -> pl.Series:
    if not n:
        return pl.Series(dtype=pl.UInt32)
    # One column at a time, and a stable sort: among equals always the same ones.
    score = rows.select(score=by.round(DECIMALS)).collect()
    order = pl.arg_sort_by("score", descending=True, maintain_order=True)
    return score.select(order).to_series().head(n).cast(pl.UInt32)


def _votes(run: Run, keyed: pl.DataFrame) -> pl.DataFrame:
    if not run.has("votes"):
        return pl.DataFrame(schema={"row": pl.Int64, "annotator": pl.String, "label": pl.String})
    keys = keyed.lazy().select("row", "question", "item")
    return (
        run.scan("votes")
        .join(keys, on=["question", "item"], maintain_order="left")
        .select("row", pl.col("annotator").cast(pl.String), "label")
        # Votes that nobody signed keep the order of the table.
        .sort("row", "annotator", maintain_order=True)
        .collect()
    )


def text_cut(n_texts: int) -> int:
    """Return how many characters of each of so many texts are shown at most."""
    return min(TEXT_CUT, max(TEXT_BUDGET // max(n_texts, 1), 100))


def _texts(run: Run, items: pl.DataFrame) -> pl.DataFrame:
    rows = run.scan("texts").join(items.lazy().select("item").unique(), on="item").drop_nulls("text").sort("item")
    frame, length = rows.collect(), pl.col("text").str.len_chars()
    cut = pl.col("text").str.slice(0, text_cut(frame.height))
    return frame.select(pl.col("item").cast(pl.String), cut, length=length)


def with_steps(run: Run, items: pl.DataFrame, votes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add to items the prior's log-odds, and to their votes what each adds in its turn."""
    fits = {(fit["question"], fit["part"]): fit for fit in run.manifest["questions"]}
    # The confusion matrices of all who cast some votes, or stand for them.
    stand_ins = [str(group[0]) for fit in fits.values() for group in fit["counted_as_one"]]
    voters = pl.Series([*votes["annotator"].unique(), *stand_ins], dtype=pl.String)
    cells = run.scan("annotators").with_columns(pl.col("annotator").cast(pl.String))
    cells_of = cells.filter(pl.col("annotator").is_in(voters.implode())).collect().partition_by(FIT, as_dict=True)
    prior_i, contribution_v = np.zeros(items.height), np.zeros(votes.height)
    cast = votes.select("annotator", "label", item="row").with_row_index("vote")
    cast = cast.with_columns(items[name].gather(cast["item"]) for name in FIT)
    votes_of, priors = cast.partition_by(FIT, as_dict=True), defaultdict[tuple[Any, ...], dict[str, float]](dict)
    by_label = run.table("contributions", where=pl.col("annotator").is_null()).select(*FIT, "class", "contribution")
    for question, part, label, nats in by_label.iter_rows():
        priors[question, part][label] = nats
    for key, rows in items.with_row_index("row").partition_by(FIT, as_dict=True).items():
        fit, row_i = fits[key], rows["row"].to_numpy()
        fitted, here = FittedStates.of(fit, priors[key]), votes_of.get(key, cast.head(0))
        once = counted_votes(here, fit["counted_as_one"]).sort("item", maintain_order=True)
        matrices = confusion_by_annotator(cells_of[key], len(fit["labels"])) if key in cells_of else {}
        log_vote_vz = fitted.log_votes(matrices, once.select("annotator", "label").rows())
        # Where several votes counted as one, the first has what they add together.
        vote_v = here["vote"].gather(once["at"].list.first()).to_numpy()
        start_i, end_i = (np.searchsorted(once["item"].to_numpy(), row_i, side=side) for side in ("left", "right"))
        pairs, domains = rows.select("favoured", "alternative").rows(), rows["domain"].to_list()
        for n_votes in np.unique(end_i - start_i):
            at_n = np.flatnonzero(end_i - start_i == n_votes)
            vote_nt = start_i[at_n, None] + np.arange(n_votes)
            odds_nt = fitted.odds_after([domains[i] for i in at_n], log_vote_vz[vote_nt], [pairs[i] for i in at_n])
            prior_i[row_i[at_n]] = odds_nt[:, 0]
            contribution_v[vote_v[vote_nt]] = np.diff(odds_nt, axis=1)
    return items.with_columns(prior=pl.Series(prior_i)), votes.with_columns(contribution=pl.Series(contribution_v))
