"""The words of the report, the card and the figures: one name for every rate and role, votes and labels in a sentence.

Takes a run, returns texts. The same words stand in the page, in the files of `charts/` and in the dataset card.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from moral_entropy.markup import markdown_table, markdown_text
from moral_entropy.runs.run import Run


class Rate(NamedTuple):
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


# fmt: off
RATES = {
    "fpr": Rate("wrong yes", "false positive rate", "of the items that are no, the share that the rule calls yes"),
    "fnr": Rate("missed yes", "false negative rate", "of the items that are yes, the share that the rule calls no"),
    "fdr": Rate("wrong among yes", "false discovery rate",
                "of the items that the rule calls yes, the share that are no"),
    "for": Rate("wrong among no", "false omission rate",
                "of the items that the rule calls no, the share that are yes"),
    "disagreement": Rate("differs", "", "of all items, the share that the rule labels otherwise"),
}
# fmt: on
"""By the metric's name in the tables."""

ROLES = ("worse than guessing", "probably worse than guessing", "like guessing", "says yes too often",
         "says yes too rarely", "few votes")  # fmt: skip
"""What is said of an annotator, as in the tables, worst first."""

NO_ROLE = "nothing unusual"

TEMPLATES = Path(__file__).parent / "templates"

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def fill_template(file: str, /, **context: Any) -> str:
    """Fill a template; texts are escaped in HTML by themselves, in Markdown by the filter `md`."""
    # Late: only documents need Jinja.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=file.endswith(".html"), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    templates.filters |= {"md": markdown_text, "json": json.dumps}
    return templates.get_template(file).render(table=markdown_table, **context)


def shown_title(run: Run) -> str:
    """Name the run by the file its votes came from."""
    source = str(run.manifest["input"]["source"])
    return source.replace("\\", "/").rsplit("/", 1)[-1] or "votes"


def shown_size(run: Run) -> str:
    """Say how many votes, items, domains and questions there are."""
    counts = {"domains": len(run.manifest["domains"]), "questions": len(run.questions)}
    parts = "".join(f", {count} {name}" for name, count in counts.items() if count > 1)
    return f"{votes_in_words(run)} on {run.manifest['items']:,} items{parts}"


def votes_in_words(run: Run) -> str:
    """Say how many votes there are, and by whom."""
    manifest = run.manifest
    votes = f"{manifest['votes']:,} votes"
    if manifest["anonymous"]:
        return f"{votes} without annotators' names ({votes_per_item(run)})"
    return f"{votes} by {manifest['annotators']:,} annotator{'s' * (manifest['annotators'] != 1)}"


def protocol(run: Run) -> str:
    """Return how the labels of a run were made, in words."""
    text = fill_template("protocol.txt", votes=votes_in_words(run), m=run.manifest, mixed=run.model == "mixed")
    return " ".join(text.split())


def votes_per_item(run: Run) -> str:
    """Say how many votes there are per item, as "three votes per item" where all items have as many."""
    voted = pl.col("n_votes") > 0
    counts = run.scan("items").filter(voted).select(
        low=pl.col("n_votes").min(),
        high=pl.col("n_votes").max(),
        mean=(pl.col("n_votes") * pl.col("count")).sum() / pl.col("count").sum(),
    )  # fmt: skip
    low, high, mean = counts.collect(engine="streaming").row(0)
    per = "per item and question" if len(run.questions) > 1 else "per item"
    if low is None:
        return f"no votes {per}"
    if low < high:
        return f"{low:,} to {high:,} votes {per}, {mean:.1f} on average"
    return f"{NUMBERS[low] if low < len(NUMBERS) else f'{low:,}'} vote{'s' * (low != 1)} {per}"


def label_notes(run: Run) -> list[str]:
    """Say what yes stands for, and what is done with more than two labels and their order."""
    positive = {question.positive for question in run.questions if question.positive is not None}
    names, notes = sorted(positive - {"yes"}), []
    if len(positive) == 1 and names:
        notes.append(f"Yes stands for the label “{names[0]}”, no for the other.")
    elif names:
        notes.append(f"Yes stands for the label that the table of fits calls positive: {', '.join(names)}.")
    n_many = sum(question.positive is None for question in run.questions)
    if n_many:
        where = "There are" if n_many == len(run.questions) else "Some questions have"
        graded = "each is then graded by itself. Yes means that an item has this label, no that it has another."
        notes += [f"{where} more than two labels: {graded}", *order_notes(run)]
    return notes


def order_notes(run: Run) -> list[str]:
    """Say of labels that are numbers that they are taken as unordered."""
    for question in run.questions:
        if question.positive is None and question.scale == "nominal":
            with suppress(ValueError):
                first, second, *_, last = sorted(question.labels, key=float)
                return [
                    f"The labels are numbers, from {first} to {last}, but are taken as unordered names: {first} for "
                    f"{second} counts as just as wrong as {first} for {last}."
                ]
    return []


def annotator_sentence(row: dict[str, Any], copied: str = "") -> str:
    """Say in one sentence what is worth knowing of an annotator on a question.

    Parameters
    ----------
    row
        Of `annotator_summary`.
    copied
        Somebody whose votes are counted together with this one's.

    Examples
    --------
    >>> row = {"role": "says yes too often", "n_votes": 90, "disagreement_others": 0.3, "specificity": 0.6}
    >>> annotator_sentence(row)
    'Says yes too often: to 40% of the items that are no.'
    >>> annotator_sentence(row | {"role": "like guessing"})
    'Like guessing: against the majority of the others on 30% of 90 votes.'
    >>> annotator_sentence(row | {"role": ""}, copied="bob")
    'Votes as bob does: the two count as one.'
    """
    role, share, n = row["role"], row["disagreement_others"], row["n_votes"]
    if copied:
        return f"Votes as {copied} does: the two count as one."
    if role == "says yes too often":
        return f"Says yes too often: to {1 - row['specificity']:.0%} of the items that are no."
    if role == "says yes too rarely":
        return f"Says yes too rarely: misses {1 - row['sensitivity']:.0%} of the items that are yes."
    if role == "few votes":
        return f"Few votes ({n:,}): too few to judge."
    against = "" if share is None else f": against the majority of the others on {share:.0%} of {n:,} votes"
    return f"{(role or NO_ROLE).capitalize()}{against}."
