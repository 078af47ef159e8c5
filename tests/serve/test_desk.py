"""What is offered first, and decisions in a file that several share."""

from __future__ import annotations

import random

import polars as pl
import pytest

from moral_entropy import audit
from moral_entropy.decisions import DecisionLog
from moral_entropy.errors import FileError
from moral_entropy.runs.run import read_run
from moral_entropy.serve.desk import Desk

KEYS = ["question", "item"]


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """Three labels; two people are right nearly always, three language models of one kind are not."""
    draw, rows = random.Random(3), []
    for item in range(150):
        truth, shared = draw.choice("xyz"), draw.choice("xyz")
        for name, right, group in [
            ("anna", 0.95, "person"),
            ("bert", 0.95, "person"),
            *((f"gpt-4-{n}", 0.55, "model") for n in range(3)),
        ]:
            wrong = shared if draw.random() < 0.5 else draw.choice("xyz")
            label = truth if draw.random() < right else wrong
            rows.append({"item": f"i{item}", "annotator": name, "label": label, "kind": group})
    folder = tmp_path_factory.mktemp("panel") / "run"
    return audit(pl.DataFrame(rows), folder, draws=30, annotator_group=("kind",), report=False).path


def test_every_order_offers_the_items_it_is_about(panel):
    run = read_run(panel)
    desk, votes = Desk(run, ["me"]), run.table("votes")
    assert list(desk.orders) == ["gain", "rule", "groups", "judges"]
    risks = [desk.row(*key)["risk"] for key in desk.queue("gain")]
    assert risks == sorted(risks, reverse=True) and len(risks) == 150

    counts = votes.group_by(*KEYS, "label").len()
    top = counts.filter(pl.col("len") == pl.col("len").max().over(KEYS))
    differing = run.items.join(top, on=[*KEYS, "label"], how="anti").select(KEYS).rows()
    assert set(desk.queue("rule")) == set(differing) != set()

    spread = run.table("group_items").group_by(KEYS).agg(pl.col("spread").max())
    assert len(desk.queue("groups")) == (spread["spread"] > 0).sum()
    assert spread.filter(item=desk.queue("groups")[0][1])["spread"].item() == spread["spread"].max()

    for key in desk.queue("judges"):
        both = votes.filter(question=key[0], item=key[1]).group_by(model=pl.col("annotator").str.starts_with("gpt"))
        modes = {model: set(pl.Series(labels).mode()) for model, labels in both.agg("label").iter_rows()}
        assert len(modes[True] | modes[False]) > 1


def test_two_programs_share_one_log(tmp_path):
    path = tmp_path / "decisions.jsonl"
    first, second = DecisionLog(path), DecisionLog(path)
    entry = {"id": "1", "kind": "check", "question": "q", "item": "a", "who": "ann", "label": "yes"}
    first.append([entry])
    second.append([entry, entry | {"id": "2", "who": "bob", "label": "no"}])
    assert first.entries() == second.entries() and len(first.entries()) == 2
    assert first.conflicts() == [("q", "a")] and first.decided() == {}
    path.write_bytes(path.read_bytes() + b'{"id": "3"')
    first.append([entry | {"id": "4", "who": "eve", "final": True}])
    third = DecisionLog(path)
    assert third.decided()["q", "a"]["who"] == "eve" and third.n_torn == 1 and third.conflicts() == []


def test_a_decision_that_cannot_be_written_is_not_taken(tmp_path):
    log = DecisionLog(tmp_path / "nowhere" / "decisions.jsonl")
    with pytest.raises(FileError, match="Nothing was decided"):
        log.append([{"id": "1", "kind": "skip"}])
