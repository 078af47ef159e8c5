"""What the report says of the paper's model, against the tables and two fits."""

from __future__ import annotations

import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.report.sections import changed_in_words, one_label_section


@pytest.fixture(scope="module")
def run():
    votes = me.simulate_votes(n_items=200, n_annotators=6, votes_per_item=4, seed=5).votes
    return me.audit(votes, draws=50)


def test_labels_and_rates_are_those_of_two_fits(run):
    votes = run.consensus.votes
    paper, mixed = (me.fit(votes, model=model, draws=50, dependence="off") for model in ("paper", "mixed"))
    changed = int((me.fit(votes, model="paper", draws=0).fits[0].label_i != mixed.fits[0].label_i).sum())
    section = one_label_section(run)
    assert section["labels"] == [f"{changed} of 200 labels ({changed / 200:.1%}) would be different."]
    table = me.audit_rules(votes, paper, rules=["majority"]).frame
    close = table.filter(question="(all)", label="(all)", metric="fnr")["value"][0]
    [row] = [row for row in section["rates"] if (row["rule"], row["rate"]) == ("majority", "missed yes")]
    # The paper's p at its mode, and its mean over draws, label nearly every item alike.
    assert row["if_one_label"] == pytest.approx(close, abs=0.03)
    assert len({tuple(row.values()) for row in section["rates"]}) == len(section["rates"])
    assert not {"strict-majority", "share"} <= {row["rule"] for row in section["rates"]}
    pooled = run.table("audit").filter(question="(all)", label="(all)", rule="majority", metric="fnr")
    assert row["value"] == pooled["value"][0]


def test_there_is_none_under_the_papers_model():
    votes = me.simulate_votes(n_items=40, n_annotators=4, votes_per_item=3, seed=5).votes
    assert one_label_section(me.audit(votes, draws=20, model="paper")) is None


def test_domains_with_most_changes_come_first():
    rows = [("q", "(all)", 100, 9), ("q", "a", 50, 2), ("q", "b", 10, 4), ("q", "c", 20, 0), ("q", "d", 20, 3)]
    changed = pl.DataFrame(rows, schema=["question", "domain", "n_items", "changed"], orient="row")
    said = changed_in_words(changed.row(0, named=True), changed, several=True)
    assert said == "q: 9 of 100 labels (9.0%) would be different: most often in b (4 of 10), d (3 of 20), a (2 of 50)."
