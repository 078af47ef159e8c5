"""The Moral Foundations Twitter Corpus: its JSON, as published and as it should not be."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace

import polars as pl
import pytest
from corpora.layouts import FOUNDATIONS, Planned, expected_votes, item_of, mftc_json, plan

from moral_entropy import read_votes
from moral_entropy.corpora.corpus import read_corpus
from moral_entropy.errors import VotesError

CARE, NOTHING = frozenset({"care"}), frozenset()


def one_tweet(*cells, **tweet):
    votes = [{"annotator": f"annotator{at:02}", "annotation": cell} for at, cell in enumerate(cells)]
    return json.dumps([{"Corpus": "ALM", "Tweets": [{"tweet_id": "1", "annotations": votes, **tweet}]}])


def flagged(corpus):
    return set(corpus.votes.filter(label=1).select("annotator", "question").rows())


def test_votes_are_exactly_those_planned(write):
    planned = plan("mftc")
    corpus = read_corpus("mftc", write(mftc_json(planned), "MFTC_V4_text.json"))
    assert corpus.votes.rows() == expected_votes("mftc", planned)
    assert corpus.rows == len(planned) and corpus.dropped == {} and corpus.notes == ()
    assert corpus.votes.schema == pl.Schema(
        {
            "item": pl.String,
            "annotator": pl.String,
            "question": pl.String,
            "label": pl.Int8,
            "domain": pl.String,
            "text": pl.String,
        }
    )


def test_the_package_reads_them_without_a_hint(write):
    planned = plan("mftc")
    votes = read_votes(read_corpus("mftc", write(mftc_json(planned), "m.json")).votes)
    assert votes.questions == FOUNDATIONS
    assert votes.n_votes == 5 * len(planned)
    care = votes.ballot("care")
    assert int(care.counts_ik[:, care.positive].sum()) == sum("care" in one.means for one in planned)


@pytest.mark.parametrize("how", ["bom", "windows", "gzip", "shuffled", "in parts"])
def test_how_the_file_was_saved_changes_nothing(write, how):
    planned = plan("mftc")
    text = mftc_json(planned)
    if how == "in parts":
        paths = [write(mftc_json(part), f"{at}.json") for at, part in enumerate((planned[:60], planned[60:]))]
    elif how == "shuffled":
        paths = write(mftc_json(random.Random(1).sample(planned, len(planned))), "m.json")
    else:
        change = {
            "bom": lambda: b"\xef\xbb\xbf" + text.encode(),
            "windows": lambda: text.replace("\n", "\r\n").encode(),
            "gzip": lambda: gzip.compress(text.encode()),
        }
        paths = write(change[how](), "m.json")
    assert read_corpus("mftc", paths).votes.rows() == expected_votes("mftc", planned)


def test_line_ends_within_texts_make_no_other_item(write):
    planned = [replace(one, text=one.text.replace("\n", "\r\n")) for one in plan("mftc")]
    assert any("\r\n" in one.text for one in planned)
    assert read_corpus("mftc", write(mftc_json(planned), "m.json")).votes.rows() == expected_votes("mftc", plan("mftc"))


def test_ids_stay_the_same_for_ever(write):
    path = write(one_tweet("care", tweet_text="Be kind."), "m.json")
    assert read_corpus("mftc", path).votes["item"].unique().to_list() == ["mftc-9cc11283e899a1a2"]


def test_without_texts_items_are_tweets(write):
    planned = [replace(one, text=None) for one in plan("mftc")]
    corpus = read_corpus("mftc", write(mftc_json(planned, texts=False), "MFTC_V4.json"))
    assert corpus.votes.rows() == expected_votes("mftc", planned)
    assert corpus.votes["item"][0].startswith("mftc-tweet-9") and corpus.votes["text"].null_count() == len(corpus.votes)
    assert read_votes(corpus.votes).n_items == 40


@pytest.mark.parametrize("text", ["no tweet text available", " No Tweet Text Available\n", "", "  ", None])
def test_a_text_that_is_none_is_null(write, text):
    [item] = set(read_corpus("mftc", write(one_tweet("care", tweet_text=text), "m.json")).votes["item"])
    assert item == "mftc-tweet-1"


def test_tweets_without_text_stay_apart(write):
    planned = [Planned(None, str(at), "ALM", "a", "harm", CARE) for at in range(3)]
    planned += [Planned("Same words", str(at), "ALM", f"b{at}", "nm", NOTHING) for at in range(3, 5)]
    corpus = read_corpus("mftc", write(mftc_json(planned), "m.json"))
    assert corpus.votes["item"].n_unique() == 4
    assert corpus.votes.rows() == expected_votes("mftc", planned)


def test_cells_of_every_kind(write):
    cells = ["CARE", " harm , Cheating", "purity,degradation", "nm", "NH", "Non-Moral,betrayal", "loyalty,,"]
    corpus = read_corpus("mftc", write(one_tweet(*cells, tweet_text="t"), "m.json"))
    assert flagged(corpus) == {
        ("annotator00", "care"),
        ("annotator01", "care"),
        ("annotator01", "fairness"),
        ("annotator02", "sanctity"),
        ("annotator05", "loyalty"),
        ("annotator06", "loyalty"),
    }
    assert corpus.votes.height == 5 * len(cells)
    assert corpus.notes == ("1 annotations name a foundation and none at once; the foundation counts.",)


def test_empty_cells_are_left_out_and_counted(write):
    corpus = read_corpus("mftc", write(one_tweet("care", "", None, " , ,", "nm", tweet_text="t"), "m.json"))
    assert corpus.votes["annotator"].unique().sort().to_list() == ["annotator00", "annotator04"]
    assert corpus.rows == 5 and corpus.dropped == {"no label": 2, "no known label": 1}


def test_a_tweet_with_neither_text_nor_id_is_left_out(write):
    tweets = [
        {"annotations": [{"annotator": "a", "annotation": "care"}]},
        {"tweet_id": 7, "annotations": [{"annotator": "a", "annotation": "care"}, {"annotation": "nm"}]},
    ]
    corpus = read_corpus("mftc", write(json.dumps([{"Corpus": "ALM", "Tweets": tweets}]), "m.json"))
    assert corpus.dropped == {"no text": 1, "no annotator": 1}
    assert set(corpus.votes["item"]) == {"mftc-tweet-7"}


def test_half_an_emoji_is_readable(write):
    corpus = read_corpus("mftc", write(one_tweet("care", tweet_text="cut short \ud83d"), "m.json"))
    assert corpus.votes["text"][0].startswith("cut short") and corpus.votes.height == 5


def in_two_subcorpora():
    return [
        Planned("Shared", "1", "Sandy", "a", "care", CARE),
        Planned("Shared", "2", "BLM", "b", "nm", NOTHING),
        Planned("Lonely", "3", "Sandy", "once only", "harm", CARE),
    ]


def test_a_text_in_two_subcorpora_is_of_the_first_by_name(write):
    corpus = read_corpus("mftc", write(mftc_json(in_two_subcorpora()), "m.json"))
    shared, lonely = item_of("mftc", "Shared"), item_of("mftc", "Lonely")
    assert set(corpus.votes.select("item", "annotator", "domain").rows()) == {
        (shared, "a", "BLM"),
        (shared, "b", "BLM"),
        (lonely, "once only", "Sandy"),
    }
    assert len(corpus.notes) == 1 and corpus.notes[0].startswith("1 texts occur in several domains")


def test_by_domain_keeps_them_apart(write):
    corpus = read_corpus("mftc", write(mftc_json(in_two_subcorpora()), "m.json"), by_domain=True)
    shared = item_of("mftc", "Shared")
    assert set(corpus.votes.select("item", "annotator", "domain").rows()) == {
        (f"{shared}@Sandy", "a", "Sandy"),
        (f"{shared}@BLM", "b", "BLM"),
        (f"{item_of('mftc', 'Lonely')}@Sandy", "once only", "Sandy"),
    }
    assert corpus.notes == ()


GOOD = mftc_json(plan("mftc", n_items=3))
WRONG = {
    "cut off": (GOOD[: len(GOOD) // 2], "is no JSON"),
    "empty": ("", "is no JSON"),
    "a table": ("text,annotator\nx,y\n", "is no JSON"),
    "a record": ('{"Corpus": "ALM"}', "not a list of subcorpora"),
    "an empty list": ("[]", "an empty list"),
    "a list of numbers": ("[1, 2]", "subcorpus 1 of wrong.json has no Corpus"),
    "no tweets": ('[{"Corpus": "ALM"}]', "no Tweets. Found: Corpus"),
    "tweets that are no list": ('[{"Corpus": "ALM", "Tweets": {"a": 1}}]', "a record as its Tweets"),
    "no annotations": ('[{"Corpus": "ALM", "Tweets": [{"tweet_id": 1}]}]', "tweet 1 of ALM in wrong.json has no ann"),
    "annotations that are texts": (
        '[{"Corpus": "ALM", "Tweets": [{"tweet_id": 1, "annotations": ["care"]}]}]',
        "is a text, not {annotator, annotation}",
    ),
    "no annotation at all": ('[{"Corpus": "ALM", "Tweets": []}]', "no annotation is left of mftc"),
    "too deep": ("[" * 100_000, "nests"),
    "not UTF-8": (b'[{"Corpus": "caf\xe9", "Tweets": []}]', "not UTF-8"),
    "half a gzip": (gzip.compress(GOOD.encode())[:200], "damaged gzip"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_gives_one_clear_error(write, what):
    content, words = WRONG[what]
    with pytest.raises(VotesError) as caught:
        read_corpus("mftc", write(content, "wrong.json"))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_a_folder(tmp_path):
    with pytest.raises(VotesError, match="there is no file"):
        read_corpus("mftc", tmp_path / "nowhere.json")
    with pytest.raises(VotesError, match="cannot be read"):
        read_corpus("mftc", tmp_path)
