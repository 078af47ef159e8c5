"""Judges of runs: against plain counting and a posterior summed by hand; odd panels end in plain words."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import VotesError
from moral_entropy.judges.estimates import corrected_mean
from moral_entropy.judges.panel import added_by_each, best_panels, read_panel
from moral_entropy.judges.roles import Role, guess_role
from moral_entropy.judges.table import describe_judges
from moral_entropy.options import JudgeOptions
from moral_entropy.runs.run import cautions
from moral_entropy.votes.table import UNKNOWN


def votes_of(judges, n_items=240, known=0.4, share=0.5, seed=0):
    """Votes by name: how often a judge is right, or a function of the truths and the other judges' votes so far."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n_items) < share
    cast = {}
    for name, how in judges.items():
        cast[name] = how(truth, cast, rng) if callable(how) else np.where(rng.random(n_items) < how, truth, ~truth)
    gold = [("no", "yes")[int(t)] if rng.random() < known else None for t in truth]
    rows = [
        (i, name, ("no", "yes")[int(vote[i])], gold[i])
        for name, vote in cast.items()
        for i in range(n_items)
        if vote[i] is not None
    ]
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "gold"], orient="row")


def copy_of(name, noise=0.03):
    return lambda truth, cast, rng: np.where(rng.random(len(truth)) < noise, ~cast[name], cast[name])


PANEL = {"gpt-a": 0.9, "gpt-b": 0.8, "llama": 0.85, "qwen": 0.65}


@pytest.fixture(scope="module")
def votes():
    return votes_of(PANEL)


@pytest.fixture(scope="module")
def run(votes):
    return me.audit(votes, draws=40)


@pytest.fixture(scope="module")
def hijacked():
    """The weakest judge among five twice."""
    judges = {"gpt-a": 0.92, "gpt-b": 0.85, "llama": 0.85, "qwen": 0.7, "qwen-copy": copy_of("qwen", 0.005)}
    return me.audit(votes_of(judges, 500, seed=3), draws=40)


def row_of(frame, judge):
    [row] = frame.filter(judge=judge).to_dicts()
    return row


def test_shares_of_known_answers_are_counted(run, votes):
    for judge in PANEL:
        mine = votes.filter(annotator=judge).drop_nulls("gold")
        row = row_of(run.judges, judge)
        right, n = (mine["label"] == mine["gold"]).sum(), mine.height
        assert (row["n_known"], row["right"]) == (n, pytest.approx(right / n))
        assert (row["right_low"], row["right_high"]) == pytest.approx(
            beta(right + 0.5, n - right + 0.5).ppf([0.05, 0.95])
        )
        yes = mine.filter(gold="yes")
        assert row["sensitivity"] == pytest.approx((yes["label"] == "yes").mean())
        no = mine.filter(gold="no")
        assert row["specificity"] == pytest.approx((no["label"] == "no").mean())


def test_the_worst_come_first(run):
    assert run.judges["right_all"].is_sorted()
    assert run.judges["judge"][0] == "qwen"


def by_hand(panel, some):
    """Label probabilities of part of a panel, item by item."""
    found = []
    for i in range(panel.vote_ji.shape[1]):
        state_z = np.exp(panel.prior_iz[i])
        for j in some:
            if panel.vote_ji[j, i] != UNKNOWN:
                state_z = state_z * np.exp(panel.vote_jzk[j, :, panel.vote_ji[j, i]])
        found.append(state_z / state_z.sum() @ panel.mix_zk)
    return np.array(found)


def test_the_posterior_of_all_is_that_of_the_run(run):
    panel = read_panel(run, run.questions[0])
    assert panel.posterior(range(4)) == pytest.approx(by_hand(panel, range(4)))
    assert panel.posterior(range(4))[:, 1] == pytest.approx(run.items["p_map"].to_numpy(), abs=1e-6)


def test_what_a_judge_adds_is_the_change_by_hand(run):
    panel = read_panel(run, run.questions[0])
    added, known = added_by_each(panel), np.flatnonzero(panel.gold_i != UNKNOWN)
    gold = panel.gold_i[known]
    for j in range(4):
        others = [one for one in range(4) if one != j]
        after, before = (by_hand(panel, some)[known] for some in (range(4), others))
        nats = np.log(after[range(len(gold)), gold] / before[range(len(gold)), gold]).mean()
        saved = (after.argmax(axis=1) == gold).mean() - (before.argmax(axis=1) == gold).mean()
        assert (added["nats"][j], added["saved"][j]) == (pytest.approx(nats), pytest.approx(saved))
        row = row_of(run.judges, panel.judges[j])
        assert row["agrees"] == pytest.approx(
            np.mean([p_k[v] for p_k, v in zip(by_hand(panel, others), panel.vote_ji[j], strict=True)])
        )


