"""The folder of a comparison: whole or not at all, and a page that is safe to open."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from compare.folders import item, random_items, write_run

from moral_entropy.compare import write
from moral_entropy.compare.page import MOST_ROWS, comparison_page
from moral_entropy.compare.table import compare_runs
from moral_entropy.errors import RunFolderError
from moral_entropy.findings import Finding
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.run import read_run
from moral_entropy.verdict.headlines import headlines, with_interval

NASTY = "<script>alert('x')</script>&\"'"


class Page(HTMLParser):
    """Tags, attributes and text of a page; complains where a tag is closed that was not opened last."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.attributes, self.text = set(), [], {}, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= dict(attrs)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def comparison(tmp_path):
    rng, labels = np.random.default_rng(2), {NASTY: (f"a{NASTY}", f"z{NASTY}")}
    row = (NASTY, "(all)", "(all)", NASTY, "consensus", "fpr", 0.1, 0.0, 0.2, 5)
    runs = [
        write_run(
            tmp_path / f"{NASTY.replace('/', '')}{side}",
            [item(NASTY, f"{NASTY}{n}", (1 - p, p), labels[NASTY], domain=NASTY) for n, p in enumerate(rng.random(30))],
            labels,
            audit=[row],
            solver=NASTY * (side == "b"),
        )
        for side in "ab"
    ]
    return compare_runs(*runs)


def test_nothing_in_a_page_is_markup_of_the_data(comparison):
    page = Page(comparison_page(comparison))
    assert page.open == []
    assert not page.tags & {"script", "img", "link", "iframe", "a", "svg", "object", "form"}
    assert page.text.count(NASTY) > 100
    assert not {"src", "href", "onclick"} & set(page.attributes)


def test_a_long_table_is_cut_and_says_so(tmp_path):
    rng, labels = np.random.default_rng(2), {"q": ("no", "yes")}
    domains = [f"d{n}" for n in range(200)]
    runs = [write_run(tmp_path / side, random_items(rng, labels, 200, domains=domains), labels) for side in "ab"]
    page = comparison_page(compare_runs(*runs))
    assert f"the first {MOST_ROWS} of 1,005 rows" in page


def test_tables_are_read_back(comparison, tmp_path):
    out = write.write_comparison(comparison, tmp_path / "deep" / "out")
    for name, frame in comparison.tables().items():
        assert pl.read_parquet(out / f"{name}.parquet").equals(frame)
    facts = json.loads((out / "compare.json").read_text())
    assert facts["settings"] == [{"name": "solver", "a": "", "b": NASTY}]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


def test_json_holds_every_table(comparison):
    facts = write.as_record(comparison, top=3)
    assert len(facts["items"]) == 3
    assert len(facts["shifts"]) == comparison.shifts.height
    assert facts["grades"][0]["rule"] == NASTY


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_nothing_is_replaced(comparison, tmp_path, kind):
    out = tmp_path / "out"
    if kind == "folder":
        out.mkdir()
        (out / "manifest.json").write_text("{}")
    else:
        out.write_text("mine")
    with pytest.raises(RunFolderError, match=r"holds 1 file\. First: manifest.json|is a file"):
        write.write_comparison(comparison, out)
    assert out.is_file() or sorted(path.name for path in out.iterdir()) == ["manifest.json"]


def test_a_failure_leaves_nothing(comparison, tmp_path, monkeypatch):
    def fail(_comparison):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, "comparison_page", fail)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError, match="No space"):
        write.write_comparison(comparison, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_the_page_says_of_each_run_what_its_own_report_says(plain_run, with_findings):
    doubt = Finding(
        "votes", "votes_per_item", 1.8, "care", level="bad", text="1.80 votes <i>.", meaning="M.", cure="Ask."
    )
    runs = [read_run(plain_run), with_findings([doubt])]
    page = Page(comparison_page(compare_runs(*runs, replicates=5)))
    for name, run in zip("ab", runs, strict=True):
        assert f"{name}: {run.verdict.title}" in page.text and run.verdict.text in page.text
        for one in headlines(run, run.verdict):
            assert f"{one.name}{with_interval(one)}" in page.text
        for one in cautions(run):
            assert f"{one.severity}: {one.text}. What to do: {one.cure}" in page.text
    assert "1.80 votes <i>. What to do: Ask." in page.text
