"""What the twins are drawn from: annotators, who votes on what, and the share of yes in every domain.

In: the name of a corpus, whose facts are in `data/corpora.toml`, and a seed. Out: `TwinParameters`, solved so that the
any rule flags as many texts of every domain and foundation as in the paper's table "Corpora". Draws no vote.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.corpora.simulate import assign_by_weight
from moral_entropy.errors import UsageError
from moral_entropy.votes.table import Floats

SENSITIVITY_VOTES, SPECIFICITY_VOTES = 30.0, 60.0
"""How closely annotators follow the published means: pseudo-votes of their Beta distributions."""

BETWEEN = 1 / 3
"""Part of the yes texts of a cell that lie between the labels; as many of its no texts do."""

LEAST_TRUE = 0.25
"""Least prevalence of a cell, as a part of the share that the any rule flags."""

DIGITS = 6
"""Parameters are rounded to these digits, so that no vote depends on the last bit of a processor's arithmetic."""

MOST_SHIFT = 20.0
"""Logits that take any specificity to 1."""


@dataclass(frozen=True)
class DomainFacts:
    """A domain of a corpus, as in the paper's table "Corpora"; see `data/corpora.toml`.

    Parameters
    ----------
    name
        Its name.
    items
        Number of texts.
    votes_per_item
        Annotations per text.
    any_rule
        Share of the texts that at least one annotator flagged, for each foundation.
    team
        The annotators of the domain; None where all annotators work on it.
    """

    name: str
    items: int
    votes_per_item: float
    any_rule: Sequence[float]
    team: Sequence[int] | None = None


@dataclass(frozen=True)
class CorpusFacts:
    """A corpus; see `data/corpora.toml`. Sequences follow `foundations`."""

    full_name: str
    foundations: Sequence[str]
    annotators: int
    fewest_votes: int
    most_votes: int
    uneven: float
    sensitivity: Sequence[float]
    specificity: Sequence[float]
    prevalence: Sequence[float]
    domains: Sequence[DomainFacts]


@cache
def _read_facts() -> dict[str, CorpusFacts]:
    source = files("moral_entropy.corpora") / "data" / "corpora.toml"
    tables: dict[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))
    foundations = tables.pop("foundations")
    return {
        name: CorpusFacts(
            foundations=foundations, **{**table, "domains": [DomainFacts(**domain) for domain in table["domains"]]}
        )
        for name, table in tables.items()
    }