def test_the_best_panels_are_those_of_all_panels(run):
    panel = read_panel(run, run.questions[0])
    cost_j = np.array([4.0, 1.0, 2.0, 0.5])
    best = best_panels(panel, cost_j)
    known = np.flatnonzero(panel.gold_i != UNKNOWN)
    every = [some for size in range(1, 5) for some in combinations(range(4), size)]
    wrong = {some: (by_hand(panel, some)[known].argmax(axis=1) != panel.gold_i[known]).mean() for some in every}
    assert set(best["graded_by"]) == {"known answers"}
    for cost, share in best.select("cost", "wrong").iter_rows():
        least = min(one for some, one in wrong.items() if cost_j[list(some)].sum() <= cost + 1e-9)
        assert share == pytest.approx(least)
    assert best["cost"].is_sorted()


def test_a_panel_chosen_on_one_half_is_graded_on_the_other(run):
    panel = read_panel(run, run.questions[0])
    panel = panel.take(np.flatnonzero(panel.gold_i != UNKNOWN))
    half = np.random.default_rng([7, len(panel.gold_i)]).permutation(len(panel.gold_i)) % 2 == 0
    best = best_panels(panel, np.ones(4), seed=7)
    every = [some for size in range(1, 5) for some in combinations(range(4), size)]
    wrong = {some: by_hand(panel, some).argmax(axis=1) != panel.gold_i for some in every}
    for cost, unseen in best.select("cost", "wrong_unseen").iter_rows():
        within = [some for some in every if len(some) <= cost]
        chosen = [min(within, key=lambda some, on=on: round(wrong[some][on].mean(), 9)) for on in (half, ~half)]
        expected = (wrong[chosen[0]][~half].mean() + wrong[chosen[1]][half].mean()) / 2
        assert unseen == pytest.approx(expected)


def test_a_single_item_has_no_best_panel(run):
    panel = read_panel(run, run.questions[0]).take(np.array([0]))
    assert best_panels(panel, np.ones(4)).is_empty()


def test_a_hijacked_panel_is_ranked_by_known_answers(hijacked):
    frame = hijacked.judges
    assert frame["judge"][-1] == "gpt-a"
    assert set(frame["judge"][:2]) == {"qwen", "qwen-copy"}
    assert row_of(frame, "qwen")["counted_with"] == "qwen-copy"
    # Its copy is not among the others that it is compared with.
    assert row_of(frame, "qwen")["agrees"] < 0.8


def test_copies_are_never_both_in_a_panel(hijacked):
    panels = describe_judges(hijacked).panels
    assert not panels["judges"].str.contains("qwen, qwen-copy").any()


def test_names_tell_model_prompt_and_order():
    assert guess_role("ChatGPT-0301/Vanilla_1shot/ba", models=True) == Role(
        "ChatGPT-0301/Vanilla_1shot/ba", "llm", "ChatGPT-0301", "Vanilla_1shot", "ba"
    )
    assert guess_role("gpt-4o run 2", models=True).repeat == "2"
    assert guess_role("human1", models=False).role == "person"


def test_order_and_repeats_are_counted():
    def first_shown(truth, cast, rng):
        return np.where(rng.random(len(truth)) < 0.3, True, truth)

    def last_shown(truth, cast, rng):
        return np.where(rng.random(len(truth)) < 0.3, False, truth)

    judges = {"gpt/p/ab": first_shown, "gpt/p/ba": last_shown, "llama#1": 0.85, "llama#2": copy_of("llama#1", 0.1),
              "qwen": 0.8}  # fmt: skip
    run = me.audit(votes_of(judges, 300), draws=20)
    panel = read_panel(run, run.questions[0])
    rows = describe_judges(run).repeats
    [order] = rows.filter(kind="order").to_dicts()
    a, b = (panel.vote_ji[panel.judges.index(name)] for name in ("gpt/p/ab", "gpt/p/ba"))
    assert (order["same"], order["bias"]) == pytest.approx(((a == b).mean(), (a - b).mean()))
    assert order["bias_low"] > 0
    [again] = rows.filter(kind="repeat").to_dicts()
    assert again["bias"] is None
    assert 0.85 < again["same"] < 0.95
    notes = " ".join(describe_judges(run).notes)
    assert "favour what is shown first" in notes
    counted = row_of(run.judges, "llama#1")["counted_with"]
    assert counted == "llama#2" or "--merge 'llama#1+llama#2'" in notes


