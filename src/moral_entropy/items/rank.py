"""Items worth a look: most uncertain, most in conflict with a rule, most to be gained by one more vote.

Takes the fits of one question and their entropies, returns every item's scores (`ItemScores`), ranks items by domain,
and says in words and with figures why each is ranked where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from moral_entropy.items.next_votes import NOBODY, choose_votes
from moral_entropy.model.consensus import QuestionFit
from moral_entropy.model.entropy import REMEDIES, EntropyParts, is_ambiguous
from moral_entropy.model.patterns import collapse
from moral_entropy.model.posterior import state_posterior
from moral_entropy.names import ALL
from moral_entropy.rules.rules import RULES
from moral_entropy.ties import TIE, tie_key
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, Votes

TOP, TOP_IN_DOMAIN = 100, 50
"""Items that a ranking keeps, of a whole question and of one domain of it."""

MOST_ROWS = 100_000
"""Rows whose gain by one more vote is computed: those with most doubt that votes can remove."""

ONE_MORE_VOTE = "one more vote"
CONFLICT_RULES = ("any", "majority", "two-vote")
"""Rules whose conflicts with the consensus are ranked, of two labels; of more it is the plurality."""


class ItemScores(NamedTuple):
    """Every item of one question, all parts of it one below the other. Axes: **i** item, **k** label.

    Parameters
    ----------
    question, labels, positive
        The question; `positive` is None where there are more than two labels.
    item_i, domain_i
        Row of `Votes.items`, and code of the domain.
    counts_ik, count_i
        Votes by label, and how many items each row stands for.
    p_i, low_i, high_i, label_i
        Published probability and interval of the positive label (of more than two, of the consensus label), and that
        label.
    entropy_i
        Entropy of the label, in nats: the model's own.
    answer_ri
        By ranking "conflict:rule", the label each rule gives; `UNKNOWN` where it gives none.
    score_ri
        Scores by ranking; NaN where an item is not to be ranked.
    annotator_i
        The annotator whose vote is expected to be most informative, by row of `Votes.annotators`; `NOBODY` where all
        have voted.
    """

    question: str
    labels: tuple[str, ...]
    positive: int | None
    item_i: Ints
    domain_i: Ints
    counts_ik: Ints
    count_i: Floats
    p_i: Floats
    low_i: Floats
    high_i: Floats
    label_i: Ints
    entropy_i: Floats
    answer_ri: dict[str, Ints]
    score_ri: dict[str, Floats]
    annotator_i: Ints


def score_items(votes: Votes, fits: Sequence[QuestionFit], parts: EntropyParts) -> ItemScores:
    """Score every item of one question.

    Parameters
    ----------
    votes
        The votes that were fitted.
    fits
        All fits of one question.
    parts
        The entropies of their items, one fit below the other.
    """
    ballots = [fit.ballot for fit in fits]
    positive = ballots[0].positive if ballots[0].n_labels == 2 else None
    item_i, counts_ik, count_i, published_i = (
        _joined([getattr(ballot, name) for ballot in ballots])
        for name in ("item_i", "counts_ik", "count_i", "published_i")
    )
    p_ik, label_i, low_i, high_i = (
        _joined([getattr(fit, name) for fit in fits]) for name in ("p_ik", "label_i", "low_i", "high_i")
    )
    answers = _answers(counts_ik, published_i, positive)
    gain_i, annotator_i = map(_joined, zip(*(_gain(votes, fit) for fit in fits), strict=True))
    # Without a vote the entropy is that of the prior, and says nothing about the item.
    doubts = {"entropy": parts.total_i, "doubt_votes": parts.votes_i, "doubt_annotators": parts.annotators_i}
    if parts.model == "mixed":
        doubts["ambiguity"] = parts.ambiguity_i
    if (silent_i := ~counts_ik.any(axis=1)).any():
        doubts = {name: np.where(silent_i, np.nan, doubt_i) for name, doubt_i in doubts.items()}
    score_ri, at_i = doubts, np.arange(len(item_i))
    for name, answer_i in answers.items():
        # The probability that the rule is wrong, where it does not agree with the consensus or abstain.
        silent_i = (answer_i == UNKNOWN) | (answer_i == label_i)
        score_ri[name] = np.where(silent_i, np.nan, 1.0 - p_ik[at_i, answer_i])
    # Votes do not help where the item is ambiguous.
    gain_i[is_ambiguous(p_ik.max(axis=1), parts.total_i, parts.lasting_i)] = np.nan
    score_ri[ONE_MORE_VOTE] = gain_i
    p_i = p_ik[:, positive] if positive is not None else p_ik[at_i, label_i]
    names, items = (fits[0].question, ballots[0].labels, positive), (item_i, votes.domain_i[item_i])
    figures = (p_i, low_i, high_i, label_i, parts.total_i)
    return ItemScores(*names, *items, counts_ik, count_i, *figures, answers, score_ri, annotator_i)


def _joined(arrays: Sequence[Any]) -> Any:
    """Put arrays one below the other; one alone is not copied: there may be very many items."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def rank_items(scores: ItemScores, domains: Sequence[str]) -> Iterator[tuple[str, str, Ints]]:
    """Rank the items of a question by each score, all together, then by domain.

    Yields domain, ranking, and the positions of the items in `scores`, highest score first.
    """
    for ranking, score_i in scores.score_ri.items():
        yield ALL, ranking, first(score_i, TOP)
    if not domains:
        return
    order_i = np.argsort(scores.domain_i, kind="stable")
    codes, starts = np.unique(scores.domain_i[order_i], return_index=True)
    for code, inside in zip(codes, np.split(order_i, starts[1:]), strict=True):
        if code == UNKNOWN:
            continue
        for ranking, score_i in scores.score_ri.items():
            yield domains[code], ranking, inside[first(score_i[inside], TOP_IN_DOMAIN)]


