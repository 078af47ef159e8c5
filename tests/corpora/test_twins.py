"""Twins of the moral corpora: the published counts exactly, the published chances as closely as they can be."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from moral_entropy.corpora.twins import (
    assign_in_proportion,
    corpus_facts,
    draw_annotators,
    draw_domain,
    read_data,
    scaled_facts,
    solve_highlights,
    twin,
    write_twin,
)
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
def drawn():
    """The votes of every domain, by corpus, with the chances they were drawn from."""
    return {name: [draw_domain(scaled_facts(name, 0, 1), d) for d in range(len(PAPER[name]))] for name in NAMES}


@pytest.fixture(scope="module")
def places(drawn):
    """Where every item lies, by corpus."""
    return {name: np.concatenate([domain.place_if for domain in domains]) for name, domains in drawn.items()}


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


# Annotations by annotator and domain in the published file of MFTC, typed apart from the data file.
TEAMS = {
    "ALM": {0: 86, 1: 3105, 2: 3212, 3: 3233, 17: 171},
    "BLM": {0: 3827, 1: 3879, 2: 3894, 3: 3944, 4: 3922, 17: 5},
    "Baltimore": {1: 58, 2: 3482, 12: 913, 13: 3822, 14: 3829, 15: 502, 17: 425},
    "Election": {0: 3937, 1: 43, 2: 3886, 3: 4113, 4: 4068, 17: 8},
    "Sandy": {1: 131, 9: 3672, 10: 3669, 11: 3638, 17: 12},
}


def test_the_teams_of_mftc_are_the_published_ones(twins):
    counted = twins["mftc"].filter(question="care").group_by("domain", "annotator").len()
    teams = {domain: {} for domain in PAPER["mftc"]}
    for domain, annotator, votes in counted.iter_rows():
        teams[domain][int(annotator[1:])] = votes
    for domain, published in TEAMS.items():
        total = sum(published.values())
        assert set(teams[domain]) <= set(published)
        n_items, votes_per_item, _ = PAPER["mftc"][domain]
        for annotator, count in published.items():
            share = count / total * votes_per_item
            assert abs(teams[domain].get(annotator, 0) / n_items - min(share, 1.0)) < 0.03
    # Nobody knows who annotated the other two; one person fills in everywhere.
    assert set(teams["Davidson"]) & set(teams["MeToo"]) == {17}
    assert len(set().union(*teams.values())) == 23


def test_dissent_in_blm_is_as_unequal_as_the_paper_says(twins):
    care = twins["mftc"].filter(domain="BLM", question="care")
    care = care.with_columns(majority=(pl.col("label").mean() >= 0.5).over("item"))
    rates = care.group_by("annotator").agg(n=pl.len(), rate=(pl.col("label") != pl.col("majority")).mean())
    rates = rates.filter(pl.col("n") > 100)["rate"]
    # In the paper 7.6 and 31.3%.
    assert len(rates) == 5 and rates.min() < 0.12 and rates.max() > 0.28


def test_a_mark_of_emfd_names_exactly_one_foundation(twins):
    marks = twins["emfd"].filter(label=1)
    assert marks.height == twins["emfd"].height / 5
    assert not marks.select("item", "annotator").is_duplicated().any()


def test_marks_that_flag_what_they_should():
    share_n, any_rule = np.array([0.0, 0.7, 0.2, 0.1]), [0.4, 0.45, 0.3]
    share_f, mistake = solve_highlights(any_rule, share_n)
    rng = np.random.default_rng(0)
    n = 200_000
    main_i, second_i = rng.choice(3, n, p=share_f / share_f.sum()), np.zeros(n, dtype=int)
    for main in range(3):
        rest_f = np.where(np.arange(3) == main, 0, share_f)
        second_i[main_i == main] = rng.choice(3, (main_i == main).sum(), p=rest_f / rest_f.sum())
    level_i = np.where(rng.random(n) < 1 / 3, rng.uniform(0.5, 1, n), 1)
    flagged_if, open_i = np.zeros((n, 3), dtype=bool), np.ones(n, dtype=bool)
    for turn in range(3):
        named_i = np.where(rng.random(n) < level_i, main_i, second_i)
        named_i = np.where(rng.random(n) < mistake, rng.choice(3, n, p=share_f / share_f.sum()), named_i)
        open_i &= rng.random(n) < [1, 0.3, 1 / 3][turn]
        flagged_if[open_i, named_i[open_i]] = True
    assert 0 < mistake < 1
    assert np.allclose(flagged_if.mean(axis=0), any_rule, atol=0.005)


def test_annotators_are_drawn_in_proportion_and_never_twice():
    votes_i = np.array([1, 2, 3] * 2_000)
    annotator_v = assign_in_proportion(np.random.default_rng(1), votes_i, np.array([4.0, 3.0, 2.0, 1.0]))
    item_v = np.repeat(np.arange(len(votes_i)), votes_i)
    assert len(set(zip(item_v.tolist(), annotator_v.tolist(), strict=True))) == len(item_v)
    assert np.allclose(np.bincount(annotator_v) / len(item_v), [0.4, 0.3, 0.2, 0.1], atol=0.01)
    everybody = assign_in_proportion(np.random.default_rng(1), np.full(9, 3), np.array([5.0, 1.0, 2.0]))
    assert everybody.tolist() == [0, 1, 2] * 9


def test_emfd_workloads_are_uneven(twins):
    votes_a = twins["emfd"].group_by("annotator").len()["len"].sort()
    top_tenth = votes_a.tail(66).sum() / votes_a.sum()
    assert top_tenth > 0.3
    assert votes_a.min() >= 5


@pytest.mark.parametrize("name", NAMES)
def test_votes_have_their_chances(drawn, name):
    for domain in drawn[name]:
        item_v = np.repeat(np.arange(len(domain.votes_i)), domain.votes_i)
        spread_f = np.sqrt((domain.yes_vf * (1 - domain.yes_vf)).sum(axis=0))
        assert (np.abs((domain.label_vf - domain.yes_vf).sum(axis=0)) < 6 * spread_f).all()
        yes_if, chance_if, square_if = (
            np.stack([np.bincount(item_v, column) for column in values.T])
            for values in (domain.label_vf, domain.yes_vf, domain.yes_vf**2)
        )
        # Where the votes of an item depend on each other through its place alone, pairs are both yes this often.
        both, expected = ((yes_if**2 - yes_if) / 2).sum(), ((chance_if**2 - square_if) / 2).sum()
        assert abs(both - expected) < 6 * np.sqrt(expected)


@pytest.mark.parametrize("name", ["mftc", "mfrc"])
def test_annotators_spread_around_the_published_means(name):
    # Counted on clear and on other texts together, and before a domain makes everybody more specific.
    facts = corpus_facts(name)
    sensitivity_af, specificity_af = draw_annotators(facts)
    share_f = np.array(facts["prevalence"]) / (1 - np.array(facts["prevalence"])) / 3
    alarm_af = 1 - specificity_af
    hit_af = sensitivity_af * 2 / 3 + (0.75 * sensitivity_af + 0.25 * alarm_af) / 3
    pass_af = 1 - ((1 - share_f) * alarm_af + share_f * (0.25 * sensitivity_af + 0.75 * alarm_af))
    pairs = ((hit_af, facts["sensitivity"]), (pass_af, facts["specificity"]))
    for (drawn_af, mean_f), votes in zip(pairs, facts["alike"], strict=True):
        mean = np.array(mean_f)
        error = np.sqrt(mean * (1 - mean) / (votes + 1) / facts["annotators"])
        assert (np.abs(drawn_af.mean(axis=0) - mean) < 4 * error).all()
    assert (sensitivity_af + specificity_af).min() > 1.099


@pytest.mark.parametrize("name", ["mftc", "mfrc"])
def test_specificities_move_only_where_false_alarms_alone_flag_too_many(drawn, name):
    any_df = np.array([domain["any_rule"] for domain in corpus_facts(name)["domains"]])
    shift_df, prevalence_df = (
        np.array([getattr(d, part) for d in drawn[name]]) for part in ("shift_f", "prevalence_f")
    )
    moved_df = shift_df > 0
    assert (shift_df >= 0).all() and moved_df.any() and not moved_df.all()
    assert np.allclose(prevalence_df[moved_df], any_df[moved_df] / 4, atol=1e-6)
    assert (prevalence_df[~moved_df] >= any_df[~moved_df] / 4 - 1e-6).all()


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
    # In eMFD, where marks are shared out among foundations, a little noise is left.
    assert max(abs(found[cell] - published[cell]) for cell in found) < (0.5 if name == "emfd" else 0.2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_seeds_flag_as_many(seed):
    # By construction, and not by luck with seed 0: the count of flagged texts has no noise.
    frame = twin("mfrc", seed=seed)
    for domain, (_, _, shares) in PAPER["mfrc"].items():
        flagged = frame.filter(domain=domain).group_by("item", "question").agg(pl.col("label").max())
        found = flagged.group_by("question").agg(pl.col("label").mean() * 100).sort("question")
        assert np.allclose(found["label"], shares, atol=0.3)


@pytest.mark.parametrize("name", NAMES)
def test_a_third_of_the_yes_and_as_many_of_the_no_lie_between_labels(drawn, name):
    for domain in drawn[name]:
        place_if, n_items = domain.place_if, len(domain.place_if)
        yes_f, between_if = (place_if > 0.5).sum(axis=0), (place_if > 0) & (place_if < 1)
        assert np.allclose(yes_f / n_items, domain.prevalence_f, atol=0.5 / n_items + 1e-6)
        assert (np.abs((between_if & (place_if > 0.5)).sum(axis=0) - yes_f / 3) <= 0.5).all()
        no_f = (between_if & (place_if < 0.5)).sum(axis=0)
        if name == "emfd":
            # There a text lies between two foundations: only their sum is fixed.
            assert np.allclose(place_if.sum(axis=1), 1)
            assert abs(no_f.sum() - yes_f.sum() / 3) <= 2.5
            continue
        assert (np.abs(no_f - yes_f / 3) <= 0.5).all()
        for f in range(5):
            spread = np.sort(place_if[between_if[:, f], f])
            assert np.allclose(spread, np.linspace(0, 1, len(spread) + 2)[1:-1], atol=1 / len(spread))


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
        pattern = rf"\b({'|'.join(read_data('twin_phrases.toml')['cues'][question])})\b"
        rows = items.filter(pl.col("question") == question).select("place", cue=pl.col("text").str.contains(pattern))
        between = pl.col("place").is_between(0, 1, closed="none")
        for those, chance in ((pl.col("place") == 1, 0.8), (pl.col("place") == 0, 0.05), (between, 0.425)):
            seen = rows.filter(those)["cue"]
            assert abs(seen.mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / len(seen))


def test_no_phrase_begins_another_and_no_filler_is_a_cue():
    phrases = read_data("twin_phrases.toml")
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
        (lambda: twin("mtfc"), "Did you mean 'mftc'.* Choose from mftc, mfrc, emfd"),
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
