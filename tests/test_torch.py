"""`moral_entropy.torch` against the paper's listing as printed, and its mode and draws against the fit in NumPy."""

import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from moral_entropy import fit, read_votes, simulate_votes
from moral_entropy.errors import FitError, MissingExtraError, VotesError

pytest.importorskip("torch")
import torch

from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.torch import DawidSkene, annotations_to_bag

# The listing of the paper, as printed there but for its progress bar (tqdm), which it imports by this name.
LISTING = '''
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Dirichlet

def annotations_to_bag(annotations, K):
    """(N,J) array with NaN for missing -> flat_ids, offsets for embedding_bag."""
    N, J = annotations.shape
    valid_mask = ~np.isnan(annotations)
    n_coords, j_coords = np.where(valid_mask)
    order = np.argsort(n_coords, kind='stable')       # group by item
    n_coords, j_coords = n_coords[order], j_coords[order]
    labels = annotations[valid_mask].astype(int)[order]

    flat_ids = torch.as_tensor(j_coords * K + labels, dtype=torch.long)
    counts = np.bincount(n_coords, minlength=N)
    offsets = torch.as_tensor(np.concatenate([[0], np.cumsum(counts)[:-1]]), dtype=torch.long)
    return flat_ids, offsets

class DawidSkene(nn.Module):
    def __init__(self, J, K, alpha):
        super().__init__()
        self.J, self.K = J, K
        self.pi_logits = nn.Parameter(torch.randn(K) * 0.1)
        init_theta = (0.6 * torch.eye(K) + 0.4 / K).expand(J, K, K).clone()
        self.theta_logits = nn.Parameter(torch.log(init_theta + 1e-8))

        self.register_buffer('alpha', torch.as_tensor(alpha, dtype=torch.float32))
        conf_alpha = torch.full((J, K, K), 0.4)
        conf_alpha.diagonal(dim1=-2, dim2=-1).fill_(0.6)
        self.register_buffer('conf_alpha', 3 * conf_alpha)

    @classmethod
    def from_annotations(cls, annotations, alpha, device='cpu'):
        K = int(np.nanmax(annotations)) + 1
        N, J = annotations.shape
        model = cls(J, K, alpha).to(device)
        flat_ids, offsets = annotations_to_bag(annotations, K)
        return model, flat_ids.to(device), offsets.to(device)

    def forward(self, flat_ids, offsets):
        """Returns unnormalized per-item log-scores over true class, shape (N, K)."""
        log_pi = F.log_softmax(self.pi_logits, dim=-1)
        log_theta = F.log_softmax(self.theta_logits, dim=-1)

        lt = log_theta.transpose(1, 2).reshape(self.J * self.K, self.K)
        lp = F.embedding_bag(flat_ids, lt, offsets, mode='sum')
        logits = lp + log_pi[None, :]
        return logits  # (N, K)

    def log_p(self, logits):
        """Marginal log-likelihood + log-prior, given logits from forward()."""
        log_pi = F.log_softmax(self.pi_logits, dim=-1)
        log_theta = F.log_softmax(self.theta_logits, dim=-1)
        pi, theta = log_pi.exp(), log_theta.exp()

        ll = torch.logsumexp(logits, dim=1).sum()
        ll = ll + Dirichlet(self.alpha).log_prob(pi)
        ll = ll + Dirichlet(self.conf_alpha).log_prob(theta).sum()
        return ll

    def posterior(self, logits):
        return F.softmax(logits, dim=-1)

    def fit(self, flat_ids, offsets, max_iter=200, lr=1e-2):
        opt = torch.optim.Adam(self.parameters(), lr=lr)
        for _ in range(max_iter):
            opt.zero_grad()
            logits = self(flat_ids, offsets)
            loss = -self.log_p(logits)
            loss.backward()
            opt.step()
        return self
'''


def listing():
    names: dict = {}
    exec(LISTING, names)
    return names["DawidSkene"]


def made_votes(n_items=300, n_annotators=7, n_labels=2, seed=1):
    """Votes as an array, half of them missing and two items without any."""
    rng = np.random.default_rng(seed)
    truth_i = rng.integers(n_labels, size=n_items)
    right_ij = rng.random((n_items, n_annotators)) < rng.uniform(0.6, 0.9, n_annotators)
    votes_ij = np.where(right_ij, truth_i[:, None], rng.integers(n_labels, size=right_ij.shape)).astype(float)
    votes_ij[rng.random(votes_ij.shape) < 0.5] = np.nan
    votes_ij[[3, 40]] = np.nan
    return votes_ij


def long_table(votes_ij):
    item_v, annotator_v = np.nonzero(~np.isnan(votes_ij))
    labels = votes_ij[item_v, annotator_v].astype(int)
    return pl.DataFrame({"item": item_v, "annotator": annotator_v, "label": labels})