def _answers(counts_ik: Ints, published_i: Ints, positive: int | None) -> dict[str, Ints]:
    """Return the label that each rule assigns to each item, by the name of its ranking; `UNKNOWN` where it has none."""
    answers: dict[str, Ints] = {}
    if positive is None:
        top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
        # A tie is broken at random: there is no answer that could be in conflict with the consensus.
        answers["conflict:plurality"] = np.where(top_ik.sum(axis=1) == 1, counts_ik.argmax(axis=1), UNKNOWN)
    else:
        for name in CONFLICT_RULES:
            score_i = RULES[name].scores(counts_ik, positive)
            answer_i = np.where(score_i == 1.0, positive, 1 - positive)
            answers[f"conflict:{name}"] = np.where(np.isnan(score_i), UNKNOWN, answer_i).astype(np.int16)
    if (published_i != UNKNOWN).any():
        answers["conflict:published"] = published_i
    return answers


def _gain(votes: Votes, fit: QuestionFit) -> tuple[Floats, Ints]:
    """Compute every item's gain by one more vote, and whose vote that is; items of one pattern share both.

    Of very many rows only those with most doubt that votes can remove are considered; the others gain 0.
    """
    ballot, patterns = fit.ballot, fit.patterns
    first_r = np.empty(patterns.n_rows, dtype=np.int64)
    first_r[patterns.row_i[::-1]] = np.arange(ballot.n_items)[::-1]
    row_n = np.arange(patterns.n_rows)
    if fit.options.mixed and len(row_n) > MOST_ROWS and fit.n_draws:
        doubt_r = (entr(fit.p_ik).sum(axis=1) - fit.ambiguity_i)[first_r]
        row_n = np.sort(np.argpartition(-doubt_r, MOST_ROWS)[:MOST_ROWS])
    rows, item_n = patterns if len(row_n) == patterns.n_rows else patterns.take(row_n), first_r[row_n]
    # Who has voted is told by the votes as they were cast; whoever counts together with another is not asked.
    cast = collapse(ballot, whole=True).take(item_n) if fit.counted_groups else rows
    allowed_a = np.ones(ballot.n_annotators, dtype=bool)
    allowed_a[[a for group in fit.counted_groups for a in group[1:]]] = False
    if not fit.options.mixed:
        chances: Any = fit.model_ik[item_n]
        vote_azv, mix_zk = fit.confusion_akv, None
    else:
        chances = lambda at: state_posterior(rows, fit.states, fit.mode, at)  # noqa: E731
        vote_azv, mix_zk = fit.states.votes_azv(fit.confusion_akv), fit.states.mix_zk
    options: dict[str, Any] = {"mix_zk": mix_zk, "repeats": votes.anonymous, "allowed_a": allowed_a}
    gain_n, annotator_n = choose_votes(chances, cast.start_r, cast.code_v, vote_azv, ballot.votes_a, **options)
    gain_r, named_r = np.zeros(patterns.n_rows), np.full(patterns.n_rows, NOBODY, dtype=np.int32)
    gain_r[row_n] = gain_n
    named_r[row_n] = np.append(ballot.annotator_a, NOBODY)[annotator_n]
    return patterns.spread(gain_r), patterns.spread(named_r)


