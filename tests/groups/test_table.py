"""An audit with groups: tables, sentences, camps and weights; without the flag nothing of it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from group_support import crowd, frame_of
from scipy.special import entr

import moral_entropy as me
from moral_entropy.errors import UsageError, VotesError
from moral_entropy.groups.item_labels import between_groups
from moral_entropy.groups.options import GroupOptions
from moral_entropy.groups.table import study_groups
from moral_entropy.groups.words import camp_sentences
from moral_entropy.names import CAMPS
from moral_entropy.pipeline.audit import read_parts
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.pipeline.verify import verify
from moral_entropy.schemas import SCHEMAS
from moral_entropy.votes.read import read_votes

TABLES = ("groups", "group_readings", "group_items", "camps", "target_items")


@pytest.fixture(scope="module")
def parted():
    votes, group_a, _ = crowd(1, sizes=(8, 8), items=50, votes=40, parting=0.5)
    target = pl.DataFrame({"column": ["gender"] * 2, "group": ["men", "women"], "share": [0.9, 0.1]})
    run = me.audit(frame_of(votes, group_a), draws=20, annotator_group=("gender",), target=target, camps=True)
    return run, votes, group_a


def test_every_table_has_its_columns(parted):
    run, _, _ = parted
    for name in TABLES:
        assert run.table(name).columns == SCHEMAS[name].names()
        assert run.table(name).height


def test_rates_and_differences_are_those_of_the_votes(parted):
    run, votes, group_a = parted
    men, women = run.table("groups").filter(column="gender").iter_rows(named=True)
    yes = [votes.yes_v[group_a[votes.annotator_v] == g].mean() for g in (0, 1)]
    assert (men["rate"], women["rate"]) == pytest.approx(yes)
    assert men["difference"] == pytest.approx(-women["difference"])
    # Two groups are one comparison, so nothing is corrected.
    assert men["p_adjusted"] == pytest.approx(men["p_value"]) == pytest.approx(women["p_adjusted"])


def test_a_truth_per_group_is_read_and_its_items_counted(parted):
    run, votes, _ = parted
    row = run.table("group_readings").filter(column="gender").row(0, named=True)
    assert row["reading"] == "a truth per group" and row["gain_p"] < 0.01
    assert row["parting"] == pytest.approx(0.5, abs=0.2)
    items = run.table("group_items").filter(column="gender")
    assert items["n_votes"].sum() == len(votes.item_v) and items["n_yes"].sum() == votes.yes_v.sum()
    assert items["between"].null_count() == 0


def test_camps_are_compared_like_a_column_but_claim_no_p(parted):
    run, _, group_a = parted
    camps = run.table("camps").sort("annotator")["camp"]
    assert camps.n_unique() == 2
    assert pl.DataFrame({"camp": camps, "group": group_a}).n_unique() == 2
    rows = run.table("groups").filter(column=CAMPS)
    assert rows["p_value"].null_count() == rows.height
    sentences = run.manifest["groups"]["sentences"]
    assert any("gender 'men' 100% of them, 0% of the others" in text for text in sentences)


def test_words_that_mark_the_items_on_which_camps_part_are_named(parted):
    run, votes, group_a = parted
    items = run.table("group_items").filter(column=CAMPS)
    parts = items.group_by("item").agg(parted=(pl.col("p") >= 0.5).n_unique() > 1)
    texts = {row["item"]: "about guns" if row["parted"] else "about tea" for row in parts.iter_rows(named=True)}
    frame = frame_of(votes, group_a).with_columns(text=pl.col("item").replace_strict(texts, return_dtype=pl.String))
    sentences = camp_sentences(
        {"camps": run.table("camps"), "group_items": run.table("group_items")}, (), read_votes(frame)
    )
    assert sentences[-1].endswith("Words that mark the items on which they part: guns.")


def test_the_target_population_weighs_votes(parted):
    run, votes, group_a = parted
    target = run.manifest["groups"]["target"]
    weight_a = np.where(group_a == 0, 1.8, 0.2)
    assert target["effective_annotators"] == pytest.approx(16**2 / (weight_a**2).sum())
    row = run.table("target_items").row(0, named=True)
    mine = votes.item_v == row["item"]
    weight_v = weight_a[votes.annotator_v[mine]]
    n = weight_v.sum() ** 2 / (weight_v**2).sum()
    share = (weight_v * votes.yes_v[mine]).sum() / weight_v.sum()
    assert row["p_target"] == pytest.approx((n * share + 0.5) / (n + 1))
    assert run.manifest["groups"]["composition"][0] == {
        "column": "gender", "group": "men", "annotators": 8, "share": 0.5, "target": 0.9,
    }  # fmt: skip


def test_without_the_flag_there_is_nothing_of_it():
    votes, group_a, _ = crowd(1, sizes=(3, 3), items=20, votes=10)
    run = me.audit(frame_of(votes, group_a), draws=20)
    assert not any(run.has(name) for name in TABLES)
    assert "groups" not in run.manifest
    assert run.table("votes").columns == ["question", "item", "annotator", "label"]


def test_entropy_within_and_between_groups_is_that_of_the_pool():
    yes_ig, weight_g = np.random.default_rng(1).random((9, 3)), np.array([3.0, 1.0, 2.0])
    share_g = weight_g / weight_g.sum()

    def entropy(p):
        return entr(p) + entr(1 - p)

    within_i = (entropy(yes_ig) * share_g).sum(axis=1)
    np.testing.assert_allclose(within_i + between_groups(yes_ig, weight_g), entropy((yes_ig * share_g).sum(axis=1)))


def test_ratings_are_compared_by_their_mean_and_a_group_of_one_is_only_shown():
    rng = np.random.default_rng(3)
    rows = [(i, a, int(np.clip(rng.integers(1, 4) + (a >= 4), 1, 4))) for i in range(30) for a in range(9)]
    frame = pl.DataFrame(rows, schema=["item", "annotator", "rating"], orient="row").with_columns(
        land=pl.when(pl.col("annotator") == 8).then(pl.lit("z")).when(pl.col("annotator") < 4).then(pl.lit("x"))
        .otherwise(pl.lit("y"))
    )  # fmt: skip
    votes = read_votes(frame, label="rating", keep=("land",))
    found = study_groups(votes, GroupOptions(annotator_group=("land",)))
    groups = found.frames["groups"]
    assert groups["label"].unique().sort().to_list() == ["(mean)", "1", "2", "3", "4", "at least 3"]
    mean = {row["group"]: row for row in groups.filter(label="(mean)").iter_rows(named=True)}
    assert mean["y"]["rate"] == pytest.approx(frame.filter(land="y")["rating"].mean())
    assert mean["y"]["difference"] == pytest.approx(mean["y"]["rate"] - mean["x"]["rate"])
    assert mean["z"]["rate"] is not None and mean["z"]["difference"] is None
    assert groups.filter(pl.col("label") != "(mean)")["p_value"].null_count() == groups.height - 3
    assert any("'y' rate higher than 'x'" in text for text in found.facts["sentences"])
    assert "1 group of one annotator (z)" in found.facts["notes"][0]


def test_pre_counted_rows_and_clusters_are_refused():
    counted = pl.DataFrame({"a": [0, 1], "b": [1, 1], "n": [3, 2]})
    votes = read_votes(counted, layout="wide", count="n")
    with pytest.raises(VotesError, match="a row stands for several items"):
        study_groups(votes, GroupOptions(camps=True))
    with pytest.raises(UsageError, match="compared on one machine"):
        read_parts(counted, AuditOptions(groups=GroupOptions(camps=True)), workers=object())


def test_a_run_whose_annotators_were_described_elsewhere_is_not_verified_by_a_file_outside_of_it(tmp_path):
    votes, group_a, _ = crowd(1, sizes=(4, 4), items=30, votes=20)
    frame = frame_of(votes, group_a)
    people, bare = frame.select("annotator", "gender").unique(), frame.drop("gender")
    people.write_csv(tmp_path / "people.csv")
    asked = {"draws": 20, "report": False, "annotator_group": ("gender",)}
    run = me.audit(bare, out=tmp_path / "run", annotators=str(tmp_path / "people.csv"), **asked)
    with pytest.raises(me.MoralEntropyError, match=r"people.csv', which it does not hold"):
        verify(run)
