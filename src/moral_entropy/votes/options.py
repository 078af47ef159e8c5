"""Options: what a user asked of `read_votes`, and which wishes contradict each other.

Knows the options, not the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from moral_entropy.errors import UsageError

Layout = Literal["auto", "long", "wide"]
Format = Literal[
    "auto", "long", "wide", "label-studio", "argilla", "prodigy", "doccano", "potato", "mturk", "lewidi", "crowd-kit",
    "hf-datasets",
]  # fmt: skip
OnRepeat = Literal["error", "first", "last", "count"]


@dataclass(frozen=True)
class Options:
    """The options of `read_votes`, which explains them."""

    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    question: str | None = None
    domain: str | None = None
    text: str | None = None
    gold: str | None = None
    published: str | None = None
    count: str | None = None
    positive: str | None = None
    layout: Layout = "auto"
    multilabel: str | None = None
    questions: tuple[str, ...] = ()
    labels: str | Path | Mapping[str, str | bool] | None = None
    on_repeat: OnRepeat = "error"
    anonymous: bool = False
    counts: tuple[str, ...] = ()
    of: int | str | None = None
    gold_file: str | Path | None = None
    classes: int | Sequence[object] | None = None
    keep: tuple[str, ...] = ()
    format: Format = "auto"

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        _one_of("layout", self.layout, get_args(Layout))
        _one_of("format", self.format, get_args(Format))
        _one_of("on_repeat", self.on_repeat, get_args(OnRepeat))
        for problem, fix in self._contradictions():
            msg = f"{problem}. {fix}"
            raise UsageError(msg)

    def asked(self, role: str) -> str | None:
        """Give the column named for a role; empty where the user wants none."""
        name = getattr(self, role)
        return None if name is None else str(name)

    @property
    def table_layout(self) -> Layout:
        """How a table is laid out, as `layout` or `format` says."""
        return self.format if self.format == "long" or self.format == "wide" else self.layout

    def _contradictions(self) -> list[tuple[str, str]]:
        kinds = [name for name in ("multilabel", "questions", "counts") if getattr(self, name)]
        rules = [
            (len(kinds) > 1, f"{' and '.join(kinds)} are two ways to say where the labels are", "Choose one."),
            (
                bool(self.counts) and not self.anonymous,
                "counts have no annotators",
                "Add anonymous=True (--anonymous).",
            ),
            (
                self.of is not None and not (self.anonymous and self.questions),
                "of= says how many voted on each of several counted questions",
                "It needs anonymous=True (--anonymous) and questions=[…] (--questions).",
            ),
            (
                self.format != "auto" and self.layout not in ("auto", self.format),
                f"format {self.format} and layout {self.layout} exclude each other",
                "Give one of them.",
            ),
            (
                self.layout == "wide" and bool(kinds),
                f"{''.join(kinds[:1])} and the wide layout exclude each other",
                "In the wide layout every column is an annotator.",
            ),
            (
                self.classes is not None and bool(self.multilabel or self.questions),
                "classes= is for questions with one label a vote",
                "multilabel and questions make yes/no questions.",
            ),
        ]
        return [(problem, fix) for wrong, problem, fix in rules if wrong]


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        msg = f"{what} is {value!r}. It can be {', '.join(allowed)}."
        raise UsageError(msg)
