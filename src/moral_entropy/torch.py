"""The paper's listing as a PyTorch module: `DawidSkene`, with the same methods, the same start and the same prior.

For readers who come from the paper: votes as an array in, probabilities and draws out, on a CPU or a GPU.
`--solver adam` takes its steps with it. PyTorch is loaded when this module is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moral_entropy.errors import MissingExtraError, VotesError
from moral_entropy.progress import Advance, ignore

try:
    import torch as torch
    from torch import nn
    from torch.distributions import Dirichlet
    from torch.nn import functional
except ImportError:
    _reason = "the solver adam needs PyTorch"
    raise MissingExtraError(_reason, "torch") from None

Tensor = Any
RATE, STEPS = 1e-2, 200
"""Adam's step size and number of steps, as in the listing."""


def annotations_to_bag(annotations: ArrayLike, K: int) -> tuple[Tensor, Tensor]:
    """Turn votes (items × annotators, NaN where there is none) into `flat_ids` and `offsets` of `embedding_bag`.

    Examples
    --------
    >>> annotations_to_bag([[1, np.nan], [0, 1]], 2)
    (tensor([1, 0, 3]), tensor([0, 1]))
    """
    votes_ij = np.asarray(annotations, dtype=float)
    item_v, annotator_v = np.nonzero(~np.isnan(votes_ij))
    label_v = votes_ij[item_v, annotator_v].astype(np.int64)
    if len(label_v) and not 0 <= label_v.min() <= label_v.max() < K:
        msg = f"votes are numbers from 0 to {K - 1}, or NaN; there is a {label_v[(label_v < 0) | (label_v >= K)][0]}."
        raise VotesError(msg)
    votes_i = np.bincount(item_v, minlength=len(votes_ij))
    start_i = np.cumsum(votes_i) - votes_i
    return torch.as_tensor(annotator_v * K + label_v), torch.as_tensor(start_i)


