"""Judges of runs: against plain counting and a posterior summed by hand; odd panels end in plain words."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, binom

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import VotesError
from moral_entropy.judges.known import known_items
from moral_entropy.judges.panel import added_by_each, best_panels, effective_judges, read_panel
from moral_entropy.judges.roles import guess_roles
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


def panel_of(run):
    return read_panel(run, known_items(run, run.questions[0]))


def test_the_best_come_first(run):
    assert run.judges["right_all"].is_sorted(descending=True)
    assert run.judges["judge"][-1] == "qwen"
    assert "right in " in run.judges["advice"][0]


def by_hand(panel, members, half):
    """Label probabilities and answers of half of the known items by some judges, as the other half says they vote."""
    rows = np.flatnonzero(panel.gold_i != UNKNOWN)
    half_i = np.random.default_rng(len(rows)).permutation(len(rows)) % 2
    learn, p_ik = rows[half_i != half], []
    for i in rows[half_i == half]:
        p_k = np.array([(panel.gold_i[learn] == k).sum() + 0.5 for k in (0, 1)])
        for j in members:
            for k in (0, 1):
                votes = [panel.vote_ji[j, at] for at in learn if panel.gold_i[at] == k]
                p_k[k] *= (votes.count(panel.vote_ji[j, i]) + (1.0 if panel.vote_ji[j, i] == k else 0.5)) / (
                    len(votes) + 1.5
                )
        p_ik.append(p_k / p_k.sum())
    return np.array(p_ik), panel.gold_i[rows[half_i == half]]


def test_what_a_judge_adds_is_the_change_by_hand(run):
    panel, kept = panel_of(run), []
    order = [panel.judges.index(judge) for judge in run.judges["judge"]]
    added = added_by_each(panel, order)
    for place, j in enumerate(order):
        nats, saved = [], []
        for half in (0, 1):
            (after, gold), (before, _) = (by_hand(panel, members, half) for members in ([*kept, j], kept))
            at = np.arange(len(gold))
            nats += np.log(after[at, gold] / before[at, gold]).tolist()
            saved += ((after.argmax(axis=1) == gold) * 1.0 - (before.argmax(axis=1) == gold)).tolist()
        assert added.row(place)[::2] == (pytest.approx(np.mean(nats)), pytest.approx(np.mean(saved)))
        if np.mean(nats) > 1.645 * np.std(nats) / len(nats) ** 0.5:
            kept.append(j)
    advised = run.judges.filter(pl.col("advice").str.starts_with("keep"))["judge"].to_list()
    assert advised == [panel.judges[j] for j in kept]
    assert 0 < len(kept) < 4


def test_whoever_is_not_kept_may_be_left_out_with_all_others_who_are_not():
    """Five alike, each spare beside the others: those who are kept label nearly as well as all five, and are some."""
    alike = dict.fromkeys(["gpt-a", "gpt-b", "llama", "qwen", "phi-3"], 0.75)
    lost = []
    for seed in range(6):
        frame = me.audit(votes_of(alike, 400, known=0.375, seed=seed), draws=0).judges
        n_kept = frame["advice"].str.starts_with("keep").sum()
        assert n_kept >= 2 and frame["advice"][0].startswith("keep")
        # How often the majority of so many judges is right: an even number is as good as one fewer.
        right = [binom(n, 0.75).sf(n // 2) for n in (5, n_kept - (n_kept + 1) % 2)]
        lost.append(right[0] - right[1])
    assert np.mean(lost) < 0.06


def test_agreement_is_that_of_the_summary_of_annotators(run):
    summary = dict(run.annotators.select("annotator", "disagreement_others").iter_rows())
    for judge, agrees in run.judges.select("judge", "agrees").iter_rows():
        assert agrees == pytest.approx(1 - summary[judge])


def test_the_best_panels_are_those_of_all_panels(run):
    panel = panel_of(run)
    best = best_panels(panel)
    every = [members for size in range(1, 5) for members in combinations(range(4), size)]
    wrong = {members: [np.argmax(p_ik, axis=1) != gold for p_ik, gold in (by_hand(panel, members, on) for on in (0, 1))]
             for members in every}  # fmt: skip
    for size, share, unseen in best.select("size", "wrong", "wrong_unseen").iter_rows():
        within = [members for members in every if len(members) <= size]
        assert share == pytest.approx(min(np.concatenate(wrong[members]).mean() for members in within))
        chosen = [min(within, key=lambda members, on=on: round(wrong[members][on].mean(), 9)) for on in (0, 1)]
        assert unseen == pytest.approx((wrong[chosen[0]][1].mean() + wrong[chosen[1]][0].mean()) / 2)
    assert best["size"].is_sorted()


def wrong_majority(seed, n=600, n_known=150):
    """Two good judges and three who are wrong together on most items; and their votes, truths and known answers."""
    rng = np.random.default_rng(seed)
    truth_i, shared_i = rng.random(n) < 0.6, rng.random(n) < 0.6
    votes = {"gpt-4o": rng.random(n) < 0.9, "sonnet": rng.random(n) < 0.8}
    votes |= {
        name: np.where(rng.random(n) < 0.9, ~shared_i, rng.random(n) < 0.5) for name in ("llama", "qwen", "phi-3")
    }
    known_i = np.arange(n) < n_known
    gold = [("no", "yes")[truth * 1] if known else None for truth, known in zip(truth_i, known_i, strict=True)]
    rows = [(i, name, "no" if right_i[i] != truth_i[i] else "yes", gold[i]) for name, right_i in votes.items()
            for i in range(n)]  # fmt: skip
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "gold"], orient="row"), truth_i, votes


def test_known_answers_overrule_a_majority_that_is_wrong():
    gains = []
    for seed in range(4):
        votes, truth_i, right = wrong_majority(seed)
        run = me.audit(votes, draws=20)
        judges = describe_judges(run)
        assert judges.frame["judge"][:2].to_list() == ["gpt-4o", "sonnet"]
        unseen = judges.labels.filter(~pl.col("known"))
        item_i = unseen["item"].cast(pl.Int64).to_numpy()
        accuracy = ((unseen["label"] == "yes").to_numpy() == truth_i[item_i]).mean()
        gains.append(accuracy - right["gpt-4o"][150:].mean())
        assert "gpt-4o" in judges.panels["judges"][-1] and judges.panels["wrong_unseen"][-1] < 0.15
        assert "write them with --labels" in " ".join(judges.notes)
        below = run.findings.filter(metric="below_chance")["text"].to_list()
        assert not any("gpt-4o" in text or "sonnet" in text for text in below)
        assert (
            not run.annotators.filter(pl.col("annotator").is_in(["gpt-4o", "sonnet"]))["role"]
            .str.contains("guess")
            .any()
        )
    # As good as the best judge, whom nothing betters here.
    assert np.mean(gains) >= -0.001


def test_labels_follow_the_judge_who_comes_first_also_where_another_has_more_known_answers_right():
    votes, _, right = wrong_majority(61_106)
    assert right["sonnet"][:150].sum() > right["gpt-4o"][:150].sum()
    judges = describe_judges(me.audit(votes, draws=0))
    assert judges.frame["judge"][0] == "gpt-4o"
    unseen = judges.labels.filter(~pl.col("known")).cast({"item": pl.Int64})
    first = unseen.join(votes.filter(annotator="gpt-4o"), on="item", suffix="_cast")
    assert first.select((pl.col("label") == pl.col("label_cast")).mean()).item() > 0.98


def test_judges_who_err_together_are_worth_fewer():
    apart, together = votes_of(PANEL, 900, known=1.0), wrong_majority(1, n_known=600)[0]
    n_apart, n_together = (effective_judges(panel_of(me.audit(votes, draws=0)))[0] for votes in (apart, together))
    assert n_apart == pytest.approx(4, abs=0.6)
    assert n_together < 3


def test_a_hijacked_panel_is_ranked_by_known_answers(hijacked):
    frame = hijacked.judges
    assert frame["judge"][0] == "gpt-a"
    assert set(frame["judge"][-2:]) == {"qwen", "qwen-copy"}
    assert frame["advice"][-1].startswith("drop: a copy of qwen")
    assert row_of(frame, "qwen")["counted_with"] == "qwen-copy"
    # Its copy is not among the others that it is compared with.
    assert row_of(frame, "qwen")["agrees"] < 0.8


def test_copies_are_never_both_in_a_panel(hijacked):
    panels = describe_judges(hijacked).panels
    assert not panels["judges"].str.contains("qwen, qwen-copy").any()


@pytest.mark.parametrize("known", [0.0, 0.4])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_copy_is_dropped_known_answers_or_not(noise, known):
    for seed in range(3):
        judges = {**PANEL, "sonnet": 0.8, "llama-again": copy_of("llama", noise)}
        frame = me.audit(votes_of(judges, 400, known=known, seed=seed), draws=0).judges
        copies = frame.filter(pl.col("advice").str.starts_with("drop: a copy of llama"))
        assert copies.height == 1 and copies["judge"][0].startswith("llama")
        assert row_of(frame, "llama")["counted_with"] == "llama-again"


def test_good_judges_who_agree_because_they_are_right_are_no_copies():
    for seed in range(3):
        frame = me.audit(votes_of(dict.fromkeys(["gpt-a", "gpt-b", "llama", "qwen", "phi-3"], 0.97), 400, seed=seed),
                         draws=0).judges  # fmt: skip
        assert not frame["advice"].str.contains("copy").any() and (frame["counted_with"] == "").all()


def test_names_tell_models_from_people():
    models = ["ChatGPT-0301/Vanilla_1shot/ba", "gpt-4o run 2", "nli/sp"]
    assert guess_roles(models) == dict.fromkeys(models, "llm")
    people = ["human1", "Anna", "Claude", "Gemma", "Bard", "Phil", "Opal"]
    assert guess_roles([*people, "gpt-4o"]) == dict.fromkeys(people, "person") | {"gpt-4o": "llm"}


def test_scorers_of_a_log_are_no_people(tmp_path):
    scores = [{"includes": {"value": "CI"[n % 2]}, "openai/gpt-4o": {"value": "CCI"[n % 3]}} for n in range(12)]
    samples = [{"id": n, "epoch": 1, "input": "ask", "target": "x", "scores": score} for n, score in enumerate(scores)]
    (tmp_path / "log.json").write_text(json.dumps({"eval": {"task": "qa", "model": "m"}, "samples": samples}))
    run = me.audit(tmp_path / "log.json", draws=0)
    assert {role["role"] for role in run.manifest["roles"]["judges"]} == {"llm"}
    assert me.score(run).frame["n_gold"].to_list() == [0]


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


def test_a_judge_without_a_single_verdict_is_named(tmp_path, capsys):
    """Of a log: whoever never voted is in no table of votes, and would go unnoticed."""
    panel = {"gpt-4o": "Verdict: {}", "llama": "Verdict: {}", "mistral": "I cannot say."}
    lines = [json.dumps({"id": n, "judges": {name: text.format(("yes", "no")[n % 2]) for name, text in panel.items()}})
             for n in range(40)]  # fmt: skip
    (tmp_path / "judged.jsonl").write_text("\n".join(lines))
    run = me.audit(tmp_path / "judged.jsonl", draws=0, out=tmp_path / "run")
    assert run.manifest["dropped"] == {"mistral without a verdict": 40}
    assert main(["judges", str(tmp_path / "run")]) == 0
    assert "mistral fails on 100% of the items. It has no vote." in " ".join(capsys.readouterr().out.split())


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
    assert found.frame["right_all"][0] == pytest.approx(found.frame["right"][0], abs=0.01)
    assert me.score(run).frame["method"].to_list() == ["corrected"]


def test_known_answers_of_one_label():
    votes = votes_of(PANEL).with_columns(gold=pl.when(pl.col("gold") == "yes").then("gold"))
    run = me.audit(votes, draws=20)
    n = votes.unique("item")["gold"].drop_nulls().len()
    assert found_in(run)["one_label_known"]["text"] == f"all {n} known answers are 'yes'."
    assert describe_judges(run).frame["specificity"].is_null().all()


def test_all_votes_say_how_right_a_judge_is():
    """The planted accuracy is held by an interval that is shorter than that of the known answers alone."""
    held, shorter = [], []
    for seed in range(12):
        frame = me.audit(votes_of(PANEL, 400, known=0.2, seed=seed), draws=0).judges
        for row in frame.iter_rows(named=True):
            held.append(row["right_all_low"] <= PANEL[row["judge"]] <= row["right_all_high"])
            shorter.append((row["right_all_high"] - row["right_all_low"]) / (row["right_high"] - row["right_low"]))
    assert np.mean(held) >= 0.8
    assert np.mean(shorter) < 0.95


def test_without_known_answers_the_others_rank(votes):
    found = describe_judges(me.audit(votes.drop("gold"), draws=20))
    assert found.frame["agrees"].is_sorted(descending=True)
    assert found.frame["nats"].is_null().all() and found.panels.is_empty()
    assert "0 known answers" in " ".join(found.notes)


def test_roles_from_a_file(run, tmp_path):
    roles = tmp_path / "roles.csv"
    roles.write_text("judge,role,model\ngpt-a,human,\ngpt-b,human,\nllama,llm,llama-3\n")
    found = describe_judges(run, JudgeOptions(roles=str(roles)))
    assert found.frame["judge"].to_list() == ["llama", "qwen"]
    assert found.replace["judge"].to_list() == ["llama", "qwen"]
    assert found.notes[0] == "roles of 3 judges as told, 1 guessed from their names"
    roles.write_text("judge,role\ngpt-x,llm\n")
    with pytest.raises(VotesError, match=r"1 of 1 judges .* never voted. First: 'gpt-x'. Did you mean 'gpt-b'\?"):
        describe_judges(run, JudgeOptions(roles=str(roles)))


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
    stored = me.audit(votes, draws=20, roles=pl.DataFrame({"judge": ["llama"], "role": ["llm"]})).manifest["roles"]
    assert stored["said"] == "roles of 1 judge as told, 3 guessed from their names"


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
    assert "best panel of each size, by known answers" in shown
    # Scores come first, as answers are known.
    assert 0 <= shown.index("share of 'yes'") < shown.index("4 judges, best first")
    assert main(["judges", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["judge"] for one in told["judges"]] == run.judges["judge"].to_list()
    assert told["scores"][0]["value"] == me.score(run).frame["value"][0]


def test_without_known_answers_and_systems_there_is_no_score(votes, tmp_path, capsys):
    me.audit(votes.drop("gold"), draws=0, report=False, out=tmp_path / "run")
    assert main(["judges", str(tmp_path / "run")]) == 0
    assert "PPI++" not in capsys.readouterr().out
    assert main(["judges", str(tmp_path / "run"), "--at-least", "0.5"]) == 3
    assert "undecided" in capsys.readouterr().out
