"""Texts as evidence: planted worths are found, shuffled texts are worth nothing, and p is as the formula says."""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from train_support import needs_minilm, small_bert, texts_and_truth

import moral_entropy as me
from moral_entropy.checks.scores import auc
from moral_entropy.cli.main import main
from moral_entropy.explanation import explain_item
from moral_entropy.options import TrainOptions
from moral_entropy.planning import next_votes
from moral_entropy.report.export import export_run
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.train import texts as texts_module
from moral_entropy.train.classifier import TOKEN, spaced
from moral_entropy.train.run import run_training
from moral_entropy.train.texts import (
    WORTHS,
    count_words,
    cross_fit,
    embed_texts,
    left_out_losses,
    measure_worth,
    read_texts,
)


def planted(worth, *, n_items=4_000, n_votes=3, seed=0):
    """Votes by item and text probabilities: an item's share of yes is Beta around what its text says."""
    rng = np.random.default_rng(seed)
    t_i = rng.beta(1.0, 2.0, n_items).clip(0.02, 0.98)
    yes_i = rng.binomial(n_votes, rng.beta(worth * t_i, worth * (1 - t_i)))
    return np.column_stack([n_votes - yes_i, yes_i]), np.column_stack([1 - t_i, t_i])


def base_of(counts_ik):
    return (counts_ik.sum(axis=0) + 0.5) / (counts_ik.sum() + 1.0)


@pytest.mark.parametrize("worth", [2.0, 6.0])
def test_a_planted_worth_is_found(worth):
    counts_ik, t_ik = planted(worth)
    found = measure_worth(counts_ik, t_ik, base_of(counts_ik), np.arange(len(counts_ik)))
    # One vote of the base rate is part of the formula, so that the best weight of the text is about the planted one.
    assert found["low"] <= worth * 1.1 and found["high"] >= worth * 0.8
    assert found["loss"] < found["loss_without"]


def test_probabilities_that_say_nothing_are_worth_nothing():
    rng = np.random.default_rng(0)
    for seed in range(10):
        counts_ik, t_ik = planted(4.0, n_items=500, seed=seed)
        found = measure_worth(counts_ik, rng.permutation(t_ik), base_of(counts_ik), np.arange(500))
        assert found["low"] == 0.0


@pytest.mark.parametrize(("n_votes", "most"), [(3, 12), (4, 6)])
def test_texts_may_count_for_more_where_votes_are_few(n_votes, most):
    counts_ik = np.array([[n_votes, 0], [0, n_votes]] * 200)
    assert measure_worth(counts_ik, np.full((400, 2), 0.5), np.array([0.5, 0.5]), np.arange(400))["most"] == most


def test_without_pairs_of_votes_the_worth_is_at_most_four():
    counts_ik, t_ik = planted(20.0, n_votes=1)
    assert measure_worth(counts_ik, t_ik, base_of(counts_ik), np.arange(len(counts_ik)))["votes"] == 4.0


def test_losses_are_those_of_each_vote_left_out_by_hand():
    counts_ik, t_ik = np.array([[2, 1], [0, 2]]), np.array([[0.3, 0.7], [0.6, 0.4]])
    base_k = np.array([0.4, 0.6])
    losses = list(left_out_losses(counts_ik, t_ik, base_k))
    for worth, loss_ik in zip(WORTHS, losses, strict=True):
        for item, counts_k in enumerate(counts_ik):
            by_hand = 0.0
            for label in np.repeat([0, 1], counts_k):
                others_k = counts_k - np.eye(2)[label]
                p_k = (others_k + base_k + worth * t_ik[item]) / (others_k.sum() + 1.0 + worth)
                by_hand -= np.log(p_k[label])
            assert_allclose(loss_ik[item].sum(), by_hand)


