"""Run → a sheet of random items to check by hand: with texts, blind to votes and p.

Items are sorted by how sure the consensus is and cut into as many blocks as there are rows on the sheet, one item
being drawn from each: every certainty is there in its proportion. A row's weight is the size of its block. A sheet of
the least sure items mends labels and measures nothing.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.runs.run import Run
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.ties import DECIMALS
from moral_entropy.verdict.rates import wrong_by
from moral_entropy.votes.table import Floats, Ints

ROWS = 50
"""Rows of the sheet that every audit writes."""

MOST_CHECKED = 1 / 3
"""Share of the items up to which they are drawn from blocks."""

Purpose = Literal["measure", "repair"]
KEYS = ["question", "item"]


def spot_checks(run: Run) -> pl.DataFrame:
    """Return the rows of every sheet of a run so far, with ids of the type that its items have."""
    item = run.scan("items").collect_schema()["item"]
    return run.table("spot_checks").cast({"item": item})


def draw_blocks(order_i: Ints, count_i: Floats, n: int, seed: int) -> tuple[Ints, Floats]:
    """Draw one item from each of `n` blocks of equal size; return the items, and the size of the block of each.

    Parameters
    ----------
    order_i
        The items in the order in which they are cut into blocks.
    count_i
        How many items each stands for.
    n
        How many to draw.
    seed
        Same seed, same items.

    Examples
    --------
    >>> items, weights = draw_blocks(np.arange(100), np.ones(100), 5, seed=0)
    >>> (items // 20).tolist(), weights.tolist()
    ([0, 1, 2, 3, 4], [20.0, 20.0, 20.0, 20.0, 20.0])
    """
    end_i = np.cumsum(count_i[order_i])
    total = round(float(end_i[-1])) if len(end_i) else 0
    if MOST_CHECKED * total < n < total:
        return _draw_plainly(order_i, end_i, n, seed)
    edge_b = np.arange(n + 1) * total // n if n < total else np.arange(total + 1)
    unit_b = np.random.default_rng([seed, n]).integers(edge_b[:-1], edge_b[1:])
    at_b = np.searchsorted(end_i, unit_b, side="right")
    # An item that stands for many can be drawn for several blocks.
    at, inverse = np.unique(at_b, return_inverse=True)
    return order_i[at], np.bincount(inverse, weights=np.diff(edge_b).astype(float), minlength=len(at)).astype(float)


def from_blocks(weight_b: Floats) -> bool:
    """Tell from the weights of a sheet whether each of its items was drawn from a block of its own.

    Examples
    --------
    >>> from_blocks(draw_blocks(np.arange(100), np.ones(100), 30, seed=0)[1])
    True
    >>> from_blocks(draw_blocks(np.arange(100), np.ones(100), 40, seed=0)[1])
    False
    """
    return bool(len(weight_b) > 0 and weight_b.min() >= 1.0 / MOST_CHECKED)


def _draw_plainly(order_i: Ints, end_i: Floats, n: int, seed: int) -> tuple[Ints, Floats]:
    """Draw items at random, as blocks of one or two would weigh very unequally."""
    total = round(float(end_i[-1]))
    unit_b = np.random.default_rng([seed, n]).choice(total, n, replace=False)
    at, times = np.unique(np.searchsorted(end_i, unit_b, side="right"), return_counts=True)
    return order_i[at], times.astype(float) * (total / n)


def make_sheet(
    run: Run, n: int = ROWS, *, domain: str | None = None, purpose: Purpose = "measure", seed: int | None = None
) -> pl.DataFrame:
    """Choose items to check that no earlier sheet of the run has.

    Parameters
    ----------
    run
        The run.
    n
        How many rows.
    domain
        Only items of this domain.
    purpose
        "measure": at random; "repair": the least sure first.
    seed
        Same seed, same sheet; the run's by default.

    Returns
    -------
    pl.DataFrame
        question, item, sheet, purpose, domain (the one asked for), weight, answer (empty).
    """
    earlier = spot_checks(run)
    items = _candidates(run, domain, earlier)
    if items.is_empty():
        msg = f"every item of {run.where}{f' in {domain!r}' if domain else ''} is on an earlier sheet already."
        raise UsageError(msg)
    number = 1 + max(earlier["sheet"].to_list(), default=0)
    sure_i = items["sure"].round(DECIMALS).to_numpy()
    order_i: Ints = np.argsort(sure_i, kind="stable")
    chosen: Ints
    if purpose == "repair":
        chosen, weight = order_i[:n], np.zeros(min(n, len(order_i)))
    else:
        seed = int(run.manifest["seed"]) if seed is None else seed
        chosen, weight = draw_blocks(order_i, items["count"].to_numpy(), n, seed + 1_000 * number)
        # In the order of the votes: the order of certainty would tell.
        back = np.argsort(chosen, kind="stable")
        chosen, weight = chosen[back], weight[back]
    sheet = _named(run, items["row"].gather(chosen), weight).with_columns(
        sheet=pl.lit(number, dtype=pl.Int32),
        purpose=pl.lit(purpose),
        domain=pl.lit(domain, dtype=pl.String),
        answer=pl.lit(None, dtype=pl.String),
    )
    return sheet.match_to_schema(with_ids(SCHEMAS["spot_checks"], item=sheet.schema["item"]))


def _named(run: Run, row_b: pl.Series, weight_b: Floats) -> pl.DataFrame:
    """Return question, item and weight of the chosen rows of the table of items, in their order."""
    chosen = pl.DataFrame({"row": row_b, "weight": weight_b})
    rows = run.scan("items").with_row_index("row").filter(pl.col("row").is_in(row_b.implode())).select("row", *KEYS)
    found = rows.collect(engine="streaming")
    return chosen.join(found, on="row", how="left", maintain_order="left").select(*KEYS, "weight")


def _candidates(run: Run, domain: str | None, earlier: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the items that may be on a sheet, with how sure the consensus is of each.

    Their names stay on disk: there may be very many.
    """
    rows = run.scan("items").with_row_index("row")
    if domain is not None:
        known = run.manifest["domains"]
        if domain not in known:
            shown = ", ".join(map(str, known)) or "none"
            msg = f"the run has no domain {domain!r}. Domains: {shown}."
            raise UsageError(msg)
        rows = rows.filter(pl.col("domain") == domain)
    if not earlier.is_empty():
        rows = rows.join(earlier.lazy().select(KEYS).unique(), on=KEYS, how="anti", maintain_order="left")
    return rows.select("row", "count", sure=1.0 - wrong_by(run, "p")).collect(engine="streaming")


def printable(run: Run, sheet: pl.DataFrame) -> pl.DataFrame:
    """Lay a sheet out for a person to fill in: item, question, text, the labels to choose from, an empty answer.

    It has neither votes nor p, and no order from which they could be told.
    """
    choices = {question.name: " | ".join(question.labels) for question in run.questions}
    texts = run.table("texts", where=pl.col("item").is_in(sheet["item"].implode())) if run.has("texts") else None
    shown = sheet if texts is None else sheet.join(texts, on="item", how="left", maintain_order="left")
    columns = {
        "item": pl.col("item"),
        **({"question": pl.col("question")} if len(choices) > 1 else {}),
        **({"domain": pl.col("domain")} if sheet["domain"].is_not_null().any() else {}),
        **({"text": pl.col("text")} if texts is not None else {}),
        "choose_from": pl.col("question").replace_strict(choices, return_dtype=pl.String),
        "answer": pl.col("answer").fill_null(""),
        "sheet": pl.concat_str(pl.col("purpose"), pl.col("sheet").cast(pl.String), separator="-"),
        "weight": pl.col("weight"),
    }
    return shown.select(**columns)
