"""How much do starts, resampling and priors move the answer? The three twins, where the truth is known.

Usage: validation_priors.py [--twins mftc,mfrc,emfd] [--members 20] [--simulations 200] [--dry]. Writes the parts
between the `ensemble` and `priors` markers of docs/evidence/validation.md, docs/data/priors.parquet with the whole grid
and docs/figures/validation-priors.svg; with --dry only prints. About ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from page import put
from prior_figure import prior_chart, prior_sentence

import moral_entropy
from moral_entropy.checks.ensemble import ensemble_of, switched_words
from moral_entropy.checks.prior_power import prior_decides, scale_powers
from moral_entropy.checks.priors import cross_of, prior_grid
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.options import PriorOptions
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.corpora.twins import write_twin
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.pipeline.priors import priors_for
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Votes

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, GRID, FIGURE = (
    DOCS / "evidence" / "validation.md",
    DOCS / "data" / "priors.parquet",
    DOCS / "figures" / "validation-priors.svg",
)
TWINS = ("mftc", "mfrc", "emfd")
PRESETS = (None, "mft")

THIN = "emfd"
"""The twin on which each prior is held against the truth."""

FIRST_SEED = 1_000
"""Simulations start here: bars were set on those before."""


@dataclass(frozen=True)
class Kind:
    """A kind of simulated corpus, and whether the prior should be called decisive there."""

    name: str
    n_items: int
    n_annotators: int
    votes_per_item: float
    thin: bool


KINDS = (
    Kind("plenty", 400, 12, 5, thin=False),
    Kind("few items", 200, 8, 5, thin=False),
    Kind("three votes", 1_500, 20, 3, thin=False),
    Kind("thin, many annotators", 3_000, 300, 1.3, thin=True),
    Kind("thin", 1_000, 100, 1.3, thin=True),
)


def twin_votes(name: str, scale: float = 1.0) -> Votes:
    """Simulate a twin and read it, as `moral-entropy simulate --like` and `audit` do."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.parquet"
        write_twin(name, path, seed=0, scale=scale)
        return read_votes(path)


def true_prevalence(votes: Votes) -> dict[str, float]:
    """Share of the items that truly carry each foundation."""
    return {ballot.question: float((ballot.gold_i == ballot.positive).mean()) for ballot in votes.ballots}


