"""Options about groups of annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option
from moral_entropy.votes.options import VOTE_COLUMNS

GROUPS = "Groups of annotators"


@dataclass(frozen=True)
class GroupOptions(StageOptions):
    """Which groups of annotators to compare, and for whom the consensus shall be."""

    annotator_group: tuple[str, ...] = option(
        (),
        "Columns that say which group an annotator belongs to; gender+age for groups by both.",
        metavar="COLUMN[,COLUMN]",
        panel=GROUPS,
    )
    annotators: Any = option(
        None,
        "File of annotators, one row each: annotator, and the columns of groups; without it they are columns of the "
        "votes. In Python also a dataframe.",
        metavar="FILE",
        panel=GROUPS,
    )
    target: Any = option(
        None,
        "File of the population that the consensus shall be for: column, group, share. In Python also a dataframe.",
        metavar="FILE",
        panel=GROUPS,
    )

    def __post_init__(self) -> None:
        """Refuse options that need another one."""
        super().__post_init__()
        for name, what in (("annotators", "describes annotators"), ("target", "has shares of groups")):
            if getattr(self, name) is not None and not self.annotator_group:
                msg = f"{self.called(name)} {what}. Say which columns to look at: {self.called('annotator_group')}."
                raise UsageError(msg)

        taken = [name for name in self.annotator_group if name in VOTE_COLUMNS and self.annotators is None]
        if taken:
            msg = f"{self.called('annotator_group')} names {taken[0]!r}, which is part of the votes. Rename the column."
            raise UsageError(msg)

    def named(self, name: str) -> str:
        """Return what an error about the data calls an option: its name and its flag."""
        called, flag = self.called(name), f"--{name.replace('_', '-')}"
        return called if called == flag else f"{called} (CLI: {flag})"

    @property
    def asked(self) -> bool:
        """Whether groups are asked for."""
        return bool(self.annotator_group)
