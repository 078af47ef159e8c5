"""Twins of the moral corpora: the published counts exactly, the published chances as closely as they can be."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import polars as pl
import pytest

from moral_entropy.corpora.facts import corpus_facts
from moral_entropy.corpora.twin_texts import read_phrases
from moral_entropy.corpora.twins import twin, twin_parameters, write_twin
from moral_entropy.errors import FileError, UsageError

NAMES = ("mftc", "mfrc", "emfd")
FOUNDATIONS = ["authority", "care", "fairness", "loyalty", "sanctity"]

# Table "Corpora" of the paper once more, typed apart from the data file: items, votes per item.
PAPER = {
    "mftc": {
        "ALM": (4326, 3.03),
        "BLM": (5117, 4.92),
        "Baltimore": (5190, 3.32),
        "Davidson": (4873, 3.78),
        "Election": (5050, 3.88),
        "MeToo": (4711, 3.65),
        "Sandy": (4591, 3.03),
    },
    "mfrc": {"Everyday Morality": (5366, 3.00), "US Politics": (5351, 2.99), "French Politics": (7169, 3.00)},
    "emfd": {
        "Physical Violence": (30261, 1.20),
        "Asymmetric Threats": (6622, 1.44),
        "Internal Unrest": (5758, 1.83),
        "Civil Liberties": (10334, 1.40),
        "Untagged": (1908, 1.11),
    },
}
TOTALS = {"mftc": (33_858, 23), "mfrc": (17_886, 6), "emfd": (54_883, 655)}


@pytest.fixture(scope="module")
def twins():
    return {name: twin(name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_the_published_ones(twins, name):
    frame = twins[name]
    assert (frame["item"].n_unique(), frame["annotator"].n_unique()) == TOTALS[name]
    counted = frame.group_by("domain").agg(pl.col("item").n_unique(), votes=pl.len() / 5)
    assert set(counted["domain"]) == set(PAPER[name])
    for domain, items, votes in counted.iter_rows():
        assert items == PAPER[name][domain][0]
        assert votes / items == pytest.approx(PAPER[name][domain][1], abs=0.001)


@pytest.mark.parametrize("name", NAMES)
def test_whoever_votes_answers_all_five_questions_once(twins, name):
    answered = twins[name].group_by("item", "annotator").agg(pl.col("question").sort())
    assert (answered["question"].list.join(",") == ",".join(FOUNDATIONS)).all()


@pytest.mark.parametrize("name", NAMES)
def test_facts_about_an_item_are_the_same_in_all_its_rows(twins, name):
    frame = twins[name]
    assert frame.schema["label"] == frame.schema["gold"] == pl.Int8
    assert frame.null_count().sum_horizontal().item() == 0
    per_item = frame.group_by("item").agg(pl.col("text", "domain").n_unique())
    assert per_item.select(pl.max("text"), pl.max("domain")).row(0) == (1, 1)
    assert frame.group_by("item", "question").agg(pl.col("gold").n_unique())["gold"].max() == 1


def test_mftc_teams_overlap_and_are_linked(twins):
    teams = {domain: set(members) for domain, members in twins["mftc"].group_by("domain").agg("annotator").iter_rows()}
    assert {len(team) for team in teams.values()} == {5, 6}
    reached = {"ALM"}
    for _ in teams:
        reached |= {b for a, b in permutations(teams, 2) if a in reached and teams[a] & teams[b]}
    assert reached == set(teams)
    assert all(teams[a] != teams[b] for a, b in combinations(teams, 2))


def test_emfd_workloads_are_uneven(twins):
    votes_a = twins["emfd"].group_by("annotator").len()["len"].sort()
    top_tenth = votes_a.tail(66).sum() / votes_a.sum()
    assert top_tenth > 0.3
    assert votes_a.min() >= 5


@pytest.mark.parametrize("name", NAMES)
def test_votes_follow_the_annotators_they_were_drawn_from(twins, name):
    parameters = twin_parameters(name)
    cells = twins[name].group_by("annotator", "question", "gold").agg(pl.len(), pl.col("label").sum())
    for annotator, question, gold, n, flagged in cells.iter_rows():
        a, f = int(annotator[1:]), FOUNDATIONS.index(question)
        chance = parameters.sensitivity_af[a, f] if gold else 1 - parameters.specificity_af[a, f]
        # Six standard errors and a vote or two, since most of eMFD's cells are far too small to be normal.
        assert abs(flagged - n * chance) < 6 * np.sqrt(n * chance * (1 - chance)) + 2


@pytest.mark.parametrize("name", NAMES)
def test_annotators_spread_around_the_published_means(name):
    parameters, facts = twin_parameters(name), corpus_facts(name)
    for drawn_af, mean_f, votes in (
        (parameters.sensitivity_af, facts.sensitivity, 30),
        (parameters.specificity_af, facts.specificity, 60),
    ):
        mean = np.array(mean_f)
        error = np.sqrt(mean * (1 - mean) / (votes + 1) / facts.annotators)
        assert (np.abs(drawn_af.mean(axis=0) - mean) < 4 * error).all()
    assert (parameters.sensitivity_af + parameters.specificity_af > 1).mean() > 0.97


@pytest.mark.parametrize("name", NAMES)
def test_the_mean_prevalence_is_the_published_one(twins, name):
    facts = corpus_facts(name)
    share_d = np.array([domain.items for domain in facts.domains]) / TOTALS[name][0]
    assert np.allclose(share_d @ twin_parameters(name).prevalence_df, facts.prevalence, atol=1e-9)
    gold = twins[name].unique(["item", "question"]).group_by("question").agg(pl.col("gold").mean()).sort("question")
    assert np.allclose(gold["gold"], facts.prevalence, atol=5 * np.sqrt(0.25 / TOTALS[name][0]))


def any_rule_cells(frame, facts):
    flagged = frame.group_by("domain", "question", "item").agg(pl.col("label").max())
    cells = flagged.group_by("domain", "question").agg(pl.col("label").mean()).rows_by_key(["domain", "question"])
    return [
        (published, cells[domain.name, question][0][0])
        for domain in facts.domains
        for question, published in zip(facts.foundations, domain.any_rule, strict=True)
    ]


def test_the_any_rule_finds_about_the_published_prevalences(twins, record_property):
    # Seeds 0 to 4: correlation 0.82 to 0.86, mean absolute difference 0.065 to 0.073, most of it too high.
    # The published chances are fitted ones, and independent votes drawn with them are flagged by somebody more often.
    published, found = np.array([cell for name in NAMES for cell in any_rule_cells(twins[name], corpus_facts(name))]).T
    correlation, difference = np.corrcoef(published, found)[0, 1], np.abs(published - found).mean()
    record_property("any-rule correlation", str(correlation))
    record_property("any-rule mean absolute difference", str(difference))
    assert len(published) == 75
    assert correlation > 0.8
    assert difference < 0.08


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_distinct_and_short(twins, name):
    texts = twins[name].unique("item")["text"]
    assert texts.n_unique() == TOTALS[name][0]
    assert texts.str.split(" ").list.len().is_between(8, 25).all()


@pytest.mark.parametrize("name", NAMES)
def test_texts_carry_cues_of_the_truth(twins, name):
    items = twins[name].unique(["item", "question"])
    for question in FOUNDATIONS:
        pattern = rf"\b({'|'.join(read_phrases().cues[question])})\b"
        rows = items.filter(pl.col("question") == question).select("gold", cue=pl.col("text").str.contains(pattern))
        for gold, chance in ((1, 0.8), (0, 0.05)):
            seen = rows.filter(pl.col("gold") == gold)["cue"]
            assert abs(seen.mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / len(seen))


def test_no_phrase_begins_another_and_no_filler_is_a_cue():
    phrases = read_phrases()
    fillers = [*phrases.details, *phrases.closings, *phrases.cue_links]
    openings = [phrase for each in phrases.openings.values() for phrase in each]
    cues = [cue for each in phrases.cues.values() for cue in each]
    assert len(set(cues)) == len(cues)
    assert not {word for phrase in fillers + openings for word in phrase.split()} & set(cues)
    for phrases_of_a_place in (openings, fillers):
        assert not [pair for pair in permutations(phrases_of_a_place, 2) if f"{pair[1]} ".startswith(f"{pair[0]} ")]


def test_the_seed_decides_the_bytes(tmp_path):
    for file, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_twin("mftc", tmp_path / file, seed=seed, scale=0.02)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()
    assert pl.read_parquet(tmp_path / "c").equals(twin("mftc", seed=2, scale=0.02))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-6, 0.003, 0.1])
def test_a_scaled_twin_keeps_the_shape(name, scale):
    frame = twin(name, scale=scale)
    counted = frame.group_by("domain").agg(pl.col("item").n_unique(), votes=pl.len() / 5)
    for domain, items, votes in counted.iter_rows():
        assert items == max(1, round(PAPER[name][domain][0] * scale))
        assert abs(votes - items * PAPER[name][domain][1]) <= 0.5 + 1e-9
    assert not frame.is_duplicated().any()


def test_names_are_readable(twins):
    assert twins["mftc"].row(0)[:3] == ("mftc-00001", twins["mftc"]["annotator"][0], "authority")
    assert sorted(twins["mftc"]["annotator"].unique())[::22] == ["A00", "A22"]
    assert twins["emfd"]["item"][-1] == "emfd-54883"
    assert twin("MFRC", scale=0.01)["item"][0] == "mfrc-00001"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: twin("mtfc"), "did you mean 'mftc'.* Choose from mftc, mfrc, emfd"),
        (lambda: twin("xyz"), r"no twin of 'xyz'\. Choose from"),
        (lambda: twin("mftc", scale=0), "scale is 0"),
        (lambda: twin("mftc", scale=6), "at most 5"),
        (lambda: twin("mftc", scale=float("nan")), "scale is nan"),
        (lambda: twin("mftc", seed=-1), "seed is -1"),
    ],
)
def test_bad_arguments(call, says):
    with pytest.raises(UsageError, match=says):
        call()


def test_a_bad_name_writes_nothing(tmp_path):
    with pytest.raises(UsageError):
        write_twin("none", tmp_path / "votes.parquet")
    with pytest.raises(FileError, match="there is no folder"):
        write_twin("mfrc", tmp_path / "no" / "votes.parquet", scale=0.01)
    assert list(tmp_path.iterdir()) == []
