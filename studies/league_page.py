"""The page of the league: the best method by kind of data, all methods by kind, head to head, and where ours loses.

Takes scored sets; returns the text of docs/evidence/league.md, and its long tables as CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from aggregators import OURS, PLURALITY, SHARE, TOOLS
from gold import number

if TYPE_CHECKING:
    from league import Entry

ALL, TWIN = "all real sets", "twins"
KINDS = {
    "people, few votes": "under 8 per item",
    "people, many votes": "8 per item or more",
    "LLM panels": "language models as annotators",
    "many labels": "4 or more, whoever voted",
    TWIN: "simulated moral corpora, truth and domains known",
}
PLAIN = {tool: tool.replace("*", "") for tool in TOOLS}
OPENING = """\
Our models and the public aggregators of votes, on every real set with gold at hand and on the three
[twins](../how-to/corpora.md) of moral corpora. No method sees gold, and all run with their defaults. `make studies`
writes this page."""
READING = """\
*Ratio* is the log loss over that of the smoothed vote share, (n_k + ½)/(n + K/2), as a geometric mean over sets: below
1 the probabilities are better than counting votes. Kinds overlap, and a kind with few sets decides little."""
LEGEND = """\
Mean accuracy / ratio of log losses, over the sets that the method answered (how many, in brackets, if not all). *CPU s*
is the median over sets, one thread, without importing and converting votes."""
DUELS = """\
On the real sets that the other method answered: how often the published p is right more often, as often and less often;
by how many points; its log loss over theirs."""
CAVEAT = """\
- **Home ground**: how the published p was chosen had these real sets in view, so its lead on them flatters it."""
MEASURED = """\
A method that needs more time or 8 GB has no answer. No probability counts as less than 1e-6. A tie of n labels is right
to 1/n. Ours are told the domains of items where a set has them; other tools have no place for them. CROWDLAB is made
for votes with a classifier; here it gets the share of each label among all votes. MMSR and IWMV give labels only. Where
an annotator voted twice on an item, ours and crowd-kit count both votes; the others take the last. A twin's figures are
means over its five foundations. Twins know nothing of the ways of real annotators that we did not put in: trust the
real sets more."""


def page(entries: Sequence[Entry], facts: str) -> str:
    """Return the whole page."""
    groups = by_kind(entries)
    parts = [
        "<!-- Written by studies/league.py: make studies -->",
        "# Which method for which kind of data?",
        OPENING,
        "## The best by kind",
        best_table(groups),
        READING,
        "## All methods by kind",
        f"{LEGEND} [The table](../data/league-kinds.csv).",
        "## Head to head with the published p",
        f"{DUELS} [The table](../data/league-duels.csv).",
        "## Where moral-entropy loses",
        "\n".join([CAVEAT, *losses(entries, groups)]),
        "## By set",
        "Accuracy/log loss; the standard error of an accuracy in points. [The table](../data/league-sets.csv).",
        "## How it was measured",
        f"{facts} {MEASURED}",
    ]
    return "\n\n".join(parts) + "\n"


def tables(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the long tables as CSV, by the name of the file in docs/data."""
    groups = by_kind(entries)
    lines = {
        "league-kinds.csv": kind_table(groups),
        "league-duels.csv": duel_table(groups.get(ALL, [])),
        "league-sets.csv": set_table(entries),
    }
    return {name: as_csv(table) for name, table in lines.items()}


