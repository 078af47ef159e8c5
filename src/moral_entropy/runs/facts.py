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
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.fit import LEAST_SHARE, MOST_SHARE, THIN
from moral_entropy.model.priors import Priors
from moral_entropy.model.threads import available_cores
from moral_entropy.option_fields import as_plain
from moral_entropy.options import AuditOptions, FitOptions, Model
from moral_entropy.runs.make import AMBIGUOUS, ITEMS_COUNTED, TOTAL, UNCERTAIN, mean_parts
from moral_entropy.runs.run import SCHEMA
from moral_entropy.schemas import BETWEEN
from moral_entropy.votes.table import Floats, Ints, Votes

LIBRARIES = ("numpy", "scipy", "polars", "numba")


def manifest_facts(
    consensus: Consensus,
    sums: Sequence[Floats],
    options: AuditOptions,
    *,
    command: str,
    warnings: Sequence[str],
    seconds: Mapping[str, float],
    counts: Ints | None = None,
) -> dict[str, Any]:
    """Return the manifest of a run.

    Parameters
    ----------
    consensus
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
    counts
        As `count_votes` counts, where the consensus has only a sample of the items.
    """
    counts = count_votes(consensus.votes) if counts is None else counts
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
        **asdict(fit.search),
        "curvature": fit.curvature._asdict(),
        "mixture": _mixture_facts(fit, votes.domains),
        "counted_as_one": _counted_as_one(fit, votes.annotators),
    }


def _counted_as_one(fit: QuestionFit, annotators: pl.Series) -> list[list[Any]]:
    """Name the annotators whose votes were counted as one: by group, the one who stands for it first."""
    return [annotators.gather(fit.ballot.annotator_a[group]).to_list() for group in fit.counted_groups]


def _mixture_facts(fit: QuestionFit, domains: Sequence[str]) -> dict[str, Any] | None:
    """Return the weights of the states between labels, where items may lie there; items of no domain come last."""
    if not fit.options.mixed:
        return None
    named = [*domains, None] if len(fit.weight_dg) > 1 else []
    return {"points": fit.states.points, "domains": named, "weights": fit.weight_dg.tolist()}


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
    ('doubt_votes', 'ambiguity + doubt_votes')
    """
    pooled = (
        f"(1 - a) p_model + a (n_label + b) / (n_votes + 1), a = {LEAST_SHARE} to {MOST_SHARE} and at least "
        f"{THIN} / n_votes, b the label's share of all votes"
    )
    found = {
        "p": pooled if model == "mixed" else "p_model",
        "entropy": "H(p) = ambiguity + doubt_votes + doubt_annotators",
        "aleatoric": "ambiguity + doubt_votes" if model == "mixed" else "doubt_votes",
        "epistemic": "doubt_annotators",
    }
    added = {name: f"{found[name]} + {BETWEEN}" for name in ("entropy", "aleatoric")}
    return found | added if between else found


def _settled(options: FitOptions) -> dict[str, Any]:
    """Return the options of the fit, with what was chosen where it was left open."""
    return asdict(options) | {"threads": options.threads or available_cores()}
