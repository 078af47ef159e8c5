"""What is worth a look, part by part: each part's first items are ranked among those of all parts.

Annotators are described here, from the parameters and from sums over parts. Words need all texts in one place: those
rankings are left to one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from moral_entropy.audit.bregman import share_of
from moral_entropy.cluster.crew import Crew
from moral_entropy.cluster.judged import Judged
from moral_entropy.cluster.kinds import COUNTS, DOMAIN, Kinds
from moral_entropy.consensus.result import Consensus
from moral_entropy.names import ALL
from moral_entropy.outliers.agreement import measure_agreement
from moral_entropy.outliers.annotators import describe_annotators
from moral_entropy.outliers.disagreement import disagreement, votes_against_others
from moral_entropy.outliers.items import TOP, TOP_IN_DOMAIN, score_items
from moral_entropy.outliers.ranking import Rows
from moral_entropy.outliers.table import Outliers, add_annotators, add_items, by_question, summary_frame
from moral_entropy.runs.tables import AGREEMENT, OUTLIERS
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import UNKNOWN, Floats

if TYPE_CHECKING:
    from distributed import Future

Disagreements = Sequence[tuple[Floats, Floats, Floats]]
"""By ballot and annotator: share of votes against the majority; votes against that of the others, of so many."""


def outlying_of_part(judged: Judged) -> tuple[pl.DataFrame, list[list[str]]]:
    """Rank the items of one part; name the rankings of each question, in order."""
    votes, rows, rankings = judged.consensus.votes, Rows(), []
    for fits, some in by_question(judged.consensus, judged.parts):
        scores = score_items(votes, fits, some)
        add_items(rows, votes, scores)
        rankings.append(list(scores.score_ri))
    return _frame(rows), rankings


def _frame(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame({one.name: getattr(rows, one.name) for one in fields(rows)}, schema=OUTLIERS)


def disagreements_of_part(judged: Judged) -> tuple[tuple[Floats, Floats, Floats], ...]:
    """Count the votes of one part that differ from majorities."""
    anonymous = judged.consensus.votes.anonymous
    ballots = [fit.ballot for fit in judged.consensus.fits]
    # A share of all votes of an annotator, of whom only some are here: shares of parts add up.
    return tuple((disagreement(b), *votes_against_others(b, anonymous=anonymous)) for b in ballots)


def find_outliers_in_parts(
    crew: Crew, judged: Sequence[Future[Any]], consensus: Consensus, kinds: Sequence[Kinds], counted: Disagreements
) -> Outliers:
    """Find the items and annotators that are worth a look, as `find_outliers` does.

    Parameters
    ----------
    crew, judged
        The workers, and the parts with what the fit says of them.
    consensus
        On an item a kind.
    kinds
        Of every ballot's items.
    counted
        Votes against majorities, all parts together.
    """
    fetched = crew.fetch_all(crew.each(outlying_of_part, judged))
    named = [names for _, rankings in fetched for names in rankings]
    items = merge_rankings([frame for frame, _ in fetched], consensus.votes.domains, named)
    frames, summaries, agreement = [], [], []
    for question in consensus.votes.questions:
        rows = Rows()
        at = [b for b, fit in enumerate(consensus.fits) if fit.question == question]
        summary = pl.concat([_summary(consensus, b, counted[b]) for b in at])
        add_annotators(rows, question, summary)
        frames += [items.filter(question=question), _frame(rows)]
        summaries.append(summary)
        agreement += _agreement(consensus, question, [kinds[b] for b in at])
    return Outliers(
        frame=pl.concat(frames),
        annotators=pl.concat(summaries),
        agreement=pl.DataFrame(agreement, schema=AGREEMENT, orient="row").fill_nan(None),
    )


def merge_rankings(
    several: Sequence[pl.DataFrame], domains: Sequence[str], named: Sequence[Sequence[str]]
) -> pl.DataFrame:
    """Rank the items of all parts by their scores; of equal ones those of earlier parts come first.

    Parameters
    ----------
    several
        The rankings of each part, in the order of the parts.
    domains
        In the order of the whole.
    named
        The rankings of every part and question, in order; some may lack a few.
    """
    place = {ALL: 0} | {domain: at + 1 for at, domain in enumerate(domains)}
    order = {name: at for at, name in enumerate(in_one_order(named))}
    keys = [
        pl.col("domain").replace_strict(place, return_dtype=pl.Int64).alias("_domain"),
        pl.col("ranking").replace_strict(order, return_dtype=pl.Int64).alias("_ranking"),
    ]
    ranked = pl.concat(several).with_columns(keys)
    ranked = ranked.with_columns(_score=-tie_key(ranked["score"].to_numpy()))
    ranked = ranked.sort("question", "_domain", "_ranking", "_score", maintain_order=True)
    group = ("question", "domain", "ranking")
    ranked = ranked.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(group))
    most = pl.when(pl.col("domain") == ALL).then(TOP).otherwise(TOP_IN_DOMAIN)
    return ranked.filter(pl.col("rank") <= most).select(OUTLIERS.names())


def in_one_order(named: Sequence[Sequence[str]]) -> list[str]:
    """Put names together so that each list's order is kept.

    Examples
    --------
    >>> in_one_order([["entropy", "one more vote"], ["entropy", "conflict:any", "one more vote"]])
    ['entropy', 'conflict:any', 'one more vote']
    """
    together: list[str] = []
    for names in sorted(named, key=len, reverse=True):
        at = 0
        for name in names:
            if name not in together:
                together.insert(at, name)
            at = together.index(name) + 1
    return together


def _summary(consensus: Consensus, b: int, counted: tuple[Floats, Floats, Floats]) -> pl.DataFrame:
    share_a, differing_a, heard_a = counted
    fit, votes = consensus.fits[b], consensus.votes
    figures = describe_annotators(fit, interval=consensus.interval, anonymous=votes.anonymous)
    others_a = share_of(differing_a, heard_a)
    return summary_frame(votes, fit, replace(figures, disagreement_a=share_a, disagreement_others_a=others_a))


def _agreement(consensus: Consensus, question: str, kinds: Sequence[Kinds]) -> list[tuple[object, ...]]:
    fact_nf = np.concatenate([one.fact_nf for one in kinds])
    weight_n = np.concatenate([one.weight_n for one in kinds])
    domain_n = fact_nf[:, DOMAIN]
    found: list[tuple[object, ...]] = []
    for code in (UNKNOWN, *np.setdiff1d(domain_n, [UNKNOWN]).tolist()):
        inside = np.ones(len(domain_n), dtype=bool) if code == UNKNOWN else domain_n == code
        domain = ALL if code == UNKNOWN else consensus.votes.domains[code]
        counts_nk, weight = fact_nf[inside, COUNTS], weight_n[inside]
        figures = measure_agreement(counts_nk, weight, interval=consensus.interval, seed=consensus.seed)
        found += [(question, domain, *vars(figure).values()) for figure in figures]
    return found
