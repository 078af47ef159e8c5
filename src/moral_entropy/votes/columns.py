"""Which column plays which role (item, annotator, label, …), and how the rows of a table are laid out.

Names of columns go first: those that the user gives, then those that people commonly use. Where they do not tell, the
cells do. What can be read in more than one way ends in a question that names the option for each reading.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from moral_entropy.errors import UsageError, VotesError
from moral_entropy.options import ReadOptions
from moral_entropy.votes.labels import (
    LONGEST_IN_LIST,
    MOST_IN_LISTS,
    NO,
    NOTHING,
    NUMBER,
    as_text,
    code_cells,
    guess_separator,
)
from moral_entropy.votes.source import LEVELS, Source
from moral_entropy.votes.table import ReadingLog, refuse, shown

COMMON_NAMES: Mapping[str, tuple[str, ...]] = {
    role: tuple(names.split())
    for role, names in {
        "item": """
            moralentropyitem item itemid task taskid textid tweetid commentid postid documentid docid document doc
            example exampleid instance instanceid unit unitid sentenceid pairid messageid reviewid imageid image
            headlineid headline stimulusid stimulus vignette questionid qid id""",
        "annotator": """
            annotator annotatorid annotatorname worker workerid rater raterid coder coderid judge judgeid user
            userid username labeler labeller labelerid reviewer participant participantid respondent respondentid
            subject subjectid prolificid prolificpid voter voterid evaluator grader codername ratername model llm
            emailaddress""",
        "label": """
            label labels vote votes annotation annotations rating answer response class category verdict judgment
            judgement choice code grade""",
        "question": "moralentropyquestion question foundation dimension aspect criterion questionid",
        "domain": "domain subcorpus corpus bucket subreddit source outlet system",
        "text": "text tweettext content comment sentence tweet body posttext prompt statement utterance passage",
        "gold": "gold goldlabel goldstandard truth groundtruth truelabel expert expertlabel",
        "count": "count counts n freq frequency weight",
    }.items()
}
"""Names that people use, in lower case and without blanks, the likeliest first."""

ALL_ROLES = (*COMMON_NAMES, "published")
SURELY_LABEL = ("label", "labels", "vote", "votes", "annotation", "annotations")
"""Names beside which no further column is taken for answers."""

FEW_LABELS, MOST_CELLS = 20, 1_000
"""A column with more distinct cells than this is not guessed to hold votes."""

ABOUT_PEOPLE = frozenset(re.findall(r"\w+", """
    timestamp age agegroup gender sex education nationality country ethnicity occupation nativelanguage
    firstlanguage email emailaddress consent startdate enddate recordeddate ipaddress duration durationinseconds
    finished progress responseid respondent respondentid participant participantid prolificid prolificpid subject
    subjectid submitdate username"""))  # fmt: skip
"""Names of columns that say something about a person who answered, in lower case and without blanks."""

PERSON_IDS = frozenset({"responseid", "email", "emailaddress", "username", "id"})
"""Those of them that tell people apart, though not in a table of votes; `id` may be that of an item as well."""

ABOUT_VOTES = frozenset(re.findall(r"\w+", """
    time date datetime createdat updatedat seconds confidence certainty sure comments note notes remark remarks
    reason explanation rationale worktime worktimeinseconds batch round session phase wave split order position rank
    trial page device platform language lang version status leadtime file sheet"""))  # fmt: skip
"""Names of columns that say something about a vote, but not what it is."""

RATER = re.compile(
    r"(annotator|annot|ann|rater|coder|judge|worker|user|labell?er|reviewer|expert|voter|model|llm|crowd|label|vote|"
    r"rating|annotation|judgment|judgement|[arwjc])[\s_.#-]*(\d+|[a-z])?"
    r"|.*(gpt|claude|llama|mistral|mixtral|gemini|gemma|qwen|palm|bert|deepseek).*", re.I
)  # fmt: skip
"""A heading that names somebody who votes."""

MARKS = {**dict.fromkeys(("x", "✓", "✔", "☑", "✅", "•", "*", "1"), ("1", "0")), "yes": ("yes", "no"),
         "true": ("true", "false"), "y": ("yes", "no"), "ja": ("yes", "no"), "on": ("yes", "no")}  # fmt: skip
"""Marks that stand for yes where nothing else occurs and all other cells are blank; what both are read as."""

THING = re.compile(
    r"(q|item|question|statement|text|tweet|post|comment|sentence|stimulus|vignette|scenario|story|image|[sti])"
    r"[\s_.#-]*\d+|.*\?|.*\[.*\]|\W*(\w+\W+){3,}\w+\W*", re.I
)  # fmt: skip
"""A heading that names something to vote on: numbered, a question, or a sentence."""


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
        item ("respondents"), per item with counts ("counts"), or with a column per annotator and question ("grid").
    annotators
        The columns that are annotators, in the wide layout.
    items
        The columns that are items, with one row per respondent.
    grid
        The column of each pair of annotator and question, where there is one for every pair.
    """

    column: Mapping[str, str]
    guessed: tuple[str, ...] = ()
    layout: Literal["long", "wide", "respondents", "counts", "grid"] = "long"
    annotators: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    grid: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def without(self, *roles: str) -> ColumnRoles:
        """Return these roles without some of them."""
        column = {role: name for role, name in self.column.items() if role not in roles}
        return replace(self, column=column, guessed=tuple(role for role in self.guessed if role not in roles))

    def guess(self, role: str, name: str) -> ColumnRoles:
        """Return these roles with a column guessed for one more."""
        column = {**self.column, role: name}
        in_order = {role: column[role] for role in ALL_ROLES if role in column}
        return replace(self, column=in_order, guessed=(*self.guessed, role))


