"""Which column plays which role (item, annotator, label, ...), and how the rows are laid out.

Roles that the user did not name are guessed from the names that people commonly use. Cells are looked at only to tell
which columns of a wide table are annotators.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.source import ReadingLog, Source
from moral_entropy.votes.values import code_labels

FEW_LABELS = 20
"""A column with more distinct cells than this is not guessed to be an annotator."""

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
        One row per vote ("long"), per item with one column per annotator ("wide"), or per item with counts ("counts").
    annotators
        The columns that are annotators, in the wide layout.
    """

    column: Mapping[str, str]
    guessed: tuple[str, ...]
    layout: Literal["long", "wide", "counts"] = "long"
    annotators: tuple[str, ...] = ()

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
    return ColumnRoles(in_order, tuple(guessed))


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
    """Return the column with the likeliest common name for a role, if any has one."""
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(re.sub(r"[\s_.\-]", "", name).casefold(), name)
    return next((plain[common] for common in COMMON_NAMES[role] if common in plain), None)


def missing_column(role: str, names: Sequence[str], source: str, *, also: str = "") -> VotesError:
    """Return the error for a role that no column plays."""
    msg = (
        f"{source} has no column that looks like the {role}. Found: {shown(names)}. "
        f"{naming(role, 'COLUMN')}{also} If its first line is a vote already, add a header."
    )
    return VotesError(msg)


def naming(role: str, column: str) -> str:
    """Return a sentence that says how to name a column, in Python and on the command line."""
    if role == "keep":
        return f"Name it with keep=[{column!r}] (CLI: --fit-by {column})."
    if role in ("questions", "counts"):
        return f"Name it with {role}=[{column!r}, …] (CLI: --{role} {column},…)."
    return f'Name it with {role}="{column}" (CLI: --{role} {column}).'


def shown(names: Sequence[str], most: int = 12) -> str:
    """Join the first dozen of some names with commas.

    Examples
    --------
    >>> shown(["a", "b", "c"], most=2)
    'a, b, … (3 in all)'
    """
    if len(names) <= most:
        return ", ".join(map(str, names))
    return f"{', '.join(map(str, names[:most]))}, … ({len(names):,} in all)"


def _guessable(options: ReadOptions) -> list[str]:
    """Return the roles to guess: neither those the user switched off, nor those the layout has no use for."""
    idle = {role for role in COMMON_NAMES if options.asked(role) == ""}
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


def choose_layout(source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog) -> ColumnRoles:
    """Choose how the rows are laid out, and keep the roles that this layout uses.

    Parameters
    ----------
    source, roles, options
        The table, which column plays which role, and what the user asked for.
    log
        Where notes go.
    """
    roles = _texts_as_items(roles, log)
    if options.counts or options.of is not None:
        if roles.get("item") is None:
            raise missing_column(role="item", names=source.columns, source=source.name)
        return replace(roles.without("count"), layout="counts")
    if _looks_wide(roles, options) and (annotators := _annotator_columns(source, roles, options, log)):
        return replace(roles, layout="wide", annotators=tuple(annotators))
    _check_long(source, roles, options)
    return roles if options.anonymous else roles.without("count")


def _texts_as_items(roles: ColumnRoles, log: ReadingLog) -> ColumnRoles:
    if roles.get("item") or not (text := roles.get("text")) or roles.get("count"):
        return roles
    log.note(f"no item column: items are told apart by their text ({text!r}).")
    return ColumnRoles({"item": text, **roles.column}, ("item", *roles.guessed))


def _looks_wide(roles: ColumnRoles, options: ReadOptions) -> bool:
    if options.layout != "auto":
        return options.layout == "wide"
    return not (roles.get("annotator") or roles.get("label") or options.multilabel or options.questions)


def _annotator_columns(source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog) -> list[str]:
    """Return the columns that hold votes: all without a role or, if the layout is guessed, those that look like it."""
    left = [name for name in source.columns if name not in {*roles.column.values(), *options.keep}]
    annotators = left if options.layout == "wide" else _look_like_annotators(source, left)
    if len(annotators) < (1 if options.layout == "wide" else 2):
        return []
    if options.layout == "auto":
        log.note(f"no annotator and no label column: each of {len(annotators)} columns is read as an annotator.")
    if others := [name for name in left if name not in annotators]:
        log.note(f"columns not taken for annotators: {shown(others)}.")
    return annotators


def _look_like_annotators(source: Source, names: Sequence[str]) -> list[str]:
    """Return the columns with few distinct cells, at least half of which occur in another such column."""
    cells: dict[str, set[str]] = {}
    for name in names:
        if source.column(name).n_unique() <= FEW_LABELS:
            cells[name] = set(code_labels(source.column(name)).values.to_list())

    def shares(name: str) -> bool:
        others = set().union(*(cells[other] for other in cells if other != name))
        return bool(cells[name]) and 2 * len(cells[name] & others) >= len(cells[name])

    return [name for name in cells if shares(name)]


def _check_long(source: Source, roles: ColumnRoles, options: ReadOptions) -> None:
    needed = {"item": True, "annotator": not options.anonymous, "label": not options.questions}
    for role in needed:
        if needed[role] and roles.get(role) is None:
            raise missing_column(role, source.columns, source.name, also=_OTHER_WAYS if role == "annotator" else "")
    if options.count and not options.anonymous:
        msg = (
            "a long table has one vote per row. count= is for the wide layout, or goes with anonymous=True "
            "(--anonymous)."
        )
        raise UsageError(msg)


_OTHER_WAYS = ' Votes without annotators: anonymous=True (CLI: --anonymous). One column per annotator: layout="wide".'