def test_a_text_is_never_predicted_from_its_own_votes_nor_a_copys():
    texts, care_i, _ = texts_and_truth(400)
    texts = [*texts, *(text.upper() + "!" for text in texts[:50])]
    care_i = np.concatenate([care_i, care_i[:50]])
    reading = read_texts(texts)
    assert (reading.fold_i[:50] == reading.fold_i[400:]).all() and (reading.group_i[:50] == reading.group_i[400:]).all()
    counts_ik = np.column_stack([~care_i, care_i]).astype(int)
    before, _ = cross_fit(reading, counts_ik)
    counts_ik[[3, 403]] = counts_ik[[3, 403]][:, ::-1]
    after, _ = cross_fit(reading, counts_ik)
    # The last regression, of 450 texts, sees the votes of other folds only.
    assert_allclose(after[[3, 403]], before[[3, 403]], atol=0.02)
    assert ((before[:, 1] > 0.5) == care_i).mean() > 0.9


def test_words_are_counted_as_scikit_learn_counts_them(monkeypatch):
    texts = [
        *texts_and_truth(200)[0],
        "",
        "Café, cafe\u0301; 我爱你 我爱",
        "שָׁלוֹם  x",
        "a",
        "a b a b " * 30,
        "long" * 999,
        "我爱你",
    ]
    for most in (50_000, 40):
        monkeypatch.setattr(texts_module, "MOST_FEATURES", most)
        vectorizer = CountVectorizer(
            ngram_range=(1, 2), token_pattern=TOKEN, preprocessor=spaced, min_df=2, max_features=most
        )
        wanted_if = vectorizer.fit_transform(texts)
        count_if, words = count_words(texts)
        assert len(words) == wanted_if.shape[1] and len(set(words)) == len(words)
        for f, word in enumerate(words):
            if (place := vectorizer.vocabulary_.get(word)) is not None:
                assert_allclose(count_if[:, [f]].toarray(), wanted_if[:, [place]].toarray())
        missing = {*words} - {*vectorizer.vocabulary_}
        # Of words that are equally frequent either may be the last to be kept.
        assert most == 40 or not missing
        least = wanted_if.sum(axis=0).min()
        assert all(count_if[:, [f]].sum() == least for f, word in enumerate(words) if word in missing)


def test_near_identical_texts_are_one_group_and_others_are_not():
    rng = np.random.default_rng(0)
    words = np.array([f"w{n}" for n in range(300)])
    texts = [" ".join(rng.choice(words, 40)) for _ in range(100)]
    near = [text.replace(text.split()[0], "other", 1) for text in texts[:30]]
    group_i = read_texts([*texts, *near]).group_i
    assert len(np.unique(group_i[:100])) == 100
    assert (group_i[100:] == group_i[:30]).mean() > 0.9


def votes_frame(n_items=400, *, n_votes=2, right=0.75, seed=0, shuffled=False, without=0):
    """Votes on care, right three times in four, and texts that carry the answer, or belong to other items."""
    texts, care_i, _ = texts_and_truth(n_items, seed=seed)
    rng = np.random.default_rng(seed + 1)
    if shuffled:
        texts = list(rng.permutation(texts))
    rows = []
    for item in range(n_items):
        for _ in range(0 if item < without else n_votes):
            vote = care_i[item] == (rng.random() < right)
            rows.append((f"t{item:04}", f"ann{rng.integers(5)}{_}", "yes" if vote else "no", texts[item]))
        if item < without:
            rows.append((f"t{item:04}", None, None, texts[item]))
    return pl.DataFrame(rows, schema=["item", "annotator", "label", "text"], orient="row"), care_i


SCRIPTS = {
    "German": (
        "der Zug fährt über Brücke und Straße früh größer schön",
        "schmerz verletz",
        "un{}lich Kopf{} {}Haft Ge{}e",
    ),
    "Chinese": ("今 天 气 很 好 我 们 去 公 园 看 见 只 小 猫 在 树 下 睡", "伤害 痛苦", "{}"),
    "Japanese": ("今日は 天気が 良い 電車 家 川 本 道 街", "痛い 苦しみ", "{}"),
    "Thai": ("วันนี้ อากาศ ดี รถไฟ บ้าน แม่น้ำ ถนน เมือง", "เจ็บ ทุกข์", "{}"),
    "Arabic": ("القطار يصل اليوم إلى المدينة والبيت القديم النهر", "ظلم جرح", "ال{} {}وا وال{} {}هم"),
    "Hebrew": ("היום הרכבת מגיעה לעיר הגדולה ליד הנהר", "כאב פצע", "ה{} {}ים של{} ב{}"),
    "Russian": ("поезд приходит сегодня вечером старый дом ещё ёлка", "боль обид", "{}ный {}АМИ по{} {}но"),
    "Hindi": ("आज मौसम अच्छा है रेल घर नदी किताब", "दर्द दुःख", "{}"),
    "emoji": ("the train sky paper bridge market https://t.co/x &amp; &#39; &amp;#39;", "😢 💔", "{}"),
}
"""Words that say nothing, stems that say yes, and the forms that these take."""
UNBLANKED = ("Chinese", "Japanese", "Thai")


