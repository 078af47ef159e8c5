"""Outliers of a whole consensus, as tables: items, annotators and words worth a look; roles; agreement.

`find_outliers` takes a consensus and returns the tables outliers, annotator_summary and agreement of a run folder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.items.agreement import measure_agreement
from moral_entropy.items.annotators import rank_annotators, summarise_annotators
from moral_entropy.items.disagreement import tally_votes
from moral_entropy.items.rank import TOP, TOP_IN_DOMAIN, item_reasons, rank_items, ranking_rows, score_items
from moral_entropy.items.words import words_by_domain
from moral_entropy.model.consensus import Consensus
from moral_entropy.model.entropy import EntropyParts, decompose_entropy, stacked
from moral_entropy.names import ALL
from moral_entropy.progress import Advance, ignore
from moral_entropy.rules.cells import number_rows
from moral_entropy.schemas import SCHEMAS
from moral_entropy.ties import tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints

WORDS_RANKING = "high entropy"


Row = tuple[Any, ...]
"""A row of the table outliers."""


class ItemSums(NamedTuple):
    """What items tell, question by question: rankings, items by domain and counts of votes, tallies of annotators.

    Parameters
    ----------
    rankings
        By question, rows of the table outliers about items and words.
    cells
        By question, counts of votes by label, domain last, `key_cx`; and how many items have them, `weight_c`.
    tallies
        By fit, see `tally_votes`.
    """

    rankings: list[list[Row]]
    cells: list[tuple[Ints, Floats]]
    tallies: list[Floats]

    def __add__(self, addend: ItemSums) -> ItemSums:  # type: ignore[override]
        """Add what other items of the same questions tell."""
        return ItemSums(
            [_best(mine + theirs) for mine, theirs in zip(self.rankings, addend.rankings, strict=True)],
            [
                _counted(np.concatenate([key_cx, key_dx]), np.concatenate([weight_c, weight_d]))
                for (key_cx, weight_c), (key_dx, weight_d) in zip(self.cells, addend.cells, strict=True)
            ],
            [tally + further for tally, further in zip(self.tallies, addend.tallies, strict=True)],
        )


def _best(rows: list[Row]) -> list[Row]:
    """Rank again what several rankings of one question have; of equal scores, the first name first."""
    rankings = defaultdict[tuple[str, ...], list[Row]](list)
    for row in rows:
        kind, _, domain, *_, ranking, _ = row
        rankings[kind, domain, ranking].append(row)
    best = []
    for (_, domain, _), ranked in sorted(rankings.items()):
        ranked.sort(key=lambda row: (-tie_key(row[4]), row[3]))
        best += [(*row[:-1], n + 1) for n, row in enumerate(ranked[: TOP if domain == ALL else TOP_IN_DOMAIN])]
    return best


def _counted(key_cx: Ints, weight_c: Floats) -> tuple[Ints, Floats]:
    cell_c, first = number_rows((key_cx - UNKNOWN).T)
    return key_cx[first], np.bincount(cell_c, weights=weight_c).astype(np.float64)


def sum_items(
    consensus: Consensus, entropies: Sequence[EntropyParts] | None = None, *, advance: Advance = ignore
) -> ItemSums:
    """Rank the items of every question, and count what annotators and agreement are measured by."""
    votes, word_counts = consensus.votes, dict[bytes, pl.DataFrame]()
    entropies = entropies or [decompose_entropy(fit) for fit in consensus.fits]
    sums = ItemSums([], [], [tally_votes(fit.ballot, anonymous=votes.anonymous) for fit in consensus.fits])
    fits = zip(consensus.fits, entropies, strict=True)
    for n_done, (_, of_question) in enumerate(groupby(fits, lambda pair: pair[0].question)):
        fits_of, parts = zip(*of_question, strict=True)
        scores = score_items(votes, fits_of, stacked(parts))
        ranked, rankings = list(rank_items(scores, votes.domains)), list[Row]()
        # All names at once: looked up ranking by ranking they would take longer than the ranking.
        at_x = np.concatenate([np.empty(0, dtype=np.int64), *(at_n for _, _, at_n in ranked)])
        names = iter(votes.items.gather(scores.item_i[at_x]).cast(pl.String).to_list())
        for domain, ranking, at_n in ranked:
            score_n, reasons = scores.score_ri[ranking][at_n].tolist(), item_reasons(votes, scores, ranking, at_n)
            names_n, where = list(islice(names, len(at_n))), ("item", scores.question, domain)
            rankings += ranking_rows(where, ranking, names_n, score_n, reasons)
        places = (scores.item_i, scores.domain_i, scores.score_ri["entropy"])
        if votes.texts is not None:
            for domain, words in words_by_domain(votes.texts, votes.domains, *places, word_counts):
                rankings += ranking_rows(("word", scores.question, domain), WORDS_RANKING, *words)
        sums.rankings.append(rankings)
        sums.cells.append(_counted(np.column_stack([scores.counts_ik, scores.domain_i]), scores.count_i))
        advance((n_done + 1) / len(votes.questions))
    return sums


def find_outliers(
    consensus: Consensus,
    entropies: Sequence[EntropyParts] | None = None,
    *,
    sums: ItemSums | None = None,
    advance: Advance = ignore,
) -> dict[str, pl.DataFrame]:
    """Find the items, annotators and words that are worth a look.

    Parameters
    ----------
    consensus
        The fits. Items are resampled with the seed of the fit; intervals have its mass.
    entropies
        By fit, the entropies of its items, where they have been computed.
    sums
        What the items tell, where the consensus has only a sample of them.
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
    'entropy 0.67... of at most 0.693 nats; ... of 3 votes 1; p = ...'
    """
    sums = sums or sum_items(consensus, entropies, advance=advance)
    summary = summarise_annotators(consensus, sums.tallies)
    of_people, outliers, agreement = rank_annotators(summary), list[Row](), list[Row]()
    levels = {fit.question: fit.ballot.levels for fit in consensus.fits}
    for (question, values), rankings, cells in zip(levels.items(), sums.rankings, sums.cells, strict=True):
        outliers += [*rankings, *of_people[question]]
        agreement += _agreement_rows(consensus, question, None if values is None else np.array(values), *cells)
    return {
        "outliers": pl.DataFrame(outliers, SCHEMAS["outliers"], orient="row"),
        "annotator_summary": summary,
        "agreement": pl.DataFrame(agreement, SCHEMAS["agreement"], orient="row").fill_nan(None),
    }


def _agreement_rows(
    consensus: Consensus, question: str, value_k: Floats | None, key_cx: Ints, weight_c: Floats
) -> Iterator[Row]:
    """Measure how far annotators agree on a question, over all domains and in each."""
    settings: dict[str, Any] = {"value_k": value_k, "interval": consensus.interval, "seed": consensus.options.seed}
    for code in (UNKNOWN, *np.setdiff1d(key_cx[:, -1], [UNKNOWN]).tolist()):
        inside = slice(None) if code == UNKNOWN else key_cx[:, -1] == code
        domain = ALL if code == UNKNOWN else consensus.votes.domains[code]
        figures = measure_agreement(key_cx[inside, :-1], weight_c[inside], **settings)
        yield from ((question, domain, *row) for row in figures)
