"""Three explanations of the same votes, and the label probabilities under each of them.

Votes differ because items lie between labels, because annotators err, or both; few votes per item cannot tell which.
The published p is in the middle. Rates under the explanations themselves say how much hangs on that: the interval of a
rate reaches from one to the other. `names.EXPLANATIONS` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from moral_entropy.consensus.fit import parameters_of
from moral_entropy.consensus.fitted import FittedParts, fit_of_part
from moral_entropy.consensus.parts import Part, part_with
from moral_entropy.consensus.patterns import forget_domains
from moral_entropy.consensus.result import ParameterFit, QuestionFit
from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import Floats


def has_explanations(fitted: FittedParts) -> bool:
    """Tell whether figures are graded under each explanation: where p is pooled, and has draws for intervals."""
    fits = fitted.consensus.fits
    return fitted.consensus.options.mixed and min((fit.n_draws for fit in fits), default=0) > 0


def one_label_fits(fitted: FittedParts, advance: Advance = ignore) -> list[ParameterFit]:
    """Fit the paper's model to the same votes, as they were counted: its mode, without draws."""
    consensus = fitted.consensus
    options = replace(consensus.options, model="paper", draws=0)
    return parameters_of(fitted.parts.of_one_domain(), consensus.priors, options, lambda _, share: advance(share))


def one_label_posteriors(part: Part, found: Sequence[ParameterFit]) -> Iterator[Floats]:
    """Yield, by ballot, the label probabilities of one part's items under the paper's model."""
    part = part_with(part, forget_domains)
    return (fit_of_part(part, b, one).posterior_ik for b, one in enumerate(found))


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
