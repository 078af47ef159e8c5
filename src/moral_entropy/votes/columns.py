"""Which column plays which role (item, annotator, label, ...), told from the names of columns alone.

Roles that the user did not name are guessed from the names that people commonly use. `shape` looks at cells where
names do not tell.

How the rows of a table are laid out: one per vote, per item or per respondent; votes, counts, or 0 and 1.

Names of columns go first; where they do not tell, the cells do. What can be read in more than one way ends in a
question that names the option for each reading.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.options import ReadOptions
from moral_entropy.votes.source import Source
from moral_entropy.votes.table import ReadingLog, shown
from moral_entropy.votes.values import NO, NUMBER, YES, Coded, as_text, code_labels

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


FEW_LABELS = 20
"""A column with more distinct cells than this is not guessed to hold votes."""

ABOUT_PEOPLE = frozenset({
    "timestamp", "age", "agegroup", "gender", "sex", "education", "nationality", "country", "ethnicity", "occupation",
    "nativelanguage", "firstlanguage", "email", "emailaddress", "consent", "startdate", "enddate", "recordeddate",
    "ipaddress", "duration", "durationinseconds", "finished", "progress", "responseid", "respondent", "respondentid",
    "participant", "participantid", "prolificid", "prolificpid", "subject", "subjectid", "submitdate", "username",
})  # fmt: skip
"""Names of columns that say something about a person who answered, in lower case and without blanks."""

PERSON_IDS = frozenset({"responseid", "email", "emailaddress", "username"})
"""Those of them that tell people apart, though not in a table of votes."""

ABOUT_VOTES = frozenset({
    "time", "date", "datetime", "createdat", "updatedat", "seconds", "confidence", "certainty", "sure", "comments",
    "note", "notes", "remark", "remarks", "reason", "explanation", "rationale", "worktime", "worktimeinseconds",
})  # fmt: skip
"""Names of columns that say something about a vote, but not what it is."""

WEAK_ITEM = ("id",)
"""Names of an id that may as well be a person's."""

RATER = re.compile(
    r"(annotator|annot|ann|rater|coder|judge|worker|user|labell?er|reviewer|expert|voter|model|llm|crowd|label|vote|"
    r"rating|annotation|judgment|judgement|[arwjc])[\s_.#-]*(\d+|[a-z])?"
    r"|.*(gpt|claude|llama|mistral|mixtral|gemini|gemma|qwen|palm|bert|deepseek).*",
    flags=re.IGNORECASE,
)
"""A heading that names somebody who votes."""

THING = re.compile(
    r"(q|item|question|statement|text|tweet|post|comment|sentence|stimulus|vignette|scenario|story|image|[sti])"
    r"[\s_.#-]*\d+|.*\?|.*\[.*\]|\W*(\w+\W+){3,}\w+\W*",
    flags=re.IGNORECASE,
)
"""A heading that names something to vote on: numbered, a question, or a sentence."""


def recognise(source: Source, options: ReadOptions, log: ReadingLog) -> tuple[ColumnRoles, ReadOptions]:
    """Return which column plays which role, how the rows are laid out, and the options that follow from it.

    Parameters
    ----------
    source
        The table.
    options
        What the user asked for, which always counts.
    log
        Where notes go.

    Examples
    --------
    >>> import polars as pl
    >>> from moral_entropy.votes.source import open_source
    >>> table = open_source(pl.DataFrame({"id": [1, 2], "rater 1": ["yes", "no"], "rater 2": ["no", "no"]}))
    >>> roles, _ = recognise(table, ReadOptions(), ReadingLog())
    >>> roles.layout, roles.annotators
    ('wide', ('rater 1', 'rater 2'))
    """
    roles = _texts_as_items(find_columns(source.columns, options, source.name))
    if options.counts or options.of is not None:
        if roles.get("item") is None:
            raise missing_column(role="item", names=source.columns, source=source.name)
        return replace(roles.without("count"), layout="counts"), options
    if options.layout == "wide":
        return _wide(source, roles, options, log, _unused(source, roles, options)), options
    if options.layout == "respondents":
        return _respondents(source, roles, options, log, _unused(source, roles, options)), options
    if not (options.layout == "long" or options.multilabel or options.questions):
        roles, options = _from_cells(source, roles, options, log)
    if roles.layout == "long":
        _check_long(source, roles, options)
        roles = roles if options.anonymous else roles.without("count")
    if "item" in roles.guessed and roles.get("item") == roles.get("text"):
        log.note(f"no item column: items are told apart by their text ({roles.column['text']!r}).")
    return roles, options


