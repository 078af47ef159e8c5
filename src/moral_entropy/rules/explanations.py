"""Three explanations of the same votes, and the label probabilities under each of them.

Votes differ because items lie between labels, because annotators err, or both; few votes per item cannot tell which.
The published p is in the middle. Rates under the explanations themselves say how much hangs on that: the interval of a
rate reaches from one to the other. `names.EXPLANATIONS` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.fit import parameters_of
from moral_entropy.consensus.fitted import FittedParts
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.modes import leave_saddle
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.parts import Part, Parts, likelihood_of, part_with
from moral_entropy.consensus.patterns import forget_domains
from moral_entropy.consensus.pooling import MANY_ANNOTATORS, learn_mixed_rows
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.starts import share_start
from moral_entropy.consensus.states import corners
from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.progress import Advance, ignore
from moral_entropy.ties import settle_halves
from moral_entropy.votes.table import Floats


def one_label_modes(fitted: FittedParts, advance: Advance = ignore) -> list[Parameters]:
    """Find the mode of the paper's model for every ballot, on the votes as they were counted.

    Empty where figures are not graded under explanations: p is the paper's, or has no draws to make intervals of.
    Without pooling, on one machine, the search begins at the shares of votes and passes over states, which are the
    labels alone: so it takes no kernel that the default model has not compiled. So it does where many annotators are
    pooled, on a cluster too, whose votes are fetched for it: common rows, integrated out, would take a hundred times as
    long as all else.
    """
    consensus = fitted.consensus
    if not consensus.options.mixed or min((fit.n_draws for fit in consensus.fits), default=0) == 0:
        return []
    parts = fitted.parts.of_one_domain()
    options = replace(consensus.options, model="paper", draws=0)
    if not (_pools_many(parts, options) or (options.pooling == "none" and parts.whole)):
        found = parameters_of(parts, consensus.priors, options, lambda _, share: advance(share))
        return [one.at for one in found]
    n_ballots = len(parts.votes.ballots)
    modes = []
    for b in range(n_ballots):
        modes.append(_one_label_mode(parts, b, consensus.priors, options))
        advance((b + 1) / n_ballots)
    return modes


def _pools_many(parts: Parts, options: FitOptions) -> bool:
    most = max(ballot.n_annotators for ballot in parts.votes.ballots)
    return options.pooling == "partial" and most >= MANY_ANNOTATORS


def _one_label_mode(parts: Parts, b: int, priors: Priors, options: FitOptions) -> Parameters:
    ballot = parts.votes.ballots[b]
    row_kv, beta_akv = priors.row_kv(ballot), priors.beta_akv(ballot, parts.votes)
    density = LogPosterior(
        parts.fetch_rows(b).patterns,
        priors.alpha_k(ballot)[None] - 1.0,
        beta_akv - 1.0,
        options.threads,
        options.better_than_chance,
        between=corners(ballot.n_labels),
    )
    if options.pooling == "partial":
        density, _ = learn_mixed_rows(density, beta_akv - row_kv, row_kv)
    tolerance, max_passes = options.fit_tolerance, options.max_passes
    optimum = maximise(density, share_start(density), tolerance=tolerance, max_passes=max_passes)
    at = leave_saddle(density, optimum, tolerance=tolerance, max_passes=max_passes).at
    return replace(at, log_weight_g=at.log_weight_g[0])


def one_label_posteriors(part: Part, modes: Sequence[Parameters]) -> Iterator[Floats]:
    """Yield, by ballot, the label probabilities of one part's items under the paper's model."""
    part = part_with(part, forget_domains)
    for patterns, at in zip(part.patterns, modes, strict=True):
        shape = (patterns.n_annotators, patterns.n_labels, patterns.n_labels)
        whole = replace(at, log_confusion_akv=np.broadcast_to(at.log_confusion_akv, shape))
        yield patterns.spread(settle_halves(likelihood_of(patterns, part.threads).posterior_rk(whole)))


def explain(fit: QuestionFit, one_label_ik: Floats, some: slice) -> tuple[Floats, Floats, Floats]:
    """Return the label probabilities of some items under each of `EXPLANATIONS`.

    Shares are the smoothed ones that p is pooled with; the model's p where nobody voted or gold is evidence.

    Parameters
    ----------
    fit
        The fit under the default model.
    one_label_ik
        Label probabilities of all items under the paper's model.
    some
        Which items.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=60, n_annotators=4, votes_per_item=3, seed=1).votes
    >>> [one] = me.fit(votes, draws=50).fits
    >>> model_ik, _, share_ik = explain(one, one.posterior_ik, slice(60))
    >>> weight_i1 = one.share_weight_i[:, None]
    >>> bool(np.allclose((1 - weight_i1) * model_ik + weight_i1 * share_ik, one.p_ik))
    True
    """
    model_ik = fit.summary.mean_ik[some]
    share_ik = smoothed_share(fit.counts_ik[some], pseudo_votes=fit.first_votes_k)
    return model_ik, one_label_ik[some], np.where(fit.share_weight_i[some, None] > 0.0, share_ik, model_ik)
