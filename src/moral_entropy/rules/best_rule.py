"""The best simple rule of an audit, in plain words.

Takes the advice against the consensus, the same against gold where there is any, and the audit's frame; returns one
`BestRule`: for two labels the best threshold on the votes, for more the label with most votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from moral_entropy.names import ALL
from moral_entropy.rules.accuracy import questions_with_many_labels, wrong_rows
from moral_entropy.rules.rules import PLURALITY, rule_in_words
from moral_entropy.ties import tie_key

if TYPE_CHECKING:
    import polars as pl

AGAINST = {"consensus": "against the consensus", "gold": "against gold"}
"""What a rule was held against, in words."""


@dataclass(frozen=True)
class BestRule:
    """The best simple rule, and what it gets wrong.

    Parameters
    ----------
    rule, words
        Its name, and what it does.
    against
        "consensus" or "gold".
    cost
        Cost per item: the share of wrong labels, unless wrong labels have costs of their own.
    majority, consensus
        The same of majority (with more than two labels None), and, against gold, of the labels of the consensus.
    n
        How many items it rests on.
    costs
        Costs of a wrong yes and of a missed yes.
    """

    rule: str
    words: str
    against: str
    cost: float
    majority: float | None
    consensus: float | None
    n: int
    costs: tuple[float, float] = (1.0, 1.0)

    @property
    def text(self) -> str:
        """Say which rule it is and what it gets wrong.

        Examples
        --------
        >>> print(BestRule("quorum-3/5", "at least 60% yes", "consensus", 0.04, 0.0612, None, 400).text)
        Best simple rule: at least 60% yes. About 4 wrong labels in 100 against the consensus (majority: 6).
        """
        lead = f"Best simple rule: {self.words}."
        if self.costs != (1.0, 1.0):
            prices = f"a wrong yes costs {self.costs[0]:g}, a missed yes {self.costs[1]:g}"
            other = "" if self.majority is None else f"; majority {self.majority:.2f}"
            return f"{lead} Cost per item {AGAINST[self.against]}: {self.cost:.2f} ({prices}{other})."
        others = {"majority": None if self.rule == "majority" else self.majority}
        if self.against == "gold":
            others["the consensus"] = self.consensus
        told = [f"{name}: {_in_100(share)}" for name, share in others.items() if share is not None]
        beside = f" ({', '.join(told)})" if told else ""
        return f"{lead} {wrong_in_100(self.cost)} {AGAINST[self.against]}{beside}."

    @property
    def record(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**asdict(self), "costs": list(self.costs), "text": self.text}


def wrong_in_100(share: float) -> str:
    """Say how many labels of a hundred are wrong.

    Examples
    --------
    >>> wrong_in_100(0.0403), wrong_in_100(0.011), wrong_in_100(0.002), wrong_in_100(0.0)
    ('About 4 wrong labels in 100', 'About 1 wrong label in 100', 'Fewer than 1 wrong label in 100', 'No wrong label')
    """
    if tie_key(share) <= 0:
        return "No wrong label"
    number = _in_100(share)
    if number == "fewer than 1":
        return "Fewer than 1 wrong label in 100"
    return f"About {number} wrong label{'s' * (number != '1')} in 100"


def _in_100(share: float) -> str:
    number = round(tie_key(100.0 * share))
    return "fewer than 1" if number == 0 and tie_key(share) > 0 else f"{number}"


def best_rule(
    frame: pl.DataFrame, advised: Mapping[str, pl.DataFrame], costs: tuple[float, float], yes: str = "yes"
) -> BestRule | None:
    """Choose the best simple rule: against gold where there is any, else against the consensus.

    Parameters
    ----------
    frame
        The audit's frame.
    advised
        By reference, the frame of `Advice`.
    costs
        Costs of a wrong yes and a missed yes.
    yes
        What a positive vote is called.
    """
    against = "gold" if "gold" in advised else "consensus"
    wrong = {(row["rule"], row["reference"]): row for row in wrong_rows(frame)
             if row["question"] == ALL and row["domain"] == ALL and row["value"] is not None}  # fmt: skip
    own = wrong.get(("consensus", "gold"))
    of_consensus = None if own is None or against != "gold" else own["value"]
    if questions_with_many_labels(frame):
        row = wrong.get((PLURALITY.name, against))
        if row is None:
            return None
        words = rule_in_words(PLURALITY.name)
        return BestRule(PLURALITY.name, words, against, row["value"], None, of_consensus, row["n"])
    pooled = advised[against].filter(question=ALL)
    if pooled.is_empty():
        return None
    row = pooled.row(0, named=True)
    words = rule_in_words(row["rule"], yes)
    return BestRule(row["rule"], words, against, row["cost"], row["cost_of_majority"], of_consensus, row["n"], costs)
