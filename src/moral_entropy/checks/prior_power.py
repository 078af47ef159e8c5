"""How much depends on assumptions? Power-scaling of the prior, from the posterior draws at hand.

Takes a `Consensus` with draws, returns how far prevalence, mean p and entropies move when the prior, or the votes,
count twice (Kallioinen et al. 2023). Refits nothing: where the prior's density is raised to a power δ, the mean of any
figure moves at the rate of its covariance with the log prior. Importance weights would say the same where there are
few annotators, and nothing where there are many: with 1,300 parameters δ = 1.25 leaves two draws in a thousand.

Densities are those in log ratios, so that a power δ multiplies the Dirichlet's pseudo-votes and keeps its mean. On the
simplex a flat prior would be called harmless by definition, and on thin votes it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.special import entr, expit, logit, softmax

from moral_entropy.checks.density import draws_to_check, mixed_label_draws, names_of_parts
from moral_entropy.checks.vote_access import VoteAccess, VotesOf, each_fit, votes_of_fit
from moral_entropy.consensus.draws import log_ratios
from moral_entropy.consensus.fit_findings import finding_of
from moral_entropy.consensus.model import Parameters
from moral_entropy.consensus.patterns import Patterns
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.findings import Finding
from moral_entropy.progress import Advance, ignore
from moral_entropy.votes.table import UNKNOWN, Floats

SIDE = "prior-power"

PRIOR_SHARE = 0.4
"""Share of the information on a prevalence that makes the answer the prior's: on clean votes, five per item, one fit in
fifty reaches 0.3; at 1.3 votes per item the median is 0.45 to 0.6."""

LOGIT_SHIFT = 0.25
"""Move of a prevalence, in logits per doubling of the prior, that makes the answer the prior's, if outside one sd."""

ERRORS = 2.0
"""Monte-Carlo standard errors by which a move must pass its bar."""

ROWS, DRAWS = 500, 300
"""Rows of votes, and draws, behind mean p and the entropies: enough for how they move, if not for their values."""

BLOCK = 256
"""Annotators whose draws are looked at in one go."""

FEWEST_DRAWS = 3
"""Draws below which no move can be told from its noise."""

LIKELIHOOD_DRAWS = 50
"""Draws at which the likelihood is looked up, a pass over the votes each: enough for a sign."""


def examine_prior_power(
    consensus: Consensus,
    *,
    seed: int = 0,
    likelihood_draws: int = LIKELIHOOD_DRAWS,
    votes_of: VotesOf | None = None,
    advance: Advance = ignore,
) -> list[Finding]:
    """Say of every question how far its answer depends on the prior; "doubt" where the prior decides.

    Parameters
    ----------
    consensus
        A fit with draws; one with fewer than `FEWEST_DRAWS` gives no findings.
    seed
        Of the sample of items behind mean p and the entropies.
    likelihood_draws
        Draws at which the likelihood is looked up; 0 leaves its figures out.
    votes_of
        Returns the votes of the n-th fit; those on this machine when not given.
    advance
        Called with the share done.

    Examples
    --------
    >>> from moral_entropy.consensus.fit import fit
    >>> from moral_entropy.corpora.simulate import simulate_votes
    >>> votes = simulate_votes(n_items=400, n_annotators=8, votes_per_item=5).votes
    >>> [finding.level for finding in examine_prior_power(fit(votes)) if finding.figure == "prior_share"]
    ['good']
    """
    findings: list[Finding] = []
    for votes in each_fit(consensus, votes_of, advance):
        if votes.fit.n_draws >= FEWEST_DRAWS:
            scaling = scale_powers(votes.fit, likelihood_draws=likelihood_draws, seed=seed, access=votes)
            findings += _findings(votes.fit, scaling)
    return findings


