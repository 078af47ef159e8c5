"""Do chains mix? Effective sample size and R-hat of many quantities at once.

Takes draws by quantity, chain and draw; gives each quantity's bulk effective sample size and rank-normalised split
R-hat (Vehtari et al. 2021). The figures are ArviZ's, which takes milliseconds for each; here it is a fraction of one,
and there are tens of thousands of item probabilities to look at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from moral_entropy.consensus.model import over_blocks
from moral_entropy.validate import draw_kernels as kernels
from moral_entropy.votes.table import Floats

ENOUGH, MIXED = 400.0, 1.01
"""Effective draws a quantity needs, and its R-hat at most (Vehtari et al. 2021)."""


@dataclass(frozen=True, eq=False)
class Mixing:
    """How well each quantity mixes. Axis: **q** quantity; NaN where it never moves.

    Parameters
    ----------
    ess_q
        Bulk effective sample size, all chains together.
    rhat_q
        Rank-normalised split R-hat, the worse of location and spread.
    """

    ess_q: Floats
    rhat_q: Floats

    @property
    def least_ess(self) -> float:
        """Effective sample size of the worst quantity; infinite where none moves."""
        return float(np.nanmin(self.ess_q, initial=np.inf))

    @property
    def most_rhat(self) -> float:
        """R-hat of the worst quantity; 1 where none moves."""
        return float(np.nanmax(self.rhat_q, initial=1.0))


def measure_mixing(value_qcs: Floats, threads: int | None = None) -> Mixing:
    """Measure how well chains of draws mix.

    Parameters
    ----------
    value_qcs
        Draws by quantity, chain and draw.
    threads
        At most this many threads.

    Examples
    --------
    Two chains that never meet are worth a handful of draws, however long they are.

    >>> draws = np.random.default_rng(0).standard_normal((1, 2, 500)) + np.array([0.0, 9.0])[:, None]
    >>> mixing = measure_mixing(draws)
    >>> mixing.least_ess < 4, mixing.most_rhat > 1.5
    (True, True)
    """
    n_quantities, n_chains, n_draws = value_qcs.shape
    half = n_draws // 2
    # Halves of a chain that drifts differ as chains do; of an odd number the middle draw belongs to neither.
    split_qcs = np.concatenate([value_qcs[..., :half], value_qcs[..., n_draws - half :]], axis=1)
    size = 2 * n_chains * half
    score_h = ndtri((np.arange(2 * size + 1) / 2.0 - 0.375).clip(min=0.125) / (size + 0.25))
    ess_q, rhat_q = np.empty(n_quantities), np.empty(n_quantities)

    def run(first: int, last: int) -> None:
        kernels.mixing(split_qcs, score_h, first, last, ess_q, rhat_q)

    over_blocks(run, n_quantities, threads, grain=4)
    return Mixing(ess_q, rhat_q)
