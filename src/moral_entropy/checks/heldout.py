"""Does the consensus predict votes? Each vote left out in turn, and told from the others.

The votes of each fit are cut in folds. Each fold is left out, the model fitted to the others, and every left-out vote
predicted: by the consensus on its item and the annotator's confusion row, by the same tempered, by the share of the
other votes on the item, and by the prevalence and the annotator's row alone. Returns findings; no gold is needed, and
none can be had from it: who predicts votes well may still be wrong together with the voters.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax

from moral_entropy.checks.density import densities_of
from moral_entropy.checks.scores import losses, mean_interval, score
from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.model import LogPosterior, Parameters
from moral_entropy.consensus.patterns import Patterns, collapse
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.tempering import heldout_exponent, tempered
from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.findings import Finding
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.rules.cells import targets_of
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints

SIDE = "heldout"

METHODS = ("consensus", "tempered", "vote share", "prevalence")
"""Ways to predict; the mixed model is not tempered."""

MOST_VOTES = 1_000_000
"""At most this many votes are held out and predicted; all others only fitted to."""

MOST_ITEMS = 1_000_000
"""Pre-counted rows are held out item by item up to here; of more, a sample of this many items."""

VOTES_AT_ONCE = 100_000
"""Votes whose chances are computed together."""

TOLERANCE = 1e-3
"""Of the refits, in standard errors: a thousandth of one changes no prediction that matters."""

BY_VOTES = ((1, 1, "1 vote"), (2, 2, "2 votes"), (3, 4, "3–4 votes"), (5, 9, "5–9 votes"), (10, None, "10+ votes"))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The held-out votes of one fit and what was predicted. Axes: **m** method, **v** vote, voted **k**, **f** fold.

    Parameters
    ----------
    log_p_mvk
        Log chance each of the methods gave to every label.
    label_v
        What was voted.
    item_v
        On which item.
    votes_v
        How many votes the item has, this one included.
    fold_v
        The fold with which it was left out.
    exponent_f
        The exponents learnt from the other folds, for "tempered"; none under the mixed model.
    methods
        Those of `METHODS` that were tried.
    """

    log_p_mvk: Floats
    label_v: Ints
    item_v: Ints
    votes_v: Ints
    fold_v: Ints
    exponent_f: Floats
    methods: tuple[str, ...] = METHODS

    def losses(self, method: str) -> Floats:
        """Return every vote's loss under a method, in nats."""
        return losses(self.log_p_mvk[self.methods.index(method)], self.label_v)


def examine_heldout(consensus: Consensus, *, folds: int = 5, seed: int = 0, advance: Advance = ignore) -> list[Finding]:
    """Predict left-out votes of every fit.

    Parameters
    ----------
    consensus
        The fits to examine.
    folds
        How many parts the votes are cut in; each is left out once.
    seed
        Of the cut.
    advance
        Called with the share done.
    """
    findings: list[Finding] = []
    n = len(consensus.fits)
    for f, fit in enumerate(consensus.fits):
        held = hold_out(fit, folds=folds, seed=seed, advance=share_of(advance, f, n))
        if held is not None:
            findings += _scored(fit, held) + _by_votes(fit, held) + _compared(fit, held)
    return findings


def hold_out(fit: QuestionFit, *, folds: int = 5, seed: int = 0, advance: Advance = ignore) -> HeldOut | None:
    """Leave the votes of one fit out, a fold at a time, and predict them; None where there are too few.

    Parameters
    ----------
    fit, folds, seed, advance
        As in `examine_heldout`.
    """
    names = (fit.ballot.question.encode(), fit.ballot.part.encode())
    rng = np.random.default_rng([seed, *map(zlib.crc32, names)])
    fit = _item_by_item(fit, rng)
    fold_v = _folds(fit, folds, rng)
    if np.count_nonzero(fold_v >= 0) < folds:
        return None
    kept_v = np.flatnonzero(fold_v >= 0)
    fold_v, code_v = fold_v[kept_v], fit.ballot.code_v[kept_v]
    item_v = np.repeat(np.arange(fit.ballot.n_items), fit.ballot.votes_i)[kept_v]
    methods = METHODS if fit.mixture is None else tuple(method for method in METHODS if method != "tempered")
    log_p_mvk = np.empty((len(methods), len(kept_v), fit.ballot.n_labels))
    exponents: list[float] = []
    for fold in range(folds):
        out_v = np.flatnonzero(fold_v == fold)
        refit = _Refit.without(fit, kept_v[out_v])
        exponents += refit.exponents
        log_p_mvk[:, out_v] = [np.log(p_vk) for p_vk in refit.predict(item_v[out_v], code_v[out_v])]
        advance((fold + 1) / folds)
    return HeldOut(
        log_p_mvk=log_p_mvk,
        label_v=code_v % fit.ballot.n_labels,
        item_v=item_v,
        votes_v=fit.ballot.votes_i[item_v],
        fold_v=fold_v,
        exponent_f=np.array(exponents),
        methods=methods,
    )


