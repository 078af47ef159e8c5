"""Our figures except those of the rules: the corpora's table, entropies, and annotators who dissent.

Takes `Votes` and `Consensus`, returns a table in the columns of `grading`. Touches no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus
from moral_entropy.names import ALL, MEAN
from moral_entropy.reproduce.any_foundation import gather_annotations
from moral_entropy.reproduce.published import LARGEST
from moral_entropy.rules.rules import rule_named
from moral_entropy.runs.make import entropy_frame, entropy_sums, item_entropies
from moral_entropy.votes.table import Ints, Votes

EQUAL = 0.005
"""Two rates that differ by less than this look the same in the paper's figures."""


@dataclass(frozen=True)
class Figure:
    """One figure of ours; `n` is the number of things it averages over, or zero."""

    corpus: str
    domain: str
    foundation: str
    rule: str
    reference: str
    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0


def as_frame(figures: Sequence[Figure]) -> pl.DataFrame:
    """Lay figures out as a table."""
    names = ("corpus", "domain", "foundation", "rule", "reference", "metric")
    schema = {**dict.fromkeys(names, pl.String), **dict.fromkeys(("value", "low", "high"), pl.Float64), "n": pl.Int64}
    return pl.DataFrame([asdict(figure) for figure in figures], schema=schema)


def corpora_figures(votes: Mapping[str, Votes]) -> list[Figure]:
    """Compute the paper's table "Corpora" for every corpus and its domains, and the totals.

    Parameters
    ----------
    votes
        Votes by corpus.
    """
    figures: list[Figure] = []
    for name, one in votes.items():
        figures += _corpus_figures(name, one)
    for metric in ("texts", "annotations"):
        total = sum(f.value or 0 for f in figures if f.domain == ALL and f.metric == metric)
        figures.append(Figure(ALL, ALL, ALL, "", "", metric, total))
    return figures


def _corpus_figures(name: str, votes: Votes) -> Iterator[Figure]:
    found = gather_annotations(votes)
    annotations_i = np.bincount(found.item_u, minlength=votes.n_items)
    flagged = {ballot.question: _flagged(votes, ballot.question) for ballot in votes.ballots}
    for domain, item_i in _domains(votes):
        n = len(item_i)
        yield Figure(name, domain, ALL, "", "", "texts", n, n=n)
        yield Figure(name, domain, ALL, "", "", "annotations", int(annotations_i[item_i].sum()), n=n)
        yield Figure(name, domain, ALL, "", "", "annotations_per_text", float(annotations_i[item_i].mean()), n=n)
        for foundation, flag_i in flagged.items():
            yield Figure(name, domain, foundation, "any", "", "flagged", float(flag_i[item_i].mean()), n=n)
    yield Figure(name, ALL, ALL, "", "", "annotators", len(np.unique(found.annotator_u)))


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


def entropy_figures(found: Mapping[str, Consensus]) -> list[Figure]:
    """Average the entropies by corpus, domain and foundation; return also the epistemic share of the cells.

    Parameters
    ----------
    found
        Consensus by corpus.
    """
    figures: list[Figure] = []
    for name, consensus in found.items():
        means = entropy_frame(consensus, entropy_sums(consensus, item_entropies(consensus)))
        for row in means.iter_rows(named=True):
            for metric in ("total", "aleatoric", "epistemic"):
                where = (row["domain"], row["question"], "", "", metric)
                figures.append(Figure(name, *where, row[metric], n=row["n_items"]))
        by_domain = means.filter(pl.col("domain") != ALL)
        share_x = (by_domain["epistemic"] / by_domain["total"]).to_numpy()
        if len(share_x):
            summaries = {MEAN: share_x.mean(), LARGEST: share_x.max()}
            figures += [
                Figure(name, which, which, "", "", "epistemic_share", float(share), n=len(share_x))
                for which, share in summaries.items()
            ]
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
                    Figure(name, domain, ballot.question, "majority", "", metric, float(rate), n=len(rate_a))
                    for metric, rate in ends.items()
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
        figures.append(Figure(corpus, ALL, MEAN, "any", "consensus", "domains_fpr_above_fnr", above, n=means.height))
        cells = own.filter(~pl.col("foundation").is_in([ALL, MEAN]), metric="fnr")
        pairs = cells.pivot("rule", index=["domain", "foundation"], values="value").drop_nulls()
        equal = int(((pairs["majority"] - pairs["two-vote"]).abs() < EQUAL).sum())
        rule = "majority and two-vote"
        figures.append(Figure(corpus, ALL, ALL, rule, "consensus", "equal_fnr_cells", equal, n=pairs.height))
    return figures
