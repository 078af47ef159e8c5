"""First screens of ten runs: kept in docs/data/first-screens.txt, 25 lines at most, every figure counted again.

`REWRITE_GOLDEN=1` writes the page anew; read the diff.
"""

from __future__ import annotations

import math
import os
import random
import re
import warnings
from collections import Counter
from functools import cache
from itertools import permutations
from pathlib import Path
from statistics import NormalDist, mean, median_low

import numpy as np
import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.verdict.summary import Summary

PAGE = Path(__file__).parents[2] / "docs" / "data" / "first-screens.txt"
ROW = r"  (\S+) +α +(-?[\d.]+)(?: ordered)? +(\d+)% +(\d+)% +(\d+)–(\d+)%"
FOUR = {"ann": 0.95, "bob": 0.9, "cem": 0.85, "dua": 0.75}
MODELS = {"gpt-4o": 0.9, "claude-3-5-sonnet": 0.9, "llama-3-70b": 0.75, "qwen2-72b": 0.8, "gemini-1.5-pro": 0.85}


def drawn(seed, labels=("no", "yes"), people=FOUR, items=60, asked=0.9, question="label"):
    """Draw votes: item, annotator, question, label; who errs names another label, on a scale one beside the truth."""
    draw, rows = random.Random(seed), []
    for item in range(items):
        truth = draw.randrange(len(labels))
        for name, skill in people.items():
            if draw.random() < asked:
                wrong = [k for k in range(len(labels)) if k != truth and (len(labels) < 5 or abs(k - truth) == 1)]
                said = truth if draw.random() < skill else draw.choice(wrong)
                rows.append((f"t{item:02}", name, question, labels[said]))
    return rows


def copies():
    """One of five annotators repeats every answer of another."""
    rows = drawn(5, people=FOUR | {"eve": 0.8})
    return rows + [(item, "eve2", question, label) for item, name, question, label in rows if name == "eve"]


SCREENS = {
    "One question, four annotators": drawn(1),
    "Three questions": [row for n, name in enumerate(("care", "loyalty", "purity")) for row in drawn(n, question=name)],
    "Ratings from 1 to 5": drawn(3, labels=tuple("12345")),
    "A panel of language models": drawn(4, labels=("fail", "pass"), people=MODELS),
    "One annotator copies another": copies(),
    "Thin: about one vote per item": drawn(6, people=dict.fromkeys("abcdef", 0.85), asked=0.2),
    "Forty questions": [row for n in range(40) for row in drawn(n, items=25, question=f"q{n:02}")],
    "Four labels": drawn(8, labels=("anger", "fear", "joy", "trust")),
    "Two annotators": drawn(9, people={"ann": 0.9, "bob": 0.8}, asked=1.0),
    "Somebody guesses": drawn(10, people=FOUR | {"eli": 0.5}),
}


@cache
def audited(name):
    table = pl.DataFrame(SCREENS[name], schema=["item", "annotator", "question", "label"], orient="row")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return me.audit(table, draws=60, report=False)


def screen(name, width):
    return Summary(audited(name)).lines(width)


def test_there_are_ten():
    assert len(SCREENS) == 10


