"""Which labels to accept without a person's look, with a guarantee, and which items to send to people.

Known answers say down to which confidence labels agree with people. As in "Trust or Escalate" (Jung, Brahman & Choi
2024, arXiv 2407.18370) confidences are tested from the highest down, each by the exact bound of Clopper and Pearson,
and the first that fails ends it (fixed-sequence testing): so the promise holds however many are tested. The consensus
and the plain vote are both tried, at half the risk each, and whichever accepts more is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError
from moral_entropy.judges.known import KnownItems, known_items, questions_asked
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

STEPS = 40
"""Confidences that are tested at most."""

SENT = pl.Schema(
    {
        "rank": pl.Int64(),
        "question": pl.String(),
        "item": pl.String(),
        "label": pl.String(),
        "confidence": pl.Float64(),
        "expected_gain": pl.Float64(),
        "reason": pl.String(),
    }
)


def escalate(
    run: Run | str | Path, *, agreement: float = 0.95, risk: float = 0.1, question: str | None = None
) -> list[dict[str, Any]]:
    """Split the items of every question into those whose labels are accepted and those to send to people.

    Parameters
    ----------
    run
        The run, or its folder.
    agreement
        Share of the accepted labels that people must agree with.
    risk
        How probable it may be that fewer of them do.
    question
        Only this question.

    Returns
    -------
    list
        By question: `by` (whose labels are accepted: "consensus" or "plain vote"), `threshold` (least confidence that
        is accepted; None where nothing is), `accepted` and `sent` (items without a known answer), `tested` and `wrong`
        (known answers of that confidence, and how many of the labels they contradict), `n_gold` and `needed` (known
        answers, and how many it takes for anything to be accepted at all), and `queue` (the items to send, those whose
        label is most probably wrong first: `SENT`).
    """
    if not 0.5 <= agreement < 1.0:
        msg = f"agreement is {agreement:g}; it is a share from 0.5 to below 1, such as 0.95."
        raise UsageError(msg)
    run = as_run(run)
    parts = []
    for asked in questions_asked(run, question):
        known = known_items(run, asked)
        sources = {"consensus": known.p_ik, "plain vote": _smoothed(known)}
        tried = {
            by: accept(
                _confidence(p_ik), highest(p_ik) != known.gold_i, known.gold_i != UNKNOWN, 1.0 - agreement, risk / 2
            )
            for by, p_ik in sources.items()
            if not known.evidence
        }
        parts.append(_escalation(run, known, sources, tried, agreement, risk))
    return parts


def _smoothed(known: KnownItems) -> Floats:
    counts_ik = known.counts_ik + 0.5
    return np.asarray(counts_ik / counts_ik.sum(axis=1, keepdims=True))


def _confidence(p_ik: Floats) -> Floats:
    return np.asarray(tie_key(p_ik.max(axis=1)))


def fewest(wrong_share: float, risk: float) -> int:
    """Return how many known answers without an error show that no more than a share is wrong.

    Examples
    --------
    >>> fewest(0.05, 0.05)
    59
    """
    return math.ceil(math.log(risk) / math.log(1.0 - wrong_share))


def accept(
    confidence_i: Floats, wrong_i: Ints, known_i: Ints, wrong_share: float, risk: float
) -> tuple[float, int, int] | None:
    """Return the least confidence at which labels can be accepted, its known answers and how many are wrong.

    None where none can. Which confidences are tested depends on the confidences alone, never on the answers.

    Parameters
    ----------
    confidence_i
        How sure each label is.
    wrong_i, known_i
        Whether each is wrong, and for which of them that is known.
    wrong_share
        Share of wrong ones that is allowed among the accepted.
    risk
        How probable it may be that more are wrong.

    Examples
    --------
    Sure labels that are right and others that are coin tosses:

    >>> sure = np.repeat([0.99, 0.6], 100)
    >>> wrong = np.where(np.arange(200) < 100, False, np.arange(200) % 2 == 0)
    >>> accept(sure, wrong, np.ones(200, dtype=bool), 0.05, 0.05)
    (0.99, 100, 0)
    """
    order = np.sort(confidence_i[known_i])[::-1]
    if len(order) < fewest(wrong_share, risk):
        return None
    # The first test decides whether there is a second: where there are enough answers, it forgives one error.
    first = next((n for n in range(1, len(order)) if _bound(1, n, risk) <= wrong_share), fewest(wrong_share, risk))
    sizes = np.unique(np.linspace(first, len(order), min(STEPS, len(order) - first + 1)).round().astype(int))
    found: tuple[float, int, int] | None = None
    for level in dict.fromkeys(order[sizes - 1].tolist()):
        here = known_i & (confidence_i >= level)
        n, wrong = int(here.sum()), int((wrong_i & here).sum())
        if _bound(wrong, n, risk) > wrong_share:
            break
        found = (float(level), n, wrong)
    return found


def _bound(wrong: int, n: int, risk: float) -> float:
    """Return what the share of wrong ones is at most, by Clopper and Pearson."""
    return float(exact_interval(np.asarray(wrong), np.asarray(n), 1.0 - 2.0 * risk)[1])


def _escalation(
    run: Run, known: KnownItems, sources: dict[str, Floats], tried: dict[str, tuple[float, int, int] | None],
    agreement: float, risk: float,
) -> dict[str, Any]:  # fmt: skip
    open_i = known.gold_i == UNKNOWN
    counts = {
        by: 0 if level is None else int((open_i & (_confidence(sources[by]) >= level[0])).sum())
        for by, level in tried.items()
    }
    by = max(counts, key=lambda name: counts[name], default="consensus")
    threshold, tested, wrong = tried.get(by) or (None, 0, 0)
    sent_i = open_i if threshold is None else open_i & (_confidence(sources[by]) < threshold)
    queue = _queue(run, known, sources[by], np.flatnonzero(sent_i))
    return {"question": known.question.name, "by": by, "threshold": threshold, "accepted": counts.get(by, 0),
            "sent": int(sent_i.sum()), "tested": tested, "wrong": wrong, "n_gold": known.n_gold,
            "needed": fewest(1.0 - agreement, risk / 2), "queue": queue}  # fmt: skip


def _queue(run: Run, known: KnownItems, p_ik: Floats, sent: Ints) -> pl.DataFrame:
    """Rank the items to send by how probably their label is wrong: as gold has corrected p, where it has."""
    wrong_i = 1.0 - p_ik.max(axis=1)
    if known.question.positive is not None:
        corrected = run.table("items", where=pl.col("question") == known.question.name)["p_calibrated"]
        if corrected.is_not_null().all():
            p_i = corrected.to_numpy()
            at = known.question.labels.index(known.question.positive)
            wrong_i = np.where(highest(p_ik) == at, 1.0 - p_i, p_i)
    order = sent[np.argsort(-tie_key(wrong_i[sent]), kind="stable")]
    labels = highest(p_ik)[order]
    rows: dict[str, Any] = {
        "rank": np.arange(1, len(order) + 1),
        "question": [known.question.name] * len(order),
        "item": known.items.gather(order).cast(pl.String),
        "label": [known.question.labels[int(k)] for k in labels],
        "confidence": p_ik.max(axis=1)[order],
        "expected_gain": wrong_i[order],
        "reason": [f"the label is wrong with a probability of {wrong_i[i]:.0%}" for i in order],
    }
    return pl.DataFrame(rows, schema=SENT)


def sentence_of(part: Mapping[str, Any], agreement: float, risk: float) -> str:
    """Say what is accepted and what is sent.

    Examples
    --------
    >>> part = {"question": "ok", "by": "consensus", "threshold": 0.9, "accepted": 1_412, "sent": 188, "tested": 150,
    ...         "wrong": 2}
    >>> print(sentence_of(part, 0.95, 0.1))
    ok: accept 1,412 labels of the consensus (confidence 0.900 or more), send 188 to people. At least 95% of the
    accepted ones agree with people, with a probability of 90%: 2 of 150 known answers there differ.
    >>> print(sentence_of(part | {"accepted": 0, "sent": 0}, 0.95, 0.1))
    ok: all answers are known: there is nothing to accept, and nothing to send.
    """
    name, sent = part["question"], part["sent"]
    if not part["accepted"] + sent:
        return f"{name}: all answers are known: there is nothing to accept, and nothing to send."
    if part["threshold"] is None:
        why = "even the surest labels are wrong too often"
        if part["n_gold"] < part["needed"]:
            why = f"{part['n_gold']:,} answers are known, and it takes {part['needed']:,} without an error"
        return f"{name}: nothing can be accepted at {agreement:.0%} agreement: {why}. All {sent:,} go to people."
    return (
        f"{name}: accept {part['accepted']:,} labels of the {part['by']} (confidence {part['threshold']:.3f} or more), "
        f"send {sent:,} to people. At least {agreement:.0%} of the accepted ones agree with people, with a "
        f"probability of {1.0 - risk:.0%}: {part['wrong']:,} of {part['tested']:,} known answers there differ."
    )
