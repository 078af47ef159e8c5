"""Posterior draws of every item, streamed: no array of draws × items is ever held.

Takes `Patterns` and draws of the parameters; gives each item's mean, interval and expected entropy, or on request
the draws of a few rows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, softmax

from moral_entropy.consensus import draw_kernels as kernels
from moral_entropy.consensus.model import over_blocks
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.result import DrawSummary
from moral_entropy.progress import Advance, ignore
from moral_entropy.ties import settle_halves
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

BLOCK_ROWS = 4_096

LOGS_AT_ONCE = 1 << 22
"""Logs of parameters that are held at once, beside the draws themselves."""


def summarise(
    patterns: Patterns,
    prevalence_sk: Floats,
    confusion_sakv: Floats,
    *,
    positive: int,
    interval: float = 0.9,
    threads: int | None = None,
    advance: Advance = ignore,
) -> DrawSummary:
    """Give every item's mean, interval and expected entropy over the draws.

    Parameters
    ----------
    patterns
        The votes.
    prevalence_sk, confusion_sakv
        Draws of the parameters.
    positive
        Of two labels, the one the interval is about; of more, the interval is the likeliest label's.
    interval
        Mass of the central interval.
    threads
        At most this many threads.
    advance
        Told the share done.
    """
    n_rows, n_labels = patterns.n_rows, patterns.n_labels
    mean_rk, low_r, high_r, entropy_r = np.empty((n_rows, n_labels)), *np.empty((3, n_rows))
    push_cks, base_ks = log_ratios(prevalence_sk, confusion_sakv)
    rows = (patterns.start_r, patterns.code_v, patterns.clamp_r)
    tail = (1.0 - interval) / 2.0
    ranked = (tail, float(-ndtri(min(2.0 * tail, 0.5))))
    done = [0]

    def run(first: int, last: int) -> None:
        for block in range(first, last):
            lo, hi = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, n_rows)
            out = (low_r, high_r, entropy_r)
            if n_labels == 2:
                kernels.binary_summaries(*rows, push_cks[:, 0], base_ks[0], *ranked, lo, hi, mean_rk[:, 1], *out)
            else:
                kernels.general_summaries(*rows, push_cks, base_ks, *ranked, lo, hi, mean_rk, *out)
            done[0] += hi - lo
            advance(done[0] / n_rows)

    over_blocks(run, -(-n_rows // BLOCK_ROWS), threads, grain=64)
    if n_labels == 2:
        mean_rk[:, 0] = 1.0 - mean_rk[:, 1]
        if positive == 0:
            low_r, high_r = 1.0 - high_r, 1.0 - low_r
    settle_halves(mean_rk)
    return DrawSummary(
        mean_ik=patterns.spread(mean_rk),
        low_i=patterns.spread(low_r),
        high_i=patterns.spread(high_r),
        expected_entropy_i=patterns.spread(entropy_r),
    )


def log_ratios(prevalence_sk: Floats, confusion_sakv: Floats) -> tuple[Floats, Floats]:
    """By code, label and draw: log likelihood ratios to label 0; and the same of the prevalence."""
    log_sk = np.log(prevalence_sk)
    n_draws, n_annotators, n_labels, _ = confusion_sakv.shape
    push_avks = np.empty((n_annotators, n_labels, n_labels - 1, n_draws))
    # Some annotators at a time: logs of all would be as large as the draws once more.
    for first in range(0, n_annotators, step := max(1, LOGS_AT_ONCE // (n_draws * n_labels**2 or 1))):
        log_sakv = np.log(confusion_sakv[:, first : first + step])
        ratio_sakv = log_sakv[:, :, 1:] - log_sakv[:, :, :1]
        push_avks[first : first + step] = ratio_sakv.transpose(1, 3, 2, 0)
    push_cks = push_avks.reshape(-1, n_labels - 1, n_draws)
    return push_cks, np.ascontiguousarray((log_sk[:, 1:] - log_sk[:, :1]).T)


def posterior_of_rows(patterns: Patterns, prevalence_sk: Floats, confusion_sakv: Floats, row_r: Ints) -> Floats:
    """Give the label probabilities of some rows in every draw: `posterior_srk`."""
    some = patterns.take(row_r)
    n_labels = patterns.n_labels
    log_sck = np.log(confusion_sakv).transpose(0, 1, 3, 2).reshape(len(prevalence_sk), -1, n_labels)
    log_srk = np.repeat(np.log(prevalence_sk)[:, None], some.n_rows, axis=1)
    row_v = np.repeat(np.arange(some.n_rows), np.diff(some.start_r))
    for s, log_ck in enumerate(log_sck):
        np.add.at(log_srk[s], row_v, log_ck[some.code_v])
    posterior_srk: Floats = softmax(log_srk, axis=-1)
    clamped = some.clamp_r != UNKNOWN
    posterior_srk[:, clamped] = np.eye(n_labels)[some.clamp_r[clamped]]
    return posterior_srk
