"""Collect: votes as an annotation tool exports them → a long table.

Knows neither tools nor files. The table has the columns item, annotator, question and label, then what the export
says about the item. A label column of lists means that some votes choose several labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moral_entropy.errors import VotesError
from moral_entropy.votes.columns import guess_column
from moral_entropy.votes.source import ReadingLog
from moral_entropy.votes.values import canonical_label, series_of

if TYPE_CHECKING:
    import polars as pl

ROLES = ("item", "annotator", "question", "label")
MOST_CHOICES = 20
PROSE_FROM = 6
"""Fewer answers than this are too few to tell free text from labels."""

Label = str | tuple[str, ...]


@dataclass
class Collected:
    """The votes of one export, as they are found.

    Parameters
    ----------
    name, tool
        Of the file, and of the tool that wrote it.
    log
        Where counts and remarks go.
    """

    name: str
    tool: str
    log: ReadingLog
    votes: list[tuple[Any, Any, str, Label]] = field(default_factory=list)
    facts: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def item(self, item: Any, facts: Mapping[str, Any]) -> None:
        """Take in an item, voted on or not, and what is known about it."""
        known = {name: value for name, value in facts.items() if value is not None}
        self.facts.setdefault(_id(item), {}).update(known)

    def vote(self, item: Any, annotator: Any, question: Any, label: Any) -> None:
        """Take in a vote; a list or tuple chooses all its labels."""
        chosen: Label | None
        if isinstance(label, (list, tuple)):
            names = [name for part in label if (name := canonical_label(part)) is not None]
            chosen = tuple(dict.fromkeys(names))
        else:
            chosen = canonical_label(label)
        if chosen is None:
            self.log.drop("no label", 1)
        else:
            self.votes.append((_id(item), _id(annotator), str(question), chosen))

    def table(self, hint: str, *, prose: bool = False) -> pl.DataFrame:
        """Lay the votes out as a long table.

        Parameters
        ----------
        hint
            What to do when there are no votes.
        prose
            Whether some answers may be free text, to be left out.
        """
        import polars as pl

        votes = self._without_prose() if prose else self.votes
        votes = self._unwrapped(votes)
        if not votes:
            raise VotesError(self._no_votes(hint))
        rows = votes + self._blanks(votes)
        cells = dict(zip(ROLES, zip(*rows, strict=True), strict=True))
        columns = [series_of(role, list(cells[role])) for role in ROLES[:3]]
        columns.append(_label_column(cells["label"]))
        return pl.DataFrame(columns + self._fact_columns(cells["item"]))

    def _unwrapped(self, votes: Sequence[tuple[Any, Any, str, Label]]) -> list[tuple[Any, Any, str, Any]]:
        """Take single choices out of their lists; with several to choose from, choosing none is a vote too."""
        several = {question for _, _, question, label in votes if isinstance(label, tuple) and len(label) > 1}
        plain: list[tuple[Any, Any, str, Any]] = []
        for item, annotator, question, label in votes:
            if isinstance(label, tuple) and question not in several:
                if label:
                    plain.append((item, annotator, question, label[0]))
                else:
                    self.log.drop("no choice", 1)
            else:
                plain.append((item, annotator, question, label))
        return plain

    def _without_prose(self) -> list[tuple[Any, Any, str, Label]]:
        answers: dict[str, list[Label]] = {}
        for _, _, question, label in self.votes:
            answers.setdefault(question, []).append(label)
        prose = {question for question, labels in answers.items() if looks_like_prose(labels)}
        if not prose or len(prose) == len(answers):
            return self.votes
        left_out = ", ".join(repr(question) for question in sorted(prose))
        self.log.note(f"answers that look like free text are left out: {left_out}.")
        return [vote for vote in self.votes if vote[2] not in prose]

    def _blanks(self, votes: Sequence[tuple[Any, Any, str, Any]]) -> list[tuple[Any, Any, str, Any]]:
        """Give a row without a vote for each item that has none, so that it stays."""
        voted = {item for item, _, _, _ in votes}
        questions = sorted({question for _, _, question, _ in votes})
        return [(item, None, question, None) for item in self.facts if item not in voted for question in questions]

    def _fact_columns(self, items: Sequence[Any]) -> list[pl.Series]:
        column_of: dict[str, str] = {}
        for name in dict.fromkeys(name for facts in self.facts.values() for name in facts):
            column_of.setdefault(_safe_name(name), name)
        return [
            series_of(column, [self.facts.get(item, {}).get(name) for item in items])
            for column, name in column_of.items()
        ]

    def _no_votes(self, hint: str) -> str:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in self.log.dropped.items())
        left_out = f" Left out: {reasons}." if reasons else ""
        return f"{self.name}, read as an export of {self.tool}, has no votes.{left_out} {hint}"


def looks_like_prose(labels: Sequence[Label]) -> bool:
    """Say whether answers look like free text: many different ones, few of them given twice.

    Examples
    --------
    >>> looks_like_prose(["yes", "no"] * 9), looks_like_prose([f"because {n}" for n in range(9)])
    (False, True)
    """
    if len(labels) < PROSE_FROM or any(isinstance(label, tuple) for label in labels):
        return False
    return len(set(labels)) > max(len(labels) / 5, min(MOST_CHOICES, len(labels) / 2 + 2))


def text_of(fields: Mapping[str, Any]) -> str | None:
    """Find an item's text: the field with the likeliest name, else the first that is a text and no address.

    Examples
    --------
    >>> text_of({"url": "https://example.org", "article": "So it goes."})
    'So it goes.'
    """
    texts = {name: value for name, value in fields.items() if isinstance(value, str) and value.strip()}
    if likely := guess_column("text", texts):
        return texts[likely]
    return next((text for text in texts.values() if "://" not in text and not text.startswith("/data/")), None)


def _id(value: Any) -> Any:
    """Give an id that is a text or a number, whatever the export holds in its place."""
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _label_column(labels: Sequence[Any]) -> pl.Series:
    import polars as pl

    if not any(isinstance(label, tuple) for label in labels):
        return pl.Series("label", labels, dtype=pl.String)
    lists = [None if label is None else [label] if isinstance(label, str) else list(label) for label in labels]
    return pl.Series("label", lists, dtype=pl.List(pl.String))


def _safe_name(name: str) -> str:
    """Rename what would be taken for a part of the vote, or for a gold label nobody spoke of."""
    taken = name.strip().casefold() in ROLES or guess_column("gold", [name])
    return f"data.{name}" if taken else name
