"""The page of the league: the best method by kind of data first, then where ours loses, then a table per set.

Takes scored sets; returns the text of docs/evidence/league.md, all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from league_runs import NOT_RUN
from league_scores import DIGITS, Entry, Line, Scores, Summary, summarise
from league_sets import KINDS, OURS, PLURALITY, SHARE, TOOLS, TWIN
from league_words import CAVEAT, HEAD_TO_HEAD, LEGEND, OPENING, READING, Facts, measured
from real_gold import number

KEYS = tuple(tool.key for tool in TOOLS)
NAMES = {tool.key: tool.name for tool in TOOLS}
PLAIN = {key: name.replace("*", "") for key, name in NAMES.items()}
ALL = "all real sets"
NONE = "–"


def page(entries: Sequence[Entry], facts: Facts) -> str:
    """Return the whole page."""
    groups = by_kind(entries)
    parts = [
        "<!-- Written by studies/league.py: make league -->",
        "# Which method for which kind of data?",
        OPENING,
        *missing(entries, facts.left_out),
        "## The best by kind",
        best_table(groups),
        READING,
        "## All methods by kind",
        LEGEND,
        kind_table(entries, groups),
        "## Head to head with the published p",
        HEAD_TO_HEAD,
        duel_table(groups[ALL]) if ALL in groups else "No real set is at hand.",
        "## Where moral-entropy loses",
        *lost(entries, groups),
        "## How it was measured",
        measured(facts),
        "## By set",
        "Best figures are bold. A dash: the method gives labels only, or no answer.",
        *(part for kind in KINDS for entry in entries if entry.kinds[0] == kind for part in set_part(entry)),
    ]
    return "\n\n".join(parts) + "\n"


def missing(entries: Sequence[Entry], left_out: Sequence[str] = ()) -> list[str]:
    """Say how many figures and which sets are still to come; nothing if all are there."""
    lines = [line for entry in entries for line in entry.lines.values()]
    n_missing = sum(line.failed == NOT_RUN for line in lines)
    parts = [f"{n_missing} of {len(lines)} lines are not run yet, and rank last"] * (n_missing > 0)
    parts += [f"sets not run yet: {', '.join(left_out)}"] * bool(left_out)
    return [f"**Not complete**: {'; '.join(parts)}."] if parts else []


def by_kind(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Sort the sets by kind, all real ones first; kinds without sets are left out."""
    groups = {ALL: [entry for entry in entries if TWIN not in entry.kinds]}
    groups |= {kind: [entry for entry in entries if kind in entry.kinds] for kind in KINDS}
    return {kind: some for kind, some in groups.items() if some}


def best_table(groups: dict[str, list[Entry]]) -> str:
    """Lay out, for every kind, who is most often right and whose probabilities are best, and where ours stands."""
    lines = [
        "| kind of data | sets | most often right | best probabilities (ratio) | our accuracy | our ratio |",
        "| --- | ---: | --- | --- | --- | --- |",
    ]
    for kind, entries in groups.items():
        sums = {key: summarise(entries, key, SHARE.key) for key in KEYS}
        accuracy, ratio = _standing(sums, "accuracy"), _standing(sums, "ratio")
        called = f"**{kind}**" + (f": {KINDS[kind]}" if kind in KINDS else "")
        lines.append(
            f"| {called} | {len(entries)} | {accuracy.winners} | {ratio.winners} | {accuracy.ours} | {ratio.ours} |"
        )
    return "\n".join(lines)


@dataclass(frozen=True)
class Standing:
    """Who is best by one figure, and where ours stands, in words; `won` if nobody is better than ours."""

    winners: str
    ours: str
    won: bool


def _standing(sums: dict[str, Summary], figure: str) -> Standing:
    better: Callable[[float], float] = (lambda value: -value) if figure == "accuracy" else (lambda value: value)
    found = {key: round(value, 3) for key, one in sums.items() if (value := getattr(one, figure)) is not None}
    if not found:
        return Standing(NONE, NONE, won=False)
    best = min(found.values(), key=better)
    winners = " and ".join(PLAIN[key] for key, value in found.items() if value == best)
    own = found.get(OURS.key)
    if own is None:
        return Standing(f"{winners}: {number(best)}", NONE, won=False)
    place = 1 + sum(better(value) < better(own) for value in found.values())
    return Standing(f"{winners}: {number(best)}", f"{number(own)}, place {place} of {len(found)}", won=own == best)


def kind_table(entries: Sequence[Entry], groups: dict[str, list[Entry]]) -> str:
    """Lay out rank, accuracy and ratio of every method on every kind, and its seconds."""
    sums = {kind: {key: summarise(some, key, SHARE.key) for key in KEYS} for kind, some in groups.items()}
    lines = [
        f"| method | {' | '.join(f'{kind} ({len(some)})' for kind, some in groups.items())} | CPU s |",
        "| --- |" + " --- |" * len(groups) + " ---: |",
    ]
    for key in KEYS:
        cells = [_summary_cell(key, sums[kind], len(groups[kind])) for kind in groups]
        took = [line.seconds for entry in entries if (line := entry.lines[key]).seconds is not None]
        lines.append(f"| {NAMES[key]} | {' | '.join(cells)} | {_short(float(np.median(took)) if took else None)} |")
    return "\n".join(lines)


