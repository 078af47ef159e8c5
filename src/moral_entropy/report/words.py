"""The words of the report, the card and the figures: one name for every rate and role, votes and labels in a sentence.

Takes a run, returns texts. The same words stand in the page, in the files of `charts/` and in the dataset card.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from moral_entropy.runs.run import Question, Run


@dataclass(frozen=True)
class Rate:
    """An error rate of a rule.

    Parameters
    ----------
    name
        In plain words.
    formal
        As statisticians call it.
    meaning
        Of what it is a share. Yes and no are those of the consensus, or of gold.
    """

    name: str
    formal: str
    meaning: str

    @property
    def title(self) -> str:
        """Both names."""
        return f"{self.name} ({self.formal})" if self.formal else self.name


RATES = {
    "fpr": Rate("wrong yes", "false positive rate", "of the items that are no, the share that the rule calls yes"),
    "fnr": Rate("missed yes", "false negative rate", "of the items that are yes, the share that the rule calls no"),
    "fdr": Rate(
        "wrong among yes", "false discovery rate", "of the items that the rule calls yes, the share that are no"
    ),
    "for": Rate("wrong among no", "false omission rate", "of the items that the rule calls no, the share that are yes"),
    "disagreement": Rate("labelled otherwise", "", "of all items, the share that the rule labels otherwise"),
}
"""By the metric's name in the tables."""

ROLES = (
    "says yes too often",
    "says yes too rarely",
    "like guessing",
    "probably worse than guessing",
    "worse than guessing",
    "few votes",
)
"""What is said of an annotator, as in the tables."""

NO_ROLE = "nothing unusual"

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def votes_in_words(run: Run) -> str:
    """Say how many votes there are, and by whom."""
    manifest = run.manifest
    votes = f"{manifest['votes']:,} votes"
    if not manifest["anonymous"]:
        who = "1 annotator" if manifest["annotators"] == 1 else f"{manifest['annotators']:,} annotators"
        return f"{votes} by {who}"
    return f"{votes} without annotators' names ({votes_per_item(run)})"


def votes_per_item(run: Run) -> str:
    """Say how many votes there are per item, as "three votes per item" where all items have as many."""
    voted = pl.col("n_votes") > 0
    counts = run.scan("items").filter(voted).select(
        low=pl.col("n_votes").min(),
        high=pl.col("n_votes").max(),
        mean=(pl.col("n_votes") * pl.col("count")).sum() / pl.col("count").sum(),
    )  # fmt: skip
    row = counts.collect(engine="streaming").row(0, named=True)
    per = "per item and question" if len(run.questions) > 1 else "per item"
    if row["low"] is None:
        return f"no votes {per}"
    if row["low"] < row["high"]:
        return f"{row['low']:,} to {row['high']:,} votes {per}, {row['mean']:.1f} on average"
    n = row["low"]
    number = NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"
    return f"{number} vote{'s' * (n != 1)} {per}"


def label_notes(run: Run) -> list[str]:
    """Say what yes stands for, and what is done with more than two labels."""
    return [*_what_yes_is(run), *_more_than_two(run)]


def _what_yes_is(run: Run) -> list[str]:
    positive = {question.positive for question in run.questions if question.positive is not None}
    named = sorted(positive - {"yes"})
    if len(positive) != 1 or not named:
        return [f"Yes stands for the label that the table of fits calls positive: {', '.join(named)}."] if named else []
    return [f"Yes stands for the label “{named[0]}”, no for the other."]


def _more_than_two(run: Run) -> list[str]:
    several = [question.name for question in run.questions if question.positive is None]
    if not several:
        return []
    all_have = len(several) == len(run.questions)
    where = "There are more than two labels" if all_have else "Some questions have more than two labels"
    return [f"{where}: each is then graded by itself. Yes means that an item has this label, no that it has another."]


def order_notes(run: Run) -> list[str]:
    """Say of labels that are numbers that they are taken as unordered."""
    graded = [question for question in run.questions if _looks_ordered(question)]
    if not graded:
        return []
    labels = sorted(graded[0].labels, key=float)
    return [
        f"The labels are numbers, from {labels[0]} to {labels[-1]}, but are taken as unordered names: {labels[0]} for "
        f"{labels[1]} counts as just as wrong as {labels[0]} for {labels[-1]}."
    ]


def _looks_ordered(question: Question) -> bool:
    return question.positive is None and all(_is_number(label) for label in question.labels)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
