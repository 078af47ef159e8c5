"""The methods paragraph: its figures are those of the run, and it is LaTeX whatever the data are called."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moral_entropy.cli.main import main
from moral_entropy.report.methods import YEAR, bibliography, latex, methods_paragraph
from moral_entropy.runs.run import read_run


def unescaped(text):
    """Return the text without what our escapes may hold: commands that we write, and escaped characters."""
    text = re.sub(r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar|ldots)\{\}", "", text)
    text = re.sub(r"\\(textquotedbl|textasciigrave|textquotesingle)\{\}", "", text).replace(r"$\frac{1}{2}$", "")
    return re.sub(r"\\[{}$&#_%]", "", text)


@given(st.text(max_size=60))
def test_nothing_in_a_text_is_a_command(text):
    left = unescaped(latex(text))
    assert not set(left) & set("\\{}$&#^_~%\n\r")
    assert all(letter.isprintable() for letter in left)


def braces_match(text):
    depth = 0
    for letter in re.sub(r"\\[{}]", "", text):
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    return depth == 0


@pytest.mark.parametrize("name", ["plain_run", "many_run", "hostile_run"])
def test_the_paragraph_is_latex_with_the_figures_of_the_run(name, request):
    run = read_run(request.getfixturevalue(name))
    text = methods_paragraph(run)
    assert braces_match(text) and text.replace(r"\$", "").count("$") % 2 == 0
    assert all(re.search(r"(?<!\\)[#&]", line) is None for line in text.splitlines()[1:])
    assert f"{run.manifest['votes']:,} votes by {run.manifest['annotators']} annotators" in text
    assert f"{run.manifest['items']:,} items" in text and f"seed~{run.manifest['seed']}" in text
    cited = set(re.findall(r"[\w]+", " ".join(re.findall(r"\\cite\{([^}]*)\}", text))))
    assert cited == set(re.findall(r"^@\w+\{(\w+),$", bibliography(run), flags=re.MULTILINE))
    assert braces_match(bibliography(run))


def test_figures_are_counted_again(plain_run):
    run = read_run(plain_run)
    text = " ".join(methods_paragraph(run).split())
    majority = pl.read_parquet(plain_run / "audit.parquet").filter(
        question="(all)", domain="(all)", label="(all)", rule="majority", metric="disagreement", reference="consensus"
    )
    [row] = majority.to_dicts()
    low, high = (f"{100 * row[bound]:.1f}\\%" for bound in ("low", "high"))
    assert f"given {100 * row['value']:.1f}\\% of the items another label (90\\% interval {low} to {high})" in text
    items = pl.read_parquet(plain_run / "items.parquet")
    uncertain = (items["entropy"] > 0.5 * 0.6931471805599453).mean()
    assert f"{100 * uncertain:.1f}\\% of the labels are uncertain" in text
    wrong = (items["label"] != items["gold"]).sum()
    assert f"Of {items.height:,} labels compared against known labels, {wrong} were wrong" in text


@pytest.mark.parametrize(
    ("pooling", "said"),
    [
        ("none", "every annotator has a confusion matrix, learnt from the votes alone"),
        ("partial", "annotators' confusion matrices vary around a common one, all learnt from the votes alone"),
        ("full", "all annotators have one confusion matrix, learnt from the votes alone"),
    ],
)
def test_it_says_what_annotators_have_in_common(plain_run, pooling, said):
    run = read_run(plain_run)
    text = methods_paragraph(replace(run, manifest={**run.manifest, "pooling": pooling}))
    assert said in text
    assert ("rows of the common confusion matrix 1.8" in text) == (pooling == "partial")


def test_the_report_command_writes_both(plain_run, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(plain_run, run)
    assert main(["report", str(run), "--methods"]) == 0
    assert capsys.readouterr().out.split()[1:] == [str(run / "methods.tex"), str(run / "methods.bib")]
    assert (run / "methods.tex").read_text() == methods_paragraph(read_run(run))
    assert f"year = {{{YEAR}}}" in (run / "methods.bib").read_text()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_it_compiles(hostile_run, tmp_path):
    text = methods_paragraph(read_run(hostile_run))
    page = f"\\documentclass{{article}}\\usepackage[T1]{{fontenc}}\\usepackage{{textcomp}}\\begin{{document}}{text}"
    (tmp_path / "page.tex").write_text(page + "\\end{document}\n", encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"], cwd=tmp_path, check=False
    )
    assert done.returncode == 0
