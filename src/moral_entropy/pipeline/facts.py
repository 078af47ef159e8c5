"""The facts in the manifest: what was read, which options were chosen, how each fit ended.

Takes results, returns plain values. Only the seconds differ between two runs of the same input.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from moral_entropy import __version__
from moral_entropy.consensus.fitted import FittedParts
from moral_entropy.consensus.options import FitOptions, Model
from moral_entropy.consensus.parts import Part
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Mixture, QuestionFit
from moral_entropy.consensus.threads import available_cores
from moral_entropy.consensus.vote_share import LEAST_SHARE, MOST_SHARE
from moral_entropy.options import as_plain
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.runs.make import AMBIGUOUS, ITEMS_COUNTED, TOTAL, UNCERTAIN, mean_parts
from moral_entropy.runs.run import SCHEMA
from moral_entropy.schemas import BETWEEN
from moral_entropy.votes.table import Floats, Ints, Votes

LIBRARIES = ("numpy", "scipy", "polars", "numba")


def manifest_facts(
    fitted: FittedParts,
    sums: Sequence[Floats],
    options: AuditOptions,
    *,
    command: str,
    warnings: Sequence[str],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Return the manifest of a run.

    Parameters
    ----------
    fitted
        The votes and their fits.
    sums
        Entropies by domain: see `entropy_sums`.
    options
        The options of the run.
    command
        What the user typed, if anything.
    warnings
        Warnings of the library, in order.
    seconds
        Time by stage.
    """
    consensus, counts = fitted.consensus, fitted.parts.total(count_part)
    fits, votes = zip(consensus.fits, sums, counts[1:], strict=True), consensus.votes
    return {
        "schema": SCHEMA,
        "version": __version__,
        "command": command,
        **reading_facts(consensus.votes, counts),
        "questions": [_fit_facts(fit, votes, sum_df.sum(axis=0), counts_b.tolist()) for fit, sum_df, counts_b in fits],
        "converged": consensus.converged,
        "fit_by": options.fit_by,
        "priors": _prior_facts(consensus.priors),
        **_settled(consensus.options),
        "formulas": formulas(options.fit.model, between=BETWEEN in mean_parts(sums[0].sum(axis=0))),
        "options": as_plain(options),
        "warnings": list(warnings),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "seconds": {stage: round(spent, 3) for stage, spent in seconds.items()},
    }


def reading_facts(votes: Votes, counts: Ints) -> dict[str, Any]:
    """Return what was read and what was left out."""
    reading, (items, without_votes, _) = votes.reading, counts[0].tolist()
    return {
        "input": {"source": reading.source, "sha256": reading.sha256},
        "columns": dict(reading.columns),
        "guessed": list(reading.guessed),
        "rows": reading.rows,
        "dropped": dict(reading.dropped),
        "notes": list(reading.notes),
        "items": items,
        "items_without_votes": without_votes,
        "annotators": len(votes.annotators),
        "anonymous": votes.anonymous,
        "votes": int(counts[1:, 2].sum()),
        "domains": list(votes.domains),
    }


def count_part(part: Part) -> Ints:
    """Count items, items without votes, and votes of one part: over all questions, then ballot by ballot."""
    return count_votes(part.votes)


def count_votes(votes: Votes) -> Ints:
    """Count items, items without votes, and votes: over all questions, then ballot by ballot."""
    votes_i = np.zeros(votes.n_items, dtype=np.int64)
    for ballot in votes.ballots:
        votes_i[ballot.item_i] += ballot.votes_i
    by_ballot = [(ballot.n_items, int((ballot.votes_i == 0).sum()), ballot.n_votes) for ballot in votes.ballots]
    return np.array([(votes.n_items, int((votes_i == 0).sum()), votes.n_votes), *by_ballot])


