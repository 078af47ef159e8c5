"""Run → the score of every system: a share, a mean or a win rate, with an interval that can be trusted or says why not.

With known answers on a random part the judges are corrected by them (`corrected_means`); beside it stand prediction-
powered inference on the plain votes, the known answers alone, and the uncorrected mean of the votes. Without any,
errors that judges share cannot be seen: the interval is wide, and never called trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.findings import listed, many
from moral_entropy.judges.estimates import FEWEST, Estimate, corrected_means, decide, difference, known_mean, ppi_mean
from moral_entropy.judges.findings import one_label
from moral_entropy.judges.known import KnownItems, known_items, questions_of, systems_of
from moral_entropy.judges.pairwise import is_pairwise
from moral_entropy.judges.values import Quantity, bounded, quantities, schema
from moral_entropy.options import values_by_label
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import Ints

MOST_PAIRS = 6
"""Systems up to which every two are compared; of more, each with the highest."""

FEW_FOR_NORMAL = 30
"""Known answers below which the normal interval of prediction-powered inference is not to be relied on."""

UNLIKE = 4.0
"""Standard errors by which items with known answers differ from the others when they are no random part."""

_FIGURES = bounded("", "ppi_", "gold_", "votes_", bounds=("value", "low", "high"))
SCORES = schema("text question quantity group", "int n_items n_gold", "text method", _FIGURES, "float limit",
                "text verdict", "int more_gold")  # fmt: skip
DIFFERENCES = schema("text question quantity group other", "int n_gold", _FIGURES, "text verdict", "int more_gold")


@dataclass(frozen=True, eq=False)
class Score:
    """Scores and their differences.

    Parameters
    ----------
    frame
        One row per question, quantity and system: `SCORES`. `value`, `low` and `high` are the score; those with `ppi_`
        are by prediction-powered inference, with `gold_` by the known answers alone, with `votes_` the plain votes.
    differences
        One row per two systems, the higher one first: `DIFFERENCES`.
    notes
        What a reader must know, in sentences.
    interval
        Mass of the intervals.
    """

    frame: pl.DataFrame
    differences: pl.DataFrame
    notes: tuple[str, ...]
    interval: float

    @property
    def verdict(self) -> str:
        """Whether the limit is kept by all scores: untrusted if one is not, undecided if one may not."""
        verdicts = self.frame["verdict"].to_list()
        return next((name for name in ("untrusted", "undecided", "trusted") if name in verdicts), "")

    def as_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        tables = {"scores": self.frame.to_dicts(), "differences": self.differences.to_dicts()}
        return {"interval": self.interval, "verdict": self.verdict, **tables, "notes": list(self.notes)}

    def __repr__(self) -> str:
        """Say the scores in a line each."""
        return "\n".join(
            f"{row['group']}: {row['quantity']} {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            for row in self.frame.iter_rows(named=True)
        )


def score(
    run: Run | str | Path, by: str | None = None, *, question: str | None = None, at_least: float | None = None,
    values: Sequence[str] = (), roles: Any = None, cluster_column: str | None = None, strata_column: str | None = None,
    interval: float | None = None,
) -> Score:  # fmt: skip
    """Score what was judged: the share of yes, the mean or the win rate of every system, and how they differ.

    Intervals hold the sampling of items, the judges' errors and that few answers are known. Known answers (gold, a
    filled-in spot check, people's votes beside those of language models) must be those of a random part of the items.

    Parameters
    ----------
    run
        The run, or its folder.
    by
        A column: one score for each of its values. domain, or a column that the audit was told to keep.
    question
        Only this question.
    at_least
        The score must be at least this, a share or percent: trusted, untrusted or undecided.
    values
        What each label counts, as ["A=1", "B=0", "tie=0.5"]. By default the positive label counts 1, numbers count
        themselves, and of A, B and tie a win of A counts 1 and a tie a half.
    roles
        Who is a person and who a language model: a dict, a file, or a column; by default as the audit has it.
    cluster_column
        Items that share a value of this column are no independent sample. Systems that answered the same prompts are
        compared prompt by prompt.
    strata_column
        Column of strata from which known answers were drawn, of some more than of others.
    interval
        Mass of the intervals; that of the run by default.

    Returns
    -------
    Score
        Scores, differences, and what must be known of them.

    Examples
    --------
    >>> import moral_entropy as me
    >>> simulated = me.simulate_votes(n_items=300, n_annotators=5, votes_per_item=5, seed=1)
    >>> scores = me.score(me.audit(simulated.votes, draws=50), at_least=0.2)
    >>> scores.frame["method"].to_list(), scores.verdict
    (['gold'], 'trusted')
    """
    run, value_by_label = as_run(run), values_by_label(values)
    mass = run.interval if interval is None else interval
    rows, gaps = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    notes: list[str] = []
    for part in questions_of(run, question):
        reference = known_items(run, part, roles=roles, cluster_column=cluster_column, strata_column=strata_column)
        names, system_i = systems_of(run, part, reference.items, by)
        notes += reference.notes[1:]
        for quantity in quantities(part, value_by_label, pairwise=is_pairwise(run, part)):
            systems, paired = _estimates(reference, quantity, names, system_i, mass)
            limit = None if at_least is None else quantity.limit(at_least)
            begin = (part.name, quantity.name)
            for system in systems:
                figures = _figures(system["estimates"], quantity, quantity.minimum)
                verdict = decide(system["estimates"][0], limit, system["n_items"], mass)
                about = (system["name"], system["n_items"], system["n_known"], system["method"])
                rows.append((*begin, *about, *figures, None if limit is None else quantity.unscaled(limit), *verdict))
            for first, second in _pairs(systems):
                estimates = list(map(difference, first["estimates"], second["estimates"]))
                if first["method"] == second["method"] != "gold":
                    estimates[0] = paired(first["at"], second["at"])
                verdict = decide(estimates[0], 0.0, min(first["n_items"], second["n_items"]), mass)
                pair = (first["name"], second["name"], estimates[0].n_known)
                gaps.append((*begin, *pair, *_figures(estimates, quantity, 0.0), *verdict))
            notes += _notes(run, reference, quantity, systems)
    scores, differences = (pl.DataFrame(table, schema=columns, orient="row")
                           for table, columns in ((rows, SCORES), (gaps, DIFFERENCES)))  # fmt: skip
    return Score(scores, differences, tuple(dict.fromkeys(notes)), mass)


def _estimates(
    reference: KnownItems, quantity: Quantity, names: list[str], system_i: Ints, mass: float
) -> tuple[list[dict[str, Any]], Callable[[int, int], Estimate]]:
    """Return every system's estimates of a quantity, on the scale from 0 to 1, and differences that are paired."""
    value_k = quantity.value_k
    corrected, gap = corrected_means(reference.answers(system_i), value_k, mass, reference.draws_sik)
    systems = []
    for s, name in enumerate(names):
        at = system_i == s
        truth_i, share_i = (table_ik[at] @ value_k for table_ik in (reference.truth_ik, reference.share_ik))
        known_i, weight_i, cluster_i = reference.known_i[at], reference.weight_i[at], reference.cluster_i[at]
        alone = known_mean(truth_i[known_i], weight_i[known_i], cluster_i[known_i], mass)
        n_known = int(known_i.sum())
        by_itself = n_known in (*range(1, FEWEST), len(known_i)) or (n_known and reference.evidence)
        method = "gold" if by_itself else "corrected" if n_known else "votes"
        ppi = ppi_mean(truth_i, share_i, known_i, weight_i, cluster_i, mass)
        estimates = (alone if by_itself else corrected[s], ppi, alone, known_mean(share_i, weight_i, cluster_i, mass))
        systems.append({"name": name, "at": s, "n_items": len(known_i), "n_known": n_known, "method": method,
                        "estimates": estimates})  # fmt: skip
    return systems, gap


