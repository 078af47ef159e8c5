"""The section on judges: there where language models voted or answers are known, and the same as the command says."""

from __future__ import annotations

import numpy as np
import polars as pl
import vl_convert

import moral_entropy as me
from moral_entropy.judges.table import describe_judges
from moral_entropy.report.figures import figure_specs
from moral_entropy.report.html import render
from moral_entropy.report.sections import SEEN, judges_section, panel_rows


def votes(names, known):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    rows = [
        (i, who, int(t if rng.random() < 0.8 else 1 - t), int(t) if i < known else None)
        for who in names
        for i, t in enumerate(truth)
    ]
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "gold"], orient="row")


def test_people_without_known_answers_are_no_judges():
    run = me.audit(votes(("ann", "bob", "cy"), 0).drop("gold"), draws=20)
    assert judges_section(run) is None
    assert 'id="judges"' not in render(run)


def test_the_section_says_what_the_command_says():
    run = me.audit(votes(("ann", "<b>gpt-4o</b>", "llama"), 40), draws=20)
    section = judges_section(run)
    assert [table["title"] for table in section["tables"]] == ["Scores", "Judges", "Best panel for its price"]
    found = describe_judges(run)
    assert [row[1] for row in section["tables"][1]["rows"]] == found.frame["judge"].to_list()
    value = me.score(run).frame["value"][0]
    assert section["tables"][0]["rows"][0][3].startswith(f"{100 * value:.1f}%")
    page = render(run)
    assert 'id="judges"' in page
    assert "<b>gpt-4o" not in page
    assert set(found.notes) <= set(section["notes"])


def test_the_chart_of_panels_has_two_dots_per_panel_of_the_table():
    run = me.audit(votes(("gpt-4o", "claude", "llama"), 60), draws=20)
    section, found = judges_section(run), describe_judges(run)
    assert found.panels.height > 1
    wanted = [(row["cost"], row[column]) for row in found.panels.iter_rows(named=True) for column in SEEN.values()]
    assert [(row["cost"], row["value"]) for row in section["panels"]] == wanted
    assert {row["on"] for row in section["panels"]} == set(SEEN)
    [spec] = [spec for name, spec in figure_specs(run) if name == "panels"]
    svg = vl_convert.vegalite_to_svg(spec)
    assert svg.count('aria-roledescription="point"') == len(wanted)
    assert 'id="chart-panels"' in render(run)
    # One panel is no chart: the table says it.
    assert panel_rows(found.panels.head(1)) == []
