"""Words that mark items: a planted word is found, formulas are those of the paper, counts those of a loop."""

from __future__ import annotations

import math
import random
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest

from moral_entropy.items import words as module
from moral_entropy.items.words import count_words, log_odds, marking_words, n_high

FILLER = ["the", "a", "of", "and", "river", "table", "green", "seven", "walk", "light", "house", "never", "under"]


def texts(n, planted=(), seed=0):
    draw = random.Random(seed)
    made = [" ".join(draw.choices(FILLER, k=8)) for _ in range(n)]
    return [f"{text} Hateful!" if i in planted else text for i, text in enumerate(made)]


def test_a_planted_word_is_found_first_and_alone():
    all_texts = texts(1_000, planted={*range(0, 60, 2), 700, 800})
    counted = count_words(pl.Series(all_texts)).select("word", "n")
    words, z, reasons = marking_words(counted, pl.Series(all_texts[:60]), 1_000)
    assert words[0] == "hateful"
    assert z[0] > 5 > max(z[1:], default=0.0)
    assert reasons[0].startswith("in 30 of the 60 items of highest entropy and 2 of the 940 others; log-odds +")


def test_without_a_planted_word_hardly_any_is_listed():
    listed = 0
    for seed in range(20):
        all_texts = texts(600, seed=seed)
        counted = count_words(pl.Series(all_texts)).select("word", "n")
        listed += len(marking_words(counted, pl.Series(all_texts[:100]), 600)[0])
    # 13 words, one side of 1.96: about 1 in 40 by chance.
    assert listed <= 0.06 * 20 * len(FILLER)


def test_the_log_odds_are_those_of_the_paper_word_by_word():
    rng = np.random.default_rng(5)
    high_w, rest_w = rng.integers(0, 30, size=12), rng.integers(1, 200, size=12)
    ratio_w, z_w = log_odds(high_w, rest_w, prior_words=50.0)
    n_high_words, n_rest_words, both = high_w.sum(), rest_w.sum(), (high_w + rest_w).sum()
    for w in range(12):
        alpha = 50.0 * (high_w[w] + rest_w[w]) / both
        one, other = high_w[w] + alpha, rest_w[w] + alpha
        delta = math.log(one / (n_high_words + 50 - one)) - math.log(other / (n_rest_words + 50 - other))
        assert ratio_w[w] == pytest.approx(delta, rel=1e-10)
        assert z_w[w] == pytest.approx(delta / math.sqrt(1 / one + 1 / other), rel=1e-10)


def test_words_are_counted_once_an_item_and_by_group(monkeypatch):
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 3)
    given = ["&gt; Stop STOP stop #BLM @you", "don’t stop; naïve 42 x9", None, "", "ÉCOLE école", "the-end it's"] * 3
    group_i = np.arange(len(given)) % 2
    expected = Counter()
    for text, group in zip(given, group_i.tolist(), strict=True):
        plain = (text or "").replace("&gt;", "").lower()
        expected.update((group, word) for word in set(re.findall(r"[#@]?[^\W\d_][\w'’-]*", plain)))
    found = count_words(pl.Series(given), group_i)
    assert {(group, word): n for group, word, n in found.rows()} == dict(expected)
    assert found.rows() == sorted(found.rows())


def test_one_long_text_cannot_make_a_word_stand_out():
    all_texts = ["spam " * 20_000, *texts(399)]
    counted = count_words(pl.Series(all_texts))
    assert counted.filter(word="spam")["n"].item() == 1
    assert marking_words(counted.select("word", "n"), pl.Series(all_texts[:100]), 400)[0] == []


def test_texts_that_try_things_are_only_words():
    hostile = ["<script>alert(1)</script> {{ x }} =HYPERLINK(", "\u202eevil\x1b[31m", "🙂🙂", "' OR 1=1 --"]
    found = count_words(pl.Series(hostile))["word"].to_list()
    assert {"script", "alert", "hyperlink", "evil", "or"} <= set(found) and all(word.isprintable() for word in found)


def test_items_that_tie_with_the_last_are_looked_at_too():
    tied = np.array([0.6] * 120 + [0.1] * 880)
    assert module._highest(tied).tolist() == list(range(120))
    many = np.array([0.6] * 300 + [0.1] * 700)
    assert module._highest(many).tolist() == list(range(100))
    assert module._highest(np.array([np.nan, 0.2, 0.3, np.nan, 0.1])).tolist() == [2]
    assert module._highest(np.full(9, np.nan)).tolist() == []


def test_there_is_always_a_rest():
    assert [n_high(n) for n in (0, 3, 4, 399, 400, 10_000)] == [0, 0, 1, 99, 100, 100]
    nothing = pl.Series([], dtype=pl.String)
    assert marking_words(count_words(nothing).select("word", "n"), nothing, 0)[0] == []