def quiet_fit(votes: Votes, priors: Priors | None = None, draws: int = 1_000) -> Consensus:
    """Fit without the warnings that this study is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, priors=priors, draws=draws)


def ensemble_lines(twin: str, consensus: Consensus, members: int) -> Iterator[str]:
    """Give a table row for each foundation."""
    for one in consensus.fits:
        modes, (_, items, annotators) = ensemble_of(one, members=members)
        positive = one.ballot.positive
        own = float(one.prevalence_sk[:, positive].std())
        nearest = min(modes[1:], key=lambda mode: mode.distance, default=None)
        other = f"{nearest.distance:,.1f} ({switched_words(consensus, one, nearest)})" if nearest else "none"
        there, starts = len(modes[0].starts), sum(len(mode.starts) for mode in modes)
        yield (
            f"| {twin} | {one.question} | {there} of {starts} | {other} | {items.p_sd:.3f} / {items.p_sd_95:.3f} "
            f"| {annotators.p_sd:.3f} / {annotators.p_sd_95:.3f} | {items.changed:.1%} / {annotators.changed:.1%} "
            f"| {own:.2%} | {items.prevalence_sd_k[positive]:.2%} | {annotators.prevalence_sd_k[positive]:.2%} "
            f"| {items.entropy_sd:.4f} / {annotators.entropy_sd:.4f} |"
        )


ENSEMBLE_HEAD = (
    "| twin | foundation | starts at the reported mode | nearest other mode, nats lower "
    "| sd of p over items: mean / 95% | over annotators | labels changed "
    "| posterior sd of prevalence | sd over items | over annotators "
    "| sd of mean entropy |\n"
    "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def scaling_lines(twin: str, preset: str | None, consensus: Consensus, truth: dict[str, float]) -> Iterator[str]:
    """Give a table row of power-scaling for each foundation."""
    for one in consensus.fits:
        row = scale_powers(one, likelihood_draws=200).row(0, named=True)
        told = "doubt" if prior_decides(row) else ""
        yield (
            f"| {twin} | {preset or 'flat'} | {one.question} | {truth[one.question]:.1%} | {row['value']:.1%} "
            f"| {row['sd']:.1%} | {_move(row['prior'], row['prior_error'])} "
            f"| {_move(row['votes'], row['votes_error'])} | {row['prior_share']:.0%} | {told} |"
        )


def _move(move: float, error: float) -> str:
    return f"{100 * move:+.1f} ± {100 * error:.1f}"


SCALING_HEAD = (
    "| twin | alpha | foundation | true | prevalence | sd | prior counted twice, points | votes counted twice | "
    "prior's share | |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


def range_lines(twin: str, grid: pl.DataFrame, truth: dict[str, float]) -> Iterator[str]:
    """Give a table row of ranges over the grid for each foundation."""
    spans = grid.group_by("question", "figure", "subject", maintain_order=True).agg(
        low=pl.col("value").min(), high=pl.col("value").max()
    )
    for question in grid["question"].unique(maintain_order=True):
        of = {(f, s): (low, high) for _, f, s, low, high in spans.filter(question=question).rows()}
        label = next(subject for figure, subject in of if figure == "prevalence")
        cells = [_percent(of["prevalence", label])]
        cells += [f"{of[name, ''][0]:.3f}–{of[name, ''][1]:.3f}" for name in ("aleatoric", "epistemic")]
        cells += [_percent(of[rate, rule]) for rule in ("any", "majority") for rate in ("fpr", "fnr")]
        yield f"| {twin} | {question} | {truth[question]:.1%} | {' | '.join(cells)} |"


def _percent(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.1%}–{ends[1]:.1%}"


RANGE_HEAD = (
    "| twin | foundation | true | prevalence | aleatoric | epistemic "
    "| any FPR | any FNR | majority FPR | majority FNR |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def distance_table(grid: pl.DataFrame, truth: dict[str, float]) -> str:
    """Hold every prior against the truth, nearest first."""
    known = pl.DataFrame({"question": list(truth), "true": list(truth.values())})
    held = grid.filter(figure="prevalence").join(known, on="question").with_columns(
        missed=(pl.col("value") - pl.col("true")).abs(),
        covers=(pl.col("low") <= pl.col("true")) & (pl.col("true") <= pl.col("high")),
    )  # fmt: skip
    by_prior = held.group_by("prevalence_prior", "rows", "pooling", maintain_order=True).agg(
        pl.col("missed").mean().alias("mean"),
        pl.col("missed").max().alias("worst"),
        pl.col("covers").sum(),
        pl.col("value"),
    )
    questions = held["question"].unique(maintain_order=True).to_list()
    lines = [
        "| alpha | rows | pooling | "
        + " | ".join(questions)
        + " | mean distance, points | worst | 90% interval holds |",
        "| --- | --- | --- | " + " | ".join(["---:"] * (len(questions) + 3)) + " |",
        "| | | **truth** | " + " | ".join(f"**{truth[question]:.1%}**" for question in questions) + " | | | |",
    ]
    for row in by_prior.sort("mean").iter_rows(named=True):
        values = " | ".join(f"{value:.1%}" for value in row["value"])
        lines.append(
            f"| {row['prevalence_prior']} | {row['rows']} | {row['pooling']} | {values} | {100 * row['mean']:.1f} "
            f"| {100 * row['worst']:.1f} | {row['covers']} of {len(questions)} |"
        )
    return "\n".join(lines)


def alarm_table(simulations: int) -> str:
    """Count alarms of the power-scaling on simulated corpora of every kind."""
    lines = [
        "| votes | items × annotators × votes per item | should be called the prior's | called so | median share |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for kind in KINDS:
        n = simulations if not kind.thin else max(simulations // 4, 1)
        called, shares = 0, []
        for seed in range(FIRST_SEED, FIRST_SEED + n):
            votes = simulate_votes(
                n_items=kind.n_items, n_annotators=kind.n_annotators, votes_per_item=kind.votes_per_item, seed=seed
            ).votes
            consensus = quiet_fit(votes, draws=400)
            row = scale_powers(consensus.fits[0], likelihood_draws=0).row(0, named=True)
            called += prior_decides(row)
            shares.append(row["prior_share"])
        size = f"{kind.n_items:,} × {kind.n_annotators} × {kind.votes_per_item:g}"
        lines.append(
            f"| {kind.name} | {size} | {'yes' if kind.thin else 'no'} | {called} of {n} ({called / n:.1%}) "
            f"| {np.median(shares):.2f} |"
        )
    return "\n".join(lines)


def with_part(page: str, name: str, text: str) -> str:
    """Put text between the markers of a part of the page."""
    return put(page, name, "studies/validation_priors.py", text)


@dataclass(frozen=True, eq=False)
class Results:
    """What the study found: the two parts of the page, the grid, and the true prevalences of the thin twin."""

    ensemble: str
    priors: str
    grid: pl.DataFrame
    truth: dict[str, float]


def run(twins: Sequence[str], *, members: int, simulations: int, scale: float = 1.0) -> Results:
    """Run the study on some twins."""
    ensembles, scalings, ranges, grids, held, seconds = [], [], [], [], "", 0.0
    truth_of = {}
    for twin in twins:
        votes = twin_votes(twin, scale)
        truth = truth_of[twin] = true_prevalence(votes)
        for preset in PRESETS:
            consensus = quiet_fit(votes, priors_for(votes, PriorOptions(preset=preset)))
            scalings += scaling_lines(twin, preset, consensus, truth)
            if preset is None:
                begun = time.perf_counter()
                ensembles += ensemble_lines(twin, consensus, members)
                seconds += time.perf_counter() - begun
        grid = prior_grid(consensus, cross_of(votes))
        grids.append(grid.select(pl.lit(twin).alias("twin"), pl.all()))
        ranges += range_lines(twin, grid, truth)
        if twin == THIN:
            held = f"{prior_sentence(grid)}\n\n{distance_table(grid, truth)}"
    facts = f"moral-entropy {moral_entropy.__version__}, seed 0"
    n_priors = len(cross_of(votes))
    ensemble_text = ENSEMBLE_TEXT.format(facts=facts, members=members, minutes=seconds / 60) + "\n".join(
        [ENSEMBLE_HEAD, *ensembles]
    )
    priors_text = "\n\n".join(
        [
            SCALING_TEXT.format(facts=facts), "\n".join([SCALING_HEAD, *scalings]),
            ALARM_TEXT.format(first=FIRST_SEED), alarm_table(simulations) if simulations else "",
            RANGE_TEXT.format(n=n_priors), "\n".join([RANGE_HEAD, *ranges]),
            HELD_TEXT, held,
        ]
    )  # fmt: skip
    return Results(ensemble_text, priors_text, pl.concat(grids), truth_of.get(THIN, {}))


ENSEMBLE_TEXT = """{facts}, default priors; {members} random starts, {members} resamplings of the items and {members} of
the annotators per foundation ({minutes:.1f} minutes in all). Starts are the fit's own, random ones, and ones in which
all annotators, or a team that hangs on few shared items, are switched on purpose; those are how switched modes are
found. Resampled fits begin at the reported mode. Over items the prevalence should spread as far as its posterior says;
over annotators it spreads further, since other people would have been asked.

