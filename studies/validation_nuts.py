"""NUTS on the three twins, every foundation, and the Laplace approximation held against it.

Usage: validation_nuts.py [--model mixed] [--twins mftc,mfrc,emfd] [--scale mftc=0.3,emfd=0.1] [--tune 400]
[--draws 1500] [--cores 2] [--dry]. Writes the tables of that model between its markers of docs/evidence/validation.md,
and every domain to a table of docs/data; with --dry only prints. Needs the extra: pip install 'moral-entropy[mcmc]'.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from page import put

import moral_entropy
from moral_entropy.checks.laplace import reweight
from moral_entropy.checks.nuts import Agreement, compare
from moral_entropy.checks.nuts_sampler import CHAINS, DRAWS, TUNE, Samples, sample
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.options import COORDINATES, Coordinates, PriorOptions
from moral_entropy.consensus.result import Mixture, QuestionFit
from moral_entropy.corpora.twins import write_twin
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.names import ALL
from moral_entropy.pipeline.priors import priors_for
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Floats, Votes

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "evidence" / "validation.md"
CELLS = {"paper": "laplace-against-nuts.parquet", "mixed": "laplace-against-nuts-mixed.parquet"}
PLACES = {"paper": "nuts", "mixed": "nuts of the default model"}
HEADINGS = {"paper": "## Laplace against NUTS", "mixed": "### Its Laplace approximation against NUTS"}
PARTS = {"paper": ("aleatoric", "epistemic"), "mixed": ("ambiguity and votes", "annotators")}
"""What each draw has, and what draws disagree about."""

DOUBTED = 0.7
"""Pareto-k above which an audit doubts its Laplace draws."""

HELD = 0.85
"""Least share of NUTS draws that 90% intervals must hold for the Gaussian to do."""

TWINS = ("mftc", "mfrc", "emfd")
NAMES = {"mftc": "MFTC", "mfrc": "MFRC", "emfd": "eMFD"}


@dataclass(frozen=True)
class Row:
    """One fit: how NUTS did, and how far each Gaussian is from it.

    Parameters
    ----------
    twin, question
        Which fit.
    parameters, rows
        Free parameters, and distinct rows of votes.
    seconds, busy
        Of the clock, and of processors at work, diagnostics included.
    gradients
        Passes over the votes.
    ess_parameters, ess_items, rhat, divergences
        The worst of each.
    slowest
        Which parameter has the fewest effective draws: "prevalence" or "confusion".
    prevalence_mode, prevalence, sd
        Positive share at the mode, and mean and standard deviation over NUTS draws.
    between_mode, between
        Share of the items between labels, at the mode and over NUTS draws; 0 in the paper's model.
    pareto_k
        Of the default Laplace draws.
    agreements
        By coordinates and domain.
    """

    twin: str
    question: str
    parameters: int
    rows: int
    seconds: float
    busy: float
    gradients: int
    ess_parameters: float
    ess_items: float
    rhat: float
    divergences: int
    slowest: str
    prevalence_mode: float
    prevalence: float
    sd: float
    between_mode: float
    between: float
    pareto_k: float
    agreements: tuple[Agreement, ...]

    def whole(self, coordinates: str) -> Agreement:
        """Give the agreement over all items."""
        return next(a for a in self.agreements if (a.coordinates, a.domain) == (coordinates, ALL))


def twin_votes(name: str, scale: float = 1.0) -> Votes:
    """Simulate a twin and read it, as `moral-entropy simulate --like` and `audit` do."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.parquet"
        write_twin(name, path, seed=0, scale=scale)
        return read_votes(path)


def coordinates_of(model: str) -> tuple[Coordinates, ...]:
    """Return the coordinates that a model's Gaussian can have."""
    return COORDINATES if model == "paper" else ("logit-mode",)


