"""`--json`: one object per command, nothing else on standard output, and what it says is what the screen says."""

from __future__ import annotations

import json

import pytest

from moral_entropy.runs.run import read_run
from moral_entropy.verdict.summary import Summary


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A run with a screen and the same run as JSON."""
    import contextlib
    import io

    from cli.conftest import vote_rows

    from moral_entropy.cli.main import main

    folder = tmp_path_factory.mktemp("json")
    rows = ["text_id,rater,foundation,vote,domain,truth"]
    rows += [f"{','.join(map(str, row))},{int(row[0][-1] in '158')}" for row in vote_rows(n_items=40)]
    (folder / "votes.csv").write_text("\n".join(rows) + "\n")
    arguments = ["audit", str(folder / "votes.csv"), "--gold", "truth", "--draws", "30", "--no-report"]
    screens = []
    for name, more in (("run", ["--verbose"]), ("json", ["--json"])):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main([*arguments, "-o", str(folder / name), *more]) == 0
        screens.append(out.getvalue())
    return folder, screens[0], json.loads(screens[1])


def test_the_object_says_what_the_screen_says(told):
    _, screen, facts = told
    words = " ".join(screen.split())
    assert facts["command"] == "audit" and facts["verdict"]["title"] in words
    assert " ".join(facts["verdict"]["text"].split()) in words
    assert [row["question"] for row in facts["summary"]["questions"]] == ["care", "fairness"]
    assert all(text in words for text in facts["summary"]["warnings"])
    assert facts["findings"]
    for finding in facts["findings"]:
        assert all(finding[part] in words for part in ("text", "meaning", "remedy"))
    assert facts["advice"] in words and facts["best_rule"]["against"] == "gold"


def test_its_figures_are_those_of_the_run(told):
    folder, _, facts = told
    run = read_run(folder / "json")
    assert facts["paths"] == {"run": str(folder / "json"), "spot_check": str(folder / "json" / "spot-check.csv")}
    assert facts["figures"]["error"]["value"] == run.verdict.error.value
    assert facts["figures"]["accuracy"]["value"] == 1 - run.verdict.error.value
    for rule in facts["rules"]:
        rows = run.rules.filter(rule=rule["names"][0], question="(all)", domain="(all)", reference="gold")
        for metric in ("fpr", "fnr", "fdr", "for"):
            assert rule["figures"][metric] is None or rule["figures"][metric]["value"] == pytest.approx(
                rows.filter(metric=metric)["value"].item()
            )
    assert [question["share_of_yes"] for question in facts["questions"]] == [
        fit["prevalence"]["1"] for fit in run.manifest["questions"]
    ]
    assert Summary(run).record().keys() <= facts.keys()
