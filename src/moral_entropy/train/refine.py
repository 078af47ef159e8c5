"""A posterior that also knows the text: the votes' p, and a classifier as one more voter.

The classifier learns p from other items and is asked about items that it has not seen (cross-fitting, by text). What
it says beyond the prevalence is added to the evidence of the votes, times a weight:

    log q_k = log p_k + weight · (log c_k − log mean c_k) + constant

with c the classifier's answer. The weight is learnt from votes that were taken away before all this: the one that
foretells them best, given how each annotator errs. Votes that share a mistake teach it to the classifier as well, so
gold labels, where there are some, correct p and q alike. Touches no files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from moral_entropy.consensus.fit import refit
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.errors import MoralEntropyWarning, TrainError
from moral_entropy.progress import Advance, ignore, share_of
from moral_entropy.rules.calibration import unseen_gold
from moral_entropy.train.classifier import Classifier, train_classifier
from moral_entropy.train.head import Block
from moral_entropy.train.held_out import hold_out
from moral_entropy.train.options import RefineOptions, TrainOptions
from moral_entropy.train.reference import rows_of
from moral_entropy.train.scores import by_question
from moral_entropy.train.splits import hash_texts
from moral_entropy.train.targets import Targets, targets_from_consensus
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats, Ints

FLOOR = 1e-4
"""Neither votes nor text are ever surer than this."""

UNKNOWN_WEIGHT = 0.5
"""Weight of the text where no vote can be held out to learn it from."""

MOST_WEIGHT = 2.0

TrainModel = Callable[..., Classifier]


@dataclass(frozen=True, eq=False)
class RefinedQuestion:
    """One question. Axes: **i** item, **k** label, the positive one of two last.

    Parameters
    ----------
    question, labels
        What was asked.
    p_ik, text_ik, refined_ik
        What the votes say, what the text says, and both together.
    gold_i
        Position of the true label, or `UNKNOWN`.
    weight
        Of the text.
    """

    question: str
    labels: tuple[str, ...]
    p_ik: Floats
    text_ik: Floats
    refined_ik: Floats
    gold_i: Ints
    weight: float


@dataclass(frozen=True, eq=False)
class Refined:
    """What votes and texts say together: items, a table per question, and remarks."""

    items: pl.Series
    questions: tuple[RefinedQuestion, ...]
    notes: tuple[str, ...]


def refine(
    consensus: Consensus,
    options: RefineOptions | None = None,
    *,
    train: TrainModel = train_classifier,
    advance: Advance = ignore,
) -> Refined:
    """Compute a posterior that also knows the text, for every item that has one.

    Parameters
    ----------
    consensus
        With texts.
    options
        Which model reads the texts, and how.
    train
        What trains.
    advance
        Called with the share done.
    """
    options = options or RefineOptions()
    whole = targets_from_consensus(consensus, "soft")
    weight_q, notes = _weights(consensus, options, train, share_of(advance, 0, 2))
    text_io = cross_fitted(whole, options, train=train, advance=share_of(advance, 1, 2))
    golds = _gold(consensus, whole)
    votes, texts = by_question(whole.head, whole.target_io), by_question(whole.head, text_io)
    questions = [
        RefinedQuestion(block.question, _labels(block), p_ik, text_ik, pooled(p_ik, text_ik, weight), gold_i, weight)
        for block, p_ik, text_ik, gold_i, weight in zip(whole.head.blocks, votes, texts, golds, weight_q, strict=True)
    ]
    return Refined(whole.items, tuple(questions), (*whole.notes, *notes))


def cross_fitted(
    targets: Targets, options: RefineOptions, *, train: TrainModel = train_classifier, advance: Advance = ignore
) -> Floats:
    """Return what a classifier says about each text that has learnt from other texts alone: `p_io`."""
    fold_i = (hash_texts(targets.texts, seed=options.seed, purpose="fold") * options.folds).astype(np.int64)
    p_io = np.empty_like(targets.target_io)
    how = TrainOptions(**options.hyperparameters(), model=options.model, seed=options.seed, patience=0, validation=0)
    for fold in range(options.folds):
        asked, others = np.flatnonzero(fold_i == fold), np.flatnonzero(fold_i != fold)
        if not len(others):
            msg = f"all {targets.n_items:,} items have the same text: there is nothing to learn from others."
            raise TrainError(msg)
        if len(asked):
            classifier = train(targets.take(others), None, how, advance=share_of(advance, fold, options.folds))
            p_io[asked] = classifier.probabilities([targets.texts[i] for i in asked.tolist()])
    return p_io


def pooled(p_ik: Floats, text_ik: Floats, weight: float) -> Floats:
    """Add what the text says beyond the prevalence to the votes' evidence.

    Examples
    --------
    A text that says no more than the average text changes nothing, and neither does a weight of 0.

    >>> p_ik, text_ik = np.array([[0.6, 0.4], [0.5, 0.5]]), np.array([[0.5, 0.5], [0.5, 0.5]])
    >>> pooled(p_ik, text_ik, 1.0).round(3).tolist()
    [[0.6, 0.4], [0.5, 0.5]]
    >>> pooled(p_ik, np.array([[0.9, 0.1], [0.1, 0.9]]), 1.0).round(3).tolist()
    [[0.931, 0.069], [0.1, 0.9]]
    """
    log_p_ik, log_c_ik = (np.log(np.clip(one_ik, FLOOR, 1.0)) for one_ik in (p_ik, text_ik))
    log_mean_k = np.log(np.clip(text_ik.mean(axis=0), FLOOR, 1.0))
    log_q_ik = log_p_ik + weight * (log_c_ik - log_mean_k)
    q_ik = np.exp(log_q_ik - log_q_ik.max(axis=1, keepdims=True))
    return np.asarray(q_ik / q_ik.sum(axis=1, keepdims=True))


def _labels(block: Block) -> tuple[str, ...]:
    if block.positive is None:
        return block.labels
    return (*(label for label in block.labels if label != block.positive), block.positive)


def _gold(consensus: Consensus, whole: Targets) -> Iterator[Ints]:
    """Yield each question's gold, as positions among its labels; gold that was evidence in the fit is none."""
    for block in whole.head.blocks:
        gold_i = np.full(whole.n_items, UNKNOWN, dtype=np.int64)
        for fit in (unseen_gold(one) for one in consensus.fits if one.question == block.question):
            at = _label_order(fit)
            row_i = rows_of(whole.items, consensus.votes.items.gather(fit.ballot.item_i))
            known = (fit.ballot.gold_i != UNKNOWN) & (row_i >= 0)
            gold_i[row_i[known]] = at[fit.ballot.gold_i[known]]
        yield gold_i


