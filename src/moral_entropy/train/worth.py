"""What a trained classifier is worth, on texts that it has not learnt from; its temperature, and where to say yes.

Everything is measured on the validation texts, which have at most stopped the training. A temperature is one number by
which all logits are divided, so that the probabilities are neither too sure nor too hesitant (Guo et al. 2017). It is
fitted on the same texts; for the figures each half of them has the temperature of the other half. Touches no files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from moral_entropy.train.classifier import Classifier
from moral_entropy.train.reference import Reference, rows_at, rows_of
from moral_entropy.train.scores import Standard, by_question, score
from moral_entropy.train.splits import hash_texts
from moral_entropy.train.targets import Targets, mean_logits
from moral_entropy.votes.table import Floats

FEWEST = 40
"""With fewer texts nothing is fitted, and with fewer items that have gold, gold is no reference."""

COLDEST, HOTTEST = 0.25, 8.0
CHANCE = 0.6
"""A mean AUC below is hardly better than chance."""

THRESHOLDS = np.round(np.arange(0.02, 0.981, 0.01), 2)


@dataclass(frozen=True)
class QuestionWorth:
    """Figures of one question.

    Parameters
    ----------
    question
        Which.
    auc, log_loss, ece
        Of the classifier: ranking, nats per text, calibration error; AUC is NaN where all labels are the same.
    constant_loss, share_loss
        Log loss of one answer to all texts, and of the share of each text's own votes.
    threshold
        From which p a yes has the highest expected F1; None for more than two labels.
    """

    question: str
    auc: float
    log_loss: float
    ece: float
    constant_loss: float
    share_loss: float
    threshold: float | None


@dataclass(frozen=True)
class Worth:
    """What a classifier is worth.

    Parameters
    ----------
    n_items
        Texts it was measured on.
    reference
        "gold" or "consensus": what it was measured against.
    temperature
        What the logits were divided by.
    questions
        The figures.
    """

    n_items: int
    reference: str
    temperature: float
    questions: tuple[QuestionWorth, ...]

    def mean(self, figure: str) -> float:
        """Average a figure over the questions that have it."""
        known = [value for one in self.questions if not math.isnan(value := getattr(one, figure))]
        return sum(known) / len(known) if known else float("nan")

    @property
    def facts(self) -> dict[str, Any]:
        """The figures as plain values, for a JSON file; NaN is null there."""
        plain = [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(one).items()
            }
            for one in self.questions
        ]
        return {
            "n_items": self.n_items,
            "reference": self.reference,
            "temperature": self.temperature,
            "questions": plain,
        }


def fit_temperature(targets: Targets, logits_io: Floats) -> float:
    """Find the temperature with the lowest loss; 1 where there are too few texts.

    Examples
    --------
    Logits that are twice too large want a temperature of two.

    >>> from moral_entropy.train.head import Block, Head
    >>> import polars as pl
    >>> logits_io = np.linspace(-3, 3, 60)[:, None]
    >>> head = Head((Block("care", ("no", "yes"), "yes"),))
    >>> p_io, items = head.probabilities(logits_io), pl.Series(range(60))
    >>> targets = Targets(items, ("a text",) * 60, ("",) * 60, head, p_io, np.ones((60, 1)), "soft")
    >>> round(fit_temperature(targets, 2 * logits_io), 2)
    2.0
    """
    from scipy.optimize import minimize_scalar

    if targets.n_items < FEWEST:
        return 1.0

    def loss(log_temperature: float) -> float:
        return targets.head.loss(logits_io / math.exp(log_temperature), targets.target_io, targets.weight_iq)

    found = minimize_scalar(loss, bounds=(math.log(COLDEST), math.log(HOTTEST)), method="bounded")
    return float(math.exp(found.x))


def find_worth(
    classifier: Classifier,
    train: Targets,
    validation: Targets,
    references: Sequence[Reference],
    share: Targets,
) -> Worth:
    """Measure a classifier on the validation texts.

    Parameters
    ----------
    classifier
        As trained, before its temperature is set.
    train, validation
        What it learnt from, and what it is measured on.
    references
        What it may be measured against; the first that knows enough of the texts is taken, else the last.
    share
        The share of the votes of each item.
    """
    logits_io = classifier.logits(validation.texts)
    p_io = validation.head.probabilities(logits_io / _cross_fitted(validation, logits_io)[:, None])
    reference, standards = _chosen(references, validation)
    constant_io = np.tile(validation.head.probabilities(mean_logits(train)[None]), (validation.n_items, 1))
    share_io = rows_at(share.target_io, rows_of(share.items, validation.items))
    answers = (by_question(validation.head, one_io) for one_io in (p_io, constant_io, share_io))
    questions = [
        _question_worth(name, *of_question)
        for name, *of_question in zip(validation.head.questions, *answers, standards, strict=True)
    ]
    return Worth(validation.n_items, reference.name, fit_temperature(validation, logits_io), tuple(questions))


def _cross_fitted(validation: Targets, logits_io: Floats) -> Floats:
    """Return each text's temperature, fitted on the other half of the texts."""
    first_i = hash_texts(validation.texts, seed=0, purpose="temperature") < 0.5
    temperature_i = np.ones(validation.n_items)
    for half_i in (first_i, ~first_i):
        others = np.flatnonzero(~half_i)
        temperature_i[half_i] = fit_temperature(validation.take(others), logits_io[others])
    return temperature_i


