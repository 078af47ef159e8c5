"""The section "Do soft labels win?": there only when a study is, and every figure in it is the study's."""

import shutil

import polars as pl
import pytest
from report_support import HOSTILE, Page, make_run, vote_frame
from study_support import train_by_cue

from moral_entropy.report.html import write_report
from moral_entropy.report.soft_labels import FAVOURED, REFERENCES, soft_labels
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.runs.run import read_run
from moral_entropy.runs.tables import read_table
from moral_entropy.schemas import SCHEMAS
from moral_entropy.study.compare import compare_targets
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.run import add_to_run


@pytest.fixture(scope="module")
def study(plain_run):
    consensus = reload_consensus(plain_run)
    return compare_targets(consensus, StudyOptions(models=("tfidf",), seeds=2, replicates=50), train=train_by_cue)


@pytest.fixture
def studied(plain_run, study, tmp_path):
    run = shutil.copytree(plain_run, tmp_path / "run")
    add_to_run(run, study)
    return run


def html_of(run):
    return (run / "report.html").read_text(encoding="utf-8")


def test_every_reference_says_what_it_is_and_whom_it_favours():
    assert list(REFERENCES) == list(FAVOURED)


def test_without_a_study_there_is_no_section(plain_run):
    assert soft_labels(read_run(plain_run)) is None
    assert "Do soft labels win?" not in html_of(plain_run)


def test_a_study_adds_a_section_to_the_report(studied):
    page = html_of(studied)
    assert page.count("Do soft labels win?") == 1
    assert ("a", {"href": "#soft-labels"}) in Page(page).elements
    for words in ("Against gold", "Against held-out votes", "favoured by construction"):
        assert words in page


def test_the_table_has_its_schema_and_is_the_study(studied, study):
    table = read_table(studied, "soft_labels")
    assert table.schema == SCHEMAS["soft_labels"]
    assert table.height == study.scores.height
    assert table["difference"].drop_nulls().len() == study.differences["difference"].drop_nulls().len()
    assert [path.name for path in studied.iterdir() if path.name.startswith(".")] == []


def test_every_score_shown_is_in_the_table(studied):
    shown = soft_labels(read_run(studied))
    table = read_table(studied, "soft_labels").filter(question="(mean)")
    assert {one["reference"] for one in shown["against"]} == set(table["reference"])
    for one in shown["against"]:
        for model, target, cells in one["rows"]:
            wanted = "soft" if model == "constant" else target
            rows = table.filter(model=model, target=wanted, reference=one["reference"])
            by_metric = dict(zip(rows["metric"], rows["value"], strict=True))
            assert cells[0][0] == f"{100 * by_metric['accuracy']:.1f}%"
            assert cells[1][0] == f"{by_metric['log_loss']:.4f}"


def test_the_sentences_follow_the_figures(studied):
    """Turn every difference around: who was beaten now wins, and the section says so."""
    table = read_table(studied, "soft_labels")
    gaps = pl.col("difference").is_not_null()
    for winner, words in (("soft", "soft beats every other on"), ("any", "loses to any")):
        changed = table.with_columns(better=pl.when(gaps).then(pl.lit(winner)).otherwise(None))
        changed.write_parquet(studied / "soft_labels.parquet")
        [gold] = [one for one in soft_labels(read_run(studied))["against"] if one["reference"] == "gold"]
        said = " ".join(gold["sentences"])
        assert words in said or (winner == "any" and "loses to every other" in said)


def test_hostile_names_stay_text(tmp_path, study):
    run = make_run(vote_frame(n_items=40), tmp_path / "run", report=False)
    evil = study.scores.with_columns(model=pl.lit(HOSTILE[1]))
    from dataclasses import replace

    add_to_run(run, replace(study, scores=evil, differences=study.differences.with_columns(model=pl.lit(HOSTILE[1]))))
    page = write_report(run).read_text(encoding="utf-8")
    assert HOSTILE[1] not in page and "&lt;/script&gt;&lt;script&gt;window.hacked = 2" in page
