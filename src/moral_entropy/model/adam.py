"""The paper's optimiser: Adam on softmax logits, in PyTorch; a reference to compare EM with (`--solver adam`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moral_entropy.errors import FitError, MissingExtraError
from moral_entropy.model.posterior import Parameters, Posterior
from moral_entropy.model.search import Optimum, maximise, starts
from moral_entropy.votes.table import UNKNOWN

RATE = 1e-2
"""Adam's step size, as in the paper's listing."""


def maximise_with_adam(posterior: Posterior, steps: int, watch: Callable[[float], None] | None = None) -> Optimum:
    """Take a fixed number of Adam's steps from the paper's start, and measure the steepness where they end."""
    try:
        import torch
    except ImportError:
        what = "the solver adam needs PyTorch"
        raise MissingExtraError(what, "torch") from None
    patterns = posterior.patterns
    if (patterns.clamp_r != UNKNOWN).any():
        msg = "the solver adam knows no labels as evidence. Leave out --gold-as-evidence, or use --solver em."
        raise FitError(msg)
    tensor: Callable[[Any], Any] = torch.as_tensor
    annotator_v, label_v = (tensor(part) for part in np.divmod(patterns.code_v.astype(np.int64), patterns.n_labels))
    row_v = tensor(np.repeat(np.arange(patterns.n_rows), np.diff(patterns.start_r)))
    weight_r, pseudo_g, pseudo_akv = map(tensor, (patterns.weight_r, posterior.pseudo_g, posterior.pseudo_akv))
    _, start = next(starts(posterior))
    logits = [torch.log(tensor(part)).requires_grad_() for part in (start.weight_dg[0], start.confusion_akv)]
    optimizer = torch.optim.Adam(logits, lr=RATE)
    for step in range(steps):
        log_g, log_akv = (torch.log_softmax(part, dim=-1) for part in logits)
        log_rk = log_g.expand(patterns.n_rows, -1).index_add(0, row_v, log_akv[annotator_v, :, label_v])
        value = weight_r @ torch.logsumexp(log_rk, dim=-1) + (pseudo_g * log_g).sum() + (pseudo_akv * log_akv).sum()
        optimizer.zero_grad()
        (-value).backward()
        optimizer.step()
        if watch is not None and step % 10 == 9:
            watch((step + 1) / steps)
    weight_g, confusion_akv = (torch.softmax(part, dim=-1).detach().numpy() for part in logits)
    optimum = maximise(posterior, Parameters(weight_g[None], confusion_akv), max_passes=1)
    return optimum._replace(passes=steps, converged=optimum.steepness < RATE)
