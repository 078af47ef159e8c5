"""How often each diagnostic rings, where it should not and where it should.

Clean corpora have independent annotators better than chance and plenty of votes: whatever rings there is a false alarm.
Troubled corpora have one thing wrong, made on purpose: the diagnostic for it should ring, and name whom it concerns.

Usage: false_alarms.py [--corpora 200] [--troubled 50] [--jobs 2] [--dry]. Writes a table of
docs/evidence/validation.md; with --dry only prints.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from page import put

import moral_entropy
from moral_entropy.checks.sides import CHEAP, SIDES, examine
from moral_entropy.consensus.fit import fit
from moral_entropy.corpora.simulate import simulate_votes
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.findings import Finding
from moral_entropy.votes.table import Ballot, Ints, Votes, ballot_from_codes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "validation.md"
DRAWS = 400
NOT_HERE = ("nuts",)
"""Sides that take too long to run on hundreds of corpora."""

ITEMS, ANNOTATORS, VOTES = 1_000, 12, 5

FIRST_SEED = 1_000
"""Thresholds were looked at on the corpora of lower seeds; the study counts on others."""


@dataclass(frozen=True)
class Trouble:
    """Something wrong, made on purpose.

    Parameters
    ----------
    name
        In a few words.
    make
        Gives votes for a seed.
    figures
        The diagnostics that should ring; one is enough.
    subjects
        Whom they should name, any one of these; nothing where there is nobody to name.
    sides
        Sides to examine beyond the cheap ones.
    """

    name: str
    make: Callable[[int], Votes]
    figures: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()


def clean(seed: int, *, votes: float = VOTES, annotators: int = ANNOTATORS) -> Votes:
    """Draw independent votes of annotators who are right with chances of 0.6 to 0.9."""
    return simulate_votes(n_items=ITEMS, n_annotators=annotators, votes_per_item=votes, seed=seed).votes


def with_labels(votes: Votes, change: Callable[[Ints, Ints, Ints], Ints]) -> Votes:
    """Change some votes: `change` takes item, annotator and label of every vote and gives the labels anew."""
    ballot = votes.ballots[0]
    item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
    annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    label_v = change(item_v, annotator_v, label_v)
    return replace(votes, ballots=(_ballot(ballot, item_v, annotator_v, label_v, ballot.gold_i),))


def _ballot(like: Ballot, item_v: Ints, annotator_v: Ints, label_v: Ints, truth_i: Ints) -> Ballot:
    return ballot_from_codes(
        like.question,
        like.labels,
        item_v=item_v,
        annotator_v=annotator_v,
        label_v=label_v,
        item_i=like.item_i,
        annotator_a=like.annotator_a,
        gold_i=truth_i,
    )


def adversary(seed: int) -> Votes:
    """Let annotator 3 say the opposite of what they think."""
    return with_labels(clean(seed), lambda _item_v, who_v, label_v: np.where(who_v == 3, 1 - label_v, label_v))


def copied(seed: int, *, annotators: int = ANNOTATORS) -> Votes:
    """Let annotator 4 say what annotator 1 said, on every item that both vote on."""

    def change(item_v: Ints, who_v: Ints, label_v: Ints) -> Ints:
        said_i = np.full(ITEMS, -1)
        said_i[item_v[who_v == 1]] = label_v[who_v == 1]
        copies_v = (who_v == 4) & (said_i[item_v] >= 0)
        return np.where(copies_v, said_i[item_v], label_v)

    return with_labels(clean(seed, annotators=annotators), change)


def two_teams(seed: int, *, links: int, reversed_team: bool = False) -> Votes:
    """Give annotators 0 to 5 the first half of the items and 6 to 11 the second, and both some items of the first."""
    rng = np.random.default_rng([seed, 5])
    truth_i = rng.random(ITEMS) < 0.5
    right_a = rng.uniform(0.7, 0.9, size=ANNOTATORS)
    pairs = [(i, a + 6 * (i >= ITEMS // 2)) for i in range(ITEMS) for a in rng.choice(6, size=4, replace=False)]
    pairs += [(i, 6 + a) for i in range(links) for a in rng.choice(6, size=2, replace=False)]
    item_v, who_v = np.array(pairs).T
    right_v = rng.random(len(item_v)) < right_a[who_v]
    label_v = np.where(right_v, truth_i[item_v], ~truth_i[item_v])
    label_v = np.where((who_v >= 6) & reversed_team, ~label_v, label_v)
    votes = clean(seed)
    ballot = _ballot(votes.ballots[0], item_v, who_v, label_v.astype(int), truth_i.astype(int))
    return replace(votes, ballots=(ballot,))


def shared_difficulty(seed: int) -> Votes:
    """Make half of the items a coin toss for everyone: votes then err together."""
    rng = np.random.default_rng([seed, 6])
    hard_i = rng.random(ITEMS) < 0.5

    def change(item_v: Ints, _who_v: Ints, label_v: Ints) -> Ints:
        return np.where(hard_i[item_v], rng.integers(2, size=len(label_v)), label_v)

    sharp = simulate_votes(
        n_items=ITEMS, n_annotators=ANNOTATORS, votes_per_item=VOTES, seed=seed, accuracy=(0.9, 0.99)
    ).votes
    return with_labels(sharp, change)


TEAMS = ("0 · 1 · 2 · 3 and 2 more", "6 · 7 · 8 · 9 and 2 more")
COPIES = ("1, 4", "4, 1")
SECOND_TEAM = tuple(map(str, range(6, 12)))
TROUBLES = (
    Trouble("an adversarial annotator among 12", adversary, ("below_chance",), ("3",)),
    Trouble("a reversed team of 6, one link", partial(two_teams, links=1, reversed_team=True), ("switch_cost",), TEAMS),
    Trouble(
        "a reversed team of 6, 60 links",
        partial(two_teams, links=60, reversed_team=True),
        ("switch_cost", "below_chance"),
        (*TEAMS, *SECOND_TEAM),
    ),
    Trouble("a disconnected group", partial(two_teams, links=0), ("groups",)),
    Trouble("copied votes, 2 of 12", copied, ("near_copies",), COPIES),
    Trouble("copied votes, 2 of 6", partial(copied, annotators=6), ("near_copies",), COPIES),
    Trouble(
        "items hard for all",
        shared_difficulty,
        ("predicted_votes_pattern", "excess_agreement", "typical_excess"),
        (),
        ("dependence",),
    ),
    Trouble("thin data: 1.3 votes per item", partial(clean, votes=1.3), ("votes_per_item",)),
    Trouble("800 annotators with 6 votes each", partial(clean, annotators=800), ("hardly_known",)),
)


def sides_here() -> tuple[str, ...]:
    """Return the sides that are quick enough."""
    return tuple(side for side in SIDES if side not in NOT_HERE)


def findings(votes: Votes, sides: Sequence[str]) -> list[Finding]:
    """Fit and examine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        consensus = fit(votes, draws=DRAWS)
        return [finding for side in sides for finding in examine(consensus, side)]


