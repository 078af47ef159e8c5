"""Is the whole chain calibrated? Parameters drawn from the prior, votes from them, and the fit asked where they lie.

Simulation-based calibration (Talts et al. 2018): when the prior that made the data is the prior of the fit, the rank of
the true value among posterior draws is uniform, whatever the model. Ranks of the prevalence and of confusion cells show
whether the draws are those of the posterior; among items whose label has probability p a share p must have it; and the
interval of an item's probability must hold the probability under the true parameters as often as it says. Under the
default model items are drawn between labels, too, as its prior says, and p is the model's own, before it is published.

Usage: simulation_calibration.py [--corpora 300] [--sampled 24] [--jobs 2] [--dry]. Writes the tables between the
markers of docs/evidence/validation.md; with --dry only prints. NUTS needs the extra: pip install 'moral-entropy[mcmc]'.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from between import posterior_of_places, vote_again
from page import put
from scipy.stats import kstest

import moral_entropy
from moral_entropy.checks.laplace import examine_laplace
from moral_entropy.consensus.draws import summarise
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.priors import Priors
from moral_entropy.consensus.result import Consensus, DrawSummary
from moral_entropy.consensus.states import between_labels
from moral_entropy.corpora.simulate import SimulatedVotes, simulate_votes
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.table import Floats

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "validation.md"
DRAWS, INTERVAL, BINS = 400, 0.9, 10
TUNE, SAMPLED, CHAINS = 200, 250, 2
NUTS = "NUTS"
LAPLACE = ("jacobian", "jeffreys")
MIXED = "default model"


@dataclass(frozen=True)
class Setting:
    """A kind of corpus, and the prior that both makes and fits it.

    Parameters
    ----------
    name
        A word for the tables.
    n_items, n_annotators, votes_per_item
        As in `simulate_votes`.
    alpha
        Prior of the prevalence (negative, positive).
    beta
        Prior of every confusion row (right, wrong).
    """

    name: str
    n_items: int
    n_annotators: int
    votes_per_item: float
    alpha: tuple[float, float]
    beta: tuple[float, float]

    @property
    def priors(self) -> Priors:
        """Give them as the fit takes them."""
        return Priors(prevalence=self.alpha, diagonal=self.beta[0], off_diagonal=self.beta[1])

    @property
    def meaning(self) -> str:
        """Say it in a line."""
        return (
            f"{self.n_items:,} items, {self.n_annotators} annotators, {self.votes_per_item:g} votes per item; "
            f"prevalence ~ Dir{self.alpha}, rows ~ Dir{self.beta}"
        )


SETTINGS = (
    Setting("Plenty", 600, 8, 4, (8.0, 4.0), (8.0, 2.0)),
    Setting("Thin", 600, 30, 1.5, (8.0, 4.0), (8.0, 2.0)),
    Setting("The paper's priors", 600, 8, 4, (80.0, 20.0), (1.8, 1.2)),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where the truth of one corpus lies in what was said of it.

    Parameters
    ----------
    prevalence, right_q
        Share of draws below the true prevalence, and below the true diagonal of each confusion row.
    p_i, true_i
        Probability of the positive label, and whether it is the item's.
    covered_i
        Whether the item's interval holds its probability under the true parameters.
    alarmed
        Whether Pareto-k of the Laplace draws made the fit doubtful.
    """

    prevalence: float
    right_q: Floats
    p_i: Floats
    true_i: Floats
    covered_i: Floats
    alarmed: bool


def simulate(setting: Setting, seed: int) -> SimulatedVotes:
    """Draw parameters from the prior, and votes from them."""
    rng = np.random.default_rng([seed, 29])
    confusion_akv = np.empty((setting.n_annotators, 2, 2))
    for k in (0, 1):
        row = setting.beta if k == 0 else setting.beta[::-1]
        confusion_akv[:, k] = rng.dirichlet(row, size=setting.n_annotators)
    return simulate_votes(
        n_items=setting.n_items,
        n_annotators=setting.n_annotators,
        votes_per_item=setting.votes_per_item,
        prevalence_k=rng.dirichlet(setting.alpha),
        confusion_akv=confusion_akv,
        seed=seed,
    )


