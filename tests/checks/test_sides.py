"""Sides by name, and a missing extra that is a finding or an error, as asked."""

from __future__ import annotations

import numpy as np
import pytest
from made_votes import copied, two_teams
from support import random_rows, votes_of

from moral_entropy.checks import nuts_sampler
from moral_entropy.checks.sides import CHEAP, SIDES, examine, examine_cheaply
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.fitted import local_fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MissingExtraError
from moral_entropy.findings import Finding, alarm_sentences


@pytest.fixture(scope="module")
def consensus():
    return fit(votes_of(random_rows(np.random.default_rng(1), 60, 5, 2)), draws=60)


def test_a_side_has_a_question_and_lies_in_a_file_of_its_name():
    for name, side in SIDES.items():
        assert side.name == name and side.title.endswith("?") and side.meaning.endswith(".")
        assert side.run.__module__ == f"moral_entropy.checks.{name.replace('-', '_')}"


def test_cheap_sides_are_examined_together(consensus):
    alone = [finding for side in CHEAP for finding in examine(consensus, side)]
    assert [(f.side, f.figure, f.value) for f in examine_cheaply(local_fit(consensus))] == [
        (f.side, f.figure, pytest.approx(f.value, nan_ok=True)) for f in alone
    ]


def test_a_missing_extra_is_an_error_only_where_the_side_was_asked_for(consensus, monkeypatch):
    def missing():
        what = "sampling with NUTS needs nutpie and ArviZ"
        raise MissingExtraError(what, "mcmc")

    monkeypatch.setattr(nuts_sampler, "import_nutpie", missing)
    with pytest.raises(MissingExtraError, match=r"moral-entropy\[mcmc\]"):
        examine(consensus, "nuts")
    (left_out,) = examine(consensus, "nuts", required=False)
    assert (left_out.figure, left_out.level) == ("left_out", "info")
    assert "moral-entropy[mcmc]" in left_out.text


def test_alarms_of_one_kind_are_one_sentence_with_the_worst_first():
    findings = [
        Finding("temper", "exponent", 0.5, question="a", level="doubt", text="doubt about a"),
        Finding("temper", "exponent", 0.1, question="b", level="bad", text="b is bad."),
        Finding("temper", "exponent", 1.0, question="c", level="good", text="fine"),
        Finding("gold", "ece", 0.3, question="a", level="doubt", text="off."),
    ]
    assert alarm_sentences(findings) == ["b: b is bad. The same in 1 more: a.", "a: off."]


def hard_for_all():
    """Six good annotators who all guess on every second item."""
    rng = np.random.default_rng(6)
    truth_i = rng.integers(2, size=400)
    right = [0.95, 0.5]
    rows = [
        (i, a, int(truth_i[i] if rng.random() < right[i % 2] else 1 - truth_i[i])) for i in range(400) for a in range(6)
    ]
    return votes_of(rows)


def troubled_votes():
    """Votes with one thing wrong each, by what is wrong."""
    few, many = (simulate_votes(n_items=400, n_annotators=n, votes_per_item=5, seed=4).votes for n in (6, 12))
    upside_down = np.array([[[0.85, 0.15], [0.15, 0.85]]] * 5 + [[[0.15, 0.85], [0.85, 0.15]]])
    return {
        "a team that can be read either way": two_teams(links=1)[0],
        "two groups": two_teams(links=0, reversed_team=False)[0],
        "copied votes": copied(few, 2, 5),
        "copied votes that are few among all": copied(many, 2, 5),
        "thin votes": simulate_votes(n_items=200, n_annotators=60, votes_per_item=1.2, seed=1).votes,
        "one annotator": votes_of([(i, 0, i % 3 == 0) for i in range(60)]),
        "a reversed scale": simulate_votes(
            n_items=300, n_annotators=6, votes_per_item=5, confusion_akv=upside_down, seed=3
        ).votes,
        "items hard for all": hard_for_all(),
        "a label that almost everything has": votes_of([(i, a, int(i < 40)) for i in range(43) for a in (0, 1)]),
    }


@pytest.mark.parametrize("model", ["mixed", "paper"])
@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_every_doubt_says_what_was_found_what_it_means_and_what_to_do(model):
    options = {"heldout": {"folds": 2}, "ensemble": {"members": 2}, "priors": {"draws": 20}}
    doubted = set()
    for what, votes in troubled_votes().items():
        prior = Priors(prevalence=(1, 20_000)) if "almost everything" in what else Priors()
        # Copies are to be seen by the checks, not to be counted as one before.
        consensus = fit(votes, draws=120, priors=prior, model=model, dependence="report")
        for side in (*CHEAP, "dependence", *options):
            for finding in examine(consensus, side, **options.get(side, {})):
                said = (finding.text, finding.meaning, finding.cure)
                assert all(not one or one.endswith((".", ").")) for one in said), finding
                assert finding.level in ("info", "good") or all(said), finding
                doubted |= {finding.figure} if finding.alarms else set()
    wanted = {
        "below_chance", "dependent_pairs", "excess_agreement", "groups", "hardly_known", "near_copies",
        "one_annotator", "pair_excess", "predicted_votes_pattern", "prior_share", "switch_cost", "unsupported_labels",
        "votes_per_item",
    }  # fmt: skip
    # Items that are hard for all lie between labels, and no exponent is needed for them.
    wanted |= {"exponent", "range_prevalence"} if model == "paper" else set()
    assert doubted >= wanted, sorted(doubted)