def _from_cells(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> tuple[ColumnRoles, ReadOptions]:
    """Look at cells where the names of columns do not tell item, annotator and label."""
    item, label = roles.get("item"), roles.get("label")
    annotator = roles.get("annotator") or options.anonymous
    if item and annotator and label:
        return roles, options
    if item and not label and options.anonymous and not _repeats(source, item):
        return _columns_of_votes(source, roles, options, log)
    if item and annotator and not label:
        return _label_from_cells(source, roles, options, log)
    if label and item and not annotator:
        return _guess_one(source, roles, options, "annotator"), options
    if label and annotator and not item:
        return _guess_one(source, roles, options, "item"), options
    if label:
        return roles, options
    if roles.get("annotator") and _repeats(source, roles.column["annotator"]):
        roles = _guess_one(source, roles, options, "item")
        return _label_from_cells(source, roles, options, log) if roles.get("item") else (roles, options)
    return _columns_of_votes(source, roles, options, log)


# --- One row per vote: the role that no name tells ----------------------------------------------------------------


def _guess_one(source: Source, roles: ColumnRoles, options: ReadOptions, role: str) -> ColumnRoles:
    """Find the annotator or the item among the columns left: with the other one it must name every row once."""
    other = roles.column["item" if role == "annotator" else "annotator"] if not options.anonymous else None
    if other is None:
        return roles
    fitting = [name for name in _unused(source, roles, options) if _names_rows(source, name, other)]
    if role == "item" and len(fitting) > 1:
        # A label can name the rows of few votes; what has the most values is what was voted on.
        counts = {name: source.column(name).n_unique() for name in fitting}
        most = max(counts.values())
        fitting = [name for name in fitting if counts[name] == most]
    return _with_guess(roles, role, fitting[0]) if len(fitting) == 1 else roles


def _names_rows(source: Source, name: str, other: str) -> bool:
    """Return whether a column and another one name every row once, and neither does so alone."""
    column = source.column(name)
    if plain_name(name) in ABOUT_PEOPLE | ABOUT_VOTES or column.dtype.is_float() or column.dtype.is_nested():
        return False
    if _is_fraction(column):
        return False
    values = column.n_unique()
    if values < 2 or (values == source.rows and source.rows > 2):
        return False
    both = pl.DataFrame({"one": column, "other": source.column(other)}).drop_nulls()
    return 2 * both.height > source.rows and both.n_unique() == both.height


def _is_fraction(column: pl.Series) -> bool:
    return bool(as_text(column.drop_nulls().head(1_000)).str.contains(r"^\s*-?\d+[.,]\d*[1-9]\d*\s*$").any())


def _label_from_cells(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> tuple[ColumnRoles, ReadOptions]:
    """Find the column of labels where item and annotator are known, or columns of 0 and 1 that are questions."""
    unused = _unused(source, roles, options)
    annotator = roles.get("annotator")
    if annotator and not _repeats(source, annotator) and not _repeats(source, roles.column["item"]):
        # Nobody voted twice and nothing was voted on twice: each row is a person, or an item.
        kept = roles.without("item") if "item" in roles.guessed else roles
        return _columns_of_votes(source, kept, options, log)
    if len(unused) == 1:
        return _with_guess(roles, "label", unused[0]), options
    voting = [name for name in unused if _could_be_votes(source, name, roles)]
    if len(voting) == 1:
        return _with_guess(roles, "label", voting[0]), options
    if len(voting) > 1 and _all_yes_no(source, voting):
        log.note(f"no label column: each of {len(voting)} columns of yes and no is read as a question.")
        return roles, replace(options, questions=tuple(voting))
    if voting:
        names = _as_flag(voting)
        msg = (
            f"which column of {source.name} holds the votes? {shown(voting)} could. One of them: "
            f'label="{voting[0]}" (--label {voting[0]}). Each is a question of its own: --questions {names}.'
        )
        raise UsageError(msg)
    return roles, options


def _could_be_votes(source: Source, name: str, roles: ColumnRoles) -> bool:
    """Return whether a column has few values, which belong neither to its item nor to its annotator."""
    if plain_name(name) in ABOUT_PEOPLE | ABOUT_VOTES or source.column(name).n_unique() > FEW_LABELS + 1:
        return False
    if _is_fraction(source.column(name)):
        return False
    fixed = [roles.get(role) for role in ("item", "annotator")]
    return not any(_belongs_to(source, name, owner) for owner in fixed if owner)


def _belongs_to(source: Source, name: str, owner: str) -> bool:
    """Return whether every item, or annotator, has one value of a column, and there are several values."""
    frame = pl.DataFrame({"value": source.column(name), "owner": source.column(owner)}).drop_nulls()
    owners, values = frame.get_column("owner").n_unique(), frame.get_column("value").n_unique()
    return owners < frame.height and values > 1 and frame.n_unique() == owners


# --- One row per item or per respondent ---------------------------------------------------------------------------


def _columns_of_votes(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog
) -> tuple[ColumnRoles, ReadOptions]:
    """Tell what several columns of votes are: annotators, items, or labels that are counted."""
    unused = _unused(source, roles, options)
    voting = [name for name in _alike(source, unused) if plain_name(name) not in ABOUT_PEOPLE | ABOUT_VOTES]
    if len(voting) < 2:
        return roles, options
    raters, things = _most(voting, RATER), _most(voting, THING)
    items = _rows_are_items(source, roles)
    people = bool(roles.get("annotator")) or any(plain_name(name) in ABOUT_PEOPLE for name in source.columns)
    if people and not items and not raters:
        return _respondents(source, roles, options, log, voting), options
    if not people and (raters or items) and not things:
        return _one_row_per_item(source, roles, options, log, voting, raters=raters)
    if things and not raters and not items and not people:
        return _respondents(source, roles, options, log, voting), options
    raise UsageError(_question(source, voting))


def _rows_are_items(source: Source, roles: ColumnRoles) -> bool:
    """Return whether a column says that each row is an item: its name, or a text, gold label, domain or count."""
    item = roles.get("item")
    named = item is not None and ("item" not in roles.guessed or plain_name(item) not in WEAK_ITEM)
    return named or any(roles.get(role) for role in ("text", "gold", "domain", "count", "published"))


def _one_row_per_item(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog, voting: Sequence[str], *, raters: bool
) -> tuple[ColumnRoles, ReadOptions]:
    """Tell votes of annotators from counts, and ask where numbers could be either."""
    numbers = None if raters or roles.get("count") else _numbers(source, voting)
    roles = _with_row_ids(source, roles, options, voting)
    if numbers is None:
        return _wide(source, roles, options, log, voting), options
    if roles.get("item") and _adds_up(numbers):
        log.note(f"the {len(voting)} columns add up to {int(numbers[0].sum())} in every row: they count labels.")
        counted = replace(options, counts=tuple(voting), anonymous=True)
        return replace(roles.without("count"), layout="counts"), counted
    raise UsageError(_question(source, voting))


def _with_row_ids(source: Source, roles: ColumnRoles, options: ReadOptions, voting: Sequence[str]) -> ColumnRoles:
    """Take the one column left that is different in every row for the item, where none has such a name."""
    if roles.get("item") or roles.get("count"):
        return roles
    left = [name for name in _unused(source, roles, options) if name not in voting]
    about = ABOUT_PEOPLE | ABOUT_VOTES
    ids = [
        name
        for name in left
        if plain_name(name) not in about and source.column(name).n_unique() == source.rows
        and not source.column(name).null_count() and not source.column(name).dtype.is_nested()
    ]  # fmt: skip
    return _with_guess(roles, "item", ids[0]) if len(ids) == 1 else roles


def _numbers(source: Source, names: Sequence[str]) -> NDArray[np.int64] | None:
    """Return columns of whole numbers of 0 or more, one row per row; None where a cell is anything else."""
    cells = pl.DataFrame([as_text(source.column(name)).str.strip_chars().alias(name) for name in names])
    numbers = cells.select(pl.all().cast(pl.Float64, strict=False))
    whole = (pl.all() >= 0) & (pl.all() < 2**31) & (pl.all() % 1 == 0)
    wrong = numbers.select(~pl.all_horizontal(whole.fill_null(False)).all()).item()
    return None if wrong else numbers.to_numpy().astype(np.int64)


def _adds_up(numbers: NDArray[np.int64]) -> bool:
    """Return whether rows that differ add up to the same number of votes, two at least."""
    sums = numbers.sum(axis=1)
    return bool((sums == sums[0]).all() and sums[0] > 1 and len(np.unique(numbers, axis=0)) > 2)


def _wide(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog, voting: Sequence[str]
) -> ColumnRoles:
    if not voting:
        msg = f"{source.name} has no column left for annotators: {shown(source.columns)} have other roles."
        raise VotesError(msg)
    if options.layout == "auto":
        log.note(f"no annotator and no label column: each of {len(voting)} columns is read as an annotator.")
    _note_others(source, roles, options, log, voting, "annotators")
    return replace(roles.without("annotator").without("label"), layout="wide", annotators=tuple(voting))


def _respondents(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog, voting: Sequence[str]
) -> ColumnRoles:
    """Make every row a person: the id, if there is one, is the annotator's."""
    who = roles.get("annotator") or roles.get("item") or _person_id(source)
    if options.asked("annotator") == "":
        who = None
    roles = ColumnRoles({"annotator": who} if who else {}, roles.guessed if who else ())
    about = ABOUT_PEOPLE | ABOUT_VOTES
    items = tuple(name for name in voting if name != who and plain_name(name) not in about)
    if not items:
        msg = f"{source.name} has no column left for items: {shown(source.columns)}."
        raise VotesError(msg)
    if options.layout == "auto":
        log.note(f"one row per person: each of {len(items)} columns is read as an item (--layout wide: as annotators).")
    _note_others(source, roles, options, log, items, "items")
    guessed = tuple(role for role in ("annotator",) if who and options.asked(role) is None)
    return replace(roles, guessed=guessed, layout="respondents", items=items)


def _person_id(source: Source) -> str | None:
    """Return an id, or an address, that is different in every row."""
    ids = (name for name in source.columns if plain_name(name) in PERSON_IDS.union(WEAK_ITEM))
    return next((name for name in ids if source.column(name).n_unique() == source.rows), None)


def _note_others(
    source: Source, roles: ColumnRoles, options: ReadOptions, log: ReadingLog, voting: Sequence[str], what: str
) -> None:
    taken = {*roles.column.values(), *options.keep, *options.facts, *voting}
    if others := [name for name in source.columns if name not in taken]:
        log.note(f"columns not taken for {what}: {shown(others)}.")


def _question(source: Source, voting: Sequence[str]) -> str:
    """Return the question how a table is laid out, with the option for each reading."""
    names = _as_flag(voting)
    readings = [
        "annotators, one row per item (--layout wide)",
        "items, one row per person (--layout respondents)",
    ]
    numbers = _numbers(source, voting)
    if numbers is not None and numbers.max() > 1:
        readings += [
            f"labels, with how many chose each (--anonymous --counts {names})",
            f"questions, with how many of N said yes (--anonymous --questions {names} --of N)",
        ]
    elif numbers is not None:
        readings.append(f"yes/no questions, with one answer per row (--anonymous --questions {names})")
    return f"what are the columns {shown(voting)} of {source.name}? They could be: {'; '.join(readings)}. Say which."


def _as_flag(names: Sequence[str], most: int = 12) -> str:
    """Write names of columns as they are typed after a flag."""
    joined = ",".join(names) if len(names) <= most else ",".join([*names[:2], "…"])
    return shlex.quote(joined) if " " in joined else joined


# --- What columns look like ---------------------------------------------------------------------------------------


def _alike(source: Source, names: Iterable[str]) -> list[str]:
    """Return the columns with few distinct cells, at least half of which occur in another such column."""
    cells: dict[str, set[str]] = {}
    for name in names:
        column = source.column(name)
        if column.dtype.is_nested() or column.n_unique() > FEW_LABELS + 1:
            continue
        labels = {label.casefold() for label in code_labels(column).values.to_list()}
        if len(labels) <= FEW_LABELS:
            cells[name] = labels
    scales = [
        name
        for name in cells
        if _is_scale(cells[name]) and (len(cells[name]) > 2 or RATER.fullmatch(name) or THING.fullmatch(name))
    ]

    def shares(name: str) -> bool:
        others = set().union(*(cells[other] for other in cells if other != name))
        same_scale = name in scales and len(scales) > 1
        return bool(cells[name]) and (same_scale or 2 * len(cells[name] & others) >= len(cells[name]))

    return [name for name in cells if shares(name)]


def _is_scale(labels: Iterable[str]) -> bool:
    """Return whether labels are ratings from 0 to 10."""
    return all(NUMBER.fullmatch(label) and 0 <= float(label) <= 10 for label in labels)


def _all_yes_no(source: Source, names: Sequence[str]) -> bool:
    coded: list[Coded] = [code_labels(source.column(name)) for name in names]
    return all(label.casefold() in YES + NO for column in coded for label in column.values.to_list())


def _most(names: Sequence[str], pattern: re.Pattern[str]) -> bool:
    return 2 * sum(bool(pattern.fullmatch(name.strip())) for name in names) > len(names)


def _repeats(source: Source, name: str) -> bool:
    column = source.column(name).drop_nulls()
    return bool(column.n_unique() < len(column))


def _unused(source: Source, roles: ColumnRoles, options: ReadOptions) -> list[str]:
    taken = {*roles.column.values(), *options.keep, *options.facts}
    return [name for name in source.columns if name not in taken]


def _with_guess(roles: ColumnRoles, role: str, name: str) -> ColumnRoles:
    column = {**roles.column, role: name}
    in_order = {one: column[one] for one in (*COMMON_NAMES, "published") if one in column}
    return replace(roles, column=in_order, guessed=(*roles.guessed, role))


def _texts_as_items(roles: ColumnRoles) -> ColumnRoles:
    if roles.get("item") or not (text := roles.get("text")) or roles.get("count"):
        return roles
    return ColumnRoles({"item": text, **roles.column}, ("item", *roles.guessed))


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
