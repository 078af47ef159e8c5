"""The study of gold: its tables, its aims, and data that is not there."""

import numpy as np
import pytest
from support import load_script

from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes


@pytest.fixture(scope="module")
def study():
    return load_script("studies/validation_gold.py")


@pytest.fixture(scope="module")
def found(study):
    votes = simulate_votes(n_items=200, n_annotators=8, votes_per_item=5).votes
    return [study.study_set("simulated", votes, draws=50)]


def test_every_method_has_a_column_and_every_set_a_row(study, found):
    text = study.gold_part(found)
    assert set(study.COLUMNS) == set(found[0].scores)
    assert text.count("| simulated |") == len(study.FIGURES) + 2
    assert "∞" in text.split("### Accuracy")[0]


def test_variants_that_were_tried_are_probabilities(study):
    one = fit(simulate_votes(n_items=60, n_annotators=6, votes_per_item=4, n_labels=3).votes, draws=0).fits[0]
    for log_p_ik in study.tried(study.GoldItems.of(one), 0.5).values():
        np.testing.assert_allclose(np.exp(log_p_ik).sum(axis=1), 1.0)


def test_aims_follow_from_the_table(study, found):
    from dataclasses import replace

    scores = found[0].scores
    worst = replace(scores["tempered by gold"], log_loss=9.0)
    text = study.gold_part([replace(found[0], scores=scores | {"tempered by gold": worst})])
    assert "on 0 of 1 sets (aim: all): **not met**. Not on: simulated." in text


def test_left_out_votes_are_laid_out_by_set_and_by_votes(study, found):
    text = study.heldout_part(found, {"made": [found[0].held, found[0].held]})
    first, by_votes = text.split("### By votes")
    assert "| made twin | 2,000 |" in first and "| simulated | 1,000 |" in first
    assert by_votes.count("5–9 votes") == 2


def test_sets_that_are_absent_are_named_and_left_out(study, tmp_path, capsys):
    assert list(study.gold_votes(tmp_path, study.SETS)) == []
    assert "bluebird is not in" in capsys.readouterr().err


def test_text_goes_between_its_markers(study):
    page = "# a\n<!-- gold: written by studies/validation_gold.py -->\nbefore\n<!-- end of gold -->\nrest"
    assert study.with_part(page, "gold", "NEW").splitlines()[3] == "NEW"
    assert "before" not in study.with_part(page, "gold", "NEW")
    with pytest.raises(ValueError, match="no place"):
        study.with_part(page, "heldout", "NEW")


def test_the_page_has_a_place_for_both_parts(study):
    page = study.PAGE.read_text(encoding="utf-8")
    page = study.with_part(study.with_part(page, "gold", "ONE"), "heldout", "TWO")
    assert page.count("ONE") == page.count("TWO") == 1


def test_exponents_of_a_set_are_powers(study, found):
    held, gold, votes, _ = found[0].exponents
    assert 0 <= held <= 1 and 0 <= gold <= 2 and 0 <= votes <= 2
    assert np.isfinite(found[0].exponents).all()
