"""The tables of small runs, under both models: the same on every processor, words exactly and numbers to 1e-9.

`make golden` rewrites the files; read the diff before committing it.
"""

from __future__ import annotations

import json
import math
import os
import random
import warnings
from pathlib import Path

import polars as pl
import pytest
from made_votes import tied_votes

from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions, FitOptions

HERE = Path(__file__).parent
SAME = 1e-9
LEFT_OUT, FIRST = ("votes", "texts"), 5


def judged_votes():
    """Four judges of uneven skill on eighty answers from two sources, with texts, and gold for half of them."""
    draw = random.Random(5)
    rows = []
    for task in range(80):
        truth = draw.random() < 0.4
        text = " ".join(draw.choice(["kind", "cruel", "fair", "tax", "rain"]) for _ in range(4))
        for judge, skill in (("ada", 0.95), ("ben", 0.85), ("cyd", 0.75), ("dot", 0.7)):
            if draw.random() < 0.9:
                rating = "yes" if truth == (draw.random() < skill) else "no"
                gold = ("yes" if truth else "no") if task % 2 else None
                source = "forum" if task < 50 else "wiki"
                rows.append(
                    {"task": task, "judge": judge, "rating": rating, "source": source, "gold": gold, "text": text}
                )
    return pl.DataFrame(rows)


def tied():
    """Return votes that are as often for the one label as for the other."""
    return tied_votes("xyz", times=2)


CASES = {
    "judged": (judged_votes, "paper"),
    "tied": (tied, "paper"),
    "judged_mixed": (judged_votes, "mixed"),
    "tied_mixed": (tied, "mixed"),
}


def figures(folder):
    """Every table of a run as plain values; of the audit what is pooled, of every ranking the first."""
    pooled = pl.all_horizontal(pl.col("question", "domain", "label") == "(all)")
    kept = {"audit": pooled, "outliers": pl.col("rank") <= FIRST}
    found = {}
    for file in sorted(folder.glob("*.parquet")):
        if file.stem not in LEFT_OUT:
            table = pl.read_parquet(file).filter(kept.get(file.stem, True))
            found[file.stem] = {name: [written(value) for value in table[name]] for name in table.columns}
    return found


def written(value):
    return f"{value:.12g}" if isinstance(value, float) else value


def differences(one, two):
    """Say where two sets of figures differ: words at all, numbers by more than 1e-9."""
    if one.keys() != two.keys():
        yield f"tables {sorted(one.keys() ^ two.keys())}"
    for table in one.keys() & two.keys():
        if one[table].keys() != two[table].keys():
            yield f"columns of {table}: {sorted(one[table].keys() ^ two[table].keys())}"
        for column in one[table].keys() & two[table].keys():
            pair = one[table][column], two[table][column]
            if len(pair[0]) != len(pair[1]):
                yield f"rows of {table}: {len(pair[0])} and {len(pair[1])}"
            yield from (
                f"{table}.{column}[{row}]: {a} and {b}"
                for row, (a, b) in enumerate(zip(*pair, strict=False))
                if not same(a, b)
            )


def same(one, two):
    try:
        return one == two or math.isclose(float(one), float(two), rel_tol=SAME, abs_tol=SAME)
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize("case", CASES)
def test_the_figures_are_as_they_were(case, tmp_path):
    make_votes, model = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = AuditOptions(fit=FitOptions(draws=100, model=model), report=False)
        audit(make_votes(), tmp_path / "run", options)
    now, golden = figures(tmp_path / "run"), HERE / f"figures_{case}.json"
    if os.environ.get("REWRITE_GOLDEN"):
        tables = [
            f"{json.dumps(table)}: {{\n"
            + ",\n".join(f"  {json.dumps(n)}: {json.dumps(v)}" for n, v in columns.items())
            + "\n}"
            for table, columns in now.items()
        ]
        golden.write_text("{\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")
    was = json.loads(golden.read_text(encoding="utf-8"))
    assert list(differences(was, now))[:20] == [], "figures moved; `make golden` if they should have"


def test_a_difference_is_seen():
    was = {"items": {"p": ["0.5", "0.25"], "label": ["yes", "no"]}}
    now = {"items": {"p": ["0.5", "0.250000002"], "label": ["yes", "yes"]}}
    assert list(differences(was, was)) == []
    assert sorted(differences(was, now)) == ["items.label[1]: no and yes", "items.p[1]: 0.25 and 0.250000002"]
