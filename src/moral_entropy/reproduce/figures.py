"""Our figures except those of the rules: the corpora's table, entropies, and annotators who dissent.

Takes `Votes` and `Consensus`, returns a table in the columns of `grading`; also makes of the five questions a sixth,
whether a text carries any foundation at all. Touches no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.model.consensus import Consensus
from moral_entropy.model.entropy import decompose_entropy
from moral_entropy.names import ALL, MEAN
from moral_entropy.reproduce.published import ANY_FOUNDATION, LARGEST, PLACE
from moral_entropy.rules.rules import rule_named
from moral_entropy.votes.table import UNKNOWN, Ints, Votes, ballot_from_codes

EQUAL = 0.005
"""Two rates that differ by less than this look the same in the paper's figures."""


SCHEMA = pl.Schema(
    {**dict.fromkeys(PLACE, pl.String()), **dict.fromkeys(("value", "low", "high"), pl.Float64()), "n": pl.Int64()}
)
Figure = dict[str, Any]
"""One figure of ours, a row of `SCHEMA`; `n` is the number of things it averages over, or zero."""


def figure(
    corpus: str,
    domain: str,
    foundation: str,
    metric: str,
    value: float,
    *,
    rule: str = "",
    reference: str = "",
    n: int = 0,
) -> Figure:
    """Return a figure that has no interval."""
    place = (corpus, domain, foundation, rule, reference, metric)
    return {**dict(zip(PLACE, place, strict=True)), "value": float(value), "n": n}


def corpora_figures(votes: Mapping[str, Votes]) -> list[Figure]:
    """Compute the paper's table "Corpora" for every corpus and its domains, and the totals.

    Parameters
    ----------
    votes
        Votes by corpus.
    """
    figures = [row for name, own in votes.items() for row in _corpus_figures(name, own)]
    for metric in ("texts", "annotations"):
        total = sum(row["value"] for row in figures if row["domain"] == ALL and row["metric"] == metric)
        figures.append(figure(ALL, ALL, ALL, metric, total))
    return figures


def _corpus_figures(name: str, votes: Votes) -> Iterator[Figure]:
    item_u, annotator_u, _ = gather_annotations(votes)
    annotations_i = np.bincount(item_u, minlength=votes.n_items)
    flagged = {ballot.question: _flagged(votes, ballot.question) for ballot in votes.ballots}
    for domain, item_i in _domains(votes):
        n = len(item_i)
        yield figure(name, domain, ALL, "texts", n, n=n)
        yield figure(name, domain, ALL, "annotations", annotations_i[item_i].sum(), n=n)
        yield figure(name, domain, ALL, "annotations_per_text", annotations_i[item_i].mean(), n=n)
        for foundation, flag_i in flagged.items():
            yield figure(name, domain, foundation, "flagged", flag_i[item_i].mean(), rule="any", n=n)
    yield figure(name, ALL, ALL, "annotators", len(np.unique(annotator_u)))


def _flagged(votes: Votes, question: str) -> Ints:
    ballot = votes.ballot(question)
    flag_i = np.zeros(votes.n_items, dtype=np.int8)
    flag_i[ballot.item_i] = ballot.counts_ik[:, ballot.positive] > 0
    return flag_i


def _domains(votes: Votes) -> Iterator[tuple[str, Ints]]:
    yield ALL, np.arange(votes.n_items)
    for code, domain in enumerate(votes.domains):
        item_i = np.flatnonzero(votes.domain_i == code)
        if len(item_i):
            yield domain, item_i


def entropy_figures(fits: Mapping[str, Consensus]) -> list[Figure]:
    """Average the entropies by corpus, domain and foundation; return also the epistemic share of the cells.

    Parameters
    ----------
    fits
        Consensus by corpus.
    """
    figures: list[Figure] = []
    for name, consensus in fits.items():
        shares = []
        for fit in consensus.fits:
            entropy, domain_i = decompose_entropy(fit), consensus.votes.domain_i[fit.ballot.item_i]
            parts = {"total": entropy.total_i, "aleatoric": entropy.aleatoric_i, "epistemic": entropy.epistemic_i}
            for code, domain in ((None, ALL), *enumerate(consensus.votes.domains)):
                weight_i = fit.ballot.count_i * (True if code is None else domain_i == code)
                if n := round(weight_i.sum()):
                    means = {metric: np.average(part_i, weights=weight_i) for metric, part_i in parts.items()}
                    figures += [figure(name, domain, fit.question, *mean, n=n) for mean in means.items()]
                    shares += [] if code is None else [means["epistemic"] / means["total"]]
        if shares:
            ends = {MEAN: float(np.mean(shares)), LARGEST: max(shares)}
            figures += [figure(name, at, at, "epistemic_share", share, n=len(shares)) for at, share in ends.items()]
    return figures


