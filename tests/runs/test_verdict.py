"""The figures of the first screen are those of the audit."""

from __future__ import annotations

from moral_entropy.runs.item_sums import item_sums
from moral_entropy.runs.run import read_run
from moral_entropy.runs.tables import read_table
from moral_entropy.runs.verdict import headlines


def test_headlines_are_the_audits_figures(plain_run):
    run = read_run(plain_run)
    shown = {headline.name: headline for headline in headlines(run, item_sums(run))}
    pooled = read_table(plain_run, "audit").filter(question="(all)", domain="(all)", label="(all)")
    wanted = pooled.filter(rule="any", metric="fdr", reference="consensus").row(0, named=True)
    figure = shown["flagged by one vote, unsupported"]
    assert (figure.value, figure.low) == (f"{wanted['value']:.1%}", f"{wanted['low']:.1%}")
    items = read_table(plain_run, "items")
    by_hand = sum(min(p, 1 - p) for p in items["p"]) / items.height
    assert shown["consensus labels expected wrong"].value == f"{by_hand:.1%}"
    assert 3 <= len(shown) <= 4


def test_with_several_labels_differing_is_about_the_label_itself(many_run):
    run = read_run(many_run)
    figure = next(h for h in headlines(run, item_sums(run)) if h.name == "plurality differs from the consensus")
    rows = read_table(many_run, "audit").filter(rule="plurality", metric="disagreement", label="(multiclass)")
    wanted = rows.filter(reference="consensus", domain="(all)", question="tone")["value"].item()
    assert figure.value == f"{wanted:.1%}"
