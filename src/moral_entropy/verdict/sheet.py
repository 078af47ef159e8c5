"""Sheets of labels to check by hand: random items with texts, blind to votes and p; written, filled in, read.

Items are sorted by how sure the consensus is and cut into as many blocks as there are rows on the sheet, one item
being drawn from each: every certainty is there in its proportion. A row's weight is the size of its block. A sheet of
the least sure items mends labels and measures nothing.

In a run folder `spot_checks.parquet` has the rows of every sheet, with the answers given so far; `spot-check.csv`,
`spot-check-2.csv` and so on are the sheets to fill in. Blank rows are not checked, and are counted. An item or a label
that the run does not have is refused, with the first of them: a slip would otherwise become an error of the labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.files import whole_file, without_formulas
from moral_entropy.options import VerdictOptions
from moral_entropy.runs.folder import change_manifest, write_rows
from moral_entropy.runs.run import Run
from moral_entropy.schemas import SCHEMAS
from moral_entropy.ties import DECIMALS
from moral_entropy.verdict.figures import KEYS, wrong_by
from moral_entropy.votes.labels import match_label
from moral_entropy.votes.source import Source, open_source
from moral_entropy.votes.table import Floats, Ints, refuse

ROWS = 50
"""Rows of the sheet that every audit writes."""

MOST_CHECKED = 1 / 3
"""Share of the items up to which they are drawn from blocks."""

Purpose = Literal["measure", "repair"]
SHEET, ANSWER = "spot-check.csv", "answer"
"""The file of the first sheet, and its column to fill in."""


def spot_checks(run: Run) -> pl.DataFrame:
    """Return the rows of every sheet of a run so far, with ids of the type that its items have."""
    return run.table("spot_checks").cast({"item": run.scan("items").collect_schema()["item"]})


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
    rng = np.random.default_rng([seed, n])
    if MOST_CHECKED * total < n < total:
        # At random, as blocks of one or two would weigh very unequally.
        unit_b, size_b = rng.choice(total, n, replace=False), np.full(n, total / n)
    else:
        edge_b = np.arange(n + 1) * total // n if n < total else np.arange(total + 1)
        unit_b, size_b = rng.integers(edge_b[:-1], edge_b[1:]), np.diff(edge_b).astype(float)
    # An item that stands for many can be drawn for several blocks.
    at, inverse = np.unique(np.searchsorted(end_i, unit_b, side="right"), return_inverse=True)
    return order_i[at], np.bincount(inverse, weights=size_b, minlength=len(at)).astype(float)


def make_sheet(run: Run, n: int = ROWS, *, purpose: Purpose = "measure") -> pl.DataFrame:
    """Choose items to check that no earlier sheet of the run has.

    Parameters
    ----------
    run
        The run.
    n
        How many rows.
    purpose
        "measure": at random; "repair": the least sure first.

    Returns
    -------
    pl.DataFrame
        question, item, sheet, purpose, weight, answer (empty).
    """
    earlier, rows = spot_checks(run), run.scan("items").with_row_index("row")
    # Without earlier sheets names stay on disk: there may be very many.
    unseen = rows.join(earlier.lazy(), on=KEYS, how="anti", maintain_order="left") if earlier.height else rows
    items = unseen.select("row", "count", sure=1.0 - wrong_by(run)).collect(engine="streaming")
    if items.is_empty():
        refuse(f"every item of {run.where} is on an earlier sheet already.", UsageError)
    number = 1 + max(earlier["sheet"].to_list(), default=0)
    order_i: Ints = np.argsort(items["sure"].round(DECIMALS).to_numpy(), kind="stable")
    if purpose == "repair":
        drawn_b, weight = order_i[:n], np.zeros(min(n, len(order_i)))
    else:
        seed = int(run.manifest["seed"]) + 1_000 * number
        drawn_b, weight = draw_blocks(order_i, items["count"].to_numpy(), n, seed)
    sheet = pl.DataFrame({"row": items["row"].gather(drawn_b), "weight": weight})
    names = rows.filter(pl.col("row").is_in(sheet["row"].implode())).select("row", *KEYS).collect(engine="streaming")
    # In the order of the votes: the order of certainty would tell.
    sheet = sheet.join(names, on="row", maintain_order="left" if purpose == "repair" else "right")
    empty = pl.lit(None, dtype=pl.String)
    facts = {"sheet": pl.lit(number, dtype=pl.Int32), "purpose": pl.lit(purpose), "answer": empty, "label": empty}
    return sheet.with_columns(**facts).select(SCHEMAS["spot_checks"].names())


def printable(run: Run, sheet: pl.DataFrame) -> pl.DataFrame:
    """Lay a sheet out for a person to fill in: item, question, text, the labels to choose from, an empty answer.

    It has neither votes nor p, and no order from which they could be told.
    """
    choices, names = {question.name: " | ".join(question.labels) for question in run.questions}, ["item"]
    names += ["question"] * (len(choices) > 1) + ["text"] * run.has("texts")
    if run.has("texts"):
        texts = run.table("texts", where=pl.col("item").is_in(sheet["item"].implode()))
        sheet = sheet.join(texts, on="item", how="left", maintain_order="left")
    return sheet.select(
        *names,
        choose_from=pl.col("question").replace_strict(choices, return_dtype=pl.String),
        answer=pl.col("answer").fill_null(""),
        sheet=pl.concat_str(pl.col("purpose"), pl.col("sheet").cast(pl.String), separator="-"),
        weight="weight",
    )  # fmt: skip


def with_answers(run: Run, sources: Iterable[Any]) -> Run:
    """Return a run with the answers of filled-in sheets; of a run on disk the folder has them then.

    Parameters
    ----------
    run
        The run that the answers are about.
    sources
        Files or dataframes with the columns item, answer and, if there are several questions, question; `sheet` and
        `weight` as the sheet had them.
    """
    rows = spot_checks(run)
    for source in sources:
        sheet = read_answers(run, source)
        # A row left blank takes nothing back that was answered before.
        blank = sheet.filter(pl.col(ANSWER).is_null()).join(rows.drop_nulls(ANSWER), on=KEYS, how="anti")
        sheet = pl.concat([sheet.drop_nulls(ANSWER), blank])
        rows = pl.concat([rows.join(sheet, on=KEYS, how="anti", maintain_order="left"), sheet])
    if run.path is None:
        return replace(run, tables={**run.tables, "spot_checks": rows})
    write_rows(run.path, "spot_checks", rows)
    return replace(run)


def add_sheet(run: Run, n: int = ROWS, *, purpose: Purpose = "measure", out: Path | None = None) -> Path:
    """Write another sheet of a run folder, disjoint from the earlier ones; return its path.

    A file that is already there is never replaced: it may have answers.
    """
    if out is not None and out.exists():
        refuse(f"{out} exists, and may hold answers. Choose another name with -o.", UsageError)
    sheet = make_sheet(run, n, purpose=purpose)
    number = int(sheet["sheet"][0])
    path = out or run.folder / (SHEET if number == 1 else SHEET.replace(".", f"-{number}."))
    # Noted first: whatever stops this here, no later sheet has the same number.
    write_rows(run.folder, "spot_checks", pl.concat([spot_checks(run), sheet]))
    with whole_file(path) as partial:
        # Spreadsheets take a file without this mark for the old encoding of their system.
        partial.write_text(without_formulas(printable(run, sheet)).write_csv(), encoding="utf-8-sig")
    return path


def with_tolerance(run: Run, tolerance: float) -> Run:
    """Return a run folder in which another share of wrong labels is tolerated."""
    verdict = run.manifest["options"]["verdict"] | {"tolerance": VerdictOptions(tolerance=tolerance).tolerance}
    return replace(run, manifest=change_manifest(run.folder, options=run.manifest["options"] | {"verdict": verdict}))


def read_answers(run: Run, source: Any) -> pl.DataFrame:
    """Read one filled-in sheet."""
    table = open_sheet(source)
    labels_of = {question.name: question.labels for question in run.questions}
    if "question" not in table.columns and len(labels_of) > 1:
        refuse(
            f"{table.name} does not say which of the {len(labels_of)} questions an answer is about "
            f"({', '.join(labels_of)}). Keep the column question of the sheet."
        )
    rows = _rows(table, next(iter(labels_of)))
    # The label as it is now: answers may become the labels of a later run.
    items = run.scan("items").select(*KEYS, "label", key=pl.col("item").cast(pl.String)).collect(engine="streaming")
    rows = rows.rename({"item": "key"}).join(items, on=["question", "key"], how="left", maintain_order="left")
    answered, blank = (rows.filter(part) for part in (pl.col(ANSWER) != "", pl.col(ANSWER) == ""))
    if n_strange := answered["item"].null_count():
        question, key = answered.filter(pl.col("item").is_null()).select("question", "key").row(0)
        refuse(
            f"{n_strange:,} of {answered.height:,} answers in {table.name} are about items that {run.where} does not "
            f"have. First: item {key!r} of question {question!r}. Check the sheet of the same votes."
        )
    answers = answered.group_by(KEYS, maintain_order=True).agg(pl.col(ANSWER).unique(maintain_order=True))
    twice = answers.filter(pl.col(ANSWER).list.len() > 1)
    for _, item, (first, second, *_) in twice.iter_rows():
        refuse(
            f"{twice.height:,} items of {table.name} have two answers. First: item {item!r} is {first!r} and "
            f"{second!r}. Keep one."
        )
    labels = []
    for question, item, answer in answered.select(*KEYS, ANSWER).iter_rows():
        at = match_label(answer, labels_of[question])
        if at is None:
            refuse(
                f"{table.name} answers {answer!r} for item {item!r}, which is no label of {question!r}. Labels: "
                f"{', '.join(labels_of[question])}. Leave the cell empty where you cannot tell."
            )
        labels.append(labels_of[question][at])
    answered = answered.with_columns(pl.Series(ANSWER, labels, dtype=pl.String))
    blank = blank.drop_nulls("item").with_columns(pl.lit(None, dtype=pl.String).alias(ANSWER))
    # Sheets are numbered as they were written; rows of nobody's sheet are a random one.
    parts = pl.col("sheet").str.extract_groups(r"^(measure|repair)-(\d+)$")
    purpose, number = parts.struct[0].fill_null("measure"), parts.struct[1].cast(pl.Int32).fill_null(1)
    sheet = pl.concat([answered, blank]).unique(KEYS, keep="first", maintain_order=True)
    return sheet.with_columns(purpose=purpose, sheet=number).select(SCHEMAS["spot_checks"].names())


def open_sheet(source: Any) -> Source:
    """Open a sheet; refuse one that cannot be read or lacks a column."""
    table = open_source(source)
    for name in ("item", ANSWER):
        if name not in table.columns:
            refuse(
                f"{table.name} has no column {name!r}. Found: {', '.join(table.columns)}. A sheet has item, {ANSWER} "
                "and, if there are several questions, question: see spot-check.csv in the run folder."
            )
    return table


def _rows(table: Source, question: str) -> pl.DataFrame:
    """Return the texts and the weight of every row of a sheet; the question where no column has it."""
    missing = {"item": "", ANSWER: "", "sheet": "", "question": question, "weight": "1"}
    names = [name for name in missing if name in table.columns]
    rows = pl.DataFrame({name: table.column(name).cast(pl.String) for name in names})
    # A spreadsheet keeps the apostrophe that guards a text from being read as a formula.
    rows = rows.with_columns(pl.all().fill_null("").str.strip_chars().str.replace(r"^'([=+\-@])", "$1"))
    rows = rows.with_columns(pl.lit(text).alias(name) for name, text in missing.items() if name not in names)
    rows = rows.with_columns(pl.col("weight").cast(pl.Float64, strict=False))
    bad = ~(rows["weight"].is_finite() & (rows["weight"] >= 0)).fill_null(False)
    if bad.any():
        refuse(
            f"{bad.sum():,} rows of {table.name} have no weight. First: row {int(bad.arg_max() or 0) + 1}. Keep the "
            "column weight of the sheet as it was, or leave it out: then all rows count alike."
        )
    if (rows[ANSWER] == "").all():
        refuse(f"none of the {rows.height:,} rows of {table.name} has an answer. Fill in the column {ANSWER!r}.")
    return rows
