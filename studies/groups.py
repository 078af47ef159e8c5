"""Groups and camps: differences claimed that are not there, readings that are right, camps that are found.

Simulated votes with known answers, then public sets: one with three guidelines, one with annotators' gender, race, age
and education, and sets with one truth.

Usage: groups.py [--data DIR] [--alarms 200] [--readings 200] [--camps 50] [--shown 10] [--only PARTS] [--dry]. Writes
docs/evidence/groups.md; with --dry only prints. Takes about an hour on one core. Bars and levels of the package were
chosen on other seeds (50,000 and above).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from gold_sets import DATA, ROOT
from numpy.typing import NDArray
from page import put

from moral_entropy import __version__
from moral_entropy.groups.camps import MAX_VOTES, adjusted_rand, find_camps, search_camps
from moral_entropy.groups.coupled_truths import YesVotes
from moral_entropy.groups.differences import paired_difference
from moral_entropy.groups.one_truth import read_truths, thinned
from moral_entropy.groups.options import GroupOptions
from moral_entropy.groups.table import GroupStudy, study_groups
from moral_entropy.groups.targets import targets_of, yes_votes
from moral_entropy.markup import markdown_table
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Floats, Ints

PAGE = ROOT / "docs" / "evidence" / "groups.md"
Kind = Literal["no difference", "another threshold", "another truth"]
RIGHT = {"no difference": "one truth", "another threshold": "one truth", "another truth": "a truth per group"}
PER_GROUP = (3, 10, 50)
ONE_TRUTH = ("bluebird", "rte", "D_Product")


@dataclass(frozen=True)
class Crowd:
    """Votes of a simulated crowd, who is in which group, and where the items lie for each."""

    votes: YesVotes
    group_a: Ints
    place_ig: Floats


def simulate(
    seed: int, kind: Kind, sizes: tuple[int, ...], *, items: int, votes: int, by: Literal["item", "annotator"] = "item",
    threshold: float = 1.0, parting: float = 0.3, sharpness: float = 1.0,
) -> Crowd:  # fmt: skip
    """Simulate groups: logistic annotators of varying threshold and slope, items on both sides of the line.

    Parameters
    ----------
    seed, kind
        Seed, and what differs between groups.
    sizes
        Annotators per group.
    items, votes, by
        How many items, and votes per item and group, or per annotator.
    threshold
        How much stricter each further group is.
    parting
        Share of items on which a further group's truth is the opposite.
    sharpness
        How well annotators tell items apart.
    """
    rng = np.random.default_rng(seed)
    group_a = np.repeat(np.arange(len(sizes)), sizes)
    place_i = np.where(rng.random(items) < 0.45, 1.5, -1.5) + rng.normal(0.0, 0.8, items)
    place_ig = np.repeat(place_i[:, None], len(sizes), axis=1)
    if kind == "another truth":
        place_ig[:, 1:] *= np.where(rng.random((items, len(sizes) - 1)) < parting, -1.0, 1.0)
    threshold_a = rng.normal(0.0, 0.5, len(group_a)) + threshold * group_a * (kind == "another threshold")
    slope_a = sharpness * np.exp(rng.normal(0.0, 0.3, len(group_a)))
    item_v, annotator_v = _asked(rng, group_a, items, votes, by)
    logit_v = slope_a[annotator_v] * place_ig[item_v, group_a[annotator_v]] - threshold_a[annotator_v]
    yes_v = rng.random(len(item_v)) < 1.0 / (1.0 + np.exp(-logit_v))
    return Crowd(YesVotes(item_v, annotator_v, yes_v, items, len(group_a)), group_a, place_ig)


def _asked(rng: np.random.Generator, group_a: Ints, items: int, votes: int, by: str) -> tuple[Ints, Ints]:
    """Draw who votes on what."""
    if by == "annotator":
        drawn = [rng.choice(items, min(votes, items), replace=False) for _ in group_a]
        return np.concatenate(drawn), np.repeat(np.arange(len(group_a)), [len(some) for some in drawn])
    item_v, annotator_v = [], []
    for item in range(items):
        for g in np.unique(group_a):
            who = np.flatnonzero(group_a == g)
            some = rng.choice(who, min(votes, len(who)), replace=False)
            item_v.append(np.full(len(some), item))
            annotator_v.append(some)
    return np.concatenate(item_v), np.concatenate(annotator_v)


def false_alarms(n: int) -> str:
    """Count how often groups that do not differ are said to."""
    rows = []
    for per_group in PER_GROUP:
        for votes in (1, 3, 10)[: 2 if per_group == 3 else 3]:
            found = []
            for seed in range(n):
                crowd = simulate(seed, "no difference", (per_group, per_group), items=200, votes=votes)
                v = crowd.votes
                found.append(
                    paired_difference(v.item_v, v.annotator_v, crowd.group_a[v.annotator_v], v.yes_v.astype(np.float64))
                )
            p = np.array([one.p_value for one in found])
            width = np.median([one.high - one.low for one in found])
            rows.append(
                (str(per_group), str(min(votes, per_group)), f"{np.mean(p < 0.05):.1%}", f"{np.mean(p < 0.1):.1%}",
                 f"{100 * width:.0f} points")
            )  # fmt: skip
            say(f"false alarms {rows[-1]}")
    heads = (
        "annotators per group",
        "votes per item and group",
        "false alarms",
        "90% interval leaves out 0",
        "its width",
    )
    return markdown_table(heads, rows, numbers=heads)


def readings(n: int) -> str:
    """Count which reading is chosen, where the right one is known."""
    rows = []
    for per_group, items, votes in ((3, 60, 2), (3, 400, 3), (10, 400, 3), (50, 400, 3), (10, 400, 10)):
        for kind, right in RIGHT.items():
            chosen: Counter[str] = Counter()
            for seed in range(n):
                crowd = simulate(1_000 + seed, kind, (per_group, per_group), items=items, votes=votes)  # type: ignore[arg-type]
                chosen[read_truths(crowd.votes, crowd.group_a)[0].answer] += 1
            told = n - chosen["cannot tell"]
            rows.append((f"{per_group}", f"{items}", f"{votes}", kind, f"{chosen[right] / n:.1%}",
                         f"{chosen['cannot tell'] / n:.1%}", f"{(told - chosen[right]) / n:.1%}",
                         f"{chosen[right] / told:.1%}" if told else "–"))  # fmt: skip
            say(f"readings {rows[-1]}")
    heads = (
        "annotators per group",
        "items",
        "votes per item and group",
        "what differs",
        "right",
        "cannot tell",
        "wrong",
        "right of those told",
    )
    return markdown_table(heads, rows, numbers=heads)


def simulated_camps(n: int, shown: int) -> str:
    """Look for two camps where they are known; of some crowds, see whether they would be shown."""
    rows = []
    for sizes, items, votes, parting, sharpness in (
        ((60, 30), 60, 20, 0.35, 1.5), ((60, 30), 60, 20, 0.3, 1.5), ((60, 30), 60, 20, 0.25, 1.5),
        ((60, 30), 60, 20, 0.35, 1.0), ((60, 30), 60, 20, 0.5, 1.0), ((20, 10), 120, 60, 0.35, 1.0),
        ((60, 30), 60, 20, 0.0, 1.0),
    ):  # fmt: skip
        kind: Kind = "another truth" if parting else "no difference"
        crowds = [
            simulate(
                2_000 + seed,
                kind,
                sizes,
                items=items,
                votes=votes,
                by="annotator",
                parting=parting,
                sharpness=sharpness,
            )
            for seed in range(n)
        ]
        found = [search_camps(crowd.votes, 2, seed=seed)[0].argmax(axis=1) for seed, crowd in enumerate(crowds)]
        alike = [adjusted_rand(camp_a, crowd.group_a) for camp_a, crowd in zip(found, crowds, strict=True)]
        known = [adjusted_rand(told_by_places(crowd, sharpness), crowd.group_a) for crowd in crowds]
        right = [np.mean(sees_yes(crowd) == crowd.votes.yes_v) for crowd in crowds]
        looked = [find_camps(crowd.votes, seed=seed) for seed, crowd in enumerate(crowds[:shown])]
        believed = [camps.member_ac.shape[1] for camps in looked if camps is not None and not camps.reason]
        scores = [spread(some) if parting else "–" for some in (alike, known)]
        rows.append((" and ".join(map(str, sizes)), f"{items}", f"{votes}", f"{np.mean(right):.0%}", f"{parting:.0%}",
                     *scores, f"{len(believed)} of {shown}", f"{sum(one != 2 for one in believed)}"))  # fmt: skip
        say(f"camps {rows[-1]}")
    heads = ("camps of", "items", "votes per annotator", "votes as their camp sees it", "items on which they part",
             "adjusted Rand index", "of one who knows the items", "shown", "of these not two")  # fmt: skip
    return markdown_table(heads, rows, numbers=heads)


def sees_yes(crowd: Crowd) -> NDArray[np.bool_]:
    """Return for every vote whether its camp sees the item on the side of yes."""
    votes = crowd.votes
    return np.asarray(crowd.place_ig[votes.item_v, crowd.group_a[votes.annotator_v]] > 0.0)


def spread(some: Sequence[float]) -> str:
    """Write a mean, and the range of nine in ten."""
    low, high = np.quantile(some, (0.05, 0.95))
    return f"{np.mean(some):.3f} ({low:.2f}–{high:.2f})"


def told_by_places(crowd: Crowd, sharpness: float) -> Ints:
    """Tell everyone's camp as well as can be by one who knows where every item lies for each camp."""
    votes, grid = crowd.votes, np.linspace(-1.5, 1.5, 13)
    sizes = np.bincount(crowd.group_a)
    scores = []
    for g, size in enumerate(sizes):
        logit_vt = sharpness * crowd.place_ig[votes.item_v, g, None] - grid
        log_vt = -np.logaddexp(0.0, np.where(votes.yes_v[:, None], -logit_vt, logit_vt))
        score_at = votes.cast_by @ log_vt - 2.0 * grid**2
        scores.append(np.logaddexp.reduce(score_at, axis=1) + np.log(size))
    return np.asarray(np.argmax(scores, axis=0))