def texts_in(script, n_items=500, seed=0):
    """Texts in which one word in some form says yes; where it stands; whether it is there."""
    rng = np.random.default_rng(seed)
    filler, stems, forms = (words.split() for words in SCRIPTS[script])
    yes_i, texts = rng.random(n_items) < 0.4, []
    for yes in yes_i:
        words = list(rng.choice(filler, rng.integers(6, 12)))
        word = [rng.choice(forms).format(rng.choice(stems))] * bool(yes)
        texts.append(("" if script in UNBLANKED else " ").join([*words[:3], *word, *words[3:]]))
    return texts, yes_i


@pytest.mark.parametrize("script", SCRIPTS)
def test_texts_in_every_script_count(script):
    texts, yes_i = texts_in(script)
    rng = np.random.default_rng(1)
    rows = [
        (f"t{item:03}", f"ann{vote}", "yes" if yes_i[item] == (rng.random() < 0.75) else "no", texts[item])
        for item in range(len(texts))
        for vote in range(2)
    ]
    run = me.audit(pl.DataFrame(rows, schema=["item", "annotator", "label", "text"], orient="row"), draws=0,
                   use_text="tfidf")  # fmt: skip
    items = run.items.sort("item")
    loss, loss_without = (-np.log(np.where(yes_i, items[name], 1.0 - items[name])).mean() for name in ("p", "p_votes"))
    assert run.manifest["text_worth"]["questions"][0]["low"] > 0.0 and loss < 0.85 * loss_without
    assert (
        auc(items["p"].to_numpy(), yes_i.astype(float)) > auc(items["p_votes"].to_numpy(), yes_i.astype(float)) + 0.05
    )
    words = run.table("text_conflicts").filter(text_label="yes")["words"]
    stems = "|".join(list(SCRIPTS[script][1].replace(" ", "")) if script in UNBLANKED else SCRIPTS[script][1].split())
    assert words.str.contains(stems).mean() > 0.8 and not words.str.contains("amp|39").any()
    counts_ik = run.consensus.fits[0].ballot.counts_ik
    for seed in range(3):
        reading = read_texts([texts[item] for item in np.random.default_rng(seed).permutation(len(texts))])
        t_ik, _ = cross_fit(reading, counts_ik)
        assert measure_worth(counts_ik, t_ik, base_of(counts_ik), reading.group_i)["low"] == 0.0


@pytest.fixture(scope="module")
def counted():
    frame, care_i = votes_frame(1_000, without=50)
    return me.audit(frame, draws=50, use_text="tfidf"), care_i


def test_texts_count_as_the_formula_says(counted):
    run, care_i = counted
    [row] = run.manifest["text_worth"]["questions"]
    assert 0.0 < row["low"] <= row["votes"] and row["counted"] == min(row["votes"], row["most"])
    items = run.items.sort("item")
    n_i, yes_i, t_i = (items[name].to_numpy() for name in ("n_votes", "n_positive", "p_text"))
    base = (yes_i.sum() + 0.5) / (n_i.sum() + 1.0)
    share_i = (yes_i + base + row["counted"] * t_i) / (n_i + 1.0 + row["counted"])
    single = n_i <= 1
    assert single.sum() == 50, "with no vote or one, p without texts is the share alone"
    assert_allclose(items["p"].to_numpy()[single], share_i[single], rtol=1e-9)
    pooled_i = ((n_i + 1) * items["p_votes"].to_numpy() + row["counted"] * t_i) / (n_i + 1 + row["counted"])
    assert_allclose(items["p"].to_numpy(), pooled_i, rtol=1e-9)
    assert (items["p_low"] <= items["p"]).all() and (items["p"] <= items["p_high"]).all()
    assert ((items["p"].to_numpy() > 0.5) == care_i)[single].mean() > 0.9, "items that nobody voted on"
    assert ((items["p"] > 0.5) == care_i).mean() > ((items["p_votes"] > 0.5) == care_i).mean() + 0.1