def clean_findings(sides: tuple[str, ...], seed: int) -> list[Finding]:
    """Examine one clean corpus."""
    return findings(clean(seed), sides)


def troubled_findings(n: int, seed: int) -> list[Finding]:
    """Examine one corpus with a trouble."""
    trouble = TROUBLES[n]
    return findings(trouble.make(seed), (*CHEAP, *trouble.sides))


def ringing(found: Sequence[Finding]) -> set[tuple[str, str]]:
    """Give side and figure of everything that rings."""
    return {(finding.side, finding.figure) for finding in found if finding.alarms}


def in_words(figure: str) -> str:
    """Name a figure as pages do."""
    return "worse than guessing" if figure == "below_chance" else figure.replace("_", " ")


def clean_table(corpora: Sequence[Sequence[Finding]]) -> str:
    """Count in how many clean corpora each diagnostic rings; a line a figure that has a level to it."""
    looked = dict.fromkeys((f.side, f.figure) for found in corpora for f in found)
    rang = Counter(key for found in corpora for key in ringing(found))
    anything = sum(bool(ringing(found)) for found in corpora)
    lines = [
        f"| {side} | {in_words(figure)} | {rang[side, figure]} | {rang[side, figure] / len(corpora):.1%} |"
        for side, figure in looked
        if rang[side, figure]
    ]
    silent = Counter(side for side, figure in looked if not rang[side, figure])
    quiet = "; ".join(f"{side} {count}" for side, count in silent.items())
    return "\n".join(
        [
            "| side | figure | false alarms | rate |",
            "| --- | --- | ---: | ---: |",
            *lines,
            f"| any of them | | {anything} | {anything / len(corpora):.1%} |",
            "",
            f"Figures that never rang, by side: {quiet}.",
        ]
    )


