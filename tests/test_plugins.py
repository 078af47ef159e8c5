"""Plugins: the example package works as installed, and whatever is wrong with a plugin is one sentence."""

from __future__ import annotations

import random
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import moral_entropy as me
from moral_entropy.cli.main import main
from moral_entropy.errors import PluginError, UsageError
from moral_entropy.plugins import FORMATS, RULES, load_plugin, plugin_names
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
