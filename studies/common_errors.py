"""Judges who err together on known answers: who is found, who is taken for one wrongly, and what real panels gain.

Usage: common_errors.py [--data ../shared/data] [--panels 200] [--only TABLE] [--dry]. Simulated panels: judges who err
each by itself, judges of whom some follow another, and judges who all err on the same hard items. Real panels with
gold: some answers are revealed, judges who err together on them are counted as one, and the labels of all other items
are held against gold, before and after; and whether scores hold the truth. Writes tables of docs/evidence/judges.md;
with --dry it only prints.

The bar, what joins a group of several, and what is usual in a panel were chosen on other seeds of the same simulated
designs; the real panels were looked at once, after that.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from gold_sets import DATA, PANEL, gold_votes
from judge_scores import HIJACKED, PAGE, made_panel
from page import write_parts

from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.judges.cast import cast_votes
from moral_entropy.judges.common_errors import CommonErrors, find_common_errors
from moral_entropy.judges.estimates import corrected_mean, gold_alone
from moral_entropy.judges.known import KnownItems, known_items
from moral_entropy.judges.recount import Recount, counted_by, fitted_again, recount, with_recount
from moral_entropy.judges.values import quantities
from moral_entropy.pipeline.audit import audit
from moral_entropy.runs.run import Run
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, Votes

KNOWN = (50, 100, 200, 500)
FIVE, NINE = (0.92, 0.86, 0.84, 0.82, 0.72), (0.92, 0.9, 0.88, 0.86, 0.84, 0.8, 0.75, 0.7, 0.65)
HARDNESS = {"a little": 1.0, "much": 2.0, "nearly all": 4.0}
"""How much of a judge's errors the hardness of an item explains: slope of the log odds to be right on a standard normal
hardness."""

FIRST_SEED = 10_000


def votes_of(panel: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return votes by judge and item, and the truth."""
    wide = panel.pivot(on="annotator", index=["item", "gold"], values="label").sort("item")
    return wide.drop("item", "gold").to_numpy().T.astype(np.int64), wide["gold"].to_numpy().astype(np.int64)


def hard_items(n_items: int, right: Sequence[float], slope: float, seed: int) -> tuple[Ints, Ints]:
    """Make votes of judges who all err more on hard items, and the truth."""
    rng = np.random.default_rng([seed, n_items])
    truth_i, hard_i, many = (rng.random(n_items) < 0.4) * 1, rng.normal(size=n_items), rng.normal(size=20_000)
    start = np.linspace(-12.0, 16.0, 600)
    mean = [(1.0 / (1.0 + np.exp(-(one + slope * many)))).mean() for one in start]
    at_j = np.interp(right, mean, start)
    right_ji = rng.random((len(right), n_items)) < 1.0 / (1.0 + np.exp(-(at_j[:, None] + slope * hard_i)))
    return np.where(right_ji, truth_i, 1 - truth_i), truth_i


def found_in(made: Iterator[tuple[Ints, Ints]]) -> list[CommonErrors]:
    """Look at panels."""
    return [find_common_errors(vote_ji, truth_i, 2) for vote_ji, truth_i in made]


def clean_row(name: str, panels: int, make: Callable[[int, int], tuple[Ints, Ints]]) -> str:
    """Return how often a panel without followers has a group, as a row of Markdown."""
    cells = []
    for n_known in KNOWN:
        found = found_in(make(n_known, FIRST_SEED + seed) for seed in range(panels))
        alarms, said = (np.mean([bool(one[at]) for one in found]) for at in (0, 1))
        cells.append(f"{alarms:.1%} ({said:.0%})")
    return f"| {name} | {' | '.join(cells)} |\n"


