"""What was found about groups, in sentences: for the screen, the report and the dataset card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from moral_entropy.findings import listed, many
from moral_entropy.groups.members import Grouping
from moral_entropy.groups.one_truth import LEVEL
from moral_entropy.groups.targets import MEAN
from moral_entropy.items.words import count_words, marking_words
from moral_entropy.names import CAMPS
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import Votes

PLACE = ("question", "part", "column", "label")
MOST_ITEMS = 3
NAMED = 0.25
"""A camp is named by an attribute that is so much more common in it than among the other annotators."""


def study_sentences(
    frames: Mapping[str, pl.DataFrame],
    groupings: Sequence[Grouping],
    votes: Votes,
    facts: Mapping[str, Any],
    interval: float,
) -> list[str]:
    """Say what was found, a sentence or two per comparison.

    Parameters
    ----------
    frames
        The tables about groups.
    groupings, votes
        The groups that were named, and the votes.
    facts
        What is known of the target population.
    interval
        Mass of the intervals.
    """
    said = []
    if "groups" in frames:
        said += difference_sentences(frames["groups"], interval)
    if "group_readings" in frames:
        several = frames["group_readings"].select("question", "part", "label").n_unique() > 1
        said += [_about(row, several) + reading_sentence(row) for row in frames["group_readings"].iter_rows(named=True)]
    if "camps" in frames:
        said += camp_sentences(frames, groupings, votes)
    said += [between_sentence(one) for one in facts.get("between", ())]
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
    named = groups.filter(pl.col("column") != CAMPS)
    n_tests = _n_comparisons(named)
    several = named.select("question", "part", "label").n_unique() > 1
    for (column,), rows in named.group_by("column", maintain_order=True):
        tested = rows.filter(pl.col("p_adjusted").is_not_null())
        found = tested.filter(pl.col("p_adjusted") < LEVEL)
        two = tested.group_by("question", "part", "label").len()["len"].max() == 2
        # Of two groups one sentence says it all: from the side of the one that says it more often.
        found = found.filter(pl.col("difference") > 0) if two else found
        said += [
            _about(row, several) + _differs(row, rows, two, n_tests, interval) for row in found.iter_rows(named=True)
        ]
        if found.is_empty() and tested.height:
            said.append(_no_difference(str(column), tested, n_tests, interval))
    return said


def _n_comparisons(groups: pl.DataFrame) -> int:
    per_place = groups.filter(pl.col("p_value").is_not_null()).group_by(PLACE).len()["len"].to_list()
    return sum(1 if n == 2 else int(n) for n in per_place)


def _differs(row: Mapping[str, Any], rows: pl.DataFrame, two: bool, n_tests: int, interval: float) -> str:
    direction = "more" if row["difference"] > 0 else "less"
    said = f"{'vote' if row['label'] != MEAN else 'rate'} {_what(row['label'], direction)}"
    scale, unit = (1, "") if row["label"] == MEAN else (100, " points")
    other = "the others"
    if two:
        [name] = rows.filter(
            (pl.col("group") != row["group"])
            & (pl.col("p_adjusted").is_not_null())
            & (pl.col("question") == row["question"])
            & (pl.col("part") == row["part"])
            & (pl.col("label") == row["label"])
        )["group"].to_list()
        other = repr(name)
    gap, low, high = (scale * row[name] for name in ("difference", "low", "high"))
    return (
        f"by {row['column']}, {row['group']!r} {said} than {other}: {gap:+z.{2 if scale == 1 else 1}f}{unit} on the "
        "same items "
        f"({interval:.0%} interval {_pair(low, high, scale)}; p {_p(row['p_adjusted'])}"
        f"{f' after correction for {n_tests} comparisons' if n_tests > 1 else ''})."
    )


def _what(label: str, direction: str) -> str:
    if label == MEAN:
        return "higher" if direction == "more" else "lower"
    return f"{label!r} {direction} often"


def _pair(low: float, high: float, scale: float) -> str:
    digits = 2 if scale == 1 else 1
    return f"{low:z.{digits}f} to {high:z.{digits}f}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _no_difference(column: str, tested: pl.DataFrame, n_tests: int, interval: float) -> str:
    row = tested.sort(pl.col("difference").abs().round(9), descending=True, maintain_order=True).row(0, named=True)
    scale, unit, on = (1, "", "") if row["label"] == MEAN else (100, " points", f" on {row['label']!r}")
    gap, low, high = (scale * row[name] for name in ("difference", "low", "high"))
    what = "how high groups rate" if scale == 1 else "how often groups choose a label"
    return (
        f"by {column}, no difference in {what} is larger than chance would make it ({many(n_tests, 'comparison')} in "
        "all). "
        f"The largest: {row['group']!r}{on}, {gap:+z.{1 if unit else 2}f}{unit} "
        f"({interval:.0%} interval {_pair(low, high, scale)})."
    )


def reading_sentence(row: Mapping[str, Any]) -> str:
    """Say in words which reading the votes support."""
    column = row["column"]
    if row["reading"] == "no camps":
        return f"no camps among {many(row['n_annotators'], 'annotator')}: {row['reason']}."
    if row["reading"] == "one truth":
        return (
            f"by {column}, the votes support one truth for all groups: whoever is left out is told better from "
            "everybody's votes "
            "than by giving each group a truth of its own. Where groups differ, it is in how readily they choose "
            "the label."
        )
    if row["reading"] == "cannot tell":
        return (
            f"by {column}, the votes cannot tell one truth from a truth per group: left-out annotators are predicted "
            "about as "
            "well by both."
        )
    who = "camps found from the votes" if column == CAMPS else "groups"
    parting = "" if row["parting"] is None else f" Their labels differ on {row['parting']:.0%} of the items."
    return (
        f"{'' if column == CAMPS else f'by {column}, '}the votes support a truth per "
        f"{'camp' if column == CAMPS else 'group'}: "
        f"a left-out annotator is told better from the votes of the same {'camp' if column == CAMPS else 'group'} "
        f"({row['gain']:.1f} nats per annotator, p {_p(row['gain_p'])}).{parting} One label for all {who} would hide "
        "that."
    )


def camp_sentences(frames: Mapping[str, pl.DataFrame], groupings: Sequence[Grouping], votes: Votes) -> list[str]:
    """Name camps by their size, by attributes of their members, and by the items that divide them."""
    said = []
    for (question, part), rows in frames["camps"].group_by("question", "part", maintain_order=True):
        for (camp,), members in rows.group_by("camp", maintain_order=True):
            others = rows.filter(pl.col("camp") != camp)
            marks = _attributes(members["annotator"], others["annotator"], groupings, votes)
            about = f": {listed(marks, '; ', 3)}" if marks else ""
            said.append(f"on {question}, {camp} has {many(members.height, 'annotator')}{about}.")
        said[-len(set(rows["camp"])) :] = sorted(said[-len(set(rows["camp"])) :])
        items = frames["group_items"].filter(column=CAMPS, question=question, part=part)
        said.append(_dividing(items, str(question)) + _marking(items, votes))
    return said


def _attributes(members: pl.Series, others: pl.Series, groupings: Sequence[Grouping], votes: Votes) -> list[str]:
    """Return the groups that are far more common in a camp than outside it."""
    ids = votes.annotators.to_list()
    inside, outside = set(members.to_list()), set(others.to_list())
    found = []
    for grouping in groupings:
        for g, name in enumerate(grouping.names):
            of = {ids[int(a)] for a in (grouping.group_a == g).nonzero()[0]}
            here, there = len(of & inside) / max(len(inside), 1), len(of & outside) / max(len(outside), 1)
            if here - there >= NAMED:
                text = f"{grouping.column} {name!r} {here:.0%} of them, {there:.0%} of the others"
                found.append((-tie_key(here - there), text))
    return [text for _, text in sorted(found)]


def _dividing(items: pl.DataFrame, question: str) -> str:
    wide = items.group_by("item", maintain_order=True).agg("group", "p", spread=pl.col("spread").first())
    wide = wide.sort(pl.col("spread").round(9), descending=True, maintain_order=True).head(MOST_ITEMS)
    each = [
        f"{row['item']} ({', '.join(f'{group} {p:.0%}' for group, p in zip(row['group'], row['p'], strict=True))})"
        for row in wide.iter_rows(named=True)
    ]
    return f"on {question}, camps part most on the items {listed(each, '; ')}."


def _marking(items: pl.DataFrame, votes: Votes) -> str:
    """Name the words that mark the items whose label differs between camps, if there are texts and such words."""
    if votes.texts is None:
        return ""
    parted = items.group_by("item").agg(parted=(pl.col("p") >= 0.5).n_unique() > 1)
    texts = pl.DataFrame({"item": votes.items, "text": votes.texts}).join(parted, on="item", maintain_order="left")
    high = texts.filter("parted")["text"]
    words = marking_words(count_words(texts["text"]).select("word", "n"), high, texts.height)
    named = listed([word.word for word in words], most=6)
    return f" Words that mark the items on which they part: {named}." if words else ""


def between_sentence(between: Mapping[str, str]) -> str:
    """Say that the entropy of items has a fourth part, and between whom.

    Examples
    --------
    >>> between_sentence({"question": "hateful", "part": "", "column": "gender"})[:78]
    "on hateful, the entropy of an item has a part between the groups of 'gender' ("
    """
    place = f"{between['question']} / {between['part']}" if between["part"] else between["question"]
    who = "camps" if between["column"] == CAMPS else f"groups of {between['column']!r}"
    return (
        f"on {place}, the entropy of an item has a part between the {who} (between_groups): no vote removes it, and it "
        "is no doubt; it says that the groups have a label each."
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
