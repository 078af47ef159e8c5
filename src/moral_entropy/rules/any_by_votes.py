"""Why the any-annotator rule gets worse with every vote: its false-positive rate by number of votes.

The paper's structural argument: the rule is an OR over noisy votes, so even with very specific annotators, the
probability that none of them votes for a label the item does not have is a product that shrinks with every vote. That
probability is called silence here. Takes the consensus and the grading; returns predicted and observed rates.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import polars as pl

from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.rules.cells import targets_of
from moral_entropy.rules.grade import share_of
from moral_entropy.rules.grading import Grading
from moral_entropy.rules.intervals import central_interval
from moral_entropy.schemas import SCHEMAS
from moral_entropy.votes.table import Floats, Ints

MAX_DRAWS = 100
"""Largest number of draws for the intervals of predictions."""

MAX_ROWS = 20_000
"""Largest number of rows that are averaged over, per number of votes; of more, evenly spaced ones."""

ROWS_AT_ONCE = 64
"""Rows whose probabilities of silence are computed together: few enough for the cache of a core."""

NUMBERS_AT_ONCE = 1 << 18
"""Numbers of several draws that are computed together."""

MANY_LABELS, LEAST_ROWS = 10, 20
"""Above so many labels rows become fewer by their square, as every label is averaged over all others; but not below."""

CURVE_VOTES = 10
"""Least number of votes up to which the curve is computed."""


def any_rule_by_votes(consensus: Consensus, graded: Grading) -> pl.DataFrame:
    """Return the any rule's false-positive rate by number of votes, predicted and observed.

    Parameters
    ----------
    consensus
        The fits.
    graded
        The grading against the consensus.

    Returns
    -------
    pl.DataFrame
        question, label, votes, n (items with that many votes), and with their intervals: curve (annotators drawn at
        random, as often as they voted), predicted (those who did vote), expected_fpr and fpr (observed against p and
        against the consensus' yes or no). Null where no item has that many votes.
    """
    cells = graded.cells
    rows: list[tuple[object, ...]] = []
    for q, (question, of_question) in enumerate(groupby(consensus.fits, lambda fit: fit.question)):
        fits = list(of_question)
        for target in targets_of(fits[0].ballot):
            cell_c = np.flatnonzero((cells.question_c == q) & (cells.label_c == target) & (cells.votes_c > 0))
            counts, label = np.union1d(np.arange(1, CURVE_VOTES + 1), cells.votes_c[cell_c]), graded.labels[q][target]
            items_c, yes_c, p_c = graded.sum_tcs[:3, cell_c, 0]
            at_c, flagged_c = np.searchsorted(counts, cells.votes_c[cell_c]), cells.chosen_c[cell_c] > 0
            sums = [items_c, *(no_c * in_c for no_c in (items_c - p_c, items_c - yes_c) for in_c in (flagged_c, 1.0))]
            n_v, *sums_v = (np.bincount(at_c, weights=weight_c, minlength=len(counts)) for weight_c in sums)
            # The observed rates have no interval.
            observed = [x_v for pair in (0, 2) for x_v in (share_of(*sums_v[pair : pair + 2]), *[n_v * np.nan] * 2)]
            columns = (counts, n_v.round().astype(np.int64), *_predicted(fits, target, counts, graded.mass), *observed)
            rows += [(question, label, *row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    return pl.DataFrame(rows, schema=SCHEMAS["audit_any_by_votes"], orient="row").fill_nan(None)


def _predicted(fits: list[QuestionFit], target: int, counts: Ints, mass: float) -> Floats:
    """Predict the rate by number of votes, of anyone and of those who voted, each with its interval: six rows.

    Averages over the fits of a question are by their items with that many votes, of the curve by all their items.
    """
    curves, silences = [], []
    for fit in fits:
        among_sdz, silent_asz = _silence(fit, target)
        share_a = fit.ballot.votes_a / fit.ballot.votes_a.sum()
        mean_sz, among_sz = np.tensordot(share_a, silent_asz, axes=1), fit.over_domains(among_sdz)
        curves.append([(among_sz * mean_sz**votes).sum(axis=1) for votes in counts.tolist()])
        silences.append(_silence_by_votes(fit, among_sdz, silent_asz))
    curve_vs = np.average(curves, axis=0, weights=[fit.patterns.weight_r.sum() for fit in fits])
    silent_vs = np.full_like(curve_vs, np.nan)
    for v, votes in enumerate(counts.tolist()):
        if parts := [silence[votes] for silence in silences if votes in silence]:
            silent_vs[v] = np.average([part for part, _ in parts], axis=0, weights=[items for _, items in parts])
    value_xs = 1.0 - np.stack([curve_vs, silent_vs], axis=1).reshape(-1, curve_vs.shape[1])
    return np.column_stack([value_xs.mean(axis=1), *central_interval(value_xs, mass)]).reshape(len(counts), -1).T


def _silence(fit: QuestionFit, target: int) -> tuple[Floats, Floats]:
    """Return where items without the target label lie, and how likely each annotator is silent there.

    An item between labels does not have the label as far as it lies at others: it counts by that much. Shares of the
    states by domain, `among_sdz`; probability that an annotator does not vote for the target, by state, `silent_asz`:
    for two labels the specificity.
    """
    states, step = fit.states, max(1, fit.n_draws // MAX_DRAWS)
    every_nth = (part[::step] for part in fit.drawn)
    weight_sdg, confusion_sakv = every_nth if fit.n_draws else (part[None] for part in fit.mode)
    other_z = np.flatnonzero(states.mix_zk[:, target] < 1.0)
    among_sdz = states.weight_of_states(weight_sdg)[..., other_z] * (1.0 - states.mix_zk[other_z, target])
    among_sdz = among_sdz / fit.over_domains(among_sdz).sum(axis=-1)[:, None, None]
    # Draws and states of a voter side by side: then a vote takes one stretch of memory.
    silent_asz = np.empty((confusion_sakv.shape[1], len(confusion_sakv), len(other_z)))
    # Votes for the target alone, and not all draws at once: of very many annotators they would take gigabytes.
    tile = max(1, NUMBERS_AT_ONCE // (len(silent_asz) * states.n_states))
    for first in range(0, len(confusion_sakv), tile):
        vote_saz = states.votes_azv(confusion_sakv[first : first + tile, ..., target, None])[..., 0]
        silent_asz[:, first : first + tile] = 1.0 - vote_saz[..., other_z].swapaxes(0, 1)
    return among_sdz, silent_asz


def _silence_by_votes(fit: QuestionFit, among_sdz: Floats, silent_asz: Floats) -> dict[int, tuple[Floats, float]]:
    """Compute by number of votes the mean probability of silence of those who voted, `silent_s`; and count items."""
    rows, among_dsz = fit.patterns, among_sdz.transpose(1, 0, 2)
    votes_r = np.where(rows.weight_r > 0, np.diff(rows.start_r), 0)
    domain_r = rows.domain_r if rows.n_domains > 1 else np.zeros(rows.n_rows, dtype=np.int32)
    silence, most_rows = {}, max(LEAST_ROWS, MAX_ROWS * MANY_LABELS**2 // max(rows.n_labels, MANY_LABELS) ** 2)
    for votes in np.setdiff1d(votes_r, [0]).tolist():
        row_r = np.flatnonzero(votes_r == votes)
        some_r = row_r[:: -(-len(row_r) // most_rows)]
        total_s, weight_r = np.zeros(len(among_sdz)), rows.weight_r[some_r]
        for first in range(0, len(some_r), ROWS_AT_ONCE):
            few_r = some_r[first : first + ROWS_AT_ONCE]
            product_rsz = among_dsz[domain_r[few_r]]
            for v in range(votes):
                product_rsz *= silent_asz[rows.code_v[rows.start_r[few_r] + v] // rows.n_labels]
            total_s += rows.weight_r[few_r] @ product_rsz.sum(axis=-1)
        # Items count as far as they do not have the target label, relative to all.
        items_d = np.bincount(domain_r[some_r], weight_r, among_sdz.shape[1])
        silence[votes] = (total_s / (among_sdz.sum(axis=-1) @ items_d), float(rows.weight_r[row_r].sum()))
    return silence
