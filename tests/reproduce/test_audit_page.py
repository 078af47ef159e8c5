"""The tool that writes docs/evidence/paper-on-twins.md: its tables hold the figures of the run."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from support import load_script

from moral_entropy.corpora.twins import twin
from moral_entropy.reproduce.options import Inputs, ReproduceOptions
from moral_entropy.reproduce.study import run_study

ROOT = Path(__file__).parents[2]
SECTIONS = ("run", "twins", "headline", "mftc", "mfrc", "emfd", "emfd-gold", "entropy")


@pytest.fixture(scope="module")
def tool():
    return load_script("tools/audit_page.py")


def section(page, name):
    [text] = re.findall(
        rf"<!-- {name}: written by tools/audit_page.py -->\n(.*?)\n<!-- end of {name} -->", page, re.DOTALL
    )
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_the_tables_are_those_of_the_run(tool, tmp_path, monkeypatch):
    study = run_study(Inputs(twins=True, scale=0.02), tmp_path / "out", ReproduceOptions(draws=20))
    page = tmp_path / "audit.md"
    page.write_text((ROOT / "docs" / "evidence" / "paper-on-twins.md").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(tool, "PAGE", page)
    tool.main(str(study.path))
    text = page.read_text(encoding="utf-8")
    assert "twins at scale 0.02, seed 0; 20 draws" in text
    found = study.figures.filter(
        corpus="mftc", domain="BLM", foundation="care", rule="two-vote", reference="consensus"
    ).filter(pl.col("metric").is_in(["fpr", "fnr"]))
    fpr, fnr = (found.filter(metric=metric)["value"][0] for metric in ("fpr", "fnr"))
    [row] = [row for row in section(text, "twins") if row[:2] == ["MFRC", "care"]]
    care = twin("mfrc", scale=0.02).filter(question="care")
    gold = care.group_by("item").agg(pl.col("gold").max())["gold"]
    assert row[3] == f"0.187 / {gold.sum() / len(gold):.3f}"
    hits = [own.filter(gold=1)["label"].mean() for _, own in care.group_by("annotator")]
    assert row[4] == f"0.576 / {sum(hits) / len(hits):.3f}"
    [row] = [row for row in section(text, "mftc") if row[:2] == ["BLM", "two-vote"]]
    assert row[3] == f"{100 * fpr:.1f} / {100 * fnr:.1f}"
    assert [len(section(text, name)) - 2 for name in SECTIONS[1:]] == [15, 24, 24, 12, 18, 18, 6]


def test_the_page_has_its_tables(tool):
    page = tool.PAGE.read_text(encoding="utf-8")
    assert [len(section(page, name)) - 2 for name in SECTIONS[1:]] == [15, 24, 24, 12, 18, 18, 6]
    assert "twins at scale 1, seed 0; 1,000 draws" in page


def test_a_page_without_the_marks_is_refused(tool):
    with pytest.raises(ValueError, match="no place for 'mftc'"):
        tool.with_section("# A page", "mftc", "table")