def first(score_i: Floats, n: int) -> NDArray[np.int64]:
    """Return the positions of the `n` highest scores, highest first; of equal ones the earlier first, NaN never.

    Examples
    --------
    >>> first(np.array([0.2, 0.3, np.nan, 0.1 + 0.2]), 2).tolist()
    [1, 3]
    """
    if n <= 0:
        return np.empty(0, dtype=np.int64)
    score_n = score_i[~np.isnan(score_i)]
    least = -np.inf
    if len(score_n) > n:
        # Sorting a million scores to find the first hundred would be a waste.
        score_n.partition(len(score_n) - n)
        least = score_n[len(score_n) - n] - TIE
    at_i = np.flatnonzero(score_i >= least)
    return at_i[np.argsort(-tie_key(score_i[at_i]), kind="stable")[:n]]


def ranking_rows(
    where: tuple[str, str, str], ranking: str, names: Sequence[str], scores: Sequence[float], reasons: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return one ranking, highest rank first, as rows of the table outliers.

    Parameters
    ----------
    where
        Kind ("item", "annotator" or "word"), question and domain.
    ranking
        What it is ranked by.
    names, scores, reasons
        One value per ranked item, annotator or word.
    """
    ranked = zip(names, scores, reasons, range(1, len(names) + 1), strict=True)
    return [(*where, name, score, reason, ranking, rank) for name, score, reason, rank in ranked]


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
    labels, reasons = scores.labels, []
    for i in at_n.tolist():
        score, total, label = scores.score_ri[ranking][i], scores.entropy_i[i], labels[scores.label_i[i]]
        if ranking == ONE_MORE_VOTE:
            annotator = int(scores.annotator_i[i])
            name = "someone new" if annotator == NOBODY else votes.annotators[annotator]
            lead = f"a vote by {name} is expected to take {score:.3f} of its {total:.3f} nats"
        elif ranking.startswith("conflict:"):
            answer = f"{ranking.removeprefix('conflict:')} says {labels[scores.answer_ri[ranking][i]]}"
            lead = f"{answer}, the consensus {label}: wrong with probability {score:.2f}"
        elif ranking == "entropy":
            lead = f"entropy {score:.3f} of at most {np.log(len(labels)):.3f} nats"
        else:
            lead = f"{score:.3f} of {total:.3f} nats: {REMEDIES[ranking]}"
        counts = votes_in_words(scores.counts_ik[i].tolist(), labels, scores.positive)
        bounds = (scores.p_i[i], scores.low_i[i], scores.high_i[i])
        reasons.append(
            f"{lead}; {counts}; {probability(*bounds, label=None if scores.positive is not None else label)}"
        )
    return reasons


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
