"""Do the probabilities agree with gold labels? Those of the consensus and simpler ones.

Takes fits whose ballots have gold; returns the scores of the votes' plurality and smoothed share, of the plain
consensus at its mode and averaged over draws, of the same tempered by held-out votes, and tempered by gold,
cross-validated. The mixed model is not tempered: there it is the published p that is scored, and the model alone.
Everything is computed in logs, and nothing is clipped. Items whose gold was evidence in the fit are left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax, logsumexp

from moral_entropy.checks.scores import Scores, losses, mean_interval, score
from moral_entropy.checks.temper import exponent_of
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.tempering import NOTHING, gold_exponent
from moral_entropy.consensus.vote_share import pool_with_share, smoothed_share
from moral_entropy.findings import Finding, level_of
from moral_entropy.names import ALL
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.advice import wrong_rows
from moral_entropy.rules.calibration import unseen_gold
from moral_entropy.rules.cells import targets_of
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

if TYPE_CHECKING:
    import polars as pl

FOLDS = 5
CHUNK = 512
"""Items whose draws are held at a time."""

MOST_DRAWS = 400
"""Draws averaged over; of more, evenly spaced ones."""

SIDE = "gold"

POORLY_CALIBRATED, BADLY_CALIBRATED = 0.1, 0.2
"""Expected calibration error of p against gold: worth a doubt, and too much."""

BEHIND = 0.02
"""Share of gold labels that the consensus may miss beyond what the plain vote misses."""

CONSENSUS = "consensus"
PUBLISHED = "published"
SHARE = "vote share"


@dataclass(frozen=True, eq=False)
class GoldItems:
    """The items of one fit with gold. Axes: **i** item with gold, true **k**.

    Parameters
    ----------
    fit
        The fit, with the gold it has not seen.
    item_i
        Positions of the items in its ballot.
    """

    fit: QuestionFit
    item_i: Ints

    @classmethod
    def of(cls, fit: QuestionFit) -> GoldItems:
        """Find the items of a fit whose gold it has not seen."""
        fit = unseen_gold(fit)
        return cls(fit, np.flatnonzero(fit.ballot.gold_i != UNKNOWN))

    @property
    def gold_i(self) -> Ints:
        """Their known labels."""
        return self.fit.ballot.gold_i[self.item_i]

    @property
    def weight_i(self) -> Floats:
        """How many items each stands for."""
        return self.fit.ballot.count_i[self.item_i]

    @property
    def counts_ik(self) -> Ints:
        """Their votes by label."""
        return self.fit.ballot.counts_ik[self.item_i]

    @property
    def log_prevalence_k(self) -> Floats:
        """The fitted prevalence."""
        return np.asarray(np.log(self.fit.prevalence_k))

    @cached_property
    def votes(self) -> csr_array:
        """Their votes as a matrix, item by code."""
        some = self.fit.patterns.take(self.fit.patterns.row_i[self.item_i])
        shape = (some.n_rows, some.n_annotators * some.n_labels)
        matrix = csr_array((np.ones(len(some.code_v)), some.code_v, some.start_r), shape=shape)
        # Two votes of one annotator for one label are two.
        matrix.sum_duplicates()
        return matrix

    @cached_property
    def evidence_ik(self) -> Floats:
        """Log likelihood of each item's votes by label, at the mode and untempered."""
        log_akv = np.log(self.fit.confusion_akv)
        return np.asarray(self.votes @ log_akv.transpose(0, 2, 1).reshape(-1, self.fit.ballot.n_labels))

    def log_mean_ik(self, exponent: float, *, prevalence: float = 1.0, among: Ints | None = None) -> Floats:
        """Log of the mean over draws of the tempered posterior; at the mode without draws.

        Parameters
        ----------
        exponent, prevalence
            Powers of the votes' likelihood and of the prevalence.
        among
            Only of these items, by position.
        """
        among = np.arange(len(self.item_i)) if among is None else among
        if not self.fit.n_draws:
            return _posterior(prevalence * self.log_prevalence_k, exponent * self.evidence_ik[among])
        some = slice(None, None, -(-self.fit.n_draws // MOST_DRAWS))
        log_prevalence_sk = prevalence * np.log(self.fit.prevalence_sk[some])
        n_draws, n_labels = log_prevalence_sk.shape
        log_ca = np.log(self.fit.confusion_sakv[some]).transpose(1, 3, 0, 2).reshape(-1, n_draws * n_labels)
        log_p_ik = np.empty((len(among), n_labels))
        for start in range(0, len(among), CHUNK):
            evidence = self.votes[among[start : start + CHUNK]] @ log_ca
            log_isk = log_softmax(log_prevalence_sk + exponent * evidence.reshape(-1, n_draws, n_labels), axis=2)
            log_p_ik[start : start + CHUNK] = logsumexp(log_isk, axis=1) - np.log(n_draws)
        return log_p_ik


def _posterior(log_prevalence_k: Floats, evidence_ik: Floats) -> Floats:
    return np.asarray(log_softmax(log_prevalence_k + evidence_ik, axis=1))


def reports(items: GoldItems, *, seed: int = 0) -> dict[str, Floats]:
    """Return the log probabilities of every method, by its name: `log_p_ik`.

    Parameters
    ----------
    items
        The items with gold.
    seed
        Of the folds in which an exponent is learnt from gold.
    """
    if items.fit.mixture is not None:
        return mixed_reports(items)
    held_ik = items.log_mean_ik(exponent_of(replace(items.fit, exponent=NOTHING)).value)
    rng = np.random.default_rng([seed, zlib.crc32(items.fit.question.encode())])
    fold_i = rng.permutation(len(items.item_i)) % FOLDS
    half_i = np.full(len(items.item_i), 0.5)
    with np.errstate(divide="ignore"):
        published = {PUBLISHED: np.log(items.fit.p_ik[items.item_i])} if items.fit.pooled else {}
        return published | {
            "plurality": np.log(_plurality(items.counts_ik)),
            SHARE: np.log(smoothed_share(items.counts_ik)),
            "mode": _posterior(items.log_prevalence_k, items.evidence_ik),
            CONSENSUS: items.log_mean_ik(1.0),
            "tempered by held-out votes": held_ik,
            "half tempered, half share": np.log(pool_with_share(np.exp(held_ik), items.counts_ik, half_i)),
            "tempered by gold": tempered_by_gold(items, fold_i),
            "prevalence tempered too": tempered_by_gold(items, fold_i, prevalence=True),
        }


def mixed_reports(items: GoldItems) -> dict[str, Floats]:
    """Return those of the mixed model: the consensus is p as published, which is pooled with the vote share."""
    fit, at = items.fit, items.item_i
    with np.errstate(divide="ignore"):
        return {
            "plurality": np.log(_plurality(items.counts_ik)),
            SHARE: np.log(smoothed_share(items.counts_ik)),
            "mode": np.log(fit.posterior_ik[at]),
            "model alone": np.log(fit.summary.mean_ik[at]),
            CONSENSUS: np.log(fit.p_ik[at]),
        }


def _plurality(counts_ik: Ints) -> Floats:
    top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
    return np.asarray(top_ik / top_ik.sum(axis=1, keepdims=True))


def tempered_by_gold(items: GoldItems, fold_i: Ints, *, prevalence: bool = False) -> Floats:
    """Compute each item's log probabilities with exponents learnt from the gold of all other folds.

    Parameters
    ----------
    items
        The items with gold.
    fold_i
        The fold of each.
    prevalence
        Whether the prevalence gets an exponent of its own.
    """
    log_p_ik = np.empty((len(fold_i), items.fit.ballot.n_labels))
    for fold in np.unique(fold_i):
        rest, here = fold_i != fold, np.flatnonzero(fold_i == fold)
        learn = (items.evidence_ik[rest], items.log_prevalence_k, items.gold_i[rest])
        if prevalence:
            votes, power = gold_exponents(*learn, items.weight_i[rest])
        else:
            votes, power = gold_exponent(*learn, weight_i=items.weight_i[rest]).value, 1.0
        log_p_ik[here] = items.log_mean_ik(votes, prevalence=power, among=here)
    return log_p_ik


def gold_exponents(
    evidence_ik: Floats, log_prevalence_k: Floats, gold_i: Ints, weight_i: Floats
) -> tuple[float, float]:
    """Learn exponents of the votes' likelihood and of the prevalence from gold, by the least log loss.

    Parameters
    ----------
    evidence_ik, log_prevalence_k, gold_i, weight_i
        As in `gold_exponent`; all labels known.

    Examples
    --------
    Votes that say nothing, a prevalence of 1 in 5 that is 1 in 2 in truth:

    >>> found = gold_exponents(np.zeros((2, 2)), np.log([0.8, 0.2]), np.array([0, 1]), np.ones(2))
    >>> round(found[1], 3)
    0.0
    """
    # Loaded here, as no audit needs an optimiser.
    from scipy.optimize import minimize

    prior_ik = np.broadcast_to(log_prevalence_k, evidence_ik.shape)
    row_i, total = np.arange(len(gold_i)), weight_i.sum()

    def loss(x: Floats) -> tuple[float, Floats]:
        log_p_ik = log_softmax(x[0] * evidence_ik + x[1] * prior_ik, axis=1)
        slopes = [
            (weight_i * (part_ik[row_i, gold_i] - (np.exp(log_p_ik) * part_ik).sum(axis=1))).sum()
            for part_ik in (evidence_ik, prior_ik)
        ]
        return -float((weight_i * log_p_ik[row_i, gold_i]).sum() / total), -np.array(slopes) / total

    # Votes that gold contradicts count for nothing, rather than for their opposite.
    found = minimize(loss, np.array([0.3, 1.0]), jac=True, method="L-BFGS-B", bounds=[(0.0, 2.0), (-20.0, 20.0)])
    return float(found.x[0]), float(found.x[1])


def score_reports(items: GoldItems, log_p: Mapping[str, Floats]) -> dict[str, Scores]:
    """Score every method's log probabilities against gold."""
    targets = targets_of(items.fit.ballot)
    return {name: score(log_p_ik, items.gold_i, targets, items.weight_i) for name, log_p_ik in log_p.items()}


def examine_gold(consensus: Consensus, *, seed: int = 0, advance: Advance = ignore) -> list[Finding]:
    """Score the consensus of every fit against gold, and simpler probabilities too; nothing without gold.

    Parameters
    ----------
    consensus
        The fits to examine.
    seed
        Of the folds in which an exponent is learnt from gold.
    advance
        Called with the share done.
    """
    findings: list[Finding] = []
    for n, fit in enumerate(consensus.fits):
        items = GoldItems.of(fit)
        if len(items.item_i) >= FOLDS:
            findings += _findings(items, reports(items, seed=seed))
        advance((n + 1) / len(consensus.fits))
    return findings


def _findings(items: GoldItems, log_p: Mapping[str, Floats]) -> list[Finding]:
    findings = []
    for name, scores in score_reports(items, log_p).items():
        figures = {"accuracy": scores.accuracy, "log_loss": scores.log_loss, "brier": scores.brier, "ece": scores.ece}
        for figure, value in figures.items():
            findings.append(finding_of(items.fit, SIDE, figure, value, subject=name, n=scores.n))
    return [*findings, _verdict(items, log_p)]


def _verdict(items: GoldItems, log_p: Mapping[str, Floats]) -> Finding:
    """Hold the published p against the smoothed vote share, item by item; the untempered consensus if p is its own."""
    published = PUBLISHED in log_p or items.fit.mixture is not None
    mine, what = PUBLISHED if PUBLISHED in log_p else CONSENSUS, "published p" if published else "untempered consensus"
    mine_i, theirs_i = (losses(log_p[name], items.gold_i) for name in (mine, SHARE))
    mean, low, high = mean_interval(theirs_i - mine_i, np.arange(len(mine_i)))
    text = (
        f"against gold the {what} loses {mine_i.mean():.2f} nats per item, the smoothed vote share "
        f"{theirs_i.mean():.2f}."
    )
    words: dict[str, Any] = {"level": "good" if low > 0.0 else "info", "text": text}
    if high < 0.0:
        words = {
            "level": "doubt",
            "text": text,
            "meaning": "The consensus is surer than it is right.",
            "cure": "Do not read p as a frequency: rank by it, or publish vote shares instead."
            if items.fit.mixture
            else "Learn from the gold labels how sure to be: --temper gold.",
        }
    return finding_of(items.fit, SIDE, "gain_over_vote_share", mean, low=low, high=high, n=len(mine_i), **words)


def gold_findings(audit: pl.DataFrame) -> list[Finding]:
    """Hold the consensus of a run against gold, as its audit has graded it; nothing without gold.

    Parameters
    ----------
    audit
        Rows of audit.parquet.
    """
    pooled = audit.filter(reference="gold", question=ALL, domain=ALL).drop_nulls("value")
    ece = pooled.filter(rule="consensus", metric="ece")["value"].to_list()[:1]
    against = wrong_rows(audit.filter(reference="gold", domain=ALL))
    wrong = {row["rule"]: row["value"] for row in against if row["question"] == ALL and row["value"] is not None}
    plain = wrong.get("plurality", wrong.get("majority"))
    found = [_off(value) for value in ece]
    if plain is None or "consensus" not in wrong:
        return found
    low = [row["low"] for row in against if row["question"] == ALL and row["rule"] == "consensus"]
    return [*found, _missed(wrong["consensus"], plain, surely=not low or low[0] is None or low[0] > plain)]


def _off(ece: float) -> Finding:
    return Finding(
        SIDE, "p_off", ece, level=level_of(ece > POORLY_CALIBRATED, bad=ece > BADLY_CALIBRATED),
        text=f"the probability p is off by {ece:.2f} on average against the gold labels (expected calibration error).",
        meaning="Where p is off, annotators make the same mistakes, and p takes their agreement for evidence.",
        cure=(
            "Do not read p as a frequency: rank by it, or take p_calibrated of items.parquet, which has learnt from "
            "the gold of other items how sure to be."
        ),
    )  # fmt: skip


def _missed(consensus: float, plain: float, *, surely: bool) -> Finding:
    level = level_of(consensus > plain + BEHIND, bad=surely)
    return Finding(
        SIDE, "missed_more_than_plain_vote", consensus - plain, level=level,
        text=f"the consensus misses {consensus:.1%} of the gold labels, the plain vote {plain:.1%}.",
        meaning=(
            "Where it misses more, annotators err together or under another guideline than the gold labels, and the "
            "model takes their agreement for accuracy."
        ),
        cure="Trust gold where you have it; audit groups of annotators on their own, or publish vote shares instead.",
    )  # fmt: skip
