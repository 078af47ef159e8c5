"""A run folder → the `Consensus` that was fitted in it, bit by bit.

The fit is made again from the votes the folder keeps, with the same priors, seed and settings.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.options import FitOptions
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.runs.manifest import read_manifest
from moral_entropy.runs.reload import read_run_votes


def reload_consensus(run: str | Path, **changes: Any) -> Consensus:
    """Fit a run's votes again as the run did.

    Parameters
    ----------
    run
        A run folder, as `audit` wrote it.
    **changes
        Keywords of `fit` that should differ from the run's.
    """
    votes = read_run_votes(run)
    manifest = read_manifest(Path(run))
    asked = {field.name: manifest[field.name] for field in fields(FitOptions) if manifest.get(field.name) is not None}
    with warnings.catch_warnings():
        # The run itself has said them already.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, **{"priors": priors_of(manifest), **asked, **changes})


def priors_of(manifest: dict[str, Any]) -> Priors:
    """Give the priors of a run, as its manifest has them."""
    known = manifest["priors"]
    prevalence = known["prevalence"]
    return Priors(
        prevalence=tuple(prevalence) if isinstance(prevalence, list) else prevalence,
        diagonal=known["diagonal"],
        off_diagonal=known["off_diagonal"],
        annotators=known["annotators"],
        by_question={name: tuple(alpha) for name, alpha in known["by_question"].items()},
    )
