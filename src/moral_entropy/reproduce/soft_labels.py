"""A comparison of targets → our figures for the paper's soft-label table: AUC of the soft model by the hard label."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.names import ALL
from moral_entropy.reproduce.figures import Figure
from moral_entropy.reproduce.published import foundations

CORPUS = "mftc"
"""The one corpus on which the paper trains classifiers."""

TABLE = "comparison.csv"


def soft_label_figures(folder: str | Path) -> list[Figure]:
    """Return the AUC of the soft-label model against the majority label, foundation by foundation.

    Parameters
    ----------
    folder
        What `moral-entropy train RUN --compare` wrote about a run of MFTC.

    Returns
    -------
    list
        One figure per foundation that the run asks about.
    """
    try:
        rows = pl.read_csv(Path(folder) / TABLE).filter(target="soft", reference="majority", metric="auc")
    except (OSError, pl.exceptions.PolarsError) as error:
        msg = f"{folder} has no comparison of targets ({TABLE}). Run: moral-entropy train RUN --compare -o {folder}"
        raise RunFolderError(msg) from error
    by_name = {row["question"].lower(): row for row in rows.iter_rows(named=True)}
    return [
        Figure(CORPUS, ALL, name, "", "", "auc", row["value"], row["low"], row["high"], row["n"])
        for name in foundations()
        if (row := by_name.get(name.lower())) is not None
    ]
