"""Scores of judges: whether their intervals hold the truth and are short, and whether judges are ranked rightly.

Usage: judge_scores.py [--data ../shared/data] [--draws 100] [--repetitions 200] [--more 1000] [--dry]. Fits every panel
once. In each repetition items are drawn with replacement, the answers of some are revealed, and the mean over the whole
set is estimated: by the score, by prediction-powered inference, and by the known answers alone. Then panels with a
hijacker are made, to see who is ranked first, and panels with copies, to see what their votes are worth. Writes the
tables of docs/evidence/judges.md; with --dry it only prints.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from gold_sets import DATA, PANEL, ROOT, gold_votes
from page import write_parts

import moral_entropy
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.judges.estimates import Estimate, corrected_mean, gold_alone, ppi_mean
from moral_entropy.judges.score import score
from moral_entropy.judges.table import describe_judges
from moral_entropy.judges.values import quantities
from moral_entropy.pipeline.audit import audit
from moral_entropy.runs.run import Question, Run
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, Votes

PAGE = ROOT / "docs" / "evidence" / "judges.md"
GOLD = (50, 200, 500)
LEAST_ITEMS, MOST_ITEMS = 1_000, 4_000
"""Items drawn in a repetition: as many as the set has, within these."""


@dataclass(frozen=True, eq=False)
class JudgedSet:
    """A fitted panel with known answers. Axes: **i** item, **k** label.

    Parameters
    ----------
    name
        The set, and the question where it has several.
    p_ik, share_ik
        What the consensus says, and the shares of the votes.
    gold_i
        The answers.
    value_k
        What each label counts.
    """

    name: str
    p_ik: Floats
    share_ik: Floats
    gold_i: Ints
    value_k: Floats

    @property
    def truth(self) -> float:
        """The mean over the whole set."""
        return float(self.value_k[self.gold_i].mean())


@dataclass(frozen=True)
class Measured:
    """What was found over the repetitions with so many known answers.

    Parameters
    ----------
    held, ppi_held, gold_held
        Share of intervals that hold the truth: of the score, of PPI++, and of known answers alone.
    length, ppi_length
        Length of the interval, relative to that of known answers alone, on average.
    agree
        Share of repetitions in which the interval of PPI++ holds the score.
    held_more, length_more
        As `held` and `length`, over more repetitions.
    """

    name: str
    n_gold: int
    held: float
    ppi_held: float
    gold_held: float
    length: float
    ppi_length: float
    agree: float
    held_more: float
    length_more: float


def judged(name: str, found: QuestionFit, told: dict[str, float] | None = None) -> JudgedSet:
    """Take from a fit what a score needs, on the items with known answers."""
    ballot = found.ballot
    known = np.flatnonzero((ballot.gold_i != UNKNOWN) & (ballot.votes_i > 0))
    positive = ballot.labels[ballot.positive] if ballot.n_labels == 2 else None
    [quantity] = quantities(Question(ballot.question, ballot.labels, positive), told)
    counts_ik = ballot.counts_ik[known]
    return JudgedSet(
        name,
        found.p_ik[known],
        counts_ik / counts_ik.sum(axis=1, keepdims=True),
        ballot.gold_i[known].astype(np.int64),
        quantity.value_k,
    )


def fitted(votes: Votes, draws: int) -> tuple[QuestionFit, ...]:
    """Fit without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, draws=draws).fits


def real_sets(data: Path, draws: int) -> Iterator[JudgedSet]:
    """Fit the public panels that are there."""
    for name, votes in gold_votes(data, ("llmbar_natural", "trecrag24_9judges", PANEL)):
        fits = fitted(votes, draws)
        yield from (judged(name if len(fits) == 1 else f"{name}: {one.question}", one) for one in fits)
    votes_file = data / "pandalm_test" / "votes.csv"
    if votes_file.is_file():
        yield pandalm(votes_file, draws)


