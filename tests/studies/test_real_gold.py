"""The study of real votes with gold: its scores, its tables, and data that is not there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import DATA, load_script, real_data

from moral_entropy.corpora.simulate import simulate_votes


@pytest.fixture(scope="module")
def study():
    return load_script("studies/real_gold.py")


@pytest.fixture(scope="module")
def found(study):
    return [
        one
        for seed in (1, 2)
        for one in study.study_votes(
            f"set {seed}", simulate_votes(n_items=150, n_annotators=8, votes_per_item=4, seed=seed).votes, draws=30
        )
    ]


def test_scores_are_those_counted_by_hand(study):
    p_ik = np.array([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8], [0.3, 0.6, 0.1]])
    gold_i = np.array([0, 1, 0, 1])
    scores = study.score(np.log(p_ik), gold_i, np.ones(4))
    assert_allclose(scores.accuracy, (1 + 0.5 + 0 + 1) / 4)
    assert_allclose(scores.log_loss, -np.log([0.7, 0.4, 0.1, 0.6]).mean())
    assert_allclose(scores.ece, (0.3 + 0.1 + 0.8 + 0.4) / 4)


def test_counted_items_weigh_as_often_as_they_count(study):
    log_p_ik, gold_i = np.log([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 0])
    twice = study.score(log_p_ik[[0, 1, 1]], gold_i[[0, 1, 1]], np.ones(3))
    counted = study.score(log_p_ik, gold_i, np.array([1.0, 2.0]))
    assert_allclose([twice.accuracy, twice.log_loss, twice.ece], [counted.accuracy, counted.log_loss, counted.ece])


def test_every_method_is_scored_and_the_share_is_the_measure(study, found):
    for one in found:
        assert tuple(one.scores) == study.METHODS
        assert one.ratio(study.SHARE) == 1.0
        assert np.isinf(one.ratio(study.PLURALITY))
    assert study.geometric_mean(found, study.SHARE) == 1.0


def test_means_over_sets_are_geometric(study, found):
    ratios = [one.scores[study.PUBLISHED].log_loss / one.scores[study.SHARE].log_loss for one in found]
    assert_allclose(study.geometric_mean(found, study.PUBLISHED), np.sqrt(np.prod(ratios)))


def test_tables_have_a_row_for_every_set_and_method(study, found):
    text = study.page_part(found, found[:1])
    assert text.count("| set 1 |") == 2 and text.count("| set 2 |") == 1
    assert all(f"| {method} | " in study.summary_table(found) for method in study.METHODS)


def test_absent_sets_are_named_and_left_out(study, tmp_path, capsys):
    assert list(study.gold_votes(tmp_path, study.ALL_SETS)) == []
    said = capsys.readouterr().err
    assert "bluebird is not in" in said and "mfrc_llm_panel is not in" in said


def test_the_page_has_a_place_for_the_tables(study):
    assert study.with_part(study.PAGE.read_text(encoding="utf-8"), "NEW TABLES").count("NEW TABLES") == 1


def test_there_are_twenty_sets(study):
    real_data("mfrc_llm_panel")
    n_questions = [len(votes.ballots) for _, votes in study.gold_votes(DATA, study.ALL_SETS)]
    assert len(n_questions) == 15 and sum(n_questions) == 20


@pytest.mark.parametrize("name", ["bluebird", "rte", "snow_temp"])
def test_the_published_p_beats_the_share_where_it_is_known_to(study, name):
    real_data(name)
    [(_, votes)] = study.gold_votes(DATA, [name])
    [one] = study.study_votes(name, votes, draws=0)
    assert one.ratio(study.PUBLISHED) < 0.7 < 1.0
    assert one.scores[study.PUBLISHED].accuracy > one.scores[study.SHARE].accuracy