def test_p_votes_is_p_of_an_audit_without_texts(counted):
    run, _ = counted
    plain = me.audit(votes_frame(1_000, without=50)[0], draws=50)
    assert plain.items["p_votes"].null_count() == plain.items.height
    assert_allclose(run.items["p_votes"], plain.items["p"], rtol=1e-9)
    # What was only measured does not move p, and says the same.
    off = me.audit(votes_frame(1_000, without=50)[0], draws=50, use_text="off")
    assert_allclose(plain.items["p"], off.items["p"], rtol=0, atol=0)
    assert off.items["p_text"].null_count() == off.items.height and "text_worth" not in off.manifest
    figures = [{**one.manifest["text_worth"]["questions"][0], "counted": 0} for one in (plain, run)]
    assert figures[0] == figures[1]
    assert "Texts do not count in p" in plain.manifest["text_worth"]["sentence"]
    limited = " but at most 12" * (run.manifest["text_worth"]["questions"][0]["votes"] > 12)
    assert f"count in p as that many votes{',' * bool(limited)}{limited};" in run.manifest["text_worth"]["sentence"]


def test_a_run_with_texts_is_fitted_again_from_its_folder(counted, tmp_path):
    run, _ = counted
    saved = run.save(tmp_path / "run")
    assert_allclose(reload_consensus(saved).fits[0].p_ik, run.consensus.fits[0].p_ik, rtol=1e-9)


def test_shuffled_texts_never_count():
    for seed in range(3):
        run = me.audit(votes_frame(seed=seed, shuffled=True)[0], draws=0, use_text="tfidf")
        [row] = run.manifest["text_worth"]["questions"]
        assert (row["low"], row["counted"]) == (0.0, 0.0)
        assert "0 votes (label)" in run.manifest["text_worth"]["sentence"]
        assert run.items["p_votes"].null_count() == run.items.height and run.table("text_conflicts").is_empty()


def test_items_whose_votes_are_wrong_lead_the_conflicts(counted):
    run, care_i = counted
    table = run.table("text_conflicts")
    truth = {f"t{item:04}": "yes" if care else "no" for item, care in enumerate(care_i)}
    wrong = [truth[item] != label for item, label in table.select("item", "label").iter_rows()]
    assert np.mean(wrong[:40]) > 0.9
    assert table["p_both"].is_sorted() and (table["label"] != table["text_label"]).all()
    speaking = table.filter(text_label="yes")["words"].str.contains("hurt|protect")
    assert speaking.mean() > 0.9


def test_annotators_who_vote_at_random_vote_against_the_text():
    frame, _ = votes_frame(600, n_votes=3, right=0.9)
    rng = np.random.default_rng(5)
    careless = frame["annotator"] == "ann00"
    votes = np.where(careless, np.where(rng.random(frame.height) < 0.5, "yes", "no"), frame["label"].to_numpy())
    run = me.audit(frame.with_columns(label=pl.Series(votes)), draws=0)
    rows = run.table("text_worth").filter(by="annotator").with_columns(excess=pl.col("against") - pl.col("expected"))
    assert rows.sort("excess", descending=True)["name"][0] == "ann00"
    assert run.table("text_worth").filter(by="(all)")["worth"][0] == run.manifest["text_worth"]["questions"][0]["votes"]


def test_a_group_whose_votes_texts_do_not_predict_is_a_finding():
    frame, _ = votes_frame(800, n_votes=3, right=0.95)
    rng = np.random.default_rng(5)
    odd = frame["annotator"].str.starts_with("ann0") | frame["annotator"].str.starts_with("ann1")
    votes = np.where(odd, np.where(rng.random(frame.height) < 0.4, "yes", "no"), frame["label"].to_numpy())
    frame = frame.with_columns(label=pl.Series(votes), team=pl.when(odd).then(pl.lit("odd")).otherwise(pl.lit("even")))
    run = me.audit(frame, draws=0, annotator_group=("team",))
    worth = dict(run.table("text_worth").filter(by="team").select("name", "worth").iter_rows())
    assert worth["even"] > worth["odd"]
    [finding] = run.findings.filter(pl.col("check") == "texts").iter_rows(named=True)
    assert finding["subject"] == "team odd" and "less well" in finding["text"]


