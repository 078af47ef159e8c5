"""Which method is best for which kind of data? Ours and the public aggregators, on every set with gold and on twins.

Usage: league.py [--data ../shared/data] [--seconds 60] [--jobs 2] [--only NAME] [--kept] [--dry]. Writes
docs/evidence/league.md; with --dry only prints. Every method runs on every set in a process of its own, the other tools
in `.venv-peers`; what they answer is kept in .league, and a run that was stopped goes on where it was. Sets that are
not there are left out, with a word.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gold_sets import DATA
from league_page import page
from league_runs import NOT_RUN, Reported, Runs
from league_scores import Entry, Line, mean_scores, score
from league_sets import OURS, TOOLS, Source, kinds_of, sources
from league_words import Facts
from measure import ROOT, machine, say

from moral_entropy.votes.table import UNKNOWN, Ballot

PAGE = ROOT / "docs" / "evidence" / "league.md"
KEPT = ROOT / ".league"


def entries_of(source: Source, reports: dict[str, list[Reported]]) -> list[Entry]:
    """Score what was reported on a set: one entry per question; of a twin one for all, with means."""
    ballots = source.votes.ballots
    several = len(ballots) > 1
    lines = {key: [line_of(*pair) for pair in zip(ballots, reported, strict=True)] for key, reported in reports.items()}
    if source.is_twin:
        return [
            _entry(f"{source.name} twin", source, ballots[0], {key: mean_line(some) for key, some in lines.items()})
        ]
    return [
        _entry(
            f"{source.name}: {ballot.question}" if several else source.name,
            source,
            ballot,
            {key: some[b] for key, some in lines.items()},
        )
        for b, ballot in enumerate(ballots)
    ]


def _entry(name: str, source: Source, ballot: Ballot, lines: dict[str, Line]) -> Entry:
    return Entry(
        name=name,
        kinds=kinds_of(source.name, ballot),
        n_items=ballot.n_items,
        n_annotators=ballot.n_annotators,
        n_labels=ballot.n_labels,
        n_votes=ballot.n_votes,
        n_gold=int((ballot.gold_i != UNKNOWN).sum()),
        lines=lines,
    )


def line_of(ballot: Ballot, reported: Reported) -> Line:
    """Score one report against the gold of its question."""
    facts = reported.facts
    if reported.p_ik is None:
        return Line(None, failed=facts["failed"])
    known_i = np.flatnonzero(ballot.gold_i != UNKNOWN)
    scores = score(reported.p_ik[known_i], ballot.gold_i[known_i], labels_only=facts["labels_only"])
    return Line(scores, facts["cpu_seconds"])


def mean_line(lines: Sequence[Line]) -> Line:
    """Average over the questions of a twin, seconds added; one that failed leaves nothing to average."""
    failed = next((line.failed for line in lines if line.failed), "")
    if failed:
        return Line(None, failed=failed)
    return Line(mean_scores([line.scores for line in lines if line.scores]), sum(line.seconds or 0.0 for line in lines))


def main() -> None:
    """Run the league and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds that a method has per set")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", default="", help="only sets with this in their name; the page is left alone")
    parser.add_argument("--kept", action="store_true", help="run nothing; write the page from answers kept before")
    parser.add_argument("--dry", action="store_true", help="print the page and leave the file alone")
    asked = parser.parse_args()
    runs = Runs(KEPT, asked.seconds, 0 if asked.kept else asked.jobs)
    entries: list[Entry] = []
    left_out: list[str] = []
    versions: dict[str, str] = {}
    for source in sources(asked.data):
        if asked.only in source.name:
            say(f"{source.name}: {source.votes.n_votes:,} votes")
            reports = runs.on(source, TOOLS)
            # Without ours there is nothing to compare with.
            found = entries_of(source, reports)
            entries += [one for one in found if one.lines[OURS.key].failed != NOT_RUN]
            left_out += [one.name for one in found if one.lines[OURS.key].failed == NOT_RUN]
            versions |= {key.partition(":")[0]: one.facts["version"] for key, some in reports.items()
                         for one in some if "version" in one.facts}  # fmt: skip
    text = page(entries, Facts(versions, machine(), asked.seconds, tuple(left_out)))
    if asked.dry or asked.only:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        say(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
