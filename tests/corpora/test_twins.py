"""Twins of the moral corpora: the published counts exactly, the published chances as closely as they can be."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from moral_entropy.corpora.twin_parameters import corpus_facts, twin_parameters
from moral_entropy.corpora.twins import read_phrases, twin, twin_places, write_twin
from moral_entropy.errors import FileError, UsageError

NAMES = ("mftc", "mfrc", "emfd")
FOUNDATIONS = ["authority", "care", "fairness", "loyalty", "sanctity"]

# Table "Corpora" of the paper once more, typed apart from the data file: items, votes per item, and the texts that
# anyone flagged, in per cent.
PAPER = {
    "mftc": {
        "ALM": (4326, 3.03, (20.9, 61.6, 49.8, 26.3, 16.9)),
        "BLM": (5117, 4.92, (21.3, 56.6, 49.5, 27.2, 20.8)),
        "Baltimore": (5190, 3.32, (31.8, 27.1, 31.4, 42.3, 9.0)),
        "Davidson": (4873, 3.78, (33.0, 11.5, 11.2, 11.6, 12.3)),
        "Election": (5050, 3.88, (17.5, 38.0, 34.4, 22.8, 30.4)),
        "MeToo": (4711, 3.65, (65.7, 33.3, 43.9, 41.0, 52.8)),
        "Sandy": (4591, 3.03, (45.6, 60.9, 30.3, 42.7, 15.0)),
    },
    "mfrc": {
        "Everyday Morality": (5366, 3.00, (10.4, 37.4, 25.5, 11.7, 13.5)),
        "US Politics": (5351, 2.99, (19.7, 29.6, 38.3, 7.7, 8.4)),
        "French Politics": (7169, 3.00, (25.4, 16.0, 26.0, 13.1, 8.0)),
    },
    "emfd": {
        "Physical Violence": (30261, 1.20, (24.3, 24.5, 21.1, 22.4, 18.3)),
        "Asymmetric Threats": (6622, 1.44, (26.1, 22.2, 24.1, 26.8, 18.0)),
        "Internal Unrest": (5758, 1.83, (25.0, 26.7, 29.4, 26.6, 23.1)),
        "Civil Liberties": (10334, 1.40, (26.0, 23.6, 26.1, 22.2, 18.3)),
        "Untagged": (1908, 1.11, (21.6, 30.3, 19.4, 17.8, 18.7)),
    },
}
TOTALS = {"mftc": (33_858, 23), "mfrc": (17_886, 6), "emfd": (54_883, 655)}


@pytest.fixture(scope="module")
def twins():
    return {name: twin(name) for name in NAMES}


@pytest.fixture(scope="module")
def places():
    """Where every item lies, by corpus."""
    found = {}
    for name in NAMES:
        parameters = twin_parameters(name)
        found[name] = np.concatenate([twin_places(parameters, d) for d in range(len(parameters.facts.domains))])
    return found


def item_numbers(frame):
    return frame["item"].str.slice(5).cast(int).to_numpy() - 1


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


def test_team_and_domain_are_apart(twins):
    teams = {domain: set(members) for domain, members in twins["mftc"].group_by("domain").agg("annotator").iter_rows()}
    assert {len(team) for team in teams.values()} == {8, 9}
    assert {len(teams[a] & teams[b]) for a, b in combinations(teams, 2)} == {3, 4}
    domains_a = Counter(annotator for team in teams.values() for annotator in team)
    assert sorted(domains_a.values()) == [2] * 20 + [7] * 3
    # Elsewhere annotators have no team. Those of eMFD who have few votes miss a domain.
    for name, least in (("mfrc", 3), ("emfd", 2)):
        assert twins[name].group_by("annotator").agg(pl.col("domain").n_unique())["domain"].min() >= least


def test_emfd_workloads_are_uneven(twins):
    votes_a = twins["emfd"].group_by("annotator").len()["len"].sort()
    top_tenth = votes_a.tail(66).sum() / votes_a.sum()
    assert top_tenth > 0.3
    assert votes_a.min() >= 5


@pytest.mark.parametrize("name", NAMES)
def test_votes_follow_the_annotators_they_were_drawn_from(twins, places, name):
    parameters = twin_parameters(name)
    chance = np.empty((twins[name].height // 5, 5))
    domain_r = twins[name]["domain"].to_numpy()[::5]
    annotator_r = twins[name]["annotator"].str.slice(1).cast(int).to_numpy()[::5]
    place_rf = places[name][item_numbers(twins[name])[::5]]
    for d, domain in enumerate(parameters.facts.domains):
        at_r = domain_r == domain.name
        sensitivity = parameters.sensitivity_af[annotator_r[at_r]]
        specificity = expit(logit(parameters.specificity_af[annotator_r[at_r]]) + parameters.shift_df[d])
        chance[at_r] = place_rf[at_r] * sensitivity + (1 - place_rf[at_r]) * (1 - specificity)
    rows = twins[name].with_columns(chance=chance.ravel(), spread=(chance * (1 - chance)).ravel())
    cells = rows.group_by("annotator", "question", "gold").agg(pl.col("label", "chance", "spread").sum())
    # Six standard errors and a vote or two, since most of eMFD's cells are far too small to be normal.
    assert ((cells["label"] - cells["chance"]).abs() < 6 * cells["spread"].sqrt() + 2).all()
    # Where the votes of an item depend on each other through its place alone, pairs of them are both yes this often.
    pairs = rows.group_by("item", "question").agg(
        both=(pl.col("label").sum() ** 2 - pl.col("label").sum()) / 2,
        expected=(pl.col("chance").sum() ** 2 - (pl.col("chance") ** 2).sum()) / 2,
    )
    assert pairs["both"].sum() == pytest.approx(pairs["expected"].sum(), rel=0.04)


@pytest.mark.parametrize("name", NAMES)
def test_annotators_spread_around_the_published_means(name):
    # Counted on clear and on other texts together, and before a domain makes everybody more specific.
    parameters, facts = twin_parameters(name), corpus_facts(name)
    share_f = np.array(facts.prevalence) / (1 - np.array(facts.prevalence)) / 3
    alarm_af = 1 - parameters.specificity_af
    hit_af = parameters.sensitivity_af * 2 / 3 + (0.75 * parameters.sensitivity_af + 0.25 * alarm_af) / 3
    pass_af = 1 - ((1 - share_f) * alarm_af + share_f * (0.25 * parameters.sensitivity_af + 0.75 * alarm_af))
    for drawn_af, mean_f, votes in ((hit_af, facts.sensitivity, 30), (pass_af, facts.specificity, 60)):
        mean = np.array(mean_f)
        error = np.sqrt(mean * (1 - mean) / (votes + 1) / facts.annotators)
        assert (np.abs(drawn_af.mean(axis=0) - mean) < 4 * error).all()
    assert (parameters.sensitivity_af + parameters.specificity_af > 1).mean() > 0.97


@pytest.mark.parametrize("name", NAMES)
def test_specificities_move_only_where_false_alarms_alone_flag_too_many(name):
    parameters = twin_parameters(name)
    any_df = np.array([domain.any_rule for domain in parameters.facts.domains])
    moved_df = parameters.shift_df > 0
    assert (parameters.shift_df >= 0).all() and moved_df.any() and not moved_df.all()
    assert np.allclose(parameters.prevalence_df[moved_df], any_df[moved_df] / 4, atol=1e-6)
    assert (parameters.prevalence_df[~moved_df] >= any_df[~moved_df] / 4 - 1e-6).all()
    for d, domain in enumerate(parameters.facts.domains):
        votes_a = np.bincount(parameters.assigned[d].annotator_v, minlength=parameters.facts.annotators)
        alarm_f = np.average(1 - parameters.specificity_af, weights=votes_a, axis=0)
        # A quarter of what is flagged is true, so more is flagged than by false alarms alone; shares bend in between.
        alone_f = 1 - (1 - alarm_f) ** domain.votes_per_item
        assert (alone_f[moved_df[d]] > 0.6 * any_df[d][moved_df[d]]).all()
        assert (alone_f[~moved_df[d]] < any_df[d][~moved_df[d]]).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_any_rule_flags_what_the_paper_says(twins, name):
    flagged = twins[name].group_by("domain", "question", "item").agg(pl.col("label").max())
    cells = flagged.group_by("domain", "question").agg(pl.col("label").mean() * 100)
    found = {(domain, question): share for domain, question, share in cells.iter_rows()}
    published = {
        (domain, question): share
        for domain, (_, _, shares) in PAPER[name].items()
        for question, share in zip(FOUNDATIONS, shares, strict=True)
    }
    assert found.keys() == published.keys()
    assert len(found) == {"mftc": 35, "mfrc": 15, "emfd": 25}[name]
    assert max(abs(found[cell] - published[cell]) for cell in found) < 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_seeds_flag_as_many(seed):
    # By construction, and not by luck with seed 0: the count of flagged texts has no noise.
    frame = twin("mfrc", seed=seed)
    for domain, (_, _, shares) in PAPER["mfrc"].items():
        flagged = frame.filter(domain=domain).group_by("item", "question").agg(pl.col("label").max())
        found = flagged.group_by("question").agg(pl.col("label").mean() * 100).sort("question")
        assert np.allclose(found["label"], shares, atol=0.3)


@pytest.mark.parametrize("name", NAMES)
def test_a_third_of_the_yes_and_as_many_of_the_no_lie_between_labels(twins, places, name):
    parameters, start = twin_parameters(name), 0
    for d, domain in enumerate(parameters.facts.domains):
        place_if = places[name][start : start + domain.items]
        start += domain.items
        yes_f, between_if = (place_if > 0.5).sum(axis=0), (place_if > 0) & (place_if < 1)
        assert np.allclose(yes_f / domain.items, parameters.prevalence_df[d], atol=0.5 / domain.items + 1e-6)
        for side_if in (place_if > 0.5, place_if < 0.5):
            assert (np.abs((between_if & side_if).sum(axis=0) - yes_f / 3) <= 0.5).all()
        for f in range(5):
            spread = np.sort(place_if[between_if[:, f], f])
            assert np.allclose(spread, np.linspace(0, 1, len(spread) + 2)[1:-1], atol=1 / len(spread))
    assert start == len(places[name])


@pytest.mark.parametrize("name", NAMES)
def test_gold_is_the_nearer_label(twins, places, name):
    place_rf = places[name][item_numbers(twins[name])[::5]]
    assert (place_rf != 0.5).all()
    assert (twins[name]["gold"].to_numpy().reshape(-1, 5) == place_rf.round()).all()


def test_real_counts_of_yes_votes_are_alike(twins):
    path = Path(__file__).parents[2] / ".." / "shared" / "data" / "mfrc_counts" / "counts_with_text.csv"
    if not path.is_file():
        pytest.skip("the counts of MFRC's votes are not beside the project")
    real, made = pl.read_csv(path), twins["mfrc"].group_by("question", "item").agg(pl.col("label").sum())
    for question, column in {
        "authority": "Authority",
        "care": "Care",
        "loyalty": "Loyalty",
        "sanctity": "Purity",
    }.items():
        # Of the flagged texts, how many have one, two and three votes for it: nothing in the twin was fitted to that.
        shares = [
            np.bincount(np.minimum(counts, 3), minlength=4)[1:] / (counts > 0).sum()
            for counts in (real[column].to_numpy(), made.filter(question=question)["label"].to_numpy())
        ]
        assert np.abs(shares[0] - shares[1]).max() < 0.08


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_distinct_and_short(twins, name):
    texts = twins[name].unique("item")["text"]
    assert texts.n_unique() == TOTALS[name][0]
    assert texts.str.split(" ").list.len().is_between(8, 25).all()


@pytest.mark.parametrize("name", NAMES)
def test_texts_carry_cues_of_the_truth(twins, places, name):
    items = twins[name].unique(["item", "question"], maintain_order=True).with_columns(place=places[name].ravel())
    for question in FOUNDATIONS:
        pattern = rf"\b({'|'.join(read_phrases()['cues'][question])})\b"
        rows = items.filter(pl.col("question") == question).select("place", cue=pl.col("text").str.contains(pattern))
        between = pl.col("place").is_between(0, 1, closed="none")
        for those, chance in ((pl.col("place") == 1, 0.8), (pl.col("place") == 0, 0.05), (between, 0.425)):
            seen = rows.filter(those)["cue"]
            assert abs(seen.mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / len(seen))


def test_no_phrase_begins_another_and_no_filler_is_a_cue():
    phrases = read_phrases()
    fillers = [*phrases["details"], *phrases["closings"], *phrases["cue_links"]]
    openings = [phrase for each in phrases["openings"].values() for phrase in each]
    cues = [cue for each in phrases["cues"].values() for cue in each]
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
