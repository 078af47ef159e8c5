"""Why something is ranked where it is, in words and with figures.

Takes scores and positions, returns one short sentence for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moral_entropy.consensus.entropy import CURES
from moral_entropy.items.next_votes import NOBODY
from moral_entropy.items.rank import ONE_MORE_VOTE, ItemScores
from moral_entropy.votes.table import Ints, Votes

if TYPE_CHECKING:
    import polars as pl


def item_reasons(votes: Votes, scores: ItemScores, ranking: str, at_n: Ints) -> list[str]:
    """Describe why each of some items is in a ranking.

    Parameters
    ----------
    votes
        The votes, for names of annotators.
    scores
        Scores of the items.
    ranking
        One of the names in `scores.score_ri`.
    at_n
        Positions of the items in `scores`.
    """
    score_n = scores.score_ri[ranking][at_n].tolist()
    if ranking == ONE_MORE_VOTE:
        who_n = _names(votes, scores.annotator_i[at_n])
        said = [f"a vote by {who} is expected to take {gain:.3f}" for who, gain in zip(who_n, score_n, strict=True)]
        whole_n = scores.entropy_i[at_n].tolist()
        said = [f"{text} of its {whole:.3f} nats" for text, whole in zip(said, whole_n, strict=True)]
    elif ranking.startswith("conflict:"):
        said = _conflicts(scores, ranking, at_n, score_n)
    elif ranking == "entropy":
        most = float(np.log(len(scores.labels)))
        said = [f"entropy {score:.3f} of at most {most:.3f} nats" for score in score_n]
    else:
        whole_n = scores.entropy_i[at_n].tolist()
        pairs = zip(score_n, whole_n, strict=True)
        said = [f"{score:.3f} of {whole:.3f} nats: {CURES[ranking]}" for score, whole in pairs]
    return [f"{text}; {fact}" for text, fact in zip(said, item_facts(scores, at_n), strict=True)]


def item_facts(scores: ItemScores, at_n: Ints) -> list[str]:
    """Describe how each item's votes fell, and what p is: "3 of 5 votes yes; p = 0.52 [0.40, 0.64]"."""
    bounds = zip(*(values[at_n].tolist() for values in (scores.p_i, scores.low_i, scores.high_i)), strict=True)
    labels_n = scores.label_i[at_n].tolist()
    return [
        f"{votes_in_words(counts, scores.labels, scores.positive)}; "
        + probability(*bound, label=None if scores.positive is not None else scores.labels[label])
        for counts, bound, label in zip(scores.counts_ik[at_n].tolist(), bounds, labels_n, strict=True)
    ]


def votes_in_words(counts_k: Sequence[int], labels: Sequence[str], positive: int | None) -> str:
    """Describe how the votes on an item fell.

    Examples
    --------
    >>> votes_in_words([2, 3], ("no", "yes"), positive=1)
    '3 of 5 votes yes'
    >>> votes_in_words([2, 0, 1], ("anger", "joy", "none"), positive=None)
    'votes: 2 anger, 1 none'
    """
    total = sum(counts_k)
    if not total:
        return "no votes"
    if positive is not None:
        return f"{counts_k[positive]} of {total} vote{'s' * (total > 1)} {labels[positive]}"
    cast = [(count, label) for count, label in zip(counts_k, labels, strict=True) if count]
    return "votes: " + ", ".join(f"{count} {label}" for count, label in sorted(cast, key=lambda pair: -pair[0]))


def probability(p: float, low: float, high: float, *, label: str | None = None) -> str:
    """Describe p: "p = 0.52 [0.40, 0.64]", without an interval where there is none.

    Examples
    --------
    >>> probability(0.52, 0.4, 0.64), probability(0.52, float("nan"), float("nan"), label="joy")
    ('p = 0.52 [0.40, 0.64]', 'p(joy) = 0.52')
    """
    name = "p" if label is None else f"p({label})"
    return f"{name} = {p:.2f}" + (f" [{low:.2f}, {high:.2f}]" if low == low else "")


def _conflicts(scores: ItemScores, ranking: str, at_n: Ints, score_n: Sequence[float]) -> list[str]:
    rule = ranking.removeprefix("conflict:")
    said_n, label_n = scores.answer_ri[ranking][at_n].tolist(), scores.label_i[at_n].tolist()
    return [
        f"{rule} says {scores.labels[said]}, the consensus {scores.labels[label]}: wrong with probability {wrong:.2f}"
        for said, label, wrong in zip(said_n, label_n, score_n, strict=True)
    ]


def _names(votes: Votes, annotator_n: Ints) -> list[str]:
    known = np.where(annotator_n == NOBODY, 0, annotator_n)
    names = votes.annotators.gather(known).to_list() if len(votes.annotators) else [""] * len(known)
    someone = ["someone new"] * len(known)
    return [str(name) if a != NOBODY else new for name, a, new in zip(names, annotator_n, someone, strict=True)]


def annotator_reasons(summary: pl.DataFrame, ranking: str) -> list[str]:
    """Describe why each row of an annotator summary is in a ranking: "disagreement" or "youden"."""
    return [_annotator_reason(row, ranking) for row in summary.iter_rows(named=True)]


def _annotator_reason(row: dict[str, Any], ranking: str) -> str:
    lead = f"{row['role']}: " if row["role"] else ""
    votes = f"{row['n_votes']:,} vote{'s' * (row['n_votes'] != 1)}"
    place = f" in {row['part']}" if row["part"] else ""
    if ranking == "disagreement":
        own = f"{row['disagreement']:.1%} with the own vote counted"
        return f"{lead}{row['disagreement_others']:.1%} of {votes}{place} against the majority of the others ({own})"
    if row["specificity"] is None:
        rates = f"right {_with_interval(row, 'sensitivity')} of the time on average"
    else:
        rates = f"sensitivity {_with_interval(row, 'sensitivity')}, specificity {_with_interval(row, 'specificity')}"
    chance = "" if row["below_chance"] is None else f", worse than guessing with probability {row['below_chance']:.2f}"
    return f"{lead}Youden index {_with_interval(row, 'youden')}{chance}; {rates}; {votes}{place}"


def _with_interval(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:z.2f}" + ("" if low is None else f" [{low:z.2f}, {high:z.2f}]")
