"""The NUTS study on a twin scaled down: every foundation, every place of the Gaussian, and its place on the page."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from support import load_script

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    pytest.importorskip("nutpie", reason="needs the extra: pip install 'moral-entropy[mcmc]'")


study = load_script("studies/validation_nuts.py")


@pytest.fixture(scope="module")
def rows():
    return study.study("mfrc", model="paper", chains=2, tune=40, draws=40, scale=0.02)


@pytest.fixture(scope="module")
def mixed():
    return study.study("mfrc", chains=2, tune=10, draws=10, scale=0.01)


def test_every_foundation_and_coordinate_has_a_row(rows):
    assert [row.question for row in rows] == ["authority", "care", "fairness", "loyalty", "sanctity"]
    assert len(study.mixing_table(rows, "paper").splitlines()) == 2 + 5
    assert len(study.laplace_table(rows, "paper").splitlines()) == 2 + 5 * 4
    assert len(study.summary_table(rows, "paper").splitlines()) == 2 + 4
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


def test_the_default_model_has_one_gaussian_and_items_between_labels(mixed):
    assert [row.question for row in mixed] == ["authority", "care", "fairness", "loyalty", "sanctity"]
    assert len(study.laplace_table(mixed).splitlines()) == 2 + 5
    for row in mixed:
        assert {a.coordinates for a in row.agreements} == {"logit-mode"}
        assert 0 < row.between_mode < 1 and 0 < row.between < 1 and 0 < row.prevalence < 0.5
    assert study.domain_cells(mixed).filter(domain="(all)").height == 5


def test_words_say_where_pareto_k_and_intervals_fall_short(mixed):
    held = [
        replace(row.agreements[0], domain="(all)", coverage=share)
        for row, share in zip(mixed, (0.9, 0.8, 0.8, 0.9, 0.9), strict=True)
    ]
    rows = [
        replace(row, pareto_k=k, agreements=(a,))
        for row, a, k in zip(mixed, held, (0.8, 0.9, 0.2, 0.1, 0.1), strict=True)
    ]
    line = study.pareto_line(rows)
    assert "above 0.7 in 2 of 5 fits" in line
    assert "less than 85% of the NUTS draws in 2 of 5, and" in line and line.endswith("in 1 of these.")


@pytest.mark.parametrize("model", ["paper", "mixed"])
def test_the_fragment_finds_its_place(model, request):
    rows = request.getfixturevalue("rows" if model == "paper" else "mixed")
    text, place = study.fragment(rows, "facts", model), study.PLACES[model]
    page = study.with_tables(
        f"before\n<!-- {place}: written by studies/validation_nuts.py -->\nearlier words\n<!-- end of {place} -->",
        text,
        model,
    )
    assert "earlier words" not in page
    assert study.HEADINGS[model] in page
    assert f"Over {len(rows)} fits" in page
    with pytest.raises(ValueError, match="no place"):
        study.with_tables("nothing", text, model)
