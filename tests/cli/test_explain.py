"""`moral-entropy explain`: the steps add up, hostile texts do nothing, unknown ids are answered."""

from __future__ import annotations

import json
import random

import numpy as np
import polars as pl
import pytest

from moral_entropy.cli.explain import waterfall
from moral_entropy.cli.screen import print_parts, printable
from moral_entropy.explanation import Explanation, Step, explain_item
from moral_entropy.model.entropy import TOO_FEW_TO_TELL
from moral_entropy.runs.folder import read_table


@pytest.fixture
def audited(audit_once):
    # Under the paper's model log-odds add up to p; between labels they do not.
    audit_once("run", "--draws", 50, "--model", "paper")


def logit(p):
    return np.log(p / (1 - p))


def test_steps_add_up_to_the_logit_of_p_map(audited):
    items = read_table("run", "items").filter(question="care")
    for item, p_map, n_votes in items.select("item", "p_map", "n_votes").rows()[:40]:
        [told] = explain_item("run", item, question="care")
        assert len(told.steps) == n_votes + 1 and told.steps[0].annotator is None
        total = 0.0
        for step in told.steps:
            total += step.contribution
            assert step.total == pytest.approx(total, abs=1e-12) and step.low <= step.contribution + 0.5
        assert total == pytest.approx(logit(p_map), rel=1e-9, abs=1e-9)
        assert told.p_map == p_map and (told.towards, told.against) == ("1", "0")


@pytest.mark.parametrize("labels", [2, 3])
def test_between_labels_steps_add_up_too(run, folder, labels):
    file = "votes.csv"
    if labels == 3:
        three_labels(folder / (file := "colours.csv"))
    assert run("audit", file, "-o", "mixed", "--draws", 50, "--quiet", "--model", "mixed")[0] == 0
    items = read_table("mixed", "items")
    for row in items.rows(named=True)[:40]:
        [told] = explain_item("mixed", str(row["item"]), question=row["question"])
        at_mode = {told.towards: row["p_map"], told.against: 1 - row["p_map"]}
        if labels == 3:
            own = read_table("mixed", "posterior").filter(pl.col("item") == row["item"])
            at_mode = dict(own.select("class", "p_map").rows())
        odds = np.log(at_mode[told.towards] / at_mode[told.against])
        assert sum(step.contribution for step in told.steps) == pytest.approx(odds, rel=1e-9, abs=1e-9)
        assert len(told.steps) == row["n_votes"] + 1 and told.model == "mixed"
    out = run("explain", "mixed", str(row["item"]))[1]
    assert "published, pooled with the share of the votes" in out and "depends on those before it" in out


def test_a_waterfall_for_every_question_or_one(run, audited):
    code, out, err = run("explain", "run", "t003")
    assert (code, err) == (0, "")
    assert "care - item t003 - Sandy" in out and "fairness - item t003 - Sandy" in out
    assert out.count("prior") == 2 and out.isascii()
    assert "fairness" not in run("explain", "run", "t003", "--question", "care")[1]


def test_json_is_the_explanation(run, audited):
    code, out, _ = run("explain", "run", "t003", "--question", "care", "--json")
    [told] = json.loads(out)["questions"]
    [row] = read_table("run", "items").filter(question="care", item="t003").to_dicts()
    assert code == 0
    assert told["p"] == row["p"] and told["label"] == row["label"] and not told["clamped"]
    assert told["steps"][-1]["total"] == pytest.approx(logit(row["p_map"]))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("t0031",), "no item 't0031' among 82 in run. Did you mean 't003'"),
        (("nowhere",), "no item 'nowhere' among 82 in run. First: 't000'"),
        (("t003", "--question", "cares"), "no question 'cares'. Did you mean 'care'?"),
    ],
)
def test_what_is_unknown_is_answered(run, audited, arguments, text):
    code, out, err = run("explain", "run", *arguments)
    assert (code, out) == (1, "")
    assert text in err and err.count("\n") == 1


def test_a_folder_that_is_no_run(run):
    code, _, err = run("explain", "nowhere", "t003")
    assert code == 1 and "no run folder" in err


def three_labels(path, n_items=60):
    draw = random.Random(2)
    lines = ["item,annotator,label,text"]
    for item in range(n_items):
        truth = draw.randrange(3)
        for name in "abcd":
            label = truth if draw.random() < 0.7 else draw.randrange(3)
            lines.append(f'{item},{name},{"rgb"[label]},"=evil() \x1b[31m{item}"')
    path.write_text("\n".join(lines) + "\n")


def test_of_more_labels_the_consensus_against_the_runner_up(run, folder):
    three_labels(folder / "colours.csv")
    assert run("audit", "colours.csv", "-o", "run", "--draws", 80, "--quiet", "--model", "paper")[0] == 0
    posterior = read_table("run", "posterior")
    for item in range(20):
        [told] = explain_item("run", str(item))
        at_mode = dict(posterior.filter(pl.col("item") == item).select("class", "p_map").rows())
        shares = dict(posterior.filter(pl.col("item") == item).select("class", "p").rows())
        assert [told.towards, told.against] == sorted(shares, key=shares.get, reverse=True)[:2]
        assert told.steps[-1].total == pytest.approx(np.log(at_mode[told.towards] / at_mode[told.against]), abs=1e-9)
        assert all(step.low < step.contribution < step.high for step in told.steps[1:])
    code, out, _ = run("explain", "run", "7")
    assert code == 0 and "\x1b" not in out and "=evil() \\x1b[31m7" in out