def clean_table(panels: int) -> str:
    """Return false alarms as Markdown."""
    rows = [
        clean_row(
            f"{len(right)} independent judges", panels,
            lambda n, seed, right=right: votes_of(made_panel(n, right, seed)),
        )
        for right in (FIVE, NINE)
    ]  # fmt: skip
    rows += [
        clean_row(
            f"{len(right)} judges, hardness explains {name}", panels,
            lambda n, seed, right=right, slope=slope: hard_items(n, right, slope, seed),
        )
        for name, slope in HARDNESS.items()
        for right in (FIVE, NINE)
    ]  # fmt: skip
    heads = " | ".join(f"{n} known" for n in KNOWN)
    return f"| panel | {heads} |\n|{' --- |' + ' --: |' * len(KNOWN)}\n" + "".join(rows)


def follower_table(panels: int) -> str:
    """Return how often the five of nine who are one bad judge are found, as Markdown."""
    rows = []
    for noise in (0.03, 0.1, 0.15, 0.2):
        cells = []
        for n_known in (30, *KNOWN):
            # The columns of the votes are in the order in which they were made: the last five are one.
            made = (
                votes_of(made_panel(n_known, HIJACKED, FIRST_SEED + s, copies=4, noise=noise)) for s in range(panels)
            )
            groups = [[group.judges for group in one.groups] for one in found_in(made)]
            whole = np.mean([one == [(4, 5, 6, 7, 8)] for one in groups])
            wrong = np.mean([any(j < 4 for group in one for j in group) for one in groups])
            cells.append(f"{np.mean([bool(one) for one in groups]):.0%}, {whole:.0%}, {wrong:.1%}")
        rows.append(f"| {noise:.0%} of the items | {' | '.join(cells)} |\n")
    heads = " | ".join(f"{n} known" for n in (30, *KNOWN))
    return f"| followers differ on | {heads} |\n|{' --- |' + ' --: |' * 5}\n" + "".join(rows)


def log_loss_and_accuracy(p_ik: Floats, gold_i: Ints) -> tuple[float, float]:
    """Hold labels against gold: nats per item, and the share that is right."""
    own_i = p_ik[np.arange(len(gold_i)), gold_i]
    return float(-np.log(np.maximum(own_i, 1e-12)).mean()), float((p_ik.argmax(axis=1) == gold_i).mean())


