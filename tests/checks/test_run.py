"""Every check on every kind of fit and of trouble: doubts say what to do; the verdict says no more than was checked."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_votes import copied, two_teams
from support import votes_of

from moral_entropy import fit, simulate_votes
from moral_entropy.checks.run import CHEAP, CHECKS, is_thorough, questions_of, run_check, run_checks, verdict
from moral_entropy.errors import UsageError
from moral_entropy.findings import Finding
from moral_entropy.model.priors import Priors

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

QUICK = {"folds": 2, "members": 2}

OTHER_FITS = [
    {"model": "paper", "draws": 120, "use_gold": True},
    {"model": "paper", "draws": 0},
    {"draws": 120, "use_gold": True, "domain_prevalence": "off"},
    {"draws": 120, "merge": ("0+1",)},
]


def test_every_check_has_a_question_and_a_reason():
    assert all(check.title.endswith("?") for check in CHECKS.values())
    assert CHEAP == ("fit", "votes", "identifiability", "laplace")
    with pytest.raises(UsageError, match="there is no check 'left'"):
        from moral_entropy.checks.run import check_names

        check_names(["left"])


@pytest.mark.parametrize("options", OTHER_FITS)
def test_fits_with_other_options_are_checked(options):
    rng = np.random.default_rng(2)
    truth_i = rng.integers(2, size=150)
    rows = [
        (i, a, int(truth_i[i] if rng.random() < right else 1 - truth_i[i]))
        for i in range(150)
        for a, right in enumerate([0.85, 0.8, 0.75, 0.8, 0.7, 0.25])
        if rng.random() < 0.7
    ]
    votes = votes_of(rows, n_items=150, gold_i=np.where(np.arange(150) % 3 == 0, truth_i, -1))
    votes = replace(votes, domains=("a", "b"), domain_i=np.arange(150, dtype=np.int32) % 2)
    consensus = fit(votes, **options)
    for name in CHECKS:
        if name != "nuts":
            found = run_check(consensus, name, **QUICK)
            assert bool(found) == (name != "gold" or not options.get("use_gold", False)), name
            assert {finding.check for finding in found} <= {name}
    cheap = [finding for name in CHEAP for finding in run_check(consensus, name)]
    assert [(f.check, f.metric) for f in run_checks(consensus)] == [(f.check, f.metric) for f in cheap]


def troubled_votes():
    """Votes with one thing wrong each, by what is wrong."""
    many = simulate_votes(n_items=800, n_annotators=14, votes_per_item=5, seed=4).votes
    upside_down = np.array([[[0.85, 0.15], [0.15, 0.85]]] * 5 + [[[0.15, 0.85], [0.85, 0.15]]])
    return {
        "two groups": two_teams(links=0, reversed_team=False)[0],
        "copied votes": copied(many, 2, 5),
        "nearly copied votes": copied(
            simulate_votes(n_items=400, n_annotators=8, votes_per_item=8, accuracy=(0.6, 0.8)).votes, 2, 5, share=0.9
        ),
        "thin votes": simulate_votes(n_items=200, n_annotators=60, votes_per_item=1.2, seed=1).votes,
        "one annotator": votes_of([(i, 0, i % 3 == 0) for i in range(60)]),
        "a reversed scale": simulate_votes(
            n_items=300, n_annotators=6, votes_per_item=5, confusion_akv=upside_down, seed=3
        ).votes,
        "a label that almost everything has": votes_of([(i, a, int(i < 40)) for i in range(43) for a in (0, 1)]),
    }


@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_every_doubt_says_what_was_found_what_it_means_and_what_to_do(model):
    doubted = set()
    for what, votes in troubled_votes().items():
        prior = Priors(prevalence=(1, 20_000)) if "almost everything" in what else Priors()
        consensus = fit(votes, draws=120, priors=prior, model=model)
        for name in CHECKS:
            for finding in run_check(consensus, name, **QUICK) if name != "nuts" else ():
                said = (finding.text, finding.meaning, finding.remedy)
                assert all(not text or text.endswith((".", ").")) for text in said), finding
                assert finding.level in ("info", "good") or all(said), finding
                doubted |= {finding.metric} if finding.is_warning else set()
    # The default model counts copies as one, and its p never leaves the votes so far that nobody gave its label.
    own = {"near_copies", "alike"} if model == "mixed" else {"unsupported_labels"}
    everywhere = {"below_chance", "groups", "hardly_known", "one_annotator", "votes_per_item"}
    assert doubted >= own | everywhere, sorted(doubted)


def test_clean_votes_raise_no_alarm_in_an_audit():
    """Twenty corpora that the model holds for."""
    alarms = []
    for seed in range(1_000, 1_020):
        votes = simulate_votes(n_items=400, n_annotators=10, votes_per_item=5, seed=seed).votes
        alarms += [f.metric for f in run_checks(fit(votes, draws=200)) if f.is_warning]
    assert len(alarms) <= 1, alarms


some_findings = st.lists(
    st.builds(
        Finding,
        check=st.sampled_from([*CHECKS, "another"]),
        metric=st.just("figure"),
        value=st.floats(allow_nan=True),
        question=st.sampled_from(["", "care"]),
        level=st.sampled_from(["info", "good", "note", "doubt", "bad"]),
        text=st.just("a sentence."),
    ),
    min_size=1,
    max_size=8,
)


@given(findings=some_findings)
def test_every_check_in_doubt_is_named_and_no_other(findings):
    said = verdict(findings)
    alarmed = questions_of(finding for finding in findings if finding.is_warning)
    if alarmed:
        assert all(title in said for title in alarmed)
        assert not [check.title for check in CHECKS.values() if check.title not in alarmed and check.title in said]
    else:
        assert said.startswith("No doubt was found") and all(title in said for title in questions_of(findings))
    assert said.startswith("The consensus itself may be wrong") == any(finding.level == "bad" for finding in findings)
    assert said[-1] in ".)?r" and "  " not in said and ".." not in said
    assert re.sub(r"\(.*?\)", "", verdict(findings[::-1])) == re.sub(r"\(.*?\)", "", said)


def test_worst_comes_first_and_the_rest_is_counted():
    findings = [
        Finding("dependence", "excess_agreement", 1, "care", level="doubt", text="a and b copy."),
        Finding("identifiability", "groups", 2, "fairness", level="bad", text="two groups."),
    ]
    assert verdict(findings) == (
        "The consensus itself may be wrong. To settle first: Can the votes tell? (fairness: two groups. And 1 more.) "
        "Doubts remain: Do annotators vote independently?"
    )


def test_quick_looks_are_called_so():
    quick = [Finding("identifiability", "groups", 1.0), Finding("gold", "p_off", 0.0)]
    assert verdict(quick).endswith("Only the quick checks were made.") and not is_thorough(quick)
    whole = [*quick, Finding("dependence", "excess_agreement", 0)]
    assert "quick" not in verdict(whole) and is_thorough(whole)
