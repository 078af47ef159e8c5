"""Plugins: the example package works as installed, and whatever is wrong with a plugin is one sentence."""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.compare.models import compare_models
from moral_entropy.errors import PluginError, UsageError
from moral_entropy.plugins import FORMATS, MODELS, RULES, load_plugin, plugin_names
from moral_entropy.rules.rules import rule_named

EXAMPLE = Path(__file__).parents[1] / "examples" / "moral-entropy-pairs"


def install(folder, name, entry_points, **modules):
    """Lay a package out as pip does: its modules, and a folder of facts about it."""
    facts = folder / f"{name.replace('-', '_')}-1.0.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {at}\n" for key, at in of.items()) for group, of in entry_points.items()
    ]
    (facts / "entry_points.txt").write_text("\n".join(lines))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name, module in sys.modules.items() if str(folder) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


@pytest.fixture
def example(site):
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    source = (EXAMPLE / "src" / "moral_entropy_pairs" / "__init__.py").read_text()
    install(site, project["name"], project["entry-points"], moral_entropy_pairs=source)
    return site


def pairs_file(path):
    draw = random.Random(2)
    votes = {f"t{n:02}": {a: ("no", "yes")[draw.random() < (0.2, 0.8)[n % 2]] for a in "uvwx"} for n in range(40)}
    lines = (f"{item}: " + " ".join(f"{name}={label}" for name, label in cast.items()) for item, cast in votes.items())
    path.write_text("\n".join(lines) + "\n")
    return votes


def test_the_example_reads_its_format_and_grades_its_rule(example, tmp_path, monkeypatch, capsys):
    votes = pairs_file(tmp_path / "votes.pairs")
    monkeypatch.chdir(tmp_path)
    asked = ["audit", "votes.pairs", "--format", "pairs", "--rules", "any,all-but-one", "-o", "run", "--draws", "20"]
    assert main(asked) == 0, capsys.readouterr().err
    run = me.read_run("run")
    cast = {(row["item"], row["annotator"]): row["label"] for row in run.table("votes").iter_rows(named=True)}
    assert cast == {(item, name): label for item, of in votes.items() for name, label in of.items()}
    assert run.manifest["input"]["sha256"] and run.manifest["options"]["grade"]["rules"] == ["any", "all-but-one"]
    agreed = {item: sum(label == "no" for label in of.values()) <= 1 for item, of in votes.items()}
    label = dict(zip(run.items["item"], run.items["label"], strict=True))
    missed = [not agreed[item] for item in votes if label[item] == "yes"]
    fnr = run.rules.filter(rule="all-but-one", metric="fnr", domain="(all)", question="(all)", reference="consensus")
    assert fnr["value"].to_list() == [pytest.approx(sum(missed) / len(missed))]
    assert me.verify("run").stands


def test_names_are_listed_and_loaded_late(example):
    assert "pairs" in plugin_names(FORMATS) and "all-but-one" in plugin_names(RULES)
    assert "moral_entropy_pairs" not in sys.modules
    assert rule_named("all-but-one").meaning == "at most one vote negative"
    assert "moral_entropy_pairs" in sys.modules
    assert load_plugin(RULES, "nobody-has-this") is None


def test_unknown_names_list_those_of_plugins(example):
    with pytest.raises(UsageError, match=r"format is 'pears'; choose one of auto, .*, pairs\."):
        me.read_votes("votes.csv", format="pears")
    with pytest.raises(me.MoralEntropyError, match=r"there is no rule 'some-but-one'.*all-but-one"):
        rule_named("some-but-one")


