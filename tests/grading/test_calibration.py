"""The consensus against gold, with many items: neighbouring probabilities together change nothing that shows."""

import polars as pl
from numpy.testing import assert_allclose

from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.grading import calibration
from moral_entropy.grading.table import audit_rules


def test_grouping_equal_probabilities_moves_no_figure_by_1e_8(monkeypatch):
    votes = simulate_votes(n_items=4_000, n_annotators=40, votes_per_item=4, seed=3).votes
    consensus = fit(votes, draws=20)

    def figures():
        frame = audit_rules(votes, consensus, rules=["any"], reference="gold").frame
        metrics = ["brier", "log_loss", "fpr", "fnr", "disagreement", "cross_entropy_smoothed"]
        return frame.filter(pl.col("metric").is_in(metrics), rule="consensus")["value"].to_numpy()

    exact = figures()
    monkeypatch.setattr(calibration, "MANY_ITEMS", 100)
    assert len(exact) >= 6
    assert_allclose(figures(), exact, atol=1e-8)
