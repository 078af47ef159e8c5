"""The items of the page: as many as asked for, those worth looking at, whole with their votes."""

from __future__ import annotations

import math

import polars as pl
import pytest
from report_support import vote_frame

import moral_entropy as me
from moral_entropy.report import items as module
from moral_entropy.report.items import shown_items, text_cut
from moral_entropy.runs.folder import read_table
from moral_entropy.runs.run import read_run


def test_all_items_are_shown_when_they_fit(plain_run):
    shown = shown_items(read_run(plain_run), 2_000)
    assert shown["items"].height == read_table(plain_run, "items").height


@pytest.mark.parametrize("cap", [2, 40, 101])
def test_the_cap_holds_and_the_most_doubtful_are_in(plain_run, cap):
    shown = shown_items(read_run(plain_run), cap)["items"]
    assert cap - 2 <= shown.height <= cap
    if cap >= 40:
        everything = read_table(plain_run, "items").filter(question="care")
        top = everything.top_k(5, by="entropy")["item"]
        assert set(top) <= set(shown.filter(question="care")["item"])


def test_every_item_shown_has_all_its_votes(plain_run):
    shown = shown_items(read_run(plain_run), 50)
    counted = shown["item_votes"].group_by("row").len()
    by_row = dict(counted.iter_rows())
    assert [by_row.get(row, 0) for row in range(shown["items"].height)] == shown["items"]["n_votes"].to_list()


def test_contributions_of_the_votes_add_up_to_p(plain_run):
    shown = shown_items(read_run(plain_run), 30)
    votes = shown["item_votes"].partition_by("row", as_dict=True)
    for row, item in enumerate(shown["items"].iter_rows(named=True)):
        total = item["prior"] + votes[(row,)]["contribution"].sum()
        assert 1 / (1 + math.exp(-total)) == pytest.approx(item["p_map"], abs=1e-9)


@pytest.mark.parametrize("labels", [("0", "1"), ("anger", "joy", "none")])
def test_under_the_papers_model_the_contributions_add_up_too(labels):
    run = me.audit(vote_frame(labels=labels, questions=("q",), n_items=40, gold=False), model="paper", draws=30)
    shown = shown_items(run, 30)
    votes = shown["item_votes"].partition_by("row", as_dict=True)
    p_map = {(row["item"], row["class"]): row["p_map"] for row in run.table("posterior").iter_rows(named=True)}
    for row, item in enumerate(shown["items"].iter_rows(named=True)):
        total = item["prior"] + votes[(row,)]["contribution"].sum()
        # The log-odds of the favoured label against its alternative.
        alternative = 1 - item["p_map"] if len(labels) == 2 else p_map[item["item"], item["alternative"]]
        assert total == pytest.approx(math.log(item["p_map"] / alternative), abs=1e-6)


def test_few_votes_fit_few_items(plain_run, monkeypatch):
    monkeypatch.setattr(module, "MAX_VOTES", 100)
    shown = shown_items(read_run(plain_run), 2_000)
    assert 0 < shown["item_votes"].height <= 100


def test_long_texts_are_cut_and_say_how_long_they_were(hostile_run, monkeypatch):
    texts = shown_items(read_run(hostile_run), 500)["texts"]
    longest = texts.filter(pl.col("length") == texts["length"].max())
    assert longest["length"][0] == 100_000 and longest["text"].str.len_chars().max() == 2_000
    monkeypatch.setattr(module, "TEXT_BUDGET", 60 * 300)
    short = shown_items(read_run(hostile_run), 500)
    assert text_cut(short["texts"].height) == 300 and short["texts"]["text"].str.len_chars().max() == 300