def test_a_plugin_that_cannot_be_loaded_is_one_sentence_with_its_name(site, tmp_path, capsys):
    install(
        site, "broken-votes", {FORMATS: {"broken": "broken_votes:read"}}, broken_votes="import nowhere_to_be_found\n"
    )
    (tmp_path / "votes.x").write_text("x")
    assert main(["audit", str(tmp_path / "votes.x"), "--format", "broken", "-o", str(tmp_path / "run")]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: the plugin 'broken' of broken-votes 1.0.0 cannot be loaded: ModuleNotFoundError")
    assert "Traceback" not in told and told.count("\n") == 1 and not (tmp_path / "run").exists()


def test_a_plugin_that_fails_on_a_file_is_one_sentence_too(site, tmp_path):
    module = "def read(path):\n    raise KeyError('votes')\n"
    install(site, "failing-votes", {FORMATS: {"failing": "failing_votes:read"}}, failing_votes=module)
    (tmp_path / "votes.x").write_text("x")
    with pytest.raises(PluginError, match=r"the plugin 'failing' failed to read votes.x: KeyError: 'votes'"):
        me.read_votes(tmp_path / "votes.x", format="failing")


def test_two_packages_with_one_name_are_both_named(site):
    for name in ("one-rule", "other-rule"):
        install(site, name, {RULES: {"twin": f"{name.replace('-', '_')}:rule"}})
    with pytest.raises(
        PluginError, match=r"2 packages offer 'twin' in moral_entropy.rules: one-rule 1.0.0, other-rule"
    ):
        rule_named("twin")


def test_a_plugin_cannot_replace_a_rule_of_ours(site):
    install(site, "sly-rule", {RULES: {"majority": "sly_rule:rule"}}, sly_rule="def rule(counts):\n    return 1 / 0\n")
    assert rule_named("majority").meaning.startswith("at least half")


def test_a_function_is_a_rule_under_the_name_of_its_entry_point(site):
    module = 'def chosen(counts):\n    "Two or more."\n    return counts[:, 1] >= 2\n'
    install(site, "plain-rule", {RULES: {"two-or-more": "plain_rule:chosen"}}, plain_rule=module)
    rule = rule_named("two-or-more")
    assert (rule.name, rule.meaning) == ("two-or-more", "Two or more.")
    assert rule.scores(np.array([[3, 1], [0, 2]]), label=1).tolist() == [0.0, 1.0]


def model_votes():
    """Return votes of four annotators on thirty texts, gold on twenty of them, and the same by item."""
    draw = random.Random(5)
    truth = [draw.random() < 0.5 for _ in range(30)]
    right = {"u": 0.95, "v": 0.8, "w": 0.7, "x": 0.45}
    cast = {n: {a: ("no", "yes")[truth[n] == (draw.random() < p)] for a, p in right.items()} for n in range(30)}
    rows = [
        {"item": n, "annotator": a, "label": label, "gold": ("no", "yes")[truth[n]] if n < 20 else None}
        for n, votes in cast.items()
        for a, label in votes.items()
    ]
    return pl.DataFrame(rows), cast, truth


def agreement_by_hand(cast):
    """Return the example's p of yes, in plain Python."""
    most = {n: max(("no", "yes"), key=lambda label: list(votes.values()).count(label)) for n, votes in cast.items()}
    weight = {a: sum(votes[a] == most[n] for n, votes in cast.items()) / len(cast) for a in "uvwx"}
    score = {
        n: {label: 0.5 + sum(weight[a] for a, said in votes.items() if said == label) for label in ("no", "yes")}
        for n, votes in cast.items()
    }
    return {n: one["yes"] / (one["no"] + one["yes"]) for n, one in score.items()}


def test_the_example_models_votes_and_is_held_beside_the_consensus(example, tmp_path, monkeypatch, capsys):
    votes, cast, truth = model_votes()
    monkeypatch.chdir(tmp_path)
    run = me.audit(votes, out="run", gold="gold", draws=20)
    assert main(["compare", "run", "--models", "wawa", "--json"]) == 0, capsys.readouterr().err
    told = json.loads(capsys.readouterr().out)
    consensus, share, wawa = told["models"]
    assert [one["model"] for one in told["models"]] == ["consensus", "vote share", "wawa"] and told["notes"] == []
    p = agreement_by_hand(cast)
    ours = dict(run.items.select("item", "p").iter_rows())
    assert wawa["moved"] == pytest.approx(sum(abs(p[n] - ours[n]) for n in p) / 30)
    assert wawa["changed"] == pytest.approx(sum((p[n] >= 0.5) != (ours[n] >= 0.5) for n in p) / 30)
    loss = {
        name: [-math.log(of[n] if truth[n] else 1 - of[n]) for n in range(20)]
        for name, of in (("wawa", p), ("consensus", ours))
    }
    assert wawa["log_loss"] == pytest.approx(statistics.mean(loss["wawa"]))
    assert wawa["accuracy"] == pytest.approx(sum((p[n] > 0.5) == truth[n] for n in range(20)) / 20)
    less = [a - b for a, b in zip(loss["consensus"], loss["wawa"], strict=True)]
    reach = statistics.NormalDist().inv_cdf(0.95) * statistics.stdev(less) / math.sqrt(20)
    assert wawa["gain"] == pytest.approx(statistics.mean(less))
    assert [wawa["gain_low"], wawa["gain_high"]] == pytest.approx([wawa["gain"] - reach, wawa["gain"] + reach])
    smooth = {n: (0.5 + sum(label == "yes" for label in of.values())) / 5 for n, of in cast.items()}
    assert share["moved"] == pytest.approx(sum(abs(smooth[n] - ours[n]) for n in p) / 30)
    assert consensus["changed"] == consensus["moved"] == 0 and consensus["gain"] is None
    assert consensus["log_loss"] == pytest.approx(statistics.mean(loss["consensus"]))
    assert main(["compare", "run", "--models", "wawa"]) == 0
    screen = capsys.readouterr().out
    assert "30 items, 20 with a known answer" in screen and max(map(len, screen.splitlines())) <= 80


@pytest.fixture(scope="module")
def modelled():
    """Return runs of two kinds: three labels fitted by part, and one whose gold was evidence."""
    votes, _, _ = model_votes()
    three = votes.with_columns(
        label=pl.when(pl.col("item") % 7 == 0).then(pl.lit("other")).otherwise("label"),
        domain=pl.when(pl.col("item") % 2 == 0).then(pl.lit("web")).otherwise(pl.lit("news")),
    ).drop("gold")
    by_part = me.audit(three, fit_by="domain", draws=0)
    return by_part, me.audit(votes, gold="gold", gold_as_evidence=True, draws=0)


def test_a_model_is_told_no_gold_and_asked_part_by_part(modelled):
    by_part, known = modelled
    seen = []

    def spy(ballot):
        seen.append((ballot.part, set(ballot.gold_i.tolist()), ballot.n_items))
        return (ballot.counts_ik + 0.5) / (ballot.counts_ik + 0.5).sum(axis=1, keepdims=True)

    table = compare_models(by_part, [spy])
    assert seen == [("news", {-1}, 15), ("web", {-1}, 15)]
    share, spied = table.frame.to_dicts()[1:]
    assert spied["moved"] == pytest.approx(share["moved"]) and spied["changed"] == share["changed"]
    assert table.notes[0].startswith("no answer to 'label' is known") and spied["log_loss"] is None
    seen.clear()
    table = compare_models(known, [spy])
    assert seen == [("", {-1}, 30)] and "cannot grade" in table.notes[0]
    consensus, _, spied = table.frame.to_dicts()
    assert consensus["log_loss"] is None and spied["log_loss"] > 0 and spied["gain"] is None


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("[[0.5, 0.5]]", r"returned an array of shape \(1, 2\) for 'label'; .* \(30, 2\)"),
        ("[[0.5, 0.5]] * 29 + [[0.7, 0.7]]", r"no probabilities for 1 of 30 items of 'label'. First: row 29, \[0.7"),
        ("[[0.5, 0.5]] * 29 + [[float('nan'), 1.0]]", "no probabilities for 1 of 30"),
        ("1 / 0", r"the plugin 'bad' failed on 'label': ZeroDivisionError"),
    ],
)
def test_what_is_no_probability_is_refused_with_the_first_row(returned, told, site, modelled):
    install(
        site, "bad-model", {MODELS: {"bad": "bad_model:ask"}}, bad_model=f"def ask(ballot):\n    return {returned}\n"
    )
    with pytest.raises(PluginError, match=told):
        compare_models(modelled[1], ["bad"])


def test_models_are_asked_for_by_names_that_exist_once(example, modelled):
    with pytest.raises(UsageError, match=r"no installed package offers a model 'waw'. Did you mean 'wawa'\?"):
        compare_models(modelled[1], ["waw"])
    with pytest.raises(UsageError, match="the model name 'wawa' is taken"):
        compare_models(modelled[1], ["wawa", "wawa"])
    with pytest.raises(UsageError, match="--models compares models of the votes of one run"):
        main(["compare", "a", "b", "--models", "wawa", "--debug"])
