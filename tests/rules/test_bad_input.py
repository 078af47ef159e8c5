"""Options that make no sense, gold and published labels that are missing or strange."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_support import rich_votes

from moral_entropy.errors import RuleError, UsageError
from moral_entropy.model.fit import fit
from moral_entropy.rules.table import audit_rules
from moral_entropy.votes.table import UNKNOWN

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")


@pytest.fixture(scope="module")
def audited():
    votes = rich_votes(0)
    return votes, fit(votes, draws=5)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rules": ["anny"]}, RuleError, r"no rule 'anny'. Rules: any, majority"),
        ({"rules": []}, UsageError, "no rule to audit"),
        ({"rules": ["any", "any"]}, RuleError, "'any' is taken"),
        ({"reference": "truth"}, UsageError, "choose one of auto, consensus, gold, both"),
        ({"smoothing": -1}, UsageError, "pseudo-votes"),
        ({"cost_fp": -1}, UsageError, "false positive costs -1"),
    ],
)
def test_bad_options(audited, options, error, words):
    with pytest.raises(error, match=words):
        audit_rules(*audited, **options)


def without(votes, name):
    ballots = (replace(b, **{name: np.full(b.n_items, UNKNOWN, dtype=np.int16)}) for b in votes.ballots)
    return replace(votes, ballots=tuple(ballots))


def test_gold_for_no_item(audited):
    votes, consensus = audited
    bare = without(votes, "gold_i")
    assert audit_rules(bare, consensus).frame["reference"].unique().to_list() == ["consensus"]
    with pytest.raises(UsageError, match=r"none of 120 items has a gold label.*--gold"):
        audit_rules(bare, consensus, reference="gold")
    with pytest.raises(UsageError, match=r"published label.*--published"):
        audit_rules(without(votes, "published_i"), consensus, rules=["published"])


def test_votes_of_another_fit(audited):
    with pytest.raises(UsageError, match="fitted to other votes"):
        audit_rules(rich_votes(9), audited[1])


def test_gold_that_was_evidence_does_not_grade_the_consensus():
    votes = rich_votes(8, questions=("care",))
    table = audit_rules(votes, fit(votes, draws=10, use_gold=True))
    assert table.frame.filter(rule="consensus").height == 0
    assert table.reliability.height == 0
    assert table.frame.filter(rule="any", reference="gold").height > 0
