"""What `make demo` prints: scores against the truth and headline rates, held against counts made here."""

from __future__ import annotations

import doctest
import warnings
from statistics import fmean

import numpy as np
import polars as pl
import pytest
from support import load_script

import moral_entropy as me
from moral_entropy.corpora.twins import write_twin
from moral_entropy.errors import MoralEntropyWarning


@pytest.fixture(scope="module")
def tool():
    return load_script("tools/demo_summary.py")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "mfrc"
    write_twin("mfrc", folder.with_suffix(".parquet"), scale=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return me.audit(folder.with_suffix(".parquet"), folder, preset="mft", gold="gold", draws=50)


@pytest.fixture(scope="module")
def items(run):
    """Yes votes, votes and gold of every item and question, by hand."""
    return (
        pl.read_parquet(run.path.with_suffix(".parquet"))
        .group_by("item", "question", "domain")
        .agg(yes=pl.col("label").sum(), votes=pl.len(), gold=pl.col("gold").first())
    )


def test_the_scores_are_those_of_p_and_of_counting_votes(tool, run, items):
    found = tool.scores(tool.read_table(run.path, "audit"), tool.paper_figures(run.path.with_suffix(".parquet")))
    counted = items.with_columns(p=(pl.col("yes") + 0.5) / (pl.col("votes") + 1))
    published = items.join(run.items.select("item", "question", "p"), on=["item", "question"])
    assert published.height == items.height
    for method, rows in ((tool.VOTE, counted), (tool.P, published)):
        p, gold = rows["p"].to_numpy(), rows["gold"].to_numpy()
        assert found[method].log_loss == pytest.approx(-np.log(np.where(gold == 1, p, 1 - p)).mean())
        assert found[method].right == pytest.approx(((p >= 0.5) == gold).mean())
    assert 0 < found[tool.PAPER].log_loss < found[tool.VOTE].log_loss


def test_the_screen(tool, run, items, capsys):
    tool.main([str(run.path)])
    lines = capsys.readouterr().out.splitlines()
    # Against the truth: the mean over domains and foundations of the texts without it that somebody flags.
    cells = items.filter(gold=0).group_by("domain", "question").agg((pl.col("yes") > 0).mean())["yes"]
    assert len(cells) == 15
    [row] = [line for line in lines if line.startswith("MFRC any fpr")]
    assert row.split()[3] == "10.2%" and row.split()[-1] == f"{100 * fmean(cells):.1f}%"
    assert sum(line.startswith("mfrc  ") for line in lines) == 6
    assert sum(line.startswith("By log loss the ") for line in lines) == 1
    assert max(map(len, lines)) <= 100 and lines[-1].startswith(f"  {run.path}/report.html")


def test_the_sentence_names_the_winner(tool):
    assert doctest.testmod(tool).failed == 0
    scores = {tool.P: tool.Score(0.2, 0.9), tool.VOTE: tool.Score(0.3, 0.8), tool.PAPER: tool.Score(0.25, 0.9)}
    assert tool.who_wins({"emfd": scores, "mfrc": scores}) == (
        "By log loss the published p wins on eMFD (0.200; plain vote 0.300, paper's model 0.250) and MFRC (0.200; "
        "plain vote 0.300, paper's model 0.250). No other has more right labels than the published p."
    )
