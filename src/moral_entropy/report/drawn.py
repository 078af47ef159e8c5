"""Which charts a run has enough for: a chart of a single dot is a sentence instead.

The page and `--figures` ask the same function.
"""

from __future__ import annotations

import polars as pl

from moral_entropy.report.tables import reliability_rows, rule_meanings, shown_domains, shown_targets
from moral_entropy.runs.item_sums import entropy_by_votes
from moral_entropy.runs.run import Run


def drawn_charts(run: Run) -> dict[str, bool]:
    """Tell by name of a chart whether there is enough to draw it.

    Returns
    -------
    dict
        For "rules", "by_domain", "heat", "by_votes", "reliability" and "annotators".
    """
    n_domains, n_targets = len(shown_domains(run)), len(shown_targets(run))
    n_rules = rule_meanings(run).height
    return {
        "rules": n_rules * n_targets > 1,
        "by_domain": n_domains > 1,
        # One column of a heat map is what the chart of rules shows already.
        "heat": n_domains > 0 or n_targets > 1,
        "by_votes": _several(entropy_by_votes(run).filter(pl.col("votes") > 0), "question"),
        "reliability": _several(reliability_rows(run), "target"),
        "annotators": not run.manifest["anonymous"] and _several(run.table("annotator_summary"), "question"),
    }


def _several(rows: pl.DataFrame, by: str) -> bool:
    """Tell whether any group has more than one row."""
    return bool((rows.group_by(by).len()["len"] > 1).any())