def as_csv(table: str) -> str:
    r"""Return a Markdown table as CSV.

    Examples
    --------
    >>> as_csv("| a | b |\n| --- | --- |\n| **1** | 2, 3 |")
    'a,b\n1,"2, 3"\n'
    """
    text = io.StringIO()
    rows = [line.strip("| ").replace("**", "").split(" | ") for line in table.splitlines() if "---" not in line]
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def by_kind(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Sort the sets by kind, all real ones first; kinds without sets are left out."""
    groups = {ALL: [entry for entry in entries if TWIN not in entry.kinds]}
    groups |= {kind: [entry for entry in entries if kind in entry.kinds] for kind in KINDS}
    return {kind: some for kind, some in groups.items() if some}


def accuracy(entries: Sequence[Entry], tool: str) -> float | None:
    """Return the mean accuracy over sets; None if the method did not answer on all."""
    values = [entry.lines[tool].get("accuracy") for entry in entries]
    return None if None in values else float(np.mean(values))


def ratio(entries: Sequence[Entry], tool: str, against: str = SHARE) -> float | None:
    """Return the geometric mean of a method's log loss over another's; None if one did not answer on all sets."""
    pairs = [(entry.lines[tool].get("log_loss"), entry.lines[against].get("log_loss")) for entry in entries]
    if not pairs or any(None in pair for pair in pairs):
        return None
    return float(np.exp(np.mean([np.log(own / other) for own, other in pairs])))


def standing(entries: Sequence[Entry], figure: str) -> tuple[str, str, bool]:
    """Say who is best by a figure, where ours stands, and whether nobody is better than ours."""
    values = {tool: (accuracy if figure == "accuracy" else ratio)(entries, tool) for tool in TOOLS}
    rounded = {tool: round(value, 3) for tool, value in values.items() if value is not None}
    sign = -1 if figure == "accuracy" else 1
    best = min(rounded.values(), key=lambda value: sign * value)
    winners = " and ".join(PLAIN[tool] for tool, value in rounded.items() if value == best)
    own = rounded.get(OURS)
    if own is None:
        return f"{winners}: {number(best)}", "no answer", False
    place = 1 + sum(sign * value < sign * own for value in rounded.values())
    return f"{winners}: {number(best)}", f"{number(own)}, place {place} of {len(rounded)}", own == best


def best_table(groups: dict[str, list[Entry]]) -> str:
    """Lay out, for every kind, who is most often right and whose probabilities are best, and where ours stands."""
    lines = ["| kind of data | sets | most often right | best probabilities (ratio) | our accuracy | our ratio |",
             "| --- | ---: | --- | --- | --- | --- |"]  # fmt: skip
    for kind, entries in groups.items():
        (right, own_right, _), (sharp, own_ratio, _) = (standing(entries, figure) for figure in ("accuracy", "ratio"))
        name = f"**{kind}**" + (f": {KINDS[kind]}" if kind in KINDS else "")
        lines.append(f"| {name} | {len(entries)} | {right} | {sharp} | {own_right} | {own_ratio} |")
    return "\n".join(lines)


def kind_table(groups: dict[str, list[Entry]]) -> str:
    """Lay out accuracy and ratio of every method on every kind, and its seconds."""
    lines = [f"| method | {' | '.join(f'{kind} ({len(some)})' for kind, some in groups.items())} | CPU s |",
             "| --- |" + " --- |" * len(groups) + " ---: |"]  # fmt: skip
    for tool in TOOLS:
        cells = []
        for entries in groups.values():
            answered = [entry for entry in entries if "accuracy" in entry.lines[tool]]
            figures = [accuracy(answered, tool) if answered else None, ratio(answered, tool)]
            some = "" if len(answered) == len(entries) else f" ({len(answered)})"
            cells.append("/".join("–" if figure is None else number(figure) for figure in figures) + some)
        took = [
            entry.lines[tool]["seconds"] for some in groups.values() for entry in some if "seconds" in entry.lines[tool]
        ]
        lines.append(f"| {tool} | {' | '.join(cells)} | {f'{np.median(took):.2g}' if took else '–'} |")
    return "\n".join(lines)


def duel_table(entries: Sequence[Entry]) -> str:
    """Lay out every method against the published p, on the sets that the method answered."""
    lines = ["| against | sets | more often right | equal | less often | points | log loss over theirs |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for tool in TOOLS:
        both = [entry for entry in entries if "accuracy" in entry.lines[tool] and "accuracy" in entry.lines[OURS]]
        if tool != OURS and both:
            ahead = [round(-behind(entry, tool), 6) for entry in both]
            won, lost = sum(value > 0 for value in ahead), sum(value < 0 for value in ahead)
            over = ratio(both, OURS, tool)
            lines.append(
                f"| {PLAIN[tool]} | {len(both)} | {won} | {len(both) - won - lost} | {lost} "
                f"| {100 * np.mean(ahead):+.1f} | {'–' if over is None else number(over)} |"
            )
    return "\n".join(lines)


def behind(entry: Entry, tool: str) -> float:
    """Return by how much the published p is right less often than a method."""
    return float(entry.lines[tool].get("accuracy", 0.0) - entry.lines[OURS].get("accuracy", 0.0))


def standard_error(entry: Entry, tool: str) -> float:
    """Return how far an accuracy would differ on another sample of gold items."""
    share = entry.lines[tool].get("accuracy", 0.0)
    return float(np.sqrt(share * (1.0 - share) / entry.n_gold))


def losses(entries: Sequence[Entry], groups: dict[str, list[Entry]]) -> list[str]:
    """Say where the published p is not the best: by kind, against counting votes, and by set."""
    lines = []
    for kind, some in groups.items():
        for figure, name in (("accuracy", "accuracy"), ("ratio", "ratio of log losses")):
            winners, own, won = standing(some, figure)
            if not won:
                lines.append(f"- **{kind}**, {name}: {winners}; the published p: {own}.")
    plain = [f"{e.name} ({100 * behind(e, PLURALITY):.1f} points)" for e in entries
             if behind(e, PLURALITY) > standard_error(e, PLURALITY)]  # fmt: skip
    counting = [f"{e.name} ({number(r, 2)})" for e in entries if (r := ratio([e], OURS) or 0.0) > 1.0]
    return [
        *lines,
        f"- Right less often than the plurality by more than one standard error: {'; '.join(plain) or 'on no set'}.",
        f"- Log loss above that of the smoothed share (ratio): {'; '.join(counting) or 'on no set'}.",
    ]


def set_table(entries: Sequence[Entry]) -> str:
    """Lay out ours, counting votes and the most accurate other method on every set."""
    lines = ["| set | gold | published p | smoothed share | plurality | best of the others | ± |",
             "| --- | ---: | ---: | ---: | ---: | --- | ---: |"]  # fmt: skip
    others = [tool for tool in TOOLS if TOOLS[tool][0] != "moral-entropy"]
    for entry in entries:
        best = max(others, key=lambda tool, e=entry: e.lines[tool].get("accuracy", 0.0))
        cells = [_pair(entry.lines[tool]) for tool in (OURS, SHARE, PLURALITY)]
        cells.append(f"{PLAIN[best]}: {_pair(entry.lines[best])}")
        lines.append(
            f"| {entry.name} | {entry.n_gold:,} | {' | '.join(cells)} | {100 * standard_error(entry, OURS):.1f} |"
        )
    return "\n".join(lines)


def _pair(line: dict[str, float]) -> str:
    figures = [line.get("accuracy"), line.get("log_loss")]
    return "/".join("–" if figure is None else number(figure) for figure in figures)