def test_a_judge_that_votes_twice_is_counted(votes):
    flipped = votes.filter((pl.col("annotator") == "llama") & (pl.col("item") < 20)).with_columns(
        label=pl.when(pl.col("item") < 5).then(pl.lit("no")).otherwise("label")
    )
    run = me.audit(pl.concat([votes, flipped]), on_repeat="count", draws=20)
    found = describe_judges(run)
    [row] = found.repeats.filter(kind="again").to_dicts()
    mine = dict(votes.filter(annotator="llama").select("item", "label").iter_rows())
    wanted = np.mean([mine[i] == label for i, label in flipped.select("item", "label").iter_rows()])
    assert (row["judge"], row["n"], row["same"]) == ("llama", 20, pytest.approx(wanted))
    assert "--on-repeat first" in " ".join(found.notes)


def found_in(run):
    """Findings about judges by figure; the notes of the judges say the same."""
    found = {one["metric"]: one for one in run.findings.filter(check="judges").iter_rows(named=True)}
    notes = " ".join(describe_judges(run).notes)
    assert all(one["text"] in notes and one["remedy"] in notes for one in found.values())
    assert all(one["text"].removesuffix(".") in {c.text[:1].lower() + c.text[1:] for c in cautions(run)}
               for one in found.values())  # fmt: skip
    return found


def test_a_judge_that_fails_is_a_finding():
    def fails(truth, cast, rng):
        return [bool(one) if rng.random() > 0.3 else None for one in truth]

    found = found_in(me.audit(votes_of({**PANEL, "llama": fails}), draws=20))
    assert set(found) == {"judge_fails"}
    assert found["judge_fails"]["text"] == "llama fails on 28% of the items."
    assert found["judge_fails"]["level"] == "doubt"


def test_people_who_leave_items_out_do_not_fail():
    def skips(truth, cast, rng):
        return [bool(one) if rng.random() > 0.3 else None for one in truth]

    run = me.audit(votes_of({"ann": 0.9, "ben": 0.8, "cem": 0.85, "dua": skips}), draws=20)
    assert "roles" not in run.manifest and not found_in(run)


def test_a_judge_that_always_says_yes_is_a_finding():
    found = found_in(me.audit(votes_of({**PANEL, "llama": lambda t, c, r: t | True}), draws=20))
    assert found["always_the_same"]["text"] == "llama always says 'yes' (100.0% of 240 votes)."


def test_a_panel_of_one():
    run = me.audit(votes_of({"gpt": 0.9}), draws=20)
    found = describe_judges(run)
    assert found_in(run)["one_judge"]["subject"] == "gpt"
    assert found.panels.is_empty()
    assert found.frame["right"][0] == pytest.approx(0.9, abs=0.1)
    assert found.frame["right_all"][0] == found.frame["right"][0]
    assert me.score(run).frame["method"].to_list() == ["corrected"]


def test_known_answers_of_one_label():
    votes = votes_of(PANEL).with_columns(gold=pl.when(pl.col("gold") == "yes").then("gold"))
    run = me.audit(votes, draws=20)
    n = votes.unique("item")["gold"].drop_nulls().len()
    assert found_in(run)["one_label_known"]["text"] == f"all {n} known answers are 'yes'."
    assert describe_judges(run).frame["specificity"].is_null().all()


def test_all_votes_say_how_right_a_judge_is(run):
    """By hand: the posterior of the others, and the score of the votes that are right."""
    panel, frame = read_panel(run, run.questions[0]), run.judges
    for j, name in enumerate(panel.judges):
        others = [k for k in range(len(panel.judges)) if k != j]
        p_i = panel.posterior(others)[np.arange(len(panel.gold_i)), panel.vote_ji[j]]
        right_i = np.array([UNKNOWN if g == UNKNOWN else int(v == g)
                            for v, g in zip(panel.vote_ji[j], panel.gold_i, strict=True)])  # fmt: skip
        found = corrected_mean(right_i, np.stack([1 - p_i, p_i], axis=1), np.array([0.0, 1.0]))
        row = row_of(frame, name)
        assert (row["right_all"], row["right_all_low"]) == pytest.approx((found.value, found.low))
        assert row["right_all_high"] - row["right_all_low"] < row["right_high"] - row["right_low"]


def test_without_known_answers_the_others_rank(votes):
    found = describe_judges(me.audit(votes.drop("gold"), draws=20))
    assert found.frame["agrees"].is_sorted()
    assert set(found.frame["graded_by"]) == {"consensus"}
    assert "0 known answers" in " ".join(found.notes)


