"""The paper's soft-label table beside the figures of a study."""

import polars as pl
import pytest

from moral_entropy.errors import RunFolderError
from moral_entropy.reproduce.comparison import Basis, compare_figures
from moral_entropy.reproduce.figures import as_frame
from moral_entropy.reproduce.published import read_published
from moral_entropy.reproduce.soft_labels import soft_label_figures
from moral_entropy.schemas import SOFT_LABELS


@pytest.fixture
def run(tmp_path):
    place = {"split": "items", "target": "soft", "reference": "majority", "metric": "auc", "n": 100, "seeds": 5}
    rows = [
        {**place, "model": model, "question": question, "value": value, "low": value - 0.01, "high": value + 0.01}
        for model, plus in (("constant", -0.4), ("tfidf", 0.0), ("minilm", 0.01))
        for question, value in (("care", 0.94 + plus), ("Fairness", 0.9 + plus), ("(mean)", 0.92 + plus))
    ]
    (tmp_path / "manifest.json").write_text("{}")
    pl.DataFrame(rows, schema=SOFT_LABELS).write_parquet(tmp_path / "soft_labels.parquet")
    return tmp_path


def test_figures_are_those_of_minilm_where_it_was_trained(run):
    found = {figure.foundation: figure.value for figure in soft_label_figures(run)}
    assert found == {"care": pytest.approx(0.95), "fairness": pytest.approx(0.91)}


def test_they_stand_beside_the_paper(run):
    comparison = compare_figures(read_published(), as_frame(soft_label_figures(run)), Basis(("mftc",))).filter(
        section="soft labels"
    )
    rows = {row["foundation"]: row for row in comparison.iter_rows(named=True)}
    assert rows["care"]["published"] == 0.955 and rows["care"]["ours"] == pytest.approx(0.95)
    assert rows["care"]["verdict"] in ("same", "differs")
    assert rows["loyalty"]["note"] == "no classifier was trained"


def test_of_simulated_votes_they_are_not_comparable(run):
    basis = Basis(("mftc",), twins=True)
    comparison = compare_figures(read_published(), as_frame(soft_label_figures(run)), basis).filter(
        foundation="care", metric="auc"
    )
    assert comparison["verdict"].to_list() == ["not comparable"]


def test_a_run_without_a_study_says_how_to_make_one(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(RunFolderError, match="has no table 'soft_labels'"):
        soft_label_figures(tmp_path)
