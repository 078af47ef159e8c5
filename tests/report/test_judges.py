"""The section on judges: there where language models voted, and the same as the command says."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.judges.table import describe_judges
from moral_entropy.report.html import render
from moral_entropy.report.page import judges_section


def votes(names, known):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    rows = [
        (i, who, int(t if rng.random() < 0.8 else 1 - t), int(t) if i < known else None)
        for who in names
        for i, t in enumerate(truth)
    ]
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "gold"], orient="row")


@pytest.mark.parametrize("known", [0, 40])
def test_people_are_no_judges_whether_or_not_answers_are_known(known):
    run = me.audit(votes(("ann", "bob", "cy"), known), gold="gold" if known else None, draws=20)
    assert judges_section(run) is None
    assert 'id="judges"' not in render(run)


def test_the_section_says_what_the_command_says():
    run = me.audit(votes(("ann", "<b>gpt-4o</b>", "llama"), 40), gold="gold", draws=20)
    tables = {table["title"]: table["rows"] for table in judges_section(run)["tables"]}
    assert list(tables) == ["Scores", "Judges, best first", "Best panel of each size"]
    judges = describe_judges(run)
    assert [row[1] for row in tables["Judges, best first"]] == judges.frame["judge"].to_list()
    assert tables["Scores"][0][4].startswith(f"{100 * me.score(run).frame['value'][0]:.1f}%")
    assert [row[2] for row in tables["Judges, best first"]] == judges.frame["advice"].to_list()
    assert [row[1] for row in tables["Best panel of each size"]] == judges.panels["judges"].to_list()
    page = render(run)
    assert 'id="judges"' in page and "<b>gpt-4o" not in page
    assert set(judges.notes) <= set(judges_section(run)["notes"])


def test_systems_are_scored_and_compared_one_by_one():
    frame = votes(("gpt-4o", "llama", "claude-3"), 80).with_columns(
        system=pl.when(pl.col("item") % 2 == 0).then(pl.lit("old")).otherwise(pl.lit("new"))
    )
    run = me.audit(frame, gold="gold", domain="system", draws=20)
    tables = {table["title"]: table["rows"] for table in judges_section(run)["tables"]}
    scores = me.score(run, by="domain")
    assert [row[2] for row in tables["Scores"]] == scores.frame["group"].to_list() == ["new", "old"]
    [row], [gap] = tables["Differences"], scores.differences.to_dicts()
    assert row[2] == f"{gap['group']} − {gap['other']}"
    assert gap["low"] < 0 and row[4] == f"{gap['value']:.1%} ({100 * gap['low']:.1f} to {100 * gap['high']:.1f})"
    assert "Differences" in render(run)
