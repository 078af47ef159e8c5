"""The three parts of the entropy in the report, in figures and on the card, with what must be said beside them."""

from __future__ import annotations

import math

import pytest

import moral_entropy as me
from moral_entropy.model.entropy import TOO_FEW_TO_TELL, parts_note
from moral_entropy.report.card import dataset_card
from moral_entropy.report.figures import figure_specs
from moral_entropy.report.page import page_data

PARTS = {
    ("mixed", 4): {"aleatoric": "item", "doubt_annotators": "annotators"},
    ("mixed", 32): {"ambiguity": "ambiguity", "doubt_votes": "votes", "doubt_annotators": "annotators"},
    ("paper", 4): {"doubt_votes": "aleatoric", "doubt_annotators": "epistemic"},
}


@pytest.fixture(scope="module", params=PARTS)
def run_and_parts(request):
    model, votes_per_item = request.param
    votes = me.simulate_votes(n_items=80, n_annotators=40, votes_per_item=votes_per_item, seed=2).votes
    return me.audit(votes, model=model, draws=40), PARTS[request.param]


@pytest.fixture
def run(run_and_parts):
    return run_and_parts[0]


def test_bars_are_the_parts_and_add_up_to_the_mean_entropy(run_and_parts):
    run, parts = run_and_parts
    [bars] = [spec["data"]["values"] for name, spec in figure_specs(run) if name == "entropy"]
    mean = sum(-sum(q * math.log(q) for q in (p, 1 - p) if q > 0) for p in run.items["p"]) / run.items.height
    assert sum(bar["nats"] for bar in bars) == pytest.approx(mean, rel=1e-9)
    assert [bar["part"] for bar in bars] == list(parts.values())


def test_what_the_page_says_of_the_parts_is_what_the_library_says(run_and_parts):
    run, parts = run_and_parts
    texts, columns = page_data(run)
    section = texts["uncertainty"]
    assert section["note"] == parts_note(run.model)
    assert dict(columns["parts"]) == parts and set(columns["items"]) >= {*parts, "p_model"}
    assert all(remedy in dataset_card(run) for _, remedy in section["remedies"])
    assert (TOO_FEW_TO_TELL in dataset_card(run)) == (run.model == "mixed")
    # The bar of the only question is as wide as its box, and its parts are its width.
    [bar] = section["bars"]
    assert sum(float(width) for *_, width in bar["parts"]) == pytest.approx(100, abs=0.05)
    assert sum(float(nats) for _, nats, _ in bar["parts"]) == pytest.approx(run.entropy["total"][0], abs=0.002)


def test_without_draws_there_is_one_bar():
    votes = me.simulate_votes(n_items=30, n_annotators=6, votes_per_item=4, seed=2).votes
    run = me.audit(votes, draws=0)
    [bars] = [spec["data"]["values"] for name, spec in figure_specs(run) if name == "entropy"]
    assert [bar["part"] for bar in bars] == ["not split"]
    assert bars[0]["nats"] == pytest.approx(run.items["entropy"].mean())
