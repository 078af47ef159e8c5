"""The published p against gold: scores, tables, and that p beats counting where it is known to."""

from __future__ import annotations

import numpy as np
import pytest
from support import ROOT, load_script

from moral_entropy import read_votes
from moral_entropy.corpora.twins import twin

gold = load_script("studies/gold.py")


@pytest.fixture(scope="module")
def found():
    return gold.study("mfrc", read_votes(twin("mfrc", scale=0.01), gold="gold"), 20)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_scores_are_those_of_scikit_learn(n_labels):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(n_labels)
    p_ik, gold_i = rng.dirichlet(np.ones(n_labels), size=300), rng.integers(n_labels, size=300)
    scores = gold.score(p_ik, gold_i)
    assert scores["log_loss"] == pytest.approx(metrics.log_loss(gold_i, p_ik, labels=range(n_labels)))
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(gold_i, p_ik.argmax(axis=1)))
    if n_labels == 2:
        assert scores["brier"] == pytest.approx(metrics.brier_score_loss(gold_i, p_ik[:, 1]))


def test_ties_sure_errors_and_missing_numbers_count_as_said():
    p_ik = np.array([[0.5, 0.5], [1.0, 0.0], [np.nan, np.nan]])
    scores = gold.score(p_ik, np.array([0, 1, 1]))
    assert scores["accuracy"] == pytest.approx((0.5 + 0.0 + 0.5) / 3)
    assert scores["log_loss"] == pytest.approx((2 * np.log(2) - np.log(gold.CLIP)) / 3)


def test_every_method_is_scored_and_the_share_is_the_measure(found):
    for scores in found.values():
        assert list(scores) == list(gold.METHODS) and gold.ratio(scores, gold.SHARE) == 1.0


def test_on_a_twin_the_published_p_beats_the_share(found):
    assert np.mean([np.log(gold.ratio(scores, gold.PUBLISHED)) for scores in found.values()]) < 0.0


def test_tables_have_a_row_for_every_set_and_method(found):
    assert len(gold.set_table(found).splitlines()) == 2 + len(found)
    assert len(gold.summary_table(found).splitlines()) == 2 + len(gold.METHODS)


def test_absent_sets_are_named_and_left_out(tmp_path, capsys):
    assert list(gold.gold_votes(tmp_path)) == []
    assert capsys.readouterr().err.count("left out") == len(gold.SETS)


def test_the_page_has_a_place_for_the_tables():
    page = (ROOT / "docs" / "evidence" / "real-votes.md").read_text(encoding="utf-8")
    assert "written" in gold.put(page, "published p", "studies/gold.py", "written")