def test_intervals_of_ratios_of_more_labels_are_near_those_of_the_draws(folder):
    from moral_entropy.options import AuditOptions, FitOptions
    from moral_entropy.pipeline import audit

    three_labels(folder / "colours.csv", n_items=200)
    one = audit("colours.csv", "run", AuditOptions(fit=FitOptions(draws=2_000, model="paper")))
    [fit] = one.consensus.fits
    told = explain_item("run", "5")[0]
    towards, against = (fit.ballot.labels.index(label) for label in (told.towards, told.against))
    for step in told.steps[1:]:
        a, v = "abcd".index(step.annotator), fit.ballot.labels.index(step.voted)
        ratio_s = np.log(fit.confusion_sakv[:, a, towards, v] / fit.confusion_sakv[:, a, against, v])
        low, high = np.quantile(ratio_s, [0.05, 0.95])
        assert abs(step.low - low) < 0.25 * (high - low) and abs(step.high - high) < 0.25 * (high - low)


def test_an_item_of_known_label_is_not_explained_by_votes(run, folder):
    rows = [f"{i},{a},{int((i + len(a)) % 2)},{i % 2 if i < 3 else ''}" for i in range(20) for a in ("x", "yy", "zzz")]
    (folder / "gold.csv").write_text("\n".join(["item,annotator,label,gold", *rows]) + "\n")
    assert (
        run("audit", "gold.csv", "-o", "run", "--gold", "gold", "--gold-as-evidence", "--draws", 20, "--quiet")[0] == 0
    )
    assert explain_item("run", "1")[0].clamped and not explain_item("run", "9")[0].clamped
    assert "given as evidence" in run("explain", "run", "1")[1]


def told(*contributions, model="paper"):
    steps, total = [], 0.0
    for n, nats in enumerate(contributions):
        total += nats
        steps.append(Step(f"a{n}" if n else None, "1" if n else None, nats, nats - 0.1, nats + 0.1, total))
    shown = {"p_map": 0.5, "p_model": 0.5, "p": 0.5, "p_low": 0.4, "p_high": 0.6, "label": "1", "entropy": 0.69}
    parts = {"ambiguity": 0.4, "doubt_votes": 0.2, "doubt_annotators": 0.09, "aleatoric": 0.6, "model": model}
    names = ("q", "", "i", None, None, "1", "0")
    return Explanation(*names, tuple(steps), **shown, **parts, clamped=False, of_several=False)


@pytest.fixture
def lines_of(monkeypatch, capsys):
    def lines(explanation, width=80):
        monkeypatch.setenv("COLUMNS", str(width))
        print_parts(waterfall(explanation))
        return capsys.readouterr().out.splitlines()

    return lines


def test_the_parts_of_the_entropy_are_named_with_their_remedies(lines_of):
    lines = lines_of(told(*[0.1] * 31, model="mixed"))
    assert "  0.400 ambiguity: no vote removes it; ship the probability, not a label" in lines
    assert "  0.200 votes: more votes on the item remove it" in lines
    assert "  0.090 annotators: more votes anywhere remove it" in lines
    assert TOO_FEW_TO_TELL not in " ".join(lines)
    # Below 30 votes it is one figure, with the reason.
    few = lines_of(told(-2.0, 1.0, model="mixed"))
    assert [line.split(":")[0].split() for line in few if line.startswith("  0.")] == [
        ["0.600", "item"],
        ["0.090", "annotators"],
    ]
    assert TOO_FEW_TO_TELL in " ".join(few)
    paper = lines_of(told(-2.0, 1.0))
    assert not any("ambiguity" in line for line in paper)
    assert "  0.200 aleatoric: more votes on the item remove it" in paper


def test_bars_run_from_sum_to_sum(lines_of):
    lines = lines_of(told(-2.0, 1.0, 3.0), width=90)
    assert all(line.isascii() and len(line) <= 90 for line in lines)
    bars = [line for line in lines if "|" in line]
    filled = [sum(line.count(mark) for mark in "#=") for line in bars]
    assert "=" in bars[0] and "#" not in bars[0] and "#" in bars[1] and "#" in bars[2]
    # Lengths are as 2 : 1 : 3 but for the column that shows zero and rounding.
    assert filled[2] == pytest.approx(3 * filled[1], abs=4) and filled[0] == pytest.approx(2 * filled[1], abs=4)
    assert len({line.index("|") for line in bars}) == 1


def test_texts_are_shown_and_not_acted_upon():
    hostile = "\x1b[2J\x07 \u202eevil\u202c \r\n<script>alert(1)</script> {{x}} [bold]"
    line = printable(hostile, 200)
    assert line.isprintable() and "<script>alert(1)</script> {{x}} [bold]" in line and "\\u202e" in line
    assert len(printable("x" * 100_000, 50)) == 53
