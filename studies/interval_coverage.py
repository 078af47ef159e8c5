"""How often do the audit's intervals hold the truth? Simulated corpora, where the truth is known.

Each corpus is drawn from annotators and a prevalence that we know. With those the posterior of every item can be
written down, and with it the rates of every rule: the truth. The fit sees only the votes; its interval either covers
the truth or it does not. The share of corpora in which it does should be the interval's mass.

Usage: interval_coverage.py [--model default] [--corpora 200] [--jobs 2] [--dry]. Writes the table of that model between
its markers of docs/evidence/coverage.md; with --dry only prints. The truth is the same for both models. With --real,
real votes instead: rates against the consensus are held against those against gold, on the items that have gold.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from gold import DATA, gold_votes, put

import moral_entropy
from moral_entropy import Ballot, Priors, Votes, audit_rules, fit, simulate_votes
from moral_entropy.corpora.simulate import SimulatedVotes
from moral_entropy.names import ALL, MEAN, MULTICLASS

Floats = np.ndarray

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "coverage.md"
RULES = ("any", "majority", "two-vote")
METRICS = ("fpr", "fnr", "expected_fpr", "expected_fnr")
INTERVAL, DRAWS = 0.9, 400
AIM = (0.85, 0.95)
PLACES = {
    "paper": "coverage of the paper's model",
    "default": "coverage of the default model",
    "real": "coverage on real votes",
}
LEAST_KNOWN = 10
"""Least number of items that a gold rate is a share of."""

PLACES_BETWEEN = 100
"""Places between the labels over which the true posterior is added up."""


@dataclass(frozen=True)
class Setting:
    """A kind of corpus; every corpus of it has annotators of its own.

    Parameters
    ----------
    name
        A word for the tables.
    n_items, n_annotators, votes_per_item, prevalence
        As in `simulate_votes`.
    sensitivity, specificity
        Ranges the annotators' own are drawn from.
    told
        Whether the fit's prior says what those ranges and the prevalence are. Then it cannot be the prior that
        makes an interval miss.
    between
        Share of the items that lie between the labels, anywhere.
    """

    name: str
    n_items: int
    n_annotators: int
    votes_per_item: float
    prevalence: float
    sensitivity: tuple[float, float] = (0.5, 0.8)
    specificity: tuple[float, float] = (0.85, 0.95)
    told: bool = False
    between: float = 0.0

    @property
    def meaning(self) -> str:
        """Say it in a line."""
        return (
            f"{self.n_items:,} items, {self.n_annotators} annotators, {self.votes_per_item:g} votes per item, "
            f"prevalence {self.prevalence:g}, sensitivities {self.sensitivity[0]:g}–{self.sensitivity[1]:g}, "
            f"specificities {self.specificity[0]:g}–{self.specificity[1]:g}; "
            f"{'a prior that knows them' if self.told else 'the default prior'}"
            f"{f'; {self.between:.0%} of the items lie between the labels' if self.between else ''}"
        )

    def priors(self, simulated: SimulatedVotes) -> Priors:
        """Return the prior of the fit: the package's default, or one with the mean and spread of the ranges."""
        if not self.told:
            return Priors()
        beta_kv = np.array([_beta(self.specificity), _beta(self.sensitivity)[::-1]])
        # Pseudo-votes come on top of the flat prior's 1.
        pseudo_votes = dict.fromkeys(simulated.votes.annotators.to_list(), beta_kv - 1.0)
        alpha = (100 * (1.0 - self.prevalence), 100 * self.prevalence)
        return Priors(prevalence=alpha, diagonal=1.0, off_diagonal=1.0, annotators=pseudo_votes)


def _beta(ends: tuple[float, float]) -> tuple[float, float]:
    """Return the Beta distribution (right, wrong) with the mean and variance of a uniform one."""
    mean, variance = sum(ends) / 2, (ends[1] - ends[0]) ** 2 / 12
    votes = mean * (1.0 - mean) / variance - 1.0
    return votes * mean, votes * (1.0 - mean)


SETTINGS = (
    Setting("Plenty", 1_500, 12, 5, 0.3),
    Setting("Plenty, more items", 6_000, 12, 5, 0.3),
    Setting("Four votes", 1_500, 12, 4, 0.3),
    Setting("Four votes, more items", 6_000, 12, 4, 0.3),
    Setting("Four votes, prior told", 1_500, 12, 4, 0.3, told=True),
    Setting("Thin", 1_500, 12, 1.3, 0.3),
    Setting("Thin, prior told", 1_500, 12, 1.3, 0.3, told=True),
    Setting("Plenty, a quarter between labels", 1_500, 12, 5, 0.3, between=0.25),
    Setting("Four votes, half between labels", 1_500, 12, 4, 0.3, between=0.5),
    Setting("Many annotators", 1_500, 300, 4, 0.3),
)


