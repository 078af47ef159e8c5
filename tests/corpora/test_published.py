"""MFTC, MFRC and eMFD as their authors publish them: read without a hint, and as they should not be."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace

import polars as pl
import pytest
from corpora.layouts import (
    FOUNDATIONS,
    WORDS,
    Planned,
    csv_text,
    emfd_csv,
    expected_votes,
    item_of,
    mfrc_csv,
    mftc_json,
    plan,
    spelt,
)
from hypothesis import given
from hypothesis import strategies as st

import moral_entropy as me
from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.moral_corpora import MEANINGS, read_cell
from moral_entropy.votes.read import FORMATS, detect_format
from moral_entropy.votes.source import ReadingLog

CARE, LOYALTY, NOTHING = frozenset({"care"}), frozenset({"loyalty"}), frozenset()
LAYOUTS = {"mftc": ("MFTC_V4_text.json", mftc_json), "mfrc": ("final_mfrc_data.csv", mfrc_csv)}
HEADER = ("text", "subreddit", "bucket", "annotator", "annotation", "confidence")


def read(path):
    """Return the votes of a file in the format that is found, sorted, and the log."""
    log = ReadingLog()
    return FORMATS[detect_format(path)].read(path, log).rows(), log


def flagged(path):
    return sorted((annotator, question) for _, annotator, question, label, *_ in read(path)[0] if label == "1")


WAYS = ("plain", "bom", "windows", "gzip", "shuffled", "parquet", "other columns first")
SAVED = [(name, how) for name in LAYOUTS for how in (WAYS[:5] if name == "mftc" else WAYS)]
"""How each file may have been saved; MFTC is JSON, which has no columns."""


@pytest.mark.parametrize(("name", "how"), SAVED)
def test_votes_are_exactly_those_planned_however_the_file_was_saved(write, name, how):
    file, lay_out = LAYOUTS[name]
    planned = plan(name)
    text = lay_out(random.Random(1).sample(planned, len(planned)) if how == "shuffled" else planned)
    rows = [(p.text, "europe", p.domain, p.annotator, p.cell, "Confident") for p in planned]
    if how == "parquet":
        path = write("", "mfrc.parquet")
        pl.DataFrame([dict(zip(HEADER, row, strict=True)) for row in rows]).write_parquet(path)
    elif how == "other columns first":
        names = ("id", *(name.upper() for name in HEADER[::-1]))
        path = write(csv_text(names, [("x", *row[::-1]) for row in rows]), file)
    elif how == "windows":
        path = write(text.replace("\n", "\r\n"), file)
    else:
        change = {"bom": lambda raw: b"\xef\xbb\xbf" + raw, "gzip": gzip.compress}.get(how, bytes)
        path = write(change(text.encode()), f"{file}.gz" if how == "gzip" else file)
    votes, log = read(path)
    assert votes == expected_votes(name, planned)
    assert log.dropped == {} and "foundation" not in " ".join(log.notes)


@pytest.mark.parametrize("name", [*LAYOUTS, "emfd"])
def test_audit_finds_the_format_and_asks_five_questions(write, name, run_of):
    planned = plan("mfrc" if name == "mfrc" else "mftc")
    marks = [(f"passage {n}", FOUNDATIONS[(n + n % 3) % 5], 9 + n % 4, n) for n in range(60)]
    file, text = (
        ("highlights_raw.csv", emfd_csv(marks)) if name == "emfd" else (LAYOUTS[name][0], LAYOUTS[name][1](planned))
    )
    run = run_of(write(text, file))
    assert [question.name for question in run.questions] == list(FOUNDATIONS)
    assert run.manifest["notes"][0] == f"format: {name} (detected)." and len(run.manifest["input"]["sha256"]) == 64
    cast = run.table("votes").filter(question="care", label="1").height
    care = sum(mark[1] == "care" for mark in marks) if name == "emfd" else sum("care" in one.means for one in planned)
    assert cast == care
    assert ("counts as a no on the other four" in " ".join(run.manifest["notes"])) == (name == "emfd")


@pytest.fixture
def run_of():
    return lambda path: me.audit(path, draws=0)


def test_ids_stay_the_same_for_ever(write):
    tweet = {"tweet_id": 1, "tweet_text": "Be kind.", "annotations": [{"annotator": "a", "annotation": "care"}]}
    votes, _ = read(write(json.dumps([{"Corpus": "ALM", "Tweets": [tweet]}]), "m.json"))
    assert {row[0] for row in votes} == {"mftc-9cc11283e899a1a2@ALM"}


def test_without_texts_items_are_tweets(write):
    planned = [replace(one, text=None) for one in plan("mftc")]
    votes, _ = read(write(mftc_json(planned, texts=False), "MFTC_V4.json"))
    assert votes == expected_votes("mftc", planned) and votes[0][0].startswith("mftc-tweet-9")


def one_tweet(*cells, **tweet):
    votes = [{"annotator": f"annotator{at:02}", "annotation": cell} for at, cell in enumerate(cells)]
    return json.dumps([{"Corpus": "ALM", "Tweets": [{"tweet_id": "1", "annotations": votes, **tweet}]}])


@pytest.mark.parametrize("text", ["no tweet text available", " No Tweet Text Available\n", "", "  ", None])
def test_a_text_that_is_none_is_null(write, text):
    votes, _ = read(write(one_tweet("care", tweet_text=text), "m.json"))
    assert {(row[0], row[-1]) for row in votes} == {("mftc-tweet-1@ALM", None)}


def test_half_an_emoji_is_readable(write):
    votes, _ = read(write(one_tweet("care", tweet_text="cut short \ud83d"), "m.json"))
    assert votes[0][-1].startswith("cut short") and len(votes) == 5


def test_cells_of_every_kind(write):
    cells = [
        "CARE",
        " harm , Cheating",
        "purity,degradation",
        "nm",
        "NH",
        "Non-Moral,betrayal",
        "loyalty,,",
        "",
        None,
        ",",
    ]
    path = write(one_tweet(*cells, tweet_text="t"), "m.json")
    assert flagged(path) == [
        ("annotator00", "care"),
        ("annotator01", "care"),
        ("annotator01", "fairness"),
        ("annotator02", "sanctity"),
        ("annotator05", "loyalty"),
        ("annotator06", "loyalty"),
    ]
    votes, log = read(path)
    assert len(votes) == 5 * 7 and log.dropped == {"no label": 2, "no known label": 1}
    assert log.notes == ["1 annotations name a foundation and none at once; the foundation counts."]


def test_a_text_in_two_domains_is_two_items(write):
    planned = [
        Planned("Shared", "1", "Sandy", "a", "care", CARE),
        Planned("Shared", "2", "BLM", "b", "nm", NOTHING),
        Planned("Same words", "3", "ALM", "a", "harm", CARE),
        Planned("Same words", "4", "ALM", "b", "harm", CARE),
    ]
    votes, _ = read(write(mftc_json(planned), "m.json"))
    shared, same = item_of("mftc", "Shared"), item_of("mftc", "Same words")
    assert {row[0] for row in votes} == {f"{shared}@Sandy", f"{shared}@BLM", f"{same}@ALM"}


def test_the_first_of_repeats_counts(write):
    cells = [("a", "Care"), ("b", "Care"), ("a", "Care"), ("a", "Loyalty")]
    path = write(csv_text(HEADER, [("Twice", "r", "US Politics", who, cell, "") for who, cell in cells]), "m.csv")
    assert flagged(path) == [("a", "care"), ("b", "care")]
    assert read(path)[1].dropped == {"repeats, the first kept": 2}


def test_buckets_are_spelt_as_in_the_paper(write):
    planned = [replace(one, domain=one.domain.replace("Politics", " politics")) for one in plan("mfrc")]
    votes, _ = read(write(mfrc_csv(planned), "m.csv"))
    assert {row[4] for row in votes} == {"Everyday Morality", "US Politics", "French Politics"}


def test_rows_without_text_annotator_or_label_are_left_out(write):
    rows = [
        ("", "r", "US Politics", "a", "Care", ""),
        ("t", "r", "US Politics", "", "Care", ""),
        ("t", "r", "US Politics", "a", "", ""),
        ("t", "r", "", "b", "Care", ""),
    ]
    votes, log = read(write(csv_text(HEADER, rows), "m.csv"))
    assert log.dropped == {"no text": 1, "no annotator": 1, "no label": 1}
    assert {(row[0], row[4]) for row in votes} == {(item_of("mfrc", "t"), None)}


def test_unknown_labels_are_counted_and_shown(write):
    planned = plan("mfrc", n_items=4)
    planned += [
        Planned("Odd", None, "US Politics", "zoe", "Care, Liberty", CARE),
        Planned("Odd", None, "US Politics", "yan", "Honour", NOTHING),
    ]
    with pytest.raises(VotesError, match=rf"2 of {len(planned)} annotations .* First: 'Liberty', by zoe on 'Odd'"):
        me.read_votes(write(mfrc_csv(planned), "m.csv"))


@pytest.mark.parametrize("how", ["plain", "windows", "fractions", "spelling", "parquet"])
def test_a_highlight_is_a_yes_and_four_noes(write, how):
    draw = random.Random(4)
    listed = [
        (f"passage {n}, with a comma" + "\nand a line" * (n % 2), draw.choice(FOUNDATIONS), coder, 1 + n % 6)
        for n in range(36)
        for coder in draw.sample(range(100, 112), draw.choice([1, 1, 2, 3]))
    ]
    if how == "parquet":
        path = write("", "h.parquet")
        names = ["content", "assigned_domain", "coder_id", "document_id"]
        pl.DataFrame(listed, schema=names, orient="row").write_parquet(path)
    else:
        change = {
            "fractions": lambda text, f, coder, document: (text, f, float(coder), float(document)),
            "spelling": lambda text, f, *ids: (text, f" {f.title()} ".replace("Sanctity", "Purity"), *ids),
        }.get(how, lambda *row: row)
        text = emfd_csv([change(*row) for row in listed], newline="\r\n" if how == "windows" else "\n")
        path = write(text, "highlights_raw.csv")
    expected = [
        (item_of("emfd", text), str(coder), q, str(int(q == foundation)), None, text)
        for text, foundation, coder, _ in listed
        for q in FOUNDATIONS
    ]
    assert read(path)[0] == sorted(expected)


GOOD = mftc_json(plan("mftc", n_items=3))
WRONG = {
    "cut off": ("mftc", GOOD[: len(GOOD) // 2], "wrong.json"),
    "empty": ("mftc", "", "wrong.json"),
    "a record": ("mftc", '{"Corpus": "ALM"}', "is not laid out as published after 0 annotations. MFTC is a list of"),
    "a list of numbers": ("mftc", "[1, 2]", "wrong.json is not laid out as published"),
    "no tweets": ("mftc", '[{"Corpus": "ALM"}]', "wrong.json is not laid out as published"),
    "tweets that are no list": ("mftc", '[{"Corpus": "ALM", "Tweets": {"a": 1}}]', "wrong.json is not laid out as pub"),
    "no annotations": ("mftc", '[{"Corpus": "ALM", "Tweets": [{"tweet_id": 1}]}]', "wrong.json is not laid out as pub"),
    "annotations that are texts": (
        "mftc",
        '[{"Corpus": "ALM", "Tweets": [{"tweet_id": 1, "annotations": [{}, "care"]}]}]',
        "wrong.json is not laid out as published after 1 annotations",
    ),
    "no annotation at all": ("mftc", '[{"Corpus": "ALM", "Tweets": []}]', "no annotation is left of mftc"),
    "too deep": ("mftc", "[" * 100_000, "wrong.json"),
    "not UTF-8": ("mftc", b'[{"Corpus": "caf\xe9", "Tweets": []}]', "wrong.json"),
    "half a gzip": ("mftc", gzip.compress(GOOD.encode())[:200], "wrong.json"),
    "no annotation column": (
        "mfrc",
        "text,bucket,annotator\nx,y,z\n",
        "has no column 'annotation'. Found: text, bucket",
    ),
    "no label left": ("mfrc", csv_text(HEADER, [("t", "r", "b", "a", "", "")]), "is left of mfrc: no label 1"),
    "no foundation column": ("emfd", "content,coder_id\nx,1\n", "has no column 'assigned_domain'"),
    "no such foundation": ("emfd", emfd_csv([("p", "liberty", 1, 1)]), "1 of 1 annotations name a label that emfd"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_gives_one_clear_error(write, what):
    name, content, words = WRONG[what]
    with pytest.raises(VotesError) as caught:
        me.read_votes(write(content, "wrong.json" if name == "mftc" else "wrong.csv"), format=name)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@given(
    name=st.sampled_from(["mftc", "mfrc"]),
    means=st.frozensets(st.sampled_from(FOUNDATIONS)),
    seed=st.integers(0, 10**6),
)
def test_spelling_does_not_change_the_meaning(name, means, seed):
    meanings = MEANINGS[name]
    assert read_cell(spelt(random.Random(seed), name, means), meanings) == (means, not means, ())


@given(labels=st.lists(st.text(st.characters(exclude_characters=",", exclude_categories=["Cs"])), max_size=5))
def test_no_text_is_lost(labels):
    _, _, unknown = read_cell(",".join(labels), MEANINGS["mftc"])
    meant = [" ".join(label.split()) for label in labels]
    assert list(unknown) == [label for label in meant if label and label.casefold() not in MEANINGS["mftc"]]


def test_the_labels_mean_what_the_authors_say():
    for name in ("mftc", "mfrc"):
        words = WORDS[name].items()
        assert {word.lower(): f or "none" for f, listed in words for word in listed} == MEANINGS[name]


def test_another_table_is_none_of_them(write):
    path = write("text,bucket,annotator,annotation\nx,y,z,care\n", "mine.csv")
    assert detect_format(path) is None


def test_the_tables_of_the_author_give_the_same_votes(write, tmp_path):
    """As prepared for the hub (`morality-MFTC` and the others): the published columns, some renamed, and a text_id."""
    for name, layout in (("mftc", mftc_json), ("mfrc", mfrc_csv)):
        planned = plan(name)
        published, _ = read(write(layout(planned), "a.json" if name == "mftc" else "a.csv"))
        rows = {
            "text_id": [int(one.tweet_id) - 9_000 for one in planned],
            "text": [one.text for one in planned],
            "annotator": [one.annotator for one in planned],
            "annotation": [one.cell for one in planned],
            "label": [",".join(sorted(one.means)) or "none" for one in planned],
        }
        domain = {"Corpus": [one.domain for one in planned], "tweet_id": [one.tweet_id for one in planned]}
        if name == "mfrc":
            domain = {"bucket": domain["Corpus"], "subreddit": ["europe"] * len(planned)}
        pl.DataFrame(rows | domain).write_parquet(tmp_path / f"morality-{name}.parquet")
        assert read(tmp_path / f"morality-{name}.parquet")[0] == published
    marks = [("A mark", "purity", "7", "3"), ("A mark", "care", "8", "3"), ("Other", "loyalty", "7", "4")]
    published, _ = read(write(emfd_csv(marks), "e.csv"))
    text, label, annotator, document = zip(*marks, strict=True)
    label = [name.replace("purity", "sanctity") for name in label]
    columns = {"text": text, "label": label, "annotator": annotator, "document_id": document, "focus_duration": 2.5}
    pl.DataFrame(columns).with_row_index("text_id").write_parquet(tmp_path / "morality-eMFD.parquet")
    assert read(tmp_path / "morality-eMFD.parquet")[0] == published