@pytest.mark.parametrize("kind", ["few", "blank", "one text", "no words", "garbage", "long"])
def test_texts_that_are_none_are_named_and_harmless(kind):
    frame, _ = votes_frame(310 if kind != "few" else 100)
    n = frame.height
    rng = np.random.default_rng(0)
    texts = {
        "few": frame["text"], "blank": [" "] * (n - 4) + ["a b"] * 4, "one text": ["the same"] * n,
        "no words": [f"{row}" for row in range(n)],
        "garbage": ["".join(map(chr, rng.integers(1, 55_000, 30))) + "\ud800" * 0 for _ in range(n)],
        "long": ["x y " * 25_000] * 2 + frame["text"].to_list()[2:],
    }[kind]  # fmt: skip
    frame = frame.with_columns(text=pl.Series(texts))
    run = me.audit(frame, draws=0, text="text", use_text="tfidf")
    plain = me.audit(frame, draws=0, text="text")
    facts = run.manifest["text_worth"]
    if kind == "long":
        assert facts["questions"][0]["counted"] > 0.0
    else:
        assert not any(row["counted"] for row in facts["questions"])
        assert_allclose(run.items["p"], plain.items["p"])
    if kind in ("few", "blank"):
        assert "300 are the fewest" in facts["sentence"] and "text_worth" not in plain.manifest


def test_more_than_two_labels():
    texts, _, tone_i = texts_and_truth(500)
    rng = np.random.default_rng(0)
    labels = np.array(["anger", "joy", "none"])
    rows = [
        (f"t{item:03}", f"a{n}", labels[tone_i[item] if rng.random() < 0.6 else rng.integers(3)], texts[item])
        for item in range(500)
        for n in range(2)
    ]
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label", "text"], orient="row")
    run = me.audit(frame, draws=0, use_text="tfidf")
    truth = pl.Series(labels[tone_i])
    assert (run.items.sort("item")["label"] == truth).mean() > 0.9
    posterior = run.table("posterior")
    assert_allclose(posterior.group_by("item").agg(pl.col("p_votes").sum())["p_votes"], 1.0)
    assert_allclose(posterior.group_by("item").agg(pl.col("p_text").sum())["p_text"], 1.0, atol=1e-3)


