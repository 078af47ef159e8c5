"""The head: the loss at the optimum, the slope at hard labels, and that the order of questions is a matter of names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr
from train_support import CARE, TONE

from moral_entropy.errors import TrainError
from moral_entropy.train.head import Block, Head, head_from_facts

LAW = Block("law", ("no", "yes"), "no")


def random_head(rng, *, n_items=7, blocks=(CARE, TONE, LAW)):
    head = Head(tuple(blocks))
    target = [rng.random((n_items, 1)) if b.positive else rng.dirichlet(np.ones(3), n_items) for b in blocks]
    return head, rng.normal(size=(n_items, head.n_outputs)), np.column_stack(target), rng.random((n_items, len(blocks)))


def test_outputs_are_named_by_question_and_label():
    assert Head((CARE, TONE)).names == ("care", "tone: anger", "tone: joy", "tone: none")


def test_probabilities_of_a_block_add_up_to_one():
    head, logits_io, _, _ = random_head(np.random.default_rng(0))
    p_io = head.probabilities(logits_io)
    assert_allclose(p_io[:, 1:4].sum(axis=1), 1.0)
    assert_allclose(p_io[:, 0], 1 / (1 + np.exp(-logits_io[:, 0])))


def test_the_loss_of_the_targets_themselves_is_their_entropy():
    head, _, target_io, weight_iq = random_head(np.random.default_rng(1))
    logits_io = np.log(target_io)
    singles = (0, 4)
    for o in singles:
        logits_io[:, o] -= np.log1p(-target_io[:, o])
    care, law = (entr(target_io[:, o]) + entr(1 - target_io[:, o]) for o in singles)
    entropy_iq = np.column_stack([care, entr(target_io[:, 1:4]).sum(axis=1), law])
    assert_allclose(head.loss(logits_io, target_io, weight_iq), (weight_iq * entropy_iq).sum() / len(logits_io))
    assert_allclose(head.entropies(target_io), entropy_iq)


@given(seed=st.integers(0, 10_000))
def test_no_logits_do_better_than_the_targets(seed):
    head, logits_io, target_io, weight_iq = random_head(np.random.default_rng(seed))
    entropy = (weight_iq * head.entropies(target_io)).sum() / len(logits_io)
    assert head.loss(logits_io, target_io, weight_iq) >= entropy - 1e-12


@given(seed=st.integers(0, 10_000), order=st.permutations(range(3)))
def test_permuting_questions_permutes_outputs(seed, order):
    head, logits_io, target_io, _ = random_head(np.random.default_rng(seed))
    other = Head(tuple(head.blocks[q] for q in order))
    at = np.concatenate([np.arange(head.n_outputs)[head.columns[q]] for q in order])
    assert other.names == tuple(head.names[o] for o in at)
    assert_array_equal(other.probabilities(logits_io[:, at]), head.probabilities(logits_io)[:, at])
    assert_array_equal(other.losses(logits_io[:, at], target_io[:, at]), head.losses(logits_io, target_io)[:, order])


def test_the_loss_is_that_of_scikit_learn_on_labels():
    from sklearn.metrics import log_loss

    head, logits_io, _, _ = random_head(np.random.default_rng(2), n_items=40, blocks=(TONE,))
    label_i = np.random.default_rng(3).integers(3, size=40)
    ours = head.loss(logits_io, np.eye(3)[label_i], np.ones((40, 1)))
    assert_allclose(ours, log_loss(label_i, head.probabilities(logits_io), labels=[0, 1, 2]))


def test_items_without_a_target_count_for_nothing():
    head, logits_io, target_io, weight_iq = random_head(np.random.default_rng(4))
    weight_iq[2, 1] = 0.0
    other_io = target_io.copy()
    other_io[2, 1:4] = [0.0, 0.0, 1.0]
    assert head.loss(logits_io, target_io, weight_iq) == head.loss(logits_io, other_io, weight_iq)


def test_pytorch_computes_the_same_loss():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from moral_entropy.train.loop import torch_loss

    head, logits_io, target_io, weight_iq = random_head(np.random.default_rng(5))
    theirs = torch_loss(head, *(torch.from_numpy(array) for array in (logits_io, target_io, weight_iq)))
    assert_allclose(float(theirs), head.loss(logits_io, target_io, weight_iq))


def test_soft_targets_of_0_and_1_have_the_gradients_of_hard_labels():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from torch.nn.functional import cross_entropy

    from moral_entropy.train.loop import torch_loss

    rng = np.random.default_rng(6)
    yes_i, tone_i = rng.integers(2, size=9), rng.integers(3, size=9)
    logits = torch.tensor(rng.normal(size=(9, 4)), requires_grad=True)
    target = torch.from_numpy(np.column_stack([yes_i, np.eye(3)[tone_i]]).astype(float))
    torch_loss(Head((CARE, TONE)), logits, target, torch.ones(9, 2, dtype=torch.float64)).backward()
    hard = logits.detach().clone().requires_grad_(True)
    # Two labels as a softmax over (0, logit): another road to the same loss.
    two = torch.column_stack([torch.zeros(9, dtype=torch.float64), hard[:, 0]])
    (cross_entropy(two, torch.from_numpy(yes_i)) + cross_entropy(hard[:, 1:], torch.from_numpy(tone_i))).backward()
    assert_allclose(logits.grad.numpy(), hard.grad.numpy(), rtol=1e-14, atol=1e-17)


def test_a_head_survives_json():
    head = Head((CARE, TONE, LAW))
    assert head_from_facts(head.facts()) == head


@pytest.mark.parametrize(("labels", "positive"), [(("yes",), "yes"), (("no", "yes"), None), (("a", "b", "c"), "a")])
def test_a_block_that_is_no_question_is_refused(labels, positive):
    with pytest.raises(TrainError, match="question 'care' has"):
        Block("care", labels, positive)