def test_the_page_is_as_it_was():
    parts = ["\n".join([name, "=" * len(name), *screen(name, 80)]) for name in SCREENS]
    text = "First screens of ten simulated runs, as tests/golden/test_screens.py makes them.\n\n" + "\n\n".join(parts)
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(text + "\n", encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text + "\n", "screens changed; `make golden` if they should have"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_has_25_lines_at_most(name, width):
    lines = screen(name, width)
    assert len(lines) <= 25
    assert max(map(len, lines)) <= width


def alpha(rows, *, ordered):
    """Krippendorff's alpha from its definition: coincidences of pairs of votes on an item."""
    by_item = {}
    for item, _, _, label in rows:
        by_item.setdefault(item, []).append(label)
    pairs, levels = Counter(), sorted({row[3] for row in rows})
    for votes in by_item.values():
        for pair in permutations(votes, 2):
            pairs[pair] += 1 / (len(votes) - 1)
    total = {a: sum(pairs[a, b] for b in levels) for a in levels}

    def distance(a, b):
        if not ordered:
            return float(a != b)
        low, high = sorted((levels.index(a), levels.index(b)))
        return (sum(total[k] for k in levels[low : high + 1]) - (total[a] + total[b]) / 2) ** 2

    seen = sum(n * distance(*pair) for pair, n in pairs.items())
    chance = sum(total[a] * total[b] * distance(a, b) for a in levels for b in levels)
    return 1 - (sum(total.values()) - 1) * seen / chance


def wrong_ends(rows, part, *, two):
    """Between which shares are wrong, as docs/concepts/what-votes-can-say.md has it; the paper's model by plain EM."""
    # Of identical annotators the first alone counts.
    own = [row for row in rows if row[1] != "eve2"]
    items, people, labels = (sorted({row[column] for row in own}) for column in (0, 1, 3))
    cast = np.zeros((len(items), len(people), len(labels)))
    for item, name, _, label in own:
        cast[items.index(item), people.index(name), labels.index(label)] = 1
    p_ik = cast.sum(axis=1) / cast.sum(axis=(1, 2))[:, None]
    before = np.zeros_like(p_ik)
    while np.abs(p_ik - before).max() > 1e-9:
        before = p_ik
        rows_akv = np.einsum("ik,iav->akv", p_ik, cast) + 0.2 + 0.6 * np.eye(len(labels))
        rows_akv /= rows_akv.sum(axis=2, keepdims=True)
        odds_ik = p_ik.mean(axis=0) * np.exp(np.einsum("iav,akv->ik", cast, np.log(rows_akv)))
        p_ik = odds_ik / odds_ik.sum(axis=1, keepdims=True)
    label_of = dict(part.select("item", "label").iter_rows())
    paper = [1 - p_ik[i, labels.index(label_of[item])] for i, item in enumerate(items)]
    admitted = [min(p, 1 - p) if two else 1 - p for p in part["p"]]
    low, high = sorted((mean(paper), mean(admitted)))
    chance = NormalDist().inv_cdf(0.95) * math.sqrt(sum(p * (1 - p) for p in paper)) / len(paper)
    return 100 * max(low / 1.25 - chance, 0), 100 * min(high * 1.25 + chance, 1)


def with_the_others(rows, who):
    """How often somebody votes as most of the others do; where these are tied, in part."""
    right = []
    for item, _, _, label in (row for row in rows if row[1] == who):
        votes = Counter(row[3] for row in rows if row[0] == item and row[1] != who)
        most = [level for level, n in votes.items() if n == max(votes.values())]
        right += [(label in most) / len(most)] if most else []
    return mean(right)


@pytest.mark.parametrize("name", SCREENS)
def test_every_figure_is_counted_again(name):
    rows, lines = SCREENS[name], screen(name, 120)
    for word, column in {"items": 0, "annotators": 1}.items():
        assert f" {len({row[column] for row in rows})} {word}" in lines[0]
    assert f" {len(rows):,} votes" in lines[0]
    text = " ".join(" ".join(lines).split())
    if said := re.search(r"([\d.]+) votes per item", text):
        assert said[1] == f"{len(rows) / len({row[0] for row in rows}):.2f}"
    pattern = r"! (\w+) agrees with the majority of the others on (\d+%) of (\d+) votes; the rest on (\d+%) to (\d+%)"
    if said := re.search(pattern, text):
        share, *others = (
            with_the_others(rows, who) for who in (said[1], *sorted({row[1] for row in rows} - {said[1]}))
        )
        assert (f"{share:.0%}", f"{min(others):.0%}", f"{max(others):.0%}") == said.group(2, 4, 5)
        assert int(said[3]) == sum(row[1] == said[1] for row in rows)
    assert ("agrees with" in text) == bool(said)
    items = audited(name).items
    printed = [match for line in lines if (match := re.match(ROW, line))]
    hidden = re.search(r"and (\d+) more questions", text)
    assert len(printed) + int(hidden[1] if hidden else 0) == len({row[2] for row in rows})
    for question, coefficient, uncertain, differs, low, high in (match.groups() for match in printed):
        own = [row for row in rows if row[2] == question]
        assert abs(alpha(own, ordered="Ratings" in name) - float(coefficient)) <= 0.0051
        part = items.filter(pl.col("question") == question)
        votes = {item: Counter() for item in part["item"]}
        for item, _, _, label in own:
            votes[item][label] += 1
        best = {item: {label for label, n in counter.items() if n == max(counter.values())}
                for item, counter in votes.items()}  # fmt: skip
        if "Ratings" in name:
            best = {item: {median_low(counter.elements())} for item, counter in votes.items()}
        moved = sum(label not in best[item] for item, label in part.select("item", "label").iter_rows())
        assert abs(100 * moved / part.height - int(differs)) <= 0.51
        two = len({row[3] for row in own}) == 2
        doubtful = sum((min(p, 1 - p) if two else 1 - p) > 0.25 for p in part["p"])
        assert abs(100 * doubtful / part.height - int(uncertain)) <= 0.51
        least, most = wrong_ends(own, part, two=two)
        # Rounded outward; the search for the paper's mode ends a little early.
        assert int(low) - 0.1 <= least <= int(low) + 1.1
        assert int(high) - 1.1 <= most <= int(high) + 0.1
