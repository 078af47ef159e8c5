"""Columns: which column plays which role.

Takes the names of the columns and what the user named; the rest is guessed from the names people commonly
use. Never looks into a cell.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moral_entropy.errors import VotesError
from moral_entropy.votes.options import Options

COMMON_NAMES: Mapping[str, tuple[str, ...]] = {
    "item": (
        "item", "itemid", "task", "taskid", "textid", "tweetid", "commentid", "postid", "documentid", "docid",
        "document", "doc", "example", "exampleid", "instance", "instanceid", "unit", "unitid", "sentenceid",
        "pairid", "questionid", "qid", "id",
    ),
    "annotator": (
        "annotator", "annotatorid", "annotatorname", "worker", "workerid", "rater", "raterid", "coder", "coderid",
        "judge", "judgeid", "user", "userid", "username", "labeler", "labeller", "labelerid", "reviewer",
        "participant", "participantid", "model", "llm",
    ),
    "label": (
        "label", "labels", "vote", "votes", "annotation", "annotations", "rating", "answer", "response", "class",
        "category", "verdict", "judgment", "judgement", "choice", "code", "grade",
    ),
    "question": ("question", "foundation", "dimension", "aspect", "criterion", "questionid"),
    "domain": ("domain", "subcorpus", "corpus", "bucket", "subreddit", "source", "outlet"),
    "text": ("text", "tweettext", "content", "comment", "sentence", "tweet", "body", "posttext"),
    "gold": ("gold", "goldlabel", "goldstandard", "truth", "groundtruth", "truelabel", "expert", "expertlabel"),
    "count": ("count", "counts", "n", "freq", "frequency", "weight"),
}  # fmt: skip
"""Names seen in the wild, spelt small and without blanks, likeliest first."""


@dataclass(frozen=True)
class Found:
    """Which column plays which role.

    Parameters
    ----------
    column
        Column of each role that has one.
    guessed
        The roles nobody named.
    """

    column: Mapping[str, str]
    guessed: tuple[str, ...]

    def get(self, role: str) -> str | None:
        """Give the column of a role, if it has one."""
        return self.column.get(role)

    def without(self, *roles: str) -> Found:
        """Forget some roles."""
        column = {role: name for role, name in self.column.items() if role not in roles}
        return Found(column, tuple(role for role in self.guessed if role not in roles))


def find_columns(names: Sequence[str], options: Options, source: str) -> Found:
    """Find the column of every role: as named, else by its name.

    Parameters
    ----------
    names
        Columns of the source.
    options
        What the user named; an empty name means that nothing plays this role.
    source
        Name of the source, for errors.

    Examples
    --------
    >>> found = find_columns(["Text ID", "worker", "rating"], Options(), "votes.csv")
    >>> found.column
    {'item': 'Text ID', 'annotator': 'worker', 'label': 'rating'}
    """
    column: dict[str, str] = {}
    for role in (*COMMON_NAMES, "published"):
        # With a file of its own, the gold column is one of that file's.
        if (asked := options.asked(role)) and not (role == "gold" and options.gold_file):
            column[role] = named_column(asked, names, source, role)
    for several in ("questions", "counts", "keep"):
        for asked in getattr(options, several):
            named_column(asked, names, source, several)
    guessed = []
    for role in _guessable(options):
        taken = {*column.values(), *options.questions, *options.counts}
        if role not in column and (name := guess_column(role, [name for name in names if name not in taken])):
            column[role] = name
            guessed.append(role)
    in_order = {role: column[role] for role in (*COMMON_NAMES, "published") if role in column}
    return Found(in_order, tuple(guessed))


def named_column(asked: str, names: Sequence[str], source: str, role: str) -> str:
    """Check that a column the user named exists."""
    if asked in names:
        return asked
    close = difflib.get_close_matches(asked.casefold(), [name.casefold() for name in names], n=1, cutoff=0.6)
    meant = [name for name in names if close and name.casefold() == close[0]]
    hint = f"Did you mean {meant[0]!r}? " if meant else ""
    msg = f"{source} has no column {asked!r}. Found: {shown(names)}. {hint}{naming(role, (meant or names)[0])}"
    raise VotesError(msg)


def guess_column(role: str, names: Iterable[str]) -> str | None:
    """Guess the column of a role: the likeliest common name that occurs."""
    spelt: dict[str, str] = {}
    for name in names:
        spelt.setdefault(re.sub(r"[\s_.\-]", "", name).casefold(), name)
    return next((spelt[common] for common in COMMON_NAMES[role] if common in spelt), None)


def missing_column(role: str, names: Sequence[str], source: str, *, also: str = "") -> VotesError:
    """Word the error for a role that no column plays."""
    msg = (
        f"{source} has no column that looks like the {role}. Found: {shown(names)}. "
        f"{naming(role, 'COLUMN')}{also} If its first line is a vote already, add a header."
    )
    return VotesError(msg)


def naming(role: str, column: str) -> str:
    """Say how a column is named, in Python and on the command line."""
    if role == "keep":
        return f"Name it with keep=[{column!r}] (CLI: --fit-by {column})."
    if role in ("questions", "counts"):
        return f"Name it with {role}=[{column!r}, …] (CLI: --{role} {column},…)."
    return f'Name it with {role}="{column}" (CLI: --{role} {column}).'


def shown(names: Sequence[str], most: int = 12) -> str:
    """List names, the first dozen of them.

    Examples
    --------
    >>> shown(["a", "b", "c"], most=2)
    'a, b, … (3 in all)'
    """
    if len(names) <= most:
        return ", ".join(map(str, names))
    return f"{', '.join(map(str, names[:most]))}, … ({len(names):,} in all)"


def _guessable(options: Options) -> list[str]:
    """Roles to guess: none the user switched off, nor one that the kind of data has no use for."""
    idle = {role for role in COMMON_NAMES if options.asked(role) == ""}
    if options.anonymous or options.layout == "wide":
        idle.add("annotator")
    if options.questions or options.counts or options.layout == "wide":
        idle.add("label")
    if options.questions:
        idle |= {"question", "gold"}
    if options.gold_file:
        idle.add("gold")
    if options.multilabel:
        idle.add("question")
    return [role for role in COMMON_NAMES if role not in idle]