@dataclass(frozen=True)
class Outcome:
    """One figure of one corpus: the truth, and what the audit said.

    Parameters
    ----------
    rule, metric
        Which figure.
    truth
        Its value under the true parameters; NaN where the denominator is empty.
    value, low, high
        The audit's figure and interval; NaN where it has none.
    """

    rule: str
    metric: str
    truth: float
    value: float
    low: float
    high: float

    @property
    def counts(self) -> bool:
        """Whether both sides have a figure."""
        return not np.isnan([self.truth, self.low]).any()

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth; its ends count, to rounding."""
        return bool(self.low - 1e-9 <= self.truth <= self.high + 1e-9)


def vote_again(simulated: SimulatedVotes, place_i: Floats, rng: np.random.Generator) -> SimulatedVotes:
    """Let everybody vote again on the same items, which now lie at other places."""
    [ballot] = simulated.votes.ballots
    as_v = (rng.random(ballot.n_votes) < np.repeat(place_i, ballot.votes_i)).astype(int)
    annotator_v = ballot.code_v // 2
    yes_v = rng.random(ballot.n_votes) < simulated.confusion_akv[ballot.annotator_a[annotator_v], as_v, 1]
    code_v = (2 * annotator_v + yes_v).astype(ballot.code_v.dtype)
    return replace(simulated, votes=replace(simulated.votes, ballots=(replace(ballot, code_v=code_v),)))


def posterior_of_places(ballot: Ballot, confusion_akv: Floats, place_z: Floats, prior_z: Floats) -> Floats:
    """Return P(yes | votes) of every item, whose place is one of `place_z` with the chances `prior_z`: `p_i`.

    `confusion_akv` is of the annotators of the ballot.
    """
    annotator_v, label_v = np.divmod(ballot.code_v, 2)
    no_v, yes_v = confusion_akv[annotator_v, :, label_v].T
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    log_iz = np.empty((ballot.n_items, len(place_z)))
    for z, place in enumerate(place_z):
        log_iz[:, z] = np.bincount(item_v, weights=np.log(place * yes_v + (1 - place) * no_v), minlength=ballot.n_items)
    weight_iz = np.exp(log_iz - log_iz.max(axis=1, keepdims=True)) * prior_z
    return np.asarray(weight_iz @ place_z / weight_iz.sum(axis=1))


def simulate(setting: Setting, seed: int) -> SimulatedVotes:
    """Draw annotators within the setting's ranges, and their votes."""
    rng = np.random.default_rng([seed, 17])
    right_ak = np.column_stack(
        [rng.uniform(*side, size=setting.n_annotators) for side in (setting.specificity, setting.sensitivity)]
    )
    confusion_akv = np.empty((setting.n_annotators, 2, 2))
    for k in (0, 1):
        confusion_akv[:, k, k], confusion_akv[:, k, 1 - k] = right_ak[:, k], 1.0 - right_ak[:, k]
    simulated = simulate_votes(
        n_items=setting.n_items,
        n_annotators=setting.n_annotators,
        votes_per_item=setting.votes_per_item,
        prevalence_k=[1.0 - setting.prevalence, setting.prevalence],
        confusion_akv=confusion_akv,
        seed=seed,
    )
    if not setting.between:
        return simulated
    between_i = rng.random(setting.n_items) < setting.between
    return vote_again(simulated, np.where(between_i, rng.random(setting.n_items), simulated.truth_i), rng)


def true_posterior(simulated: SimulatedVotes, between: float = 0.0) -> Floats:
    """Return P(positive | votes) of every item at the parameters the votes were drawn from: `p_i`."""
    [ballot] = simulated.votes.ballots
    place_z = np.concatenate([[0.0, 1.0], (np.arange(PLACES_BETWEEN) + 0.5) / PLACES_BETWEEN])
    inner_z = np.full(PLACES_BETWEEN, between / PLACES_BETWEEN)
    prior_z = np.concatenate([(1 - between) * simulated.prevalence_k, inner_z])
    return posterior_of_places(ballot, simulated.confusion_akv[ballot.annotator_a], place_z, prior_z)


def true_rates(simulated: SimulatedVotes, between: float = 0.0) -> dict[tuple[str, str], float]:
    """Return the rates of every rule against the posterior at the true parameters, by rule and metric."""
    ballot = simulated.votes.ballots[0]
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    yes_i = np.bincount(item_v, weights=ballot.code_v % 2, minlength=ballot.n_items)
    said_ri = {"any": yes_i >= 1, "majority": 2 * yes_i >= ballot.votes_i, "two-vote": yes_i >= 2}
    p_i = true_posterior(simulated, between)
    rates = {}
    for rule in RULES:
        for name, weight_i in (("", (p_i >= 0.5).astype(float)), ("expected_", p_i)):
            rates[rule, f"{name}fpr"] = _mean(said_ri[rule], 1.0 - weight_i)
            rates[rule, f"{name}fnr"] = _mean(~said_ri[rule], weight_i)
    return rates


