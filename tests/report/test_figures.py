"""Figures for papers: files of the formats asked for, with the run's numbers in them."""

from __future__ import annotations

import re

import polars as pl
import pytest
import vl_convert
from report_support import make_run, vote_frame

from moral_entropy.errors import UsageError
from moral_entropy.report.figures import figure_specs, write_figures
from moral_entropy.runs.folder import read_table
from moral_entropy.runs.run import read_run

FIRST_BYTES = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", ["many", "hostile"])
def test_every_figure_is_drawn_in_every_format(kind, request, tmp_path, monkeypatch):
    run = request.getfixturevalue(f"{kind}_run")
    specs = dict(figure_specs(read_run(run)))
    # One of each chart is enough, and drawing is slow.
    kept = {name.split("-")[0]: (name, spec) for name, spec in reversed(specs.items())}
    monkeypatch.setattr("moral_entropy.report.figures.figure_specs", lambda _run: iter(kept.values()))
    files = write_figures(run, tmp_path / "figures", formats=("png", "svg", "pdf"))
    assert len(files) == 3 * len(kept) and len(kept) >= 4
    for file in files:
        assert file.parent == tmp_path / "figures"
        assert file.read_bytes().startswith(FIRST_BYTES[file.suffix[1:]])
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(file.name for file in files)


def test_figures_hold_the_audits_numbers(plain_run):
    specs = dict(figure_specs(read_run(plain_run)))
    rows = specs["rules"]["datasets"]["rules"]
    audit = read_table(plain_run, "audit").filter(domain="(all)", reference="consensus", metric="fnr", rule="two-vote")
    for question, value in audit.filter(question="care").select("question", "value").iter_rows():
        wanted = (question, "two-vote", "missed yes (false negative rate)")
        [found] = [row["value"] for row in rows if (row["target"], row["rule"], row["metric"]) == wanted]
        assert found == value
    assert {"rules", "rule-any", "heat-fpr", "entropy", "entropy-by-votes", "reliability", "annotators-care"} <= set(
        specs
    )


@pytest.mark.parametrize("name", ["annotators-care", "reliability"])
def test_chance_and_the_right_p_are_dashed_diagonals(name, plain_run, tmp_path, monkeypatch):
    spec = dict(figure_specs(read_run(plain_run)))[name]
    monkeypatch.setattr("moral_entropy.report.figures.figure_specs", lambda _run: iter([(name, spec)]))
    [file] = write_figures(plain_run, tmp_path, formats=("svg",))
    dashed = re.findall(r'<path[^>]* d="([^"]*)"[^>]*stroke-dasharray="4,4"', file.read_text(encoding="utf-8"))
    assert dashed == ["M0,320L320,0"]


def test_names_that_javascript_knows_are_drawn(tmp_path):
    """Vega fails on a question called constructor unless care is taken."""
    names = ["constructor", "toString", "__proto__"]
    frame = vote_frame(n_items=30, questions=names, gold=False).with_columns(
        annotator=pl.col("annotator").replace(dict(zip("abc", names, strict=True))),
        domain=pl.col("domain").replace({"BLM": "constructor", "Sandy": "valueOf"}),
    )
    run = read_run(make_run(frame, tmp_path / "run", report=False, draws=20))
    kinds = {name.split("-")[0]: spec for name, spec in figure_specs(run)}
    assert {"rules", "rule", "heat", "entropy", "annotators"} <= set(kinds)
    for name, spec in kinds.items():
        svg = vl_convert.vegalite_to_svg(spec)
        assert svg.count("<path") > 10 and "constructor" in svg, name


def test_a_format_that_is_unknown_is_named(plain_run, tmp_path):
    with pytest.raises(UsageError, match=r"'gif'\. Formats: png, svg, pdf"):
        write_figures(plain_run, tmp_path, formats=("gif",))
