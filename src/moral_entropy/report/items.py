"""The items shown one by one: which, with what text, which votes, and how each vote pushes.

A page cannot hold a million items. It holds those a reader would look for: outliers, the most doubtful, those on which
votes and consensus differ, and every n-th of the rest, so that there are ordinary items to compare with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from moral_entropy.items.states import FittedStates, confusion_by_annotator, counted_votes
from moral_entropy.names import ALL
from moral_entropy.runs.run import Run
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import Floats

MAX_VOTES = 60_000
"""Votes in the page at most; items beyond them are left out."""

TEXT_CUT = 2_000
"""Characters of a text shown."""

TEXT_BUDGET = 2_500_000
"""Characters of all texts together; where they are longer, each is cut shorter."""

SHARE_OUTLIERS, SHARE_DOUBTFUL, SHARE_CONFLICTS = 0.3, 0.35, 0.2
"""Of the rows of a question; what is left goes to ordinary items."""

REASONS = 25
"""Outliers of each ranking that are sure to be shown, by question."""

COLUMNS = (
    "question", "item", "domain", "n_votes", "n_positive", "p_map", "p_model", "p", "p_low", "p_high", "label",
    "entropy", *PARTS, "part",
)  # fmt: skip


def shown_items(run: Run, cap: int) -> dict[str, pl.DataFrame]:
    """Choose items for the page, and gather what is known of each.

    Parameters
    ----------
    run
        The run.
    cap
        Rows at most; a row is an item and question.

    Returns
    -------
    dict
        - items: one row per item and question, ids as texts. Where items may lie between labels also rival, the label
          that the log-odds are against, and prior, the log-odds before any vote;
        - item_votes: row (of items), annotator, label; where items may lie between labels also push, what the vote
          adds to the log-odds after those before it;
        - texts: item, text (cut, see `text_cut`), length (before the cut);
        - pushes: those of the annotators who voted here, and the prior's;
        - reasons: row (of items), ranking, rank, reason.
    """
    outliers = _item_outliers(run)
    quota = max(cap // max(len(run.questions), 1), 1)
    chosen = [_choose(run, question.name, quota, outliers) for question in run.questions]
    items = pl.concat([_nothing(run), *chosen]).head(cap)
    items = items.filter(pl.col("n_votes").cum_sum() <= MAX_VOTES) if items.height else items
    keyed = items.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    votes = _votes(run, keyed)
    pushes = _pushes(run, votes)
    if run.model == "mixed":
        items, votes, pushes = *with_steps(run, items, votes), pushes.clear()
    named = keyed.with_columns(pl.col("item").cast(pl.String))
    reasons = outliers.join(named.select("row", "question", "item"), on=["question", "item"])
    return {
        "items": items.with_columns(pl.col("item").cast(pl.String)),
        "item_votes": votes,
        "texts": _texts(run, items),
        "pushes": pushes,
        "reasons": reasons.select("row", "ranking", "rank", "reason").sort("row", "rank", "ranking"),
    }


def _nothing(run: Run) -> pl.DataFrame:
    return run.scan("items").select(_columns(run)).head(0).collect()


def _columns(run: Run) -> list[str]:
    return [*COLUMNS, *([BETWEEN] if run.between_groups else [])]


def _choose(run: Run, question: str, quota: int, outliers: pl.DataFrame) -> pl.DataFrame:
    asked = run.scan("items").filter(pl.col("question") == question)
    n_items = asked.select(pl.len()).collect().item()
    if n_items > quota:
        # How far the share of positive votes is from p: what any rule on votes must get wrong.
        differing = (pl.col("n_positive") / pl.col("n_votes") - pl.col("p")).abs().fill_nan(0)
        ranked = outliers.filter(pl.col("question") == question).sort("rank", "item", maintain_order=True)
        names = ranked["item"].unique(maintain_order=True).head(int(quota * SHARE_OUTLIERS)).implode()
        numbered = asked.with_row_index("at")
        first = _collected(numbered.filter(pl.col("item").cast(pl.String).is_in(names)).select("at"))["at"].sort()
        doubtful = _most(asked, pl.col("entropy"), int(quota * SHARE_DOUBTFUL))
        conflicts = _most(asked, differing, int(quota * SHARE_CONFLICTS))
        ordinary = pl.arange(0, n_items, max(n_items // quota, 1), dtype=pl.UInt32, eager=True)
        at = pl.concat([first, doubtful, conflicts, ordinary]).unique(maintain_order=True).head(quota)
        asked = numbered.filter(pl.col("at").is_in(at.implode())).sort("at").drop("at")
    found = _collected(asked.select(_columns(run)))
    return found.sort(pl.col("entropy").round(DECIMALS), descending=True, maintain_order=True)


def _most(asked: pl.LazyFrame, by: pl.Expr, n: int) -> pl.Series:
    # One column at a time, and a stable sort: among equals always the same ones.
    score = asked.select(score=by.round(DECIMALS)).collect()
    order = pl.arg_sort_by("score", descending=True, maintain_order=True)
    return score.select(order).to_series().head(n).cast(pl.UInt32)


def _collected(rows: pl.LazyFrame) -> pl.DataFrame:
    """Collect in pieces: a question may have more items than fit in memory at once."""
    return rows.collect(engine="streaming")


def _item_outliers(run: Run) -> pl.DataFrame:
    found = run.scan("outliers").filter(pl.col("kind") == "item", pl.col("domain") == ALL, pl.col("rank") <= REASONS)
    return found.select("question", pl.col("name").alias("item"), "ranking", "rank", "reason").collect()


def _votes(run: Run, keyed: pl.DataFrame) -> pl.DataFrame:
    if not run.has("votes"):
        return pl.DataFrame(schema={"row": pl.Int64, "annotator": pl.String, "label": pl.String})
    wanted = keyed.lazy().select("row", "question", "item")
    return (
        run.scan("votes")
        .join(wanted, on=["question", "item"], maintain_order="left")
        .select("row", pl.col("annotator").cast(pl.String), "label")
        # Votes that nobody signed keep the order of the table.
        .sort("row", "annotator", maintain_order=True)
        .collect()
    )


def text_cut(n_texts: int) -> int:
    """Return how many characters of each of so many texts are shown at most."""
    return min(TEXT_CUT, max(TEXT_BUDGET // max(n_texts, 1), 100))


def _texts(run: Run, items: pl.DataFrame) -> pl.DataFrame:
    if not run.has("texts"):
        return pl.DataFrame(schema={"item": pl.String, "text": pl.String, "length": pl.UInt32})
    wanted = items.lazy().select("item").unique()
    found = run.scan("texts").join(wanted, on="item").drop_nulls("text").sort("item").collect()
    return found.select(
        pl.col("item").cast(pl.String),
        pl.col("text").str.slice(0, text_cut(found.height)),
        length=pl.col("text").str.len_chars(),
    )


def _pushes(run: Run, votes: pl.DataFrame) -> pl.DataFrame:
    voters = votes["annotator"].unique().implode()
    annotator = pl.col("annotator").cast(pl.String)
    rows = run.scan("pushes").with_columns(annotator)
    return rows.filter(annotator.is_null() | annotator.is_in(voters)).collect()


def with_steps(run: Run, items: pl.DataFrame, votes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add to some items the rival label and the prior's log-odds, and to their votes what each adds in its turn."""
    fits = {(fit["question"], fit["part"]): fit for fit in run.manifest["questions"]}
    runners_up, matrices = _runners_up(run, items), _matrices(run, votes)
    rival_i, prior_i, push_v = [""] * items.height, np.zeros(items.height), np.zeros(votes.height)
    cast = votes.rename({"row": "item"}).with_row_index("vote")
    for key, own in items.with_row_index("row").partition_by("question", "part", as_dict=True).items():
        fit, fitted = fits[key], FittedStates.of(fits[key])
        labels, row_i = fit["labels"], own["row"].to_numpy()
        here = cast.filter(pl.col("item").is_in(own["row"].cast(pl.Int64).implode()))
        counted = counted_votes(here, fit["counted_as_one"]).sort("item", maintain_order=True)
        cells = counted.select("annotator", "label").rows()
        chances = [matrices[key][who][:, labels.index(label)] for who, label in cells]
        log_vote_vz = fitted.log_votes(np.array(chances).reshape(-1, len(labels)))
        # Where several votes counted as one, the first has what they add together.
        vote_v = here["vote"].gather(counted["at"].list.first()).to_numpy()
        start_i, end_i = (np.searchsorted(counted["item"].to_numpy(), row_i, side=side) for side in ("left", "right"))
        towards = [fit["positive"] or label for label in own["label"]]
        names = zip(own["question"], own["item"], towards, strict=True)
        against = [runners_up.get((name, item)) or labels[1 - labels.index(label)] for name, item, label in names]
        pairs, domains = list(zip(towards, against, strict=True)), own["domain"].to_list()
        for n_votes in np.unique(end_i - start_i):
            at_n = np.flatnonzero(end_i - start_i == n_votes)
            vote_nt = start_i[at_n, None] + np.arange(n_votes)
            odds_nt = fitted.odds_after([domains[i] for i in at_n], log_vote_vz[vote_nt], [pairs[i] for i in at_n])
            prior_i[row_i[at_n]] = odds_nt[:, 0]
            push_v[vote_v[vote_nt]] = np.diff(odds_nt, axis=1)
        for row, label in zip(row_i, against, strict=True):
            rival_i[row] = label
    shown = items.with_columns(rival=pl.Series(rival_i, dtype=pl.String), prior=pl.Series(prior_i))
    return shown, votes.with_columns(push=pl.Series(push_v))