def examine(twin: str, votes: Votes, one: QuestionFit, **how: int | None) -> Row:
    """Sample one fit, and hold every Gaussian against the samples."""
    busy = time.process_time()
    samples = sample(one, **how)
    busy = time.process_time() - busy
    model = "paper" if one.mixture is None else "mixed"
    agreements = [a for coordinates in coordinates_of(model) for a in compare(votes, one, samples, coordinates)]
    return _row(twin, one, samples, busy, agreements)


def _row(twin: str, one: QuestionFit, samples: Samples, busy: float, agreements: Sequence[Agreement]) -> Row:
    positive, mixture = one.ballot.positive, one.mixture
    if mixture is not None:
        mixture = replace(mixture, weight_sdg=samples.drawn.weight_g)
    share_s = (samples.prevalence_sk if mixture is None else mixture.prevalence_sk)[:, positive]
    return Row(
        twin=twin,
        question=one.question,
        parameters=samples.x_csp.shape[-1],
        rows=samples.patterns.n_rows,
        seconds=samples.seconds,
        busy=busy,
        gradients=samples.gradients,
        ess_parameters=samples.parameters.least_ess,
        ess_items=samples.rows.least_ess,
        rhat=max(samples.parameters.most_rhat, samples.rows.most_rhat),
        divergences=samples.divergences,
        slowest="prevalence" if samples.parameters.ess_q.argmin() < one.weight_dg[:, 1:].size else "confusion",
        prevalence_mode=float(one.prevalence_k[positive]),
        prevalence=float(share_s.mean()),
        sd=float(share_s.std()),
        between_mode=0.0 if mixture is None else _between(mixture, mixture.weight_dg),
        between=0.0 if mixture is None else _between(mixture, mixture.weight_sdg.mean(axis=0)),
        pareto_k=reweight(one).k,
        agreements=tuple(agreements),
    )


def _between(mixture: Mixture, weight_dg: Floats) -> float:
    """Return the share of all items that lie between labels."""
    return float(np.average(weight_dg[:, mixture.states.n_labels :].sum(axis=1), weights=mixture.items_d))


