"""Options of scores and of judges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option

FILES = frozenset({".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".xlsx", ".gz"})
"""How names of files end: a name that ends so is no column."""


@dataclass(frozen=True)
class LabelValues(StageOptions):
    """What labels count."""

    values: tuple[str, ...] = option(
        (),
        "What each label counts, as A=1,B=0,tie=0.5. By default the positive label counts 1, numbers count themselves, "
        "and of A, B and tie a win of A counts 1 and a tie a half.",
        metavar="LABEL=X,…",
    )

    def value_of(self) -> dict[str, float]:
        """Return what each label counts, as told; empty where nothing was told."""
        found: dict[str, float] = {}
        for one in self.values:
            label, _, number = one.rpartition("=")
            try:
                found[label.strip()] = float(number)
            except ValueError:
                label = ""
            if not label.strip():
                msg = f"{self.called('values')} has {one!r}; write what each label counts as A=1,B=0,tie=0.5."
                raise UsageError(msg)
        return found


@dataclass(frozen=True)
class Confidence(StageOptions):
    """How sure votes are."""

    confidence: str | None = option(
        None,
        "Column of how sure each vote is: probabilities of its label, or their logarithms. The fit of an audit learns "
        "apart how a judge errs when it is unsure; scores count votes in part in plain votes and PPI++.",
        metavar="COLUMN",
        panel="Judges",
    )


@dataclass(frozen=True)
class ScoreOptions(LabelValues, Confidence):
    """What is scored, for whom, and against which limit."""

    by: str | None = option(
        None, "One score per value of a column: domain, or a column that the audit was told to keep.", metavar="COLUMN"
    )
    question: str | None = option(None, "Only this question.")
    at_least: float | None = option(None, "The score must be at least this: trusted, untrusted or undecided.")


@dataclass(frozen=True)
class RoleOptions(StageOptions):
    """Who the judges are."""

    roles: Any = option(
        None,
        "Who the judges are: a CSV file with the columns judge and role (person or llm) and, if known, model, prompt "
        "and order; or a column of the votes with the role. By default guessed from their names.",
        metavar="FILE|COLUMN",
        panel="Judges",
    )

    @property
    def column(self) -> str | None:
        """The column of the votes that says the role, if it is one: a name that is no file's."""
        named = isinstance(self.roles, str) and not Path(self.roles).is_file()
        return self.roles if named and Path(self.roles).suffix.casefold() not in FILES else None


@dataclass(frozen=True)
class PanelOptions(RoleOptions, Confidence):
    """What an audit is told of judges."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the votes that the reader has to keep."""
        return tuple(name for name in (self.column, self.confidence) if name is not None)


@dataclass(frozen=True)
class JudgeOptions(LabelValues, RoleOptions):
    """What is said of judges."""

    question: str | None = option(None, "Only this question.")
    costs: Any = option(
        None, "What one vote of each judge costs: a CSV file with the columns judge and cost.", metavar="FILE"
    )
    epsilon: float = option(
        0.2,
        "By how much a person may agree better with the others before a language model may not take the place: 0.2 for "
        "experts, 0.15 for trained people, 0.1 for crowds.",
        least=0.0,
    )
    seed: int = option(0, "Seed of everything random: same seed, same figures.", least=0)
