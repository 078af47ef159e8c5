"""Outliers of a whole consensus, as tables: items, annotators and words worth a look; roles; agreement.

`find_outliers` takes a consensus and returns the tables outliers, annotator_summary and agreement of a run folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from moral_entropy.consensus.entropy import EntropyParts, decompose_entropy, stacked
from moral_entropy.consensus.result import Consensus
from moral_entropy.items.agreement import measure_agreement
from moral_entropy.items.annotators import rank_annotators, summarise_annotators
from moral_entropy.items.rank import ItemScores, item_reasons, rank_items, ranking_frame, score_items
from moral_entropy.items.words import Corpus, word_reasons
from moral_entropy.names import ALL
from moral_entropy.progress import Advance, ignore
from moral_entropy.schemas import OUTLIERS
from moral_entropy.votes.table import UNKNOWN, Votes

WORDS_RANKING = "high entropy"


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
        asked = [b for b, fit in enumerate(consensus.fits) if fit.question == question]
        scores = score_items(votes, [consensus.fits[b] for b in asked], stacked([entropies[b] for b in asked]))
        summary = pl.concat([summarise_annotators(consensus, consensus.fits[b]) for b in asked])
        outliers += [*_item_rankings(votes, scores), *_word_rankings(corpus, scores)]
        outliers += rank_annotators(question, summary)
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
        yield ranking_frame(("item", scores.question, domain), ranking, names, score_n, reasons)


def _word_rankings(corpus: Corpus, scores: ItemScores) -> Iterator[pl.DataFrame]:
    for domain, words in corpus.marking(scores.item_i, scores.domain_i, scores.score_ri["entropy"]):
        names, z = [word.word for word in words], [word.z for word in words]
        yield ranking_frame(("word", scores.question, domain), WORDS_RANKING, names, z, word_reasons(words))


def _agreement_frames(consensus: Consensus, scores: ItemScores) -> Iterator[pl.DataFrame]:
    """Measure how far annotators agree on a question, over all domains and in each."""
    for code in (UNKNOWN, *np.setdiff1d(scores.domain_i, [UNKNOWN]).tolist()):
        inside = slice(None) if code == UNKNOWN else scores.domain_i == code
        domain = ALL if code == UNKNOWN else consensus.votes.domains[code]
        counts_ik, count_i = scores.counts_ik[inside], scores.count_i[inside]
        figures = measure_agreement(counts_ik, count_i, interval=consensus.interval, seed=consensus.seed)
        yield figures.select(pl.lit(scores.question).alias("question"), pl.lit(domain).alias("domain"), pl.all())