@pytest.mark.parametrize("n_labels", [2, 3])
def test_after_two_hundred_steps_it_is_where_the_listing_is(n_labels):
    votes_ij, alpha = made_votes(n_labels=n_labels), np.arange(2.0, 2.0 + n_labels)
    results = []
    for cls in (listing(), DawidSkene):
        torch.manual_seed(5)
        model, flat_ids, offsets = cls.from_annotations(votes_ij, alpha)
        model.fit(flat_ids, offsets)
        logits = model(flat_ids, offsets)
        results.append([part.detach().numpy() for part in (model.posterior(logits), logits, model.log_p(logits))])
    for theirs, ours in zip(*results, strict=True):
        assert ours.dtype == np.float32
        assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_its_mode_is_that_of_em(n_labels):
    votes_ij = made_votes(n_labels=n_labels)
    model, flat_ids, offsets = DawidSkene.from_annotations(votes_ij, np.ones(n_labels))
    model.fit(flat_ids, offsets).find_mode(flat_ids, offsets)
    p_ik = model.posterior(model(flat_ids, offsets)).detach().numpy()
    [em] = fit(read_votes(long_table(votes_ij)), model="paper", draws=0).fits
    voted = (~np.isnan(votes_ij)).any(axis=1)
    assert_allclose(p_ik[voted], em.posterior_ik, atol=1e-6)


def test_its_draws_split_the_entropy_as_the_fit_does():
    votes_ij = made_votes(n_items=200)
    model, flat_ids, offsets = DawidSkene.from_annotations(votes_ij, np.ones(2))
    p_sik = model.find_mode(flat_ids, offsets).draw(flat_ids, offsets, 4_000).numpy()
    voted = (~np.isnan(votes_ij)).any(axis=1)
    p_si = p_sik[:, voted, 1]

    def entropy(p):
        return -(p * np.log(p) + (1 - p) * np.log1p(-p))

    aleatoric_i = entropy(p_si).mean(axis=0)
    [paper] = fit(read_votes(long_table(votes_ij)), model="paper", draws=4_000).fits
    parts = decompose_entropy(paper)
    # Both are means over 4,000 draws of other random numbers.
    assert_allclose(parts.aleatoric_i.mean(), aleatoric_i.mean(), rtol=0.02)
    assert_allclose(parts.epistemic_i.mean(), (entropy(p_si.mean(axis=0)) - aleatoric_i).mean(), rtol=0.1)
    assert_allclose(paper.p_ik[:, 1], p_si.mean(axis=0), atol=0.02)


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_the_solver_takes_the_steps_of_the_listing():
    # A rare label that is missed more often than seen: 200 steps stop short of the mode.
    confusion_akv = np.tile([[0.95, 0.05], [0.6, 0.4]], (8, 1, 1))
    votes = simulate_votes(n_items=1_000, n_annotators=8, votes_per_item=4, confusion_akv=confusion_akv,
                           prevalence_k=[0.8, 0.2]).votes  # fmt: skip
    [adam], [em] = (fit(votes, model="paper", solver=solver, draws=0, seed=5).fits for solver in ("adam", "em"))
    assert (adam.search.solver, adam.search.passes, adam.search.converged) == ("adam", 200, False)
    assert adam.search.log_posterior < em.search.log_posterior - 0.1
    ballot = votes.ballots[0]
    votes_ij = np.full((1_000, 8), np.nan)
    votes_ij[np.repeat(np.arange(1_000), ballot.votes_i), ballot.code_v // 2] = ballot.code_v % 2
    torch.manual_seed(5)
    model, flat_ids, offsets = listing().from_annotations(votes_ij, np.ones(2))
    model.fit(flat_ids, offsets)
    p_ik = model.posterior(model(flat_ids, offsets)).detach().numpy()
    assert_allclose(adam.posterior_ik, p_ik, atol=1e-4)
    [longer] = fit(votes, model="paper", solver="adam", steps=2_000, draws=0).fits
    assert em.search.log_posterior - longer.search.log_posterior < 0.01


def test_what_it_cannot_do_is_refused(monkeypatch):
    votes = simulate_votes(n_items=40, n_annotators=5, votes_per_item=5).votes
    with pytest.raises(FitError, match="is the paper's solver"):
        fit(votes, solver="adam")
    with pytest.raises(FitError, match="knows no labels as evidence"):
        fit(votes, model="paper", solver="adam", use_gold=True)
    with pytest.raises(VotesError, match="numbers from 0 to 1"):
        annotations_to_bag([[0, 2]], 2)
    monkeypatch.delitem(sys.modules, "moral_entropy.torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="the solver adam needs PyTorch"):
        fit(votes, model="paper", solver="adam")