class DawidSkene(nn.Module):  # type: ignore[misc]
    """The consensus model of the paper: a prevalence and a confusion matrix per annotator, as softmax logits.

    Parameters
    ----------
    J, K
        Number of annotators and of labels.
    alpha
        Dirichlet prior of the prevalence, one number per label.
    conf_alpha
        Dirichlet prior of every confusion row, `(J, K, K)`; the paper's 1.8 and 1.2 when not given.
    generator
        Where the random start of the prevalence comes from; PyTorch's own when not given, as in the paper.

    Examples
    --------
    >>> votes = [[1, 1, np.nan], [0, 0, 0], [1, np.nan, 1], [0, 0, 1]] * 25
    >>> model, flat_ids, offsets = DawidSkene.from_annotations(votes, alpha=[1.0, 1.0])
    >>> p = model.fit(flat_ids, offsets).posterior(model(flat_ids, offsets))
    >>> (p[:4, 1] > 0.5).tolist()
    [True, False, True, False]
    """

    def __init__(
        self, J: int, K: int, alpha: ArrayLike, conf_alpha: ArrayLike | None = None, generator: Tensor = None
    ) -> None:
        super().__init__()
        self.J, self.K = J, K
        self.pi_logits = nn.Parameter(0.1 * torch.randn(K, generator=generator))
        right = 0.6 * torch.eye(K) + 0.4 / K
        self.theta_logits = nn.Parameter(torch.log(right + 1e-8).repeat(J, 1, 1))
        if conf_alpha is None:
            conf_alpha = np.tile(np.where(np.eye(K), 3 * 0.6, 3 * 0.4), (J, 1, 1))
        for name, prior in (("alpha", alpha), ("conf_alpha", conf_alpha)):
            self.register_buffer(name, torch.as_tensor(np.asarray(prior), dtype=torch.float32))

    @classmethod
    def from_annotations(
        cls, annotations: ArrayLike, alpha: ArrayLike, device: str = "cpu"
    ) -> tuple[DawidSkene, Tensor, Tensor]:
        """Return a model for some votes (items × annotators, NaN where there is none), and the votes as it takes them.

        Returns
        -------
        tuple
            The model, `flat_ids` and `offsets`, on the device.
        """
        votes_ij = np.asarray(annotations, dtype=float)
        K = int(np.nanmax(votes_ij)) + 1
        bag = annotations_to_bag(votes_ij, K)
        return cls(votes_ij.shape[1], K, alpha).to(device), *(part.to(device) for part in bag)

    def forward(self, flat_ids: Tensor, offsets: Tensor) -> Tensor:
        """Return the log score of every true label, item by item: `(N, K)`, not normalised."""
        log_pi, by_vote = _log_rates(self.pi_logits, self.theta_logits)
        return log_pi + functional.embedding_bag(flat_ids, by_vote, offsets, mode="sum")

    def log_p(self, logits: Tensor, weights: Tensor = None) -> Tensor:
        """Return the log posterior: the marginal log likelihood of all items plus the log priors.

        Parameters
        ----------
        logits
            From `forward`.
        weights
            How often each row occurs; once when not given.
        """
        likelihood = torch.logsumexp(logits, dim=1)
        return (likelihood.sum() if weights is None else weights @ likelihood) + self._log_prior(
            self.pi_logits, self.theta_logits
        )

    def _log_prior(self, pi_logits: Tensor, theta_logits: Tensor) -> Tensor:
        pi, theta = functional.softmax(pi_logits, dim=-1), functional.softmax(theta_logits, dim=-1)
        return Dirichlet(self.alpha).log_prob(pi) + Dirichlet(self.conf_alpha).log_prob(theta).sum()

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the probability of every label, item by item."""
        return functional.softmax(logits, dim=-1)

    def fit(
        self, flat_ids: Tensor, offsets: Tensor, max_iter: int = STEPS, lr: float = RATE,
        *, weights: Tensor = None, advance: Advance = ignore,
    ) -> DawidSkene:  # fmt: skip
        """Take Adam's steps towards the mode of the log posterior. 200 of them stop short of it: see `find_mode`."""
        optimizer = torch.optim.Adam(self.parameters(), lr=lr)
        for step in range(max_iter):
            optimizer.zero_grad()
            (-self.log_p(self(flat_ids, offsets), weights)).backward()
            optimizer.step()
            if step % 10 == 9:
                advance((step + 1) / max_iter)
        return self

    def find_mode(self, flat_ids: Tensor, offsets: Tensor, *, max_iter: int = 2_000) -> DawidSkene:
        """Go on to the mode itself, with L-BFGS in double precision, to which the model is converted."""
        self.double()
        optimizer = torch.optim.LBFGS(
            self.parameters(), max_iter=max_iter, tolerance_grad=1e-10, tolerance_change=0.0,
            line_search_fn="strong_wolfe", history_size=50,
        )  # fmt: skip

        def loss() -> Tensor:
            optimizer.zero_grad()
            negative = -self.log_p(self(flat_ids, offsets))
            negative.backward()
            return negative

        optimizer.step(loss)
        return self

    def draw(self, flat_ids: Tensor, offsets: Tensor, n_draws: int = 1_000, *, seed: int = 0) -> Tensor:
        """Draw every item's probabilities from the Laplace approximation: `(n_draws, N, K)`.

        The Gaussian of the logits has its centre at the current parameters, which should be the mode, and the inverse
        of the negative Hessian of `log_p`, by autograd, as its covariance. Adding a constant to the logits of one row
        changes no probability: in these directions nothing is drawn.
        """
        self.double()
        n_items, like = len(offsets), (self.pi_logits, self.theta_logits)
        centre_p = torch.cat([parameter.detach().ravel() for parameter in like])
        votes_i = torch.diff(offsets, append=offsets.new_tensor([len(flat_ids)]))
        item_v = torch.repeat_interleave(torch.arange(n_items, device=offsets.device), votes_i)

        def logits_at(x_p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            pi_logits, theta_logits = x_p[: self.K], x_p[self.K :].view_as(self.theta_logits)
            log_pi, by_vote = _log_rates(pi_logits, theta_logits)
            # `embedding_bag` has no second derivative.
            return log_pi.repeat(n_items, 1).index_add(0, item_v, by_vote[flat_ids]), pi_logits, theta_logits

        def log_p_at(x_p: Tensor) -> Tensor:
            logits, *parameters = logits_at(x_p)
            return torch.logsumexp(logits, dim=1).sum() + self._log_prior(*parameters)

        value_q, vector_pq = torch.linalg.eigh(-torch.autograd.functional.hessian(log_p_at, centre_p))
        scale_q = torch.where(value_q > 1e-9 * value_q[-1], value_q, torch.inf).rsqrt()
        generator = torch.Generator().manual_seed(seed)
        normal_sq = torch.randn(n_draws, len(centre_p), generator=generator, dtype=torch.float64).to(centre_p.device)
        with torch.no_grad():
            draws_sp = centre_p + (normal_sq * scale_q) @ vector_pq.T
            return torch.stack([self.posterior(logits_at(x_p)[0]) for x_p in draws_sp])


def _log_rates(pi_logits: Tensor, theta_logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log prevalence, and for every annotator and vote the log rate under each true label."""
    log_theta = functional.log_softmax(theta_logits, dim=-1).transpose(1, 2)
    return functional.log_softmax(pi_logits, dim=-1), log_theta.reshape(-1, len(pi_logits))
