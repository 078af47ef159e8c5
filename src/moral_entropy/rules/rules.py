"""Consensus rules: ways to turn an item's votes into a label.

A `Rule` takes vote counts and returns one score per item: 1 yes, 0 no, a probability for soft rules, NaN where it
abstains. It does not depend on posteriors, gold or files.

Rules see a pair of counts per item: votes for any other label, votes for the label taken as positive. With more than
two labels each is taken as positive in turn. An item without votes gets no answer from any rule on votes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import ge, gt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import RuleError
from moral_entropy.votes.table import Floats, Ints

Score = Callable[[NDArray[Any]], Any]
"""Takes counts, one row per item; returns one score per item."""

Sees = Literal["pair", "labels", "published"]


@dataclass(frozen=True)
class Rule:
    """A named way to turn vote counts into a label or a probability.

    Parameters
    ----------
    name, meaning
        What it is called, and what it does in one line.
    score
        Takes `counts_ip`, columns (other labels, positive label), and returns one score per item.
    soft
        Whether scores are probabilities. Rates such as fpr then grade the answer "yes" where the score is ½ or more.
        A hard rule's scores are 0 or 1; in between, ties are broken at random in that proportion.
    tied
        Takes the same counts, returns where they are a tie for the rule; None if there are no ties.
    pointwise
        Whether an item's score depends on that item's counts alone, so that equal counts need one call.
    sees
        "pair" as above; "labels": `score` takes the counts of all labels and returns a score for each, rows adding up
        to 1; "published": labels that came with the data.

    Examples
    --------
    >>> rule_named("majority").scores(np.array([[2, 1], [1, 1], [0, 0]]), label=1)
    array([ 0.,  1., nan])
    """

    name: str
    meaning: str
    score: Score
    soft: bool = False
    tied: Score | None = None
    pointwise: bool = False
    sees: Sees = "pair"

    def scores(self, counts_ik: Ints, label: int) -> Floats:
        """Score every item for one label taken as positive; NaN where there are no votes.

        Parameters
        ----------
        counts_ik
            Votes per item and label.
        label
            Index of the label taken as positive.
        """
        score = np.asarray(self.score(self._shown(counts_ik, label)), dtype=float)
        expected = counts_ik.shape if self.sees == "labels" else (len(counts_ik),)
        if score.shape != expected:
            msg = (
                f"rule {self.name!r} gave an array of shape {score.shape} for {len(counts_ik):,} items; expected "
                f"{expected}. Return a score per row of the counts."
            )
            raise RuleError(msg)
        score_i = score[:, label] if self.sees == "labels" else score
        bad = np.flatnonzero((score_i < 0) | (score_i > 1))
        if len(bad):
            msg = (
                f"rule {self.name!r} scored {len(bad):,} of {len(score_i):,} items outside 0 to 1. First: row "
                f"{bad[0]}, counts {counts_ik[bad[0]].tolist()}, score {score_i[bad[0]]:g}. Return 0, 1, a "
                "probability, or NaN to abstain."
            )
            raise RuleError(msg)
        return np.where(counts_ik.sum(axis=1) > 0, score_i, np.nan)

    def ties(self, counts_ik: Ints, label: int) -> NDArray[np.bool_]:
        """Return on which items the votes are a tie for the rule."""
        if self.tied is None:
            return np.zeros(len(counts_ik), dtype=bool)
        tied_i = self.tied(self._shown(counts_ik, label))
        return np.asarray(np.asarray(tied_i, dtype=bool) & (counts_ik.sum(axis=1) > 0))

    def decisions(self, score_i: Floats) -> Floats:
        """Turn scores into the yes (1) or no (0) that rates grade; NaN stays NaN."""
        return np.where(np.isnan(score_i), np.nan, score_i >= 0.5) if self.soft else score_i

    def _shown(self, counts_ik: Ints, label: int) -> NDArray[Any]:
        # A copy that cannot be written to: a rule that sorts in place must not change the votes.
        chosen_i = counts_ik[:, label]
        pair_ip = np.column_stack([counts_ik.sum(axis=1) - chosen_i, chosen_i])
        counts = np.array(counts_ik) if self.sees == "labels" else pair_ip
        counts.flags.writeable = False
        return counts


def _k_vote(name: str, k: int) -> Rule:
    number = {1: "one positive vote", 2: "two positive votes"}.get(k, f"{k} positive votes")
    return Rule(name, f"at least {number}", lambda counts_ip: counts_ip[:, 1] >= k, pointwise=True)


def _quorum(name: str, share: Fraction) -> Rule:
    return Rule(
        name,
        f"at least {share} of the votes positive",
        # Whole numbers throughout: 2 of 3 votes is two thirds, and 0.6666… is not.
        lambda counts_ip: counts_ip[:, 1].astype(int) * share.denominator >= counts_ip.sum(axis=1) * share.numerator,
        pointwise=True,
    )


def _smoothed(name: str, pseudo_votes: float) -> Rule:
    return Rule(
        name,
        f"share of positive votes after {pseudo_votes:g} pseudo-votes either way",
        lambda counts_ip: (counts_ip[:, 1] + pseudo_votes) / (counts_ip.sum(axis=1) + 2 * pseudo_votes),
        soft=True,
        pointwise=True,
    )


def _majority(name: str, meaning: str, compare: Callable[[Any, Any], Any]) -> Rule:
    return Rule(
        name,
        meaning,
        lambda counts_ip: compare(counts_ip[:, 1], counts_ip[:, 0]),
        tied=lambda counts_ip: counts_ip[:, 1] == counts_ip[:, 0],
        pointwise=True,
    )


def _most(counts_ik: NDArray[Any]) -> Any:
    top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
    return top_ik / top_ik.sum(axis=1, keepdims=True)


def _several_top(counts_ik: NDArray[Any]) -> Any:
    return (counts_ik == counts_ik.max(axis=1, keepdims=True)).sum(axis=1) > 1


def _no_counts(_counts: NDArray[Any]) -> Any:
    msg = "published labels come with the data, not from vote counts. Grade them with audit_rules."
    raise RuleError(msg)


PUBLISHED = Rule("published", "the labels that were shipped with the data", _no_counts, sees="published")

MOST = "the label with most votes; a tie is broken at random"
PLURALITY = Rule("plurality", MOST, _most, tied=_several_top, pointwise=True, sees="labels")

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        _k_vote("any", 1),
        _majority("majority", "at least half of the votes positive, a tie counting as yes", ge),
        _majority("strict-majority", "more than half of the votes positive, a tie counting as no", gt),
        _k_vote("two-vote", 2),
        _k_vote("k-vote-3", 3),
        Rule("unanimous", "every vote positive", lambda counts_ip: counts_ip[:, 0] == 0, pointwise=True),
        _quorum("quorum-2/3", Fraction(2, 3)),
        Rule(
            "share",
            "share of positive votes, as a probability",
            lambda counts_ip: counts_ip[:, 1] / np.maximum(counts_ip.sum(axis=1), 1),
            soft=True,
            pointwise=True,
        ),
        _smoothed("smoothed-share", 0.5),
    )
}
"""The rules every audit grades, by name; plurality joins them where there are more than two labels, published labels
where the data has them."""


def rule_named(name: str) -> Rule:
    """Find a rule by name, or make it from its number: "k-vote-4", "quorum-0.75", "smoothed-share-1".

    Examples
    --------
    >>> rule_named("k-vote-4").meaning
    'at least 4 positive votes'
    >>> rule_named("quorum-3/4").scores(np.array([[1, 3], [1, 2]]), label=1)
    array([1., 0.])
    """
    names_known = {**RULES, PLURALITY.name: PLURALITY, PUBLISHED.name: PUBLISHED}
    if name in names_known:
        return names_known[name]
    family, _, number = name.rpartition("-")
    try:
        value = Fraction(number)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if family == "k-vote" and value.denominator == 1 and value >= 1:
        return _k_vote(name, int(value))
    if family == "quorum" and 0 < value <= 1:
        return _quorum(name, value)
    if family == "smoothed-share" and value > 0:
        return _smoothed(name, float(value))
    # Late: looking through the installed packages takes time.
    from moral_entropy.plugins import RULES as PLUGGED
    from moral_entropy.plugins import load_plugin, plugin_names

    if (plugged := load_plugin(PLUGGED, name)) is not None:
        return replace(_as_rule(plugged), name=name)
    names = ", ".join([*names_known, *plugin_names(PLUGGED)])
    msg = (
        f"there is no rule {name!r}. Rules: {names}; with a number of your own k-vote-4, quorum-0.75, smoothed-share-1."
    )
    raise RuleError(msg)


def rule_in_words(name: str, yes: str = "yes") -> str:
    """Say what a rule does in a few plain words; the name itself for a rule of one's own.

    Parameters
    ----------
    name
        Of the rule.
    yes
        What a positive vote is called.

    Examples
    --------
    >>> [rule_in_words(name) for name in ("any", "k-vote-3", "quorum-3/5", "quorum-2/3")]
    ['at least one yes', 'at least 3 yes', 'at least 60% yes', 'at least 2/3 yes']
    """
    sentence = {
        "any": f"at least one {yes}",
        "two-vote": f"at least 2 {yes}",
        "majority": f"at least half {yes}",
        "strict-majority": f"more than half {yes}",
        "unanimous": f"all {yes}",
        PLURALITY.name: "the label with most votes",
        PUBLISHED.name: "the labels that were published",
    }
    if name in sentence:
        return sentence[name]
    family, _, number = name.rpartition("-")
    if family == "k-vote":
        return f"at least {number} {yes}"
    if family == "quorum":
        share = Fraction(number)
        least = f"{100 * share}%" if (100 * share).denominator == 1 else str(share)
        return f"at least {least} {yes}"
    return name


def as_rules(entries: Iterable[str | Rule | Score]) -> tuple[Rule, ...]:
    """Turn names, rules and plain callables into rules; two of the same name raise a `RuleError`.

    Examples
    --------
    >>> def never(counts_ip):
    ...     "Nothing is ever positive."
    ...     return np.zeros(len(counts_ip))
    >>> [rule.meaning for rule in as_rules(["any", never])]
    ['at least one positive vote', 'Nothing is ever positive.']
    """
    rules = tuple(_as_rule(entry) for entry in entries)
    names = [rule.name for rule in rules]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice or "consensus" in names:
        name = twice[0] if twice else "consensus"
        msg = f"the rule name {name!r} is taken. Give every rule a name of its own: Rule(name, meaning, score)."
        raise RuleError(msg)
    return rules


def _as_rule(entry: str | Rule | Score) -> Rule:
    if isinstance(entry, Rule):
        return entry
    if isinstance(entry, str):
        return rule_named(entry)
    if not callable(entry):
        msg = f"{entry!r} is no rule. Give a name, a Rule, or a callable that takes vote counts."
        raise RuleError(msg)
    name = getattr(entry, "__name__", type(entry).__name__)
    meaning = (getattr(entry, "__doc__", None) or "a rule of your own").strip().splitlines()[0]
    return Rule(name, meaning, entry)
