"""What a reader of a score must know, in sentences: no known answers, few of them, of one kind, or not at random."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from moral_entropy.findings import listed, many
from moral_entropy.judges.estimates import FEWEST, Estimate
from moral_entropy.judges.judge_findings import as_note, one_label
from moral_entropy.judges.known import KnownItems
from moral_entropy.judges.values import Quantity
from moral_entropy.runs.run import Run
from moral_entropy.votes.table import UNKNOWN

FEW_FOR_NORMAL = 30
"""Known answers below which the normal interval of prediction-powered inference is not to be relied on."""

UNLIKE = 4.0
"""Standard errors by which items with known answers differ from the others when they are no random part."""


def notes_about(
    run: Run, known: KnownItems, quantity: Quantity, both: Sequence[tuple[str, Estimate, Estimate]]
) -> Iterator[str]:
    """Yield what must be known of a score.

    Parameters
    ----------
    run, known, quantity
        What is scored.
    both
        By group, the score and that of prediction-powered inference, where there are both.
    """
    n, name = known.n_gold, known.question.name
    place = str(run.path or "RUN")
    if not n:
        yield (
            f"{name}: no answer is known, and votes cannot show errors that judges share: nothing here is called "
            f"trusted. Label some random items: moral-entropy spot-check {place} -n 100, then add --answers to it."
        )
        return
    if known.evidence:
        yield f"{name}: gold was evidence for the fit and cannot correct it; the known answers alone are scored."
    if n < FEWEST:
        yield f"{name}: {many(n, 'known answer')}, too few to correct judges by; there should be 50 or more."
    elif n < FEW_FOR_NORMAL:
        yield f"{name}: {many(n, 'known answer')}; below {FEW_FOR_NORMAL} the interval of PPI++ is too narrow at times."
    yield from map(as_note, one_label(known.question.labels, known.gold_i, question=name))
    yield from _not_random(known, quantity)
    apart = [group for group, main, ppi in both if _apart(main, ppi)]
    if apart:
        yield (
            f"{name}: PPI++ and the score exclude each other for {listed(apart)}. One of their assumptions fails, most "
            "likely that known answers are a random part; believe neither before that is settled."
        )


def _apart(main: Estimate, ppi: Estimate) -> bool:
    return main.low > ppi.high or ppi.low > main.high


def _not_random(known: KnownItems, quantity: Quantity) -> Iterator[str]:
    """Compare what judges expect of items with known answers and of the others."""
    value_i, seen = known.p_ik @ quantity.value_k, known.gold_i != UNKNOWN
    if min(seen.sum(), (~seen).sum()) < FEW_FOR_NORMAL:
        return
    weight_i = np.where(seen, known.weight_i, 1.0)
    mean = [float(np.average(value_i[some], weights=weight_i[some])) for some in (seen, ~seen)]
    se = math.sqrt(sum(float(np.var(value_i[some])) / some.sum() for some in (seen, ~seen)))
    if abs(mean[0] - mean[1]) > UNLIKE * se:
        shown = [f"{quantity.unscaled(one):.2f}" for one in mean]
        yield (
            f"{known.question.name}: items with known answers are unlike the others ({quantity.name} {shown[0]} and "
            f"{shown[1]} by the consensus), so that they are hardly a random part. What holds of them need not hold of "
            "all."
        )
