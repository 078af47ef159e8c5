"""People and language models: whether a model may replace people, and which labels need no person's look.

The first is the alternative-annotator test (Calderon, Reichart & Dror 2025, arXiv 2501.10970). One person after the
other is set aside; on each item the model and that person are compared with the people who are left. The model wins
against the person where it is as close to them up to ε; it passes where it wins against at least half of the people.

The second is as in "Trust or Escalate" (Jung, Brahman & Choi 2024, arXiv 2407.18370): confidences are tested from the
highest down on known answers, each by the exact bound of Clopper and Pearson, and the first that fails ends it (fixed-
sequence testing): so the promise holds however many are tested. The consensus and the plain vote are both tried, at
half the risk each, and whichever accepts more is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import UsageError
from moral_entropy.judges.known import KnownItems, known_items, questions_of, vote_matrix
from moral_entropy.judges.values import Quantity, schema
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.runs.run import Run, as_run
from moral_entropy.ties import highest, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

FEWEST_ITEMS = 30
"""Items that a person must share with the model: below, the t-test is not to be relied on."""

FEWEST_PEOPLE = 2
"""People that an item must have."""

FALSE_SHARE = 0.05
"""Share of false wins that is allowed (Benjamini and Yekutieli)."""

PASSES = 0.5
"""Share of people against whom a model must win."""

REPLACE = schema("text question judge", "int people left_out items", "float winning_rate advantage epsilon",
                 "bool passes", "text text")  # fmt: skip


def may_replace(run: Run, reference: KnownItems, quantity: Quantity, epsilon: float = 0.2) -> pl.DataFrame:
    """Test for every language model whether it may replace the people: `REPLACE`.

    Parameters
    ----------
    run, known
        The run, and the items of one question with who judges and who the people are.
    quantity
        What the labels count; of a mean, closeness is the root of the mean squared distance, else the share of people
        who say the same.
    epsilon
        By how much people may be the better ones before it counts.
    """
    question, rows = reference.question, []
    if len(reference.people) >= FEWEST_PEOPLE:
        votes = run.table("votes", where=pl.col("question") == question.name)
        model_ji, people_hi = (vote_matrix(votes, reference.items, names, list(question.labels))
                               for names in (reference.judges, reference.people))  # fmt: skip
        value_k = quantity.value_k if quantity.name == "mean" else None
        for judge, model_i in zip(reference.judges, model_ji, strict=True):
            if (test := alternative_annotator(model_i, people_hi, epsilon, value_k)) is None:
                continue
            win_h, advantage_h, n_h, left_out = test
            wins, n_people, advantage = int(win_h.sum()), len(win_h), float(advantage_h.mean())
            passes = wins >= PASSES * n_people
            text = (
                f"{judge} {'may' if passes else 'may not'} replace people: as close to the others, up to {epsilon:g}, "
                f"as {wins} of {n_people} people; as good as a random person on {advantage:.0%} of the items."
            )
            rows.append((question.name, judge, n_people, left_out, int(n_h.max()), wins / n_people, advantage,
                         epsilon, passes, text))  # fmt: skip
    return pl.DataFrame(rows, schema=REPLACE, orient="row")


def alternative_annotator(
    model_i: Ints, people_hi: Ints, epsilon: float, value_k: Floats | None = None
) -> tuple[NDArray[np.bool_], Floats, Floats, int] | None:
    """Compare a model with every person, by how close both are to the other people.

    Parameters
    ----------
    model_i, people_hi
        Votes of the model and of the people, or `UNKNOWN`.
    epsilon
        By how much the person may be the better one.
    value_k
        What the labels count, where closeness is a distance; None where labels are the same or not.

    Returns
    -------
    tuple or None
        Whether the model wins, the probability that it is at least as close, and the number of items, by person; and
        how many people have too few items. None where all have.
    """
    from scipy.stats import false_discovery_control

    common_i = (model_i != UNKNOWN) & ((people_hi != UNKNOWN).sum(axis=0) >= FEWEST_PEOPLE)
    model_i, people_hi = model_i[common_i], people_hi[:, common_i]
    rows = []
    for h, person_i in enumerate(people_hi):
        voted_i = person_i != UNKNOWN
        if voted_i.sum() < FEWEST_ITEMS:
            continue
        others_hi = np.delete(people_hi, h, axis=0)[:, voted_i]
        close_person, close_model = (
            tie_key(_closeness(vote_i, others_hi, value_k)) for vote_i in (person_i[voted_i], model_i[voted_i])
        )
        as_good_i, better_i = close_model >= close_person, close_person >= close_model
        rows.append((_p_value(better_i.astype(float) - as_good_i, epsilon), as_good_i.mean(), voted_i.sum()))
    if not rows:
        return None
    p_h, advantage_h, n_h = np.array(rows).T
    # Benjamini & Yekutieli (2001): valid whatever the dependence between the tests.
    win_h = false_discovery_control(p_h, method="by") <= FALSE_SHARE
    return win_h, advantage_h, n_h, len(people_hi) - len(rows)


def _closeness(vote_i: Ints, others_hi: Ints, value_k: Floats | None) -> Floats:
    seen_hi = others_hi != UNKNOWN
    n_i = seen_hi.sum(axis=0)
    if value_k is None:
        return np.asarray(((others_hi == vote_i) & seen_hi).sum(axis=0) / n_i)
    apart_hi = np.where(seen_hi, value_k[np.maximum(others_hi, 0)] - value_k[vote_i], 0.0)
    return np.asarray(-np.sqrt((apart_hi**2).sum(axis=0) / n_i))


def _p_value(difference_i: Floats, epsilon: float) -> float:
    """Return the p-value of the one-sided t-test that the mean difference is at least ε."""
    from scipy.stats import ttest_1samp

    if difference_i.std() == 0.0:
        return float(difference_i[0] >= epsilon)
    return float(ttest_1samp(difference_i, epsilon, alternative="less").pvalue)


# --- What to accept, and what to send to people -----------------------------------------------------------------------

STEPS = 40
"""Confidences that are tested at most."""

SENT = schema("int rank", "text question item label", "float confidence expected_gain", "text reason")


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
    for part in questions_of(run, question):
        reference = known_items(run, part)
        known_i = reference.known_i
        best: tuple[Any, ...] = (0, "consensus", reference.p_ik, (None, 0, 0), ~known_i)
        smooth_ik = reference.counts_ik + 0.5
        sources = {"consensus": reference.p_ik, "plain vote": smooth_ik / smooth_ik.sum(axis=1, keepdims=True)}
        for by, p_ik in sources.items() if not reference.evidence else ():
            confidence_i, wrong_i = tie_key(p_ik.max(axis=1)), highest(p_ik) != reference.gold_i
            level = accept(confidence_i, wrong_i, known_i, 1.0 - agreement, risk / 2)
            n_accepted = 0 if level is None else int((~known_i & (confidence_i >= level[0])).sum())
            if level is not None and (by == "consensus" or n_accepted > best[0]):
                best = (n_accepted, by, p_ik, level, ~known_i & (confidence_i < level[0]))
        n_accepted, by, p_ik, (threshold, tested, wrong), sent_i = best
        parts.append({
            "question": part.name, "by": by, "threshold": threshold, "accepted": n_accepted, "sent": int(sent_i.sum()),
            "tested": tested, "wrong": wrong, "n_gold": reference.n_known,
            "needed": fewest(1.0 - agreement, risk / 2), "queue": _queue(reference, p_ik, np.flatnonzero(sent_i)),
        })  # fmt: skip
    return parts


def fewest(wrong_share: float, risk: float) -> int:
    """Return how many known answers without an error show that no more than a share is wrong.

    Examples
    --------
    >>> fewest(0.05, 0.05)
    59
    """
    return math.ceil(math.log(risk) / math.log(1.0 - wrong_share))


def accept(
    confidence_i: Floats, wrong_i: NDArray[np.bool_], known_i: NDArray[np.bool_], wrong_share: float, risk: float
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
    accepted: tuple[float, int, int] | None = None
    for level in dict.fromkeys(order[sizes - 1].tolist()):
        here = known_i & (confidence_i >= level)
        n, wrong = int(here.sum()), int((wrong_i & here).sum())
        if _bound(wrong, n, risk) > wrong_share:
            break
        accepted = (float(level), n, wrong)
    return accepted


def _bound(wrong: int, n: int, risk: float) -> float:
    """Return what the share of wrong ones is at most, by Clopper and Pearson."""
    return float(exact_interval(np.asarray(wrong), np.asarray(n), 1.0 - 2.0 * risk)[1])


def _queue(reference: KnownItems, p_ik: Floats, rows: Ints) -> pl.DataFrame:
    """Rank the items to send by how probably their label is wrong: as known answers weigh votes, where they do."""
    label_i, items = highest(p_ik), np.arange(len(p_ik))
    wrong_i = 1.0 - (reference.guess_ik if reference.n_known else p_ik)[items, label_i]
    order = rows[np.argsort(-tie_key(wrong_i[rows]), kind="stable")]
    columns = {
        "rank": np.arange(1, len(order) + 1),
        "question": [reference.question.name] * len(order),
        "item": reference.items.gather(order).cast(pl.String),
        "label": [reference.question.labels[k] for k in label_i[order].tolist()],
        "confidence": p_ik.max(axis=1)[order],
        "expected_gain": wrong_i[order],
        "reason": [f"the label is wrong with a probability of {wrong_i[i]:.0%}" for i in order],
    }
    return pl.DataFrame(columns, schema=SENT)


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
    name, n_sent = part["question"], part["sent"]
    if not part["accepted"] + n_sent:
        return f"{name}: all answers are known: there is nothing to accept, and nothing to send."
    if part["threshold"] is None:
        why = "even the surest labels are wrong too often"
        if part["n_gold"] < part["needed"]:
            why = f"{part['n_gold']:,} answers are known, and it takes {part['needed']:,} without an error"
        return f"{name}: nothing can be accepted at {agreement:.0%} agreement: {why}. All {n_sent:,} go to people."
    return (
        f"{name}: accept {part['accepted']:,} labels of the {part['by']} (confidence {part['threshold']:.3f} or more), "
        f"send {n_sent:,} to people. At least {agreement:.0%} of the accepted ones agree with people, with a "
        f"probability of {1.0 - risk:.0%}: {part['wrong']:,} of {part['tested']:,} known answers there differ."
    )
