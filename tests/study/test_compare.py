"""The study on votes whose truth is known: soft wins where it should, and nobody wins where nothing can be learnt."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import log_loss
from study_support import CUES, annotators, told_votes, train_by_cue

from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import TrainError, UsageError
from moral_entropy.progress import ignore
from moral_entropy.study.compare import compare_targets
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.page import study_page
from moral_entropy.study.progress_folder import progress_folder
from moral_entropy.train.splits import make_splits

# Two who know, six who say yes to nearly everything.
UNEQUAL = annotators((0.97, 0.95), (0.95, 0.97), *[(0.35, 0.9)] * 6)
KINDS = ("soft", "share", "any", "majority", "two-vote")


def compare(consensus, *, train=train_by_cue, advance=ignore, **asked):
    options = StudyOptions(**{"targets": KINDS, "models": ("tfidf",), "seeds": 2, "replicates": 200} | asked)
    return compare_targets(consensus, options, train=train, advance=advance)


@pytest.fixture(scope="module")
def unequal():
    return fit(told_votes(confusion_akv=UNEQUAL), draws=40)


@pytest.fixture(scope="module")
def study(unequal):
    return compare(unequal)


def pooled(frame, reference, metric, **more):
    return frame.filter(reference=reference, metric=metric, question="(mean)", model="tfidf", **more)


def test_soft_wins_against_gold_where_annotators_are_unequal(study):
    for metric in ("accuracy", "log_loss", "brier"):
        rows = pooled(study.differences, "gold", metric)
        assert dict(zip(rows["target"], rows["better"], strict=True)) == dict.fromkeys(KINDS[1:], "soft")


def test_share_wins_against_votes_it_is_made_like(study):
    """The votes of people who say yes to everything are foretold by the share, not by the label behind the votes."""
    [row] = pooled(study.differences, "votes", "log_loss", target="share").to_dicts()
    assert row["better"] == "share" and row["low"] > 0


def test_where_texts_carry_nothing_nobody_wins():
    """Prevalence ½ and annotators as good at yes as at no: every target but the lopsided rules is right on average."""
    votes = told_votes((0.5, 0.5, 0.5), confusion_akv=annotators(*[(0.8, 0.8)] * 7), votes_per_item=5)
    found = compare(fit(votes, draws=40), targets=("soft", "share", "majority"))
    rows = found.differences.filter(pl.col("reference").is_in(["gold", "consensus"]), question="(mean)", metric="auc")
    assert rows.height == 4 and set(rows["better"]) == {"neither"}
    rows = pooled(found.differences, "gold", "log_loss")
    assert rows.height == 2 and rows["difference"].abs().max() < 0.01
    auc = pooled(found.scores, "gold", "auc")
    assert ((auc["low"] < 0.5) & (auc["high"] > 0.5)).all()


def test_scores_equal_a_loop(unequal, study):
    """Log loss against gold of the model trained on soft targets, by hand: split, mean by cue, scikit-learn."""
    votes, p_i = unequal.votes, unequal.fits[0].p_ik[:, 1]
    texts = votes.texts.to_list()
    found = []
    for seed in (0, 1):
        (split,), _ = make_splits("items", texts, [None] * len(texts), draw=seed)
        cue = [text.split()[0] for text in texts]
        mean = {one: np.mean([p_i[i] for i in split.train_i if cue[i] == one]) for one in set(cue)}
        gold_i = unequal.fits[0].ballot.gold_i[split.test_i]
        found.append(log_loss(gold_i, [mean[cue[i]] for i in split.test_i]))
    [row] = pooled(study.scores, "gold", "log_loss", target="soft").to_dicts()
    assert row["value"] == pytest.approx(np.mean(found))
    assert row["seed_sd"] == pytest.approx(np.std(found, ddof=1))
    assert (row["n"], row["seeds"]) == (len(split.test_i), 2)


def test_differences_are_those_of_the_scores(study):
    other = study.scores.rename({"value": "other"}).drop("low", "high", "seed_sd", "n", "seeds")
    soft = study.scores.filter(target="soft").drop("target", "low", "high", "seed_sd", "n", "seeds")
    both = study.differences.join(other, on=["split", "model", "target", "reference", "question", "metric"]).join(
        soft, on=["split", "model", "reference", "question", "metric"]
    )
    assert both.height == study.differences.height == 5 * 4 * 5 * 2
    np.testing.assert_allclose(both["difference"], both["value"] - both["other"], atol=1e-12)
    assert (both["low"] <= both["difference"] + 1e-12).all() and (both["difference"] <= both["high"] + 1e-12).all()


def test_pairing_makes_differences_sharper(study):
    """The interval of a paired difference is narrower than that of two independent scores."""
    [soft], [share] = (pooled(study.scores, "gold", "log_loss", target=kind).to_dicts() for kind in ("soft", "share"))
    [gap] = pooled(study.differences, "gold", "log_loss", target="share").to_dicts()
    assert gap["high"] - gap["low"] < (soft["high"] - soft["low"]) + (share["high"] - share["low"])


def test_every_reference_is_there_and_the_constant_has_read_nothing(study):
    assert set(study.scores["reference"]) == {"consensus", "majority", "gold", "votes", "held-out votes"}
    rows = study.scores.filter(model="constant", metric="auc", question="(mean)")
    assert set(rows["target"]) == {"soft"} and rows["value"].to_list() == [0.5] * 5
    assert any(note.startswith("2 of 8 annotators") for note in study.notes)


def test_the_same_seed_gives_the_same_study(unequal, study):
    again = compare(unequal)
    for name in ("scores", "differences", "curves"):
        assert getattr(again, name).equals(getattr(study, name))


def test_all_targets_learn_from_the_same_texts_with_the_same_seed(unequal):
    seen = {}

    def watch(train, validation, options, *, advance):
        key = (train.weight_iq.sum(), options.seed, train.texts, validation.texts)
        seen.setdefault((options.model, options.seed, len(train.texts)), set()).add(key)
        return train_by_cue(train, validation, options, advance=advance)

    compare(unequal, train=watch, models=("tfidf", "minilm"), held_out=0)
    assert len(seen) == 4 and all(len(keys) == 1 for keys in seen.values())


def test_questions_of_three_labels_are_compared_too():
    """Accuracy against gold of the model trained on the plurality, by hand."""
    confusion_akv = np.full((6, 3, 3), 0.15) + 0.55 * np.eye(3)
    simulated = simulate_votes(n_items=600, n_annotators=6, votes_per_item=4, n_labels=3, confusion_akv=confusion_akv)
    rng = np.random.default_rng(0)
    cue_i = np.where(rng.random(600) < 0.7, simulated.truth_i, rng.integers(3, size=600))
    texts = [f"{CUES[cue]} number {n}" for n, cue in enumerate(cue_i.tolist())]
    consensus = fit(replace(simulated.votes, texts=pl.Series(texts)), draws=20)
    found = compare(consensus, targets=("soft", "majority"), seeds=1)
    (split,), _ = make_splits("items", texts, [None] * 600)
    counts_ik = consensus.fits[0].ballot.counts_ik
    top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
    share_ik = top_ik / top_ik.sum(axis=1, keepdims=True)
    said_c = [share_ik[[i for i in split.train_i if cue_i[i] == cue]].mean(axis=0).argmax() for cue in range(3)]
    right = np.mean([said_c[cue_i[i]] == simulated.truth_i[i] for i in split.test_i])
    [row] = pooled(found.scores, "gold", "accuracy", target="majority").to_dicts()
    assert row["value"] == pytest.approx(right)
    assert set(found.scores["reference"]) == {"consensus", "majority", "gold", "votes", "held-out votes"}


def test_curves_are_kept(study):
    assert study.curves.height == 5 * 2 * 2
    assert study.curves.filter(target="any", seed=1)["validation_loss"].to_list() == [0.71, 0.65]


def test_domains_are_split_each_on_its_own():
    votes = told_votes(confusion_akv=UNEQUAL, domains=("a", "b"), n_items=800)
    consensus = fit(votes, draws=20)
    for split, names in (("domains", {"a", "b"}), ("leave-domain-out", {"without a", "without b"})):
        found = compare(consensus, split=split, targets=("soft", "any"), seeds=1, held_out=0)
        assert set(found.scores["split"]) == names | {"(mean)"}
        rows = pooled(found.scores, "gold", "accuracy", target="soft")
        values = dict(zip(rows["split"], rows["value"], strict=True))
        assert values["(mean)"] == pytest.approx(np.mean([values[name] for name in names]))
    assert "One seed: intervals are over items alone." in found.notes


def test_too_few_annotators_leave_one_reference_out():
    found = compare(fit(told_votes(confusion_akv=UNEQUAL[:2], votes_per_item=2), draws=20), targets=("soft", "share"))
    assert "held-out votes" not in set(found.scores["reference"])
    assert any(note.startswith("No votes are held out: 2 annotators are too few") for note in found.notes)


def test_progress_only_rises(unequal):
    shares = []
    compare(unequal, targets=("soft", "any"), seeds=1, advance=shares.append)
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("asked", "error", "match"),
    [
        ({"targets": ("soft", "fuzzy")}, TrainError, r"^there are no targets 'fuzzy'. Kinds: soft, share"),
        ({"targets": ("soft", "any", "soft")}, UsageError, r"^target 'soft' is named twice"),
        ({"targets": ("soft",)}, UsageError, r"^one kind of target, 'soft', cannot be compared with itself"),
        ({"models": ("tfdf",)}, UsageError, r"^there is no model 'tfdf'; did you mean 'tfidf'\?"),
        ({"models": ()}, UsageError, r"^name at least one model"),
        ({"seeds": 0}, UsageError, r"^seeds is 0; it is at least 1"),
        ({"split": "words"}, UsageError, r"^split is 'words'; choose one of items, domains, leave-domain-out"),
        ({"split": "leave-domain-out"}, TrainError, r"^no item has a domain"),
    ],
)
def test_bad_questions_are_refused_before_training(unequal, asked, error, match):
    def never(*_given, **_more):
        pytest.fail("trained")

    with pytest.raises(error, match=match):
        compare(unequal, **{"train": never} | asked)


def test_one_class_only_is_refused(unequal):
    ballot = unequal.votes.ballots[0]
    yes = fit(replace(unequal.votes, ballots=(replace(ballot, code_v=ballot.code_v | 1),)), draws=20)
    with pytest.raises(
        TrainError, match=r"^nothing can be learnt about question 'label': all .* of kind 'share' are '1'"
    ):
        compare(yes)


def test_votes_without_texts_are_refused(unequal):
    bare = replace(unequal, votes=replace(unequal.votes, texts=None))
    with pytest.raises(TrainError, match=r"^the votes came without texts"):
        compare(bare)


def test_the_page_says_who_wins_and_whom_each_reference_favours(study):
    page = study_page(study)
    for words in ("favoured by construction", "held-out votes", "gold", "soft"):
        assert words in page


def counting(trained):
    """A trainer that notes what it trains."""

    def train(targets, validation, options, *, checkpoints=None, **more):
        trained.append((targets.kind, options.seed))
        return train_by_cue(targets, validation, options, **more)

    return train


class TestGoingOn:
    def test_a_stopped_study_repeats_no_training(self, unequal, tmp_path):
        kept, first, second = progress_folder(tmp_path / "study"), [], []
        asked = StudyOptions(targets=("soft", "any"), models=("tfidf",), seeds=2, replicates=20, held_out=0)

        def stop(share):
            if share > 0.5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            compare_targets(unequal, asked, train=counting(first), progress=kept, advance=stop)
        resumed = compare_targets(unequal, asked, train=counting(second), progress=kept)
        # The last one of the first start was stopped halfway.
        assert first[:-1] + second == [("soft", 0), ("any", 0), ("soft", 1), ("any", 1)] and len(second) == 2
        whole = compare_targets(unequal, asked, train=train_by_cue)
        for name in ("scores", "differences", "curves"):
            assert getattr(resumed, name).equals(getattr(whole, name)), name

    def test_other_settings_are_other_trainings(self, unequal, tmp_path):
        kept, trained = progress_folder(tmp_path / "study"), []
        asked = StudyOptions(targets=("soft", "any"), models=("tfidf",), seeds=1, replicates=20, held_out=0)
        for options in (asked, asked, replace(asked, epochs=7), replace(asked, split_seed=1)):
            compare_targets(unequal, options, train=counting(trained), progress=kept)
        assert len(trained) == 6

    def test_a_damaged_file_is_trained_again(self, unequal, tmp_path):
        kept, trained = progress_folder(tmp_path / "study"), []
        asked = StudyOptions(targets=("soft", "any"), models=("tfidf",), seeds=1, replicates=20, held_out=0)
        compare_targets(unequal, asked, train=counting(trained), progress=kept)
        next(kept.folder.glob("*.npz")).write_bytes(b"PK no archive")
        compare_targets(unequal, asked, train=counting(trained), progress=kept)
        assert len(trained) == 3


def test_part_of_the_texts_is_the_same_part_in_every_seed(unequal):
    seen = []

    def train(targets, validation, options, **more):
        seen.append((set(targets.texts), set(validation.texts)))
        return train_by_cue(targets, validation, options, **more)

    asked = {"targets": ("soft", "any"), "held_out": 0, "train_texts": 120, "test_texts": 60}
    whole, part = compare(unequal, held_out=0).facts["sizes"]["items"], compare(unequal, train=train, **asked)
    sizes = part.facts["sizes"]["items"]
    assert abs(sizes["train"] - 120) < 40 and abs(sizes["test"] - 60) < 30 and sizes["test"] < whole["test"]
    (first, first_held), (second, second_held) = seen[0], seen[-1]
    both = (first | first_held) & (second | second_held)
    assert len(both) > 0.8 * len(first | first_held), "seeds differ in what they validate on"
    assert not first & first_held