def _matrices(run: Run, votes: pl.DataFrame) -> dict[tuple[object, ...], dict[Any, Floats]]:
    """Return the confusion matrices of all who cast some votes, or stand for them, by question and part."""
    groups = [group for fit in run.manifest["questions"] for group in fit["counted_as_one"]]
    voters = pl.Series([*votes["annotator"].unique(), *(str(group[0]) for group in groups)], dtype=pl.String)
    cells = run.scan("annotators").with_columns(pl.col("annotator").cast(pl.String))
    known = cells.filter(pl.col("annotator").is_in(voters.implode())).collect()
    parts = known.partition_by("question", "part", as_dict=True)
    return {key: confusion_by_annotator(of_fit, of_fit["true"].n_unique()) for key, of_fit in parts.items()}


def _runners_up(run: Run, items: pl.DataFrame) -> dict[tuple[str, object], str]:
    """Return the likeliest label after the consensus label, of items with more than two labels."""
    if not run.has("posterior"):
        return {}
    labels = items.lazy().select("question", "item", own="label")
    joined = run.scan("posterior").join(labels, on=["question", "item"], maintain_order="left")
    rows = joined.filter(pl.col("class") != pl.col("own"))
    ordered = rows.sort(pl.col("p").round(DECIMALS), descending=True, maintain_order=True)
    first = ordered.unique(["question", "item"], keep="first", maintain_order=True).collect()
    return {(row["question"], row["item"]): row["class"] for row in first.iter_rows(named=True)}