def dissent_figures(name: str, votes: Votes) -> list[Figure]:
    """Compute, by domain and foundation, the lowest and highest share of votes against the majority of any annotator.

    Parameters
    ----------
    name
        Name of the corpus.
    votes
        Its votes.
    """
    figures = []
    for ballot in votes.ballots:
        majority_i = rule_named("majority").scores(ballot.counts_ik, ballot.positive)
        item_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i)
        dissent_v = (ballot.code_v % 2 == ballot.positive) != (majority_i[item_v] == 1)
        domain_v = votes.domain_i[ballot.item_i][item_v]
        for code, domain in enumerate(votes.domains):
            inside = domain_v == code
            annotator_v = ballot.code_v[inside] // 2
            votes_a = np.bincount(annotator_v)
            rate_a = np.bincount(annotator_v, weights=dissent_v[inside])[votes_a > 0] / votes_a[votes_a > 0]
            if len(rate_a):
                ends = {"lowest_dissent": rate_a.min(), "highest_dissent": rate_a.max()}
                figures += [
                    figure(name, domain, ballot.question, *rate, rule="majority", n=len(rate_a))
                    for rate in ends.items()
                ]
    return figures


def counted_figures(rules: pl.DataFrame) -> list[Figure]:
    """Count what the paper counts: domains where the any rule's fpr exceeds its fnr, and equal rates of strict rules.

    Parameters
    ----------
    rules
        Figures from `grade_rules`.
    """
    figures = []
    graded = rules.filter(reference="consensus").filter(~pl.col("domain").is_in([ALL, MEAN]))
    for corpus in graded["corpus"].unique(maintain_order=True):
        own = graded.filter(corpus=corpus)
        means = own.filter(foundation=MEAN, rule="any").pivot("metric", index="domain", values="value")
        above = int((means["fpr"] > means["fnr"]).sum())
        graded_by = {"reference": "consensus", "rule": "any"}
        figures.append(figure(corpus, ALL, MEAN, "domains_fpr_above_fnr", above, n=means.height, **graded_by))
        cells = own.filter(~pl.col("foundation").is_in([ALL, MEAN]), metric="fnr")
        pairs = cells.pivot("rule", index=["domain", "foundation"], values="value").drop_nulls()
        equal = int(((pairs["majority"] - pairs["two-vote"]).abs() < EQUAL).sum())
        graded_by["rule"] = "majority and two-vote"
        figures.append(figure(corpus, ALL, ALL, "equal_fnr_cells", equal, n=pairs.height, **graded_by))
    return figures


def gather_annotations(votes: Votes) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Join the votes of one annotator on one item. Axis: **u** one annotator on one item, over all questions.

    Parameters
    ----------
    votes
        Votes on yes/no questions.

    Returns
    -------
    tuple
        `item_u` and `annotator_u`, rows of `Votes.items` and `Votes.annotators`, and `yes_u`: whether the annotator
        said yes to any question.
    """
    item_v = np.concatenate([np.repeat(ballot.item_i, ballot.votes_i) for ballot in votes.ballots])
    annotator_v = np.concatenate([ballot.annotator_a[ballot.code_v // 2] for ballot in votes.ballots])
    yes_v = np.concatenate([ballot.code_v % 2 == ballot.positive for ballot in votes.ballots])
    n_annotators = max(len(votes.annotators), 1)
    key_u, at_v = np.unique(item_v.astype(np.int64) * n_annotators + annotator_v, return_inverse=True)
    yes_u = np.bincount(at_v, weights=yes_v, minlength=len(key_u)) > 0
    return key_u // n_annotators, key_u % n_annotators, yes_u


def any_foundation(votes: Votes) -> Votes | None:
    """Return votes on whether a text carries any foundation; None if all of them agree.

    An annotator who flags at least one foundation says yes. In eMFD every highlight is a yes, so there is no such
    question to fit.

    Parameters
    ----------
    votes
        Votes on the foundations, yes or no.

    Examples
    --------
    >>> import polars as pl
    >>> from moral_entropy.votes.read import read_votes
    >>> asked = {"question": ["care", "loyalty"] * 2, "label": [1, 0, 0, 0]}
    >>> table = pl.DataFrame({"item": [1, 1, 2, 2], "annotator": ["ann"] * 4, **asked})
    >>> together = any_foundation(read_votes(table, classes=["0", "1"]))
    >>> together.questions, together.ballots[0].counts_ik.tolist()
    (('any foundation',), [[0, 1], [1, 0]])
    """
    item_u, annotator_u, yes_u = gather_annotations(votes)
    if yes_u.all() or not yes_u.any():
        return None
    ballot = ballot_from_codes(
        ANY_FOUNDATION,
        ("no", "yes"),
        item_v=item_u,
        annotator_v=annotator_u,
        label_v=yes_u,
        item_i=np.arange(votes.n_items, dtype=np.int32),
        annotator_a=np.arange(len(votes.annotators), dtype=np.int32),
        gold_i=_gold(votes),
    )
    return replace(votes, ballots=(ballot,))


def _gold(votes: Votes) -> NDArray[np.int16]:
    """Return yes where any foundation is known to be there, no where all are known to be absent, else unknown."""
    yes_i = np.zeros(votes.n_items, dtype=bool)
    known_no_i = np.zeros(votes.n_items, dtype=np.int64)
    for ballot in votes.ballots:
        yes_i[ballot.item_i] |= ballot.gold_i == ballot.positive
        known_no_i[ballot.item_i] += ballot.gold_i == 1 - ballot.positive
    gold_i = np.where(yes_i, 1, np.where(known_no_i == len(votes.ballots), 0, UNKNOWN))
    return gold_i.astype(np.int16)