def one_truth_sets(data: Path) -> str:
    """Look for camps in sets with one truth."""
    rows = []
    for name in ONE_TRUTH:
        votes = read_votes(data / name / "votes.csv", on_repeat="count")
        [ballot] = votes.ballots
        few, _ = thinned(yes_votes(ballot, targets_of(ballot)[0], len(votes.annotators)), 0, MAX_VOTES)
        camps = find_camps(few)
        assert camps is not None
        verdict = camps.reason or "camps are shown"
        rows.append((name, f"{few.n_annotators}", f"{len(few.item_v):,}", f"{camps.gain:.2f}", f"{camps.gain_p:.3f}",
                     f"{camps.stability:.2f}", "yes" if not camps.reason else "no", verdict))  # fmt: skip
        say(f"one truth {rows[-1]}")
    heads = ("set", "annotators", "votes", "gain, nats per annotator", "p", "stability", "camps shown", "why not")
    return markdown_table(heads, rows, numbers=heads[1:6])


def guidelines(data: Path) -> str:
    """Compare guidelines and genders, and look for camps without either."""
    votes = pl.read_csv(data / "hate_paradigms" / "votes.csv")
    man = pl.col("annotator").str.contains(r"_M(_|$)")
    votes = votes.with_columns(gender=pl.when(man).then(pl.lit("men")).otherwise(pl.lit("women")))
    votes = votes.rename({"group": "guideline"})
    options = GroupOptions(annotator_group=("gender", "guideline"), camps=True)
    study = study_groups(read_votes(votes, keep=("gender", "guideline")), options)
    camps = study.frames.get("camps")
    if camps is None:
        return f"{group_table(study)}\n\n{sentences(study)}"
    known = votes.select("annotator", "guideline").unique()
    crossed = camps.join(known, on="annotator").group_by("camp", "guideline").len()
    cells = {(row["camp"], row["guideline"]): row["len"] for row in crossed.iter_rows(named=True)}
    names, codes = sorted(camps["camp"].unique()), sorted(known["guideline"].unique())
    rows = [(name, *(str(cells.get((name, code), 0)) for code in codes)) for name in names]
    table = markdown_table(("camp", *codes), rows, numbers=codes)
    return f"{group_table(study)}\n\n{sentences(study)}\n\n{table}"


