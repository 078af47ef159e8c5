"""Which column plays which role (item, annotator, label, ...), told from the names of columns alone.

Roles that the user did not name are guessed from the names that people commonly use. `shape` looks at cells where
names do not tell.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from moral_entropy.errors import VotesError
from moral_entropy.votes.options import ReadOptions

LONGEST = 70
"""Names are cut off here in messages."""

COMMON_NAMES: Mapping[str, tuple[str, ...]] = {
    "item": (
        "item", "itemid", "task", "taskid", "textid", "tweetid", "commentid", "postid", "documentid", "docid",
        "document", "doc", "example", "exampleid", "instance", "instanceid", "unit", "unitid", "sentenceid",
        "pairid", "messageid", "reviewid", "imageid", "image", "headlineid", "headline", "stimulusid", "stimulus",
        "vignette", "questionid", "qid", "id",
    ),
    "annotator": (
        "annotator", "annotatorid", "annotatorname", "worker", "workerid", "rater", "raterid", "coder", "coderid",
        "judge", "judgeid", "user", "userid", "username", "labeler", "labeller", "labelerid", "reviewer",
        "participant", "participantid", "respondent", "respondentid", "subject", "subjectid", "prolificid",
        "prolificpid", "voter", "model", "llm", "emailaddress",
    ),
    "label": (
        "label", "labels", "vote", "votes", "annotation", "annotations", "rating", "answer", "response", "class",
        "category", "verdict", "judgment", "judgement", "choice", "code", "grade",
    ),
    "question": ("question", "foundation", "dimension", "aspect", "criterion", "questionid"),
    "domain": ("domain", "subcorpus", "corpus", "bucket", "subreddit", "source", "outlet"),
    "text": (
        "text", "tweettext", "content", "comment", "sentence", "tweet", "body", "posttext", "prompt", "statement",
        "utterance", "passage",
    ),
    "gold": ("gold", "goldlabel", "goldstandard", "truth", "groundtruth", "truelabel", "expert", "expertlabel"),
    "count": ("count", "counts", "n", "freq", "frequency", "weight"),
}  # fmt: skip
"""Names that people use, in lower case and without blanks, the likeliest first."""


@dataclass(frozen=True)
class ColumnRoles:
    """Which column plays which role, and how the rows are laid out.

    Parameters
    ----------
    column
        Column of each role that has one.
    guessed
        The roles that were guessed, not named by the user.
    layout
        One row per vote ("long"), per item with one column per annotator ("wide"), per person with one column per
        item ("respondents"), or per item with counts ("counts").
    annotators
        The columns that are annotators, in the wide layout.
    items
        The columns that are items, with one row per respondent.
    """

    column: Mapping[str, str]
    guessed: tuple[str, ...]
    layout: Literal["long", "wide", "respondents", "counts"] = "long"
    annotators: tuple[str, ...] = ()
    items: tuple[str, ...] = ()

    def get(self, role: str) -> str | None:
        """Return the column of a role, if it has one."""
        return self.column.get(role)

    def without(self, role: str) -> ColumnRoles:
        """Return these roles without one of them."""
        column = {name: self.column[name] for name in self.column if name != role}
        return replace(self, column=column, guessed=tuple(name for name in self.guessed if name != role))


def find_columns(names: Sequence[str], options: ReadOptions, source: str) -> ColumnRoles:
    """Find the column of every role: the one the user named, else one with a common name.

    Parameters
    ----------
    names
        Columns of the source.
    options
        What the user named; an empty name means that no column plays this role.
    source
        Name of the source, for errors.

    Examples
    --------
    >>> roles = find_columns(["Text ID", "worker", "rating"], ReadOptions(), "votes.csv")
    >>> roles.column
    {'item': 'Text ID', 'annotator': 'worker', 'label': 'rating'}
    """
    column: dict[str, str] = {}
    for role in (*COMMON_NAMES, "published"):
        # With a file of its own, the gold column is one of that file's.
        if (asked := options.asked(role)) and not (role == "gold" and options.gold_file is not None):
            column[role] = named_column(asked, names, source, role)
    for several in ("questions", "counts", "keep", "facts"):
        for asked in getattr(options, several):
            named_column(asked, names, source, several)
    guessed = []
    for role in _guessable(options):
        taken = {*column.values(), *options.questions, *options.counts}
        if role not in column and (name := guess_column(role, [name for name in names if name not in taken])):
            column[role] = name
            guessed.append(role)
    in_order = {role: column[role] for role in (*COMMON_NAMES, "published") if role in column}
    return ColumnRoles(in_order, tuple(guessed))


def named_column(asked: str, names: Sequence[str], source: str, role: str) -> str:
    """Check that a column the user named exists."""
    if asked in names:
        return asked
    close = difflib.get_close_matches(asked.casefold(), [name.casefold() for name in names], n=1, cutoff=0.6)
    meant = [name for name in names if close and name.casefold() == close[0]]
    hint = f"Did you mean {meant[0]!r}? " if meant else ""
    if role == "gold" and Path(asked).is_file():
        msg = f"--gold names a column of {source}, and {asked!r} is a file. Write --gold-file {asked} (gold_file=…)."
        raise VotesError(msg)
    msg = f"{source} has no column {asked!r}. Found: {shown(names)}. {hint}{naming(role, (meant or names)[0])}"
    raise VotesError(msg)


def guess_column(role: str, names: Iterable[str]) -> str | None:
    """Return the column with the likeliest common name for a role, if any has one."""
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(plain_name(name), name)
    return next((plain[common] for common in COMMON_NAMES[role] if common in plain), None)


def plain_name(name: str) -> str:
    """Return the name of a column in lower case and without blanks and marks.

    Examples
    --------
    >>> plain_name("#Text_ID ")
    'textid'
    """
    return re.sub(r"[\s_.\-#():]", "", name).casefold()


def missing_column(role: str, names: Sequence[str], source: str, *, also: str = "") -> VotesError:
    """Return the error for a role that no column plays."""
    msg = (
        f"{source} has no column that looks like the {role}. Found: {shown(names)}. "
        f"{naming(role, 'COLUMN')}{also} If its first line is a vote already, add a header."
    )
    return VotesError(msg)


def naming(role: str, column: str) -> str:
    """Return a sentence that says how to name a column, in Python and on the command line."""
    if role == "facts":
        return f"Name it with facts=[{column!r}] (CLI: --fit-by {column})."
    if role == "keep":
        also = f"for groups of annotators --annotator-group {column}, for roles of judges --roles {column}"
        return f"Name it with keep=[{column!r}, …] (CLI: --keep {column},…; {also})."
    if role in ("questions", "counts"):
        return f"Name it with {role}=[{column!r}, …] (CLI: --{role} {column},…)."
    return f'Name it with {role}="{column}" (CLI: --{role} {column}).'


def shown(names: Sequence[str], most: int = 12) -> str:
    """Join the first dozen of some names with commas, each on one line and not longer than a line.

    Examples
    --------
    >>> shown(["a", "b", "c"], most=2)
    'a, b, … (3 in all)'
    """
    listed = ", ".join(_short(" ".join(str(name).split())) for name in names[:most])
    return listed if len(names) <= most else f"{listed}, … ({len(names):,} in all)"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def _guessable(options: ReadOptions) -> list[str]:
    """Return the roles to guess: neither those the user switched off, nor those the layout has no use for."""
    idle = {role for role in COMMON_NAMES if options.asked(role) == ""}
    if options.layout == "respondents":
        return ["annotator"] if "annotator" not in idle else []
    if options.anonymous or options.layout == "wide":
        idle.add("annotator")
    if options.questions or options.counts or options.layout == "wide":
        idle.add("label")
    if options.questions:
        idle |= {"question", "gold"}
    if options.gold_file is not None:
        idle.add("gold")
    if options.multilabel:
        idle.add("question")
    return [role for role in COMMON_NAMES if role not in idle]
