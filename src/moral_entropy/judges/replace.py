"""May this language model replace my annotators? The alternative-annotator test.

Calderon, Reichart & Dror (2025), arXiv 2501.10970. One person after the other is set aside; on each item the model and
that person are compared with the people who are left. The model wins against the person where it is as close to them
up to ε; it passes where it wins against at least half of the people.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import stdtr

from moral_entropy.judges.panel import Panel
from moral_entropy.judges.roles import LLM, PERSON, Role
from moral_entropy.judges.values import Quantity
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

FEWEST_ITEMS = 30
"""Items that a person must share with the model: below, the t-test is not to be relied on."""

FEWEST_PEOPLE = 2
"""People that an item must have."""

FALSE_SHARE = 0.05
"""Share of false wins that is allowed (Benjamini and Yekutieli)."""

PASSES = 0.5
"""Share of people against whom a model must win."""

REPLACE = pl.Schema(
    {
        **dict.fromkeys(("question", "judge"), pl.String()),
        **dict.fromkeys(("people", "left_out", "items"), pl.Int64()),
        **dict.fromkeys(("winning_rate", "advantage", "epsilon"), pl.Float64()),
        "passes": pl.Boolean(),
        "text": pl.String(),
    }
)


def may_replace(panel: Panel, roles: Sequence[Role], quantity: Quantity, epsilon: float = 0.2) -> pl.DataFrame:
    """Test for every language model whether it may replace the people of the panel: `REPLACE`.

    Parameters
    ----------
    panel, roles
        The votes, and who the judges are.
    quantity
        What the labels count; of a mean, closeness is the root of the mean squared distance, else the share of people
        who say the same.
    epsilon
        By how much people may be the better ones before it counts.
    """
    people = [j for j, role in enumerate(roles) if role.role == PERSON]
    models = [j for j, role in enumerate(roles) if role.role == LLM]
    value_k = quantity.value_k if quantity.name == "mean" else None
    rows = []
    for j in models if len(people) >= FEWEST_PEOPLE else []:
        found = alternative_annotator(panel.vote_ji[j], panel.vote_ji[people], epsilon, value_k)
        if found is not None:
            rows.append((panel.question.name, panel.judges[j], *_row(found, panel.judges[j], epsilon)))
    return pl.DataFrame(rows, schema=REPLACE, orient="row")


def _row(found: tuple[Floats, Floats, Ints, int], judge: str, epsilon: float) -> tuple[object, ...]:
    p_h, advantage_h, n_h, left_out = found
    wins, people = int(false_discoveries(p_h, FALSE_SHARE).sum()), len(p_h)
    rate = wins / people
    passes = bool(rate >= PASSES)
    better = f"as good as a randomly chosen person on {advantage_h.mean():.0%} of the items"
    text = (
        f"{judge} {'may' if passes else 'may not'} replace the {people} people: it stands for the others as well as "
        f"the person set aside, up to {epsilon:g}, for {wins} of {people}. It is {better}."
    )
    return people, left_out, int(n_h.max()), rate, float(advantage_h.mean()), epsilon, passes, text


def alternative_annotator(
    model_i: Ints, people_hi: Ints, epsilon: float, value_k: Floats | None = None
) -> tuple[Floats, Floats, Ints, int] | None:
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
        p-values, probabilities that the model is at least as close, and numbers of items, by person; and how many
        people have too few items. None where all have.
    """
    kept_i = (model_i != UNKNOWN) & ((people_hi != UNKNOWN).sum(axis=0) >= FEWEST_PEOPLE)
    model_i, people_hi = model_i[kept_i], people_hi[:, kept_i]
    p_values, advantages, counts = [], [], []
    for h, person_i in enumerate(people_hi):
        some_i = person_i != UNKNOWN
        if some_i.sum() < FEWEST_ITEMS:
            continue
        others_hi = np.delete(people_hi, h, axis=0)[:, some_i]
        close_person, close_model = (
            tie_key(_closeness(one_i, others_hi, value_k)) for one_i in (person_i[some_i], model_i[some_i])
        )
        as_good_i, better_i = close_model >= close_person, close_person >= close_model
        p_values.append(_p_value(better_i.astype(float) - as_good_i, epsilon))
        advantages.append(float(as_good_i.mean()))
        counts.append(int(some_i.sum()))
    if not counts:
        return None
    return np.array(p_values), np.array(advantages), np.array(counts), len(people_hi) - len(counts)


def _closeness(one_i: Ints, others_hi: Ints, value_k: Floats | None) -> Floats:
    seen_hi = others_hi != UNKNOWN
    n_i = seen_hi.sum(axis=0)
    if value_k is None:
        return np.asarray(((others_hi == one_i) & seen_hi).sum(axis=0) / n_i)
    apart_hi = np.where(seen_hi, value_k[np.maximum(others_hi, 0)] - value_k[one_i], 0.0)
    return np.asarray(-np.sqrt((apart_hi**2).sum(axis=0) / n_i))


def _p_value(difference_i: Floats, epsilon: float) -> float:
    """Return the p-value of the one-sided t-test that the mean difference is at least ε."""
    n, mean = len(difference_i), float(difference_i.mean())
    se = float(difference_i.std(ddof=1)) / np.sqrt(n)
    if se == 0.0:
        return 0.0 if mean < epsilon else 1.0
    return float(stdtr(n - 1, (mean - epsilon) / se))


def false_discoveries(p_h: Floats, share: float) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected so that at most a share of them is expected to be so falsely.

    Benjamini & Yekutieli (2001): valid whatever the dependence between the tests.

    Examples
    --------
    >>> false_discoveries(np.array([0.001, 0.04, 0.2]), 0.05).tolist()
    [True, False, False]
    """
    n = len(p_h)
    order = np.argsort(p_h, kind="stable")
    allowed = np.arange(1, n + 1) / n * share / (1.0 / np.arange(1, n + 1)).sum()
    below = np.flatnonzero(p_h[order] <= allowed)
    rejected = np.zeros(n, dtype=np.bool_)
    rejected[order[: below[-1] + 1 if len(below) else 0]] = True
    return rejected
