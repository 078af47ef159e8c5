"""The paper's graphical abstract: one sentence, three foundations, and an annotator who over-flags care.

Fairness is flagged by two clean annotators, loyalty by a clean one and by c3, care by c3 alone. The union flags all
three. The Bayesian consensus must discount care most and fairness least, because of what c3's confusion matrices say,
foundation by foundation.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.explanation import explain_item

FLAGS = {"care": ("c3",), "fairness": ("c1", "c2"), "loyalty": ("c3", "c4")}
PEOPLE = ("c1", "c2", "c3", "c4")


def past_votes(n_items=600, seed=2):
    """Draw many other sentences: everybody is good, but c3 flags care on every other sentence without it."""
    rng, rows = np.random.default_rng(seed), []
    for question in FLAGS:
        truth_i = rng.random(n_items) < 0.25
        for person in PEOPLE:
            alarm = 0.5 if (person, question) == ("c3", "care") else 0.06
            yes_i = rng.random(n_items) < np.where(truth_i, 0.75, alarm)
            rows += [(f"past{i}", person, question, int(yes)) for i, yes in enumerate(yes_i)]
    return rows


@pytest.fixture(scope="module")
def run():
    sentence = [("sentence", person, question, int(person in flagged))
                for question, flagged in FLAGS.items() for person in PEOPLE]  # fmt: skip
    columns = ["item", "annotator", "question", "label"]
    return me.audit(pl.DataFrame(past_votes() + sentence, schema=columns, orient="row"), model="paper", draws=200)


def test_care_is_discounted_and_the_union_is_not(run):
    p = dict(run.items.filter(item="sentence").select("question", "p").iter_rows())
    # The paper has .15, .58 and .78: which number it is depends on the votes; the order does not.
    assert p["care"] < 0.15 < 0.5 < min(p["loyalty"], p["fairness"])
    votes = run.items.filter(item="sentence").select("question", "n_positive")
    assert all(n >= 1 for _, n in votes.iter_rows())


def test_explain_says_who_is_discounted(run):
    [care], [loyalty] = (explain_item(run, "sentence", question=name) for name in ("care", "loyalty"))

    def evidence(explanation):
        return {step.annotator: step.contribution for step in explanation.steps if step.annotator == "c3"}["c3"]

    # The same yes of the same person is worth little for care and much for loyalty.
    assert 0 < evidence(care) < 1.0 < evidence(loyalty)
