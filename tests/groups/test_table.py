"""An audit with groups: tables, sentences, weights and the part between groups; without the flag nothing of it."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from group_support import crowd, frame_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import entr

import moral_entropy as me
from moral_entropy.cli.explain import waterfall
from moral_entropy.errors import RunFolderError, VotesError
from moral_entropy.explanation import explain_item
from moral_entropy.groups import truths
from moral_entropy.groups.table import between_groups, share_between
from moral_entropy.model.entropy import EntropyParts
from moral_entropy.report.page import page_data
from moral_entropy.schemas import BETWEEN, PARTS, SCHEMAS
from moral_entropy.verification import verify

TABLES = ("groups", "group_readings", "group_items", "target_items")


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    votes, group_a, place_ig = crowd(1, sizes=(8, 8), items=50, votes=40, parting=0.5)
    target = pl.DataFrame({"column": ["gender"] * 2, "group": ["men", "women"], "share": [0.9, 0.1]})
    out = tmp_path_factory.mktemp("parted") / "run"
    run = me.audit(frame_of(votes, group_a), out=out, draws=20, annotator_group=("gender",), target=target)
    return run, votes, group_a, place_ig


def test_every_table_has_its_columns(parted):
    run = parted[0]
    for name in TABLES:
        assert run.table(name).columns == SCHEMAS[name].names()
        assert run.table(name).height


def test_rates_and_differences_are_those_of_the_votes(parted):
    run, votes, group_a, _ = parted
    men, women = run.table("groups").filter(column="gender").iter_rows(named=True)
    yes = [votes.yes_v[group_a[votes.annotator_v] == g].mean() for g in (0, 1)]
    assert (men["rate"], women["rate"]) == pytest.approx(yes)
    assert men["difference"] == pytest.approx(-women["difference"])
    # Two groups are one comparison, so nothing is corrected.
    assert men["p_adjusted"] == pytest.approx(men["p_value"]) == pytest.approx(women["p_adjusted"])


def test_a_truth_per_group_is_read_and_its_items_counted(parted):
    run, votes, _, _ = parted
    row = run.table("group_readings").filter(column="gender").row(0, named=True)
    assert row["reading"] == "a truth per group" and row["gain_p"] < 0.01
    assert row["parting"] == pytest.approx(0.5, abs=0.2)
    items = run.table("group_items").filter(column="gender")
    assert items["n_votes"].sum() == len(votes.item_v) and items["n_yes"].sum() == votes.yes_v.sum()
    assert items["between"].null_count() == 0


def test_the_target_population_weighs_votes(parted):
    run, votes, group_a, _ = parted
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
    run = me.audit(frame, label="rating", annotator_group=("land",), draws=20)
    groups, facts = run.groups, run.manifest["groups"]
    assert groups["label"].unique().to_list() == ["(mean)"]
    assert run.table("group_readings")["label"].to_list() == ["at least 3"]
    mean = {row["group"]: row for row in groups.filter(label="(mean)").iter_rows(named=True)}
    assert mean["y"]["rate"] == pytest.approx(frame.filter(land="y")["rating"].mean())
    assert mean["y"]["difference"] == pytest.approx(mean["y"]["rate"] - mean["x"]["rate"])
    assert mean["z"]["rate"] is not None and mean["z"]["difference"] is None
    assert any("'y' rate higher than 'x'" in text for text in facts["sentences"])
    assert "groups of one annotator are shown and not compared: z." in facts["notes"][0]


def test_pre_counted_rows_are_refused():
    frame = pl.DataFrame({"a": [0, 1], "b": [1, 1], "n": [3, 2]})
    with pytest.raises(VotesError, match="a row stands for several items"):
        people = pl.DataFrame({"annotator": ["a", "b"], "land": ["x", "y"]})
        me.audit(frame, format="wide", count="n", annotator_group=("land",), annotators=people, draws=20)


def test_a_run_whose_annotators_were_described_elsewhere_is_not_verified_by_a_file_outside_of_it(tmp_path):
    votes, group_a, _ = crowd(1, sizes=(4, 4), items=30, votes=20)
    frame = frame_of(votes, group_a)
    people, bare = frame.select("annotator", "gender").unique(), frame.drop("gender")
    people.write_csv(tmp_path / "people.csv")
    asked = {"draws": 20, "report": False, "annotator_group": ("gender",)}
    run = me.audit(bare, out=tmp_path / "run", annotators=str(tmp_path / "people.csv"), **asked)
    with pytest.raises(me.MoralEntropyError, match=r"people.csv', which it does not hold"):
        verify(run)


SHARES = st.floats(0.0, 1.0)
NATS = st.floats(0.0, 3.0)


def reading(label_ig, weight_g, own=True, column="land", gain=1.0):
    return {"column": column, "own": own, "gain": gain, "label_ig": label_ig, "weight_g": weight_g}


@given(st.lists(st.tuples(NATS, NATS, NATS, SHARES), min_size=1, max_size=6), st.sampled_from(["mixed", "paper"]))
def test_four_parts_add_up_to_the_whole_and_none_is_negative(rows, model):
    ambiguity_i, votes_i, annotators_i, share_i = np.array(rows).T
    three = EntropyParts(ambiguity_i + votes_i + annotators_i, ambiguity_i, votes_i, annotators_i, model)
    four = three.with_between(share_i)
    parts = (four.ambiguity_i, four.votes_i, four.annotators_i, four.between_i)
    np.testing.assert_allclose(sum(parts), three.total_i, atol=1e-12)
    assert min(part_i.min() for part_i in parts) >= 0.0
    np.testing.assert_allclose(four.between_i, share_i * three.total_i, atol=1e-12)
    np.testing.assert_allclose(four.aleatoric_i + four.epistemic_i, three.total_i, atol=1e-12)
    # Of the three others none grows, and none is touched before those named earlier are used up.
    assert np.all(four.votes_i <= votes_i) and np.all((four.ambiguity_i == 0.0) | (four.votes_i == votes_i))
    assert np.all((four.votes_i <= 1e-12) | (four.annotators_i >= annotators_i - 1e-12))


@given(
    arrays(np.float64, (4, 3), elements=SHARES), arrays(np.float64, 3, elements=st.floats(1.0, 50.0)),
    arrays(np.float64, (4, 3), elements=SHARES),
)  # fmt: skip
def test_the_share_between_groups_is_a_share(label_ig, weight_g, other_ig):
    one = reading(label_ig, weight_g)
    column, alone_i = share_between([one])
    assert column == "land" and np.all((alone_i >= 0.0) & (alone_i <= 1.0))
    # A further label without a truth per group adds doubt, and nothing between groups.
    _, both_i = share_between([one, reading(other_ig, weight_g, own=False)])
    assert np.all(both_i <= alone_i + 1e-12)


def test_the_part_between_groups_is_the_mutual_information_of_label_and_group():
    label_ig, weight_g = np.array([[0.9, 0.2, 0.5]]), np.array([3.0, 2.0, 1.0])
    joint = {(g, yes): w / 6 * (p if yes else 1 - p) for g, (p, w) in enumerate(zip(label_ig[0], weight_g, strict=True))
             for yes in (True, False)}  # fmt: skip
    by_label = {yes: sum(joint[g, yes] for g in range(3)) for yes in (True, False)}
    expected = sum(x * math.log(x / (weight_g[g] / 6 * by_label[yes])) for (g, yes), x in joint.items())
    assert between_groups(label_ig, weight_g)[0] == pytest.approx(expected)
    entropy = -sum(x * math.log(x) for x in by_label.values())
    [_, share_i] = share_between([reading(label_ig, weight_g)])
    assert share_i[0] == pytest.approx(expected / entropy)


def test_items_and_means_carry_the_fourth_part(parted):
    run, _, _, place_ig = parted
    assert run.items.columns[-1] == run.entropy.columns[-1] == BETWEEN
    for frame, total in ((run.items, "entropy"), (run.entropy, "total")):
        np.testing.assert_allclose(frame.select(pl.sum_horizontal(*PARTS, BETWEEN)).to_series(), frame[total])
        np.testing.assert_allclose(frame["aleatoric"] + frame["epistemic"], frame[total])
    assert run.entropy[BETWEEN][0] == pytest.approx(run.items[BETWEEN].mean())
    assert run.manifest["questions"][0][BETWEEN] == pytest.approx(run.items[BETWEEN].mean())
    # Where the groups' truths are opposite, most of the entropy lies between them; elsewhere next to nothing does.
    parted_i = (place_ig[:, 0] * place_ig[:, 1] < 0.0)[run.items["item"].to_numpy()]
    share_i = (run.items[BETWEEN] / run.items["entropy"]).to_numpy()
    assert share_i[parted_i].mean() > 0.7 and share_i[~parted_i].mean() < 0.3


def test_everything_that_shows_the_parts_shows_the_fourth(parted):
    run = parted[0]
    assert run.parts[BETWEEN] == "between groups"
    assert run.manifest["groups"]["between"] == [{"question": "label", "part": "", "column": "gender"}]
    item = run.items.sort(BETWEEN).row(-1, named=True)
    [told] = explain_item(run, str(item["item"]))
    assert told.between_groups == pytest.approx(item[BETWEEN])
    assert f"{item[BETWEEN]:.3f} between groups: no vote removes it" in "\n".join(map(str, waterfall(told)))
    texts, columns = page_data(run)
    assert columns["parts"][-1][0] == BETWEEN and texts["uncertainty"]["bars"][0]["parts"][-1][0] == "between groups"
    assert (run.items[BETWEEN] > run.items["entropy"] / 2).mean() > 0.1
    with pytest.raises(RunFolderError, match="which it does not hold"):
        verify(run)


def test_no_truth_per_group_no_column():
    votes, group_a, _ = crowd(3, sizes=(5, 5), items=60, votes=40)
    run = me.audit(frame_of(votes, group_a), draws=20, annotator_group=("gender",))
    assert run.table("group_readings")["reading"].to_list() != ["a truth per group"]
    assert BETWEEN not in run.items.columns and BETWEEN not in run.entropy.columns and BETWEEN not in run.parts
    assert run.manifest["groups"]["between"] == []


def test_very_many_votes_still_give_every_item_a_label_per_group(monkeypatch):
    votes, group_a, _ = crowd(1, sizes=(8, 8), items=50, votes=40, parting=0.5)
    monkeypatch.setattr(truths, "MAX_VOTES", 400)
    run = me.audit(frame_of(votes, group_a), draws=20, annotator_group=("gender",))
    assert run.table("group_items").height == 100 and run.table("group_readings")["n_votes"][0] <= 400
    assert run.table("group_items")["n_votes"].sum() == len(votes.item_v)


def test_of_columns_with_a_truth_per_group_the_larger_gain_is_chosen():
    half = np.full((1, 2), 0.5)
    columns = (("age", True, 1.0), ("land", True, 2.0), ("sex", False, 8.0))
    readings = [reading(half, np.ones(2), own, column, gain) for column, own, gain in columns]
    assert share_between(readings)[0] == "land"
    assert share_between(readings[2:]) is None


def test_a_copy_counts_once_in_every_comparison():
    votes, group_a, _ = crowd(4, sizes=(5, 5), items=80, votes=70, threshold=0.8)
    frame = frame_of(votes, group_a)
    copy = frame.filter(annotator="a00").with_columns(annotator=pl.lit("zz copy"))
    alone, doubled = (
        me.audit(table, draws=20, annotator_group=("gender",)) for table in (frame, pl.concat([frame, copy]))
    )
    assert doubled.groups.equals(alone.groups)
    assert doubled.table("group_readings").equals(alone.table("group_readings"))
    assert doubled.table("group_items").equals(alone.table("group_items"))
    notes = doubled.manifest["groups"]["notes"]
    assert notes == ["on label, a00, zz copy are copies of each other and count as one member of their group."]
    # A copy in the other group is that group's one member of the set.
    across = pl.concat([frame, copy.with_columns(gender=pl.lit("women"))])
    run = me.audit(across, draws=20, annotator_group=("gender",))
    assert run.groups["n_annotators"].to_list() == [5, 6]


def test_every_sentence_names_its_question_and_the_largest_difference_leads():
    """Women say yes more often by about 12 points on the first question and 35 on the second."""
    parts = []
    for question, threshold in (("small", -0.9), ("large", -3.0)):
        votes, group_a, _ = crowd(5, sizes=(12, 12), items=200, votes=150, threshold=threshold)
        parts.append(frame_of(votes, group_a).with_columns(question=pl.lit(question)))
    run = me.audit(pl.concat(parts), draws=20, annotator_group=("gender",), question="question")
    sentences = run.manifest["groups"]["sentences"]
    assert sentences[0].startswith("on large, by gender, 'women' vote 'yes' more often than 'men': +")
    assert sentences[1].startswith("on small, by gender, 'women' vote 'yes' more often than 'men': +")
    gaps = [float(text.split(": +")[1].split(" points")[0]) for text in sentences[:2]]
    rows = run.groups.filter(group="women").sort("difference", descending=True)
    assert gaps == pytest.approx(100 * rows["difference"].to_numpy(), abs=0.051)
    assert all("on large" in text or "on small" in text for text in sentences)