def scale_powers(
    fit: QuestionFit, *, likelihood_draws: int = LIKELIHOOD_DRAWS, seed: int = 0, access: VoteAccess | None = None
) -> pl.DataFrame:
    """Compute how every figure of one fit moves under a scaled prior and a scaled likelihood.

    Rows that annotators were found to have in common are the votes' doing: there only the prior of the prevalence
    is scaled. So is the prevalence that domains were found to have in common: there only the prior of the rows is.

    Parameters
    ----------
    fit
        A fit with draws.
    likelihood_draws, seed
        As in `examine_prior_power`.
    access
        The votes, where they are not at hand.

    Returns
    -------
    pl.DataFrame
        One row per figure, prevalences first.

        - figure, label: "prevalence" and "mean_p" of a label, "total", "aleatoric", "epistemic" of none (under the
          mixed model "ambiguity_and_votes" and "annotators");
        - value, sd: posterior mean and standard deviation; entropies are means over items, in nats;
        - prior, prior_error: move per doubling of the prior (δ = 2), and its Monte-Carlo standard error;
        - votes, votes_error: the same where the likelihood is doubled; NaN where it was not looked up;
        - prior_share: share of the information on a label's prevalence that is the prior's: doubling the prior shrinks
          the variance at this rate, doubling the likelihood at the rest. Null for other figures.
    """
    access = access or votes_of_fit(fit)
    figures = _figures(access, seed)
    log_prior_s, share_k = _prior_density(fit)
    log_likelihood_s = access.log_likelihoods(likelihood_draws)
    rows = [
        (*named, value_s.mean(), value_s.std(), *_slope(value_s, log_prior_s), *_slope(value_s, log_likelihood_s))
        for named, value_s in figures.items()
    ]
    names = ("figure", "label", "value", "sd", "prior", "prior_error", "votes", "votes_error")
    # Figures begin with the prevalence of each label counted.
    shares = [*share_k.tolist(), *[None] * (len(rows) - len(share_k))]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(prior_share=pl.Series(shares, dtype=pl.Float64))


def _figures(access: VoteAccess, seed: int) -> dict[tuple[str, str], Floats]:
    """Return by name and label a figure in every draw, or in the first few of them: see `scale_powers`."""
    fit = access.fit
    posterior_srk, weight_r = _sample_posterior(access, seed)
    entropy_s = entr(posterior_srk).sum(axis=-1) @ weight_r
    # To first order the entropy of a mean moves as its tangent at that mean, which is a mean over draws again.
    slope_rk = -np.log(posterior_srk.mean(axis=0).clip(min=1e-300))
    tangent_s = np.einsum("srk,rk,r->s", posterior_srk, slope_rk, weight_r)
    mean_sk = np.einsum("srk,r->sk", posterior_srk, weight_r)
    labels = [(k, fit.ballot.labels[k]) for k in _counted_labels(fit)]
    within, across = names_of_parts(fit)
    return {
        **{("prevalence", label): fit.prevalence_sk[:, k] for k, label in labels},
        **{("mean_p", label): mean_sk[:, k] for k, label in labels},
        ("total", ""): tangent_s,
        (within, ""): entropy_s,
        (across, ""): tangent_s - entropy_s,
    }


def _counted_labels(fit: QuestionFit) -> list[int]:
    """Of two labels the positive one says it all."""
    return [fit.ballot.positive] if fit.ballot.n_labels == 2 else list(range(fit.ballot.n_labels))


def _sample_posterior(access: VoteAccess, seed: int) -> tuple[Floats, Floats]:
    """Label probabilities of some rows in some draws, `posterior_srk`, and what each row counts."""
    fit = access.fit
    rows, count_r = access.sample(ROWS, seed)
    if fit.mixture is not None:
        return _mixed_posterior(fit, rows), count_r / count_r.sum()
    some = draws_to_check(fit, DRAWS)
    push_cks, base_ks = log_ratios(fit.prevalence_sk[:some], fit.evidence_sakv[:some])
    n_codes, n_other, n_draws = push_cks.shape
    votes_rc = csr_array((np.ones(len(rows.code_v)), rows.code_v, rows.start_r), shape=(rows.n_rows, n_codes))
    ratio_rks = (votes_rc @ push_cks.reshape(n_codes, -1)).reshape(-1, n_other, n_draws) + base_ks
    posterior_srk = _shares(ratio_rks).transpose(2, 0, 1)
    known = rows.clamp_r != UNKNOWN
    posterior_srk[:, known] = np.eye(n_other + 1)[rows.clamp_r[known]]
    return posterior_srk, count_r / count_r.sum()


