"""Refining: no item is read by a model that has seen it, the weight is learnt where it helps, and gold says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from polars.testing import assert_frame_equal
from study_support import annotators, told_votes, train_by_cue

from moral_entropy.cli.show_audit import indented_lines
from moral_entropy.consensus.fit import fit
from moral_entropy.errors import TrainError, UsageError
from moral_entropy.pipeline.audit import audit, read_parts
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import read_run
from moral_entropy.train.options import RefineOptions
from moral_entropy.train.refine import best_weight, cross_fitted, pooled, refine
from moral_entropy.train.refined import grade_refined, refined_frame, refined_lines
from moral_entropy.train.targets import targets_from_consensus

# Five who often err, and a word in each text that tells the truth most of the time.
POOR = annotators(*[(0.75, 0.7)] * 5)


def read_by_cue(train, _validation, options, *, advance):
    return train_by_cue(train, train, options, advance=advance)


@pytest.fixture(scope="module")
def consensus():
    return fit(told_votes((0.05, 0.5, 0.95), confusion_akv=POOR, votes_per_item=3), draws=20)


@pytest.fixture(scope="module")
def refined(consensus):
    return refine(consensus, train=read_by_cue)


def test_no_text_is_read_by_a_model_that_has_seen_it(consensus):
    targets, seen = targets_from_consensus(consensus, "soft"), []

    class Reader:
        def __init__(self, learnt):
            self.learnt = set(learnt)

        def probabilities(self, texts):
            assert not self.learnt & set(texts)
            seen.extend(texts)
            return np.full((len(texts), 1), 0.5)

    cross_fitted(targets, RefineOptions(), train=lambda others, *_, **__: Reader(others.texts))
    assert sorted(seen) == sorted(targets.texts), "every text once"


def test_pooling_by_hand():
    p_ik, text_ik = np.array([[0.3, 0.7], [0.8, 0.2]]), np.array([[0.6, 0.4], [0.9, 0.1]])
    mean = text_ik[:, 1].mean()
    for weight in (0.0, 0.5, 1.0):
        odds_i = p_ik[:, 1] / p_ik[:, 0]
        odds_i *= (text_ik[:, 1] / text_ik[:, 0] / (mean / (1 - mean))) ** weight
        assert_allclose(pooled(p_ik, text_ik, weight)[:, 1], odds_i / (1 + odds_i))


def test_texts_that_tell_the_truth_make_p_better(refined):
    [question] = refined.questions
    assert question.weight > 0.3
    first, second = grade_refined(refined)
    assert (first.recalibrated, second.recalibrated) == (False, True)
    for grade in (first, second):
        assert grade.gain > 3 * grade.gain_se > 0
        assert grade.refined["accuracy"] > grade.votes["accuracy"] and grade.refined["auc"] > grade.votes["auc"]
        assert grade.votes["log_loss"] - grade.refined["log_loss"] == pytest.approx(grade.gain, abs=1e-3)
    assert "(better)" in refined_lines(refined, [first, second])[1]


def test_the_weight_is_that_of_the_classifier_that_foretells_votes():
    """Votes drawn from q with a weight of 0.8: the weight is found again."""
    rng = np.random.default_rng(0)
    p_i, c_i = rng.beta(1, 1, 4_000), rng.beta(0.7, 0.7, 4_000)
    p_ik, text_ik = (np.column_stack([1 - one_i, one_i]) for one_i in (p_i, c_i))
    vote_i = rng.random(4_000) < pooled(p_ik, text_ik, 0.8)[:, 1]
    chance_vk = np.where(vote_i[:, None], [0.0, 1.0], [1.0, 0.0])
    assert best_weight(p_ik, text_ik, np.arange(4_000), chance_vk) == pytest.approx(0.8, abs=0.12)
    noise_ik = text_ik[rng.permutation(4_000)]
    assert best_weight(p_ik, noise_ik, np.arange(4_000), chance_vk) < 0.1


def test_a_weight_of_nothing_leaves_the_votes_alone(consensus):
    [question] = refine(consensus, RefineOptions(weight=0.0), train=read_by_cue).questions
    assert_allclose(question.refined_ik, question.p_ik, atol=2e-4)


def test_the_table_has_what_the_questions_have(refined):
    frame, [question] = refined_frame(refined), refined.questions
    assert frame.columns == ["item", "question", "label", "p", "p_text", "p_refined", "p_refined_calibrated"]
    assert_allclose(frame["p_refined"], question.refined_ik[:, 1])
    assert frame["item"].to_list() == refined.items.to_list() and set(frame["label"]) == {question.labels[1]}


def test_a_weight_that_is_none_is_refused():
    with pytest.raises(UsageError, match="is no weight of the text"):
        RefineOptions(weight=-1.0)


# --- In an audit ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def votes():
    return told_votes((0.05, 0.5, 0.95), confusion_akv=POOR, votes_per_item=3, n_items=300)


@pytest.fixture(scope="module")
def run(votes, tmp_path_factory):
    out = tmp_path_factory.mktemp("refined") / "run"
    return audit(votes, out, refine=True, draws=20, report=False)


def test_the_table_is_what_refine_says_of_the_run(run):
    """The command `refine` on the finished run, and the audit itself, say the same."""
    table = read_run(run.path).table("refined")
    again = refined_frame(refine(reload_consensus(run.path), RefineOptions()))
    assert_frame_equal(table, again, check_row_order=False, abs_tol=1e-9)


def test_p_stands_beside_p_refined(run):
    both = run.items.join(run.table("refined"), on=["item", "question"], suffix="_beside")
    assert both.height == run.items.height
    assert_allclose(both["p"], both["p_beside"])
    assert not np.allclose(both["p"], both["p_refined"], atol=0.05)


def test_gold_grades_both(run):
    facts = run.manifest["refined"]
    votes, recalibrated = facts["grades"]
    assert not votes["recalibrated"] and recalibrated["recalibrated"]
    both = run.items.join(run.table("refined"), on=["item", "question"], suffix="_beside")
    truth_i, p_i = both["gold"] == both["label_beside"], both["p_refined"].to_numpy()
    right = np.where(truth_i.to_numpy(), p_i, 1 - p_i)
    assert votes["refined"]["log_loss"] == pytest.approx(-np.log(right).mean(), abs=1e-6)
    assert votes["refined"]["accuracy"] == pytest.approx(((p_i >= 0.5) == truth_i.to_numpy()).mean())
    shown = "\n".join(indented_lines("Votes and text", facts))
    assert "Against gold" in shown and "eight of the text" in shown and "(better)" in shown


def test_without_texts_or_on_a_cluster_it_is_refused(votes):
    with pytest.raises(TrainError, match="refine needs texts"):
        audit(replace(votes, texts=None), refine=True, draws=0)
    with pytest.raises(UsageError, match="on one machine"):
        read_parts(votes, AuditOptions(refine=True), workers=object())