def corpus_facts(name: str) -> CorpusFacts:
    """Return what the paper says of a corpus.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd", in any case.

    Examples
    --------
    >>> corpus_facts("mftc").annotators
    23
    >>> corpus_facts("mtfc")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.UsageError: there is no twin of 'mtfc'; did you mean 'mftc'? Choose from mftc, mfrc, emfd.
    """
    known = _read_facts()
    if name.lower() not in known:
        close = get_close_matches(name.lower(), known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        msg = f"there is no twin of {name!r}{meant} Choose from {', '.join(known)}."
        raise UsageError(msg)
    return known[name.lower()]


@dataclass(frozen=True, eq=False)
class Assignment:
    """Who votes on what in a domain. Axes: **i** item, **v** vote.

    Parameters
    ----------
    votes_i
        Votes of each item, at least 1.
    annotator_v
        Who cast them: those of the first item ascending, then those of the second, and so on.
    """

    votes_i: NDArray[np.int64]
    annotator_v: NDArray[np.int64]

    @property
    def first_i(self) -> NDArray[np.int64]:
        """The first vote of each item."""
        return np.concatenate([[0], self.votes_i.cumsum()[:-1]])


@dataclass(frozen=True, eq=False)
class TwinParameters:
    """What a twin is drawn from. Axes: **d** domain, **a** annotator, **f** foundation.

    Parameters
    ----------
    facts
        Of the corpus, items and annotators scaled.
    assigned
        Who votes on what, by domain.
    sensitivity_af, specificity_af
        Chance that an annotator sees a foundation that is clearly there, and passes over one that is clearly not.
    shift_df
        How much more specific everybody is in a domain, in logits; 0 where the published specificity is possible.
    prevalence_df
        Share of the texts of a domain that are on the yes side of a foundation.
    """

    facts: CorpusFacts
    assigned: Sequence[Assignment]
    sensitivity_af: Floats
    specificity_af: Floats
    shift_df: Floats
    prevalence_df: Floats

    def yes_vf(self, d: int, place_if: Floats) -> Floats:
        """Compute the chance of a yes for every vote of a domain.

        Parameters
        ----------
        d
            The domain.
        place_if
            Where each item lies, from 0, clearly no, to 1, clearly yes.
        """
        who_v, votes_i = self.assigned[d].annotator_v, self.assigned[d].votes_i
        false_af = _false_alarms(self.specificity_af, self.shift_df[d])
        return _yes_chance(self.sensitivity_af[who_v], false_af[who_v], np.repeat(place_if, votes_i, axis=0))


def twin_parameters(name: str, *, seed: int = 0, scale: float = 1.0) -> TwinParameters:
    """Draw the annotators of a twin and whom each text goes to; solve for its prevalences.

    A cell is a domain and a foundation. Its prevalence is the one with which the any rule is expected to flag as many
    of its texts as in the paper. Where false alarms alone flag too many, it is a quarter of that share, and everybody
    is more specific in that domain.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    seed, scale
        As in `twins.twin`, which draws its votes from these parameters.

    Examples
    --------
    #MeToo is where the paper finds most authority. With the published specificity, authority would be flagged too
    often in five of seven domains.

    >>> parameters = twin_parameters("mftc")
    >>> parameters.facts.domains[parameters.prevalence_df[:, 0].argmax()].name
    'MeToo'
    >>> int((parameters.shift_df[:, 0] > 0).sum())
    5
    """
    facts = _scaled(corpus_facts(name), scale)
    if seed < 0:
        msg = f"the seed is {seed}: choose 0 or more."
        raise UsageError(msg)
    rng = np.random.default_rng([seed, 0])
    sensitivity_f, specificity_f = _rates_at_labels(facts)
    sensitivity_af = _draw_around(rng, sensitivity_f, SENSITIVITY_VOTES, facts.annotators)
    specificity_af = _draw_around(rng, specificity_f, SPECIFICITY_VOTES, facts.annotators)
    # The least busy still get a tenth or so of the mean workload.
    weight_a = 0.2 + rng.lognormal(sigma=facts.uneven, size=facts.annotators)
    assigned = [
        _assign(np.random.default_rng([seed, 1, d]), facts, domain, weight_a) for d, domain in enumerate(facts.domains)
    ]
    solved = [
        [_solve_cell(share, one, sensitivity_af[:, f], specificity_af[:, f]) for f, share in enumerate(domain.any_rule)]
        for domain, one in zip(facts.domains, assigned, strict=True)
    ]
    prevalence_df, shift_df = np.moveaxis(np.array(solved), -1, 0)
    return TwinParameters(facts, assigned, sensitivity_af, specificity_af, shift_df, prevalence_df)


def _scaled(facts: CorpusFacts, scale: float) -> CorpusFacts:
    if not 0 < scale <= 5:
        msg = f"the scale is {scale:g}: choose more than 0 and at most 5; 1 is the size of the corpus."
        raise UsageError(msg)
    domains = [replace(domain, items=max(1, round(domain.items * scale))) for domain in facts.domains]
    annotators = facts.annotators
    if facts.uneven:
        annotators = max(facts.most_votes, round(annotators * scale))
    return replace(facts, domains=domains, annotators=annotators)


def _rates_at_labels(facts: CorpusFacts) -> tuple[Floats, Floats]:
    # The published rates count every yes and every no text, those between the labels too. Between ones lie, on
    # average, three quarters of the way to their own label; the rates at the labels solve two linear equations.
    hit_f, false_f, prevalence_f = np.array([facts.sensitivity, facts.specificity, facts.prevalence])
    false_f = 1 - false_f
    other_f = np.array([np.full(len(hit_f), BETWEEN / 4), BETWEEN / 4 * prevalence_f / (1 - prevalence_f)])
    spread_f = 1 - other_f.sum(axis=0)
    sensitivity_f = ((1 - other_f[1]) * hit_f - other_f[0] * false_f) / spread_f
    alarm_f = ((1 - other_f[0]) * false_f - other_f[1] * hit_f) / spread_f
    return sensitivity_f, 1 - alarm_f


def _draw_around(rng: np.random.Generator, mean_f: Floats, votes: float, n_annotators: int) -> Floats:
    return rng.beta(votes * mean_f, votes * (1 - mean_f), size=(n_annotators, len(mean_f))).round(DIGITS)


def _assign(rng: np.random.Generator, facts: CorpusFacts, domain: DomainFacts, weight_a: Floats) -> Assignment:
    team_a = np.asarray(domain.team if domain.team is not None else range(facts.annotators))
    votes_i = _draw_counts(rng, domain, facts.fewest_votes, min(facts.most_votes, len(team_a)))
    return Assignment(votes_i, team_a[assign_by_weight(rng, votes_i, weight_a[team_a])])


def _draw_counts(rng: np.random.Generator, domain: DomainFacts, fewest: int, most: int) -> NDArray[np.int64]:
    # Everybody gets the fewest; the rest of the published total falls on places drawn without replacement.
    room = most - fewest
    n_more = round((domain.votes_per_item - fewest) * domain.items)
    place_v = rng.choice(domain.items * room, size=n_more, replace=False)
    return fewest + np.bincount(place_v // room, minlength=domain.items)


def _false_alarms(specificity: Floats, shift: Floats | float) -> Floats:
    # 1 − expit(logit(specificity) + shift), without the logarithm.
    alarm = 1 - specificity
    return np.round(alarm / (alarm + specificity * np.exp(shift)), DIGITS)


def _yes_chance(sensitivity: Floats, false_alarm: Floats, place: Floats | float) -> Floats:
    return false_alarm + place * (sensitivity - false_alarm)


def _solve_cell(any_rule: float, assigned: Assignment, sensitivity_a: Floats, specificity_a: Floats) -> Floats:
    """Solve for the prevalence of a cell, and for the shift of specificities, which is 0 if it can be."""
    from scipy.optimize import brentq

    def flagged(shift: float) -> tuple[float, float]:
        return _flagged(assigned, sensitivity_a, _false_alarms(specificity_a, shift))

    least = LEAST_TRUE * any_rule
    at_zero, slope = flagged(0.0)
    if at_zero + least * slope > any_rule:

        def excess(shift: float) -> float:
            at_zero, slope = flagged(shift)
            return at_zero + least * slope - any_rule

        return np.array([least, brentq(excess, 0.0, MOST_SHIFT, xtol=1e-7)]).round(DIGITS)
    # As many texts lie between the labels on the no side as on the yes side: there must be room for them.
    prevalence = min((any_rule - at_zero) / slope, 1 / (1 + BETWEEN)) if slope > 0 else least
    return np.array([prevalence, 0.0]).round(DIGITS)


def _flagged(assigned: Assignment, sensitivity_a: Floats, false_a: Floats) -> tuple[float, float]:
    """Compute the share of texts that the any rule is expected to flag: at prevalence 0, and how it grows with it."""
    hit_v, false_v, first_i = sensitivity_a[assigned.annotator_v], false_a[assigned.annotator_v], assigned.first_i

    def share(place: float) -> float:
        silent_i = np.multiply.reduceat(1 - _yes_chance(hit_v, false_v, place), first_i)
        return 1 - float(silent_i.mean())

    # A product of six linear functions at most: four nodes integrate it exactly.
    node_n, weight_n = np.polynomial.legendre.leggauss(4)
    between = sum(weight / 2 * share((node + 1) / 2) for node, weight in zip(node_n, weight_n, strict=True))
    no, yes = share(0.0), share(1.0)
    return no, (1 - BETWEEN) * yes + 2 * BETWEEN * between - (1 + BETWEEN) * no