def _mixed_posterior(fit: QuestionFit, rows: Patterns) -> Floats:
    """Compute the same where items may lie between labels."""
    some = draws_to_check(fit, DRAWS)
    drawn = Parameters(np.log(fit.weight_sdg[:some]), np.log(fit.confusion_sakv[:some]))
    chunks = [p_rks for _, p_rks in mixed_label_draws(rows, fit.states, drawn)]
    posterior_srk = np.concatenate(chunks).transpose(2, 0, 1)
    known = rows.clamp_r != UNKNOWN
    posterior_srk[:, known] = np.eye(rows.n_labels)[rows.clamp_r[known]]
    return posterior_srk


def _shares(ratio_rks: Floats) -> Floats:
    """Turn log ratios to label 0 into probabilities of all labels, `posterior_rks`."""
    if ratio_rks.shape[1] == 1:
        last_rs: Floats = expit(ratio_rks[:, 0])
        return np.stack([1.0 - last_rs, last_rs], axis=1)
    whole_rks = np.concatenate([np.zeros_like(ratio_rks[:, :1]), ratio_rks], axis=1)
    shares_rks: Floats = softmax(whole_rks, axis=1)
    return shares_rks


def _slope(value_s: Floats, log_density_s: Floats) -> tuple[float, float]:
    """Move of a mean for a doubling of a density's power, and its standard error; NaN from too few draws."""
    n = min(len(value_s), len(log_density_s))
    if n < FEWEST_DRAWS:
        return float("nan"), float("nan")
    product_s = (value_s[:n] - value_s[:n].mean()) * (log_density_s[:n] - log_density_s[:n].mean())
    return float(np.log(2) * product_s.sum() / (n - 1)), float(np.log(2) * product_s.std(ddof=1) / np.sqrt(n))


def _prior_density(fit: QuestionFit) -> tuple[Floats, Floats]:
    """Log prior of every draw in log ratios, and the prior's share of what is known of each prevalence.

    The share is v'Pv / Var(q): P the prior's curvature, v the covariance of all parameters with the prevalence q. It
    is taken over pairs of different draws, since a draw paired with itself would add the noise of every parameter.
    """
    counted = _counted_labels(fit)
    centred_sq = fit.prevalence_sk[:, counted] - fit.prevalence_sk[:, counted].mean(axis=0)
    n_draws = len(centred_sq)
    each_s = np.full(n_draws, 1.0 / n_draws)
    log_prior_s, pairs_q, selves_q = np.zeros(n_draws), np.zeros(len(counted)), np.zeros(len(counted))
    for share_srv, pseudo_rv in _blocks(fit):
        log_srv = np.log(share_srv)
        log_prior_s += np.tensordot(log_srv, pseudo_rv, axes=2)
        # Sums over draws as matrix products, which beat numpy's means over a first axis.
        log_srv -= np.tensordot(each_s, log_srv, axes=1)
        mean_rv, total_r = np.tensordot(each_s, share_srv, axes=1), pseudo_rv.sum(axis=-1)
        together_qrv = np.tensordot(centred_sq, log_srv, axes=(0, 0))
        pairs_q += _squared(together_qrv, mean_rv, total_r)
        selves_q += _squared(log_srv, mean_rv, total_r) @ centred_sq**2
    variance_q = (centred_sq**2).sum(axis=0) / (n_draws - 1)
    share_q = (pairs_q - selves_q) / (n_draws * (n_draws - 1)) / np.maximum(variance_q, 1e-300)
    return log_prior_s, share_q.clip(0.0, 1.0)


