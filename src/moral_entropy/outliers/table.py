"""Outliers of a whole consensus, as tables: items, annotators and words worth a look; roles; agreement.

`find_outliers` takes a `Consensus` and its entropies and gives an `Outliers`, whose frames are the tables
outliers, annotator_summary and agreement of a run folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.entropy.parts import EntropyParts, decompose_entropy
from moral_entropy.names import ALL
from moral_entropy.outliers.agreement import measure_agreement
from moral_entropy.outliers.annotators import AnnotatorFigures, describe_annotators
from moral_entropy.outliers.items import ItemScores, rank_items, score_items
from moral_entropy.outliers.ranking import ANNOTATOR, ITEM, WORD, Rows
from moral_entropy.outliers.reasons import annotator_reasons, item_reasons
from moral_entropy.outliers.words import Corpus, word_reasons
from moral_entropy.progress import Advance, ignore
from moral_entropy.runs.tables import AGREEMENT, ANNOTATOR_SUMMARY, OUTLIERS, with_ids
from moral_entropy.ties import DECIMALS
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, Votes

MOST_ANNOTATORS = 5_000
"""Annotators a ranking keeps; all are in the summary."""


@dataclass(frozen=True, eq=False)
class Outliers:
    """What is worth a look, as tables of a run folder.

    Parameters
    ----------
    frame
        Items, annotators and words, ranked, with reasons.
    annotators
        Every annotator's figures and role.
    agreement
        Agreement by question and domain.
    """

    frame: pl.DataFrame
    annotators: pl.DataFrame
    agreement: pl.DataFrame


def find_outliers(consensus: Consensus, parts: EntropyParts | None = None, *, advance: Advance = ignore) -> Outliers:
    """Find the items, annotators and words that are worth a look.

    Parameters
    ----------
    consensus
        The fits. Its seed is that of the resampling, its interval the mass of every interval.
    parts
        Their entropies, if they are at hand already.
    advance
        Told the share done.

    Examples
    --------
    >>> import moral_entropy as me
    >>> votes = me.simulate_votes(n_items=60, n_annotators=4, votes_per_item=3, seed=1).votes
    >>> found = find_outliers(me.fit(votes, draws=50))
    >>> found.frame.filter(kind="item", ranking="entropy", rank=1)["reason"].item()
    'entropy 0.69... of at most 0.693 nats; ... of 3 votes 1; p = ...'
    """
    parts = parts or decompose_entropy(consensus)
    votes, rows, agreement, summaries = consensus.votes, Rows(), [], []
    corpus = Corpus(votes)
    questions = list(by_question(consensus, parts))
    for done, (fits, some) in enumerate(questions):
        scores = score_items(votes, fits, some)
        add_items(rows, votes, scores)
        _add_words(rows, corpus, scores)
        agreement += _agreement_rows(consensus, scores, np.concatenate([fit.ballot.count_i for fit in fits]))
        described = [describe_annotators(f, interval=consensus.interval, anonymous=votes.anonymous) for f in fits]
        summary = pl.concat([summary_frame(votes, *pair) for pair in zip(fits, described, strict=True)])
        add_annotators(rows, fits[0].question, summary)
        summaries.append(summary)
        advance((done + 1) / len(questions))
    return Outliers(
        frame=pl.DataFrame({field.name: getattr(rows, field.name) for field in fields(rows)}, schema=OUTLIERS),
        annotators=pl.concat(summaries),
        agreement=pl.DataFrame(agreement, schema=AGREEMENT, orient="row").fill_nan(None),
    )


def by_question(consensus: Consensus, parts: EntropyParts) -> Iterator[tuple[list[QuestionFit], EntropyParts]]:
    """Give the fits of each question, and the entropies of their items."""
    ends = np.cumsum([0, *(fit.ballot.n_items for fit in consensus.fits)])
    for question in dict.fromkeys(fit.question for fit in consensus.fits):
        at = [f for f, fit in enumerate(consensus.fits) if fit.question == question]
        # Parts of a question are neighbours: a slice takes no memory, however many items there are.
        rows = slice(ends[at[0]], ends[at[-1] + 1])
        some = EntropyParts(parts.total_i[rows], parts.aleatoric_i[rows], parts.epistemic_i[rows])
        yield [consensus.fits[f] for f in at], some


def add_items(rows: Rows, votes: Votes, scores: ItemScores) -> None:
    """Add every ranking of the items of a question."""
    for ranked in rank_items(scores, votes.domains):
        names = votes.items.gather(scores.item_i[ranked.at_n]).cast(pl.String).to_list()
        score_n = scores.score_ri[ranked.ranking][ranked.at_n].tolist()
        reasons = item_reasons(votes, scores, ranked.ranking, ranked.at_n)
        rows.add((ITEM, scores.question, ranked.domain), ranked.ranking, names, score_n, reasons)


def _add_words(rows: Rows, corpus: Corpus, scores: ItemScores) -> None:
    for domain, words in corpus.marking(scores.item_i, scores.domain_i, scores.score_ri["entropy"]):
        names, z = [word.word for word in words], [word.z for word in words]
        rows.add((WORD, scores.question, domain), "high entropy", names, z, word_reasons(words))


def _agreement_rows(consensus: Consensus, scores: ItemScores, weight_i: Floats) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    domain_codes = np.setdiff1d(scores.domain_i, [UNKNOWN]).tolist()
    names = {UNKNOWN: ALL} | {code: consensus.votes.domains[code] for code in domain_codes}
    for code, domain in names.items():
        inside: slice | Ints = slice(None) if code == UNKNOWN else np.flatnonzero(scores.domain_i == code)
        figures = measure_agreement(
            scores.counts_ik[inside], weight_i[inside], interval=consensus.interval, seed=consensus.seed
        )
        found += [(scores.question, domain, *vars(figure).values()) for figure in figures]
    return found


def summary_frame(votes: Votes, fit: QuestionFit, figures: AnnotatorFigures) -> pl.DataFrame:
    """Give the annotators of a fit with their figures and roles, as rows of annotator_summary."""
    ballot = fit.ballot
    bounds = {
        f"{name}{end}": getattr(getattr(figures, name), f"{kind}_a")
        for name in ("sensitivity", "specificity", "youden")
        for end, kind in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    columns = {
        "question": pl.repeat(ballot.question, ballot.n_annotators, eager=True),
        "part": pl.repeat(ballot.part, ballot.n_annotators, eager=True),
        "annotator": votes.annotators.gather(ballot.annotator_a),
        "n_votes": ballot.votes_a,
        "disagreement": figures.disagreement_a,
        "disagreement_others": figures.disagreement_others_a,
        **bounds,
        "below_chance": figures.below_chance_a,
        "role": pl.Series(figures.role_a.tolist(), dtype=pl.String),
    }
    schema = with_ids(ANNOTATOR_SUMMARY, annotator=votes.annotators.dtype)
    return pl.DataFrame(columns, schema=schema).fill_nan(None)


def add_annotators(rows: Rows, question: str, summary: pl.DataFrame) -> None:
    """Add the annotators at odds with the others, and those who know least; those with few votes last."""
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
        rows.add((ANNOTATOR, question, ALL), ranking, names, known[column].to_list(), reasons)
