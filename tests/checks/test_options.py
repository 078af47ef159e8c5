"""Every side examines the fit that was made, with all of its options: nothing is refitted under the defaults."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from support import votes_of

from moral_entropy.checks import ensemble, heldout, modes
from moral_entropy.checks.priors import ENTROPIES, REPORTED, prior_grid, star_of
from moral_entropy.checks.sides import examine
from moral_entropy.consensus.entropy import decompose_entropy
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.options import FitOptions

pytestmark = pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")

OPTIONS = {
    "constrained": {
        "model": "paper", "draws": 40, "seed": 7, "coordinates": "jacobian", "interval": 0.5, "use_gold": True,
        "pooling": "full", "constrain": "better-than-chance", "temper": 0.5,
    },
    "pooled": {
        "model": "paper", "draws": 30, "seed": 5, "coordinates": "logit-mode", "interval": 0.8, "pooling": "partial",
        "temper": "heldout",
    },
    "tempered by gold": {
        "model": "paper", "draws": 30, "seed": 3, "coordinates": "paper", "interval": 0.6,
        "constrain": "better-than-chance", "temper": "gold",
    },
    "the mode alone": {
        "model": "paper", "draws": 0, "constrain": "better-than-chance", "use_gold": True, "temper": "heldout",
    },
    "between labels": {
        "draws": 40, "seed": 7, "interval": 0.5, "use_gold": True, "constrain": "better-than-chance",
    },
    "between labels, pooled": {"draws": 30, "seed": 5, "pooling": "partial", "domain_prevalence": "off"},
    "between labels, one matrix": {"draws": 30, "pooling": "full"},
    "two counted as one": {"draws": 30, "dependence": "off", "merge": ("0+1",)},
}  # fmt: skip


def made_votes():
    """Six annotators, the last of them below chance, and gold on every third item."""
    rng = np.random.default_rng(2)
    truth_i = rng.integers(2, size=150)
    right_a = [0.85, 0.8, 0.75, 0.8, 0.7, 0.25]
    rows = [
        (i, a, int(truth_i[i] if rng.random() < right else 1 - truth_i[i]))
        for i in range(150)
        for a, right in enumerate(right_a)
        if rng.random() < 0.7
    ]
    votes = votes_of(rows, n_items=150, gold_i=np.where(np.arange(150) % 3 == 0, truth_i, -1))
    return replace(votes, domains=("a", "b"), domain_i=np.arange(150, dtype=np.int32) % 2)


@pytest.fixture(scope="module", params=OPTIONS)
def consensus(request):
    return fit(made_votes(), **OPTIONS[request.param])


def test_every_option_that_changes_the_answer_is_tried():
    technical = {"solver", "device", "threads", "max_passes", "fit_tolerance"}
    tried = {name for options in OPTIONS.values() for name, value in options.items() if value != _default(name)}
    assert tried == {field.name for field in fields(FitOptions)} - technical


def _default(name):
    return getattr(FitOptions(), name)


def test_the_grid_at_the_priors_of_the_fit_is_the_fit(consensus):
    if not consensus.options.draws:
        pytest.skip("the figures of the grid are those of draws")
    [same] = [choice for choice in star_of(consensus) if (choice.prevalence, choice.rows) == (REPORTED, "1.8/1.2")
              and choice.pooling == consensus.options.pooling]  # fmt: skip
    grid = prior_grid(consensus, [same], draws=consensus.options.draws, seed=consensus.options.seed)
    [one], parts = consensus.fits, decompose_entropy(consensus)
    expected = {"prevalence": one.prevalence_sk[:, 1].mean()}
    expected |= {name: getattr(parts, f"{name}_i").mean() for name in ENTROPIES[consensus.options.model]}
    for figure, value in expected.items():
        assert grid.filter(figure=figure)["value"].item() == pytest.approx(value, abs=1e-12), figure
    bounds = grid.filter(figure="prevalence").select("low", "high").row(0)
    tail = (1 - consensus.options.interval) / 2
    assert bounds == pytest.approx(np.quantile(one.prevalence_sk[:, 1], [tail, 1 - tail]))


def test_no_grid_asks_for_what_cannot_be_fitted(consensus):
    poolings = {choice.pooling for choice in star_of(consensus)}
    assert poolings == ({"none", "full"} if consensus.options.better_than_chance else {"none", "partial", "full"})


def test_every_climb_keeps_the_constraint(consensus, monkeypatch):
    reached = []
    for module in (ensemble, heldout, modes):

        def watched(*given, maximise=module.maximise, **options):
            found = maximise(*given, **options)
            reached.append(found.at)
            return found

        monkeypatch.setattr(module, "maximise", watched)
    examine(consensus, "heldout", folds=2)
    examine(consensus, "ensemble", members=2)
    assert len(reached) > 4
    least = min(float(np.diagonal(at.confusion_akv, axis1=1, axis2=2).min()) for at in reached)
    assert (least >= 0.5 - 1e-9) == consensus.options.better_than_chance


@pytest.mark.parametrize("side", ["laplace", "identifiability", "prior-power", "temper", "gold", "heldout", "ensemble"])
def test_every_side_looks_at_fits_with_other_options(consensus, side):
    findings = examine(consensus, side, **{"heldout": {"folds": 2}, "ensemble": {"members": 2}}.get(side, {}))
    asked = {"prior-power": consensus.options.draws > 0, "gold": not consensus.options.use_gold}
    assert bool(findings) == asked.get(side, True)
