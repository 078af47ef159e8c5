"""How large a fit may be: error rates that can be fitted, and draws of them that can be held.

Takes the shape of a fit, returns how many draws are made of it, or refuses in words what memory could not hold.
"""

from __future__ import annotations

from moral_entropy.consensus.options import FitOptions
from moral_entropy.errors import FitError
from moral_entropy.votes.table import Ballot

MOST_RATES = 1 << 24
"""Most error rates (annotators × labels × labels) of one fit; a search holds some twenty arrays of this size."""

DRAWN_NUMBERS = 1 << 27
"""Most numbers in the draws of one fit: a gigabyte; what follows from them takes about two more."""

ALL_DRAWN_NUMBERS = 1 << 29
"""Most numbers in the draws of all fits together."""

LEAST_DRAWS = 100
"""Fewer draws than this say little about an interval: rather none are made, in words."""

CURE = "merge rare labels, or let all annotators share one matrix (--pooling full)"


def affordable_draws(ballot: Ballot, options: FitOptions, n_fits: int = 1) -> int:
    """Return how many of the draws asked for can be held; refuse a fit that is too large.

    Parameters
    ----------
    ballot
        What is fitted: its annotators and labels decide.
    options
        The draws asked for, and how annotators are pooled.
    n_fits
        Fits whose draws are held at the same time.
    """
    n_matrices = 1 if options.pooling == "full" else ballot.n_annotators
    n_rates = n_matrices * ballot.n_labels**2
    size = f"{ballot.question}: {ballot.n_labels:,} labels and {n_matrices:,} annotators make {n_rates:,} error rates"
    if n_rates > MOST_RATES:
        msg = f"{size}; {MOST_RATES:,} are as many as can be fitted. Instead {CURE}."
        raise FitError(msg)
    most = min(DRAWN_NUMBERS, ALL_DRAWN_NUMBERS // n_fits) // n_rates
    if options.draws > most < LEAST_DRAWS:
        gigabytes = 8e-9 * n_rates * options.draws
        msg = (
            f"{size}; {options.draws:,} draws of them would take {gigabytes:.3g} GB, and there is room for "
            f"{most:,}. Use --draws 0 for the best answer without intervals, {CURE}."
        )
        raise FitError(msg)
    return min(options.draws, most)
