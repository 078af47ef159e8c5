"""The counts the page grades rules from: against loops over the votes, and against the audit."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import polars as pl
import pytest

from moral_entropy.report import item_sums as module
from moral_entropy.report.item_sums import vote_cells
from moral_entropy.runs.folder import read_table
from moral_entropy.runs.run import read_run


def rates(cells, says):
    """Rates of a rule over cells, exactly."""
    fp = fn = tp = tn = Fraction(0)
    for row in cells.iter_rows(named=True):
        no, yes = Fraction(row["no"]), Fraction(row["yes"])
        if says(row["votes"], row["positive"]):
            fp, tp = fp + no, tp + yes
        else:
            tn, fn = tn + no, fn + yes
    share = lambda part, all_: float(part / all_) if all_ else None  # noqa: E731
    return {"fpr": share(fp, fp + tn), "fnr": share(fn, fn + tp), "fdr": share(fp, fp + tp), "for": share(fn, fn + tn)}


RULES = {
    "any": lambda votes, positive: positive >= 1,
    "two-vote": lambda votes, positive: positive >= 2,
    "majority": lambda votes, positive: 2 * positive >= votes,
    "unanimous": lambda votes, positive: positive == votes,
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["plain", "many"])
def test_every_figure_of_the_audit_can_be_counted_from_cells(kind, rule, request):
    path = request.getfixturevalue(f"{kind}_run")
    cells = vote_cells(read_run(path))
    audit = read_table(path, "audit").filter(reference="consensus", rule=rule)
    audit = audit.filter(~pl.col("question").is_in(["(mean)"]), pl.col("label") != "(multiclass)")
    seen = 0
    for (question, label, domain), rows in audit.group_by("question", "label", "domain"):
        target = pl.col("target").str.starts_with(str(question))
        if kind == "many" and label != "(all)":
            target = pl.col("target") == f"{question}: {label}"
        some = cells.filter(
            pl.lit(question == "(all)") | target, pl.lit(domain == "(all)") | (pl.col("domain") == domain)
        )
        expected = rates(some, RULES[rule])
        for metric, value in rows.filter(pl.col("metric").is_in(list(expected))).select("metric", "value").iter_rows():
            assert value == pytest.approx(expected[metric], abs=1e-12), (question, label, domain, metric)
            seen += 1
    assert seen >= 40


def test_cells_count_what_was_voted(plain_run):
    cells = vote_cells(read_run(plain_run))
    votes = read_table(plain_run, "votes")
    per_item = Counter()
    for question, item, label in votes.select("question", "item", "label").iter_rows():
        per_item[question, item, label] += 1
    pairs = Counter()
    for question, item in {(q, i) for q, i, _ in per_item}:
        n, positive = sum(per_item[question, item, label] for label in "01"), per_item[question, item, "1"]
        pairs[question, n, positive] += 1
    found = cells.group_by("target", "votes", "positive").agg((pl.col("no") + pl.col("yes")).sum().alias("n"))
    assert {(t, v, p): n for t, v, p, n in found.iter_rows()} == dict(pairs)


def test_too_many_cells_pool_the_domains(plain_run, monkeypatch):
    all_cells = vote_cells(read_run(plain_run))
    monkeypatch.setattr(module, "MAX_CELLS", 5)
    pooled = vote_cells(read_run(plain_run))
    assert pooled["domain"].unique().to_list() == ["(all)"]
    assert pooled["yes"].sum() == all_cells["yes"].sum() and pooled.height < all_cells.height
