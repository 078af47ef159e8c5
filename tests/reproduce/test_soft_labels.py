"""The paper's soft-label table beside the figures of a comparison of targets."""

import polars as pl
import pytest

from moral_entropy.errors import RunFolderError
from moral_entropy.reproduce.comparison import Basis, compare_figures
from moral_entropy.reproduce.figures import as_frame
from moral_entropy.reproduce.published import read_published
from moral_entropy.reproduce.soft_labels import soft_label_figures


@pytest.fixture
def compared(tmp_path):
    """What `train --compare` writes, for two foundations of the paper and one of somebody else's."""
    rows = [
        {"question": name, "reference": reference, "metric": metric, "target": target, "value": value + plus,
         "low": value + plus - 0.01, "high": value + plus + 0.01, "n": 100}
        for name, value in (("care", 0.95), ("Fairness", 0.91), ("wit", 0.6))
        for reference, metric, target, plus in (
            ("majority", "auc", "soft", 0.0), ("majority", "auc", "any", -0.2),
            ("gold", "auc", "soft", -0.1), ("majority", "accuracy", "soft", -0.3),
        )
    ]  # fmt: skip
    pl.DataFrame(rows).write_csv(tmp_path / "comparison.csv")
    return tmp_path


def test_figures_are_those_of_soft_against_the_majority_label(compared):
    figures = {figure.foundation: figure.value for figure in soft_label_figures(compared)}
    assert figures == {"care": pytest.approx(0.95), "fairness": pytest.approx(0.91)}


def test_they_stand_beside_the_paper(compared):
    comparison = compare_figures(read_published(), as_frame(soft_label_figures(compared)), Basis(("mftc",))).filter(
        section="soft labels"
    )
    rows = {row["foundation"]: row for row in comparison.iter_rows(named=True)}
    assert rows["care"]["published"] == 0.955 and rows["care"]["ours"] == pytest.approx(0.95)
    assert rows["care"]["verdict"] in ("same", "differs")
    assert rows["loyalty"]["note"] == "no classifier was trained"


def test_of_simulated_votes_they_are_not_comparable(compared):
    basis = Basis(("mftc",), twins=True)
    comparison = compare_figures(read_published(), as_frame(soft_label_figures(compared)), basis).filter(
        foundation="care", metric="auc"
    )
    assert comparison["verdict"].to_list() == ["not comparable"]


def test_a_folder_without_a_comparison_says_how_to_make_one(tmp_path):
    with pytest.raises(RunFolderError, match=r"no comparison of targets .* Run: moral-entropy train RUN"):
        soft_label_figures(tmp_path)