def pandalm(file: Path, draws: int) -> JudgedSet:
    """Let the two models of PandaLM judge, and the majority of its people be the answer; three opinions are a tie."""
    votes = pl.read_csv(file, infer_schema_length=0)
    human = pl.col("annotator").str.starts_with("human")
    label = pl.col("label").mode().first()
    gold = votes.filter(human).group_by("item").agg(
        gold=pl.when(pl.col("label").n_unique() == 3).then(pl.lit("0")).otherwise(label)
    )  # fmt: skip
    read = read_votes(votes.filter(~human), gold_file=gold)
    [found] = fitted(read, draws)
    return judged("pandalm_test (people's majority)", found, {"1": 1.0, "2": 0.0, "0": 0.5})


def made_panel(
    n_items: int, right: Sequence[float], seed: int, *, copies: int = 0, shared: float = 0.0, noise: float = 0.03
) -> pl.DataFrame:
    """Make votes of judges who are right that often.

    Parameters
    ----------
    n_items, right, seed
        Items, how often each judge is right, and the seed.
    copies
        Judges who say what the last one says, but for the noise.
    shared
        Share of the items on which all are wrong together.
    noise
        Share of the items on which a copy differs.
    """
    rng = np.random.default_rng([seed, n_items, copies])
    truth_i = rng.random(n_items) < 0.4
    seen_i = np.where(rng.random(n_items) < shared, ~truth_i, truth_i)
    cast = {f"judge{j}": np.where(rng.random(n_items) < one, seen_i, ~seen_i) for j, one in enumerate(right)}
    for c in range(copies):
        last_i = cast[f"judge{len(right) - 1}"]
        cast[f"copy{c}"] = np.where(rng.random(n_items) < noise, ~last_i, last_i)
    return pl.concat(
        [
            pl.DataFrame({"item": np.arange(n_items), "annotator": name, "label": vote_i * 1, "gold": truth_i * 1})
            for name, vote_i in cast.items()
        ]
    )  # fmt: skip


def made_sets(draws: int, n_items: int = 4_000) -> Iterator[JudgedSet]:
    """Fit simulated panels: independent, with copies of the weakest, with errors that all share, and one judge."""
    good = (0.92, 0.86, 0.84, 0.82, 0.72)
    for name, right, given in (
        ("simulated: five independent judges", good, {}),
        ("simulated: and two copies of the weakest", good, {"copies": 2}),
        ("simulated: all wrong together on 15%", good, {"shared": 0.15}),
        ("simulated: one judge, 80% right", (0.8,), {}),
    ):
        [found] = fitted(read_votes(made_panel(n_items, right, 1, **given)), draws)
        yield judged(name, found)


def estimates(one: JudgedSet, n_gold: int, seed: int) -> tuple[Estimate, Estimate, Estimate]:
    """Draw items, reveal some answers, and estimate the mean in three ways."""
    rng = np.random.default_rng([seed, n_gold])
    size = min(max(len(one.gold_i), LEAST_ITEMS), MOST_ITEMS)
    at_i = rng.integers(0, len(one.gold_i), size)
    gold_i = np.where(np.arange(size) < n_gold, one.gold_i[at_i], UNKNOWN)
    truth_g, share_i = one.value_k[gold_i[:n_gold]], one.share_ik[at_i] @ one.value_k
    return (
        corrected_mean(gold_i, one.p_ik[at_i], one.value_k),
        ppi_mean(truth_g, share_i[:n_gold], share_i[n_gold:]),
        gold_alone(truth_g),
    )


def measure(one: JudgedSet, n_gold: int, repetitions: int, more: int = 0) -> Measured:
    """Estimate again and again; then more often, to see the score's interval more exactly."""
    found = [estimates(one, n_gold, seed) for seed in range(max(repetitions, more))]
    held = np.array([[each.low <= one.truth <= each.high for each in row] for row in found])
    length = np.array([[each.high - each.low for each in row] for row in found])
    score, ppi, gold = held[:repetitions].mean(axis=0)
    ratio = length[:, :2] / length[:, 2:]
    agree = np.mean([ppi.low <= main.value <= ppi.high for main, ppi, _ in found[:repetitions]])
    shorter = ratio[:repetitions].mean(axis=0).tolist()
    return Measured(
        one.name, n_gold, score, ppi, gold, *shorter, float(agree), float(held[:, 0].mean()), float(ratio[:, 0].mean())
    )


