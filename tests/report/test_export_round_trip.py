"""Exports are audited again and give the same votes, whatever the labels, questions, repeats, texts and names are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import moral_entropy as me
from moral_entropy.report.export import Layout, export_run, reading_flags
from moral_entropy.votes.read import detect_format

LAYOUTS = [layout for layout in Layout.__args__ if layout not in ("wide", "xlsx", "parquet", "release")]
FORMATS = {
    "hf": "hf-datasets", "csv": "lewidi", "jsonl": "lewidi", "lewidi": "lewidi",
    "label-studio": "label-studio", "argilla": "argilla", "prodigy": "prodigy",
}  # fmt: skip
OUT = {
    "hf": "out",
    "release": "out",
    "lewidi": "out",
    "prodigy": "out.jsonl",
    "label-studio": "out.json",
    "argilla": "out.json",
}

NAMES = st.text("ab1 é=+-@'\"\\;|\U0001f9d1\u202e<", min_size=1, max_size=5).map(str.strip).filter(bool)
"""Names of items, annotators, labels and questions: letters, formulas, quotes, emoji, right-to-left marks."""


@st.composite
def runs(draw):
    """Votes as rows, with the options to read them."""
    questions = [f"q{name}" for name in draw(st.lists(NAMES, min_size=1, max_size=2, unique_by=str.casefold))]
    items = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    annotators = draw(st.lists(NAMES, min_size=2, max_size=3, unique=True))
    repeats, anonymous = draw(st.sampled_from([(False, False), (True, False), (True, True)]))
    rows = []
    for question in questions:
        labels = draw(st.lists(NAMES, min_size=2, max_size=7, unique_by=str.casefold))
        pairs = [(i, a) for i in items for a in annotators] * (1 + repeats)
        cast = draw(st.lists(st.sampled_from(labels), min_size=len(pairs), max_size=len(pairs)))
        cast[:2] = labels[:2]
        rows += [(question, *pair, label) for pair, label in zip(pairs, cast, strict=True)]
    texts = {
        item: draw(st.sampled_from([None, "plain", "=1+1", 'two\nlines, "quoted"', "'=a", "é 🧑"])) for item in items
    }
    frame = pl.DataFrame(rows, schema=["question", "item", "annotator", "label"], orient="row")
    options = {"missing": (), "keep_case": True, "anonymous": anonymous, "on_repeat": "count" if repeats else "error"}
    if anonymous:
        frame, options["on_repeat"] = frame.drop("annotator"), "error"
    return frame.with_columns(text=pl.col("item").replace_strict(texts, return_dtype=pl.String)), options


def votes_of(votes):
    """Count every vote of every question, and give every text, by names."""
    cast = Counter()
    for ballot in votes.ballots:
        for at, i in enumerate(ballot.item_i):
            for code in ballot.code_v[ballot.start_i[at] : ballot.start_i[at + 1]].tolist():
                annotator, label = divmod(code, ballot.n_labels)
                who = votes.annotators[int(ballot.annotator_a[annotator])]
                cast[ballot.name, str(votes.items[int(i)]), str(who), ballot.labels[label]] += 1
    texts = [None] * len(votes.items) if votes.texts is None else votes.texts.to_list()
    return cast, {str(item): text for item, text in zip(votes.items, texts, strict=True) if text}


def keywords(flags):
    found = {"keep_case": "--keep-case" in flags, "anonymous": "--anonymous" in flags}
    if "--missing" in flags:
        found["missing"] = ()
    if "--on-repeat" in flags:
        found["on_repeat"] = "count"
    return found


@settings(max_examples=5, deadline=None)
@given(made=runs())
def test_an_audit_of_an_export_has_the_same_votes(made):
    frame, options = made
    run = me.audit(frame, draws=0, **options)
    before, flags = votes_of(run.consensus.votes), keywords(reading_flags(run))
    for to in LAYOUTS:
        with TemporaryDirectory() as folder:
            written = export_run(run, Path(folder) / OUT.get(to, f"out.{to}"), to=to, names=True)
            paths = [Path(folder) / "out"] if to == "hf" else written
            assert {detect_format(path) for path in paths} == {FORMATS[to]}
            read = [votes_of(me.read_votes(path, **flags)) for path in paths]
        assert sum((cast for cast, _ in read), Counter()) == before[0], to
        for _, texts in read:
            assert texts == before[1], to
