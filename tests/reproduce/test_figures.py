"""The corpora's table, entropies, dissent and counts: each computed again another way."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from moral_entropy.corpora.twins import twin
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.reproduce.figures import (
    SCHEMA,
    corpora_figures,
    counted_figures,
    dissent_figures,
    entropy_figures,
)

KEYS = ("corpus", "domain", "foundation", "metric")


def by_place(figures):
    found = {tuple(figure[key] for key in KEYS): figure["value"] for figure in figures}
    assert len(found) == len(figures)
    return found


def test_the_corpora_table(votes):
    found = by_place(corpora_figures(votes))
    total = 0
    for name in votes:
        table = twin(name, scale=0.02)
        for domain, part in [("(all)", table), *((key[0], part) for key, part in table.group_by("domain"))]:
            texts = part["item"].n_unique()
            pairs = part.select("item", "annotator").unique().height
            assert found[name, domain, "(all)", "texts"] == texts
            assert found[name, domain, "(all)", "annotations_per_text"] == pytest.approx(pairs / texts)
            flagged = part.filter(label=1, question="loyalty")["item"].n_unique()
            assert found[name, domain, "loyalty", "flagged"] == pytest.approx(flagged / texts)
        assert found[name, "(all)", "(all)", "annotators"] == table["annotator"].n_unique()
        total += table["item"].n_unique()
    assert found["(all)", "(all)", "(all)", "texts"] == total


def test_entropies(fitted):
    found = by_place(entropy_figures(fitted))
    shares = []
    for one in fitted["mftc"].fits:
        parts = decompose_entropy(one)
        domain_i = fitted["mftc"].votes.domain_i[one.ballot.item_i]
        for code, domain in enumerate(fitted["mftc"].votes.domains):
            inside = domain_i == code
            for metric, value_i in (("aleatoric", parts.aleatoric_i), ("epistemic", parts.epistemic_i)):
                assert found["mftc", domain, one.question, metric] == pytest.approx(value_i[inside].mean())
            shares.append(parts.epistemic_i[inside].mean() / parts.total_i[inside].mean())
    assert found["mftc", "(mean)", "(mean)", "epistemic_share"] == pytest.approx(sum(shares) / 35)
    assert found["mftc", "(largest)", "(largest)", "epistemic_share"] == pytest.approx(max(shares))
    cells = [at for at in found if at[1][0] != "(" and at[3] in ("aleatoric", "epistemic")]
    assert len(cells) == 150


def test_dissent(votes):
    found = by_place(dissent_figures("mftc", votes["mftc"]))
    table = twin("mftc", scale=0.02).filter(question="care", domain="BLM")
    yes, n_votes = Counter(), Counter()
    for item, label in table.select("item", "label").iter_rows():
        yes[item] += label
        n_votes[item] += 1
    wrong, own = Counter(), Counter()
    for item, annotator, label in table.select("item", "annotator", "label").iter_rows():
        wrong[annotator] += label != (2 * yes[item] >= n_votes[item])
        own[annotator] += 1
    rates = [wrong[annotator] / own[annotator] for annotator in own]
    assert found["mftc", "BLM", "care", "lowest_dissent"] == pytest.approx(min(rates))
    assert found["mftc", "BLM", "care", "highest_dissent"] == pytest.approx(max(rates))


def test_counts():
    def row(domain, foundation, rule, metric, value):
        return ("mfrc", domain, foundation, rule, "consensus", metric, value, None, None, 1)

    rows = [row(d, "(mean)", "any", "fpr", v) for d, v in (("x", 0.3), ("y", 0.1), ("(all)", 0.9))]
    rows += [row(d, "(mean)", "any", "fnr", v) for d, v in (("x", 0.2), ("y", 0.4), ("(all)", 0.1))]
    pairs = {("x", "care"): (0.5, 0.504), ("x", "loyalty"): (0.5, 0.51), ("y", "care"): (0.1, None)}
    for (domain, foundation), (majority, two) in pairs.items():
        rows += [row(domain, foundation, rule, "fnr", v) for rule, v in (("majority", majority), ("two-vote", two))]
    figures = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    found = {figure["metric"]: (figure["value"], figure["n"]) for figure in counted_figures(figures)}
    assert found == {"domains_fpr_above_fnr": (1, 2), "equal_fnr_cells": (1, 2)}