def _item_by_item(fit: QuestionFit, rng: np.random.Generator) -> QuestionFit:
    """Expand pre-counted rows to the items they stand for: a vote of one is not a vote of all."""
    count_i = np.rint(fit.ballot.count_i).astype(np.int64)
    if (count_i == 1).all():
        return fit
    rows = np.repeat(np.arange(fit.ballot.n_items), count_i)
    if len(rows) > MOST_ITEMS:
        rows = np.sort(rng.choice(rows, MOST_ITEMS, replace=False))
    some = fit.ballot.take(rows)
    # An annotator who lost all items to the sample still has a row in the fit.
    kept_a = np.searchsorted(fit.ballot.annotator_a, some.annotator_a)
    n_labels = some.n_labels
    code_v = (kept_a[some.code_v // n_labels] * n_labels + some.code_v % n_labels).astype(np.int32)
    ballot = replace(some, annotator_a=fit.ballot.annotator_a, code_v=code_v, count_i=np.ones(len(rows)))
    domains = fit.patterns.domains
    domains = replace(domains, domain_i=domains.domain_i[rows]) if domains.number > 1 else domains
    return replace(fit, ballot=ballot, patterns=collapse(ballot, use_gold=_clamps(fit.patterns), domains=domains))


def _clamps(patterns: Patterns) -> bool:
    return bool((patterns.clamp_r != UNKNOWN).any())


def _folds(fit: QuestionFit, folds: int, rng: np.random.Generator) -> Ints:
    """Assign each vote its fold; -1 for those that are never held out."""
    clamped_i = fit.patterns.clamp_r[fit.patterns.row_i] != UNKNOWN
    open_v = np.flatnonzero(np.repeat(~clamped_i, fit.ballot.votes_i))
    some_v = rng.permutation(open_v)[:MOST_VOTES]
    fold_v = np.full(fit.ballot.n_votes, -1)
    fold_v[some_v] = np.arange(len(some_v)) % folds
    return fold_v


@dataclass(frozen=True, eq=False)
class _Refit:
    """The model fitted without some votes, and what is left of those."""

    ballot: Ballot
    log_posterior: LogPosterior
    at: Parameters
    exponents: tuple[float, ...]

    @classmethod
    def without(cls, fit: QuestionFit, out_v: Ints) -> _Refit:
        """Fit again, from the mode of all votes: the same mode, without these votes."""
        ballot = _left(fit.ballot, out_v)
        patterns = collapse(ballot, use_gold=_clamps(fit.patterns), domains=fit.patterns.domains)
        log_posterior = densities_of(replace(fit, patterns=patterns)).simplex
        at = maximise(log_posterior, fit.mode, tolerance=TOLERANCE).at
        exponents = () if at.mixed else (heldout_exponent(log_posterior, at).value,)
        return cls(ballot, log_posterior, at, exponents)

    def predict(self, item_v: Ints, code_v: Ints) -> Iterator[Floats]:
        """Compute every method's chances of the labels, for votes on these items by these annotators."""
        patterns, states = self.log_posterior.patterns, self.log_posterior.states
        vote_azl = states.votes_azv(self.at.confusion_akv)
        voter_v = code_v // patterns.n_labels if len(vote_azl) > 1 else np.zeros(len(code_v), dtype=np.int64)
        row_v = patterns.row_i[item_v]
        for exponent in (1.0, *self.exponents):
            posterior_rz = self.log_posterior.posterior_rz(tempered(self.at, exponent))
            yield _chances(posterior_rz[row_v], vote_azl, voter_v)
        yield smoothed_share(self.ballot.counts_ik[item_v])
        weight_dz = states.weight_of_states(np.exp(log_softmax(np.atleast_2d(self.at.log_weight_g), axis=-1)))
        domain_v = patterns.domain_r[row_v] if patterns.n_domains > 1 else np.zeros(len(row_v), dtype=np.int64)
        yield _chances(weight_dz[domain_v], vote_azl, voter_v)


def _chances(weight_vz: Floats, vote_azl: Floats, voter_v: Ints) -> Floats:
    """Average how annotators vote over the states of items, some votes at a time: `chance_vl`."""
    chance_vl = np.empty((len(voter_v), vote_azl.shape[-1]))
    for start in range(0, len(voter_v), VOTES_AT_ONCE):
        some = slice(start, start + VOTES_AT_ONCE)
        chance_vl[some] = np.einsum("vz,vzl->vl", weight_vz[some], vote_azl[voter_v[some]])
    return chance_vl


def _left(ballot: Ballot, out_v: Ints) -> Ballot:
    """Return the ballot without some votes; items and annotators stay."""
    kept_v = np.ones(ballot.n_votes, dtype=bool)
    kept_v[out_v] = False
    start_i = np.concatenate([[0], np.cumsum(kept_v)])[ballot.start_i].astype(np.int64)
    return replace(ballot, start_i=start_i, code_v=ballot.code_v[kept_v])


def _scored(fit: QuestionFit, held: HeldOut) -> list[Finding]:
    findings = []
    for m, method in enumerate(held.methods):
        scores = score(held.log_p_mvk[m], held.label_v, targets_of(fit.ballot))
        mean, low, high = mean_interval(held.losses(method), held.item_v)
        findings.append(finding_of(fit, SIDE, "log_loss", mean, subject=method, low=low, high=high, n=scores.n))
        findings.append(finding_of(fit, SIDE, "ece", scores.ece, subject=method, n=scores.n))
    return findings


def _by_votes(fit: QuestionFit, held: HeldOut) -> list[Finding]:
    findings = []
    for least, most, name in BY_VOTES:
        here_v = (held.votes_v >= least) & (held.votes_v <= (most or np.inf))
        for method in held.methods if here_v.any() else ():
            mean, low, high = mean_interval(held.losses(method)[here_v], held.item_v[here_v])
            subject, n = f"{method}, {name}", int(here_v.sum())
            findings.append(finding_of(fit, SIDE, "log_loss_by_votes", mean, subject=subject, low=low, high=high, n=n))
    return findings


def _compared(fit: QuestionFit, held: HeldOut) -> list[Finding]:
    """Hold the consensus against what needs no model, vote by vote."""
    findings = []
    for rival in ("vote share", "prevalence"):
        more_v = held.losses(rival) - held.losses("consensus")
        mean, low, high = mean_interval(more_v, held.item_v)
        figure, words = f"gain_over_{rival.replace(' ', '_')}", _words(fit, rival, mean, low, high)
        findings.append(finding_of(fit, SIDE, figure, mean, low=low, high=high, n=len(more_v), **words))
    return findings


def other_fits(fit: QuestionFit) -> str:
    """Say which other fits may be worth a try."""
    other = "none" if fit.pooling == "partial" else "partial"
    return f"try --pooling {other}" + " or --temper heldout" * (fit.mixture is None)


def _words(fit: QuestionFit, rival: str, mean: float, low: float, high: float) -> dict[str, Any]:
    """Put the comparison with a simpler prediction into words: level, text, and what it means and what to do."""
    what = {"vote share": "the share of the other votes on the item", "prevalence": "the annotators' habits alone"}[
        rival
    ]
    if high < 0.0:
        return {
            "level": "doubt",
            "text": f"left-out votes are predicted {-mean:.3f} nats per vote worse by the consensus than by {what}.",
            "meaning": "Its probabilities are not to be read as chances.",
            "cure": f"{other_fits(fit).capitalize()}.",
        }
    if low > 0.0:
        better = f"left-out votes are predicted {mean:.3f} nats per vote better by the consensus than by {what}."
        return {"level": "good", "text": better}
    return {"text": f"left-out votes do not tell the consensus from {what} ({mean:+z.3f} nats per vote)."}
