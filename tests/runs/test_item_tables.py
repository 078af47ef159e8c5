"""Rows of the tables against the same figures counted vote by vote."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.items.disagreement import tally_votes
from moral_entropy.items.table import find_outliers
from moral_entropy.model.fit import fit
from moral_entropy.model.priors import Priors
from moral_entropy.options import AuditOptions, FitOptions
from moral_entropy.pipeline import audit
from moral_entropy.runs import make
from moral_entropy.schemas import ALL_PARTS, SCHEMAS, with_ids
from moral_entropy.votes.table import Votes, ballot_from_codes


def simulated(n_labels=2, **changes):
    options = {"n_items": 120, "n_annotators": 6, "votes_per_item": 4, "seed": 5, "accuracy": (0.75, 0.95)} | changes
    return simulate_votes(n_labels=n_labels, **options).votes


def with_domains(votes):
    domain_i = np.arange(votes.n_items, dtype=np.int32) % 3 - 1
    return replace(votes, domains=("BLM", "Sandy"), domain_i=domain_i)


def uneven():
    """Items with 0, 1, 2 and 4 votes, string ids, pre-counted rows, positive label first."""
    ballot = ballot_from_codes(
        "care",
        ("ja", "nein"),
        positive=0,
        item_v=[1, 2, 2, 3, 3, 3, 3],
        annotator_v=[0, 0, 1, 0, 1, 2, 3],
        label_v=[0, 0, 1, 1, 1, 0, 1],
        item_i=np.arange(4),
        count_i=np.array([1.0, 2.0, 3.0, 1.0]),
    )
    return Votes(pl.Series(list("abcd")), pl.Series(list("wxyz")), (ballot,), (), np.full(4, -1, dtype=np.int32))


def table(consensus, name):
    made = make.item_tables(consensus, make.item_entropies(consensus))[name]
    return pl.concat([pl.DataFrame(schema=made.schema), *made.frames()])


def item_frame(consensus):
    return table(consensus, "items")


def posterior_frame(consensus):
    return table(consensus, "posterior")


def annotator_frame(consensus):
    return make.annotator_frame(consensus, find_outliers(consensus)["annotator_summary"])


def sums_of(consensus):
    return make.entropy_sums(consensus, make.item_entropies(consensus))


def entropy_frame(consensus):
    return make.entropy_frame(consensus, sums_of(consensus))


@pytest.fixture(scope="module", params=[2, 4])
def consensus(request):
    return fit(with_domains(simulated(request.param)), draws=60)


def test_items_have_the_columns_of_the_contract(consensus):
    frame = item_frame(consensus)
    assert frame.schema == with_ids(SCHEMAS["items"], item=pl.Int64())
    assert frame.height == 120
    assert frame["domain"].to_list()[:4] == [None, "BLM", "Sandy", None]
    assert frame.drop("domain", "gold", "published", "p_votes", "p_text").null_count().sum_horizontal().item() == 0
    # Simulated votes carry their truth as gold, and nobody has published labels.
    assert (frame["gold"].null_count(), frame["published"].null_count()) == (0, 120)


def test_votes_are_counted_and_p_is_that_of_its_label(consensus):
    [only] = consensus.fits
    ballot = only.ballot
    rows = item_frame(consensus).rows(named=True)
    for i, row in enumerate(rows):
        codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]
        voted = [ballot.labels[code % ballot.n_labels] for code in codes]
        about = ballot.labels[1] if ballot.n_labels == 2 else row["label"]
        assert (row["n_votes"], row["n_positive"]) == (len(voted), Counter(voted)[about])
        assert row["p_map"] == row["p_model"] == only.posterior_ik[i, ballot.labels.index(about)]
        assert row["p"] == only.p_ik[i, ballot.labels.index(about)]
        assert row["p_low"] <= row["p"] + 1e-9 and row["p_low"] <= row["p_high"]
        assert row["entropy"] == pytest.approx(row["aleatoric"] + row["epistemic"], abs=1e-12)
        if ballot.n_labels == 2:
            assert row["label"] == ("1" if row["p"] >= 0.5 else "0")


def test_the_posterior_table_has_all_labels_of_questions_with_more_than_two(consensus):
    [only] = consensus.fits
    run = audit(consensus.votes, options=AuditOptions(fit=consensus.options))
    assert run.has("posterior") == (only.ballot.n_labels > 2)
    if only.ballot.n_labels == 2:
        return
    frame = posterior_frame(consensus)
    assert run.table("posterior").equals(frame)
    assert frame.schema == with_ids(SCHEMAS["posterior"], item=pl.Int64())
    sums = frame.group_by("item").agg(pl.col("p").sum(), pl.col("p_map").sum(), pl.len())
    assert sums["len"].unique().to_list() == [4]
    np.testing.assert_allclose(sums.select("p", "p_map").to_numpy(), 1.0, rtol=1e-12)
    items = item_frame(consensus)
    likeliest = frame.sort("p", descending=True).group_by("item").first().sort("item")
    assert likeliest["class"].to_list() == items["label"].to_list()
    assert likeliest["p"].to_list() == items["p"].to_list()


def test_chunks_do_not_change_rows(consensus, monkeypatch):
    def frames():
        made = make.item_tables(consensus, make.item_entropies(consensus))
        return [*(table(consensus, name) for name in made), annotator_frame(consensus)]

    whole = frames()
    monkeypatch.setattr("moral_entropy.runs.make.ROWS_PER_GROUP", 17)
    monkeypatch.setattr("moral_entropy.items.disagreement.ITEMS_AT_ONCE", 17)
    monkeypatch.setattr("moral_entropy.runs.make.ANNOTATORS_AT_ONCE", 4)
    assert all(cut.equals(all_rows) for cut, all_rows in zip(frames(), whole, strict=True))


def test_annotators_have_their_confusion_with_intervals_around_it(consensus):
    frame = annotator_frame(consensus)
    [only] = consensus.fits
    n_labels = only.ballot.n_labels
    assert frame.schema == with_ids(SCHEMAS["annotators"], annotator=pl.Int64())
    assert frame.height == 6 * n_labels**2
    sums = frame.group_by("annotator", "true").agg(pl.col("probability").sum())
    np.testing.assert_allclose(sums["probability"].to_numpy(), 1.0, rtol=1e-12)
    for row in frame.sample(20, seed=1).rows(named=True):
        k, v = only.ballot.labels.index(row["true"]), only.ballot.labels.index(row["voted"])
        assert row["probability"] == only.confusion_akv[row["annotator"], k, v]
        draws_s = sorted(only.confusion_sakv[:, row["annotator"], k, v])
        assert draws_s[2] <= row["low"] <= draws_s[3] and draws_s[56] <= row["high"] <= draws_s[57]


def test_without_draws_there_is_no_split_and_no_interval():
    consensus = fit(simulated(), draws=0)
    items = item_frame(consensus)
    assert items["p_model"].equals(items["p_map"], check_names=False)
    for column in ("p_low", "p_high", *ALL_PARTS):
        assert items[column].null_count() == items.height
    expected = [-sum(q * math.log(q) for q in (p, 1 - p) if q > 0) for p in items["p"]]
    np.testing.assert_allclose(items["entropy"].to_numpy(), expected, atol=1e-12)
    assert annotator_frame(consensus)["low"].null_count() == 24
    means = entropy_frame(consensus)
    assert means.schema == SCHEMAS["entropy"] and means["epistemic"].null_count() == means.height


@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_items_without_a_vote_keep_the_prevalence_and_counts_stay():
    consensus = fit(uneven(), draws=40, priors=Priors(prevalence=5))
    items = item_frame(consensus)
    assert items["item"].to_list() == list("abcd")
    assert items["n_votes"].to_list() == [0, 1, 2, 4]
    assert items["n_positive"].to_list() == [0, 1, 1, 1]
    assert items["count"].to_list() == [1, 2, 3, 1]
    assert items["p_map"][0] == pytest.approx(consensus.fits[0].prevalence_k[0], rel=1e-12)
    [facts] = audit(uneven(), options=AuditOptions(fit=FitOptions(draws=40))).manifest["questions"]
    assert (facts["positive"], facts["items_counted"], facts["items"], facts["items_without_votes"]) == ("ja", 7, 4, 1)
    again = item_frame(fit(uneven(), draws=40))
    assert facts["entropy"] == pytest.approx(sum(again["entropy"] * again["count"]) / 7, rel=1e-12)
    uncertain = again.select(pl.max_horizontal("p", 1 - pl.col("p")) < 0.75).to_series()
    assert facts["uncertain"] == pytest.approx((uncertain * again["count"]).sum() / 7, rel=1e-12)


def test_disagreement_is_with_the_majority_and_a_tie_is_positive():
    # Item c is tied, so "ja", the positive label, is its majority; item d has "nein".
    votes = uneven()
    [ballot] = votes.ballots
    w, x, y, z = tally_votes(ballot)[0] / ballot.votes_a
    assert w == 0.0 and z == 0.0 and y == 1.0
    assert x == pytest.approx(3 / 4)


def test_disagreement_by_a_loop_over_votes():
    ballot = simulated(4).ballots[0]
    against = Counter()
    for i in range(ballot.n_items):
        codes = ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]].tolist()
        tally = Counter(code % 4 for code in codes)
        majority = min(label for label in tally if tally[label] == max(tally.values()))
        for code in codes:
            against[code // 4] += code % 4 != majority
    assert tally_votes(ballot)[0].tolist() == [against[a] for a in range(6)]


def test_means_by_domain_are_those_of_the_items(consensus):
    items = item_frame(consensus)
    for _, domain, n_items, total, *parts in entropy_frame(consensus).iter_rows():
        inside = items if domain == "(all)" else items.filter(pl.col("domain") == domain)
        assert n_items == inside.height
        means = [inside[name].mean() for name in ("entropy", *ALL_PARTS)]
        np.testing.assert_allclose([total, *parts], means, rtol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("model", ["mixed", "paper"])
def test_published_p_is_the_pool_of_model_and_votes_and_the_entropy_is_its_own(n_labels, model):
    consensus = fit(with_domains(simulated(n_labels)), draws=60, model=model)
    [only] = consensus.fits
    ballot = only.ballot
    said_k = np.bincount(ballot.code_v % n_labels, minlength=n_labels)
    begins_k = (said_k + 0.5) / (said_k.sum() + n_labels / 2)
    p_model_ik = only.draws_of(only.patterns.row_i).mean(axis=0) if model == "paper" else only.posterior_ik
    n_ambiguous = 0
    for i, row in enumerate(item_frame(consensus).rows(named=True)):
        about = 1 if n_labels == 2 else ballot.labels.index(row["label"])
        votes = Counter(code % n_labels for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]])
        share_k = np.array([(votes[k] + begins_k[k]) / (votes.total() + 1) for k in range(n_labels)])
        apart = np.abs(p_model_ik[i] - share_k).sum() / 2
        a = max(min(0.7, 0.3 + only.interior_i[i] + 0.4 * max(apart - 0.3, 0)), 1.5 / votes.total())
        a = a if model == "mixed" else 0.0
        p_k = (1 - a) * p_model_ik[i] + a * share_k
        assert row["p_model"] == pytest.approx(p_model_ik[i, about], abs=1e-9)
        assert row["p"] == pytest.approx(p_k[about], abs=1e-9)
        assert row["label"] == ballot.labels[int(p_k.argmax())] or np.sort(p_k)[-2] > p_k.max() - 1e-9
        total = -sum(p * math.log(p) for p in p_k if p > 0)
        assert row["entropy"] == pytest.approx(total, abs=1e-7)
        assert row["ambiguity"] + row["doubt_votes"] + row["doubt_annotators"] == pytest.approx(total, abs=1e-7)
        assert row["aleatoric"] == row["ambiguity"] + row["doubt_votes"] and row["epistemic"] == row["doubt_annotators"]
        assert model == "mixed" or row["ambiguity"] == 0
        n_ambiguous += p_k.max() < 0.75 - 1e-9 and row["ambiguity"] > total / 2
    assert sums_of(consensus)[0].sum(axis=0)[make.SUMS.index("ambiguous")] == n_ambiguous
