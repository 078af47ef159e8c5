"""The fourth part of the entropy: what lies between groups with a truth each; parts still add up to the whole."""

from __future__ import annotations

import json
import math
from importlib.resources import files

import numpy as np
import polars as pl
import pytest
from group_support import crowd, frame_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import moral_entropy as me
from moral_entropy.cli.explain import marks_for_output, waterfall_lines
from moral_entropy.consensus.entropy import EntropyParts
from moral_entropy.groups import one_truth
from moral_entropy.groups.coupled_truths import YES_TQ, fit_truths
from moral_entropy.groups.item_labels import GroupLabels, between_groups, labels_of_all, share_between
from moral_entropy.names import CAMPS
from moral_entropy.pipeline.verify import verify
from moral_entropy.report.data import report_data
from moral_entropy.runs.explain import explain_item
from moral_entropy.schemas import BETWEEN, PARTS
from moral_entropy.verdict.headlines import uncertain_by_kind

SHARES = st.floats(0.0, 1.0)
NATS = st.floats(0.0, 3.0)


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
    one = GroupLabels("land", True, 1.0, label_ig, label_ig, weight_g)
    column, alone_i = share_between([one])
    assert column == "land" and np.all((alone_i >= 0.0) & (alone_i <= 1.0))
    # A further label without a truth per group adds doubt, and nothing between groups.
    _, both_i = share_between([one, GroupLabels("land", False, 0.0, other_ig, other_ig, weight_g)])
    assert np.all(both_i <= alone_i + 1e-12)


def test_the_part_between_groups_is_the_mutual_information_of_label_and_group():
    label_ig, weight_g = np.array([[0.9, 0.2, 0.5]]), np.array([3.0, 2.0, 1.0])
    joint = {(g, yes): w / 6 * (p if yes else 1 - p) for g, (p, w) in enumerate(zip(label_ig[0], weight_g, strict=True))
             for yes in (True, False)}  # fmt: skip
    by_label = {yes: sum(joint[g, yes] for g in range(3)) for yes in (True, False)}
    expected = sum(x * math.log(x / (weight_g[g] / 6 * by_label[yes])) for (g, yes), x in joint.items())
    assert between_groups(label_ig, weight_g)[0] == pytest.approx(expected)
    entropy = -sum(x * math.log(x) for x in by_label.values())
    [_, share_i] = share_between([GroupLabels("land", True, 1.0, label_ig, label_ig, weight_g)])
    assert share_i[0] == pytest.approx(expected / entropy)


def test_a_named_column_goes_before_camps_and_then_the_larger_gain():
    half = np.full((1, 2), 0.5)
    asked = ((CAMPS, True, 9.0), ("age", True, 1.0), ("land", True, 2.0), ("sex", False, 8.0))
    found = [GroupLabels(column, own, gain, half, half, np.ones(2)) for column, own, gain in asked]
    assert share_between(found)[0] == "land"
    assert share_between(found[:1])[0] == CAMPS
    assert share_between(found[3:]) is None


def test_the_label_of_a_group_is_what_most_members_would_say():
    votes, group_a, place_ig = crowd(2, sizes=(8, 8), items=40, votes=30, parting=0.5)
    fit = fit_truths(votes, np.eye(2)[group_a], 0.25)
    for g in (0, 1):
        most_q = [
            sum(fit.type_gt[g, t] * YES_TQ[t, q] for t in range(len(YES_TQ))) > 0.5 for q in range(YES_TQ.shape[1])
        ]
        expected_i = fit.place_igq[:, g] @ np.array(most_q, dtype=float)
        np.testing.assert_allclose(fit.label_ig[:, g], expected_i, atol=1e-9)
    # It is far surer of the truth than a single vote is.
    assert np.mean((fit.label_ig > 0.5) == (place_ig > 0)) > 0.9
    np.testing.assert_allclose(labels_of_all(fit, votes)[1], fit.label_ig)
    np.testing.assert_allclose(labels_of_all(fit, votes)[0], fit.yes_ig)


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    votes, group_a, place_ig = crowd(1, sizes=(8, 8), items=50, votes=40, parting=0.5)
    out = tmp_path_factory.mktemp("parted") / "run"
    run = me.audit(frame_of(votes, group_a), out=out, draws=20, annotator_group=("gender",))
    return run, votes, group_a, place_ig


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
    assert run.manifest["formulas"]["entropy"].endswith(f"+ {BETWEEN}")
    item = run.items.sort(BETWEEN).row(-1, named=True)
    [told] = explain_item(run, str(item["item"]))
    assert told.between_groups == pytest.approx(item[BETWEEN])
    assert f"{item[BETWEEN]:.3f} between groups: no vote removes it" in "\n".join(
        waterfall_lines(told, marks_for_output())
    )
    data = report_data(run)
    assert data["parts"][-1]["column"] == BETWEEN and BETWEEN in str(data["entropy"])
    assert uncertain_by_kind(run)[BETWEEN] > 0.1
    # A part without a colour would be left out of the chart.
    chart = json.loads((files("moral_entropy") / "report" / "charts" / "entropy.vl.json").read_text())
    assert set(run.parts.values()) < set(chart["spec"]["encoding"]["color"]["scale"]["domain"])
    assert verify(run).stands


def test_no_truth_per_group_no_column():
    votes, group_a, _ = crowd(3, sizes=(5, 5), items=60, votes=40)
    run = me.audit(frame_of(votes, group_a), draws=20, annotator_group=("gender",))
    assert run.table("group_readings")["reading"].to_list() != ["a truth per group"]
    assert BETWEEN not in run.items.columns and BETWEEN not in run.entropy.columns and BETWEEN not in run.parts
    assert run.manifest["groups"]["between"] == []


def test_very_many_votes_still_give_every_item_a_label_per_group(monkeypatch):
    votes, group_a, _ = crowd(1, sizes=(8, 8), items=50, votes=40, parting=0.5)
    monkeypatch.setattr("moral_entropy.groups.table.thinned", lambda some, seed: one_truth.thinned(some, seed, 400))
    run = me.audit(frame_of(votes, group_a), draws=20, annotator_group=("gender",))
    assert run.table("group_items").height == 100 and run.table("group_readings")["n_votes"][0] <= 400
    assert run.table("group_items")["n_votes"].sum() == len(votes.item_v)
