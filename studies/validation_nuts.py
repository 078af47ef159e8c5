"""NUTS on the three twins, every foundation, and the Laplace approximation held against it.

Usage: validation_nuts.py [--twins mftc,mfrc,emfd] [--tune 400] [--draws 1500] [--dry]. Writes the tables between the
markers of docs/evidence/validation.md, and docs/data/laplace-against-nuts.parquet with every domain; with --dry
only prints. Needs the extra: pip install 'moral-entropy[mcmc]'.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from page import put

import moral_entropy
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.options import COORDINATES, PriorOptions
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.corpora.twins import write_twin
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.names import ALL
from moral_entropy.pipeline.priors import priors_for
from moral_entropy.validate.laplace import reweight
from moral_entropy.validate.nuts import Agreement, compare
from moral_entropy.validate.nuts_sampler import CHAINS, DRAWS, TUNE, Samples, sample
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Votes

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, CELLS = DOCS / "evidence" / "validation.md", DOCS / "data" / "laplace-against-nuts.parquet"
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


def examine(twin: str, votes: Votes, one: QuestionFit, *, chains: int, tune: int, draws: int) -> Row:
    """Sample one fit, and hold all three Gaussians against the samples."""
    busy = time.process_time()
    samples = sample(one, chains=chains, tune=tune, draws=draws)
    busy = time.process_time() - busy
    agreements = [a for coordinates in COORDINATES for a in compare(votes, one, samples, coordinates)]
    return _row(twin, one, samples, busy, agreements)


def _row(twin: str, one: QuestionFit, samples: Samples, busy: float, agreements: Sequence[Agreement]) -> Row:
    positive = one.ballot.positive
    share_s = samples.prevalence_sk[:, positive]
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
        slowest="prevalence" if samples.parameters.ess_q.argmin() < one.ballot.n_labels - 1 else "confusion",
        prevalence_mode=float(one.prevalence_k[positive]),
        prevalence=float(share_s.mean()),
        sd=float(share_s.std()),
        pareto_k=reweight(one).k,
        agreements=tuple(agreements),
    )


def study(twin: str, *, chains: int, tune: int, draws: int, scale: float = 1.0) -> list[Row]:
    """Sample every foundation of a twin."""
    votes = twin_votes(twin, scale)
    with warnings.catch_warnings():
        # That thin data is thin is what the study is about.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = fit(votes, priors=priors_for(votes, PriorOptions(preset="mft")))
    rows = []
    for one in consensus.fits:
        rows.append(examine(twin, votes, one, chains=chains, tune=tune, draws=draws))
        print(f"{twin} {one.question}: {rows[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    return rows


def mixing_table(rows: Sequence[Row]) -> str:
    """Give the first table: whether NUTS mixes."""
    head = (
        "| twin | foundation | parameters | rows | seconds | processor seconds | passes | ESS, parameters | ESS, items "
        "| R-hat | divergences | positive: mode | NUTS |\n"
        "| --- | --- " + "| ---: " * 11 + "|"
    )
    lines = [
        f"| {NAMES[row.twin]} | {row.question} | {row.parameters:,} | {row.rows:,} | {row.seconds:.0f} "
        f"| {row.busy:.0f} | {row.gradients:,} | {row.ess_parameters:,.0f} | {row.ess_items:,.0f} | {row.rhat:.3f} "
        f"| {row.divergences} | {row.prevalence_mode:.3f} | {row.prevalence:.3f} ± {row.sd:.3f} |"
        for row in rows
    ]
    return "\n".join([head, *lines])


def verdict_line(rows: Sequence[Row]) -> str:
    """Say in words whether all of them mix."""
    ess = min(min(row.ess_parameters, row.ess_items) for row in rows)
    slow = sum(row.slowest == "prevalence" for row in rows)
    return (
        f"Over {len(rows)} fits the worst parameter or item has {ess:,.0f} effective draws and an R-hat of "
        f"{max(row.rhat for row in rows):.3f}; {sum(row.divergences for row in rows)} steps diverged; a fit took "
        f"{min(row.busy for row in rows):.0f} to {max(row.busy for row in rows):.0f} processor seconds. The slowest "
        f"parameter is the prevalence in {slow} of {len(rows)}: with thin votes, prevalence and everybody's "
        "sensitivity trade off against each other, and chains walk that ridge end to end."
    )


def laplace_table(rows: Sequence[Row]) -> str:
    """Give the second table: how far each Gaussian is from NUTS."""
    head = (
        "| twin | foundation | coordinates | aleatoric: NUTS | ratio | epistemic: NUTS | ratio | median item's ratio "
        "| correlation | p apart: mean | most | 90% intervals hold |\n"
        "| --- | --- | --- " + "| ---: " * 9 + "|"
    )
    lines = [
        f"| {NAMES[row.twin]} | {row.question} | {a.coordinates} | {a.nuts_aleatoric:.4f} | {a.aleatoric_ratio:.2f} "
        f"| {a.nuts_epistemic:.4f} | {a.epistemic_ratio:.2f} | {a.item_ratio:.2f} | {a.correlation:.3f} "
        f"| {a.p_mean:.3f} | {a.p_max:.3f} | {a.coverage:.0%} |"
        for row in rows
        for a in map(row.whole, COORDINATES)
    ]
    return "\n".join([head, *lines])


def summary_table(rows: Sequence[Row]) -> str:
    """Give the second table in short: ranges over foundations."""
    head = (
        "| twin | coordinates | epistemic ratio | aleatoric ratio | p apart: mean | 90% intervals hold |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    lines = []
    for twin in dict.fromkeys(row.twin for row in rows):
        for coordinates in COORDINATES:
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
    return f"Pareto-k of the default's draws, the check that every audit runs: {', '.join(told)}."


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


def domain_lines(cells: pl.DataFrame) -> str:
    """Sum the domains up: where each Gaussian's epistemic part is closest and farthest."""
    lines = []
    for coordinates in COORDINATES:
        apart = cells.filter((pl.col("coordinates") == coordinates) & (pl.col("domain") != ALL))
        ratio = apart["epistemic_ratio"].to_numpy()
        if not len(ratio):
            continue
        far = apart.row(int(np.abs(np.log(ratio)).argmax()), named=True)
        within = np.mean((ratio >= 0.8) & (ratio <= 1.25))
        lines.append(
            f"- `{coordinates}`: epistemic ratio {ratio.min():.2f} to {ratio.max():.2f} over {len(ratio)} cells of "
            f"domain × foundation, {within:.0%} of them between 0.8 and 1.25; farthest {NAMES[far['twin']]} "
            f"{far['domain']}, {far['question']} ({far['epistemic_ratio']:.2f})."
        )
    return "\n".join(lines)


