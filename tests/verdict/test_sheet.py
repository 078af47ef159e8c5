"""Sheets: random, in proportion, disjoint, and blind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_support import vote_frame

import moral_entropy as me
from moral_entropy.errors import UsageError
from moral_entropy.runs.run import read_run
from moral_entropy.verdict.sheet import draw_blocks, make_sheet, printable


@given(st.lists(st.integers(1, 4), min_size=1, max_size=60), st.integers(1, 80), st.integers(0, 9))
def test_weights_add_up_to_all_items(counts, n, seed):
    order = np.random.default_rng(seed).permutation(len(counts))
    items, weight = draw_blocks(order, np.array(counts, dtype=float), n, seed)
    assert weight.sum() == pytest.approx(sum(counts))
    assert len(set(items.tolist())) == len(items) <= min(n, sum(counts))


@pytest.mark.parametrize(("n_items", "n"), [(37, 5), (12, 7), (6, 6)])
def test_every_item_stands_for_itself_on_average(n_items, n):
    total = np.zeros(n_items)
    for seed in range(6_000):
        items, weight = draw_blocks(np.arange(n_items), np.ones(n_items), n, seed)
        total[items] += weight
    # Standard error of the mean of a weight: below .035 here.
    assert np.abs(total / 6_000 - 1).max() < 5 * 0.035


def test_every_certainty_is_there_in_its_proportion():
    items, weight = draw_blocks(np.arange(1_000), np.ones(1_000), 50, seed=3)
    assert (items // 20).tolist() == list(range(50)) and (weight == 20).all()


@pytest.fixture(scope="module")
def run():
    return me.audit(vote_frame(questions=("care",), n_items=300, gold=False), draws=50)


def test_a_sheet_tells_nothing_of_votes_and_p(run):
    sheet = run.spot_check(40)
    assert sheet.columns == ["item", "text", "choose_from", "answer", "sheet", "weight"]
    assert sheet["answer"].to_list() == [""] * 40 and sheet["sheet"].unique().to_list() == ["measure-1"]
    place = {item: at for at, item in enumerate(run.items["item"].to_list())}
    at = [place[item] for item in sheet["item"].to_list()]
    assert at == sorted(at)


def test_the_same_seed_the_same_sheet(run):
    assert make_sheet(run, 30).equals(make_sheet(run, 30))
    other = replace(run, manifest=run.manifest | {"seed": 1})
    assert not make_sheet(run, 30)["item"].equals(make_sheet(other, 30)["item"])


def test_sheets_are_disjoint_until_all_items_were_seen(run):
    seen = run
    for _ in range(3):
        sheet = seen.spot_check(100)
        seen = seen.with_answers(sheet.with_columns(answer=pl.lit("1")))
    checks = seen.table("spot_checks")
    assert checks["item"].n_unique() == checks.height == 300 and checks["sheet"].unique().sort().to_list() == [1, 2, 3]
    with pytest.raises(UsageError, match="every item of the run in memory is on an earlier sheet already"):
        seen.spot_check(1)


def test_repairs_are_the_least_sure(run):
    sheet = make_sheet(run, 25, purpose="repair")
    p = dict(zip(run.items["item"].to_list(), run.items["p"].to_list(), strict=True))
    sure = sorted(round(max(one, 1 - one), 9) for one in p.values())[:25]
    assert [round(max(p[item], 1 - p[item]), 9) for item in sheet["item"].to_list()] == sure
    assert sheet["weight"].to_list() == [0.0] * 25


def test_more_rows_than_items_are_all_items(run):
    assert make_sheet(run, 1_000).height == 300


def test_texts_and_questions_are_shown_where_there_are_some(plain_run):
    opened = read_run(plain_run)
    sheet = printable(opened, make_sheet(opened, 10))
    assert {"item", "question", "text", "choose_from", "answer"} <= set(sheet.columns)
    texts = dict(opened.table("texts").select(pl.col("item").cast(pl.String), "text").iter_rows())
    assert [texts[str(item)] for item in sheet["item"].to_list()] == sheet["text"].to_list()