def _fit_facts(fit: QuestionFit, votes: Votes, sum_f: Floats, counts: Sequence[int]) -> dict[str, Any]:
    ballot, weight = fit.ballot, sum_f[ITEMS_COUNTED]
    means = {"entropy": TOTAL, "uncertain": UNCERTAIN, "ambiguous": AMBIGUOUS}
    return {
        "question": ballot.question,
        "part": ballot.part,
        "labels": list(ballot.labels),
        "positive": ballot.labels[ballot.positive] if ballot.n_labels == 2 else None,
        **dict(zip(("items", "items_without_votes", "votes"), counts, strict=True)),
        "items_counted": float(weight),
        "annotators": ballot.n_annotators,
        "prevalence": dict(zip(ballot.labels, fit.share_k.tolist(), strict=True)),
        **{name: float(sum_f[column] / weight) for name, column in means.items()},
        **mean_parts(sum_f),
        **asdict(fit.climb),
        "curvature": asdict(fit.curvature),
        "exponent": asdict(fit.exponent),
        "common": _common_facts(fit),
        "mixture": _mixture_facts(fit.mixture, votes.domains),
        "counted_as_one": _counted_as_one(fit, votes.annotators),
    }


def _counted_as_one(fit: QuestionFit, annotators: pl.Series) -> list[list[Any]]:
    """Name the annotators whose votes were counted as one: by group, the one who stands for it first."""
    return [annotators.gather(fit.ballot.annotator_a[group]).to_list() for group in fit.counted_groups]


def _mixture_facts(mixture: Mixture | None, domains: Sequence[str]) -> dict[str, Any] | None:
    """Return the weights of the states between labels, where items may lie there; items of no domain come last."""
    if mixture is None:
        return None
    named = [*domains, None] if len(mixture.weight_dg) > 1 else []
    return {
        "points": mixture.states.points,
        "domains": named,
        "weights": mixture.weight_dg.tolist(),
        "strength": mixture.strength if np.isfinite(mixture.strength) else None,
    }


def _common_facts(fit: QuestionFit) -> dict[str, Any] | None:
    """Return the rows annotators were found to have in common, where they were partially pooled."""
    if fit.common is None:
        return None
    return {"rows": fit.common.mean_kv.tolist(), "concentration": fit.common.concentration_k.tolist()}


def _prior_facts(priors: Priors) -> dict[str, Any]:
    return {
        "prevalence": priors.prevalence,
        "diagonal": priors.diagonal,
        "off_diagonal": priors.off_diagonal,
        "annotators": {str(name): np.asarray(cells).tolist() for name, cells in priors.annotators.items()},
        "by_question": {name: list(alpha) for name, alpha in priors.by_question.items()},
    }


def formulas(model: Model, *, between: bool = False) -> dict[str, str]:
    """Return how columns of the items follow from others, which depends on the model.

    Parameters
    ----------
    model
        The model of the fits.
    between
        Whether items have a part of the entropy between groups.

    Examples
    --------
    >>> formulas("paper")["aleatoric"], formulas("mixed")["aleatoric"]
    ('doubt_votes', 'ambiguity')
    """
    pooled = (
        f"(1 - a) p_model + a (n_label + b) / (n_votes + n_labels / 2), a = {LEAST_SHARE} to {MOST_SHARE}, "
        "b = 1/2, of two labels (N_label + 1/2) / (N_votes + 1) of all votes"
    )
    mixed = {"p": pooled, "aleatoric": "ambiguity", "epistemic": "doubt_votes + doubt_annotators"}
    paper = {"p": "p_model", "aleatoric": "doubt_votes", "epistemic": "doubt_annotators"}
    parts = {"entropy": "H(p_model) = ambiguity + doubt_votes + doubt_annotators"}
    found = parts | (mixed if model == "mixed" else paper)
    added = {name: f"{found[name]} + {BETWEEN}" for name in ("entropy", "aleatoric")}
    return found | added if between else found


def _settled(options: FitOptions) -> dict[str, Any]:
    """Return the options of the fit, with what was chosen where it was left open."""
    return asdict(options) | {"threads": options.threads or available_cores()}
