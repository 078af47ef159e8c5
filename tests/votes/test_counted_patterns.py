"""Vote patterns counted by an SQL engine or by polars are read as the votes they stand for: the same fit."""

from __future__ import annotations

import polars as pl
import pytest
from numpy.testing import assert_allclose

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.model.fit import fit
from moral_entropy.rules.table import audit_rules
from moral_entropy.votes.read import read_votes

PIVOT = "PIVOT votes ON annotator USING first(label) GROUP BY item, domain"
PATTERNS = "SELECT * EXCLUDE (item), count(*) AS count FROM per_item GROUP BY ALL"
"""As docs/how-to/large-sets.md has them."""


@pytest.fixture(scope="module")
def votes():
    """A row a vote, of a team of seven; every item has a domain."""
    ballot = simulate_votes(n_items=3_000, n_annotators=7, votes_per_item=4, seed=1).votes.ballots[0]
    item_v = pl.Series(range(ballot.n_items)).gather([i for i, n in enumerate(ballot.votes_i) for _ in range(n)])
    columns = {
        "item": item_v,
        "annotator": [f"judge_{code // 2}" for code in ballot.code_v],
        "label": [("no", "yes")[code % 2] for code in ballot.code_v],
        "domain": [("north", "south")[item % 2] for item in item_v],
    }
    return pl.DataFrame(columns)


def counted_by_polars(votes):
    per_item = votes.pivot(on="annotator", index=["item", "domain"], values="label")
    return per_item.drop("item").group_by(pl.all(), maintain_order=True).len("count")


def counted_by_duckdb(votes):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("votes", votes.to_arrow())
        connection.execute(f"CREATE TABLE per_item AS {PIVOT}")
        return connection.sql(PATTERNS).pl()


@pytest.mark.parametrize("counted", [counted_by_polars, counted_by_duckdb])
def test_a_counted_table_gives_the_fit_of_its_votes(votes, counted):
    patterns = counted(votes)
    assert patterns.height < 0.5 * votes["item"].n_unique()
    whole, brief = read_votes(votes), read_votes(patterns, count="count", domain="domain", format="wide")
    one, other = fit(whole, draws=100), fit(brief, draws=100)
    assert other.fits[0].ballot.count_i.sum() == whole.n_items
    assert_allclose(other.fits[0].search.log_posterior, one.fits[0].search.log_posterior, rtol=1e-12)
    assert_allclose(other.fits[0].confusion_akv, one.fits[0].confusion_akv, atol=1e-9)
    assert_allclose(other.fits[0].confusion_sakv, one.fits[0].confusion_sakv, atol=1e-8)
    figures = [audit_rules(read, consensus).frame for read, consensus in ((whole, one), (brief, other))]
    numbers = ("value", "low", "high")
    assert figures[1].drop(numbers).equals(figures[0].drop(numbers))
    for bound in numbers:
        assert_allclose(figures[1][bound].to_numpy(), figures[0][bound].to_numpy(), atol=1e-8)
