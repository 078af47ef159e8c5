"""Outliers of a whole consensus, as tables: items, annotators and words worth a look; roles; agreement.

`find_outliers` takes fitted parts and returns the tables outliers, annotator_summary and agreement of a run folder.
Each part's first items are ranked among those of all parts; annotators are described from the parameters and from sums
over parts. Words need all texts in one place: they are ranked on one machine only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from moral_entropy.consensus.entropy import EntropyParts, decompose_entropy, stacked
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.items.agreement import measure_agreement
from moral_entropy.items.annotators import describe_annotators
from moral_entropy.items.disagreement import disagreement, votes_against_others, votes_like_gold
from moral_entropy.items.rank import ItemScores, rank_items, score_items
from moral_entropy.items.ranking import ANNOTATOR, ITEM, WORD, ranking_frame
from moral_entropy.items.reasons import annotator_reasons, item_reasons
from moral_entropy.items.words import Corpus, word_reasons
from moral_entropy.names import ALL
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.grade import share_of
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.schemas import ANNOTATOR_SUMMARY, OUTLIERS, with_ids
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import UNKNOWN, Votes

WORDS_RANKING = "high entropy"

MOST_ANNOTATORS = 5_000
"""Largest number of annotators in a ranking; all of them are in the summary."""


def find_outliers(
    consensus: Consensus, entropies: Sequence[EntropyParts] | None = None, *, advance: Advance = ignore
) -> dict[str, pl.DataFrame]:
    """Find the items, annotators and words that are worth a look.

    Parameters
    ----------
    consensus
        The fits. Items are resampled with the seed of the fit; intervals have its mass.
    entropies
        By fit, the entropies of its items, where they have been computed.
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
    >>> votes = me.simulate_votes(n_items=60, n_annotators=4, votes_per_item=3, seed=1).votes
    >>> tables = find_outliers(me.fit(votes, draws=50))
    >>> tables["outliers"].filter(kind="item", ranking="entropy", rank=1)["reason"].item()
    'entropy 0.69... of at most 0.693 nats; ... of 3 votes 1; p = ...'
    """
    votes, corpus = consensus.votes, Corpus(consensus.votes)
    entropies = entropies or [decompose_entropy(fit) for fit in consensus.fits]
    outliers, summaries, agreement = [OUTLIERS.to_frame()], list[pl.DataFrame](), list[pl.DataFrame]()
    for done, question in enumerate(votes.questions):
        fits, parts = zip(
            *(pair for pair in zip(consensus.fits, entropies, strict=True) if pair[0].question == question), strict=True
        )
        scores = score_items(votes, fits, stacked(parts))
        summary = pl.concat([_summary(consensus, fit) for fit in fits])
        outliers += [
            *_item_rankings(votes, scores),
            *_word_rankings(corpus, scores),
            *rank_annotators(question, summary),
        ]
        summaries.append(summary)
        agreement += _agreement_frames(consensus, scores)
        advance((done + 1) / len(votes.questions))
    return {
        "outliers": pl.concat(outliers),
        "annotator_summary": pl.concat(summaries),
        "agreement": pl.concat(agreement).fill_nan(None),
    }


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


def _agreement_frames(consensus: Consensus, scores: ItemScores) -> Iterator[pl.DataFrame]:
    """Measure how far annotators agree on a question, over all domains and in each."""
    for code in (UNKNOWN, *np.setdiff1d(scores.domain_i, [UNKNOWN]).tolist()):
        inside = slice(None) if code == UNKNOWN else scores.domain_i == code
        domain = ALL if code == UNKNOWN else consensus.votes.domains[code]
        counts_ik, count_i = scores.counts_ik[inside], scores.count_i[inside]
        figures = measure_agreement(counts_ik, count_i, interval=consensus.interval, seed=consensus.seed)
        yield figures.select(pl.lit(scores.question).alias("question"), pl.lit(domain).alias("domain"), pl.all())


def _summary(consensus: Consensus, fit: QuestionFit) -> pl.DataFrame:
    """Return the annotators of a fit with figures, votes against others and gold, and roles: annotator_summary."""
    votes, ballot = consensus.votes, fit.ballot
    differing_a, compared_a = votes_against_others(ballot, anonymous=votes.anonymous)
    right_a, known_a = votes_like_gold(ballot)
    low_a, high_a = exact_interval(right_a, known_a, consensus.interval)
    columns = {
        "question": pl.repeat(ballot.question, ballot.n_annotators, eager=True),
        "part": pl.repeat(ballot.part, ballot.n_annotators, eager=True),
        "annotator": votes.annotators.gather(ballot.annotator_a),
        "n_votes": ballot.votes_a,
        "disagreement": disagreement(ballot),
        "disagreement_others": share_of(differing_a, compared_a),
        "gold_votes": known_a.round().astype(np.int64),
        "gold_accuracy": share_of(right_a, known_a),
        "gold_accuracy_low": low_a,
        "gold_accuracy_high": high_a,
        **describe_annotators(fit, interval=consensus.interval).to_dict(),
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
