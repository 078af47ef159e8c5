"""A filled-in sheet → the answers, checked against the run they are about.

Blank rows count as not checked, and are counted. An item or a label that the run does not have is refused, with the
first of them: a slip would otherwise become an error of the labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.runs.run import Run
from moral_entropy.schemas import SCHEMAS, with_ids
from moral_entropy.verdict.sheet import KEYS, spot_checks
from moral_entropy.votes.labels import match_label
from moral_entropy.votes.source import Source, open_source

ANSWER = "answer"


def add_answers(run: Run, sources: Iterable[Any]) -> pl.DataFrame:
    """Return the spot checks of a run with the answers of filled-in sheets.

    Parameters
    ----------
    run
        The run that the answers are about.
    sources
        Files or dataframes with the columns item, answer and, if there are several questions, question; `sheet` and
        `weight` as the sheet had them.
    """
    known = spot_checks(run)
    for source in sources:
        found = read_answers(run, source)
        known = pl.concat([known.join(found, on=KEYS, how="anti", maintain_order="left"), found])
    return known


def check_sheets(sources: Iterable[Any]) -> None:
    """Refuse sheets that cannot be read or lack a column: before the votes are fitted, which can take long."""
    for source in sources:
        _require(open_source(source), ("item", ANSWER))


def read_answers(run: Run, source: Any) -> pl.DataFrame:
    """Read one filled-in sheet."""
    table = open_source(source)
    _require(table, ("item", ANSWER))
    rows = pl.DataFrame({name: _texts(table, name) for name in ("item", ANSWER)})
    rows = rows.with_columns(_questions(run, table), _sheets(table), _weights(table), _domains(table))
    if (rows[ANSWER] == "").all():
        msg = f"none of the {rows.height:,} rows of {table.name} has an answer. Fill in the column {ANSWER!r}."
        raise VotesError(msg)
    items = run.scan("items").select(*KEYS).collect(engine="streaming")
    keyed = items.with_columns(key=pl.col("item").cast(pl.String))
    met = rows.rename({"item": "key"}).join(keyed, on=["question", "key"], how="left", maintain_order="left")
    given, blank = (met.filter(some) for some in (pl.col(ANSWER) != "", pl.col(ANSWER) == ""))
    _check_items(given, table.name, run)
    _check_once(given, table.name)
    labels = [_label(run, table.name, *row) for row in given.select("question", "item", ANSWER).iter_rows()]
    answered = given.with_columns(pl.Series(ANSWER, labels, dtype=pl.String))
    shown = blank.drop_nulls("item").with_columns(pl.lit(None, dtype=pl.String).alias(ANSWER))
    both = pl.concat([answered, shown]).unique(KEYS, keep="first", maintain_order=True)
    # Sheets are numbered as they were written; rows of nobody's sheet are a random one.
    parts = pl.col("sheet").str.extract_groups(r"^(measure|repair)-(\d+)$")
    both = both.with_columns(
        purpose=parts.struct[0].fill_null("measure"), sheet=parts.struct[1].cast(pl.Int32).fill_null(1)
    )
    return both.match_to_schema(with_ids(SCHEMAS["spot_checks"], item=items.schema["item"]), extra_columns="ignore")


def _require(table: Source, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.columns:
            found = ", ".join(table.columns)
            msg = (
                f"{table.name} has no column {name!r}. Found: {found}. A sheet has item, {ANSWER} and, if there are "
                "several questions, question: see spot-check.csv in the run folder."
            )
            raise VotesError(msg)


def _texts(table: Source, name: str) -> pl.Series:
    texts = table.column(name).cast(pl.String).fill_null("").str.strip_chars()
    # A spreadsheet keeps the apostrophe that guards a text from being read as a formula.
    return texts.str.replace(r"^'([=+\-@])", "$1").alias(name)


def _questions(run: Run, table: Source) -> pl.Series:
    names = [question.name for question in run.questions]
    if "question" in table.columns:
        return _texts(table, "question")
    if len(names) > 1:
        msg = (
            f"{table.name} does not say which of the {len(names)} questions an answer is about ({', '.join(names)}). "
            "Keep the column question of the sheet."
        )
        raise VotesError(msg)
    return pl.repeat(names[0], table.rows, eager=True).alias("question")


def _sheets(table: Source) -> pl.Series:
    found = _texts(table, "sheet") if "sheet" in table.columns else pl.repeat("", table.rows, eager=True)
    return found.alias("sheet")


def _weights(table: Source) -> pl.Series:
    if "weight" not in table.columns:
        return pl.repeat(1.0, table.rows, eager=True).alias("weight")
    weight = table.column("weight").cast(pl.Float64, strict=False)
    bad = weight.is_null() | ~weight.is_finite() | (weight < 0)
    if bad.any():
        first = int(bad.arg_max() or 0)
        msg = (
            f"{bad.sum():,} rows of {table.name} have no weight. First: row {first + 1}. Keep the column weight of "
            "the sheet as it was, or leave it out: then all rows count alike."
        )
        raise VotesError(msg)
    return weight.alias("weight")


def _domains(table: Source) -> pl.Series:
    """Return the domain that the sheet was limited to; null where it was not."""
    if "domain" not in table.columns:
        return pl.repeat(None, table.rows, dtype=pl.String, eager=True).alias("domain")
    domain = _texts(table, "domain")
    return domain.set(domain == "", None)


def _check_items(given: pl.DataFrame, name: str, run: Run) -> None:
    """Refuse answers about items that the run does not have."""
    strange = given.filter(pl.col("item").is_null())
    if strange.height:
        first = strange.row(0, named=True)
        msg = (
            f"{strange.height:,} of {given.height:,} answers in {name} are about items that {run.where} does not have. "
            f"First: item {first['key']!r} of question {first['question']!r}. Check the sheet of the same votes."
        )
        raise VotesError(msg)


def _check_once(given: pl.DataFrame, name: str) -> None:
    """Refuse two answers to one item."""
    several = given.group_by(KEYS, maintain_order=True).agg(pl.col(ANSWER).unique(maintain_order=True))
    twice = several.filter(pl.col(ANSWER).list.len() > 1)
    if twice.height:
        first = twice.row(0, named=True)
        msg = (
            f"{twice.height:,} items of {name} have two answers. First: item {first['item']!r} is "
            f"{first[ANSWER][0]!r} and {first[ANSWER][1]!r}. Keep one."
        )
        raise VotesError(msg)


def _label(run: Run, name: str, question: str, item: object, answer: str) -> str:
    labels = next(one.labels for one in run.questions if one.name == question)
    at = match_label(answer, labels)
    if at is None:
        msg = (
            f"{name} answers {answer!r} for item {item!r}, which is no label of {question!r}. Labels: "
            f"{', '.join(labels)}. Leave the cell empty where you cannot tell."
        )
        raise VotesError(msg)
    return labels[at]