def _summary_cell(key: str, sums: dict[str, Summary], n_sets: int) -> str:
    one = sums[key]
    accuracy = _bold(one.accuracy, [other.accuracy for other in sums.values()], max)
    ratio = _bold(one.ratio, [other.ratio for other in sums.values()], min)
    some = "" if one.n_answered == n_sets else f" ({one.n_answered} of {n_sets})"
    return f"{one.rank:.1f} / {accuracy} / {ratio}{some}"


def _bold(value: float | None, among: Sequence[float | None], best: Callable[[list[float]], float]) -> str:
    """Write a figure to three digits, bold where none is better to these digits."""
    if value is None:
        return NONE
    top = best([round(other, 3) for other in among if other is not None])
    return f"**{number(value)}**" if round(value, 3) == top else number(value)


def duel_table(entries: Sequence[Entry]) -> str:
    """Lay out every method against the published p, on the sets that the method answered."""
    lines = [
        "| against | sets | published p more often right | equal | less often | points | log loss over theirs |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for key in KEYS:
        some = [entry for entry in entries if entry.accuracy(key) is not None and entry.accuracy(OURS.key) is not None]
        if key != OURS.key and some:
            ahead = [round(-_behind(entry, key), DIGITS) for entry in some]
            won, lost_ = sum(value > 0 for value in ahead), sum(value < 0 for value in ahead)
            # No score of theirs: labels only.
            ratio = summarise(some, OURS.key, key).ratio
            lines.append(
                f"| {PLAIN[key]} | {len(some)} | {won} | {len(some) - won - lost_} | {lost_} "
                # Adding 0 makes a minus zero a plus.
                f"| {round(100 * float(np.mean(ahead)), 1) + 0.0:+.1f} | {NONE if ratio is None else number(ratio)} |"
            )
    return "\n".join(lines)


def lost(entries: Sequence[Entry], groups: dict[str, list[Entry]]) -> list[str]:
    """Say where the published p is not the best: by kind, against the plain vote, and by set."""
    lines = [CAVEAT]
    for kind, some in groups.items():
        sums = {key: summarise(some, key, SHARE.key) for key in KEYS}
        for figure, called in (("accuracy", "accuracy"), ("ratio", "ratio of log losses")):
            standing = _standing(sums, figure)
            if not standing.won and standing.ours != NONE:
                lines.append(f"- **{kind}**, {called}: {standing.winners}; the published p: {standing.ours}.")
    plain = [
        f"{entry.name} ({_points(entry, PLURALITY.key)})"
        for entry in entries
        if _behind(entry, PLURALITY.key) > entry.standard_error(PLURALITY.key)
    ]
    counting = [f"{entry.name} ({number(_ratio(entry), 2)})" for entry in entries if _ratio(entry) > 1.0]
    beaten = [
        f"{entry.name} by {PLAIN[best]} ({_points(entry, best)})"
        for entry in entries
        if _behind(entry, best := _most_right(entry)) > 2.0 * entry.standard_error(best)
    ]
    lines += [
        f"- Right less often than the plurality by more than one standard error: {'; '.join(plain) or 'on no set'}.",
        f"- Log loss above that of the smoothed share (ratio): {'; '.join(counting) or 'on no set'}.",
        f"- Behind the most accurate method by more than two standard errors: {'; '.join(beaten) or 'on no set'}.",
    ]
    return ["\n".join(lines)]


def _behind(entry: Entry, key: str) -> float:
    return (entry.accuracy(key) or 0.0) - (entry.accuracy(OURS.key) or 0.0)


def _points(entry: Entry, key: str) -> str:
    return f"{100 * _behind(entry, key):.1f} points"


def _ratio(entry: Entry) -> float:
    own, share = entry.log_loss(OURS.key), entry.log_loss(SHARE.key)
    return own / share if own is not None and share is not None else 0.0


def _most_right(entry: Entry) -> str:
    return max(KEYS, key=lambda key: round(entry.accuracy(key) or 0.0, DIGITS))


def set_part(entry: Entry) -> list[str]:
    """Return the heading, the facts and the table of one set."""
    error = 100 * max(entry.standard_error(key) for key in KEYS)
    facts = (
        f"{', '.join(entry.kinds).capitalize()}; {entry.n_labels} labels, {entry.n_items:,} items, "
        f"{entry.n_annotators:,} annotators, {entry.n_votes / entry.n_items:.1f} votes per item, "
        f"{entry.n_gold:,} with gold. One standard error of an accuracy is at most {error:.1f} points."
    )
    head = (
        "| method | accuracy | log loss | Brier | ECE | clipped | CPU s |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    scores = [line.scores for line in entry.lines.values() if line.scores]
    rows = [_row(key, entry.lines[key], scores) for key in KEYS]
    return [f"### {entry.name}", facts, "\n".join([head, *rows])]


def _row(key: str, line: Line, among: Sequence[Scores]) -> str:
    own = line.scores
    if own is None:
        return f"| {NAMES[key]} | {line.failed.replace('|', '/')} | | | | | |"
    cells = [_bold(own.accuracy, [one.accuracy for one in among], max)]
    for figure in ("log_loss", "brier", "ece"):
        cells.append(_bold(getattr(own, figure), [getattr(one, figure) for one in among], min))
    cells.append(NONE if own.log_loss is None else f"{own.n_clipped:,}")
    undefined = f", no number for {own.n_undefined:,} items" if own.n_undefined else ""
    return f"| {NAMES[key]}{undefined} | {' | '.join(cells)} | {_short(line.seconds)} |"


def _short(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}" if seconds >= 0.1 else f"{seconds:.2f}"
