"""What was found about groups, in sentences: for the screen, the report and the dataset card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from moral_entropy.findings import listed, many
from moral_entropy.groups.table import MEAN
from moral_entropy.groups.truths import CANNOT_TELL, LEVEL, ONE_TRUTH

PLACE = ("question", "part", "column", "label")


def study_sentences(frames: Mapping[str, pl.DataFrame], facts: Mapping[str, Any], interval: float) -> list[str]:
    """Say what was found, a sentence or two per comparison.

    Parameters
    ----------
    frames
        The tables about groups.
    facts
        Between whose groups entropy lies, and what is known of the target population.
    interval
        Mass of the intervals.
    """
    said = []
    if "groups" in frames:
        said += difference_sentences(frames["groups"], interval)
    if "group_readings" in frames:
        several = frames["group_readings"].select("question", "part", "label").n_unique() > 1
        said += [_about(row, several) + reading_sentence(row) for row in frames["group_readings"].iter_rows(named=True)]
    said += [between_sentence(between) for between in facts["between"]]
    if target := facts.get("target"):
        said.append(target_sentence(target))
    return said


def _about(row: Mapping[str, Any], several: bool) -> str:
    if not several:
        return ""
    place = f"{row['question']} / {row['part']}" if row["part"] else row["question"]
    return f"on {place}, {row['label']}: "


def difference_sentences(groups: pl.DataFrame, interval: float) -> list[str]:
    """Say per column which groups differ, and how many comparisons found nothing."""
    said = []
    n_tests = _n_comparisons(groups)
    several = groups.select("question", "part", "label").n_unique() > 1
    for (column,), rows in groups.group_by("column", maintain_order=True):
        tested = rows.filter(pl.col("p_adjusted").is_not_null())
        differing = tested.filter(pl.col("p_adjusted") < LEVEL)
        two = tested.group_by("question", "part", "label").len()["len"].max() == 2
        # Of two groups one sentence says it all: from the side of the one that says it more often.
        differing = differing.filter(pl.col("difference") > 0) if two else differing
        said += [
            _about(row, several) + _differs(row, rows, two, n_tests, interval)
            for row in differing.iter_rows(named=True)
        ]
        if differing.is_empty() and tested.height:
            said.append(_no_difference(str(column), tested, n_tests, interval))
    return said


def _n_comparisons(groups: pl.DataFrame) -> int:
    per_place = groups.filter(pl.col("p_value").is_not_null()).group_by(PLACE).len()["len"].to_list()
    return sum(1 if n == 2 else int(n) for n in per_place)


def _differs(row: Mapping[str, Any], rows: pl.DataFrame, two: bool, n_tests: int, interval: float) -> str:
    other = "the others"
    if two:
        of_label = rows.filter(pl.col("p_adjusted").is_not_null(), **{name: row[name] for name in PLACE})
        [name] = of_label.filter(pl.col("group") != row["group"])["group"].to_list()
        other = repr(name)
    more = row["difference"] > 0
    said = f"vote {row['label']!r} {'more' if more else 'less'} often"
    if row["label"] == MEAN:
        said = f"rate {'higher' if more else 'lower'}"
    gap, ends = _gap(row)
    corrected = f" after correction for {n_tests} comparisons" if n_tests > 1 else ""
    return (
        f"by {row['column']}, {row['group']!r} {said} than {other}: {gap} on the same items ({interval:.0%} interval "
        f"{ends}; p {_p(row['p_adjusted'])}{corrected})."
    )


def _gap(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a difference and its interval as they are shown: of ratings as they are, else in points."""
    scale, digits, unit = (1, 2, "") if row["label"] == MEAN else (100, 1, " points")
    gap, low, high = (scale * row[name] for name in ("difference", "low", "high"))
    return f"{gap:+z.{digits}f}{unit}", f"{low:z.{digits}f} to {high:z.{digits}f}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _no_difference(column: str, tested: pl.DataFrame, n_tests: int, interval: float) -> str:
    row = tested.sort(pl.col("difference").abs().round(9), descending=True, maintain_order=True).row(0, named=True)
    what, on = "how often groups choose a label", f" on {row['label']!r}"
    if row["label"] == MEAN:
        what, on = "how high groups rate", ""
    gap, ends = _gap(row)
    return (
        f"by {column}, no difference in {what} is larger than chance would make it ({many(n_tests, 'comparison')} in "
        f"all). The largest: {row['group']!r}{on}, {gap} ({interval:.0%} interval {ends})."
    )


def reading_sentence(row: Mapping[str, Any]) -> str:
    """Say in words which reading the votes support."""
    column = row["column"]
    if row["reading"] == ONE_TRUTH:
        return (
            f"by {column}, the votes support one truth for all groups: whoever is left out is told better from "
            "everybody's votes than by giving each group a truth of its own. Where groups differ, it is in how readily "
            "they choose the label."
        )
    if row["reading"] == CANNOT_TELL:
        return (
            f"by {column}, the votes cannot tell one truth from a truth per group: left-out annotators are predicted "
            "about as well by both."
        )
    parting = "" if row["parting"] is None else f" Their labels differ on {row['parting']:.0%} of the items."
    return (
        f"by {column}, the votes support a truth per group: a left-out annotator is told better from the votes of the "
        f"same group ({row['gain']:.1f} nats per annotator, p {_p(row['gain_p'])}).{parting} One label for all groups "
        "would hide that."
    )


def between_sentence(between: Mapping[str, str]) -> str:
    """Say that the entropy of items has a fourth part, and between whom.

    Examples
    --------
    >>> between_sentence({"question": "hateful", "part": "", "column": "gender"})[:78]
    "on hateful, the entropy of an item has a part between the groups of 'gender' ("
    """
    place = f"{between['question']} / {between['part']}" if between["part"] else between["question"]
    return (
        f"on {place}, the entropy of an item has a part between the groups of {between['column']!r} (between_groups): "
        "no vote removes it, and it is no doubt; it says that the groups have a label each."
    )


def target_sentence(target: Mapping[str, Any]) -> str:
    """Say what weighting for a population costs."""
    said = (
        f"weighted to the target population by {listed(target['columns'])}, the "
        f"{many(target['annotators'], 'annotator')} are worth "
        f"{target['effective_annotators']:.1f} of equal weight (Kish); the largest weight is "
        f"{target['largest_weight']:.1f}."
    )
    if target["off"] > 1e-4:
        said += f" No weights reach all shares at once: the worst is {100 * target['off']:.1f} points off."
    return said