def _figures(estimates: Sequence[Estimate], quantity: Quantity, offset: float) -> list[float | None]:
    """Return values and bounds on the scale of the labels; None where there is no estimate."""
    scale = quantity.maximum - quantity.minimum
    return [
        None if math.isnan(estimate.value) else offset + scale * figure
        for estimate in estimates
        for figure in estimate[:3]
    ]


def _pairs(systems: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the systems that are compared, the higher one first."""
    order = sorted(systems, key=lambda system: -round(system["estimates"][0].value, DECIMALS))
    every = list(combinations(order, 2))
    return every if len(order) <= MOST_PAIRS else every[: len(order) - 1]


def _notes(run: Run, reference: KnownItems, quantity: Quantity, systems: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what a reader of a score must know: no known answers, few of them, of one kind, or not at random."""
    n, name = reference.n_known, reference.question.name
    if quantity.name == "mean" and {*reference.question.labels} == {"0", "1", "2"}:
        yield f"{name}: 0, 1 and 2 are averaged as numbers. If they say which of two won: --values 1=1,2=0,0=0.5."
    if not n:
        yield (
            f"{name}: no answer is known, and votes cannot show errors that judges share: nothing here is called "
            f"trusted. Label some random items: moral-entropy spot-check {run.path or 'RUN'} -n 100, then add "
            f"--answers to it. A table of item and gold works too; items are named as {str(reference.items[0])!r}."
        )
        return
    if reference.evidence:
        yield f"{name}: gold was evidence for the fit and cannot correct it; the known answers alone are scored."
    if n < FEWEST:
        yield f"{name}: {many(n, 'known answer')}, too few to correct judges by; there should be 50 or more."
    elif n < FEW_FOR_NORMAL:
        yield f"{name}: {many(n, 'known answer')}; below {FEW_FOR_NORMAL} the interval of PPI++ is too narrow at times."
    n_clusters = len(np.unique(reference.cluster_i))
    if n_clusters < len(reference.items):
        yield f"{name}: {len(reference.items):,} items in {n_clusters:,} clusters; every interval counts clusters."
    for finding in one_label(reference.question.labels, reference.gold_i, name):
        yield f"{name}: {finding.text} {finding.meaning} {finding.remedy}"
    yield from _not_random(reference, quantity)
    pairs = {system["name"]: system["estimates"][:2] for system in systems if system["estimates"][1].n_known}
    apart = [system for system, (main, ppi) in pairs.items() if main.low > ppi.high or ppi.low > main.high]
    if apart:
        yield (
            f"{name}: PPI++ and the score exclude each other for {listed(apart)}. One of their assumptions fails, most "
            "likely that known answers are a random part; believe neither before that is settled."
        )


def _not_random(reference: KnownItems, quantity: Quantity) -> Iterator[str]:
    """Compare what judges expect of items with known answers and of the others."""
    value_i, known_i = reference.p_ik @ quantity.value_k, reference.known_i
    if min(known_i.sum(), (~known_i).sum()) < FEW_FOR_NORMAL:
        return
    mean = [float(np.average(value_i[part], weights=reference.weight_i[part])) for part in (known_i, ~known_i)]
    se = math.sqrt(sum(float(np.var(value_i[part])) / part.sum() for part in (known_i, ~known_i)))
    if abs(mean[0] - mean[1]) > UNLIKE * se:
        figures = [f"{quantity.unscaled(value):.3g}" for value in mean]
        yield (
            f"{reference.question.name}: items with known answers are unlike the others ({quantity.name} {figures[0]} "
            f"and {figures[1]} by the consensus): hardly a random part. What holds of them need not hold of all."
        )