def fragment(rows: Sequence[Row], facts: str) -> str:
    """Give everything that goes between the markers."""
    return "\n\n".join(
        [
            facts,
            verdict_line(rows),
            mixing_table(rows),
            "## Laplace against NUTS",
            pareto_line(rows),
            summary_table(rows),
            domain_lines(domain_cells(rows)),
            f"<details><summary>Every foundation</summary>\n\n{laplace_table(rows)}\n\n</details>",
        ]
    )


def with_tables(page: str, text: str) -> str:
    """Put text between the markers of the page."""
    return put(page, "nuts", "studies/validation_nuts.py", text)


def main() -> None:
    """Run the study and write its part of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twins", default=",".join(TWINS), help="which of them")
    parser.add_argument("--tune", type=int, default=TUNE, help="steps a chain to set its stride")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws a chain")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    how = {"chains": CHAINS, "tune": asked.tune, "draws": asked.draws}
    rows = [row for twin in asked.twins.split(",") for row in study(twin, **how)]
    facts = (
        f"moral-entropy {moral_entropy.__version__}, preset `mft`, {CHAINS} chains of {asked.tune} + {asked.draws:,} "
        "steps, seed 0, two cores. ESS is the bulk effective sample size and R-hat the rank-normalised one, each of "
        "the worst parameter or item."
    )
    text = fragment(rows, facts)
    print(text)
    if not asked.dry:
        CELLS.parent.mkdir(exist_ok=True)
        domain_cells(rows).write_parquet(CELLS)
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