def _label_order(fit: QuestionFit) -> Ints:
    """Return where each label of a ballot stands in the tables: the positive one of two last."""
    order = np.arange(fit.ballot.n_labels)
    return order[::-1] if fit.ballot.n_labels == 2 and fit.ballot.positive == 0 else order


# --- The weight of the text ------------------------------------------------------------------------------------------


def _weights(
    consensus: Consensus, options: RefineOptions, train: TrainModel, advance: Advance
) -> tuple[list[float], tuple[str, ...]]:
    """Learn the weight of the text for each question, from votes that are held out."""
    questions = consensus.votes.questions
    if options.weight is not None:
        return [options.weight] * len(questions), ()
    try:
        rest, held, note = hold_out(consensus.votes, seed=options.seed)
    except TrainError as error:
        note = f"The weight of the text is {UNKNOWN_WEIGHT:g}, as it cannot be learnt: {error}"
        return [UNKNOWN_WEIGHT] * len(questions), (note,)
    with warnings.catch_warnings():
        # Fewer votes are thinner by design.
        warnings.simplefilter("ignore", MoralEntropyWarning)
        left = targets_from_consensus(refit(consensus, votes=rest), "soft")
    text_io = cross_fitted(left, options, train=train, advance=advance)
    tables = zip(by_question(left.head, left.target_io), by_question(left.head, text_io), strict=True)
    row_i = rows_of(left.items, consensus.votes.items)
    found = []
    for question, (p_ik, text_ik) in zip(left.head.questions, tables, strict=True):
        pairs = zip(consensus.fits, held.ballots, strict=True)
        votes = [_held_votes(fit, ballot, row_i) for fit, ballot in pairs if fit.question == question]
        item_v, chance_vk = (np.concatenate(parts) for parts in zip(*votes, strict=True))
        found.append(best_weight(p_ik, text_ik, item_v, chance_vk))
    return found, (f"The weight of the text was learnt from held-out votes. {note}",)


def _held_votes(fit: QuestionFit, ballot: Ballot, row_i: Ints) -> tuple[Ints, Floats]:
    """Return the item of each held-out vote, and how likely the vote is by true label: `chance_vk`."""
    annotator_v, label_v = np.divmod(ballot.code_v, ballot.n_labels)
    position_v = np.searchsorted(fit.ballot.annotator_a, ballot.annotator_a[annotator_v])
    item_v = row_i[ballot.item_i[np.repeat(np.arange(ballot.n_items), ballot.votes_i)]]
    chance_vk = fit.rows_akv[position_v, :, label_v][:, _label_order(fit)]
    return item_v[item_v >= 0], chance_vk[item_v >= 0]


def best_weight(p_ik: Floats, text_ik: Floats, item_v: Ints, chance_vk: Floats) -> float:
    """Find the weight of the text that foretells votes best, from 0 to 2.

    Parameters
    ----------
    p_ik, text_ik
        What other votes say, and what the text says.
    item_v, chance_vk
        The item of each vote, and how likely the vote is by true label.
    """
    from scipy.optimize import minimize_scalar

    if not len(item_v):
        return UNKNOWN_WEIGHT

    def loss(weight: float) -> float:
        q_ik = pooled(p_ik, text_ik, weight)
        return float(-np.log((q_ik[item_v] * chance_vk).sum(axis=1)).mean())

    found = minimize_scalar(loss, bounds=(0.0, MOST_WEIGHT), method="bounded", options={"xatol": 1e-3})
    weight = float(found.x) if found.fun < loss(0.0) else 0.0
    return round(weight, 2)