def study(twin: str, *, model: str = "mixed", scale: float = 1.0, **how: int | None) -> list[Row]:
    """Sample every foundation of a twin."""
    votes = twin_votes(twin, scale)
    priors = priors_for(votes, PriorOptions(preset="mft")) if model == "paper" else None
    with warnings.catch_warnings():
        # That thin data is thin is what the study is about.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = fit(votes, priors=priors, model=model)
    rows = []
    for one in consensus.fits:
        rows.append(examine(twin, votes, one, **how))
        print(f"{twin} {one.question}: {rows[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    return rows


def mixing_table(rows: Sequence[Row], model: str = "mixed") -> str:
    """Give the first table: whether NUTS mixes."""
    between = " between labels: mode | NUTS |" if model == "mixed" else ""
    head = (
        "| twin | foundation | parameters | rows | seconds | processor seconds | passes | ESS, parameters | ESS, items "
        f"| R-hat | divergences | positive: mode | NUTS |{between}\n"
        "| --- | --- " + "| ---: " * (13 if between else 11) + "|"
    )
    lines = [
        f"| {NAMES[row.twin]} | {row.question} | {row.parameters:,} | {row.rows:,} | {row.seconds:.0f} "
        f"| {row.busy:.0f} | {row.gradients:,} | {row.ess_parameters:,.0f} | {row.ess_items:,.0f} | {row.rhat:.3f} "
        f"| {row.divergences} | {row.prevalence_mode:.3f} | {row.prevalence:.3f} ± {row.sd:.3f} |"
        + (f" {row.between_mode:.3f} | {row.between:.3f} |" if between else "")
        for row in rows
    ]
    return "\n".join([head, *lines])


def verdict_line(rows: Sequence[Row], model: str = "mixed") -> str:
    """Say in words whether all of them mix."""
    slowest = "the prevalence" if model == "paper" else "a weight of labels and places between them"
    ess = min(min(row.ess_parameters, row.ess_items) for row in rows)
    slow = sum(row.slowest == "prevalence" for row in rows)
    return (
        f"Over {len(rows)} fits the worst parameter or item has {ess:,.0f} effective draws and an R-hat of "
        f"{max(row.rhat for row in rows):.3f}; {sum(row.divergences for row in rows)} steps diverged; a fit took "
        f"{min(row.busy for row in rows):.0f} to {max(row.busy for row in rows):.0f} processor seconds. The slowest "
        f"parameter is {slowest} in {slow} of {len(rows)}: with thin votes, it and everybody's "
        "sensitivity trade off against each other, and chains walk that ridge end to end."
    )


def laplace_table(rows: Sequence[Row], model: str = "mixed") -> str:
    """Give the second table: how far each Gaussian is from NUTS."""
    within, across = PARTS[model]
    head = (
        f"| twin | foundation | coordinates | {within}: NUTS | ratio | {across}: NUTS | ratio | median item's ratio "
        "| correlation | p apart: mean | most | 90% intervals hold | Pareto-k |\n"
        "| --- | --- | --- " + "| ---: " * 10 + "|"
    )
    lines = [
        f"| {NAMES[row.twin]} | {row.question} | {a.coordinates} | {a.nuts_aleatoric:.4f} | {a.aleatoric_ratio:.2f} "
        f"| {a.nuts_epistemic:.4f} | {a.epistemic_ratio:.2f} | {a.item_ratio:.2f} | {a.correlation:.3f} "
        f"| {a.p_mean:.3f} | {a.p_max:.3f} | {a.coverage:.0%} | {row.pareto_k:.2f} |"
        for row in rows
        for a in map(row.whole, coordinates_of(model))
    ]
    return "\n".join([head, *lines])


def summary_table(rows: Sequence[Row], model: str = "mixed") -> str:
    """Give the second table in short: ranges over foundations."""
    within, across = PARTS[model]
    head = (
        f"| twin | coordinates | {across} ratio | {within} ratio | p apart: mean | 90% intervals hold |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    lines = []
    for twin in dict.fromkeys(row.twin for row in rows):
        for coordinates in coordinates_of(model):
            found = [row.whole(coordinates) for row in rows if row.twin == twin]
            ranges = [
                _range([a.epistemic_ratio for a in found], "{:.2f}"),
                _range([a.aleatoric_ratio for a in found], "{:.2f}"),
                _range([a.p_mean for a in found], "{:.3f}"),
                _range([a.coverage for a in found], "{:.0%}"),
            ]
            lines.append(f"| {NAMES[twin]} | {coordinates} | {' | '.join(ranges)} |")
    return "\n".join([head, *lines])


def _range(values: Sequence[float], shape: str) -> str:
    low, high = shape.format(min(values)), shape.format(max(values))
    return low if low == high else f"{low}–{high}"


def pareto_line(rows: Sequence[Row]) -> str:
    """Say what the cheap check said of the same fits."""
    told = [
        f"{NAMES[twin]} {_range([row.pareto_k for row in rows if row.twin == twin], '{:.2f}')}"
        for twin in dict.fromkeys(row.twin for row in rows)
    ]
    doubted = [row.pareto_k > DOUBTED for row in rows]
    short = [row.whole(row.agreements[0].coordinates).coverage < HELD for row in rows]
    both = sum(d and s for d, s in zip(doubted, short, strict=True))
    return (
        f"Pareto-k of the fit's own draws, the check that every audit runs: {', '.join(told)}. It is above {DOUBTED:g} "
        f"in {sum(doubted)} of {len(rows)} fits. The 90% intervals hold less than {HELD:.0%} of the NUTS "
        f"draws in {sum(short)} of {len(rows)}, and Pareto-k is above {DOUBTED:g} in {both} of these."
    )


def domain_cells(rows: Sequence[Row]) -> pl.DataFrame:
    """Lay every domain's agreement out as rows."""
    return pl.DataFrame(
        [
            {
                "twin": row.twin,
                "question": row.question,
                **asdict(agreement),
                "aleatoric_ratio": agreement.aleatoric_ratio,
                "epistemic_ratio": agreement.epistemic_ratio,
            }
            for row in rows
            for agreement in row.agreements
        ]
    )


def domain_lines(cells: pl.DataFrame, model: str = "mixed") -> str:
    """Sum the domains up: where each Gaussian's part that draws disagree about is closest and farthest."""
    lines = []
    for coordinates in coordinates_of(model):
        apart = cells.filter((pl.col("coordinates") == coordinates) & (pl.col("domain") != ALL))
        ratio = apart["epistemic_ratio"].to_numpy()
        if not len(ratio):
            continue
        far = apart.row(int(np.abs(np.log(ratio)).argmax()), named=True)
        within = np.mean((ratio >= 0.8) & (ratio <= 1.25))
        lines.append(
            f"- `{coordinates}`: {PARTS[model][1]} ratio {ratio.min():.2f} to {ratio.max():.2f} over {len(ratio)} "
            f"cells of domain × foundation, {within:.0%} of them between 0.8 and 1.25; farthest {NAMES[far['twin']]} "
            f"{far['domain']}, {far['question']} ({far['epistemic_ratio']:.2f})."
        )
    return "\n".join(lines)


def fragment(rows: Sequence[Row], facts: str, model: str = "mixed") -> str:
    """Give everything that goes between the markers."""
    return "\n\n".join(
        [
            facts,
            verdict_line(rows, model),
            mixing_table(rows, model),
            HEADINGS[model],
            pareto_line(rows),
            summary_table(rows, model),
            domain_lines(domain_cells(rows), model),
            f"<details><summary>Every foundation</summary>\n\n{laplace_table(rows, model)}\n\n</details>",
        ]
    )


def with_tables(page: str, text: str, model: str = "mixed") -> str:
    """Put text between the model's markers of the page."""
    return put(page, PLACES[model], "studies/validation_nuts.py", text)


def facts_line(model: str, scale: dict[str, float], tune: int, draws: int) -> str:
    """Say what was fitted and how it was sampled."""
    fitted = "`--model paper`, preset `mft`" if model == "paper" else "the default model, without a preset"
    items = ", ".join(
        f"{NAMES[twin]} {'whole' if part == 1 else f'{part:.0%} of the items'}" for twin, part in scale.items()
    )
    return (
        f"moral-entropy {moral_entropy.__version__}; {fitted}; {items}; {CHAINS} chains of {tune} + {draws:,} steps, "
        "seed 0. ESS is the bulk effective sample size and R-hat the rank-normalised one, each of the worst parameter "
        "or item (500 rows of items are looked at)."
    )


def main() -> None:
    """Run the study and write its part of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=tuple(PLACES), default="mixed", help="which model is fitted and sampled")
    parser.add_argument("--twins", default=",".join(TWINS), help="which of them")
    parser.add_argument("--scale", default="", help="shares of a twin's items, such as mftc=0.3,emfd=0.1")
    parser.add_argument("--tune", type=int, default=TUNE, help="steps per chain to set its stride")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws per chain")
    parser.add_argument("--cores", type=int, help="chains walked at a time; by default as many as there are cores")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    model, twins = asked.model, asked.twins.split(",")
    scale = dict.fromkeys(twins, 1.0) | {k: float(v) for k, v in (p.split("=") for p in asked.scale.split(",") if p)}
    how = {"chains": CHAINS, "tune": asked.tune, "draws": asked.draws, "cores": asked.cores}
    rows = [row for twin in twins for row in study(twin, model=model, scale=scale[twin], **how)]
    text = fragment(rows, facts_line(model, scale, asked.tune, asked.draws), model)
    print(text)
    if not asked.dry:
        (DOCS / "data").mkdir(exist_ok=True)
        domain_cells(rows).write_parquet(DOCS / "data" / CELLS[model])
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), text, model), encoding="utf-8")


if __name__ == "__main__":
    main()
