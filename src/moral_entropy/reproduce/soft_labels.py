"""A study of targets → our figures for the paper's soft-label table: AUC of the soft model against the hard label."""

from __future__ import annotations

from pathlib import Path

from moral_entropy.errors import RunFolderError
from moral_entropy.names import ALL, MEAN
from moral_entropy.reproduce.figures import Figure
from moral_entropy.reproduce.published import foundations
from moral_entropy.runs.tables import read_table

CORPUS = "mftc"
"""The one corpus on which the paper trains classifiers."""

MODELS = ("minilm", "tfidf")
"""Models whose figures are shown: the first of them in the study; else the study's first model."""


def soft_label_figures(run: str | Path) -> list[Figure]:
    """Return the AUC of the soft-label model against the majority label, foundation by foundation.

    Parameters
    ----------
    run
        A run folder of MFTC in which `moral-entropy study` left its table.

    Returns
    -------
    list
        One figure per foundation that the study asks about.
    """
    rows = read_table(run, "soft_labels").filter(target="soft", reference="majority", metric="auc")
    present = [name for name in rows["model"].unique(maintain_order=True) if name != "constant"]
    if not present:
        msg = (
            f"the study in {run} has no soft targets. Run: moral-entropy study {run} --targets soft,majority -o study/"
        )
        raise RunFolderError(msg)
    model = next((name for name in MODELS if name in present), present[0])
    split = "items" if "items" in rows["split"] else MEAN
    by_name = {row["question"].lower(): row for row in rows.filter(model=model, split=split).iter_rows(named=True)}
    return [
        Figure(CORPUS, ALL, name, "", "", "auc", row["value"], row["low"], row["high"], row["n"])
        for name in foundations()
        if (row := by_name.get(name.lower())) is not None
    ]