"""

SCALING_TEXT = """**Power-scaling.** {facts}. How far the prevalence moves, in percentage points, if the prior counts
twice (Kallioinen et al. 2023), from the covariance of the posterior draws with the log prior; the same for the votes at
200 draws; and the share of the information on the prevalence that is the prior's. Every audit runs this and warns
where it says `doubt`. The truth is shown beside it: a fit can be wrong for reasons other than its prior."""

ALARM_TEXT = """**False alarms and missed ones.** Simulated corpora with annotators right on 60–90% of either label,
seeds {first} and up (the bars were set on others). Where annotators are that poor, two fifths of the information can be
the prior's even at three votes per item."""

RANGE_TEXT = """**A grid of priors.** {n} fits per foundation: alpha flat, (80, 20) and (500, 500); rows of 1/1 to 20/5;
the paper's rows partially and fully pooled. Lowest and highest of each figure; entropies in nats."""

HELD_TEXT = """**Held against the truth.** The eMFD twin has 1.3 votes per item and a known prevalence. Posterior means
under every prior, nearest first:"""


def draw(results: Results) -> bytes:
    """Draw the prevalences of the thin twin under every prior, with the truth."""
    import vl_convert

    spec = prior_chart(results.grid.filter(twin=THIN).drop("twin"), results.truth)
    return str(vl_convert.vegalite_to_svg(spec)).encode()


def main() -> None:
    """Run the study and write its parts of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twins", default=",".join(TWINS), help="which of them")
    parser.add_argument("--members", type=int, default=20, help="fits of each ensemble")
    parser.add_argument("--simulations", type=int, default=200, help="simulated corpora of each kind")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the twins' items")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    results = run(asked.twins.split(","), members=asked.members, simulations=asked.simulations, scale=asked.scale)
    print(results.ensemble, results.priors, sep="\n\n")
    if not asked.dry:
        GRID.parent.mkdir(exist_ok=True)
        results.grid.write_parquet(GRID)
        FIGURE.write_bytes(draw(results))
        picture = "\n\n![Prevalence of the eMFD twin under every prior](../figures/validation-priors.svg)"
        page = with_part(PAGE.read_text(encoding="utf-8"), "ensemble", results.ensemble)
        PAGE.write_text(with_part(page, "priors", results.priors + picture), encoding="utf-8")


if __name__ == "__main__":
    main()
