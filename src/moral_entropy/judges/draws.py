"""What is not known of the judges, as it moves a score: its mean in every posterior draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from moral_entropy.consensus.draws import drawn_posterior
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.judges.known import KnownItems
from moral_entropy.votes.table import Floats, Ints

MOST_DRAWS = 100
ROWS_AT_ONCE = 4_096


def drawn_means(consensus: Consensus, known: KnownItems, value_k: Floats, group_i: Ints, n_groups: int) -> Floats:
    """Return the mean of every group of items in each posterior draw of a fit: `mean_gs`."""
    sums: Floats | None = None
    place = pl.DataFrame({"item": known.items}).with_row_index("at")
    for fit in (thinned(one) for one in consensus.fits if one.question == known.question.name):
        if not fit.n_draws:
            return np.empty((n_groups, 0))
        ids = consensus.votes.items.gather(fit.ballot.item_i).to_frame("item")
        at_i = ids.join(place, on="item", how="left", maintain_order="left")["at"].to_numpy()
        if sums is None:
            sums = np.zeros((n_groups, fit.n_draws))
        _add(sums, fit, value_k, group_i[at_i], known.weight_i[at_i], known.p_ik[at_i])
    total_g = np.bincount(group_i, weights=known.weight_i, minlength=n_groups)
    return np.empty((n_groups, 0)) if sums is None else sums / total_g[:, None]


def thinned(fit: QuestionFit) -> QuestionFit:
    """Keep a hundred draws of a fit, evenly spaced."""
    kept = slice(None, None, max(1, -(-fit.n_draws // MOST_DRAWS)))
    mixture = fit.mixture and replace(fit.mixture, weight_sdg=fit.mixture.weight_sdg[kept])
    return replace(fit, prevalence_sk=fit.prevalence_sk[kept], confusion_sakv=fit.confusion_sakv[kept], mixture=mixture)


def _add(sums_gs: Floats, fit: QuestionFit, value_k: Floats, group_i: Ints, weight_i: Floats, p_ik: Floats) -> None:
    """Add the items of one fit, as published: each draw pooled with the vote share."""
    own_i = 1.0 - fit.share_weight_i
    base_i = weight_i * ((p_ik - own_i[:, None] * fit.summary.mean_ik) @ value_k)
    sums_gs += np.bincount(group_i, weights=base_i, minlength=len(sums_gs))[:, None]
    n_rows = fit.patterns.n_rows
    weight_gr = np.zeros((len(sums_gs), n_rows))
    np.add.at(weight_gr, (group_i, fit.patterns.row_i), weight_i * own_i)
    for start in range(0, n_rows, ROWS_AT_ONCE):
        row_r = np.arange(start, min(start + ROWS_AT_ONCE, n_rows))
        sums_gs += (drawn_posterior(fit, fit.patterns, row_r) @ value_k @ weight_gr[:, row_r].T).T
