"""What a fit should make its user doubt: one sentence each, with figures and a way on."""

from __future__ import annotations

import warnings

import numpy as np

from moral_entropy.consensus.modes import CLOSE
from moral_entropy.consensus.result import QuestionFit, Rival
from moral_entropy.errors import ConvergenceWarning, CurvatureWarning, IdentifiabilityWarning, ThinDataWarning
from moral_entropy.votes.table import Ballot, Votes

THIN = 2.0
"""Mean votes an item below which the prior has more to say than the votes."""


POOL = (
    "let annotators share what they have in common (--pooling partial), and compare runs under other priors before "
    "trusting prevalence or p."
)
"""What to do about it."""

NOTICEABLE = 0.005
"""Share of items that must change label for another mode to be worth a word."""


def warn_about_fit(fit: QuestionFit, votes: Votes, rival: Rival | None) -> None:
    """Warn where the fit did not end, the mode is not one, or the votes cannot tell."""
    ballot, name = fit.ballot, fit.ballot.name
    if not fit.climb.converged:
        _say(
            ConvergenceWarning,
            f"{name}: the climb used {fit.climb.passes:,} passes and a derivative of {fit.climb.gradient_norm:.2g} "
            f"is left. Raise max_passes (--max-passes), or look at annotators with under 3 votes{_few(fit, votes)}.",
        )
    if not fit.curvature.positive_definite:
        _say(
            CurvatureWarning,
            f"{name}: the mode is flat in some direction (share of information left {fit.curvature.smallest:z.4f}), "
            "so intervals along it are a guess. More votes per annotator, or firmer priors, would settle it.",
        )
    if rival is not None and rival.distance < CLOSE and rival.changed >= NOTICEABLE:
        shares = ", ".join(f"{label} {p:.3f}" for label, p in zip(ballot.labels, rival.prevalence_k, strict=True))
        _say(
            IdentifiabilityWarning,
            f"{name}: another mode is only {rival.distance:.2g} nats lower; there {rival.changed:.1%} of the items "
            f"have another label, and the prevalence is {shares}. The votes hardly tell the two apart; "
            "state priors you can defend (--prior-prevalence, --prior-confusion).",
        )
    _warn_about_votes(ballot, votes, name, fit.pooling)


def _warn_about_votes(ballot: Ballot, votes: Votes, name: str, pooling: str) -> None:
    if ballot.n_annotators == 1 and not votes.anonymous:
        _say(
            IdentifiabilityWarning,
            f"{name}: all votes are one annotator's, so nothing tells the annotator's errors from the truth; "
            "the answer is the prior's. Have a second annotator label some of the same items.",
        )
    per_item = float(np.average(ballot.votes_i, weights=ballot.count_i)) if ballot.n_items else 0.0
    if per_item < THIN:
        _say(
            ThinDataWarning,
            f"{name}: {per_item:.2f} votes an item. With fewer than {THIN:g} the prior decides much of the answer; "
            + (POOL if pooling == "none" else "compare runs under other priors before trusting prevalence or p."),
        )


def _few(fit: QuestionFit, votes: Votes) -> str:
    few_a = np.flatnonzero(fit.ballot.votes_a < 3)
    if not len(few_a):
        return ""
    first = votes.annotators[int(fit.ballot.annotator_a[few_a[0]])]
    return f" ({len(few_a)} of them, first {first!r})"


def _say(category: type[Warning], text: str) -> None:
    warnings.warn(text, category, stacklevel=5)
