"""The study of judges who err together: what it makes and counts."""

from __future__ import annotations

import numpy as np
import pytest
from support import load_script

from moral_entropy.votes.read import read_votes

study = load_script("studies/common_errors.py")


def test_judges_are_as_often_right_as_asked_and_err_together_on_hard_items():
    vote_ji, truth_i = study.hard_items(4_000, (0.9, 0.8, 0.7), 2.0, 0)
    wrong_ji = vote_ji != truth_i
    assert 1.0 - wrong_ji.mean(axis=1) == pytest.approx([0.9, 0.8, 0.7], abs=0.03)
    assert np.corrcoef(wrong_ji)[0, 1] > 0.2


def test_tables_of_votes_keep_judges_and_truth():
    vote_ji, truth_i = study.votes_of(study.made_panel(500, (1.0, 0.6), 0, copies=1, noise=0.0))
    assert (vote_ji[0] == truth_i).all() and (vote_ji[1] == vote_ji[2]).all()
    assert (vote_ji[1] == truth_i).mean() == pytest.approx(0.6, abs=0.07)


def test_labels_are_held_against_gold():
    loss, right = study.log_loss_and_accuracy(np.array([[0.8, 0.2], [0.6, 0.4]]), np.array([0, 1]))
    assert (loss, right) == pytest.approx((-(np.log(0.8) + np.log(0.4)) / 2, 0.5))


def test_rows_of_the_tables():
    row = study.clean_row("made", 2, lambda n, seed: study.votes_of(study.made_panel(n, (0.9, 0.8), seed)))
    assert row == "| made | 0.0% (0%) | 0.0% (0%) | 0.0% (0%) | 0.0% (0%) |\n"


def test_scores_of_a_panel_with_followers_hold_the_truth():
    run = study.quiet_audit(read_votes(study.made_panel(400, study.HIJACKED, 3, copies=4, noise=0.1)), 0)
    known = study.known_items(run, run.questions[0])
    assert known.take(np.array([2, 0])).items.to_list() == [known.items[2], known.items[0]]
    _, title, together, held, length, _ = study.held_row(run, known, "made", 5).split("|")
    assert (title.strip(), together.strip()) == ("made", "100%")
    assert float(held.strip(" %")) >= 60 and float(length) < 0.8