Recognised = tuple[ColumnRoles, ReadOptions]
"""Which column plays which role, and the options that follow from it."""


# --- Roles told from the names of columns -------------------------------------------------------------------------


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
    for role in ALL_ROLES:
        # With a file of its own, the gold column is one of that file's.
        if (name := getattr(options, role)) and not (role == "gold" and options.gold_file is not None):
            column[role] = named_column(name, names, source, role)
    for role in ("questions", "counts", "keep", "facts"):
        for name in getattr(options, role):
            named_column(name, names, source, role)
    wide, questions, guessed = options.format == "wide", bool(options.questions), []
    useless = {
        "annotator": options.anonymous or wide,
        "label": questions or bool(options.counts) or wide,
        "question": questions or bool(options.multilabel),
        "gold": questions or options.gold_file is not None,
    }
    for role in COMMON_NAMES:
        useful = role == "annotator" if options.format == "respondents" else not useless.get(role)
        if role not in column and useful and getattr(options, role) != "":
            in_use = {*column.values(), *options.questions, *options.counts}
            if guess := guess_column(role, [name for name in names if name not in in_use]):
                column[role] = guess
                guessed.append(role)
    return ColumnRoles({role: column[role] for role in ALL_ROLES if role in column}, tuple(guessed))


def named_column(column: str, names: Sequence[str], source: str, role: str) -> str:
    """Check that a column the user named exists."""
    if column in names:
        return column
    if role == "gold" and Path(column).is_file():
        refuse(f"--gold names a column of {source}, and {column!r} is a file. Write --gold-file {column}.")
    near = difflib.get_close_matches(column, names, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    refuse(f"{source} has no column {column!r}. Found: {shown(names)}. {hint}{naming(role, *(near or ('COLUMN',)))}")


def guess_column(role: str, names: Iterable[str]) -> str | None:
    """Return the column with the likeliest common name for a role, if any has one."""
    plain = {plain_name(name): name for name in reversed(list(names))}
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
    problem = f"{source} has no column that looks like the {role}. Found: {shown(names)}"
    msg = f"{problem}. {naming(role, 'COLUMN')}{also} If its first line is a vote already, add a header."
    return VotesError(msg)


def naming(role: str, column: str) -> str:
    """Return a sentence that says how to name a column, in Python and on the command line."""
    if role not in ("questions", "counts", "keep", "facts"):
        return f'Name it with {role}="{column}" (CLI: --{role} {column}).'
    flag = f"fit-by {column}" if role == "facts" else f"{role} {column},…"
    if role == "keep":
        flag += f"; for groups of annotators --annotator-group {column}, for roles of judges --roles {column}"
    return f"Name it with {role}=[{column!r}, …] (CLI: --{flag})."


# --- Layout told from the cells -----------------------------------------------------------------------------------


def recognise(source: Source, options: ReadOptions) -> Recognised:
    """Return which column plays which role, how the rows are laid out, and the options that follow from it.

    Parameters
    ----------
    source
        The table; notes go into its log.
    options
        What the user asked for, which always counts.

    Examples
    --------
    >>> from moral_entropy.votes.source import open_source
    >>> table = open_source(pl.DataFrame({"id": [1, 2], "rater 1": ["yes", "no"], "rater 2": ["no", "no"]}))
    >>> roles, _ = recognise(table, ReadOptions())
    >>> roles.layout, roles.annotators
    ('wide', ('rater 1', 'rater 2'))
    """
    roles = find_columns(source.columns, options, source.name)
    if not roles.column.get("item") and (text := roles.column.get("text")) and not roles.column.get("count"):
        roles = ColumnRoles({"item": text, **roles.column}, ("item", *roles.guessed))
    elif "text" in roles.guessed:
        # A column called prompt may hold numbers: those are no texts.
        numbers = as_text(source.column(roles.column["text"])).drop_nulls().head(1_000).cast(pl.Float64, strict=False)
        roles = roles if numbers.has_nulls() else roles.without("text")
    if options.counts or options.of is not None:
        roles = replace(roles.without("count"), layout="counts")
    elif options.format in ("wide", "respondents"):
        lay_out = _wide if options.format == "wide" else _respondents
        roles = lay_out(source, roles, options, _unused(source, roles, options))
    elif not (options.format == "long" or options.multilabel or options.questions):
        roles, options = _from_cells(source, roles, options)
    is_long = roles.layout == "long"
    required = {"item": is_long or roles.layout == "counts", "annotator": is_long and not options.anonymous,
                "label": is_long and not options.questions}  # fmt: skip
    for role, is_required in required.items():
        if is_required and roles.column.get(role) is None:
            raise missing_column(role, source.columns, source.name, also=OTHER_WAYS if role == "annotator" else "")
    if is_long and not options.anonymous and "count" in roles.column:
        if options.count:
            refuse("a long table has one vote per row: count= is for the wide layout, or --anonymous.", UsageError)
        roles = roles.without("count")
    if "item" in roles.guessed and roles.column.get("item") == roles.column.get("text"):
        source.log.note(f"no item column: items are told apart by their text ({roles.column['text']!r}).")
    if "gold" in roles.guessed and (name := roles.column["gold"]):
        # A column of a file that only its name calls the truth: labels are checked where the user says so.
        if not source.sha256:
            source.log.note(f'column {name!r} is taken for true labels (guessed; gold="" does without).')
            return roles, options
        source.log.note(f"column {name!r} may hold true labels and is not used (--gold {_as_flag([name])} uses it).")
        roles = roles.without("gold")
    return roles, options


def fill_marks(source: Source, names: Sequence[str]) -> Source:
    """Read blank cells as no in columns that hold nothing but one mark, such as x.

    Where a column of marks is called none, a row without any mark was not answered.
    """
    texts = [as_text(source.column(name)).str.strip_chars().replace("", None).alias(name) for name in names]
    marks = {mark.casefold() for column in texts for mark in column.drop_nulls().unique().to_list()}
    blanks = sum(column.null_count() for column in texts)
    if len(marks) != 1 or not blanks or (mark := marks.pop()) not in MARKS:
        return source
    yes, no = MARKS[mark]
    frame = pl.DataFrame(texts).with_columns(pl.any_horizontal(pl.all().is_not_null()).alias("(marked)"))
    nothing = [name for name in names if re.sub(r"[^a-z]", "", name.casefold()) in NOTHING]
    silent = int((~frame["(marked)"]).sum())
    if nothing:
        source.log.drop("no mark in any column", silent)
    elif silent:
        source.log.note(f"{silent:,} rows without any mark count as no in every column.")
    source.log.note(f"{mark!r} is read as yes and a blank cell as no in {shown(names)}.")
    blank = pl.when(pl.col("(marked)") | pl.lit(not nothing)).then(pl.lit(no))
    cells = {name: pl.when(pl.col(name).is_null()).then(blank).otherwise(pl.lit(yes)) for name in names}
    answers = frame.select(**cells)
    return replace(source, fetch=lambda name: answers[name] if name in names else source.fetch(name))


def fill_down(source: Source, roles: ColumnRoles) -> Source:
    """Fill cells of the item, and of what describes it, from the row above where merged cells left them blank."""
    item, annotator = roles.column.get("item"), roles.column.get("annotator")
    if not item or not annotator or not source.textual:
        return source
    blank = (column := source.column(item)).is_null()
    if 5 * blank.sum() < len(blank) or blank[0] or column.drop_nulls().is_duplicated().any():
        return source
    if (blank & source.column(annotator).is_null()).any():
        return source
    names = {name for role in ("item", "text", "domain") if (name := roles.column.get(role))}
    note = f"{blank.sum():,} rows without an item belong to the item above (merged cells)"
    source.log.note(f"{note}: {shown(sorted(names))}.")
    filled = {name: source.column(name).forward_fill() for name in names}
    return replace(source, fetch=lambda name: filled[name] if name in filled else source.fetch(name))


def _grid(source: Source, roles: ColumnRoles, options: ReadOptions) -> Recognised | None:
    """Tell columns for every pair of an annotator and a question, such as `Ann / care` or `rater1_care`."""
    for between in (LEVELS, ": ", "_", ".", " - ", " "):
        pairs = {name: tuple(name.split(between, 1)) for name in _unused(source, roles, options) if between in name}
        firsts, seconds = (sorted({pair[at] for pair in pairs.values()}) for at in (0, 1))
        full = len(set(pairs.values())) == len(firsts) * len(seconds) == len(pairs)
        if not full or len(firsts) < 2 or len(seconds) < 2:
            continue
        last = _mostly(seconds, RATER) and not _mostly(firsts, RATER)
        if between != LEVELS and not (last or _mostly(firsts, RATER)):
            continue
        people, questions = (seconds, firsts) if last else (firsts, seconds)
        column_of = {pair[::-1] if last else pair: name for name, pair in pairs.items()}
        source.log.note(f"a column for each annotator ({shown(people)}) and question ({shown(questions)}).")
        roles = _with_row_ids(source, roles, options, list(pairs))
        roles = replace(roles.without("annotator", "label"), layout="grid", grid=column_of)
        return roles, replace(options, questions=tuple(questions))
    return None


def _from_cells(source: Source, roles: ColumnRoles, options: ReadOptions) -> Recognised:
    """Look at cells where the names of columns do not tell item, annotator and label."""
    if not roles.column.get("annotator") and (grid := _grid(source, roles, options)) is not None:
        return grid
    item, label = roles.column.get("item"), roles.column.get("label")
    annotator = roles.column.get("annotator") or options.anonymous
    if label:
        lacking = "annotator" if item and not annotator else "item" if annotator and not item else ""
        roles = _guess_one(source, roles, options, lacking) if lacking else roles
        has_truth = options.gold or options.published or options.gold_file is not None or options.classes is not None
        column = roles.column
        alone = has_truth or "label" not in roles.guessed or column.get("question") or plain_name(label) in SURELY_LABEL
        complete = column.get("item") and column.get("annotator")
        return (roles, options) if alone or not complete else _answer_columns(source, roles, options)
    if item and options.anonymous and not _repeats(source, item):
        return _columns_of_votes(source, roles, options)
    if item and annotator:
        return _label_from_cells(source, roles, options)
    if roles.column.get("annotator") and _repeats(source, roles.column["annotator"]):
        roles = _guess_one(source, roles, options, "item")
        return _label_from_cells(source, roles, options) if roles.column.get("item") else (roles, options)
    return _columns_of_votes(source, roles, options)


def _answer_columns(source: Source, roles: ColumnRoles, options: ReadOptions) -> Recognised:
    """Find the columns of answers beside item and annotator: a single one is the label, each of several a question."""
    unused, labels = _unused(source, roles, options), [name for name in [roles.column.get("label")] if name]
    alone = len(unused) == 1 and not labels
    names = labels + (unused if alone else [name for name in unused if _could_be_votes(source, name, roles)])
    if len(names) < 2:
        return roles.guess("label", names[0]) if names and not labels else roles, options
    way = f"--label {_as_flag(names[:1])} reads one"
    source.log.note(f"{len(names)} columns of answers, each a question: {shown(names)} ({way}).")
    return roles.without("label"), replace(options, questions=tuple(names))


def _guess_one(source: Source, roles: ColumnRoles, options: ReadOptions, role: str) -> ColumnRoles:
    """Find the annotator or the item among the columns left: with the other one it must name every row once."""
    if options.anonymous:
        return roles
    partner = roles.column["item" if role == "annotator" else "annotator"]
    fitting = []
    for name in _unused(source, roles, options):
        column = source.column(name)
        if _is_about(name) or column.dtype.is_float() or column.dtype.is_nested() or _is_fraction(column):
            continue
        pairs = pl.DataFrame({"column": column, "partner": source.column(partner)}).drop_nulls()
        # Neither does so alone.
        repeats = (n_values := column.n_unique()) > 1 and (n_values < source.rows or source.rows < 3)
        if repeats and 2 * pairs.height > source.rows and pairs.n_unique() == pairs.height:
            fitting.append(name)
    if role == "item" and len(fitting) > 1:
        # A label can name the rows of few votes; what has the most values is what was voted on.
        counts = {name: source.column(name).n_unique() for name in fitting}
        fitting = [name for name in fitting if counts[name] == max(counts.values())]
    return roles.guess(role, fitting[0]) if len(fitting) == 1 else roles


def _is_about(name: str) -> bool:
    """Return whether a name says that a column describes a person or a vote."""
    return plain_name(name) in ABOUT_PEOPLE | ABOUT_VOTES


def _is_fraction(column: pl.Series) -> bool:
    return bool(as_text(column.drop_nulls().head(1_000)).str.contains(r"^\s*-?\d+[.,]\d*[1-9]\d*\s*$").any())


def _label_from_cells(source: Source, roles: ColumnRoles, options: ReadOptions) -> Recognised:
    """Find the column of labels where item and annotator are known, or columns of 0 and 1 that are questions."""
    annotator = roles.column.get("annotator")
    if annotator and not _repeats(source, annotator) and not _repeats(source, roles.column["item"]):
        # Nobody voted twice and nothing was voted on twice: each row is a person, or an item.
        return _columns_of_votes(source, roles.without("item") if "item" in roles.guessed else roles, options)
    return _answer_columns(source, roles, options)


def _could_be_votes(source: Source, name: str, roles: ColumnRoles) -> bool:
    """Return whether a column has few labels, which belong neither to its item nor to its annotator."""
    column, plain = source.column(name), plain_name(name)
    if any(plain in names for role, names in COMMON_NAMES.items() if role != "label"):
        return False
    distinct = as_text(column).drop_nulls().unique().str.to_lowercase().to_list()
    empty = not distinct or (len(distinct) == 1 and distinct[0] not in {*NO, *MARKS})
    if empty or _is_about(name) or _is_fraction(column):
        return False
    if (n_values := column.n_unique()) > FEW_LABELS + 1:
        texts = as_text(column.drop_nulls()).unique().to_list()
        if n_values > MOST_CELLS or not (column.dtype.is_nested() or guess_separator(texts, ReadingLog())):
            return False
    for owner in filter(None, map(roles.column.get, ("item", "annotator"))):
        # Every item, or annotator, has one value, and there are several values.
        frame = pl.DataFrame({"value": column, "owner": source.column(owner)}).drop_nulls()
        owners, values = frame.get_column("owner").n_unique(), frame.get_column("value").n_unique()
        if owners < frame.height and values > 1 and frame.n_unique() == owners:
            return False
    return True


def _columns_of_votes(source: Source, roles: ColumnRoles, options: ReadOptions) -> Recognised:
    """Tell what several columns of votes are: annotators, items, or labels that are counted."""
    voting = [name for name in _alike(source, _unused(source, roles, options)) if not _is_about(name)]
    if len(voting) < 2:
        return roles, options
    raters, things = _mostly(voting, RATER), _mostly(voting, THING)
    # What says that each row is an item: its name, or a text, gold label, domain or count.
    has_item = roles.column.get("item") and ("item" not in roles.guessed or plain_name(roles.column["item"]) != "id")
    items = bool(has_item) or any(roles.column.get(role) for role in ("text", "gold", "domain", "count", "published"))
    people = bool(roles.column.get("annotator")) or any(plain_name(name) in ABOUT_PEOPLE for name in source.columns)
    if not raters and not items and (people or things):
        return _respondents(source, roles, options, voting), options
    filled = fill_marks(replace(source, log=ReadingLog()), voting)
    cells = pl.DataFrame([as_text(filled.column(name)).str.strip_chars().alias(name) for name in voting])
    frame = cells.select(pl.all().cast(pl.Float64, strict=False))
    integral = (pl.all() >= 0) & (pl.all() < 2**31) & (pl.all() % 1 == 0)
    are_numbers = frame.select(pl.all_horizontal(integral.fill_null(False)).all()).item()
    numbers = frame.to_numpy().astype(np.int64) if are_numbers else None
    if not people and (raters or items) and not things:
        roles = _with_row_ids(source, roles, options, voting)
        if raters or roles.column.get("count") or numbers is None:
            return _wide(source, roles, options, voting), options
        sums_r = numbers.sum(axis=1)
        # Rows that differ and add up to the same number of votes, two at least, count labels.
        add_up = (sums_r == sums_r[0]).all() and sums_r[0] > 1 and len(np.unique(numbers, axis=0)) > 2
        if roles.column.get("item") and add_up:
            source.log.note(f"the {len(voting)} columns add up to {int(sums_r[0])} in every row: they count labels.")
            options = replace(options, counts=tuple(voting), anonymous=True)
            return replace(roles.without("count"), layout="counts"), options
    names = _as_flag(voting)
    readings = ["annotators, one row per item (--format wide)", "items, one row per person (--format respondents)"]
    if numbers is not None and numbers.max() > 1:
        readings += [
            f"labels, with how many chose each (--anonymous --counts {names})",
            f"questions, with how many of N said yes (--anonymous --questions {names} --of N)",
        ]
    elif numbers is not None:
        readings.append(f"yes/no questions, with one answer per row (--anonymous --questions {names})")
    problem = f"what are the columns {shown(voting)} of {source.name}? They could be: {'; '.join(readings)}"
    refuse(f"{problem}. Say which.", UsageError)


def _with_row_ids(source: Source, roles: ColumnRoles, options: ReadOptions, voting: Sequence[str]) -> ColumnRoles:
    """Take the one column left that is different in every row for the item, where none has such a name."""
    if roles.column.get("item") or roles.column.get("count"):
        return roles
    unused = [name for name in _unused(source, roles, options) if name not in voting and not _is_about(name)]
    columns = [column for name in unused if not (column := source.column(name)).dtype.is_nested()]
    ids = [column.name for column in columns if column.n_unique() == source.rows and not column.null_count()]
    return roles.guess("item", ids[0]) if len(ids) == 1 else roles


def _wide(source: Source, roles: ColumnRoles, options: ReadOptions, voting: Sequence[str]) -> ColumnRoles:
    if not voting:
        refuse(f"{source.name} has no column left for annotators: {shown(source.columns)} have other roles.")
    if options.format != "wide":
        source.log.note(f"no annotator and no label column: each of {len(voting)} columns is read as an annotator.")
    return replace(roles.without("annotator", "label"), layout="wide", annotators=tuple(voting))


def _respondents(source: Source, roles: ColumnRoles, options: ReadOptions, voting: Sequence[str]) -> ColumnRoles:
    """Make every row a person: the id, if there is one, is the annotator's."""
    ids = (name for name in source.columns if plain_name(name) in PERSON_IDS)
    unique = (name for name in ids if source.column(name).n_unique() == source.rows)
    person = roles.column.get("annotator") or roles.column.get("item") or next(unique, None)
    if options.annotator == "":
        person = None
    items = tuple(name for name in voting if name != person and not _is_about(name))
    if not items:
        refuse(f"{source.name} has no column left for items: {shown(source.columns)}.")
    if options.format != "respondents":
        reading = f"each of {len(items)} columns is read as an item (--format wide: as annotators)"
        source.log.note(f"one row per person: {reading}.")
    guessed = ("annotator",) if person and options.annotator is None else ()
    return ColumnRoles({"annotator": person} if person else {}, guessed, "respondents", items=items)


def _as_flag(names: Sequence[str], limit: int = 12) -> str:
    """Write names of columns as they are typed after a flag."""
    joined = ",".join(names) if len(names) <= limit else ",".join([*names[:2], "…"])
    return shlex.quote(joined) if " " in joined else joined


def _alike(source: Source, names: Iterable[str]) -> list[str]:
    """Return the columns with few distinct cells, at least half of which occur in another such column."""
    columns = {name: column for name in names if (column := source.column(name)).n_unique() <= MOST_CELLS}
    texts = {name: as_text(column.drop_nulls()).unique().to_list() for name, column in columns.items()}
    pooled = {text for listed in texts.values() for text in listed if len(text) <= 2 * LONGEST_IN_LIST}
    separator = guess_separator(sorted(pooled), ReadingLog())
    cells: dict[str, set[str]] = {}
    for name, column in columns.items():
        options = ReadOptions(multilabel=separator if any(separator in text for text in texts[name]) else "")
        coded = code_cells(column, options, ReadingLog())
        labels = {label.casefold() for cell in coded.labels_c for label in cell or ()}
        if len(labels) <= (MOST_IN_LISTS if coded.separator else FEW_LABELS):
            cells[name] = labels

    times = Counter(label for labels in cells.values() for label in labels)
    levels = {label for label in times if NUMBER.fullmatch(label) and 0 <= float(label) <= 10}
    scales = [name for name, labels in cells.items() if labels <= levels]
    scales = [name for name in scales if len(cells[name]) > 2 or RATER.fullmatch(name) or THING.fullmatch(name)]
    n_shared = {name: sum(times[label] > 1 for label in labels) for name, labels in cells.items()}
    same_scale = scales if len(scales) > 1 else []
    return [name for name in cells if cells[name] and (name in same_scale or 2 * n_shared[name] >= len(cells[name]))]


def _mostly(names: Sequence[str], pattern: re.Pattern[str]) -> bool:
    return 2 * sum(bool(pattern.fullmatch(name.strip())) for name in names) > len(names)


def _repeats(source: Source, name: str) -> bool:
    column = source.column(name).drop_nulls()
    return bool(column.n_unique() < len(column))


def _unused(source: Source, roles: ColumnRoles, options: ReadOptions) -> list[str]:
    in_use = {*roles.column.values(), *options.keep, *options.facts}
    return [name for name in source.columns if name not in in_use]


OTHER_WAYS = (
    ' If each column is an annotator: format="wide" (CLI: --format wide). If each file is: name them all. '
    "Votes without annotators: anonymous=True (CLI: --anonymous)."
)
