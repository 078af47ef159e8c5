"""Options of the command line become the priors they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moral_entropy.checks.votes import check_votes
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import PriorError, UsageError
from moral_entropy.model.fit import fit
from moral_entropy.model.priors import check_priors, priors_for
from moral_entropy.options import PriorOptions


@pytest.fixture
def votes():
    return simulate_votes(n_items=20, n_annotators=3, votes_per_item=2, seed=1).votes


def renamed(votes, *questions):
    return replace(votes, ballots=tuple(replace(votes.ballots[0], question=name) for name in questions))


def known(tmp_path, text):
    path = tmp_path / "known.csv"
    path.write_text("annotator,true,voted,pseudo_votes\n" + text)
    return PriorOptions(annotators=path)


def test_nothing_asked_is_flat_with_the_papers_rows(votes):
    priors = priors_for(votes, PriorOptions())
    assert priors.alpha_k(votes.ballots[0]).tolist() == [1, 1]
    assert priors.beta_akv(votes.ballots[0], votes)[0].tolist() == [[1.8, 1.2], [1.2, 1.8]]


def test_what_is_asked_is_given(votes):
    priors = priors_for(votes, PriorOptions(prevalence=(80, 20), confusion=(5, 2)))
    assert priors.alpha_k(votes.ballots[0]).tolist() == [80, 20]
    assert priors.beta_akv(votes.ballots[0], votes)[2].tolist() == [[5, 2], [2, 5]]
    assert priors_for(votes, PriorOptions(prevalence=(3,))).alpha_k(votes.ballots[0]).tolist() == [3, 3]


def test_the_preset_knows_any_foundation(votes):
    votes = renamed(votes, "Any foundation", "any_foundation", "care", "many")
    priors = priors_for(votes, PriorOptions(preset="mft"))
    alphas = [priors.alpha_k(ballot).tolist() for ballot in votes.ballots]
    assert alphas == [[500, 500], [500, 500], [80, 20], [80, 20]]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"prevalence": (80, 20), "preset": "mft"}, UsageError, "--preset mft sets the prevalence prior"),
        ({"preset": "mtf"}, UsageError, "preset is 'mtf'; choose one of mft"),
        ({"prevalence": (0, 1)}, PriorError, "prevalence prior is 0"),
        ({"prevalence": (-3,)}, PriorError, "prevalence prior is -3"),
        ({"confusion": (1.8, -1)}, PriorError, "off-diagonal of the confusion prior is -1"),
    ],
)
def test_what_can_be_no_prior_is_refused_before_reading(options, error, words):
    with pytest.raises(error, match=words):
        check_priors(PriorOptions(**options))


def test_known_annotators_add_their_votes(votes, tmp_path):
    priors = priors_for(votes, known(tmp_path, "1,0,0,30\n1,0,1,10\n1,1,1,5\n1,1,1,5\n"))
    beta_akv = priors.beta_akv(votes.ballots[0], votes)
    np.testing.assert_allclose(beta_akv[1], [[31.8, 11.2], [1.2, 11.8]])
    np.testing.assert_allclose(beta_akv[0], [[1.8, 1.2], [1.2, 1.8]])


def test_strangers_among_the_known_annotators_are_counted(votes, tmp_path):
    priors = priors_for(votes, known(tmp_path, "1,0,0,3\nzoe,0,0,3\n"))
    found = check_votes(fit(votes, priors=priors, draws=0))
    [strangers] = [finding for finding in found if finding.metric == "priors_without_votes"]
    assert strangers.is_warning and "1 of 2 annotators" in strangers.text and "First: 'zoe'" in strangers.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,0,2,3\n", "label '2' of annotator '1' is not in the votes"),
        ("1,0,,3\n", "1 empty cells"),
        ("1,0,1,many\n", "cannot be read"),
    ],
)
def test_a_bad_file_of_known_annotators_is_named(votes, tmp_path, text, words):
    with pytest.raises(PriorError, match=words):
        priors_for(votes, known(tmp_path, text))


def test_a_missing_file_or_column_of_known_annotators_is_named(votes, tmp_path):
    with pytest.raises(PriorError, match=r"cannot be read from .*nowhere\.csv"):
        priors_for(votes, PriorOptions(annotators=tmp_path / "nowhere.csv"))
    (tmp_path / "short.csv").write_text("annotator,true,voted\n1,0,0\n")
    with pytest.raises(PriorError, match="no column 'pseudo_votes'"):
        priors_for(votes, PriorOptions(annotators=tmp_path / "short.csv"))


def test_known_annotators_need_one_set_of_labels(votes, tmp_path):
    other = replace(votes.ballots[0], question="x", labels=("no", "yes"))
    with pytest.raises(PriorError, match="same labels"):
        priors_for(replace(votes, ballots=(*votes.ballots, other)), known(tmp_path, "1,0,0,3\n"))