class TestEncoders:
    def test_embeddings_are_normalised_and_read_from_the_cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MORAL_ENTROPY_CACHE", str(tmp_path / "cache"))
        bert = str(small_bert(tmp_path / "bert"))
        texts = texts_and_truth(70)[0]
        shares = []
        first = embed_texts(texts, bert, advance=shares.append)
        assert first.shape == (70, 32) and shares[-1] == 1.0
        assert_allclose(np.linalg.norm(first, axis=1), 1.0)
        assert_allclose(embed_texts(texts[:3], bert), first[:3], atol=1e-5)
        monkeypatch.setattr("moral_entropy.train.encoder.in_batches", None)
        assert_allclose(embed_texts(texts, bert), first, atol=1e-6)

    def test_an_encoder_counts_beside_the_words(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MORAL_ENTROPY_CACHE", str(tmp_path / "cache"))
        run = me.audit(votes_frame()[0], draws=0, use_text=str(small_bert(tmp_path / "bert")))
        assert run.manifest["text_worth"]["questions"][0]["counted"] > 0.0

    def test_minilm_tells_texts_apart(self):
        needs_minilm()
        like = embed_texts(["the dog sleeps", "a dog is asleep", "taxes rose again in spring"], "minilm")
        assert like[0] @ like[1] > 0.7 > 0.4 > like[0] @ like[2]


def test_everything_is_measured_on_a_sample_where_nothing_counts(monkeypatch):
    monkeypatch.setattr(texts_module, "MOST_MEASURED", 350)
    run = me.audit(votes_frame(500)[0], draws=0)
    assert run.manifest["text_worth"]["texts"] == 350 and run.items["p_text"].null_count() == 150


def test_explain_next_export_and_card_say_that_texts_count(counted, tmp_path, capsys):
    run, _ = counted
    saved = run.save(tmp_path / "run")
    for row in run.items.filter(pl.col("n_votes") > 0)[:5].iter_rows(named=True):
        [told] = explain_item(saved, row["item"])
        assert (told.p_text, told.p_votes) == (row["p_text"], row["p_votes"])
        assert main(["explain", str(tmp_path / "run"), row["item"]]) == 0
        printed = capsys.readouterr().out
        assert f"= {row['p_text']:.3f}; without it {row['p_votes']:.3f}" in printed
        assert f"share of the votes and its text: p(yes) = {row['p']:.3f}" in printed
    assert next_votes(saved, 3)["reason"].str.contains("the text says").all()
    export_run(saved, tmp_path / "items.csv", to="csv")
    exported = pl.read_csv(tmp_path / "items.csv")
    assert_allclose(exported.sort("item")["p_votes"], run.items.sort("item")["p_votes"])
    facts = run_training(saved, tmp_path / "model", TrainOptions(model="tfidf"))
    assert any("is flattered" in note for note in facts["notes"])
    assert "is flattered" in (tmp_path / "model" / "README.md").read_text()


def test_texts_count_under_the_papers_model_too():
    frame, care_i = votes_frame(600)
    run = me.audit(frame, draws=50, model="paper", use_text="tfidf")
    items, [row] = run.items.sort("item"), run.manifest["text_worth"]["questions"]
    n_i, t_i = items["n_votes"].to_numpy(), items["p_text"].to_numpy()
    assert_allclose(items["p_votes"], items["p_model"])
    pooled_i = ((n_i + 1) * items["p_votes"].to_numpy() + row["counted"] * t_i) / (n_i + 1 + row["counted"])
    assert_allclose(items["p"].to_numpy(), pooled_i, rtol=1e-9)
    assert ((items["p"] > 0.5) == care_i).mean() > ((items["p_votes"] > 0.5) == care_i).mean()


def letters(first, n):
    return [chr(first + k) for k in range(n)]


LANGUAGES = {
    "Chinese": (letters(0x4E00, 300), "", ("关怀", "河流"), ("关 怀", "河 流")),
    "Thai": (letters(0x0E01, 40), "", ("เมตตา", "แม่น้ำ"), ("เ ม", "แ ม")),
    "French": (
        ["allée", "été", "pièce", "maître", "garçon", "où", "noël", "crème"],
        " ",
        ("bonté", "forêt"),
        ("bonté", "forêt"),
    ),
    "Hindi": (["घर", "पानी", "दिन", "लोग", "काम", "किताब", "शहर", "समय"], " ", ("देखभाल", "नदी"), ("देखभाल", "नदी")),
}
"""Letters or words of a language, what stands between them, words that mark yes and no, and features they make."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_are_found_in_other_languages(language):
    words, blank, marks, features = LANGUAGES[language]
    rng = np.random.default_rng(3)
    yes_i = rng.random(600) < 0.4
    rows = rng.choice(words, size=(600, 14)).tolist()
    # Accents as marks of their own, as some keyboards and file systems write them.
    texts = [
        unicodedata.normalize("NFD", blank.join([*row[:7], marks[1 - yes], *row[7:]]))
        for row, yes in zip(rows, yes_i, strict=True)
    ]
    vote_iv = np.where(rng.random((600, 2)) < 0.8, yes_i[:, None], ~yes_i[:, None])
    counts_ik = np.column_stack([(~vote_iv).sum(axis=1), vote_iv.sum(axis=1)])
    reading = read_texts(texts)
    assert set(features) <= set(reading.words)
    t_ik, _ = cross_fit(reading, counts_ik)
    assert auc(t_ik[:, 1], yes_i) > 0.95
    assert measure_worth(counts_ik, t_ik, base_of(counts_ik), reading.group_i)["low"] > 0.5
