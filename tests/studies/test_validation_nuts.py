"""The NUTS study on a twin scaled down: every foundation, three coordinates, and its place on the page."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support import load_script

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    pytest.importorskip("nutpie", reason="needs the extra: pip install 'moral-entropy[mcmc]'")


study = load_script("studies/validation_nuts.py")


@pytest.fixture(scope="module")
def rows():
    return study.study("mfrc", chains=2, tune=40, draws=40, scale=0.02)


def test_every_foundation_and_coordinate_has_a_row(rows):
    assert [row.question for row in rows] == ["authority", "care", "fairness", "loyalty", "sanctity"]
    assert len(study.mixing_table(rows).splitlines()) == 2 + 5
    assert len(study.laplace_table(rows).splitlines()) == 2 + 5 * 4
    assert len(study.summary_table(rows).splitlines()) == 2 + 4
    for row in rows:
        assert {a.coordinates for a in row.agreements} == set(study.COORDINATES)
        assert row.gradients > 2 * 80


def test_domains_add_up_to_all_items(rows):
    cells = study.domain_cells(rows)
    for row in rows:
        mine = cells.filter(question=row.question, coordinates="paper")
        whole, parts = mine.filter(domain="(all)"), mine.filter(mine["domain"] != "(all)")
        assert parts.height == 3
        assert parts["n_items"].sum() == whole["n_items"].item()
        mean = np.average(parts["epistemic"], weights=parts["n_items"])
        assert mean == pytest.approx(whole["epistemic"].item())


def test_the_fragment_finds_its_place(rows):
    text = study.fragment(rows, "facts")
    page = study.with_tables(
        "before\n<!-- nuts: written by studies/validation_nuts.py -->\nearlier words\n<!-- end of nuts -->\nafter", text
    )
    assert "earlier words" not in page
    assert "## Laplace against NUTS" in page
    assert f"Over {len(rows)} fits" in page
    with pytest.raises(ValueError, match="no place"):
        study.with_tables("nothing", text)