def trouble_line(trouble: Trouble, corpora: Sequence[Sequence[Finding]]) -> str:
    """Count in how many troubled corpora the right diagnostic rings, and names the right one first."""
    right = [[f for f in found if f.alarms and f.figure in trouble.figures] for found in corpora]
    found = sum(bool(alarms) for alarms in right)
    named = sum(bool(alarms) and first_named(alarms[0]) in trouble.subjects for alarms in right)
    others = Counter(figure for some in corpora for _, figure in ringing(some) if figure not in trouble.figures)
    also = [f"{in_words(name)} {count / len(corpora):.0%}" for name, count in others.most_common(4)]
    also = [text for text in also if int(text.rsplit(" ", 1)[1][:-1]) >= 10]
    figures = ", ".join(in_words(figure) for figure in trouble.figures)
    who = f"{named / len(corpora):.0%}" if trouble.subjects else "–"
    return f"| {trouble.name} | {figures} | {found / len(corpora):.0%} | {who} | {', '.join(also) or '–'} |"


def first_named(alarm: Finding) -> str:
    """Return whom an alarm is about; of several annotators below chance, the surest of them."""
    return alarm.subject.split(", ")[0].split(" and ")[0] if alarm.figure == "below_chance" else alarm.subject


def over_seeds(what: str, examine_one: Callable[[int], list[Finding]], n: int, jobs: int) -> list[list[Finding]]:
    """Examine the corpora of consecutive seeds."""
    return list(_all(what, examine_one, n, jobs))


def _all(what: str, examine_one: Callable[[int], list[Finding]], n: int, jobs: int) -> Iterator[list[Finding]]:
    if jobs == 1:
        yield from map(examine_one, range(FIRST_SEED, FIRST_SEED + n))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done, found in enumerate(pool.map(examine_one, range(FIRST_SEED, FIRST_SEED + n)), start=1):
            print(f"\r  {what}: {done} of {n}   ", end="", file=sys.stderr, flush=True)
            yield found
    print(file=sys.stderr)


def report(corpora: int, troubled: int, jobs: int) -> str:
    """Run the study and give its text."""
    sides = sides_here()
    calm = over_seeds("clean", partial(clean_findings, sides), corpora, jobs)
    lines = [
        trouble_line(trouble, over_seeds(trouble.name, partial(troubled_findings, n), troubled, jobs))
        for n, trouble in enumerate(TROUBLES)
    ]
    facts = (
        f"moral-entropy {moral_entropy.__version__}; {corpora} clean corpora ({ITEMS:,} items, {ANNOTATORS} annotators "
        f"right with chances of 0.6 to 0.9, {VOTES} votes per item), examined from {len(sides)} sides "
        f"({', '.join(sides)}); {troubled} corpora of each trouble; {DRAWS} draws per fit; seeds from {FIRST_SEED:,}."
    )
    head = "| made on purpose | should ring | rang | named rightly | also rang |\n| --- | --- | ---: | ---: | --- |"
    return "\n".join([facts, "", clean_table(calm), "", head, *lines])


def with_tables(page: str, text: str) -> str:
    """Put text between the markers of the page."""
    return put(page, "alarms", "studies/false_alarms.py", text)


def main() -> None:
    """Run the study and write its part of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=int, default=200, help="clean corpora")
    parser.add_argument("--troubled", type=int, default=50, help="corpora of each trouble")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    text = report(asked.corpora, asked.troubled, asked.jobs)
    print(text)
    if not asked.dry:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
