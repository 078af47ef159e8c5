"""The tables of a run: shapes, sums, words in their domain, and nothing that is not a number."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from support import random_rows, votes_of

from moral_entropy.items.table import find_outliers
from moral_entropy.model.fit import fit
from moral_entropy.options import AuditOptions, FitOptions, ReadOptions
from moral_entropy.pipeline import audit
from moral_entropy.runs.folder import read_table
from moral_entropy.schemas import SCHEMAS

NEW = ("votes", "texts", "contributions", "annotator_summary", "agreement", "outliers")


def frame(n_labels=2, n_items=240, seed=5):
    """Votes with domains and texts; annotator "z" contradicts, items in doubt shout in one domain."""
    draw = random.Random(seed)
    rows = []
    for item in range(n_items):
        truth = draw.randrange(n_labels)
        hard = item % 6 == 0
        for name in "abcdz":
            if draw.random() < 0.2:
                continue
            right = draw.random() < (0.5 if hard else 0.9)
            label = truth if right != (name == "z") else (truth + 1) % n_labels
            text = f"item number {'one' if item % 2 else 'two'}{' shouting' if hard else ''}"
            rows.append((f"t{item:03}", name, label, ("web", "print")[item % 2], text))
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "domain", "text"], orient="row")


@pytest.fixture(scope="module", params=[2, 3])
def run(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("outliers") / "run"
    return audit(frame(request.param), out, AuditOptions(fit=FitOptions(draws=60, seed=4)))


@pytest.mark.parametrize("name", NEW)
def test_tables_have_their_columns_and_no_nan(run, name):
    table = read_table(run.path, name)
    assert table.schema == SCHEMAS[name] and table.height
    assert not any(column.is_nan().any() for column in table if column.dtype.is_float())


def test_votes_and_texts_come_back(run):
    votes, ballot = read_table(run.path, "votes"), run.consensus.votes.ballots[0]
    given = frame(ballot.n_labels).select("item", "annotator", pl.col("label").cast(pl.String))
    assert votes.drop("question").rows() == sorted(given.rows())
    assert read_table(run.path, "texts").rows() == sorted(set(frame(ballot.n_labels).select("item", "text").rows()))


def test_contributions_of_an_items_votes_add_up_to_its_log_odds(tmp_path):
    # With three labels, and between labels, p_map is not a logit; tests of contributions look at those.
    run = audit(frame(2), tmp_path / "run", AuditOptions(fit=FitOptions(draws=0, model="paper")))
    contributions, votes, items = (read_table(run.path, name) for name in ("contributions", "votes", "items"))
    prior = contributions.filter(pl.col("annotator").is_null())["contribution"].item()
    joined = votes.join(contributions, left_on=["annotator", "label"], right_on=["annotator", "voted"])
    total = dict(joined.group_by("item").agg(pl.col("contribution").sum()).rows())
    for item, p_map in items.select("item", "p_map").rows():
        assert prior + total.get(item, 0.0) == pytest.approx(np.log(p_map / (1 - p_map)), rel=1e-9, abs=1e-9)


def test_ranks_count_from_one_and_scores_fall(run):
    outliers = read_table(run.path, "outliers")
    assert set(outliers["kind"].unique()) == {"item", "annotator", "word"}
    for key, group in outliers.group_by("kind", "question", "domain", "ranking"):
        assert group["rank"].to_list() == list(range(1, group.height + 1)), key
        rising = key[3] == "youden"
        assert group["score"].is_sorted(descending=not rising), key
        assert (group["reason"].str.len_chars() > 20).all()


def test_the_contrary_annotator_and_the_shouting_are_found(run):
    outliers = read_table(run.path, "outliers")
    assert outliers.filter(kind="annotator", ranking="youden", rank=1)["name"].item() == "z"
    assert outliers.filter(kind="annotator", ranking="disagreement", rank=1)["name"].item() == "z"
    words = outliers.filter(kind="word", domain="(all)", rank=1)
    assert words["name"].item() == "shouting"
    # Every sixth item is hard, and all of those are on the web.
    assert outliers.filter(kind="word", domain="print").filter(name="shouting").is_empty()


def test_agreement_by_domain_and_altogether(run):
    agreement = read_table(run.path, "agreement")
    assert agreement["domain"].unique(maintain_order=True).to_list() == ["(all)", "print", "web"]
    by_domain = dict(agreement.filter(statistic="pabak").select("domain", "n").rows())
    assert by_domain["(all)"] == by_domain["print"] + by_domain["web"]
    for low, value, high in agreement.select("low", "value", "high").rows():
        assert low <= value <= high


def test_the_same_seed_gives_the_same_bytes(run, tmp_path):
    n_labels = run.consensus.fits[0].ballot.n_labels
    again = audit(frame(n_labels).sample(fraction=1.0, shuffle=True, seed=1), tmp_path / "run",
                      AuditOptions(fit=FitOptions(draws=60, seed=4)))  # fmt: skip
    for name in NEW:
        assert (again.path / f"{name}.parquet").read_bytes() == (run.path / f"{name}.parquet").read_bytes(), name


def test_parts_without_draws_without_texts(tmp_path):
    options = AuditOptions(read=ReadOptions(text=None), fit=FitOptions(draws=0), fit_by="domain")
    out = audit(frame().drop("text"), tmp_path / "run", options).path
    assert not (out / "texts.parquet").exists()
    summary = read_table(out, "annotator_summary")
    assert summary.select("part").unique(maintain_order=True)["part"].to_list() == ["print", "web"]
    assert summary["youden_low"].is_null().all() and summary["role"].to_list().count("few votes") == 0
    outliers = read_table(out, "outliers")
    assert set(outliers["kind"]) == {"item", "annotator"}
    assert outliers.filter(ranking="doubt_votes").is_empty() and not outliers.filter(ranking="entropy").is_empty()
    assert outliers.filter(kind="annotator")["reason"].str.contains(" in web| in print").all()
    assert read_table(out, "contributions").filter(pl.col("annotator").is_null())["part"].to_list() == ["print", "web"]


def test_tiny_corpora_are_no_trouble():
    votes = votes_of(random_rows(np.random.default_rng(0), 2, 2, 2, share=1.0))
    found = find_outliers(fit(votes, draws=5))
    assert set(found["outliers"]["kind"]) == {"item", "annotator"}
    assert set(found["annotator_summary"]["role"]) == {"few votes"}