def demographics(data: Path) -> str:
    """Compare genders, races, ages and educations."""
    columns = ("gender", "race", "age", "education")
    votes = read_votes(data / "popquorn_offensiveness" / "ratings.csv", label="rating", text="text", keep=columns)
    study = study_groups(votes, GroupOptions(annotator_group=columns))
    return f"{group_table(study, '(mean)')}\n\n{sentences(study)}"


def group_table(study: GroupStudy, label: str | None = None) -> str:
    """Return the differences of one label, by group."""
    frame = study.frames["groups"].filter(pl.col("column") != "(camps)")
    frame = frame if label is None else frame.filter(label=label)
    scale = 1.0 if label == "(mean)" else 100.0
    rows = [
        (row["column"], row["group"], f"{row['n_annotators']}", f"{scale * row['rate']:z.2f}", *_gap(row, scale),
         *(_shown(row[name]) for name in ("within", "across", "ratio", "ratio_p")))
        for row in frame.iter_rows(named=True)
    ]  # fmt: skip
    heads = ("column", "group", "annotators", "mean" if scale == 1 else "% yes", "difference", "90% interval",
             "p, corrected", "alpha within", "across", "ratio", "its p")  # fmt: skip
    return markdown_table(heads, rows, numbers=heads[2:])


def _gap(row: dict[str, float | None], scale: float) -> Iterator[str]:
    gap, low, high, p = (row[name] for name in ("difference", "low", "high", "p_adjusted"))
    yield "–" if gap is None else f"{scale * gap:+z.2f}"
    yield "–" if low is None or high is None else f"{scale * low:z.2f} to {scale * high:z.2f}"
    yield "–" if p is None else f"{p:.3f}"


