"""The page: one file, loads nothing, runs only what we wrote, the same for the same run."""

from __future__ import annotations

import base64
import hashlib
import re

import polars as pl
import pytest
from report_support import HOSTILE, make_run, page_of, rows_of, vote_frame

from moral_entropy.cli.main import main
from moral_entropy.report.html import vega_bundle, write_report
from moral_entropy.runs.folder import read_table
from moral_entropy.runs.run import read_run


def test_the_page_holds_the_runs_figures(plain_run):
    data = page_of(plain_run).data()
    rates = read_table(plain_run, "audit").filter(rule="any", metric="fpr", reference="consensus", question="care")
    rows = pl.DataFrame(rows_of(data["audit"]), infer_schema_length=None)
    rows = rows.filter(rule="any", metric="fpr", reference="consensus", target="care")
    shown = dict(rows.select("domain", "value").iter_rows())
    for domain, value in rates.filter(pl.col("domain") != "(none)").select("domain", "value").iter_rows():
        assert shown[domain] == pytest.approx(value, rel=1e-5)
    assert data["items_total"] == 240 and len(rows_of(data["items"])) == 240


@pytest.mark.parametrize("kind", ["plain", "hostile", "many"])
def test_nothing_is_loaded_and_only_our_scripts_run(kind, request):
    page = page_of(request.getfixturevalue(f"{kind}_run"))
    assert [attributes.get("type") for attributes, _ in page.scripts] == ["application/json", "module", "module"]
    assert not [
        tag for tag, attributes in page.elements if "src" in attributes or tag in ("link", "iframe", "img", "object")
    ]
    assert all(attributes.get("href", "#").startswith("#") for _, attributes in page.elements)
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    [policy] = [attributes["content"] for tag, attributes in page.elements
                if attributes.get("http-equiv") == "Content-Security-Policy"]  # fmt: skip
    digests = [
        base64.b64encode(hashlib.sha256("".join(texts).encode()).digest()).decode() for _, texts in page.scripts[1:]
    ]
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy


def test_hostile_texts_are_data_and_nothing_else(hostile_run):
    html = (hostile_run / "report.html").read_text(encoding="utf-8")
    for text in HOSTILE[:2]:
        assert text not in html
    data = page_of(hostile_run).data()
    shown = {row["text"] for row in rows_of(data["texts"])}
    assert shown == {text[:2_000] for text in HOSTILE}


def test_the_same_run_gives_the_same_bytes(plain_run, tmp_path):
    one, two = (write_report(plain_run, tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert one == two == (plain_run / "report.html").read_bytes()


def test_without_draws_or_domains_or_gold_there_is_a_report(tmp_path):
    frame = vote_frame(n_items=30, questions=("q",), gold=False).drop("domain", "text")
    data = page_of(make_run(frame, tmp_path / "run", draws=0)).data()
    assert data["domains"] == [] and rows_of(data["reliability"]) == []
    assert any("No posterior draws" in caution["text"] for caution in data["cautions"])


def test_what_charts_leave_out_is_said(plain_run, monkeypatch):
    from moral_entropy.report import data, item_sums, tables

    assert page_of(plain_run).data()["caps"] == []
    for module, name, value in (
        (data, "MAX_DOMAINS", 1),
        (tables, "MAX_DOMAINS", 1),
        (data, "MAX_TARGETS", 1),
        (tables, "MAX_TARGETS", 1),
        (data, "MAX_VOTES", 3),
        (item_sums, "MAX_CELLS", 5),
    ):
        monkeypatch.setattr(module, name, value)
    said = " ".join(data.report_data(read_run(plain_run))["caps"])
    for words in ("1 largest of 2 domains", "first 1 of 2 questions", "pools the domains", "3 stands for more"):
        assert words in said


def test_the_bundle_cannot_end_its_element():
    script = vega_bundle()
    assert "</script" not in script.lower() and "vegaEmbed" in script


def test_foundations_are_defined_only_where_they_are_asked_about(plain_run, many_run):
    assert set(page_of(plain_run).data()["definitions"]) == {"care", "fairness"}
    assert page_of(many_run).data()["definitions"] == {}
    colours = {target["name"]: target["colour"] for target in page_of(plain_run).data()["targets"]}
    assert colours == {"care": "#00B4A6", "fairness": "#3498DB"}


@pytest.mark.slow
def test_many_items_make_a_small_page(tmp_path):
    votes, run = tmp_path / "votes.parquet", tmp_path / "run"
    sizes = ["--items", "100000", "--annotators", "500", "--votes-per-item", "3", "--seed", "1"]
    assert main(["simulate", *sizes, "-o", str(votes)]) == 0
    assert main(["audit", str(votes), "-o", str(run), "--draws", "20", "--quiet"]) == 0
    assert (run / "report.html").stat().st_size <= 8_000_000
