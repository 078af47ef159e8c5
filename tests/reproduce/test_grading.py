"""Every reading of a rate: against loops over items, and against the audit of one corpus."""

from __future__ import annotations

import polars as pl
import pytest
from support import posterior_draws

from moral_entropy.reproduce.grading import RULES, grade_rules
from moral_entropy.rules.table import audit_rules

ANSWERS = {
    "any": lambda yes, votes: yes >= 1,
    "majority": lambda yes, votes: 2 * yes >= votes,
    "two-vote": lambda yes, votes: yes >= 2,
}


@pytest.fixture(scope="module")
def figures(fitted):
    return grade_rules(fitted)


@pytest.fixture(scope="module")
def items(fitted):
    """A row for every text and foundation: where it is, what the rules say, p, gold, and p in every draw."""
    rows = []
    for corpus, consensus in fitted.items():
        for one in consensus.fits:
            p_s = posterior_draws(one)[:, :, 1]
            for at in range(one.ballot.n_items):
                votes = consensus.votes
                row = {"corpus": corpus, "foundation": one.question}
                row["domain"] = votes.domains[votes.domain_i[one.ballot.item_i[at]]]
                yes, n_votes = int(one.ballot.counts_ik[at, 1]), int(one.ballot.votes_i[at])
                row |= {rule: answer(yes, n_votes) for rule, answer in ANSWERS.items()}
                row |= {"true": one.p_ik[at, 1] >= 0.5, "gold": one.ballot.gold_i[at] == 1}
                rows.append(row | {"draws": p_s[:, at] >= 0.5})
    return rows


def rate(rows, rule, metric, truth=lambda row: row["true"]):
    among = [row for row in rows if bool(truth(row)) == (metric == "fnr")]
    wrong = [row for row in among if row[rule] != bool(truth(row))]
    return len(wrong) / len(among) if among else None


def split(rows, *names):
    parts = {}
    for row in rows:
        parts.setdefault(tuple(row[name] for name in names), []).append(row)
    return parts.values()


def mean_rate(parts, rule, metric, truth=lambda row: row["true"]):
    rates = [found for part in parts if (found := rate(part, rule, metric, truth)) is not None]
    return sum(rates) / len(rates) if rates else None


def get(figures, reference="consensus", **where):
    found = figures.filter(**where, reference=reference)
    assert found.height == 1, where
    return found.row(0, named=True)


@pytest.mark.parametrize("corpus", ["mftc", "mfrc", "emfd", "(all)"])
@pytest.mark.parametrize("metric", ["fpr", "fnr"])
@pytest.mark.parametrize("rule", RULES)
def test_readings_of_a_corpus(figures, items, corpus, rule, metric):
    own = [row for row in items if corpus in (row["corpus"], "(all)")]
    at = {"corpus": corpus, "rule": rule, "metric": metric}
    pooled, mean, cells = (
        get(figures, **at, domain=domain, foundation=foundation)["value"]
        for domain, foundation in (("(all)", "(all)"), ("(all)", "(mean)"), ("(mean)", "(mean)"))
    )
    assert pooled == pytest.approx(rate(own, rule, metric))
    assert mean == pytest.approx(mean_rate(split(own, "foundation"), rule, metric))
    assert cells == pytest.approx(mean_rate(split(own, "corpus", "domain", "foundation"), rule, metric))
    care = [row for row in own if row["foundation"] == "care"]
    assert get(figures, **at, domain="(all)", foundation="care")["value"] == pytest.approx(rate(care, rule, metric))


@pytest.mark.parametrize("rule", RULES)
def test_readings_of_a_domain(figures, items, rule):
    for corpus, domain in (("mftc", "BLM"), ("emfd", "Untagged"), ("mfrc", "US Politics")):
        own = [row for row in items if (row["corpus"], row["domain"]) == (corpus, domain)]
        at = {"corpus": corpus, "domain": domain, "rule": rule, "metric": "fpr"}
        assert get(figures, **at, foundation="(all)")["value"] == pytest.approx(rate(own, rule, "fpr"))
        mean = mean_rate(split(own, "foundation"), rule, "fpr")
        assert get(figures, **at, foundation="(mean)")["value"] == pytest.approx(mean)


def test_against_gold(figures, items):
    own = [row for row in items if row["corpus"] == "emfd"]
    cells = mean_rate(split(own, "domain", "foundation"), "two-vote", "fnr", lambda row: row["gold"])
    at = {"corpus": "emfd", "rule": "two-vote", "metric": "fnr", "domain": "(mean)", "foundation": "(mean)"}
    found = get(figures, reference="gold", **at)
    assert found["value"] == pytest.approx(cells)
    assert found["low"] <= found["value"] <= found["high"]


@pytest.mark.parametrize("corpus", ["mftc", "emfd"])
def test_one_corpus_is_graded_as_the_audit_does(figures, fitted, corpus):
    consensus = fitted[corpus]
    audit = audit_rules(consensus.votes, consensus, rules=RULES, reference="consensus").frame
    audit = audit.rename({"question": "foundation", "value": "audit"}).select(
        "domain", "foundation", "rule", "metric", "audit", audit_low="low", audit_high="high"
    )
    own = figures.filter(corpus=corpus, reference="consensus").join(
        audit, on=["domain", "foundation", "rule", "metric"]
    )
    assert own.height == 6 * 3 * 7 * (1 + len(consensus.votes.domains))
    assert own["value"].is_null().equals(own["audit"].is_null())
    assert (own["value"] - own["audit"]).abs().max() < 1e-12
    assert own["low"].null_count() == own["audit_low"].null_count() == own.height


def test_every_place_is_there_once(figures):
    keys = ["corpus", "domain", "foundation", "rule", "reference", "metric"]
    assert not figures.select(keys).is_duplicated().any()
    cells = figures.filter(metric="fpr", rule="any", reference="consensus")
    named = cells.filter(~pl.col("domain").is_in(["(all)", "(mean)"]), ~pl.col("foundation").str.starts_with("("))
    assert named.height == 75
