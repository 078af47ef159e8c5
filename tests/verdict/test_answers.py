"""Filled-in sheets: what is refused, what is counted, and that spreadsheets bring them back whole."""

from __future__ import annotations

import polars as pl
import pytest
from report_support import vote_frame

import moral_entropy as me
from moral_entropy.errors import VotesError


@pytest.fixture(scope="module")
def run():
    return me.audit(vote_frame(questions=("care",), labels=("no", "yes"), gold=False), draws=40)


def answered(run, n=20, **changes):
    return run.spot_check(n).with_columns(answer=pl.lit("yes")).with_columns(**changes)


def test_answers_are_kept_with_their_sheet_and_weight(run):
    sheet = answered(run)
    checks = run.with_answers(sheet).table("spot_checks")
    assert checks["answer"].to_list() == ["yes"] * 20 and checks["sheet"].to_list() == [1] * 20
    assert checks["weight"].to_list() == sheet["weight"].to_list()


def test_case_and_spaces_do_not_matter(run):
    checks = run.with_answers(answered(run, answer=pl.lit("  YES "))).table("spot_checks")
    assert checks["answer"].unique().to_list() == ["yes"]


def test_blank_rows_are_counted_as_not_checked(run):
    blank = pl.when(pl.int_range(pl.len()) < 3).then(pl.lit(" ")).otherwise(pl.lit("yes"))
    checked = run.with_answers(answered(run, answer=blank))
    assert checked.table("spot_checks")["answer"].null_count() == 3
    assert checked.verdict.error.checked == 17
    assert "3 rows of the sheet are blank: if these are the hard ones, more is wrong." in checked.verdict.text


def test_a_file_as_a_spreadsheet_saves_it(run, tmp_path):
    path = tmp_path / "filled.csv"
    rows = answered(run).with_columns(text=pl.lit("'=1+1"))
    path.write_text(rows.write_csv(separator=";"), encoding="utf-8-sig")
    assert run.with_answers(path).verdict.error.checked == 20


def test_without_weights_all_rows_count_alike(run):
    checked = run.with_answers(answered(run).drop("weight", "sheet"))
    assert checked.table("spot_checks")["weight"].unique().to_list() == [1.0]


@pytest.mark.parametrize(
    ("sheet", "said"),
    [
        (lambda one: one.with_columns(answer=pl.lit("")), "none of the 20 rows of a polars DataFrame has an answer"),
        (lambda one: one.drop("answer"), "has no column 'answer'. Found: item"),
        (
            lambda one: one.with_columns(item=pl.lit("x1")),
            "20 of 20 answers in .* are about items that the run in memory does not have. First: item 'x1'",
        ),
        (lambda one: one.with_columns(answer=pl.lit("maybe")), "answers 'maybe' for item .* Labels: no, yes"),
        (
            lambda one: pl.concat([one, one.with_columns(answer=pl.lit("no"))]),
            "20 items of .* have two answers. First: item .* is 'yes' and 'no'. Keep one",
        ),
        (lambda one: one.with_columns(weight=pl.lit("many")), "20 rows of .* have no weight. First: row 1"),
        (lambda one: one.with_columns(weight=pl.lit(-1.0)), "20 rows of .* have no weight"),
    ],
    ids=["empty", "no column", "unknown items", "other labels", "two answers", "no weight", "negative weight"],
)
def test_a_slip_is_refused_in_words(run, sheet, said):
    with pytest.raises(VotesError, match=said):
        run.with_answers(sheet(answered(run)))


def test_several_questions_need_their_column():
    several = me.audit(vote_frame(gold=False), draws=20)
    sheet = several.spot_check(12).with_columns(answer=pl.lit("1"))
    assert several.with_answers(sheet).verdict.error.checked == 12
    with pytest.raises(VotesError, match="does not say which of the 2 questions an answer is about"):
        several.with_answers(sheet.drop("question"))


def test_a_later_answer_takes_the_place_of_an_earlier_one(run):
    sheet = answered(run)
    twice = run.with_answers(sheet).with_answers(sheet.with_columns(answer=pl.lit("no")))
    assert twice.table("spot_checks")["answer"].to_list() == ["no"] * 20
