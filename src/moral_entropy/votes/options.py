"""Options of `read_votes`, and which of them contradict each other. Knows the options, not the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option

Layout = Literal["auto", "long", "wide", "respondents"]
TABLES: tuple[Layout, ...] = ("long", "wide", "respondents")
Format = Literal[
    "auto", "long", "wide", "respondents", "label-studio", "argilla", "prodigy", "doccano", "potato", "mturk", "lewidi",
    "mftc", "mfrc", "emfd", "hf-datasets", "inspect", "promptfoo", "langfuse", "openai-evals", "judges",
]  # fmt: skip
VOTE_COLUMNS = ("question", "item", "annotator", "label")
"""Columns of votes.parquet."""

OnRepeat = Literal["error", "first", "last", "count"]


COLUMNS, LAYOUT = "Columns (guessed when not named)", "Layout of the votes"


@dataclass(frozen=True)
class ReadOptions(StageOptions):
    """How to read votes: the options of `read_votes`, which explains them."""

    item: str | None = option(None, "Column of the items: what was voted on.", panel=COLUMNS, everyday=True)
    annotator: str | None = option(None, "Column of the annotators: who voted.", panel=COLUMNS, everyday=True)
    label: str | None = option(None, "Column of the labels: the votes.", panel=COLUMNS, everyday=True)
    question: str | None = option(None, "Column that says which question a vote answers.", panel=COLUMNS, everyday=True)
    domain: str | None = option(
        None, "Column of the items' domains: where they come from.", panel=COLUMNS, everyday=True
    )
    text: str | None = option(None, "Column of the items' texts.", panel=COLUMNS, everyday=True)
    gold: str | None = option(None, "Column of the true labels, where they are known.", panel=COLUMNS, everyday=True)
    published: str | None = option(None, "Column of labels that somebody has already published.", panel=COLUMNS)
    count: str | None = option(
        None,
        "Column of how many items a row of the wide layout stands for, or how many anonymous votes a row of the long "
        "one does.",
        panel=COLUMNS,
    )
    format: Format | str = option(
        "auto",
        f"Tool that wrote the file, or the layout of a plain table: {', '.join(get_args(Format))}.",
        metavar="TOOL",
        panel=LAYOUT,
        everyday=True,
    )
    layout: Layout = option(
        "auto",
        "long: one row per vote; wide: one row per item and one column per annotator; respondents: one row per person "
        "and one column per item; auto tells from the columns.",
        panel=LAYOUT,
    )
    positive: str | None = option(
        None,
        "The positive label of two; by default 1, true, yes, positive, y or t, else the one that is no negation "
        "(non-…, not …, none, other), else the one that sorts last.",
        metavar="LABEL",
        panel=LAYOUT,
    )
    multilabel: str | None = option(
        None,
        "Separator of cells that name several labels, such as care,harm; every label becomes a yes/no question.",
        metavar="SEPARATOR",
        panel=LAYOUT,
    )
    questions: tuple[str, ...] = option((), "Columns of 0 and 1, each a question of its own.", panel=LAYOUT)
    labels: str | Path | Mapping[str, str | bool] | None = option(
        None,
        'TOML file that merges and drops labels, with lines such as harm = "care" and nm = ""; in Python also a '
        "mapping.",
        metavar="FILE",
        panel=LAYOUT,
    )
    missing: tuple[str, ...] | None = option(
        None,
        "Labels that mean no answer, instead of NA, N/A, null, -, ? and no answer (and none, where all other labels "
        "are yes and no or numbers); empty for none.",
        panel=LAYOUT,
    )
    keep_case: bool = option(
        False, "Keep labels apart that differ only in case, or that all say yes or no, such as y and 1.", panel=LAYOUT
    )
    on_repeat: OnRepeat = option(
        "error",
        "When an annotator voted twice on an item: error stops, first and last keep that vote, count keeps each as a "
        "vote of its own.",
        metavar="NAME",
        panel=LAYOUT,
    )
    exclude: tuple[str, ...] = option((), "Annotators whose votes are not read at all.", panel=LAYOUT)
    anonymous: bool = option(False, "Votes without annotators: all share one confusion matrix.", panel=LAYOUT)
    counts: tuple[str, ...] = option((), "Columns, one per label, that hold how many chose it.", panel=LAYOUT)
    of: int | str | None = option(
        None,
        "How many voted, a number or a column, when the columns of questions hold how many said yes.",
        metavar="N|COLUMN",
        panel=LAYOUT,
    )
    gold_file: str | Path | Any = option(
        None,
        "File of true labels (in Python also a dataframe): columns item, gold and, if there are several, question.",
        metavar="FILE",
        panel=LAYOUT,
    )
    classes: int | tuple[Any, ...] | None = option(
        None, "All labels, or how many there are, when some may not occur.", metavar="N|A,B,…", panel=LAYOUT
    )
    sheet: str | None = option(None, "Sheet of an Excel workbook; needed where several sheets have data.", panel=LAYOUT)
    encoding: str | None = option(
        None, "Encoding of a text file, such as cp1250; told from its bytes where it is not named.", panel=LAYOUT
    )
    keep: tuple[str, ...] = option(
        (),
        "Further columns to write into votes.parquet: what annotators are, when a vote was given, how sure it is.",
        panel=COLUMNS,
    )
    facts: tuple[str, ...] = option((), "Further columns about items to carry along.", flag="")

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        self._check_format()
        if wrong := [problem for is_wrong, problem in self._contradictions() if is_wrong]:
            raise UsageError(wrong[0])

    def _check_format(self) -> None:
        """Refuse the name of a tool that neither this package nor a plugin reads."""
        if self.format in get_args(Format):
            return
        # Late: looking through the installed packages takes time.
        from moral_entropy.plugins import FORMATS, plugin_names

        offered = plugin_names(FORMATS)
        if self.format not in offered:
            known = ", ".join([*get_args(Format), *offered])
            msg = f"{self.called('format')} is {self.format!r}; choose one of {known}."
            raise UsageError(msg)

    def asked(self, role: str) -> str | None:
        """Return the column named for a role; empty where the user wants none."""
        name = getattr(self, role)
        return None if name is None else str(name)

    @property
    def table_layout(self) -> Layout:
        """How a table is laid out, as `layout` or `format` says."""
        named = [layout for layout in TABLES if layout == self.format]
        return named[0] if named else self.layout

    def _contradictions(self) -> list[tuple[bool, str]]:
        """List what options could contradict each other: whether they do, and what to do about it."""
        kinds = [name for name in ("multilabel", "questions", "counts") if getattr(self, name)]
        reserved = [name for name in self.keep if name in VOTE_COLUMNS]
        kind, called = "".join(map(self.called, kinds[:1])), self.called
        both = " and ".join(map(self.called, kinds))
        return [
            (len(kinds) > 1, f"{both} are two ways to say where the labels are. Choose one."),
            (
                bool(self.counts) and not self.anonymous,
                f"counts have no annotators. Add {called('anonymous', True)}.",
            ),
            (
                bool(self.exclude) and self.anonymous,
                "anonymous votes have no annotators to exclude. "
                f"Leave out {called('exclude')} or {called('anonymous')}.",
            ),
            (
                self.of is not None and not (self.anonymous and self.questions),
                f"{called('of')} says how many voted on each of several counted questions. "
                f"It needs {called('anonymous', True)} and {called('questions')}.",
            ),
            (
                self.format != "auto" and self.layout not in ("auto", self.format),
                f"{called('format', self.format)} and {called('layout', self.layout)} exclude each other. "
                "Give one of them.",
            ),
            (
                self.layout in ("wide", "respondents") and bool(kinds),
                f"{kind} and the layout {self.layout} exclude each other. "
                "In it every column is an annotator, or an item.",
            ),
            (
                bool(reserved),
                f"{called('keep')} names {''.join(reserved[:1])!r}, which votes.parquet has already. "
                "Rename the column.",
            ),
            (
                self.layout == "respondents" and self.anonymous,
                "respondents are annotators. Leave out layout (--layout) or anonymous (--anonymous).",
            ),
            (
                self.classes is not None and bool(self.multilabel or self.questions),
                f"{called('classes')} is for questions with one label per vote. "
                f"{called('multilabel')} and {called('questions')} make yes/no questions.",
            ),
        ]
