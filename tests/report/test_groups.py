"""Groups in the report and on the dataset card; a run without them has neither."""

from __future__ import annotations

import pytest
from group_support import crowd, frame_of

import moral_entropy as me
from moral_entropy.report.card import dataset_card
from moral_entropy.report.html import render
from moral_entropy.report.page import groups_section


@pytest.fixture(scope="module")
def run():
    votes, group_a, _ = crowd(1, sizes=(8, 8), items=50, votes=40, parting=0.5)
    frame = frame_of(votes, group_a, names=("<b>men</b>", "women"))
    return me.audit(frame, draws=20, annotator_group=("gender",))


def test_the_report_has_a_section_whose_figures_are_the_tables(run):
    section = groups_section(run)
    women = run.table("groups").filter(group="women").row(0, named=True)
    [row] = [row for row in section["table"]["rows"] if row[2] == "women"]
    assert row[4] == f"{100 * women['rate']:.1f}%" and row[5].startswith(f"{100 * women['difference']:+.1f} (")
    widest = run.table("group_items").sort("spread", descending=True).row(0, named=True)
    assert section["parting"]["rows"][0][1] == str(widest["item"])
    assert len(section["parting"]["rows"]) == 20


def test_names_of_groups_are_no_markup(run):
    page = render(run)
    assert 'id="groups"' in page and "&lt;b&gt;men" in page and "<b>men" not in page
    card = dataset_card(run)
    assert "## Whose consensus this is" in card and "<b>men" not in card


def test_a_run_without_groups_shows_none(plain_run):
    run = me.read_run(plain_run)
    assert 'href="#groups"' not in render(run)
    assert "Whose consensus" not in dataset_card(run)