HIJACKED = (0.9, 0.86, 0.84, 0.8, 0.7)
"""How often the judges of a hijacked panel are right. Four more follow the last: five of nine are one bad judge."""

RANKED_BY = {"standing": "standing", "score": "right_all", "known": "right"}


@dataclass
class Ranked:
    """What was found on hijacked panels: in how many of them the best judge is first, and intervals of the judges.

    Parameters
    ----------
    first
        Panels in which the best judge is first, by what it is ranked by.
    held, length
        By judge and panel, whether the interval of how right a judge is holds the truth, and how long it is relative to
        that of known answers alone.
    score_held, score_length
        By panel, the same of the score of all items.
    """

    first: dict[str, int]
    held: list[bool]
    length: list[float]
    score_held: list[bool]
    score_length: list[float]


def quiet_audit(votes: pl.DataFrame) -> Run:
    """Audit without a word and without draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return audit(votes, draws=0, report=False)


def some_known(votes: pl.DataFrame, n_gold: int = 200) -> pl.DataFrame:
    """Reveal the answers of the first items alone."""
    return votes.with_columns(gold=pl.when(pl.col("item") < n_gold).then(pl.col("gold")))


def ranked_first(panels: int, noise: float) -> Ranked:
    """Look at hijacked panels with 200 of 1,000 answers known: who is first, and whether the intervals hold."""
    found = Ranked(dict.fromkeys([*RANKED_BY, "votes"], 0), [], [], [], [])
    right = dict(zip([f"judge{j}" for j in range(5)], HIJACKED, strict=True))
    right |= {f"copy{c}": HIJACKED[-1] * (1.0 - noise) + (1.0 - HIJACKED[-1]) * noise for c in range(4)}
    for seed in range(panels):
        votes = made_panel(1_000, HIJACKED, seed, copies=4, noise=noise)
        run = quiet_audit(some_known(votes))
        judges = run.judges
        for name, column in RANKED_BY.items():
            found.first[name] += judges.sort(column, "judge")["judge"][-1] == "judge0"
        blind = quiet_audit(votes.drop("gold")).judges
        found.first["votes"] += blind.sort("agrees", "judge")["judge"][-1] == "judge0"
        for row in judges.iter_rows(named=True):
            found.held.append(row["right_all_low"] <= right[row["judge"]] <= row["right_all_high"])
            found.length.append((row["right_all_high"] - row["right_all_low"]) / (row["right_high"] - row["right_low"]))
        [row] = score(run).frame.to_dicts()
        # Items are a sample: the share of yes is 40%.
        found.score_held.append(row["low"] <= 0.4 <= row["high"])
        found.score_length.append((row["high"] - row["low"]) / (row["gold_high"] - row["gold_low"]))
    return found


def rank_table(panels: int) -> str:
    """Return who is ranked first, as Markdown: hijackers who copy one another, and who only follow."""
    head = (
        "| four more judges follow the worst, but for | panels | best judge first | by % right alone | by known "
        "answers alone | without known answers | interval of % right holds it | its length | "
        f"interval of the score holds it | its length |\n|{' --- |' + ' --: |' * 9}\n"
    )
    rows = []
    for noise in (0.03, 0.1, 0.15, 0.2):
        found = ranked_first(panels, noise)
        cells = [f"{count / panels:.1%}" for count in found.first.values()]
        cells += [f"{np.mean(found.held):.1%}", f"{np.mean(found.length):.2f}"]
        cells += [f"{np.mean(found.score_held):.1%}", f"{np.mean(found.score_length):.2f}"]
        rows.append(f"| {noise:.0%} of the items | {panels} | {' | '.join(cells)} |\n")
    return head + "".join(rows)


def worth_of(right: Sequence[float], copies: int, panels: int, n_gold: int) -> list[float]:
    """Return what the votes of simulated panels are worth; copies should be worth nothing."""
    found = []
    for seed in range(panels):
        run = quiet_audit(some_known(made_panel(1_000, right, 1_000 + seed, copies=copies), n_gold))
        found.append(float(describe_judges(run).effective_votes["effective"][0]))
    return found


def score_table(rows: Sequence[Measured]) -> str:
    """Return the table of scores as Markdown."""
    head = (
        "| panel | known answers | score holds it | more often | PPI++ holds it | known alone holds it | length of "
        f"score | of PPI++ | PPI++ holds the score |\n|{' --- |' + ' --: |' * 8}\n"
    )
    return head + "".join(
        f"| {row.name} | {row.n_gold} | {row.held:.0%} | {row.held_more:.1%} | {row.ppi_held:.0%} | "
        f"{row.gold_held:.0%} | {row.length:.2f} | {row.ppi_length:.2f} | {row.agree:.0%} |\n"
        for row in rows
    )


def summary(rows: Sequence[Measured], repetitions: int, more: int) -> str:
    """Say in words how many hold what they promise."""
    often = [row.held_more for row in rows]
    longer = [row for row in rows if row.length_more >= 1.0]
    exceptions = "; ".join(f"{row.name} with {row.n_gold}: {row.length_more:.2f}" for row in longer) or "none"
    within = [row for row in rows if 0.85 <= round(row.held, 3) <= 0.95]
    shorter = [row for row in rows if row.length < 1.0]
    apart = [row for row in rows if row not in within]
    missed = "; ".join(f"{row.name} with {row.n_gold}: {row.held:.0%}" for row in apart) or "none"
    return (
        f"Of {len(rows)} rows, {len(within)} hold the truth in 85% to 95% of {repetitions:,} repetitions (not: "
        f"{missed}); in {len(shorter)} the score's interval is shorter than that of the known answers alone, on "
        f"average {np.mean([row.length for row in rows]):.2f} of it. Over {more:,} repetitions the rows hold the "
        f"truth in {min(often):.1%} to {max(often):.1%}; not shorter than known answers alone: {exceptions}."
    )


def worth_table(panels: int) -> str:
    """Return what votes are worth on simulated designs, as Markdown."""
    rows = []
    four, six = (0.9, 0.85, 0.8, 0.75), (0.9, 0.88, 0.85, 0.8, 0.8, 0.75)
    for right, copies in ((six, 0), (four, 1), (six, 2), (four, 3), (six, 6), (four[:3], 2)):
        cells = []
        for n_gold in (0, 200):
            worth = worth_of(right, copies, panels, n_gold)
            near = np.mean([abs(one - len(right)) <= 0.1 * len(right) for one in worth])
            cells += [f"{np.mean(worth):.2f}", f"{np.min(worth):.2f} to {np.max(worth):.2f}", f"{near:.0%}"]
        rows.append(f"| {len(right)} judges, {copies} copies of the last | {len(right)} | {' | '.join(cells)} |\n")
    return (
        "| design | votes are worth | found, mean | least to most | within 10% | with 200 known answers | least to "
        f"most | within 10% |\n|{' --- |' + ' --: |' * 7}\n" + "".join(rows)
    )


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--draws", type=int, default=100, help="posterior draws per fit")
    parser.add_argument("--repetitions", type=int, default=200, help="repetitions per row, and panels")
    parser.add_argument("--more", type=int, default=1_000, help="repetitions that measure the score more exactly")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    rows = []
    for one in [*real_sets(asked.data, asked.draws), *made_sets(asked.draws)]:
        print(f"  {one.name}: {len(one.gold_i):,} items, truth {one.truth:.3f}", file=sys.stderr, flush=True)
        rows += [measure(one, n_gold, asked.repetitions, asked.more) for n_gold in GOLD]
    facts = (
        f"moral-entropy {moral_entropy.__version__}, {asked.draws} draws, {asked.repetitions} repetitions, seed 0; "
        f"more often: {asked.more:,} repetitions."
    )
    parts = {
        "scores": f"{facts}\n\n{score_table(rows)}\n{summary(rows, asked.repetitions, asked.more)}",
        "ranks": rank_table(asked.repetitions),
        "worth": worth_table(max(asked.repetitions // 10, 1)),
    }
    print("\n\n".join(parts.values()))
    if not asked.dry:
        write_parts(PAGE, "judge_scores.py", parts)


if __name__ == "__main__":
    main()
