"""What the manifest says: what was read, what was asked, how each fit ended.

Takes results, gives plain values. Only the seconds differ between two runs of the same input.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from moral_entropy import __version__
from moral_entropy.consensus.model import available_cores
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.votes.table import Votes

LIBRARIES = ("numpy", "scipy", "polars", "numba")


def manifest_facts(
    consensus: Consensus,
    options: AuditOptions,
    *,
    command: str,
    warnings: Sequence[str],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Give the manifest of a run.

    Parameters
    ----------
    consensus
        The fits, and the votes they were made from.
    options
        What was asked for.
    command
        What the user typed, if anything.
    warnings
        Warnings of the library, in order.
    seconds
        Time by stage.
    """
    return {
        "version": __version__,
        "command": command,
        **reading_facts(consensus.votes),
        "questions": [_fit_facts(fit) for fit in consensus.fits],
        "converged": consensus.converged,
        "fit_by": options.fit_by,
        "priors": _prior_facts(consensus.priors),
        **_asked(options),
        "warnings": list(warnings),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "seconds": {stage: round(spent, 3) for stage, spent in seconds.items()},
    }


def reading_facts(votes: Votes) -> dict[str, Any]:
    """Give what was read and what was left out."""
    reading = votes.reading
    return {
        "input": {"source": reading.source, "sha256": reading.sha256},
        "columns": dict(reading.columns),
        "guessed": list(reading.guessed),
        "rows": reading.rows,
        "dropped": dict(reading.dropped),
        "notes": list(reading.notes),
        "items": votes.n_items,
        "items_without_votes": int((votes_per_item(votes) == 0).sum()),
        "annotators": len(votes.annotators),
        "anonymous": votes.anonymous,
        "votes": votes.n_votes,
        "domains": list(votes.domains),
    }


def votes_per_item(votes: Votes) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Count the votes on each item, over all questions: `votes_i`."""
    votes_i = np.zeros(votes.n_items, dtype=np.int64)
    for ballot in votes.ballots:
        votes_i[ballot.item_i] += ballot.votes_i
    return votes_i


def _fit_facts(fit: QuestionFit) -> dict[str, Any]:
    ballot = fit.ballot
    return {
        "question": ballot.question,
        "part": ballot.part,
        "labels": list(ballot.labels),
        "positive": ballot.labels[ballot.positive] if ballot.n_labels == 2 else None,
        "items": ballot.n_items,
        "items_without_votes": int((ballot.votes_i == 0).sum()),
        "annotators": ballot.n_annotators,
        "votes": ballot.n_votes,
        "prevalence": dict(zip(ballot.labels, fit.share_k.tolist(), strict=True)),
        **asdict(fit.climb),
        "curvature": asdict(fit.curvature),
        "exponent": asdict(fit.exponent),
        "common": _common_facts(fit),
    }


def _common_facts(fit: QuestionFit) -> dict[str, Any] | None:
    """Give the rows annotators were found to have in common, where they were partially pooled."""
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


def _asked(options: AuditOptions) -> dict[str, Any]:
    asked = asdict(options.fit)
    return asked | {"threads": asked["threads"] or available_cores()}
