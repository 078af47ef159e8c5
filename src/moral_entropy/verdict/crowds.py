"""Crowds alike: how wrong the labels of other crowds were, on sets of votes whose answers are known.

Votes see how much a crowd's members differ, never what all of them get wrong. So the range of crowds alike is wide,
and of all that can be computed from votes only the mixed model's expected error narrows it, a little. The figures
are in `data/crowds.json`, which `studies/verdict.py` writes, with the sets they were learnt on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from scipy.special import logit

from moral_entropy.verdict.error_rate import Belief
from moral_entropy.verdict.options import WhoVoted

MODELS = re.compile(
    r"gpt|claude|gemini|gemma|llama|mistral|mixtral|qwen|deepseek|palm|bard|vicuna|alpaca|falcon|command-r|grok|phi-?\d"
    r"|chatglm|cohere|\bllm|\bo[134]-|[-_ ]\d+b\b",
    re.IGNORECASE,
)
"""Names that language models and their prompts have."""

MOST_NAMES = 0.5
"""Share of the annotators' names that must look like models' for the panel to be one of models."""


@dataclass(frozen=True)
class Crowds:
    """What sets with known answers say of crowds of people.

    Parameters
    ----------
    intercept, slope
        The logit of the share of wrong labels, from the logit of the expected error; a slope of 0 where the expected
        error tells nothing that a constant does not.
    typical
        Logit of the expected error of a typical set.
    sd
        Standard deviation around it, for a crowd of a family that was left out.
    n_sets, n_families
        How many sets, of how many families, it rests on.
    floor_held, floor_of
        On how many sets, of how many, the share of wrong labels was at least the expected error.
    flag
        Expected error above which more than `flag_share` of the labels are likely wrong.
    flag_share
        That share.
    """

    intercept: float
    slope: float
    typical: float
    sd: float
    n_sets: int
    n_families: int
    floor_held: int
    floor_of: int
    flag: float
    flag_share: float

    def belief(self, expected_error: float | None) -> Belief:
        """Return what crowds alike let one expect; without an expected error, of the same spread all told."""
        at = self.typical if expected_error is None else float(logit(min(max(expected_error, 1e-3), 0.5)))
        return Belief(self.intercept + self.slope * at, self.sd, unlike_others(self.n_families))


def unlike_others(n_families: int) -> float:
    """Return how probably a crowd is unlike all that were seen: the rule of succession, had one of them been.

    Examples
    --------
    >>> round(unlike_others(10), 3)
    0.167
    """
    return 2.0 / (n_families + 2.0)


@cache
def _facts() -> dict[str, Any]:
    text = files("moral_entropy.verdict").joinpath("data/crowds.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def crowds_of_people() -> Crowds:
    """Return what is known of crowds of people."""
    facts = _facts()
    people = {name: facts["people"][name] for name in ("intercept", "slope", "typical", "sd", "n_sets", "n_families")}
    floor, flag = facts["floor"], facts["flag"]
    return Crowds(
        **people, floor_held=floor["held"], floor_of=floor["of"], flag=flag["above"], flag_share=flag["share"]
    )


def guess_who_voted(names: Iterable[object]) -> WhoVoted:
    """Guess from the annotators' names whether they are people or language models.

    Examples
    --------
    >>> guess_who_voted(["gpt-4o", "claude-3", "ann"]), guess_who_voted(["A1", "A2"])
    ('models', 'people')
    """
    given = [str(name) for name in names]
    like = sum(bool(MODELS.search(name)) for name in given)
    return "models" if given and like > MOST_NAMES * len(given) else "people"