def _mean(value_i: np.ndarray, weight_i: Floats) -> float:
    total = weight_i.sum()
    return float((value_i * weight_i).sum() / total) if total > 0 else float("nan")


def outcomes(setting: Setting, seed: int, model: str = "default") -> list[Outcome]:
    """Simulate a corpus, audit it, and hold every figure against the truth."""
    simulated = simulate(setting, seed)
    with warnings.catch_warnings():
        # That thin data is thin is what the study is about.
        warnings.simplefilter("ignore")
        priors = setting.priors(simulated)
        fitted = {
            "priors": priors,
            **({} if model == "default" else {"model": model}),
            "draws": DRAWS,
            "seed": seed,
            "interval": INTERVAL,
        }
        consensus = fit(simulated.votes, **fitted, threads=1)
        table = audit_rules(simulated.votes, consensus, rules=RULES, reference="consensus", threads=1)
    pooled = table.frame.filter(question=ALL, domain=ALL, label=ALL)
    found = {(row["rule"], row["metric"]): row for row in pooled.iter_rows(named=True)}
    truth = true_rates(simulated, setting.between)
    return [
        Outcome(rule, metric, truth[rule, metric], *_figures(found[rule, metric]))
        for rule in RULES
        for metric in METRICS
    ]


def _figures(row: dict[str, float | None]) -> tuple[float, float, float]:
    value, low, high = (
        float("nan") if row[name] is None else float(row[name] or 0.0) for name in ("value", "low", "high")
    )
    return value, low, high


@dataclass(frozen=True)
class Coverage:
    """How one figure fared over all corpora of a setting.

    Parameters
    ----------
    rule, metric
        Which figure.
    corpora
        Those in which both sides have it.
    covered
        In how many the interval holds the truth.
    below, above
        In how many the whole interval lies below the truth, and above it.
    truth, value, width
        Means of the truth, of the audit's figure and of the interval's width.
    """

    rule: str
    metric: str
    corpora: int
    covered: int
    below: int
    above: int
    truth: float
    value: float
    width: float

    @property
    def share(self) -> float:
        """Share of corpora that are covered."""
        return self.covered / self.corpora if self.corpora else float("nan")

    @property
    def verdict(self) -> str:
        """Say where the share lies."""
        if not self.corpora:
            return "no figure"
        if self.width == 0.0 and self.covered == self.corpora:
            return "nothing to miss"
        return "**below**" if self.share < AIM[0] else "**above**" if self.share > AIM[1] else "within"


def summarise(found: Sequence[Outcome]) -> list[Coverage]:
    """Count, figure by figure, in how many corpora the interval holds the truth."""
    rows = []
    for metric in METRICS:
        for rule in RULES:
            same = [one for one in found if (one.rule, one.metric) == (rule, metric) and one.counts]
            covered = sum(one.covered for one in same)
            below = sum(not one.covered and one.high < one.truth for one in same)
            above = len(same) - covered - below
            told = np.array([(one.truth, one.value, one.high - one.low) for one in same]).reshape(-1, 3)
            truth, value, width = told.mean(axis=0).tolist() if same else [float("nan")] * 3
            rows.append(Coverage(rule, metric, len(same), covered, below, above, truth, value, width))
    return rows


def study(setting: Setting, *, corpora: int, jobs: int, model: str = "default") -> list[Coverage]:
    """Simulate and audit many corpora of a setting, with the seeds 0, 1, 2 and so on."""
    return summarise([one for found in _all_outcomes(setting, corpora, jobs, model) for one in found])


def _all_outcomes(setting: Setting, corpora: int, jobs: int, model: str) -> Iterator[list[Outcome]]:
    if jobs == 1:
        yield from (outcomes(setting, seed, model) for seed in range(corpora))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done, found in enumerate(
            pool.map(outcomes, [setting] * corpora, range(corpora), [model] * corpora), start=1
        ):
            print(f"\r  {setting.name}: {done} of {corpora}", end="", file=sys.stderr, flush=True)
            yield found
    print(file=sys.stderr)


def table(results: Sequence[tuple[Setting, Sequence[Coverage]]]) -> str:
    """Return the settings as a Markdown table: the least and the mean share covered, and the figures below the aim."""
    lines = [
        "| setting | expected rates: covered | yes-or-no rates: covered | below the aim |",
        "| --- | --- | --- | --- |",
    ]
    for setting, rows in results:
        cells = []
        for expected in (True, False):
            shares = [row.share for row in rows if row.corpora and row.metric.startswith("expected_") == expected]
            cells.append(f"{np.mean(shares):.0%} (least {min(shares):.0%})" if shares else "–")
        missed = [f"{row.rule} {row.metric} {row.share:.0%}" for row in rows if row.verdict == "**below**"]
        lines.append(f"| **{setting.name}**: {setting.meaning} | {' | '.join(cells)} | {'; '.join(missed) or 'none'} |")
    return "\n".join(lines)


