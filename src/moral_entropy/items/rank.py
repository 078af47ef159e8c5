"""Items worth a look: most uncertain, most in conflict with a rule, most to be gained by one more vote.

Takes the fits of one question and their entropies, returns every item's scores (`ItemScores`), and ranks items by
domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moral_entropy.consensus.entropy import EntropyParts, is_ambiguous
from moral_entropy.consensus.model import StatesOf
from moral_entropy.consensus.parts import likelihood_of
from moral_entropy.consensus.patterns import as_rows
from moral_entropy.consensus.published import published_interval
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.consensus.tempering import tempered
from moral_entropy.items.next_votes import NOBODY, choose_votes
from moral_entropy.items.ranking import first
from moral_entropy.names import ALL
from moral_entropy.rules.rules import RULES, Rule
from moral_entropy.votes.table import UNKNOWN, Floats, Ints, Votes

TOP, TOP_IN_DOMAIN = 100, 50
"""Items that a ranking keeps, of a whole question and of one domain of it."""

MOST_ROWS = 100_000
"""Rows whose gain by one more vote is computed: those with most doubt that votes can remove."""

ONE_MORE_VOTE = "one more vote"
CONFLICT_RULES = ("any", "majority", "two-vote")
"""Rules whose conflicts with the consensus are ranked, of two labels; of more it is the plurality."""


@dataclass(frozen=True, eq=False)
class ItemScores:
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
    item_i = _joined([ballot.item_i for ballot in ballots])
    counts_ik = _joined([ballot.counts_ik for ballot in ballots])
    p_ik = _joined([fit.p_ik for fit in fits])
    label_i = _joined([fit.label_i for fit in fits])
    published_i = _joined([ballot.published_i for ballot in ballots])
    answers = _answers(counts_ik, published_i, positive)
    gain_i, annotator_i = map(_joined, zip(*(_gain(votes, fit) for fit in fits), strict=True))
    # Without a vote the entropy is that of the prior, and says nothing about the item.
    doubts = {"entropy": parts.total_i, "doubt_votes": parts.votes_i, "doubt_annotators": parts.annotators_i}
    if parts.model == "mixed":
        doubts["ambiguity"] = parts.ambiguity_i
    silent_i = ~counts_ik.any(axis=1)
    if silent_i.any():
        doubts = {name: np.where(silent_i, np.nan, doubt_i) for name, doubt_i in doubts.items()}
    score_ri = dict(doubts)
    score_ri |= {name: _conflict(answer_i, label_i, p_ik) for name, answer_i in answers.items()}
    # Votes do not help where the item is ambiguous.
    ambiguous_i = is_ambiguous(parts.total_i, parts.lasting_i, ballots[0].n_labels)
    gain_i[ambiguous_i] = np.nan
    score_ri[ONE_MORE_VOTE] = gain_i
    low_i, high_i = map(_joined, zip(*map(published_interval, fits), strict=True))
    p_i = p_ik[:, positive] if positive is not None else p_ik[np.arange(len(item_i)), label_i]
    return ItemScores(
        question=fits[0].question,
        labels=ballots[0].labels,
        positive=positive,
        item_i=item_i,
        domain_i=votes.domain_i[item_i],
        counts_ik=counts_ik,
        count_i=_joined([ballot.count_i for ballot in ballots]),
        p_i=p_i,
        low_i=low_i,
        high_i=high_i,
        label_i=label_i,
        entropy_i=parts.total_i,
        answer_ri=answers,
        score_ri=score_ri,
        annotator_i=annotator_i,
    )


def _joined(several: Sequence[Any]) -> Any:
    """Put arrays one below the other; one alone is not copied: there may be very many items."""
    return several[0] if len(several) == 1 else np.concatenate(several)


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
    """Return the label that each rule assigns to each item, by the name of its ranking."""
    answers: dict[str, Ints] = {}
    if positive is None:
        top_ik = counts_ik == counts_ik.max(axis=1, keepdims=True)
        # A tie is broken at random: there is no answer that could be in conflict with the consensus.
        answers["conflict:plurality"] = np.where(top_ik.sum(axis=1) == 1, counts_ik.argmax(axis=1), UNKNOWN)
    else:
        for name in CONFLICT_RULES:
            answers[f"conflict:{name}"] = _answer(RULES[name], counts_ik, positive)
    if (published_i != UNKNOWN).any():
        answers["conflict:published"] = published_i
    return answers


def _answer(rule: Rule, counts_ik: Ints, positive: int) -> Ints:
    score_i = rule.scores(counts_ik, positive)
    answer_i = np.where(score_i == 1.0, positive, 1 - positive).astype(np.int16)
    answer_i[np.isnan(score_i)] = UNKNOWN
    return answer_i


def _conflict(answer_i: Ints, label_i: Ints, p_ik: Floats) -> Floats:
    """Return the probability that the rule is wrong; NaN where it agrees with the consensus or abstains."""
    wrong_i = 1.0 - p_ik[np.arange(len(answer_i)), answer_i]
    return np.where((answer_i == UNKNOWN) | (answer_i == label_i), np.nan, wrong_i)


def _gain(votes: Votes, fit: QuestionFit) -> tuple[Floats, Ints]:
    """Compute every item's gain by one more vote, and whose vote that is; items of one pattern share both.

    Of very many rows only those with most doubt that votes can remove are looked at; the others gain 0.
    """
    ballot, patterns = fit.ballot, fit.patterns
    first_r = np.empty(patterns.n_rows, dtype=np.int64)
    first_r[patterns.row_i[::-1]] = np.arange(ballot.n_items)[::-1]
    row_n = _most_doubtful(fit, first_r)
    rows, item_n = patterns if len(row_n) == patterns.n_rows else patterns.take(row_n), first_r[row_n]
    # Who has voted is told by the votes as they were cast; whoever counts together with another is not asked.
    unknown_i = np.full(ballot.n_items, UNKNOWN, dtype=np.int16)
    cast = as_rows(ballot, unknown_i).take(item_n) if fit.counted_groups else rows
    asked_a = np.ones(ballot.n_annotators, dtype=bool)
    asked_a[[a for group in fit.counted_groups for a in group[1:]]] = False
    p: Floats | StatesOf
    mix_zk: Floats | None
    if fit.mixture is None:
        p, vote_azv, mix_zk = fit.summary.mean_ik[item_n], fit.rows_akv, None
    else:
        states = fit.mixture.states
        p = likelihood_of(rows, mixed=True).states_of(tempered(fit.at, fit.exponent.value))
        vote_azv, mix_zk = states.votes_azv(fit.rows_akv), states.mix_zk
    options: dict[str, Any] = {"mix_zk": mix_zk, "repeats": votes.anonymous, "allowed_a": asked_a}
    chosen = choose_votes(p, cast.start_r, cast.code_v, vote_azv, ballot.votes_a, **options)
    gain_r, named_r = np.zeros(patterns.n_rows), np.full(patterns.n_rows, NOBODY, dtype=np.int32)
    gain_r[row_n] = chosen.gain_i
    named_r[row_n] = np.append(ballot.annotator_a, NOBODY)[chosen.annotator_i]
    return patterns.spread(gain_r), patterns.spread(named_r)


def _most_doubtful(fit: QuestionFit, first_r: Ints) -> Ints:
    """Return the rows to look at: all, or of very many under the mixed model those that votes can tell most about."""
    if fit.mixture is None or fit.patterns.n_rows <= MOST_ROWS or not fit.n_draws:
        return np.arange(fit.patterns.n_rows)
    doubt_r = (fit.summary.expected_entropy_i - fit.summary.ambiguity_i)[first_r]
    return np.sort(np.argpartition(-doubt_r, MOST_ROWS)[:MOST_ROWS])