def mixed_outcome(setting: Setting, seed: int) -> Outcome:
    """Simulate a corpus whose items may lie between labels, fit the default model, and ask where the truth lies."""
    simulated, states = simulate(setting, seed), between_labels(2)
    rng = np.random.default_rng([seed, 31])
    # The prior of the weights: that of the prevalence for labels, and one for every state between them.
    weight_g = rng.dirichlet([*setting.alpha, *states.size_g[2:]])
    prior_z, place_z = states.weight_of_states(weight_g), states.mix_zk[:, 1]
    place_i = place_z[rng.choice(len(place_z), setting.n_items, p=prior_z)]
    simulated = vote_again(simulated, place_i, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = fit(simulated.votes, priors=setting.priors, draws=DRAWS, seed=seed, interval=INTERVAL, threads=1)
    [one] = consensus.fits
    true_akv = simulated.confusion_akv[one.ballot.annotator_a]
    shares_i = posterior_of_places(one.ballot, true_akv, place_z, prior_z)
    yes_i = rng.random(setting.n_items) < place_i
    prevalence = states.prevalence_k(weight_g)[1]
    return _place((prevalence, true_akv, yes_i, shares_i), (one.prevalence_sk, one.rows_sakv, one.summary), consensus)


def outcome(setting: Setting, method: str, seed: int) -> Outcome:
    """Simulate a corpus, fit it with NUTS or the coordinates of that name, and ask where the truth lies."""
    if method == MIXED:
        return mixed_outcome(setting, seed)
    simulated = simulate(setting, seed)
    with warnings.catch_warnings():
        # That thin data is thin is what the study is about.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        coordinates = "jacobian" if method == NUTS else method
        how = {"draws": DRAWS, "seed": seed, "coordinates": coordinates, "threads": 1, "model": "paper"}
        consensus = fit(simulated.votes, priors=setting.priors, **how)
    one = consensus.fits[0]
    prevalence_sk, confusion_sakv = one.prevalence_sk, one.confusion_sakv
    if method == NUTS:
        from moral_entropy.checks.nuts_sampler import sample

        samples = sample(one, chains=CHAINS, tune=TUNE, draws=SAMPLED, seed=seed, cores=1)
        prevalence_sk, confusion_sakv = samples.prevalence_sk, samples.confusion_sakv
    summary = summarise(
        one.patterns, prevalence_sk, confusion_sakv, positive=one.ballot.positive, interval=INTERVAL, threads=1
    )
    # Annotators without a vote are not in the ballot.
    true_akv = simulated.confusion_akv[one.ballot.annotator_a]
    yes_i = np.asarray(simulated.truth_i)[one.ballot.item_i] == 1
    shares_i = posterior_of_places(one.ballot, true_akv, np.array([0.0, 1.0]), simulated.prevalence_k)
    truth = (simulated.prevalence_k[1], true_akv, yes_i, shares_i)
    return _place(truth, (prevalence_sk, confusion_sakv, summary), consensus)


def _place(
    truth: tuple[float, Floats, Floats, Floats], found: tuple[Floats, Floats, DrawSummary], consensus: Consensus
) -> Outcome:
    """Find where prevalence, confusion rows, items' labels and their p lie in what was found of them."""
    prevalence, true_akv, yes_i, shares_i = truth
    prevalence_sk, confusion_sakv, summary = found
    right_sak = np.diagonal(confusion_sakv, axis1=-2, axis2=-1)
    return Outcome(
        prevalence=float((prevalence_sk[:, 1] < prevalence).mean()),
        right_q=(right_sak < np.diagonal(true_akv, axis1=-2, axis2=-1)).mean(axis=0).ravel(),
        p_i=summary.mean_ik[:, 1],
        true_i=yes_i.astype(float),
        covered_i=((summary.low_i <= shares_i + 1e-12) & (shares_i <= summary.high_i + 1e-12)).astype(float),
        alarmed=any(finding.alarms for finding in examine_laplace(consensus)),
    )


@dataclass(frozen=True)
class Calibration:
    """How the outcomes of many corpora lie.

    Parameters
    ----------
    corpora
        How many.
    prevalence_ks, prevalence_chance
        Distance of the prevalence's ranks from uniform ones, and the chance of one as large.
    prevalence_covered, right_covered, items_covered
        Share of 90% intervals that hold the truth.
    right_ks
        Distance of the diagonal cells' ranks from uniform ones.
    p, true, ece, log_loss
        Mean probability of the positive label, share of items that have it, mean gap between the two over ten bins of
        p, and log loss.
    alarms
        Share of corpora whose Pareto-k made the fit doubtful.
    """

    corpora: int
    prevalence_ks: float
    prevalence_chance: float
    prevalence_covered: float
    right_ks: float
    right_covered: float
    items_covered: float
    p: float
    true: float
    ece: float
    log_loss: float
    alarms: float


def calibrate(outcomes: Sequence[Outcome]) -> Calibration:
    """Sum up the outcomes of many corpora."""
    rank_c = np.array([one.prevalence for one in outcomes])
    right_q = np.concatenate([one.right_q for one in outcomes])
    p_i = np.concatenate([one.p_i for one in outcomes])
    true_i = np.concatenate([one.true_i for one in outcomes])
    test = kstest(rank_c, "uniform")
    safe_i = np.clip(p_i, 1e-12, 1.0 - 1e-12)
    return Calibration(
        corpora=len(outcomes),
        prevalence_ks=float(test.statistic),
        prevalence_chance=float(test.pvalue),
        prevalence_covered=_central(rank_c),
        right_ks=float(kstest(right_q, "uniform").statistic),
        right_covered=_central(right_q),
        items_covered=float(np.concatenate([one.covered_i for one in outcomes]).mean()),
        p=float(p_i.mean()),
        true=float(true_i.mean()),
        ece=sum(abs(gap) * share for _, _, gap, share in reliability(p_i, true_i)),
        log_loss=float(-np.mean(true_i * np.log(safe_i) + (1.0 - true_i) * np.log1p(-safe_i))),
        alarms=float(np.mean([one.alarmed for one in outcomes])),
    )


def _central(rank: Floats) -> float:
    tail = (1.0 - INTERVAL) / 2.0
    return float(np.mean((rank >= tail) & (rank <= 1.0 - tail)))


def reliability(p_i: Floats, true_i: Floats) -> Iterator[tuple[float, float, float, float]]:
    """By bin of p: its mean, the share that is truly positive, their gap, and the share of all items."""
    bin_i = np.minimum((p_i * BINS).astype(int), BINS - 1)
    for b in np.unique(bin_i):
        inside = bin_i == b
        p, true = float(p_i[inside].mean()), float(true_i[inside].mean())
        yield p, true, true - p, float(inside.mean())


def study(setting: Setting, method: str, *, corpora: int, jobs: int) -> list[Outcome]:
    """Simulate and fit many corpora of a setting, with the seeds 0, 1, 2 and so on."""
    if jobs == 1:
        return [outcome(setting, method, seed) for seed in range(corpora)]
    found = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for one in pool.map(outcome, [setting] * corpora, [method] * corpora, range(corpora), chunksize=4):
            found.append(one)
            print(f"\r  {setting.name}, {method}: {len(found)} of {corpora}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def table(rows: Sequence[tuple[Setting, str, Calibration]]) -> str:
    """Give all settings and methods in one table."""
    head = (
        "| setting | method | corpora | prevalence: 90% hold | ranks' distance | by chance | diagonals: 90% hold "
        "| ranks' distance | items: 90% hold | mean p | truly positive | ECE | log loss | Pareto-k alarms |\n"
        "| --- | --- " + "| ---: " * 12 + "|"
    )
    lines = [
        f"| {setting.name} | {method} | {one.corpora} | {one.prevalence_covered:.1%} | {one.prevalence_ks:.3f} "
        f"| {one.prevalence_chance:.2g} | {one.right_covered:.1%} | {one.right_ks:.3f} | {one.items_covered:.1%} "
        f"| {one.p:.3f} | {one.true:.3f} | {one.ece:.3f} | {one.log_loss:.3f} | {one.alarms:.1%} |"
        for setting, method, one in rows
    ]
    return "\n".join([head, *lines])


def rank_lines(found: Sequence[tuple[Setting, str, Sequence[Outcome]]]) -> str:
    """Give the histograms of the ranks: tenths of the corpora, which should all be a tenth."""
    head = "| setting | method | ranks of | " + " | ".join(f"{b / BINS:.1f}–" for b in range(BINS)) + " |"
    lines = [head, "| --- | --- | --- " + "| ---: " * BINS + "|"]
    for setting, method, outcomes in found:
        for what, rank in (
            ("prevalence", np.array([one.prevalence for one in outcomes])),
            ("diagonals", np.concatenate([one.right_q for one in outcomes])),
        ):
            share_b = np.histogram(rank, bins=BINS, range=(0.0, 1.0))[0] / len(rank)
            lines.append(f"| {setting.name} | {method} | {what} | " + " | ".join(f"{s:.1%}" for s in share_b) + " |")
    return "\n".join(lines)


def with_tables(page: str, text: str) -> str:
    """Put text between the markers of the page."""
    return put(page, "sbc", "studies/simulation_calibration.py", text)


def fragment(found: Sequence[tuple[Setting, str, Sequence[Outcome]]]) -> str:
    """Give everything that goes between the markers."""
    settings = dict.fromkeys(setting for setting, _, _ in found)
    facts = (
        f"moral-entropy {moral_entropy.__version__}; Laplace in two coordinates with {DRAWS} draws, NUTS with {CHAINS} "
        f"chains of {TUNE} + {SAMPLED} steps; seeds from 0. Ranks' distance is Kolmogorov and Smirnov's; \"by "
        'chance" is how often independent uniform ranks are as far.'
    )
    return "\n\n".join(
        [
            facts,
            "\n".join(f"- {setting.name}: {setting.meaning}." for setting in settings),
            table([(setting, method, calibrate(outcomes)) for setting, method, outcomes in found]),
            f"<details><summary>Ranks, by tenth</summary>\n\n{rank_lines(found)}\n\n</details>",
        ]
    )


def main() -> None:
    """Run the study and write its part of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=int, default=300, help="how many of each setting, with Laplace")
    parser.add_argument("--sampled", type=int, default=24, help="how many of each setting, with NUTS")
    parser.add_argument("--only", default="", help="methods, as jeffreys,NUTS; all by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    found = [
        (setting, method, study(setting, method, corpora=corpora, jobs=asked.jobs))
        for setting in SETTINGS
        for method, corpora in (*((one, asked.corpora) for one in (*LAPLACE, MIXED)), (NUTS, asked.sampled))
        if corpora and (not asked.only or method in asked.only.split(","))
    ]
    text = fragment(found)
    print(text)
    if not asked.dry:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
