"""The paper's optimiser as its listing has it: Adam on softmax logits in PyTorch, float32, one bag of votes per item.

`seconds_per_step(ballot)` times it; 200 steps are the listing's, about 2,000 reach the mode.
"""

from __future__ import annotations

import statistics
import time
from itertools import pairwise

from moral_entropy import Ballot

WARM_UP, STEPS, LEARNING_RATE = 3, 60, 1e-2


def seconds_per_step(ballot: Ballot, alpha: tuple[float, float] = (80.0, 20.0)) -> float:
    """Return the median seconds of one step, in one thread or in all, whichever is quicker."""
    import torch

    n_threads = torch.get_num_threads()
    took = []
    for threads in sorted({1, n_threads}):
        torch.set_num_threads(threads)
        took.append(_median_step(ballot, alpha))
    torch.set_num_threads(n_threads)
    return min(took)


def _median_step(ballot: Ballot, alpha: tuple[float, ...]) -> float:
    import torch
    from torch.distributions import Dirichlet
    from torch.nn import functional

    n_annotators, n_labels = ballot.n_annotators, ballot.n_labels
    codes = torch.as_tensor(ballot.code_v, dtype=torch.long)
    offsets = torch.as_tensor(ballot.start_i[:-1], dtype=torch.long)
    start = (0.6 * torch.eye(n_labels) + 0.4 / n_labels).expand(n_annotators, n_labels, n_labels).clone()
    prior = torch.full((n_annotators, n_labels, n_labels), 1.2)
    prior.diagonal(dim1=-2, dim2=-1).fill_(1.8)
    pi_logits = (0.1 * torch.randn(n_labels, generator=torch.Generator().manual_seed(0))).requires_grad_()
    theta_logits = torch.log(start + 1e-8).requires_grad_()
    optimiser = torch.optim.Adam([pi_logits, theta_logits], lr=LEARNING_RATE)
    ended = []
    for _ in range(WARM_UP + STEPS):
        optimiser.zero_grad()
        log_pi, log_theta = functional.log_softmax(pi_logits, -1), functional.log_softmax(theta_logits, -1)
        rows = log_theta.transpose(1, 2).reshape(n_annotators * n_labels, n_labels)
        logits = functional.embedding_bag(codes, rows, offsets, mode="sum") + log_pi
        log_p = torch.logsumexp(logits, dim=1).sum() + Dirichlet(torch.tensor(alpha)).log_prob(log_pi.exp())
        (-(log_p + Dirichlet(prior).log_prob(log_theta.exp()).sum())).backward()
        optimiser.step()
        ended.append(time.perf_counter())
    return statistics.median(after - before for before, after in pairwise(ended[WARM_UP - 1 :]))
