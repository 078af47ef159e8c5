"""Judges who err together are counted as one where answers are known: the fit, scores, tables and words."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.judges.fitted_panel import as_fitted, as_published
from moral_entropy.judges.known import known_items
from moral_entropy.judges.panel import read_panel
from moral_entropy.judges.recount import recount, with_recount
from moral_entropy.judges.standing import standings
from moral_entropy.judges.table import describe_judges
from moral_entropy.report.sections import judges_section
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import read_run
from moral_entropy.votes.table import UNKNOWN

FOLLOWERS = ["ant", "bee", "cat", "dog", "weak"]


def hijacked_votes(noise, seed=0, n_items=600, known=200):
    """Nine judges, of whom four follow the weakest but for some items."""
    rng = np.random.default_rng([7, seed])
    truth_i = (rng.random(n_items) < 0.4) * 1
    cast = {f"judge{j}": np.where(rng.random(n_items) < right, truth_i, 1 - truth_i)
            for j, right in enumerate((0.9, 0.86, 0.84, 0.8))}  # fmt: skip
    cast["weak"] = np.where(rng.random(n_items) < 0.7, truth_i, 1 - truth_i)
    for name in FOLLOWERS[:-1]:
        cast[name] = np.where(rng.random(n_items) < noise, 1 - cast["weak"], cast["weak"])
    return pl.concat(
        pl.DataFrame({"item": np.arange(n_items), "annotator": name, "label": vote_i,
                      "gold": [int(t) if i < known else None for i, t in enumerate(truth_i)]})
        for name, vote_i in cast.items()
    )  # fmt: skip


@pytest.fixture(scope="module")
def run():
    return me.audit(hijacked_votes(0.1), draws=20, report=False)


def recounted(run):
    return recount(run, known_items(run, run.questions[0]))


def test_the_second_fit_is_that_of_the_judges_merged(run):
    found = recounted(run)
    assert [found.names(group) for group in found.groups] == [FOLLOWERS]
    known = with_recount(known_items(run, run.questions[0]), found)
    merged = reload_consensus(run, merge=("weak+dog+cat+bee+ant",))
    assert known.p_ik == pytest.approx(merged.fits[0].p_ik)
    assert len(merged.fits[0].counted_groups[0]) == 5
    assert np.abs(known.p_ik - known_items(run, run.questions[0]).p_ik).max() > 0.3


def test_labels_and_judges_are_better_for_it(run):
    """The truth is known here: the judges who follow hold the audit's consensus, and lose it."""
    truth_i = hijacked_votes(0.1, known=600).unique("item").sort("item")["gold"].to_numpy()
    known = known_items(run, run.questions[0])
    place_i = known.items.cast(pl.Int64).to_numpy()
    right = [
        (one.p_ik.argmax(axis=1) == truth_i[place_i]).mean() for one in (known, with_recount(known, recounted(run)))
    ]
    assert right[0] < 0.8 < 0.9 < right[1]
    judges = run.judges
    assert judges["judge"][-1] == "judge0" and set(judges["judge"][:5]) == set(FOLLOWERS)
    width = dict(zip(judges["judge"], judges["right_all_high"] - judges["right_all_low"], strict=True))
    assert width["judge0"] < 0.9 * (judges["right_high"] - judges["right_low"])[-1]


def test_groups_are_named_and_their_votes_counted_once(run):
    found = describe_judges(run)
    [row] = found.together.to_dicts()
    assert (row["judges"], row["size"], row["n_known"], row["counted_as_one"]) == (", ".join(FOLLOWERS), 5, 200.0, True)
    votes = hijacked_votes(0.1).drop_nulls("gold").pivot(on="annotator", index=["item", "gold"], values="label")
    same = [((votes[a] == votes[b]) & (votes[a] != votes["gold"])).sum() for a in FOLLOWERS for b in FOLLOWERS if a < b]
    assert row["same_wrong"] == pytest.approx(np.mean(same))
    assert set(found.frame.filter(judge="ant")["counted_with"]) == {"bee, cat, dog, weak"}
    assert 5.0 <= found.effective_votes["effective"][0] < 6.5 and found.effective_votes["votes"][0] == 9.0
    [note] = [one for one in found.notes if "err together" in one]
    assert "--merge 'ant+bee+cat+dog+weak'" in note
    assert note in me.score(run).notes