def revealed(known: KnownItems, n_known: int, seed: int) -> KnownItems:
    """Keep only some answers, at random."""
    at_i = np.flatnonzero(known.gold_i != UNKNOWN)
    kept = np.random.default_rng([seed, n_known]).choice(at_i, min(n_known, len(at_i) // 2), replace=False)
    return replace(known, gold_i=np.where(np.isin(np.arange(len(known.gold_i)), kept), known.gold_i, UNKNOWN))


def real_rows(name: str, votes: Votes, draws: int, repetitions: int) -> Iterator[str]:
    """Reveal answers of a real panel again and again, and hold the other items against gold."""
    run = quiet_audit(votes, draws)
    for question in run.questions:
        known = known_items(run, question)
        judged = known.gold_i != UNKNOWN
        before, after, groups = [], [], []
        again: dict[tuple[tuple[int, ...], ...], Recount] = {}
        for seed in range(repetitions):
            some = revealed(known, 200, seed)
            found = recount_once(run, some, again)
            others = judged & (some.gold_i == UNKNOWN)
            groups.append([found.names(group) for group in found.groups if found.is_new(group)])
            before.append(log_loss_and_accuracy(known.p_ik[others], known.gold_i[others]))
            after.append(log_loss_and_accuracy(with_recount(known, found).p_ik[others], known.gold_i[others]))
        n_known = int((some.gold_i != UNKNOWN).sum())
        title = name if len(run.questions) == 1 else f"{name}: {question.name}"
        print(f"  {title}: {groups[0]}", file=sys.stderr, flush=True)
        (loss, right), (loss_after, right_after) = np.mean(before, axis=0), np.mean(after, axis=0)
        yield (
            f"| {title} | {n_known} | {np.mean([bool(one) for one in groups]):.0%} | {loss:.3f} | {loss_after:.3f} | "
            f"{right:.1%} | {right_after:.1%} |\n"
        )


def held_row(run: Run, known: KnownItems, title: str, repetitions: int) -> str:
    """Draw items with replacement, reveal 200 answers, count judges who err together as one, and score: a row.

    The fit of a grouping is made once, on all items.
    """
    [quantity] = quantities(known.question)[:1]
    cast = cast_votes(run, known.question, known.items)
    truth = float(quantity.value_k[known.gold_i].mean())
    again: dict[tuple[tuple[int, ...], ...], KnownItems] = {}
    held, length, together = [], [], []
    for seed in range(repetitions):
        at_i = np.random.default_rng([seed, 200]).integers(0, len(known.gold_i), max(len(known.gold_i), 1_000))
        seen_i = at_i[:200]
        common = find_common_errors(cast.vote_ji[:, seen_i], known.gold_i[seen_i], len(known.question.labels))
        key = tuple(group.judges for group in common.groups)
        if key not in again:
            found = Recount(known.question.name, cast.judges, common, counted=counted_by(run, known.question.name))
            again[key] = with_recount(known, fitted_again(run, found))
        gold_i = np.where(np.arange(len(at_i)) < 200, known.gold_i[at_i], UNKNOWN)
        score = corrected_mean(gold_i, again[key].p_ik[at_i], quantity.value_k)
        alone = gold_alone(quantity.value_k[known.gold_i[seen_i]])
        held.append(score.low <= truth <= score.high)
        length.append((score.high - score.low) / (alone.high - alone.low))
        together.append(bool(key))
    print(f"  {title}: {len(again)} groupings", file=sys.stderr, flush=True)
    return f"| {title} | {np.mean(together):.0%} | {np.mean(held):.1%} | {np.mean(length):.2f} |\n"


def held_table(data: Path, repetitions: int) -> str:
    """Return whether scores hold the truth where known answers decide who is counted as one, as Markdown."""
    rows = []
    for name, votes in gold_votes(data, ("trecrag24_9judges", PANEL)):
        run = quiet_audit(votes, 0)
        for question in run.questions:
            title = name if len(run.questions) == 1 else f"{name}: {question.name}"
            known = known_items(run, question)
            known = known.take(np.flatnonzero(known.gold_i != UNKNOWN))
            rows.append(held_row(run, known, title, repetitions))
    return "| panel | a group is found | score holds it | length of score |\n| --- | --: | --: | --: |\n" + "".join(
        rows
    )


def recount_once(run: Run, known: KnownItems, again: dict[tuple[tuple[int, ...], ...], Recount]) -> Recount:
    """Count again, and remember the fit of groups that were found before."""
    found = recount(run, known)
    return again.setdefault(tuple(group.judges for group in found.groups), found)


def quiet_audit(votes: Votes, draws: int) -> Run:
    """Audit without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return audit(votes, draws=draws, report=False)


def real_table(data: Path, draws: int, repetitions: int) -> str:
    """Return what counting as one does to labels of real panels, as Markdown."""
    sets = gold_votes(data, ("llmbar_natural", "trecrag24_9judges", PANEL))
    rows = [row for name, votes in sets for row in real_rows(name, votes, draws, repetitions)]
    return (
        "| panel | known answers | a group is found | log loss of other items, before | after | right, before | after |"
        f"\n|{' --- |' + ' --: |' * 6}\n" + "".join(rows)
    )


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--panels", type=int, default=200, help="simulated panels per cell")
    parser.add_argument("--repetitions", type=int, default=20, help="times that answers of real panels are revealed")
    parser.add_argument("--draws", type=int, default=100, help="posterior draws per fit of real panels")
    parser.add_argument("--only", choices=("alarms", "followers", "counted", "held"), help="one table alone")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    made: dict[str, Callable[[], str]] = {
        "alarms": lambda: clean_table(asked.panels),
        "followers": lambda: follower_table(asked.panels),
        "counted": lambda: real_table(asked.data, asked.draws, asked.repetitions),
        "held": lambda: held_table(asked.data, asked.panels),
    }
    parts = {name: make() for name, make in made.items() if asked.only in (None, name)}
    print("\n\n".join(parts.values()))
    if not asked.dry:
        write_parts(PAGE, "common_errors.py", parts)


if __name__ == "__main__":
    main()
