"""The paper's optimiser: Adam on softmax logits, in PyTorch, on the CPU or a GPU.

A reference to compare EM with, and what `solver="adam"` runs. Takes a `LogPosterior`, returns an `Optimum`. Adam has no
stopping rule: it takes a fixed number of steps, and `em.maximise` measures the gradient where they end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from moral_entropy.consensus.em import Optimum, maximise
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.starts import paper_start
from moral_entropy.errors import FitError, MissingExtraError
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import UNKNOWN, Floats

STEPS = 2_000
"""Steps to the mode on data of the paper's size; its own 200 stop short."""

LEARNING_RATE = 0.01
START_NOISE = 0.1
"""Standard deviation of the prevalence logits at the start, as in the paper's listing."""

DTYPES = ("float64", "float32")


def maximise_with_adam(
    log_posterior: LogPosterior,
    *,
    device: str = "cpu",
    seed: int = 0,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    dtype: str = "float64",
    watch: Advance | None = None,
) -> Optimum:
    """Maximise the log posterior with Adam from the paper's start, for a fixed number of steps.

    Parameters
    ----------
    log_posterior
        The function to maximise; collapsed rows are weighted by the number of their items.
    device
        Where PyTorch computes: "cpu", "cuda", "cuda:1", …
    seed
        Seed of the prevalence at the start.
    steps, learning_rate
        The paper took 200 steps of 0.01.
    dtype
        "float64", or "float32" as in the paper. On data of the paper's size both end in the same place; the log
        posteriors in the trace of "float32" are a tenth of a nat off.
    watch
        Called with the share of the steps done.

    Returns
    -------
    Optimum
        Where the last step ended; `converged` is by the same measure as that of `maximise`, and is seldom true.

    Examples
    --------
    >>> from moral_entropy.consensus.patterns import collapse
    >>> from moral_entropy.votes.table import ballot_from_codes
    >>> ballot = ballot_from_codes("q", ("0", "1"), item_v=[0, 0, 1], annotator_v=[0, 1, 0], label_v=[1, 1, 0])
    >>> flat = LogPosterior(collapse(ballot), np.zeros(2), np.full((2, 2, 2), 0.5))
    >>> maximise_with_adam(flat, steps=10).passes
    11
    """
    torch = import_torch()
    watch = watch or ignore
    target = TorchPosterior(log_posterior, device=device, dtype=dtype)
    logits = target.start(seed)
    adam = torch.optim.Adam(logits, lr=learning_rate)
    trace = []
    for step in range(steps):
        adam.zero_grad()
        loss = -target(*logits)
        loss.backward()
        adam.step()
        trace.append(-loss.item())
        watch((step + 1) / steps)
    # One pass and no step: `maximise` then only measures the gradient, in double precision.
    reached = maximise(log_posterior, target.parameters(*logits), max_passes=1)
    return replace(reached, passes=steps + reached.passes, trace=(*trace, reached.log_posterior))