def test_screen_and_report_name_them(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    assert main(["judges", str(tmp_path / "run")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "err together: two of them give the same wrong answer" in shown
    read = read_run(tmp_path / "run")
    assert any("err together" in note for note in judges_section(read)["notes"])
    assert me.score(read).frame.equals(me.score(run).frame)


@pytest.mark.parametrize("options", [{"dependence": "report"}, {"model": "paper"}])
def test_whoever_wants_copies_counted_apart_is_only_told(options):
    found = recounted(run := me.audit(hijacked_votes(0.1), draws=0, report=False, **options))
    assert found.consensus is None and found.groups
    assert not describe_judges(run).together["counted_as_one"].any()
    assert any("Count them as one with --merge" in note for note in me.score(run).notes)


def test_nobody_looks_without_being_asked_or_with_gold_as_evidence():
    for options in ({"dependence": "off"}, {"gold_as_evidence": True}):
        assert not recounted(me.audit(hijacked_votes(0.1), draws=0, report=False, **options)).groups
    few = hijacked_votes(0.1, known=20)
    assert not recounted(me.audit(few, draws=0, report=False)).groups


def test_copies_that_the_audit_counts_once_are_not_fitted_again():
    found = recounted(me.audit(hijacked_votes(0.03), draws=0, report=False))
    assert [found.names(group) for group in found.groups] == [FOLLOWERS]
    assert found.consensus is None and found.is_counted(found.groups[0])


def test_two_copies_of_one_of_three_are_worth_nothing():
    rng = np.random.default_rng(8)
    truth_i = (rng.random(800) < 0.4) * 1
    cast = [np.where(rng.random(800) < right, truth_i, 1 - truth_i) for right in (0.9, 0.85, 0.8)]
    cast += [np.where(rng.random(800) < 0.03, 1 - cast[2], cast[2]) for _ in range(2)]
    gold = [int(t) if i < 200 else None for i, t in enumerate(truth_i)]
    votes = pl.concat(pl.DataFrame({"item": np.arange(800), "annotator": f"j{j}", "label": vote_i, "gold": gold})
                      for j, vote_i in enumerate(cast))  # fmt: skip
    run = me.audit(votes, draws=0, report=False)
    assert run.items["effective_votes"].mean() > 4.0
    # The audit takes the other two for copies of each other; known answers deny it.
    found = recounted(run)
    assert found.counted == (frozenset({"j0", "j1"}),) and found.common.pairs.denies([0, 1])
    assert not found.common.pairs.denies([2, 3, 4])
    assert describe_judges(run).effective_votes["effective"][0] == pytest.approx(3.0, rel=0.1)


def test_standings_by_hand(run):
    panel = read_panel(run, run.questions[0], consensus=recounted(run).consensus)
    p_ik = panel.posterior(range(9))
    expected = np.array([[p_ik[i, v] for i, v in enumerate(vote_i)] for vote_i in panel.vote_ji])
    known = np.flatnonzero(panel.gold_i != UNKNOWN)
    off = (panel.vote_ji[:, known] == panel.gold_i[known]) - expected[:, known]
    own, noise = off.mean(axis=1) - off.mean(), (off - off.mean(axis=0)).var(axis=1, ddof=1) / len(known)
    between = max(0.0, (own**2 - noise).mean())
    assert standings(panel) == pytest.approx(expected.mean(axis=1) + off.mean() + between / (between + noise) * own)


def test_standings_follow_known_answers_where_the_consensus_is_wrong_about_judges(run):
    """In the audit's own consensus the followers are right: known answers say that they are not."""
    panel = read_panel(run, run.questions[0])
    frame = run.judges.sort("judge")
    assert panel.judges == frame["judge"].to_list()
    expected = panel.posterior(range(9))
    model = np.array([expected[np.arange(600), vote_i].mean() for vote_i in panel.vote_ji])
    found = standings(panel)
    assert model[panel.judges.index("weak")] > model[panel.judges.index("judge0")]
    assert found[panel.judges.index("weak")] < found[panel.judges.index("judge0")] - 0.1
    assert found == pytest.approx(frame["right"].to_numpy(), abs=0.05)


def test_how_judges_vote_is_the_same_from_a_run_and_from_its_fit():
    votes = hijacked_votes(0.03, n_items=300).with_columns(domain=pl.when(pl.col("item") % 3 == 0).then(pl.lit("x"))
                                                           .otherwise(pl.lit("y")))  # fmt: skip
    run = me.audit(votes, draws=0, report=False)
    items = known_items(run, run.questions[0]).items.gather([5, 0, 3, 299])
    one, other = as_published(run, run.questions[0], items), as_fitted(reload_consensus(run), items)
    assert (one.names, one.power) == (other.names, other.power)
    assert [sorted(group) for group in one.counted] == [sorted(group) for group in other.counted] == [FOLLOWERS]
    assert one.confusion_akv == pytest.approx(other.confusion_akv)
    assert np.array_equal(one.domain_i, other.domain_i) and len(set(one.domain_i.tolist())) == 2
    assert one.weight_dz == pytest.approx(other.weight_dz)
