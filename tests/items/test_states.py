"""Votes counted once item by item, against the same done to all rows at once; queues and steps of copied judges."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from support import random_rows, votes_of

import moral_entropy as me
from moral_entropy.explanation import explain_item
from moral_entropy.items.states import counted_votes
from moral_entropy.model.copies import count_once
from moral_entropy.model.patterns import collapse
from moral_entropy.planning import next_votes

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


def test_votes_of_an_item_are_counted_as_those_of_all_rows_are():
    votes = votes_of(random_rows(np.random.default_rng(4), 80, 7, 3, share=0.7), 3)
    ballot, groups = votes.ballots[0], [(1, 2, 5), (0, 6)]
    cast = collapse(ballot)
    counted = count_once(cast, [np.array([1, 2, 5]), np.array([0, 6])])
    for i, row in enumerate(counted.row_i):
        by_voter = [divmod(int(code), 3) for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]]
        rows = [(i, who, label) for who, label in by_voter]
        found = counted_votes(pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row"), groups)
        codes = counted.code_v[counted.start_r[row] : counted.start_r[row + 1]]
        assert sorted(found.select("annotator", "label").rows()) == sorted(divmod(int(code), 3) for code in codes)
        assert sorted(found["at"].explode()) == list(range(len(by_voter)))


@pytest.fixture(scope="module")
def copied():
    """An audit of five judges, the last of whom copies the fourth."""
    rng = np.random.default_rng(8)
    truth_i = rng.integers(2, size=300)
    right = rng.random((300, 4)) < [0.85, 0.85, 0.85, 0.7]
    label_ia = np.where(right, truth_i[:, None], 1 - truth_i[:, None])
    label_ia = np.column_stack([label_ia, label_ia[:, 3]])
    rows = [(f"t{i}", "abcde"[a], label_ia[i, a]) for i in range(300) for a in range(5) if (i + a) % 6]
    return me.audit(pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row"), model="mixed", draws=50)


def test_copies_are_in_the_manifest_and_nobody_asks_the_silent_one(copied):
    [group] = copied.manifest["questions"][0]["counted_as_one"]
    assert sorted(group) == ["d", "e"]
    queue = next_votes(copied, 300)
    assert group[1] not in queue["annotator"].drop_nulls().to_list()


def test_copies_are_one_step_and_steps_add_up(copied):
    together = 0
    for row in copied.items.rows(named=True)[:60]:
        [told] = explain_item(copied, row["item"])
        odds = np.log(row["p_map"] / (1 - row["p_map"]))
        assert sum(step.contribution for step in told.steps) == pytest.approx(odds, abs=1e-9)
        together += any(step.annotator in ("d+e", "e+d") for step in told.steps)
    assert together > 30