def test_roles_and_costs_from_files(run, tmp_path):
    roles = tmp_path / "roles.csv"
    roles.write_text("judge,role,model\ngpt-a,human,\ngpt-b,human,\nllama,llm,llama-3\n")
    costs = tmp_path / "costs.csv"
    costs.write_text("judge,cost\ngpt-a,3\ngpt-b,1\nllama,0.5\nqwen,0.1\n")
    found = describe_judges(run, JudgeOptions(roles=str(roles), costs=str(costs)))
    assert row_of(found.frame, "gpt-a")["role"] == "person"
    assert row_of(found.frame, "llama")["model"] == "llama-3"
    assert row_of(found.frame, "qwen")["cost"] == 0.1
    assert found.replace["judge"].to_list() == ["llama", "qwen"]
    assert found.notes[0] == "roles of 3 judges as told, 1 guessed from their names"
    roles.write_text("judge,role\ngpt-x,llm\n")
    with pytest.raises(VotesError, match=r"1 of 1 judges .* never voted. First: 'gpt-x'. Did you mean 'gpt-b'\?"):
        describe_judges(run, JudgeOptions(roles=str(roles)))
    costs.write_text("judge,cost\ngpt-a,3\n")
    with pytest.raises(VotesError, match=r"no cost of 3 of 4 judges\. First: .gpt-b."):
        describe_judges(run, JudgeOptions(costs=str(costs)))


def test_roles_told_at_audit_stay_with_the_run(votes, tmp_path):
    kinds = {"gpt-a": "human", "gpt-b": "human", "llama": "llm", "qwen": "person"}
    told = votes.with_columns(kind=pl.col("annotator").replace(kinds))
    run = me.audit(told, draws=20, roles="kind", out=tmp_path / "run")
    assert {one["judge"]: one["role"] for one in run.manifest["roles"]["judges"]} == {
        name: "llm" if kind == "llm" else "person" for name, kind in kinds.items()
    }
    assert "roles of 4 judges as told." in run.manifest["notes"]
    found = describe_judges(me.read_run(tmp_path / "run"))
    assert found.replace["judge"].to_list() == ["llama"] and found.notes[0] == "roles of 4 judges as told"
    # Without roles all four would be models, by their names.
    assert {one["role"] for one in me.audit(votes, draws=20).manifest["roles"]["judges"]} == {"llm"}
    file = pl.DataFrame({"judge": ["llama"], "role": ["llm"], "model": ["llama-3"], "order": ["ba"]})
    stored = me.audit(votes, draws=20, roles=file).manifest["roles"]
    assert stored["judges"][2]["model"] == "llama-3" and stored["judges"][2]["order"] == "ba"
    assert stored["said"] == "roles of 1 judges as told, 3 guessed from their names"


def test_roles_that_cannot_be_are_refused(votes):
    two = votes.with_columns(kind=pl.when(pl.col("item") < 3).then(pl.lit("llm")).otherwise(pl.lit("person")))
    with pytest.raises(VotesError, match=r"4 judges have two roles in the column 'kind'\. First: 'gpt-a' is"):
        me.audit(two, draws=0, roles="kind")
    with pytest.raises(VotesError, match=r"no column 'role'.*--roles"):
        me.audit(votes, draws=0, roles="role")
    with pytest.raises(VotesError, match=r"there is no file 'roles\.csv'"):
        me.audit(votes, draws=0, roles="roles.csv")
    with pytest.raises(VotesError, match="has the role 'robot'; write person or llm"):
        me.audit(votes, draws=0, roles=pl.DataFrame({"judge": ["llama"], "role": ["robot"]}))


def test_the_command(run, tmp_path, capsys):
    run.save(tmp_path / "run")
    assert main(["judges", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "best panel for its price, by known answers" in shown
    # Scores come first, as answers are known.
    assert 0 <= shown.index("share of 'yes'") < shown.index("4 judges; worst first")
    assert main(["judges", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["judge"] for one in told["judges"]] == run.judges["judge"].to_list()
    assert told["scores"][0]["value"] == me.score(run).frame["value"][0]


def test_without_known_answers_and_systems_there_is_no_score(votes, tmp_path, capsys):
    me.audit(votes.drop("gold"), draws=0, report=False, out=tmp_path / "run")
    assert main(["judges", str(tmp_path / "run")]) == 0
    assert "PPI++" not in capsys.readouterr().out
    assert main(["judges", str(tmp_path / "run"), "--at-least", "0.5"]) == 0
    assert "undecided" in capsys.readouterr().out