class TorchPosterior:
    """A `LogPosterior` that PyTorch can differentiate, as a function of softmax logits.

    Parameters
    ----------
    log_posterior
        The votes and the pseudo-counts.
    device, dtype
        As in `maximise_with_adam`.
    """

    def __init__(self, log_posterior: LogPosterior, *, device: str = "cpu", dtype: str = "float64") -> None:
        torch = import_torch()
        if dtype not in DTYPES:
            msg = f"dtype is {dtype!r}; choose one of {', '.join(DTYPES)}."
            raise FitError(msg)
        self._torch = torch
        self._place = {"device": _checked_device(torch, device), "dtype": getattr(torch, dtype)}
        patterns = log_posterior.patterns
        self.n_annotators, self.n_labels = patterns.n_annotators, patterns.n_labels
        whole = {"device": self._place["device"], "dtype": torch.long}
        self.code_v = torch.as_tensor(patterns.code_v, **whole)
        self.start_r = torch.as_tensor(patterns.start_r[:-1], **whole)
        self.weight_r = self._tensor(patterns.weight_r)
        self.pseudo_g, self.pseudo_akv = self._tensor(log_posterior.pseudo_g), self._tensor(log_posterior.pseudo_akv)
        self.clamp_rk = self._tensor(_clamps(patterns)) if _has_clamps(patterns) else None

    def __call__(self, prevalence_logit_k: Any, confusion_logit_akv: Any) -> Any:
        """Compute the log posterior as a tensor: marginal likelihood and prior, without constants."""
        functional = self._torch.nn.functional
        log_prevalence_k = functional.log_softmax(prevalence_logit_k, dim=-1)
        log_confusion_akv = functional.log_softmax(confusion_logit_akv, dim=-1)
        by_code_ck = log_confusion_akv.transpose(1, 2).reshape(-1, self.n_labels)
        # A row's votes are a bag of codes, so that items need not have equally many.
        log_joint_rk = functional.embedding_bag(self.code_v, by_code_ck, self.start_r, mode="sum") + log_prevalence_k
        if self.clamp_rk is not None:
            log_joint_rk = log_joint_rk + self.clamp_rk
        log_likelihood = self.weight_r @ self._torch.logsumexp(log_joint_rk, dim=-1)
        log_prior = self.pseudo_g @ log_prevalence_k + (self.pseudo_akv * log_confusion_akv).sum()
        return log_likelihood + log_prior

    def start(self, seed: int) -> tuple[Any, Any]:
        """Return the logits of the paper's start: every annotator right four times in five, labels about equal."""
        start = paper_start(self.n_annotators, self.n_labels)
        noise_k = START_NOISE * np.random.default_rng(seed).standard_normal(self.n_labels)
        return self.logits(replace(start, log_weight_g=noise_k))

    def logits(self, at: Parameters) -> tuple[Any, Any]:
        """Return parameters as logits with gradients."""
        logit_k, logit_akv = self._tensor(at.log_weight_g), self._tensor(at.log_confusion_akv)
        return logit_k.requires_grad_(), logit_akv.requires_grad_()

    def parameters(self, prevalence_logit_k: Any, confusion_logit_akv: Any) -> Parameters:
        """Return the parameters at some logits, normalised in double precision."""
        normalised = [
            self._torch.log_softmax(logit.detach().cpu().double(), dim=-1).numpy()
            for logit in (prevalence_logit_k, confusion_logit_akv)
        ]
        return Parameters(*normalised)

    def _tensor(self, values: Any) -> Any:
        return self._torch.tensor(np.asarray(values, dtype=float), **self._place)


def _has_clamps(patterns: Patterns) -> bool:
    return bool((patterns.clamp_r != UNKNOWN).any())


def _clamps(patterns: Patterns) -> Floats:
    """Return each row's log probability of every label given its known truth: 0 or minus infinity."""
    known_r = patterns.clamp_r != UNKNOWN
    clamp_rk = np.zeros((patterns.n_rows, patterns.n_labels))
    clamp_rk[known_r] = -np.inf
    clamp_rk[known_r, patterns.clamp_r[known_r]] = 0.0
    return clamp_rk


def import_torch() -> Any:
    """Import PyTorch, or raise an error that says how to install it."""
    try:
        import torch
    except ImportError as missing:
        what = "the Adam solver needs PyTorch"
        raise MissingExtraError(what, "torch") from missing
    return torch


def _checked_device(torch: Any, name: str) -> Any:
    # PyTorch may know a name although the device is absent: only computing there shows it.
    try:
        probe = torch.zeros(1, device=name)
        probe.item()
    except (RuntimeError, AssertionError, NotImplementedError) as failure:
        reason = str(failure).partition("\n")[0]
        msg = f"PyTorch cannot compute on device {name!r} ({reason}). Choose another: device='cpu' (CLI: --device cpu)."
        raise FitError(msg) from failure
    return probe.device