def _shown(value: Floats | float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def sentences(study: GroupStudy) -> str:
    """Return what is said about groups, as a list."""
    return "\n".join(f"- {text}" for text in (*study.facts["notes"], *study.facts["sentences"]))


def say(text: str) -> None:
    """Say how far it is."""
    print(f"  {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--alarms", type=int, default=200)
    parser.add_argument("--readings", type=int, default=200)
    parser.add_argument("--camps", type=int, default=50, help="crowds per row in which two camps are searched for")
    parser.add_argument(
        "--shown", type=int, default=10, help="those of them of which it is seen whether they are shown"
    )
    parser.add_argument("--only", default="alarms,readings,camps,guidelines,demographics,one-truth")
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    parts = {
        "alarms": lambda: false_alarms(asked.alarms),
        "readings": lambda: readings(asked.readings),
        "camps": lambda: simulated_camps(asked.camps, asked.shown),
        "guidelines": lambda: guidelines(asked.data),
        "demographics": lambda: demographics(asked.data),
        "one-truth": lambda: one_truth_sets(asked.data),
    }
    for name in asked.only.split(","):
        text = f"Made by studies/groups.py, moral-entropy {__version__}.\n\n{parts[name]()}"
        print(text)
        if not asked.dry:
            PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), name, "studies/groups.py", text), encoding="utf-8")


if __name__ == "__main__":
    main()