def _blocks(fit: QuestionFit) -> Iterator[tuple[Floats, Floats]]:
    """All Dirichlet rows with a prior, and their pseudo-votes, a few hundred annotators (of two labels) at a time."""
    n_labels = fit.ballot.n_labels
    if not _learnt_weights(fit):
        yield fit.weight_sdg, np.atleast_2d(fit.alpha_g)
    # One matrix for all has one prior. Common rows that were learnt with their uncertainty have none to speak of; the
    # mixed model takes them as known, which is an assumption like others.
    integrated = fit.pooling == "partial" and fit.mixture is None
    n_rows = 0 if integrated else 1 if fit.pooling == "full" else len(fit.beta_akv)
    at_once = max(1, BLOCK * 4 // n_labels**2)
    for first in range(0, n_rows, at_once):
        some = slice(first, min(first + at_once, n_rows))
        yield fit.confusion_sakv[:, some].reshape(fit.n_draws, -1, n_labels), fit.beta_akv[some].reshape(-1, n_labels)


def _learnt_weights(fit: QuestionFit) -> bool:
    """Whether what domains are drawn towards was learnt from the votes: then it is no assumption."""
    return fit.mixture is not None and bool(np.isfinite(fit.mixture.strength))


def _squared(step_nrv: Floats, share_rv: Floats, total_r: Floats) -> Floats:
    """Squared length of steps in log ratios by the prior's curvature, added up over its rows."""
    # Matrix products over both axes at once: reducing a last axis of two is several times as slow.
    by_mean_rv = share_rv * total_r[:, None]
    square_n = np.square(step_nrv).reshape(len(step_nrv), -1) @ by_mean_rv.ravel()
    first_nr = sum(step_nrv[..., v] * share_rv[:, v] for v in range(share_rv.shape[-1]))
    return np.asarray(square_n - np.square(first_nr) @ total_r)


def _findings(fit: QuestionFit, scaling: pl.DataFrame) -> list[Finding]:
    findings = []
    for row in scaling.iter_rows(named=True):
        for whose in ("prior", "votes"):
            move, reach = row[whose], 1.645 * row[f"{whose}_error"]
            if np.isfinite(move):
                figure, low, high = f"{whose}_shift_{row['figure']}", move - reach, move + reach
                findings.append(finding_of(fit, SIDE, figure, move, subject=row["label"], low=low, high=high))
    for row in scaling.drop_nulls("prior_share").iter_rows(named=True):
        words, share = _words(fit, row), row["prior_share"]
        findings.append(finding_of(fit, SIDE, "prior_share", share, subject=row["label"], n=fit.n_draws, **words))
    return findings


def prior_decides(row: Mapping[str, Any]) -> bool:
    """Whether a prevalence, a row of `scale_powers`, is the prior's as much as the votes'.

    It is where the prior gives two fifths of the information, or where counting it twice moves the prevalence by more
    than its own sd and a quarter of a logit.
    """
    surely = abs(row["prior"]) - ERRORS * row["prior_error"]
    moved = surely > row["sd"] and surely > LOGIT_SHIFT * row["value"] * (1.0 - row["value"])
    return bool(moved or row["prior_share"] > PRIOR_SHARE)


def _words(fit: QuestionFit, row: Mapping[str, Any]) -> dict[str, Any]:
    """Put the prior's part in a share into words: level, text, and what it means and what to do."""
    value = min(max(row["value"], 1e-9), 1.0 - 1e-9)
    there = float(expit(logit(value) + row["prior"] / (value * (1.0 - value))))
    here, moved = f"{value:.1%}", f"{there:.1%}"
    share = f"the share of {row['label']!r}"
    change = f"leave {share} at {here}" if here == moved else f"take {share} from {here} to about {moved}"
    figures = (
        f"counting the default assumption (the prior) twice would {change} (standard error {row['sd']:.1%}), and "
        f"{row['prior_share']:.0%} of what is known of it is assumed"
    )
    if prior_decides(row):
        return {
            "level": "doubt",
            "text": f"{figures}.",
            "meaning": "Too few votes to decide: the default assumption decides as much as the votes do.",
            "cure": "Compare runs under other priors (moral-entropy validate does), or collect more votes per item.",
        }
    if fit.common is not None:
        return {"text": f"of the prior of the shares alone, the common rows taken as learnt: {figures}."}
    if _learnt_weights(fit):
        figures = f"of the prior of the annotators alone, what domains have in common taken as learnt: {figures}"
    return {"level": "good", "text": f"the votes decide: {figures}."}
