"""Outliers of a whole consensus, as tables: items, annotators and words worth a look; roles; agreement.

`find_outliers` takes fitted parts and returns the tables outliers, annotator_summary and agreement of a run folder.
Each part's first items are ranked among those of all parts; annotators are described from the parameters and from sums
over parts. Words need all texts in one place: they are ranked on one machine only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.consensus.entropy import EntropyParts, stacked
from moral_entropy.consensus.fitted import FittedParts, PartFit
from moral_entropy.consensus.item_classes import COUNTS, DOMAIN, ItemClasses
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.items.agreement import measure_agreement
from moral_entropy.items.annotators import describe_annotators
from moral_entropy.items.disagreement import disagreement, votes_against_others, votes_like_gold
from moral_entropy.items.rank import TOP, TOP_IN_DOMAIN, ItemScores, rank_items, score_items
from moral_entropy.items.ranking import ANNOTATOR, ITEM, WORD, ranking_frame
from moral_entropy.items.reasons import annotator_reasons, item_reasons
from moral_entropy.items.words import Corpus, word_reasons
from moral_entropy.names import ALL
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.bregman import share_of
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.schemas import ANNOTATOR_SUMMARY, OUTLIERS, with_ids
from moral_entropy.ties import DECIMALS, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Votes

WORDS_RANKING = "high entropy"

MOST_ANNOTATORS = 5_000
"""Largest number of annotators in a ranking; all of them are in the summary."""


def find_outliers(fitted: FittedParts, *, advance: Advance = ignore) -> dict[str, pl.DataFrame]:
    """Find the items, annotators and words that are worth a look.

    Parameters
    ----------
    fitted
        The votes and their fits. Items are resampled with the seed of the fit; intervals have its mass.
    advance
        Called with the share done.

    Returns
    -------
    dict
        Tables of a run folder: outliers (items, annotators and words, ranked, with reasons), annotator_summary (every
        annotator's figures and role) and agreement (by question and domain).

    Examples
    --------
    >>> import moral_entropy as me
    >>> from moral_entropy.consensus.fitted import local_fit
    >>> votes = me.simulate_votes(n_items=60, n_annotators=4, votes_per_item=3, seed=1).votes
    >>> found = find_outliers(local_fit(me.fit(votes, draws=50)))
    >>> found["outliers"].filter(kind="item", ranking="entropy", rank=1)["reason"].item()
    'entropy 0.69... of at most 0.693 nats; ... of 3 votes 1; p = ...'
    """
    parts, consensus = fitted.parts, fitted.consensus
    ranked = fitted.fetch_each(rank_items_of_part, advance if parts.whole else ignore, parts.whole)
    items = merge_rankings(
        [frame for frame, _ in ranked], consensus.votes.domains, [names for _, rankings in ranked for names in rankings]
    )
    counted = fitted.total(count_disagreements)
    frames, summaries, agreement = list[pl.DataFrame](), list[pl.DataFrame](), list[pl.DataFrame]()
    for question in consensus.votes.questions:
        asked = [b for b, fit in enumerate(consensus.fits) if fit.question == question]
        summary = pl.concat([_summary(consensus, b, counted[b]) for b in asked])
        frames += [items.filter(question=question), *rank_annotators(question, summary)]
        summaries.append(summary)
        agreement += _agreement_frames(consensus, question, [parts.classes[b] for b in asked])
    return {
        "outliers": pl.concat(frames),
        "annotator_summary": pl.concat(summaries),
        "agreement": pl.concat(agreement).fill_nan(None),
    }


def rank_items_of_part(one: PartFit, advance: Advance, words: bool) -> tuple[pl.DataFrame, list[list[str]]]:
    """Rank the items of one part, and its words if wanted; return rows, and the names of each question's rankings."""
    votes, frames, rankings = one.consensus.votes, [OUTLIERS.to_frame()], []
    corpus = Corpus(votes if words else replace(votes, texts=None))
    questions = list(by_question(one))
    for done, (fits, some) in enumerate(questions):
        scores = score_items(votes, fits, some)
        frames += [*_item_rankings(votes, scores), *_word_rankings(corpus, scores)]
        rankings.append([*scores.score_ri, WORDS_RANKING])
        advance((done + 1) / len(questions))
    return pl.concat(frames), rankings


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
    if len(several) == 1:
        return several[0]
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
    """Merge lists of names so that the order of each list is kept.

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


Disagreement = tuple[Floats, Floats, Floats, Floats, Floats]
"""By annotator: share of votes against the majority; votes against the majority of the others; votes compared; votes
that are what gold says; votes on items with gold."""


def count_disagreements(one: PartFit) -> tuple[Disagreement, ...]:
    """Count the votes of one part that differ from majorities, by ballot."""
    anonymous = one.consensus.votes.anonymous
    # Each is a share of all votes of an annotator, some of which lie in other parts: shares of parts add up.
    return tuple(
        (disagreement(b), *votes_against_others(b, anonymous=anonymous), *votes_like_gold(b))
        for b in one.consensus.votes.ballots
    )


def _summary(consensus: Consensus, b: int, counted: Disagreement) -> pl.DataFrame:
    share_a, differing_a, compared_a, right_a, known_a = counted
    fit, votes = consensus.fits[b], consensus.votes
    figures = describe_annotators(fit, interval=consensus.interval)
    against = {"disagreement": share_a, "disagreement_others": share_of(differing_a, compared_a)}
    low_a, high_a = exact_interval(right_a, known_a, consensus.interval)
    bounds = {"gold_accuracy": share_of(right_a, known_a), "gold_accuracy_low": low_a, "gold_accuracy_high": high_a}
    return summary_frame(votes, fit, figures, against, {"gold_votes": known_a.round().astype(np.int64), **bounds})


def by_question(one: PartFit) -> Iterator[tuple[list[QuestionFit], EntropyParts]]:
    """Yield the fits of each question, and the entropies of their items one below the other."""
    fits = one.consensus.fits
    for question in dict.fromkeys(fit.question for fit in fits):
        asked = [b for b, fit in enumerate(fits) if fit.question == question]
        yield [fits[b] for b in asked], stacked([one.entropies[b] for b in asked])


def _item_rankings(votes: Votes, scores: ItemScores) -> Iterator[pl.DataFrame]:
    """Yield every ranking of the items of a question."""
    for domain, ranking, at_n in rank_items(scores, votes.domains):
        names = votes.items.gather(scores.item_i[at_n]).cast(pl.String).to_list()
        score_n = scores.score_ri[ranking][at_n].tolist()
        reasons = item_reasons(votes, scores, ranking, at_n)
        yield ranking_frame((ITEM, scores.question, domain), ranking, names, score_n, reasons)


def _word_rankings(corpus: Corpus, scores: ItemScores) -> Iterator[pl.DataFrame]:
    for domain, words in corpus.marking(scores.item_i, scores.domain_i, scores.score_ri["entropy"]):
        names, z = [word.word for word in words], [word.z for word in words]
        yield ranking_frame((WORD, scores.question, domain), WORDS_RANKING, names, z, word_reasons(words))


def _agreement_frames(consensus: Consensus, question: str, classes: Sequence[ItemClasses]) -> Iterator[pl.DataFrame]:
    """Measure how far annotators agree on a question, over all domains and in each."""
    fact_nf = np.concatenate([one.fact_nf for one in classes])
    weight_n = np.concatenate([one.weight_n for one in classes])
    domain_n = fact_nf[:, DOMAIN]
    for code in (UNKNOWN, *np.setdiff1d(domain_n, [UNKNOWN]).tolist()):
        inside = np.ones(len(domain_n), dtype=bool) if code == UNKNOWN else domain_n == code
        domain = ALL if code == UNKNOWN else consensus.votes.domains[code]
        counts_nk, weight = fact_nf[inside, COUNTS], weight_n[inside]
        found = measure_agreement(counts_nk, weight, interval=consensus.interval, seed=consensus.seed)
        yield found.select(pl.lit(question).alias("question"), pl.lit(domain).alias("domain"), pl.all())


def summary_frame(
    votes: Votes, fit: QuestionFit, figures: pl.DataFrame, against: Mapping[str, Floats], gold: Mapping[str, Any]
) -> pl.DataFrame:
    """Return the annotators of a fit with figures, votes against others and gold, and roles: annotator_summary."""
    ballot = fit.ballot
    columns = {
        "question": pl.repeat(ballot.question, ballot.n_annotators, eager=True),
        "part": pl.repeat(ballot.part, ballot.n_annotators, eager=True),
        "annotator": votes.annotators.gather(ballot.annotator_a),
        "n_votes": ballot.votes_a,
        **against,
        **gold,
        **figures.to_dict(),
    }
    schema = with_ids(ANNOTATOR_SUMMARY, annotator=votes.annotators.dtype)
    return pl.DataFrame({name: columns[name] for name in schema}, schema=schema).fill_nan(None)


def rank_annotators(question: str, summary: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rank annotators by disagreement with the others and by a low Youden index; those with few votes come last."""
    few = pl.col("role") == "few votes"
    rankings: Sequence[tuple[str, str, bool]] = (
        ("disagreement", "disagreement_others", True),
        ("youden", "youden", False),
    )
    for ranking, column, descending in rankings:
        key = pl.col(column).round(DECIMALS)
        known = summary.drop_nulls(column).sort(few, key, descending=[False, descending], maintain_order=True)
        known = known.head(MOST_ANNOTATORS)
        names = known["annotator"].cast(pl.String).to_list()
        reasons = annotator_reasons(known, ranking)
        yield ranking_frame((ANNOTATOR, question, ALL), ranking, names, known[column].to_list(), reasons)
