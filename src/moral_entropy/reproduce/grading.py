"""Rules graded as the paper grades them: by domain, by corpus, across corpora, in every reading of "mean".

Takes the consensus of every corpus, returns a table of figures. One pass over all draws; the readings differ only in
which cells are added up, so that each has an interval of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from moral_entropy.model.consensus import Consensus
from moral_entropy.names import ALL, MEAN, NO_DOMAIN
from moral_entropy.rules.cells import Cells, Membership, gold_sums, join_cells, published_sums, sort_into_cells
from moral_entropy.rules.grade import RATES
from moral_entropy.rules.grading import Grading
from moral_entropy.rules.rules import Rule, as_rules
from moral_entropy.rules.table import REPLICATES
from moral_entropy.votes.table import Ints

if TYPE_CHECKING:
    import polars as pl

RULES = ("any", "majority", "two-vote")
"""The rules the paper grades."""


@dataclass(frozen=True, eq=False)
class Corpora:
    """The cells of several corpora together. Axis: **c** cell.

    Parameters
    ----------
    cells, members
        As in `rules.cells`; questions are those of `questions`, domains those of `places`.
    corpus_c
        Index of the corpus.
    names, questions
        Names of the corpora, and of all their questions.
    places
        Corpus and domain.
    """

    cells: Cells
    members: tuple[Membership, ...]
    corpus_c: Ints
    names: tuple[str, ...]
    questions: tuple[str, ...]
    places: tuple[tuple[str, str], ...]


def grade_rules(found: Mapping[str, Consensus], *, rules: Sequence[str] = RULES, seed: int = 0) -> pl.DataFrame:
    """Grade consensus rules against the consensus of several corpora, and against gold where there is any.

    Parameters
    ----------
    found
        By corpus, the consensus on yes/no questions.
    rules
        Names of the rules.
    seed
        Seed of the resampling for intervals against gold.

    Returns
    -------
    pl.DataFrame
        corpus, domain, foundation, rule, reference, metric, value, low, high, n. Domain and foundation "(all)" pool,
        "(mean)" averages: over foundations, or with both "(mean)" over the cells domain × foundation. Corpus "(all)"
        is all of them together.

    Examples
    --------
    >>> from moral_entropy.model.fit import fit
    >>> from moral_entropy.options import Inputs
    >>> from moral_entropy.reproduce.sources import load_votes
    >>> votes = load_votes("mfrc", Inputs(twins=True, scale=0.02))
    >>> figures = grade_rules({"mfrc": fit(votes, draws=50)})
    >>> figures.filter(corpus="mfrc", domain="(mean)", foundation="(mean)", rule="any", metric="fnr").height
    2
    """
    import polars as pl

    asked = as_rules(rules)
    corpora = _join_corpora(found, asked)
    mass = next(iter(found.values())).interval
    sums = published_sums(corpora.cells.n_cells, corpora.members)
    gradings = [Grading("consensus", asked, corpora.cells, sums, (), (), (), 0.5, mass)]
    gold = gold_sums(corpora.cells.n_cells, corpora.members, replicates=REPLICATES, seed=seed)
    if gold[0, :, 0].any():
        gradings.append(replace(gradings[0], reference="gold", sum_tcs=gold))
    frames = [frame for one in gradings for frame in _readings(corpora, one)]
    return pl.concat(frames).unique(maintain_order=True)


def _join_corpora(found: Mapping[str, Consensus], rules: tuple[Rule, ...]) -> Corpora:
    questions = tuple(dict.fromkeys(name for one in found.values() for name in one.votes.questions))
    places: list[tuple[str, str]] = []
    pieces: list[Cells] = []
    members: list[Membership] = []
    for name, consensus in found.items():
        cells, own = sort_into_cells(consensus, rules)
        offset = sum(piece.n_cells for piece in pieces)
        members += [replace(member, cell_gt=member.cell_gt + offset) for member in own]
        number_q = np.array([questions.index(question) for question in consensus.votes.questions])
        # "No domain" is the last place of the corpus, so that its code, -1, finds it.
        domains = (*consensus.votes.domains, NO_DOMAIN)
        place_d = len(places) + np.arange(len(domains))
        places += [(name, domain) for domain in domains]
        pieces.append(
            replace(
                cells,
                question_c=number_q[cells.question_c],
                domain_c=place_d[cells.domain_c],
                label_c=np.ones(cells.n_cells, dtype=np.int64),
            )
        )
    corpus_c = np.repeat(np.arange(len(pieces)), [piece.n_cells for piece in pieces])
    return Corpora(join_cells(pieces), tuple(members), corpus_c, tuple(found), questions, tuple(places))


def _readings(corpora: Corpora, grading: Grading) -> list[pl.DataFrame]:
    """Grade by place, by corpus, and cell by cell."""
    import polars as pl

    cells, n_questions = corpora.cells, len(corpora.questions)
    corpus_of = pl.col("domain").alias("corpus")
    by_place = _grade(grading, cells, corpora.questions, [str(at) for at in range(len(corpora.places))])
    by_corpus_cells = replace(cells, domain_c=corpora.corpus_c)
    by_corpus = _grade(grading, by_corpus_cells, corpora.questions, corpora.names)
    # Every cell becomes a question of its own, so that the mean over questions is the mean over cells.
    alone = replace(by_corpus_cells, question_c=cells.domain_c * n_questions + cells.question_c)
    names = [f"{place}|{question}" for place in corpora.places for question in corpora.questions]
    by_cell = _grade(grading, alone, names, corpora.names).filter(question=MEAN)
    corpus_at = {str(at): corpus for at, (corpus, _) in enumerate(corpora.places)}
    domain_at = {str(at): domain for at, (_, domain) in enumerate(corpora.places)}
    by_place = by_place.filter(pl.col("domain") != ALL).with_columns(
        pl.col("domain").replace_strict(corpus_at, return_dtype=pl.String).alias("corpus"),
        pl.col("domain").replace_strict(domain_at, return_dtype=pl.String),
    )
    by_corpus = by_corpus.with_columns(corpus_of, pl.lit(ALL).alias("domain"))
    by_cell = by_cell.with_columns(corpus_of, pl.lit(MEAN).alias("domain"))
    columns = ["corpus", "domain", "foundation", "rule", "reference", "metric", "value", "low", "high", "n"]
    return [
        frame.rename({"question": "foundation"}).filter(pl.col("metric").is_in(RATES)).select(columns)
        for frame in (by_corpus, by_cell, by_place)
    ]


def _grade(grading: Grading, cells: Cells, questions: Sequence[str], domains: Sequence[str]) -> pl.DataFrame:

    labels = (("no", "yes"),) * len(questions)
    named = replace(grading, cells=cells, questions=tuple(questions), domains=tuple(domains), labels=labels)
    return named.frame().fill_nan(None)
