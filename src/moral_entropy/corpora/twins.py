"""Twins of the three moral corpora: simulated votes with the shape of the published ones.

In: the name of a corpus and a seed. Out: a long table of votes with texts and the truth, as a dataframe or a Parquet
file. The facts it follows, and where they are from, are in `data/corpora.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moral_entropy.corpora.assignments import assign_by_weight
from moral_entropy.corpora.facts import CorpusFacts, DomainFacts, corpus_facts
from moral_entropy.corpora.twin_texts import write_texts
from moral_entropy.errors import UsageError
from moral_entropy.votes.table import Floats

if TYPE_CHECKING:
    import polars as pl

SENSITIVITY_VOTES, SPECIFICITY_VOTES = 30.0, 60.0
"""How closely annotators follow the published means: pseudo-votes of their Beta distributions."""

CONTRAST = 2.0
"""Difference of the true prevalences of two domains, in logits, per logit between their any-rule prevalences.

The any rule counts false positives wherever they are, so it shows about half of the contrast in the truth."""


@dataclass(frozen=True, eq=False)
class TwinParameters:
    """What a twin is drawn from. Axes: **d** domain, **a** annotator, **f** foundation.

    Parameters
    ----------
    facts
        Of the corpus, items and annotators scaled.
    prevalence_df
        Share of the items of a domain that truly carry a foundation.
    sensitivity_af, specificity_af
        Chance that an annotator sees a foundation that is there, and passes over one that is not.
    weight_a
        How busy each annotator is.
    """

    facts: CorpusFacts
    prevalence_df: Floats
    sensitivity_af: Floats
    specificity_af: Floats
    weight_a: Floats


def twin(name: str, *, seed: int = 0, scale: float = 1.0) -> pl.DataFrame:
    """Simulate a corpus: its domains, teams, votes per item and prevalences, with texts and the truth.

    One row per vote. Columns: item, annotator, question (the foundation), label (0 or 1), domain, text, gold (0 or 1).
    Every annotator of an item votes on all five foundations. Given the domain, the five true labels of an item are
    independent of each other, and given the truth so are the votes: real ones are not quite.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    seed
        Same seed, same table.
    scale
        Share of the items: 0.1 gives a tenth of every domain. Where there is a pool of coders instead of teams
        (eMFD) it shrinks along, so that a coder's workload stays.

    Examples
    --------
    >>> frame = twin("mfrc", scale=0.01)
    >>> frame["item"].n_unique(), frame["annotator"].n_unique(), frame.height
    (180, 6, 2695)
    """
    parameters = twin_parameters(name, seed=seed, scale=scale)
    parts = [
        _draw_domain(parameters, d, np.random.default_rng([seed, 1, d])) for d in range(len(parameters.facts.domains))
    ]
    return _long_table(name.lower(), parameters.facts, parts)


def write_twin(name: str, path: str | Path, *, seed: int = 0, scale: float = 1.0) -> int:
    """Write a twin to a Parquet file, which appears when it is complete.

    Parameters
    ----------
    name, seed, scale
        As in `twin`.
    path
        The file.

    Returns
    -------
    int
        How many votes were written.

    Examples
    --------
    >>> import tempfile
    >>> write_twin("mfrc", Path(tempfile.mkdtemp()) / "mfrc.parquet", scale=0.01)
    2695
    """
    from moral_entropy.files import whole_file

    with whole_file(path) as partial:
        frame = twin(name, seed=seed, scale=scale)
        frame.write_parquet(partial)
    return frame.height


def twin_parameters(name: str, *, seed: int = 0, scale: float = 1.0) -> TwinParameters:
    """Draw the annotators of a twin, and choose its prevalences.

    Parameters
    ----------
    name, seed, scale
        As in `twin`, which draws its votes from these parameters.

    Examples
    --------
    #MeToo is where the paper finds most authority.

    >>> parameters = twin_parameters("mftc")
    >>> parameters.facts.domains[parameters.prevalence_df[:, 0].argmax()].name
    'MeToo'
    """
    facts = _scaled(corpus_facts(name), scale)
    if seed < 0:
        msg = f"the seed is {seed}: choose 0 or more."
        raise UsageError(msg)
    rng = np.random.default_rng([seed, 0])
    return TwinParameters(
        facts,
        prevalence_df=_place_prevalence(facts),
        sensitivity_af=_draw_around(rng, facts.sensitivity, SENSITIVITY_VOTES, facts.annotators),
        specificity_af=_draw_around(rng, facts.specificity, SPECIFICITY_VOTES, facts.annotators),
        # The least busy still get a tenth or so of the mean workload.
        weight_a=0.2 + rng.lognormal(sigma=facts.uneven, size=facts.annotators),
    )


def _scaled(facts: CorpusFacts, scale: float) -> CorpusFacts:
    if not 0 < scale <= 5:
        msg = f"the scale is {scale:g}: choose more than 0 and at most 5; 1 is the size of the corpus."
        raise UsageError(msg)
    domains = [replace(domain, items=max(1, round(domain.items * scale))) for domain in facts.domains]
    annotators = facts.annotators
    if facts.uneven:
        annotators = max(facts.most_votes, round(annotators * scale))
    return replace(facts, domains=domains, annotators=annotators)


def _draw_around(rng: np.random.Generator, mean_f: Sequence[float], votes: float, n_annotators: int) -> Floats:
    mean = np.asarray(mean_f)
    return rng.beta(votes * mean, votes * (1 - mean), size=(n_annotators, len(mean)))


def _place_prevalence(facts: CorpusFacts) -> Floats:
    from scipy.special import expit, logit

    # Domains differ as the any rule says; their mean over items is the published prevalence.
    any_df = np.array([domain.any_rule for domain in facts.domains])
    share_d = np.array([domain.items for domain in facts.domains], dtype=float)
    share_d /= share_d.sum()
    shift_df = CONTRAST * (logit(any_df) - logit(share_d @ any_df))
    prevalence_f = np.asarray(facts.prevalence)
    centre_f = logit(prevalence_f)
    for _ in range(20):
        placed_df = expit(centre_f + shift_df)
        slope_f = share_d @ (placed_df * (1 - placed_df))
        centre_f = centre_f - (share_d @ placed_df - prevalence_f) / slope_f
    prevalence_df: Floats = expit(centre_f + shift_df)
    return prevalence_df


@dataclass(frozen=True, eq=False)
class _DomainDraw:
    # Votes are sorted by item and annotator; every one has a label for each foundation.
    texts: list[str]
    truth_if: NDArray[np.int8]
    votes_i: NDArray[np.int64]
    annotator_v: NDArray[np.int64]
    label_vf: NDArray[np.int8]


def _draw_domain(parameters: TwinParameters, d: int, rng: np.random.Generator) -> _DomainDraw:
    facts, domain = parameters.facts, parameters.facts.domains[d]
    truth_if = (rng.random((domain.items, len(facts.foundations))) < parameters.prevalence_df[d]).astype(np.int8)
    team_a = np.asarray(domain.team if domain.team is not None else range(facts.annotators))
    votes_i = _draw_counts(rng, domain, facts.fewest_votes, min(facts.most_votes, len(team_a)))
    annotator_v = team_a[assign_by_weight(rng, votes_i, parameters.weight_a[team_a])]
    truth_vf = np.repeat(truth_if, votes_i, axis=0)
    chance_vf = np.where(
        truth_vf == 1, parameters.sensitivity_af[annotator_v], 1 - parameters.specificity_af[annotator_v]
    )
    label_vf = (rng.random(chance_vf.shape) < chance_vf).astype(np.int8)
    texts = write_texts(rng, domain.name, truth_if, facts.foundations)
    return _DomainDraw(texts, truth_if, votes_i, annotator_v, label_vf)


def _draw_counts(rng: np.random.Generator, domain: DomainFacts, fewest: int, most: int) -> NDArray[np.int64]:
    # Everybody gets the fewest; the rest of the published total falls on places drawn without replacement.
    room = most - fewest
    n_more = round((domain.votes_per_item - fewest) * domain.items)
    place_v = rng.choice(domain.items * room, size=n_more, replace=False)
    return fewest + np.bincount(place_v // room, minlength=domain.items)


def _long_table(name: str, facts: CorpusFacts, parts: Sequence[_DomainDraw]) -> pl.DataFrame:
    import polars as pl

    n_items = sum(len(part.votes_i) for part in parts)
    n_foundations = len(facts.foundations)
    width = max(2, len(str(facts.annotators - 1)))
    items = pl.Series([f"{name}-{number:05d}" for number in range(1, n_items + 1)])
    annotators = pl.Series([f"A{number:0{width}d}" for number in range(facts.annotators)])
    domains = pl.Series([domain.name for domain in facts.domains])
    domain_i = np.repeat(np.arange(len(parts)), [len(part.votes_i) for part in parts])
    item_v = np.repeat(np.arange(n_items), np.concatenate([part.votes_i for part in parts]))
    item_r = np.repeat(item_v, n_foundations)
    annotator_r = np.repeat(np.concatenate([part.annotator_v for part in parts]), n_foundations)
    truth_if = np.concatenate([part.truth_if for part in parts])
    return pl.DataFrame(
        {
            "item": items.gather(item_r),
            "annotator": annotators.gather(annotator_r),
            "question": pl.Series(facts.foundations).gather(np.tile(np.arange(n_foundations), len(item_v))),
            "label": np.concatenate([part.label_vf for part in parts]).ravel(),
            "domain": domains.gather(domain_i[item_r]),
            "text": pl.Series([text for part in parts for text in part.texts]).gather(item_r),
            "gold": truth_if[item_v].ravel(),
        }
    )
