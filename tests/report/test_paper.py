"""Figures, tables and the methods paragraph for papers: the formats asked for, with the run's numbers in them."""

from __future__ import annotations

import csv
import re

import polars as pl
import pytest
import vl_convert
from report_support import vote_frame

import moral_entropy as me
from moral_entropy.report.figures import figure_specs, write_figures
from moral_entropy.report.paper import LATEX, methods, paper_tables, write_paper
from moral_entropy.runs.run import read_run

FIRST_BYTES = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", ["many", "hostile"])
def test_every_figure_is_drawn_in_every_format(kind, request, tmp_path, monkeypatch):
    run = request.getfixturevalue(f"{kind}_run")
    specs = dict(figure_specs(read_run(run)))
    # One of each figure is enough, and drawing is slow.
    kinds = {name.split("-")[0]: (name, spec) for name, spec in reversed(specs.items())}
    monkeypatch.setattr("moral_entropy.report.figures.figure_specs", lambda _run: iter(kinds.values()))
    files = write_figures(run, tmp_path / "figures", formats=("png", "svg", "pdf"))
    assert len(files) == 3 * len(kinds) and len(kinds) >= 3
    for file in files:
        assert file.read_bytes().startswith(FIRST_BYTES[file.suffix[1:]])
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(file.name for file in files)


def test_figures_hold_the_audits_numbers(plain_run):
    run = read_run(plain_run)
    specs = dict(figure_specs(run))
    assert list(specs) == ["rules", "entropy", "reliability", "annotators-care", "annotators-fairness"]
    rows = specs["rules"]["data"]["values"]
    key = {"question": "care", "rule": "two-vote", "metric": "fnr", "reference": "gold", "domain": "(all)"}
    value = run.rules.filter(**key)["value"][0]
    place = ("care", "two-vote", "missed yes (false negative rate)")
    assert [row["value"] for row in rows if (row["target"], row["rule"], row["rate"]) == place] == [value]


def test_annotators_have_their_names_in_their_figure(plain_run):
    svg = vl_convert.vegalite_to_svg(dict(figure_specs(read_run(plain_run)))["annotators-care"])
    labels = re.findall(r">(\w)</text>", svg)
    assert {*"abcdef"} <= set(labels)


def test_names_that_javascript_knows_are_drawn(tmp_path):
    """Vega fails on a question called constructor unless care is taken."""
    names = ["constructor", "toString", "__proto__"]
    frame = vote_frame(n_items=30, questions=names, gold=False).with_columns(
        annotator=pl.col("annotator").replace(dict(zip("abc", names, strict=True)))
    )
    kinds = {name.split("-")[0]: spec for name, spec in figure_specs(me.audit(frame, draws=20))}
    for name, spec in kinds.items():
        svg = vl_convert.vegalite_to_svg(spec)
        assert svg.count("<path") > 5 and "constructor" in svg, name


def test_tables_are_those_of_the_run(plain_run, tmp_path):
    run = read_run(plain_run)
    files = {file.name: file for file in write_paper(run, tmp_path)}
    assert set(files) == {f"{name}.csv" for name in paper_tables(run)} | {
        "tables.md",
        "tables.tex",
        "methods.md",
        "methods.tex",
    }
    with files["rates.csv"].open(encoding="utf-8", newline="") as file:
        rows = {(row["question"], row["rule"], row["reference"]): row for row in csv.DictReader(file)}
    audit = run.rules.filter(question="fairness", rule="majority", domain="(all)")
    against_gold = audit.filter(metric="fpr", reference="gold")
    row = rows["fairness", "majority", "gold"]
    figures = tuple(float(row[name]) for name in ("fpr", "fpr_low", "fpr_high"))
    assert figures == against_gold.select("value", "low", "high").row(0)
    # Expected under p: of the p of no, the part on items that the majority calls yes.
    votes = (
        run.table("votes").filter(question="fairness").group_by("item").agg(yes=(pl.col("label") == "1").mean() >= 0.5)
    )
    items = run.items.filter(question="fairness").join(votes, on="item")
    no = 1 - items["p"]
    expected = no.filter(items["yes"]).sum() / no.sum()
    assert float(rows["fairness", "majority", "consensus"]["fpr"]) == pytest.approx(expected)
    shares = pl.read_csv(files["prevalence.csv"])
    assert shares.group_by("question").agg(pl.col("share").sum())["share"].to_list() == pytest.approx([1.0, 1.0])
    entropy = pl.read_csv(files["entropy.csv"])
    parts = entropy.select(pl.sum_horizontal(pl.exclude("question", "items", "total"))).to_series()
    assert parts.to_list() == pytest.approx(entropy["total"].to_list())
    value = against_gold["value"][0]
    assert f"{value:.3f} (" in files["tables.md"].read_text() and f"{value:.3f} (" in files["tables.tex"].read_text()


def test_every_table_of_a_run_with_many_labels_has_its_rows(many_run):
    tables = paper_tables(read_run(many_run))
    assert tables["rates"]["question"].unique().sort().to_list() == ["tone: anger", "tone: joy", "tone: none"]
    assert tables["prevalence"]["label"].to_list() == ["anger", "joy", "none"]
    assert all(frame.height for frame in tables.values())


def test_the_methods_paragraph_has_the_figures_of_every_question(plain_run, tmp_path):
    run = read_run(plain_run)
    text = methods(run)
    for question in ("care", "fairness"):
        alpha = run.table("agreement").filter(question=question, statistic="krippendorff_alpha", domain="(all)")[
            "value"
        ][0]
        assert re.search(rf"On {question} \(120 items, \d+ votes\), Krippendorff's alpha was {alpha:.2f} ", text)
    error = run.verdict.error
    assert f"Of {error.checked:,} checked labels, {error.wrong:,.0f} were wrong: {error.value:.1%}" in text
    tex = next(file for file in write_paper(run, tmp_path) if file.name == "methods.tex").read_text(encoding="utf-8")
    assert tex.strip() == text.translate(LATEX) and not re.search(r"(?<!\\)[%&#]", tex)


def test_hostile_names_are_escaped_in_every_layout(hostile_run, tmp_path):
    files = {file.name: file.read_text(encoding="utf-8") for file in write_paper(hostile_run, tmp_path)}
    assert "<script>" not in files["tables.md"] and "<script>" not in files["methods.md"]
    assert "{{ 7" not in files["tables.tex"] and r"\{\{ 7" in files["tables.tex"]
