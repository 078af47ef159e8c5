"""Options of judges and of the scores that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option

FILES = frozenset({".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".xlsx", ".gz"})
"""How names of files end: a name that ends so is no column."""


@dataclass(frozen=True)
class PanelOptions(StageOptions):
    """What an audit is told of judges."""

    roles: Any = option(
        None,
        "Who the judges are: a CSV file with the columns judge and role (person or llm) and, if known, model, prompt "
        "and order; or a column of the votes with the role. By default guessed from their names.",
        metavar="FILE|COLUMN",
        panel="Judges",
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the votes that the reader has to keep: that of the role, if it is no file's name."""
        named = isinstance(self.roles, str) and not Path(self.roles).is_file()
        return (self.roles,) if named and Path(self.roles).suffix.casefold() not in FILES else ()


@dataclass(frozen=True)
class JudgeOptions(PanelOptions):
    """What is scored, for whom and against which limit, and what is said of judges."""

    by: str | None = option(
        None,
        "One score per value of a column: domain, or a column that the audit was told to keep. A column system is "
        "taken by default.",
        metavar="COLUMN",
    )
    question: str | None = option(None, "Only this question.")
    at_least: float | None = option(None, "The score must be at least this: trusted, untrusted or undecided.")
    values: tuple[str, ...] = option(
        (),
        "What each label counts, as A=1,B=0,tie=0.5. By default the positive label counts 1, numbers count themselves, "
        "and of A, B and tie a win of A counts 1 and a tie a half.",
        metavar="LABEL=X,…",
    )
    costs: Any = option(
        None, "What one vote of each judge costs: a CSV file with the columns judge and cost.", metavar="FILE"
    )
    epsilon: float = option(
        0.2,
        "By how much a person may agree better with the others before a language model may not take the place: 0.2 for "
        "experts, 0.15 for trained people, 0.1 for crowds.",
        least=0.0,
    )

    def value_of(self) -> dict[str, float]:
        """Return what each label counts, as told; empty where nothing was told."""
        return values_by_label(self.values, self.called("values"))


def values_by_label(values: Sequence[str], called: str = "values") -> dict[str, float]:
    """Read what each label counts.

    Examples
    --------
    >>> values_by_label(["A=1", "tie=0.5"])
    {'A': 1.0, 'tie': 0.5}
    """
    value_by_label: dict[str, float] = {}
    for text in values:
        label, _, number = text.rpartition("=")
        try:
            value_by_label[label.strip()] = float(number)
        except ValueError:
            label = ""
        if not label.strip():
            msg = f"{called} has {text!r}; write what each label counts as A=1,B=0,tie=0.5."
            raise UsageError(msg)
    return value_by_label
