"""Reasons to doubt a fit, found by the fit itself: no convergence, no clear maximum, too few votes.

Takes a `Consensus`, returns findings of the checks "fit" and "votes"; `fit` turns the doubts among them into warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from moral_entropy.errors import ConvergenceWarning, CurvatureWarning, IdentifiabilityWarning, ThinDataWarning
from moral_entropy.findings import Finding
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.search import CLOSE, SecondMode
from moral_entropy.votes.layouts import merged_annotators
from moral_entropy.votes.table import Ints

THIN, VERY_THIN = 2.0, 1.5
"""Mean votes per item below which the prior has more to say than the votes, and below which p itself is in doubt."""

NOTICEABLE = 0.005
"""Share of items that must change label for a second mode to be reported."""

MOST_GROUPS, MOST_NAMES = 5, 6
"""Groups of near-copies that are told, and names per group."""

MOST_SHARES = 6
"""Labels whose shares in a second mode are told, the most frequent ones."""

CATEGORIES: dict[str, type[Warning]] = {
    "converged": ConvergenceWarning,
    "information_left": CurvatureWarning,
    "second_mode": IdentifiabilityWarning,
    "one_annotator": IdentifiabilityWarning,
    "votes_per_item": ThinDataWarning,
}
"""The warning that `fit` issues where one of these figures is in doubt."""


def finding_of(fit: QuestionFit, check: str, metric: str, value: float, **fields: Any) -> Finding:
    """Return a finding about one fit.

    Parameters
    ----------
    fit
        The fit, whose question and part are filled in.
    check, metric, value, **fields
        As in `Finding`.
    """
    return Finding(check, metric, float(value), fit.ballot.question, fit.ballot.part, **fields)


def annotator_name(consensus: Consensus, fit: QuestionFit, a: int) -> str:
    """Return the name of an annotator of a fit."""
    return str(consensus.votes.annotators[int(fit.ballot.annotator_a[a])])


def fit_findings(consensus: Consensus, fit: QuestionFit) -> Iterator[Finding]:
    """Yield findings about how a fit ended, and about how many votes it had.

    Examples
    --------
    >>> from moral_entropy.model.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> consensus = fit(simulate_votes(n_items=200, n_annotators=6, votes_per_item=4).votes, draws=50)
    >>> [(finding.metric, finding.level) for finding in fit_findings(consensus, consensus.fits[0])]
    [('converged', 'good'), ('information_left', 'good'), ('votes_per_item', 'info')]
    """
    if fit.search.converged:
        yield finding_of(fit, "fit", "converged", 1, level="good", text="the search for the best fit came to its end.")
    else:
        few_a, first = np.flatnonzero(fit.ballot.votes_a < 3), ""
        if len(few_a):
            first = f" ({len(few_a)} of them, first {annotator_name(consensus, fit, few_a[0])!r})"
        steep = f"after {fit.search.passes:,} passes a slope of {fit.search.steepness:.2g} standard errors is left"
        yield finding_of(
            fit, "fit", "converged", 0, level="bad", text=f"the fit did not converge: {steep}.",
            meaning="The search stopped before the best answer, so labels and figures may still move.",
            remedy=f"Look at annotators with under 3 votes{first}.",
        )  # fmt: skip
    information = fit.curvature.smallest
    if fit.curvature.positive_definite:
        yield finding_of(fit, "fit", "information_left", information, level="good")
    else:
        share = f"share of information left: {information:z.4f}"
        yield finding_of(
            fit, "fit", "information_left", information, level="doubt",
            text=f"the votes do not settle every annotator's error rates ({share}).",
            meaning="Intervals that depend on these rates are a guess.",
            remedy="Collect more votes per annotator, or state firmer priors (--prior-confusion).",
        )  # fmt: skip
    if 0 < fit.n_draws < consensus.options.draws:
        text = f"{fit.n_draws:,} draws were made, not {consensus.options.draws:,}, to save memory."
        meaning = "Intervals are a little rougher, figures are not."
        yield finding_of(fit, "fit", "fewer_draws", fit.n_draws, text=text, meaning=meaning)
    second = fit.second_mode
    if second is not None and second.distance < CLOSE and second.changed >= NOTICEABLE:
        yield _second_mode(fit, second)
    if fit.ballot.n_annotators == 1 and not consensus.votes.anonymous:
        yield finding_of(
            fit, "votes", "one_annotator", 1, level="bad",
            text="all votes are by one annotator.",
            meaning="Nothing tells this annotator's errors from the truth: the default assumption decides.",
            remedy="Have a second annotator label some of the same items.",
        )  # fmt: skip
    count_i = np.where(fit.ballot.votes_i > 0, fit.ballot.count_i, 0.0)
    per_item = float(np.average(fit.ballot.votes_i, weights=count_i)) if count_i.any() else 0.0
    thin: dict[str, Any] = {} if per_item >= THIN else {
        "level": "bad" if per_item < VERY_THIN else "doubt",
        "meaning": "Too few votes to decide: the default assumption decides, and p can be sure and wrong.",
        "remedy": "Collect second votes; until then compare runs under other priors before you trust p.",
    }  # fmt: skip
    text = f"{per_item:.2f} votes per item."
    yield finding_of(fit, "votes", "votes_per_item", per_item, n=round(count_i.sum()), text=text, **thin)
    yield from (_near_copies(consensus, fit, group) for group in fit.counted_groups[:MOST_GROUPS])
    if fit.options.mixed and fit.states.corners_only:
        yield finding_of(
            fit, "fit", "many_labels", fit.ballot.n_labels,
            text=f"{fit.ballot.n_labels} labels: items are taken to have one of them each, none to lie between two.",
            meaning="Ambiguity is 0 by assumption; what two labels share shows as a lack of votes.",
            remedy="Merge labels that mean nearly the same, or ask one yes-or-no question per label.",
        )  # fmt: skip


def recalibration_findings(consensus: Consensus) -> Iterator[Finding]:
    """Tell of every fit what its gold labels teach about p; nothing where there are none."""
    for fit in consensus.fits:
        if fit.recalibrated is None:
            continue
        taught = fit.recalibrated[1]
        text, surer = (
            f"p is not recalibrated by gold: {taught.reason}.",
            "less sure" if taught.temperature > 1.0 else "surer",
        )
        if taught.used:
            text = (
                f"{taught.n_gold:,} gold labels teach that p should be {surer} (temperature {taught.temperature:.2f}): "
                f"p_calibrated saves {taught.gain:.3f} nats per item, learnt from the gold of other items."
            )
        yield finding_of(fit, "gold", "recalibration", taught.temperature, n=taught.n_gold, text=text)


def _near_copies(consensus: Consensus, fit: QuestionFit, group: Ints) -> Finding:
    """Name annotators whose votes copy each other, the one who stands for them first."""
    names = [annotator_name(consensus, fit, a) for a in group]
    names_shown = ", ".join(names[:MOST_NAMES]) + f" and {len(names) - MOST_NAMES} more" * (len(names) > MOST_NAMES)
    group_a = merged_annotators(fit.options.merge, consensus.votes.annotators)[fit.ballot.annotator_a]
    is_named = len(set(group_a[group].tolist())) == 1
    why = (
        "were named to be counted as one" if is_named else "give the same votes on at least 99% of the items they share"
    )
    return finding_of(
        fit, "votes", "near_copies", len(names), subject=names_shown, level="note" if is_named else "doubt",
        text=f"{names_shown} {why}; they are counted as one annotator, {names[0]}.",
        meaning="Copies add no evidence: counted in full, they would outvote everybody else.",
        remedy="If one of them should not vote at all, leave it out (--exclude).",
    )  # fmt: skip


def _second_mode(fit: QuestionFit, second: SecondMode) -> Finding:
    share_k = np.array(second.prevalence_k)
    largest = np.sort(np.argsort(-share_k, kind="stable")[:MOST_SHARES])
    shares = ", ".join(f"{fit.ballot.labels[k]} {share_k[k]:.3f}" for k in largest) + ", …" * (
        len(largest) < len(share_k)
    )
    return finding_of(
        fit, "fit", "second_mode", second.distance, level="doubt",
        text=(
            f"a second answer fits almost as well ({second.distance:.2g} nats lower); {second.changed:.1%} of the "
            f"labels would change (shares there: {shares})."
        ),
        meaning="The votes hardly tell the two answers apart.",
        remedy=(
            "State priors you can defend (--prior-prevalence, --prior-confusion); moral-entropy validate --checks "
            "ensemble shows the other answers."
        ),
    )  # fmt: skip