def real_outcomes(votes: Votes) -> Iterator[tuple[Outcome, Outcome]]:
    """Audit real votes; hold the rates against the consensus against those against gold, on the items with gold.

    Yields pairs: the rate with the gold one as its truth, and the gold rate with its own interval.
    """
    known_i = np.zeros(votes.n_items, dtype=np.int32)
    for ballot in votes.ballots:
        known_i[ballot.item_i[ballot.gold_i < 0]] = 1
    votes = replace(votes, domains=("known", "unknown"), domain_i=known_i)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consensus = fit(votes, draws=DRAWS, seed=0, interval=INTERVAL, domain_prevalence="off")
        table = audit_rules(votes, consensus, rules=RULES, reference="both").frame
    rows = table.filter(pl.col("question") != ALL, pl.col("question") != MEAN, domain="known")
    rows = rows.filter(~pl.col("label").is_in([ALL, MULTICLASS]))
    key = ("question", "label", "rule", "metric")
    gold = {tuple(row[name] for name in key): row for row in rows.filter(reference="gold").iter_rows(named=True)}
    for row in rows.filter(pl.col("metric").is_in(METRICS), reference="consensus").iter_rows(named=True):
        metric = row["metric"].removeprefix("expected_")
        known = gold[row["question"], row["label"], row["rule"], metric]
        truth, low, high = _figures(known)
        if np.isnan(truth) or known["n"] < LEAST_KNOWN or truth in (0.0, 1.0):
            continue
        rule = row["rule"]
        yield Outcome(rule, row["metric"], truth, *_figures(row)), Outcome(rule, metric, truth, truth, low, high)


def real_section(data: Path) -> str:
    """Return the table of real votes in Markdown."""
    lines, every = [], []
    for name, votes in gold_votes(data):
        found = list(real_outcomes(votes))
        every += found
        lines.append(_real_line(name, found))
    head = (
        "| set | rates | expected rates hold the gold rate | or its interval | mean distance | width "
        "| yes-or-no rates hold it | or its interval |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    return "\n".join([head, *lines, _real_line("all", every)])


def _real_line(name: str, found: Sequence[tuple[Outcome, Outcome]]) -> str:
    cells = [name]
    for expected in (True, False):
        some = [pair for pair in found if pair[0].metric.startswith("expected_") == expected]
        held = np.mean([one.covered for one, _ in some])
        met = np.mean([one.low <= known.high and known.low <= one.high for one, known in some])
        if expected:
            off = np.mean([abs(one.value - one.truth) for one, _ in some])
            width = np.mean([one.high - one.low for one, _ in some])
            cells += [str(len(some)), f"{held:.0%}", f"{met:.0%}", f"{off:.3f}", f"{width:.3f}"]
        else:
            cells += [f"{held:.0%}", f"{met:.0%}"]
    return f"| {' | '.join(cells)} |"


def with_tables(page: str, text: str, model: str = "default") -> str:
    """Put text between the model's markers of the page."""
    return put(page, PLACES[model], "studies/interval_coverage.py", text)


def main() -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("default", "paper"), default="default", help="which model is fitted")
    parser.add_argument("--only", default="", help="names of settings, as Plenty;Thin; all by default")
    parser.add_argument("--corpora", type=int, default=200, help="how many of each setting")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    parser.add_argument("--real", action="store_true", help="real votes with gold in place of simulated ones")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real sets")
    asked = parser.parse_args()
    if asked.real:
        text = f"moral-entropy {moral_entropy.__version__}, {DRAWS} draws, seed 0.\n\n{real_section(asked.data)}"
        print(text)
        if not asked.dry:
            PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), text, "real"), encoding="utf-8")
        return
    some = [one for one in SETTINGS if not asked.only or one.name in asked.only.split(";")]
    how = {"corpora": asked.corpora, "jobs": asked.jobs, "model": asked.model}
    made = table([(one, study(one, **how)) for one in some])
    facts = (
        f"moral-entropy {moral_entropy.__version__}, the {asked.model} model; {asked.corpora} corpora per setting, "
        f"{DRAWS} draws per fit, {INTERVAL:.0%} intervals, seeds 0 to {asked.corpora - 1}."
    )
    text = f"{facts}\n\n{made}"
    print(text)
    if not asked.dry:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), text, asked.model), encoding="utf-8")


if __name__ == "__main__":
    main()