def _chosen(references: Sequence[Reference], validation: Targets) -> tuple[Reference, list[Standard]]:
    for reference in references:
        standards = reference.standards(validation.items)
        if all(one.n_items >= FEWEST for one in standards):
            break
    return reference, standards


def _question_worth(
    name: str, p_ik: Floats, constant_ik: Floats, share_ik: Floats, standard: Standard
) -> QuestionWorth:
    own, constant, share = (score(one_ik, standard) for one_ik in (p_ik, constant_ik, share_ik))
    return QuestionWorth(
        question=name,
        **{metric: float(own[metric][0]) for metric in ("auc", "log_loss", "ece")},
        constant_loss=float(constant["log_loss"][0]),
        share_loss=float(share["log_loss"][0]),
        threshold=best_threshold(p_ik[:, 1], standard) if p_ik.shape[1] == 2 else None,
    )


def best_threshold(p_i: Floats, standard: Standard) -> float:
    """Find the threshold of the highest expected F1: from which p to say yes; of equals, the nearest to ½.

    Examples
    --------
    >>> truth = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> best_threshold(np.array([0.1, 0.3, 0.4]), Standard(truth, truth, np.ones(3)))
    0.3
    """
    true_i = standard.weight_i * standard.share_ik[:, 1]
    yes_ti = p_i >= THRESHOLDS[:, None] - 1e-9
    f1_t = 2.0 * (yes_ti @ true_i) / np.maximum(true_i.sum() + yes_ti @ standard.weight_i, 1e-12)
    best_t = np.flatnonzero(f1_t >= f1_t.max() - 1e-9)
    return float(THRESHOLDS[best_t[np.argmin(np.abs(THRESHOLDS[best_t] - 0.5))]])


def worth_lines(worth: Worth) -> list[str]:
    """Say what a classifier is worth: one line of figures, one of what they mean if it is little, one of thresholds."""
    auc, loss, constant = (worth.mean(figure) for figure in ("auc", "log_loss", "constant_loss"))
    lines = [
        f"worth, on {worth.n_items:,} texts it has not learnt from, against the {worth.reference}: AUC {auc:z.2f}, "
        f"log loss {loss:z.3f} ({constant:z.3f} for one constant answer, {worth.mean('share_loss'):z.3f} for the share "
        f"of the text's own votes), calibration error {worth.mean('ece'):z.3f}"
    ]
    if loss > constant - 5e-4:
        lines.append("It is worth no more than a constant answer: train on more texts, or with another model.")
    elif auc < CHANCE:
        lines.append("It hardly tells texts apart (an AUC of 0.5 is chance): train on more texts, or another model.")
    wanted = [one for one in worth.questions if one.threshold is not None]
    if wanted:
        said = ", ".join(f"{one.question} {one.threshold:.2f}" for one in wanted)
        lines.append(
            f"to find most of what is there (the best F1), say yes from p = {said}; 0.50 makes the fewest errors"
        )
    return lines
